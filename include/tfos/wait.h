// SPDX-License-Identifier: Apache-2.0
/// How long a call may wait, and who may end the wait before. Calls that take one accept NULL:
/// their own timeout then, and nobody who interrupts.
#ifndef TFOS_WAIT_H
#define TFOS_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct tfos_wait {
    int64_t timeout_ms; ///< 0 or less: the call's own, which its description names

    /// Asked about every 50 ms while the call waits, on the calling thread, if not NULL; true ends
    /// the wait with CLOSED. For callers that must look after signals. It must not use the handle
    /// that waits, but for what any thread may call.
    bool (*is_interrupted)(void *context);
    void *context; ///< given to it
};

#endif
