// SPDX-License-Identifier: Apache-2.0
/// Time on the monotonic clock, in milliseconds, and deadlines made of it.
#ifndef TFOS_BASE_CLOCK_H
#define TFOS_BASE_CLOCK_H

#include <stdint.h>

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

#endif
