// SPDX-License-Identifier: Apache-2.0
/// Time on the monotonic clock, in milliseconds, deadlines made of it, and waits: a deadline, and a
/// caller who is asked now and then whether to wait on.
#ifndef TFOS_BASE_CLOCK_H
#define TFOS_BASE_CLOCK_H

#include <stdint.h>
#include <tfos/status.h>
#include <tfos/wait.h>

/// The deadline that does not come.
#define TFOS__NEVER INT64_MAX

/// Milliseconds since an arbitrary point.
int64_t tfos__now_ms(void);

/// Microseconds since the same point: for sums of what is short.
int64_t tfos__now_us(void);

/// Nanoseconds since the same point.
int64_t tfos__now_ns(void);

/// The point `timeout_ms` from now; a negative timeout never comes.
int64_t tfos__deadline(int64_t timeout_ms);

/// Milliseconds until `deadline`, 0 when it is past, -1 for TFOS__NEVER; fits poll() and
/// epoll_wait().
int tfos__remaining_ms(int64_t deadline);

struct tfos__wait {
    int64_t deadline;
    const struct tfos_wait *caller; ///< borrowed; NULL: nobody is asked
    int64_t ask_at;                 ///< when the caller is asked next
};

/// A wait until `at` that nobody interrupts.
#define TFOS__UNTIL(at) (&(struct tfos__wait){.deadline = (at)})

/// Begins a wait for `caller` (NULL is accepted, and borrowed otherwise); `default_ms` is the
/// timeout where it gives none (negative: no limit).
struct tfos__wait tfos__wait_begin(const struct tfos_wait *caller, int64_t default_ms);

/// Asks the caller, if it is time to. CLOSED when it wants the wait to end.
enum tfos_status tfos__wait_check(struct tfos__wait *wait, struct tfos_error *err);

/// Until when to sleep before the next check: the deadline, or less where there is somebody to ask.
int64_t tfos__wait_slice(const struct tfos__wait *wait);

#endif
