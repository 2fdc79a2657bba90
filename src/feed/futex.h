// SPDX-License-Identifier: Apache-2.0
/// A futex: a futex word in shared memory on which one side sleeps until the other rings. Nobody
/// makes a system call while nobody sleeps.
///
/// Who sleeps: value = arm(); look once more; sleep(value); disarm(). Who rings does so after the
/// change is visible. Either the ringer sees the sleeper, or the sleeper's last look sees the
/// change.
#ifndef TFOS_FEED_FUTEX_H
#define TFOS_FEED_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

#define TFOS__FEED_SPIN_COUNT 400 ///< looks before a wait becomes a sleep: a few microseconds

struct tfos__feed_futex {
    _Atomic uint32_t *word;
    _Atomic uint32_t *waiters;
};

/// Announces a sleeper and returns the value to sleep on.
uint32_t tfos__feed_futex_prepare(struct tfos__feed_futex futex);

/// Sleeps until the futex no longer has `value`, a signal comes or `timeout_ms` is over.
void tfos__feed_futex_wait(struct tfos__feed_futex futex, uint32_t value, int timeout_ms);
void tfos__feed_futex_cancel(struct tfos__feed_futex futex);

/// Wakes who sleeps, if anybody does.
void tfos__feed_futex_wake(struct tfos__feed_futex futex);

/// Lets the other hyperthread and the memory bus have a moment between two looks.
static inline void tfos__feed_futex_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

#endif
