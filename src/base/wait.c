// SPDX-License-Identifier: Apache-2.0
// However often a wait is woken, its caller is asked once an interval: it may take a lock to
// answer.
#include "base/wait.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/fail.h"

#define ASK_INTERVAL_MS 50

struct tfos__wait tfos__wait_begin(const struct tfos_wait *caller, int64_t default_ms)
{
    bool has_timeout = caller && caller->timeout_ms > 0;
    return (struct tfos__wait){
        .deadline = tfos__deadline(has_timeout ? caller->timeout_ms : default_ms),
        .caller = caller && caller->is_interrupted ? caller : NULL,
        .ask_at = tfos__deadline(ASK_INTERVAL_MS),
    };
}

enum tfos_status tfos__wait_check(struct tfos__wait *wait, struct tfos_error *err)
{
    if (!wait->caller || tfos__now_ms() < wait->ask_at)
        return TFOS_OK;
    wait->ask_at = tfos__deadline(ASK_INTERVAL_MS);
    if (!wait->caller->is_interrupted(wait->caller->context))
        return TFOS_OK;
    return tfos__fail(err, TFOS_CLOSED, "the wait was interrupted");
}

int64_t tfos__wait_slice(const struct tfos__wait *wait)
{
    return wait->caller && wait->ask_at < wait->deadline ? wait->ask_at : wait->deadline;
}
