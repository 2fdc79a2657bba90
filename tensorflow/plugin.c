// SPDX-License-Identifier: Apache-2.0
// What happens when libtfos_tf is loaded: TensorFlow learns the ops while tf.load_op_library()
// listens. In a process without TensorFlow nothing happens.
#include "batch_op.h"
#include "pass_op.h"
#include "tensorflow_api.h"

#include <stdio.h>
#include <tfos/export.h>

static char failure[512];

/// Why the library registered nothing, in words; NULL: it did. For who loads it.
TFOS_API const char *tfos_tf_failure(void);

TFOS_API const char *tfos_tf_failure(void)
{
    return failure[0] != '\0' ? failure : NULL;
}

__attribute__((constructor)) static void register_all(void)
{
    const char *reason = tfos__tensorflow_find();
    struct TF_Status *status = NULL;

    if (reason != NULL) {
        snprintf(failure, sizeof failure, "libtfos_tf: %s", reason);
        return;
    }
    status = tfos__tf.NewStatus();
    tfos__batch_ops_register(status);
    tfos__pass_op_register(status);
    if (tfos__tf.GetCode(status) != TF_OK)
        snprintf(failure, sizeof failure, "libtfos_tf: TensorFlow refuses the ops: %s",
                 tfos__tf.Message(status));
    tfos__tf.DeleteStatus(status);
}
