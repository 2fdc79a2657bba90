// SPDX-License-Identifier: Apache-2.0
// Futexes without the private flag, because sleeper and ringer are different processes. A hostile
// peer can make a sleep end early or run its full slice, nothing else: every sleep is bounded and
// every caller looks again.
#include "feed/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint32_t tfos__feed_futex_prepare(struct tfos__feed_futex futex)
{
    atomic_fetch_add(futex.waiters, 1);
    // The counterpart of ring()'s: one of the two sees what the other has stored.
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load(futex.word);
}

void tfos__feed_futex_wait(struct tfos__feed_futex futex, uint32_t value, int timeout_ms)
{
    struct timespec timeout = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};

    syscall(SYS_futex, futex.word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

void tfos__feed_futex_cancel(struct tfos__feed_futex futex)
{
    atomic_fetch_sub(futex.waiters, 1);
}

void tfos__feed_futex_wake(struct tfos__feed_futex futex)
{
    // The change that is announced must be visible before the waiters are counted.
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(futex.waiters) == 0)
        return;
    atomic_fetch_add(futex.word, 1);
    syscall(SYS_futex, futex.word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
