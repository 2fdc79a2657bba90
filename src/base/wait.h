// SPDX-License-Identifier: Apache-2.0
/// A wait under way: a deadline, and a caller who is asked now and then whether it is to go on.
#ifndef TFOS_BASE_WAIT_H
#define TFOS_BASE_WAIT_H

#include <stdint.h>
#include <tfos/status.h>
#include <tfos/wait.h>

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
