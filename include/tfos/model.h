// SPDX-License-Identifier: Apache-2.0
/// Trained models without Python: a SavedModel is loaded by TensorFlow's C library, which the
/// process loads from TensorFlow's Python package, and called with the columns of Arrow batches.
#ifndef TFOS_MODEL_H
#define TFOS_MODEL_H

#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/export.h>
#include <tfos/status.h>

struct tfos_model;
struct tfos_model_call;

#define TFOS_MODEL_MAX_RANK 32

struct tfos_model_options {
    const char *tensorflow;  ///< folder of TensorFlow's Python package, 2.15 or later
    const char *path;        ///< folder of the SavedModel, on this machine
    const char *const *tags; ///< of the graph in it
    int tag_count;
    int threads; ///< of an operation; 0, or where the environment has TF_NUM_INTRAOP_THREADS:
                 ///< TensorFlow's choice. Operations run on the thread that calls, without GPUs.
};

/// An input of a signature, and the column for it. Texts are borrowed for the call.
struct tfos_model_input {
    const char *name;     ///< in messages
    const char *tensor;   ///< in the graph: "serving_default_x:0"
    const char *column;   ///< of the batches, in messages; they have the columns in this order
    const int64_t *shape; ///< with the rows, whose size does not matter; -1: any size
    int rank;             ///< of the shape, 1 at least; -1: not known
};

/// An output of a signature, and the column that it becomes.
struct tfos_model_output {
    const char *name;   ///< in messages
    const char *tensor; ///< in the graph
    const char *column;
    int rank; ///< with the rows; 0: a single value, which each call refuses
};

/// Loads the model. Once a process has loaded TensorFlow, that stays, and INVALID refuses another
/// folder's. UNSUPPORTED: there is no library that can be used. INVALID: it cannot load the model.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_model_open(const struct tfos_model_options *options,
                                                          struct tfos_model **out,
                                                          struct tfos_error *err);

/// NULL is accepted. The model's calls are closed before.
TFOS_API void tfos_model_close(struct tfos_model *model);

/// Prepares calls of the model with these inputs and outputs, for one thread; calls of one model
/// may run at a time. INVALID: a tensor is not in the graph, or its type has no column.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_model_call_open(struct tfos_model *model, const struct tfos_model_input *inputs,
                     int input_count, const struct tfos_model_output *outputs, int output_count,
                     struct tfos_model_call **out, struct tfos_error *err);

/// Calls the model with all rows of a batch, whose columns are those of the inputs. Takes over
/// `array`, also when it fails, and releases it when TensorFlow no longer needs its memory: later,
/// and by another thread, where the model keeps an input. `schema` is borrowed. `*results_schema`
/// and `*results` become the outputs, which the caller releases: numbers, booleans ("tfos.value",
/// docs/protocol.md) or binary, and lists of them. INVALID: a column has a null or does not fit its
/// input, an output has another number of rows, or the model fails.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_model_call_run(struct tfos_model_call *call, const struct ArrowSchema *schema,
                    struct ArrowArray *array, struct ArrowSchema *results_schema,
                    struct ArrowArray *results, struct tfos_error *err);

/// NULL is accepted.
TFOS_API void tfos_model_call_close(struct tfos_model_call *call);

#endif
