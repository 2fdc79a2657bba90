// SPDX-License-Identifier: Apache-2.0
/// Reading Arrow arrays: nulls, lists, bytes and numbers, whatever the array's offset. In all
/// functions `index` counts from that offset, and what a list holds is counted from the offset of
/// the child. Nothing is checked: whoever takes an array from elsewhere does that first.
#ifndef TFOS_ARROW_ARRAY_H
#define TFOS_ARROW_ARRAY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tfos/arrow.h>
#include <tfos/stream.h>

#include "arrow/type.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "bits are read as words, values as bytes");

/// Values that lie together.
struct tfos__arrow_span {
    int64_t first, count;
};

/// The low `count` bits, 64 at most.
static inline uint64_t tfos__arrow_mask(unsigned count)
{
    return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

static inline bool tfos__arrow_bit(const void *bits, int64_t index)
{
    return ((const uint8_t *)bits)[index / 8] >> index % 8 & 1;
}

/// Bits from `index` on, 64 at most; reads no byte that has none of them.
static inline uint64_t tfos__arrow_bits(const void *bits, int64_t index, unsigned count)
{
    uint64_t words[2] = {0};
    unsigned shift = (unsigned)(index % 8);
    memcpy(words, (const uint8_t *)bits + index / 8, (shift + count + 7) / 8);
    return (shift > 0 ? words[0] >> shift | words[1] << (64 - shift) : words[0]) &
           tfos__arrow_mask(count);
}

/// Whether any value may be null. A count of nulls that a peer got wrong makes no value unsafe.
static inline bool tfos__arrow_has_nulls(const struct ArrowArray *array)
{
    return array->null_count != 0 && array->n_buffers > 0 && array->buffers[0];
}

static inline bool tfos__arrow_is_null(const struct ArrowArray *array, int64_t index)
{
    return tfos__arrow_has_nulls(array) &&
           !tfos__arrow_bit(array->buffers[0], array->offset + index);
}

/// How many of the values from `index` on, `count` at most, are null like the first of them, or not
/// like it. Their memory may change meanwhile.
int64_t tfos__arrow_run(const struct ArrowArray *array, int64_t index, int64_t count,
                        bool *is_null);

/// The first null of the `count` values from `index` on, or -1.
int64_t tfos__arrow_find_null(const struct ArrowArray *array, int64_t index, int64_t count);

/// Offset `index` of texts, bytes or lists.
static inline int64_t tfos__arrow_offset(const struct tfos__arrow_type *type,
                                         const struct ArrowArray *array, int64_t index)
{
    index += array->offset;
    return type->width == 64 ? ((const int64_t *)array->buffers[1])[index]
                             : ((const int32_t *)array->buffers[1])[index];
}

/// What `count` lists hold together, counted in the child.
static inline struct tfos__arrow_span tfos__arrow_lists(const struct tfos__arrow_type *type,
                                                        const struct ArrowArray *array,
                                                        int64_t index, int64_t count)
{
    if (type->layout == TFOS__ARROW_FIXED_LIST)
        return (struct tfos__arrow_span){(array->offset + index) * type->list_size,
                                         count * type->list_size};
    int64_t first = tfos__arrow_offset(type, array, index);
    return (struct tfos__arrow_span){first, tfos__arrow_offset(type, array, index + count) - first};
}

/// What a list holds, counted in the child.
static inline struct tfos__arrow_span
tfos__arrow_list(const struct tfos__arrow_type *type, const struct ArrowArray *array, int64_t index)
{
    return tfos__arrow_lists(type, array, index, 1);
}

/// Where value `index`, of one or several bytes, is.
static inline const void *tfos__arrow_value(const struct tfos__arrow_type *type,
                                            const struct ArrowArray *array, int64_t index)
{
    return (const uint8_t *)array->buffers[1] + (array->offset + index) * (type->width / 8);
}

/// A text or bytes.
static inline struct tfos_view tfos__arrow_bytes(const struct tfos__arrow_type *type,
                                                 const struct ArrowArray *array, int64_t index)
{
    if (type->layout == TFOS__ARROW_FIXED)
        return (struct tfos_view){tfos__arrow_value(type, array, index), (size_t)type->width / 8};
    struct tfos__arrow_span span = tfos__arrow_lists(type, array, index, 1);
    return (struct tfos_view){(const char *)array->buffers[2] + span.first, (size_t)span.count};
}

#define TFOS__ARROW_LOAD(type)                                                                     \
    do {                                                                                           \
        type loaded;                                                                               \
        memcpy(&loaded, from, sizeof(loaded));                                                     \
        return (int64_t)loaded;                                                                    \
    } while (0)

/// A BOOL, an INT, a UINT (beyond 63 bits it comes out negative), or what is counted by integers: a
/// DATE, TIME, TIMESTAMP, DURATION or MONTHS.
static inline int64_t tfos__arrow_integer(const struct tfos__arrow_type *type,
                                          const struct ArrowArray *array, int64_t index)
{
    const void *from = tfos__arrow_value(type, array, index);
    switch (type->width + (type->kind == TFOS__ARROW_UINT)) {
    case 1:
        return tfos__arrow_bit(array->buffers[1], array->offset + index);
    case 8:
        TFOS__ARROW_LOAD(int8_t);
    case 9:
        TFOS__ARROW_LOAD(uint8_t);
    case 16:
        TFOS__ARROW_LOAD(int16_t);
    case 17:
        TFOS__ARROW_LOAD(uint16_t);
    case 32:
        TFOS__ARROW_LOAD(int32_t);
    case 33:
        TFOS__ARROW_LOAD(uint32_t);
    default:
        TFOS__ARROW_LOAD(int64_t);
    }
}

/// A FLOAT.
double tfos__arrow_real(const struct tfos__arrow_type *type, const struct ArrowArray *array,
                        int64_t index);

/// Whether an array has the buffers and the children that its type says, and no dictionary.
bool tfos__arrow_fits(const struct tfos__arrow_type *type, const struct ArrowArray *array,
                      int64_t child_count);

/// Releases it unless it has been, or is zeroed.
void tfos__arrow_array_release(struct ArrowArray *array);

#endif
