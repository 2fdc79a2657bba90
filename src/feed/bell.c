// SPDX-License-Identifier: Apache-2.0
// Futexes without the private flag, because sleeper and ringer are different processes. A hostile
// peer can make a sleep end early or run its full slice, nothing else: every sleep is bounded and
// every caller looks again.
#include "feed/bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint32_t tfos__bell_arm(struct tfos__bell bell)
{
    atomic_fetch_add(bell.sleepers, 1);
    // The counterpart of ring()'s: one of the two sees what the other has stored.
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load(bell.word);
}

void tfos__bell_sleep(struct tfos__bell bell, uint32_t value, int timeout_ms)
{
    struct timespec timeout = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};

    syscall(SYS_futex, bell.word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

void tfos__bell_disarm(struct tfos__bell bell)
{
    atomic_fetch_sub(bell.sleepers, 1);
}

void tfos__bell_ring(struct tfos__bell bell)
{
    // The change that is announced must be visible before the sleepers are counted.
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(bell.sleepers) == 0)
        return;
    atomic_fetch_add(bell.word, 1);
    syscall(SYS_futex, bell.word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
