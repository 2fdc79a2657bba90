// SPDX-License-Identifier: Apache-2.0
// Deadlines are points on CLOCK_MONOTONIC: a step of the wall clock neither shortens nor lengthens
// a wait. However often a wait is woken, its caller is asked once an interval: it may take a lock
// to answer.
#include "base/clock.h"

#include <limits.h>
#include <time.h>

#include "base/fail.h"

#define ASK_INTERVAL_MS 50

int64_t tfos__now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t tfos__now_us(void)
{
    return tfos__now_ns() / 1000;
}

int64_t tfos__now_ms(void)
{
    return tfos__now_ns() / 1000000;
}

int64_t tfos__deadline(int64_t timeout_ms)
{
    if (timeout_ms < 0)
        return TFOS__NEVER;
    int64_t now = tfos__now_ms();
    return timeout_ms > TFOS__NEVER - now ? TFOS__NEVER : now + timeout_ms;
}

int tfos__remaining_ms(int64_t deadline)
{
    if (deadline == TFOS__NEVER)
        return -1;
    int64_t now = tfos__now_ms();
    if (deadline <= now)
        return 0;
    return deadline - now > INT_MAX ? INT_MAX : (int)(deadline - now);
}

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
