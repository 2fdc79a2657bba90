// SPDX-License-Identifier: Apache-2.0
/// The part of TensorFlow's C kernel API that is used here, found in the process at run time, so
/// that one build serves every TensorFlow 2. Names, values and parameters are those of
/// tensorflow/c/{kernels,ops,tf_status,tf_datatype,tf_tensor,tf_tstring}.h of TensorFlow 2.15 to
/// 2.21, which are the same in all of them; ops.h cannot be included from C.
#ifndef TFOS_TENSORFLOW_API_H
#define TFOS_TENSORFLOW_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct TF_KernelBuilder;
struct TF_OpDefinitionBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;
struct TF_ShapeHandle;
struct TF_ShapeInferenceContext;
struct TF_Status;
struct TF_Tensor;

/// enum TF_Code
enum tfos__tf_code {
    TF_OK = 0,
    TF_UNKNOWN = 2,
    TF_INVALID_ARGUMENT = 3,
    TF_DEADLINE_EXCEEDED = 4,
    TF_NOT_FOUND = 5,
    TF_ALREADY_EXISTS = 6,
    TF_PERMISSION_DENIED = 7,
    TF_RESOURCE_EXHAUSTED = 8,
    TF_FAILED_PRECONDITION = 9,
    TF_ABORTED = 10,
    TF_OUT_OF_RANGE = 11,
    TF_UNIMPLEMENTED = 12,
    TF_INTERNAL = 13,
    TF_UNAVAILABLE = 14,
    TF_DATA_LOSS = 15
};

/// enum TF_DataType
enum tfos__tf_type {
    TF_FLOAT = 1,
    TF_DOUBLE = 2,
    TF_INT32 = 3,
    TF_UINT8 = 4,
    TF_INT16 = 5,
    TF_INT8 = 6,
    TF_STRING = 7,
    TF_INT64 = 9,
    TF_BOOL = 10,
    TF_BFLOAT16 = 14,
    TF_UINT16 = 17,
    TF_HALF = 19,
    TF_UINT32 = 22,
    TF_UINT64 = 23
};

/// X(result, name without TF_, parameters)
#define TFOS__TF_FUNCTIONS(X)                                                                      \
    X(struct TF_Status *, NewStatus, (void))                                                       \
    X(void, DeleteStatus, (struct TF_Status *))                                                    \
    X(void, SetStatus, (struct TF_Status *, int code, const char *message))                        \
    X(int, GetCode, (const struct TF_Status *))                                                    \
    X(const char *, Message, (const struct TF_Status *))                                           \
    X(struct TF_OpDefinitionBuilder *, NewOpDefinitionBuilder, (const char *name))                 \
    X(void, OpDefinitionBuilderAddAttr, (struct TF_OpDefinitionBuilder *, const char *attr))       \
    X(void, OpDefinitionBuilderAddInput, (struct TF_OpDefinitionBuilder *, const char *input))     \
    X(void, OpDefinitionBuilderAddOutput, (struct TF_OpDefinitionBuilder *, const char *output))   \
    X(void, OpDefinitionBuilderSetIsStateful, (struct TF_OpDefinitionBuilder *, bool is_stateful)) \
    X(void, OpDefinitionBuilderSetShapeInferenceFunction,                                          \
      (struct TF_OpDefinitionBuilder *,                                                            \
       void (*infer)(struct TF_ShapeInferenceContext *, struct TF_Status *)))                      \
    X(void, ShapeInferenceContextSetUnknownShape,                                                  \
      (struct TF_ShapeInferenceContext *, struct TF_Status *))                                     \
    X(int64_t, ShapeInferenceContextNumInputs, (struct TF_ShapeInferenceContext *))                \
    X(void, ShapeInferenceContextGetInput,                                                         \
      (struct TF_ShapeInferenceContext *, int index, struct TF_ShapeHandle *, struct TF_Status *)) \
    X(void, ShapeInferenceContextSetOutput,                                                        \
      (struct TF_ShapeInferenceContext *, int index, struct TF_ShapeHandle *, struct TF_Status *)) \
    X(struct TF_ShapeHandle *, ShapeInferenceContextScalar, (struct TF_ShapeInferenceContext *))   \
    X(struct TF_ShapeHandle *, NewShapeHandle, (void))                                             \
    X(void, DeleteShapeHandle, (struct TF_ShapeHandle *))                                          \
    X(void, RegisterOpDefinition, (struct TF_OpDefinitionBuilder *, struct TF_Status *))           \
    X(struct TF_KernelBuilder *, NewKernelBuilder,                                                 \
      (const char *op, const char *device, void *(*create)(struct TF_OpKernelConstruction *),      \
       void (*compute)(void *, struct TF_OpKernelContext *), void (*destroy)(void *)))             \
    X(void, KernelBuilder_TypeConstraint,                                                          \
      (struct TF_KernelBuilder *, const char *attr, int type, struct TF_Status *))                 \
    X(void, KernelBuilder_HostMemory, (struct TF_KernelBuilder *, const char *argument))           \
    X(void, RegisterKernelBuilder,                                                                 \
      (const char *name, struct TF_KernelBuilder *, struct TF_Status *))                           \
    X(void, OpKernelConstruction_GetAttrSize,                                                      \
      (struct TF_OpKernelConstruction *, const char *attr, int32_t *list_size,                     \
       int32_t *total_size, struct TF_Status *))                                                   \
    X(void, OpKernelConstruction_GetAttrString,                                                    \
      (struct TF_OpKernelConstruction *, const char *attr, char *value, size_t size,               \
       struct TF_Status *))                                                                        \
    X(void, OpKernelConstruction_GetAttrInt64,                                                     \
      (struct TF_OpKernelConstruction *, const char *attr, int64_t *value, struct TF_Status *))    \
    X(void, OpKernelConstruction_Failure, (struct TF_OpKernelConstruction *, struct TF_Status *))  \
    X(int, NumInputs, (struct TF_OpKernelContext *))                                               \
    X(int, NumOutputs, (struct TF_OpKernelContext *))                                              \
    X(int, ExpectedOutputDataType, (struct TF_OpKernelContext *, int index))                       \
    X(void, GetInput,                                                                              \
      (struct TF_OpKernelContext *, int index, struct TF_Tensor **, struct TF_Status *))           \
    X(void, SetOutput,                                                                             \
      (struct TF_OpKernelContext *, int index, const struct TF_Tensor *, struct TF_Status *))      \
    X(struct TF_Tensor *, AllocateOutput,                                                          \
      (struct TF_OpKernelContext *, int index, int type, const int64_t *shape, int rank,           \
       size_t size, struct TF_Status *))                                                           \
    X(struct TF_Tensor *, ForwardInputOrAllocateOutput,                                            \
      (struct TF_OpKernelContext *, const int *inputs, int input_count, int output,                \
       const int64_t *shape, int rank, int *forwarded_input, struct TF_Status *))                  \
    X(void, OpKernelContext_Failure, (struct TF_OpKernelContext *, struct TF_Status *))            \
    X(struct TF_Tensor *, NewTensor,                                                               \
      (int type, const int64_t *shape, int rank, void *data, size_t size,                          \
       void (*deallocate)(void *data, size_t size, void *argument), void *argument))               \
    X(void, DeleteTensor, (struct TF_Tensor *))                                                    \
    X(void *, TensorData, (const struct TF_Tensor *))                                              \
    X(size_t, TensorByteSize, (const struct TF_Tensor *))                                          \
    X(int, NumDims, (const struct TF_Tensor *))                                                    \
    X(int, TensorType, (const struct TF_Tensor *))                                                 \
    X(int64_t, Dim, (const struct TF_Tensor *, int index))                                         \
    X(void, StringCopy, (void *string, const char *data, size_t size))

struct tfos__tensorflow {
#define X(result, name, parameters) result(*name) parameters;
    TFOS__TF_FUNCTIONS(X)
#undef X
};

#define TFOS__TF_STRING_SIZE 24 ///< sizeof(TF_TString)

/// The functions, once tfos__tensorflow_find() has given NULL.
extern struct tfos__tensorflow tfos__tf;

/// Finds all functions in the TensorFlow that this process has loaded; loads nothing. NULL, or the
/// reason in words, which stays valid.
const char *tfos__tensorflow_find(void);

#endif
