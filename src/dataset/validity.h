// SPDX-License-Identifier: Apache-2.0
/// Bits that say which values of an array are there.
#ifndef TFOS_DATASET_VALIDITY_H
#define TFOS_DATASET_VALIDITY_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>

/// Whether any value may be null. A count of nulls that a peer got wrong makes no value unsafe.
static inline bool tfos__validity_matters(const struct ArrowArray *array)
{
    return array->null_count != 0 && array->n_buffers > 0 && array->buffers[0];
}

/// How many of the bits from `first` on, at most `count`, are like the first of them. Their memory
/// may change meanwhile.
static inline int64_t tfos__validity_run(const uint8_t *bits, int64_t first, int64_t count,
                                         bool *is_valid)
{
    int64_t end = first + count, position = first + 1;
    bool is_set = bits[first / 8] >> (first % 8) & 1;
    uint8_t same = is_set ? 0xff : 0;

    while (position < end) {
        if (position % 8 == 0 && end - position >= 8 && bits[position / 8] == same)
            position += 8;
        else if ((bits[position / 8] >> (position % 8) & 1) == is_set)
            position++;
        else
            break;
    }
    *is_valid = is_set;
    return position - first;
}

#endif
