// SPDX-License-Identifier: Apache-2.0
/// The format of Spark's UnsafeRow. A row is null bits, a slot of 8 bytes for each field, and a
/// variable part; an array is its count, null bits, elements, and a variable part. A value of the
/// variable part has its offset from the row's or array's beginning and its size in its slot, 32
/// bits each. A batch is rows one behind the other, each after its size and zero, 4 bytes each.
#ifndef TFOS_UNSAFE_ROW_ROW_FORMAT_H
#define TFOS_UNSAFE_ROW_ROW_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define TFOS__ROW_WORD 8   ///< bytes of a slot, and of a word of null bits
#define TFOS__ROW_CHUNK 64 ///< values that are read or written at a time: a word of null bits
#define TFOS__ROW_HEAD 8   ///< bytes of a row's size and zero

/// Bytes of the null bits of `count` values.
static inline uint64_t tfos__unsafe_row_null_bits_size(int64_t count)
{
    return ((uint64_t)count + 63) / 64 * TFOS__ROW_WORD;
}

#endif
