// SPDX-License-Identifier: Apache-2.0
/// What the ops have in common: registration, statuses, and inputs that are numbers.
#ifndef TFOS_TENSORFLOW_PLUGIN_H
#define TFOS_TENSORFLOW_PLUGIN_H

#include <tfos/dtype.h>
#include <tfos/status.h>

#include "tensorflow_api.h"

/// Register the ops of a file, with kernels for the CPU.
void tfos__batch_ops_register(struct TF_Status *status);
void tfos__pass_op_register(struct TF_Status *status);
void tfos__collective_ops_register(struct TF_Status *status);

/// The kernel of an op, and how the shapes of its outputs are inferred.
struct tfos__op_kernel {
    const char *name;                                              ///< of the op
    void *(*create)(struct TF_OpKernelConstruction *construction); ///< NULL: without state
    void (*compute)(void *kernel, struct TF_OpKernelContext *context);
    void (*destroy)(void *kernel);
    /// NULL: they are unknown, and Python sets them where it uses the op.
    void (*infer_shapes)(struct TF_ShapeInferenceContext *context, struct TF_Status *status);
};

/// Registers an op and its kernel.
void tfos__op_register(struct TF_OpDefinitionBuilder *op, const struct tfos__op_kernel *kernel,
                       struct TF_Status *status);

/// Registers a kernel for GPUs of an op that is registered: for tensors whose attribute "T" is
/// `type` (0: of any type), in GPU memory but for the arguments that `host_arguments` names, which
/// a NULL ends.
void tfos__op_register_on_gpu(const struct tfos__op_kernel *kernel, int type,
                              const char *const *host_arguments, struct TF_Status *status);

bool tfos__op_is_ok(const struct TF_Status *status);

/// Makes END, or a failure of the library, the status of the op.
void tfos__op_set_status(struct TF_Status *status, enum tfos_status result,
                         const struct tfos_error *err);

/// The scalar int64 of input `index`; 0 with a failure in `status`, which calls it `name`.
int64_t tfos__op_read_number(struct TF_OpKernelContext *context, int index, const char *name,
                             struct TF_Status *status);

/// TensorFlow's number of a dtype, and the dtype that has such a number here; 0: none.
int tfos__op_type_of(enum tfos_dtype dtype);
enum tfos_dtype tfos__op_dtype_of(int type);

/// Bytes of an element; 0 for strings.
size_t tfos__op_size_of(enum tfos_dtype dtype);

#endif
