// SPDX-License-Identifier: Apache-2.0
/// TensorFlow's C library, loaded and not linked. Declarations are those of tensorflow/c/c_api.h,
/// tf_tensor.h and tf_tstring.h of 2.15 to 2.21.
#ifndef TFOS_MODEL_TENSORFLOW_H
#define TFOS_MODEL_TENSORFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "arrow/arrow.h"

struct TF_Buffer;
struct TF_Graph;
struct TF_Operation;
struct TF_Session;
struct TF_SessionOptions;
struct TF_Status;
struct TF_Tensor;

/// TF_Output, which is passed by value.
struct tfos__model_tensor {
    struct TF_Operation *operation;
    int index;
};

#define TFOS__MODEL_TF_STRING 7    ///< its code in TF_DataType
#define TFOS__MODEL_STRING_SIZE 24 ///< bytes of a TF_TString
#define TFOS__MODEL_ALIGNMENT 64   ///< of a tensor's memory, at least

/// X(result, name without TF_, parameters)
#define TFOS__MODEL_FUNCTIONS(X)                                                                   \
    X(struct TF_Status *, NewStatus, (void))                                                       \
    X(void, DeleteStatus, (struct TF_Status *))                                                    \
    X(int, GetCode, (const struct TF_Status *))                                                    \
    X(const char *, Message, (const struct TF_Status *))                                           \
    X(struct TF_SessionOptions *, NewSessionOptions, (void))                                       \
    X(void, DeleteSessionOptions, (struct TF_SessionOptions *))                                    \
    X(void, SetConfig,                                                                             \
      (struct TF_SessionOptions *, const void *config, size_t size, struct TF_Status *))           \
    X(struct TF_Graph *, NewGraph, (void))                                                         \
    X(void, DeleteGraph, (struct TF_Graph *))                                                      \
    X(struct TF_Session *, LoadSessionFromSavedModel,                                              \
      (const struct TF_SessionOptions *, const struct TF_Buffer *run_options, const char *path,    \
       const char *const *tags, int tag_count, struct TF_Graph *, struct TF_Buffer *meta_graph,    \
       struct TF_Status *))                                                                        \
    X(void, CloseSession, (struct TF_Session *, struct TF_Status *))                               \
    X(void, DeleteSession, (struct TF_Session *, struct TF_Status *))                              \
    X(struct TF_Operation *, GraphOperationByName, (struct TF_Graph *, const char *name))          \
    X(int, OperationNumOutputs, (struct TF_Operation *))                                           \
    X(int, OperationOutputType, (struct tfos__model_tensor))                                       \
    X(void, SessionRun,                                                                            \
      (struct TF_Session *, const struct TF_Buffer *run_options,                                   \
       const struct tfos__model_tensor *inputs, struct TF_Tensor *const *input_values,             \
       int input_count, const struct tfos__model_tensor *outputs,                                  \
       struct TF_Tensor **output_values, int output_count,                                         \
       const struct TF_Operation *const *targets, int target_count, struct TF_Buffer *metadata,    \
       struct TF_Status *))                                                                        \
    X(struct TF_Tensor *, NewTensor,                                                               \
      (int type, const int64_t *shape, int rank, void *data, size_t size,                          \
       void (*deallocate)(void *data, size_t size, void *context), void *context))                 \
    X(struct TF_Tensor *, AllocateTensor, (int type, const int64_t *shape, int rank, size_t size)) \
    X(void, DeleteTensor, (struct TF_Tensor *))                                                    \
    X(int, NumDims, (const struct TF_Tensor *))                                                    \
    X(int64_t, Dim, (const struct TF_Tensor *, int dimension))                                     \
    X(void *, TensorData, (const struct TF_Tensor *))                                              \
    X(void, StringInit, (void *string))                                                            \
    X(void, StringCopy, (void *string, const char *data, size_t size))                             \
    X(void, StringDealloc, (void *string))                                                         \
    X(const char *, StringGetDataPointer, (const void *string))                                    \
    X(size_t, StringGetSize, (const void *string))

struct tfos__model_tensorflow {
#define X(result, name, parameters) result(*name) parameters;
    TFOS__MODEL_FUNCTIONS(X)
#undef X
};

/// Loads the library of the Python package in `folder`, once in a process. Any thread.
enum tfos_status tfos__model_tensorflow_load(const char *folder,
                                             const struct tfos__model_tensorflow **out,
                                             struct tfos_error *err);

/// A type of tensors that has columns.
struct tfos__model_type {
    int code; ///< TF_DataType
    const char *name;
    enum tfos__arrow_kind kind;
    int width; ///< bits of a number; of a boolean 8
};

/// NULL: it is none of those.
const struct tfos__model_type *tfos__model_type_of(int code);

#endif
