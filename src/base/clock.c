// SPDX-License-Identifier: Apache-2.0
// Deadlines are points on CLOCK_MONOTONIC: a step of the wall clock neither shortens nor lengthens
// a wait.
#include "base/clock.h"

#include <limits.h>
#include <time.h>

int64_t tfos__now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t tfos__now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t tfos__now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
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
