// SPDX-License-Identifier: Apache-2.0
#include "outcome.h"

#include <stdio.h>

/// UNAVAILABLE would fit some of them better, but TensorFlow makes INTERNAL of it when it comes
/// from an op that does not communicate.
static int code_of(enum tfos_status status)
{
    switch (status) {
    case TFOS_END:
        return TF_OUT_OF_RANGE;
    case TFOS_INVALID:
        return TF_INVALID_ARGUMENT;
    case TFOS_NO_MEMORY:
        return TF_RESOURCE_EXHAUSTED;
    case TFOS_NOT_FOUND:
        return TF_NOT_FOUND;
    case TFOS_CORRUPT:
        return TF_DATA_LOSS;
    case TFOS_DENIED:
        return TF_PERMISSION_DENIED;
    case TFOS_TIMEOUT:
        return TF_DEADLINE_EXCEEDED;
    case TFOS_CLOSED:
    case TFOS_BUSY:
        return TF_ABORTED;
    case TFOS_UNSUPPORTED:
        return TF_UNIMPLEMENTED;
    default:
        return TF_INTERNAL;
    }
}

void tfos__outcome_set(struct TF_Status *status, enum tfos_status outcome,
                       const struct tfos_error *err)
{
    const char *message = outcome < 0 ? err->message : "the epoch has ended";

    tfos__tf.SetStatus(status, code_of(outcome), message);
}

bool tfos__outcome_is_ok(const struct TF_Status *status)
{
    return tfos__tf.GetCode(status) == TF_OK;
}

int64_t tfos__outcome_read_number(struct TF_OpKernelContext *context, int index, const char *name,
                                  struct TF_Status *status)
{
    struct TF_Tensor *input = NULL;
    char message[64];
    int64_t number = 0;

    tfos__tf.GetInput(context, index, &input, status);
    if (!tfos__outcome_is_ok(status))
        return 0;
    if (tfos__tf.NumDims(input) == 0 && tfos__tf.TensorType(input) == TF_INT64) {
        number = *(const int64_t *)tfos__tf.TensorData(input);
    } else {
        snprintf(message, sizeof message, "%s is to be one int64", name);
        tfos__tf.SetStatus(status, TF_INVALID_ARGUMENT, message);
    }
    tfos__tf.DeleteTensor(input);
    return number;
}
