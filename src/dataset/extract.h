// SPDX-License-Identifier: Apache-2.0
/// Copies of some rows of a batch, so that the memory of the others can go.
#ifndef TFOS_DATASET_EXTRACT_H
#define TFOS_DATASET_EXTRACT_H

#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

/// Values [first, first + count) of an array, its own offset not counted.
struct tfos__span {
    int64_t first, count;
};

/// Makes an array of its own, which the caller releases, with the spans of `array`, one behind the
/// other. Its formats are those that the feed carries.
enum tfos_status tfos__array_extract(const struct ArrowSchema *schema,
                                     const struct ArrowArray *array, const struct tfos__span *spans,
                                     int64_t span_count, struct ArrowArray *out,
                                     struct tfos_error *err);

#endif
