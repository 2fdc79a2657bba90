// SPDX-License-Identifier: Apache-2.0
// Time for waits in slices.
#include "slice.h"

#include <time.h>

int64_t tfos__py_slice_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t tfos__py_slice_deadline(int64_t timeout_ms)
{
    int64_t now = tfos__py_slice_now();

    return timeout_ms < 0 || timeout_ms > INT64_MAX - now ? INT64_MAX : now + timeout_ms;
}

int64_t tfos__py_slice_next(int64_t deadline)
{
    int64_t left = deadline == INT64_MAX ? TFOS__SLICE_MS : deadline - tfos__py_slice_now();

    if (left < 0)
        return 0;
    return left < TFOS__SLICE_MS ? left : TFOS__SLICE_MS;
}
