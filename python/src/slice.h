// SPDX-License-Identifier: Apache-2.0
/// Waits made of short calls with the GIL released, so that signals are served between them.
#ifndef TFOS_PYTHON_SLICE_H
#define TFOS_PYTHON_SLICE_H

#include <stdint.h>

#define TFOS__SLICE_MS 100

/// Milliseconds on the monotonic clock.
int64_t tfos__py_slice_now(void);

/// When a wait of `timeout_ms` ends; negative: never.
int64_t tfos__py_slice_deadline(int64_t timeout_ms);

/// How long the next call may take: TFOS__SLICE_MS, less near the deadline, 0 from there on.
int64_t tfos__py_slice_next(int64_t deadline);

#endif
