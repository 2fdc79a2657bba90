// SPDX-License-Identifier: Apache-2.0
// Bits are written a word at a time: the words of Arrow's bit order on a little-endian machine.
// What lies behind the last bit of a buffer in its word is zero. There are no validity bits until
// the first null.
#include "spark/unsafe_column.h"

#include "base/fail.h"
#include "base/memory.h"

#define ALIGNMENT 64

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bits are written as 64-bit words");

enum tfos_status tfos__unsafe_buffer_reserve(const struct tfos__unsafe_column *column,
                                             struct tfos__aligned *buffer, size_t used, size_t size,
                                             struct tfos_error *err)
{
    if (tfos__aligned_reserve(buffer, used, size, err) == TFOS_OK)
        return TFOS_OK;
    return tfos__fail(err, TFOS_NO_MEMORY, "column %s: no memory for %zu bytes", column->path,
                      used + size);
}

enum tfos_status tfos__unsafe_column_reserve(struct tfos__unsafe_column *column, int64_t count,
                                             struct tfos_error *err)
{
    return tfos__unsafe_buffer_reserve(column, &column->values,
                                       (size_t)column->length * column->width,
                                       (size_t)count * column->width, err);
}

void tfos__unsafe_buffer_put_bits(struct tfos__aligned *buffer, int64_t at, uint64_t word,
                                  unsigned count)
{
    uint64_t *words = (uint64_t *)(void *)buffer->data + at / 64;
    unsigned shift = (unsigned)(at % 64);

    word &= tfos__unsafe_mask(count);
    if (shift == 0) {
        *words = word;
        return;
    }
    *words = (*words & tfos__unsafe_mask(shift)) | word << shift;
    if (shift + count > 64)
        words[1] = word >> (64 - shift);
}

enum tfos_status tfos__unsafe_column_mark(struct tfos__unsafe_column *column, int64_t at,
                                          uint64_t nulls, unsigned count, struct tfos_error *err)
{
    size_t used = column->has_validity ? tfos__unsafe_bits_size(at) : 0;

    nulls &= tfos__unsafe_mask(count);
    if (nulls == 0 && !column->has_validity)
        return TFOS_OK;
    TFOS__TRY(tfos__unsafe_buffer_reserve(column, &column->bits, used,
                                          tfos__unsafe_bits_size(at + count) - used, err));
    if (!column->has_validity) {
        memset(column->bits.data, 0xFF, tfos__unsafe_bits_size(at));
        column->has_validity = true;
    }
    tfos__unsafe_buffer_put_bits(&column->bits, at, ~nulls, count);
    column->null_count += __builtin_popcountll(nulls);
    return TFOS_OK;
}

static int64_t count_nulls(const struct tfos__unsafe_column *column)
{
    const uint64_t *words = (const uint64_t *)(const void *)column->bits.data;
    int64_t valid_count = 0, index = 0;

    for (; index < column->length / 64; index++)
        valid_count += __builtin_popcountll(words[index]);
    if (column->length % 64 > 0)
        valid_count +=
            __builtin_popcountll(words[index] & tfos__unsafe_mask((unsigned)(column->length % 64)));
    return column->length - valid_count;
}

void tfos__unsafe_column_truncate(struct tfos__unsafe_column *column, int64_t length)
{
    bool has_offsets = column->kind == TFOS__UNSAFE_BYTES || column->kind == TFOS__UNSAFE_LIST ||
                       column->kind == TFOS__UNSAFE_MAP;
    int64_t last = has_offsets && length > 0 ? tfos__unsafe_column_offset(column, length) : 0;

    column->length = length;
    column->has_validity &= length > 0;
    column->null_count = column->has_validity ? count_nulls(column) : 0;
    column->byte_count = (size_t)last;
    for (int64_t i = 0; i < column->child_count; i++)
        tfos__unsafe_column_truncate(&column->children[i], has_offsets ? last : length);
}

void tfos__unsafe_column_show(struct tfos__unsafe_column *column)
{
    // What an empty buffer points to; as offsets, the 0 that they begin with.
    static const _Alignas(ALIGNMENT) uint8_t nothing[ALIGNMENT];
    struct ArrowArray *array = &column->array;
    bool is_null = column->kind == TFOS__UNSAFE_NULL;

    array->length = column->length;
    array->null_count = is_null ? column->length : column->null_count;
    column->shown[0] = column->null_count > 0 ? column->bits.data : NULL;
    column->shown[1] = column->length > 0 ? column->values.data : nothing;
    column->shown[2] = column->byte_count > 0 ? column->bytes.data : nothing;
    for (int64_t i = 0; i < column->child_count; i++)
        tfos__unsafe_column_show(&column->children[i]);
}

void tfos__unsafe_column_clear(struct tfos__unsafe_column *column)
{
    for (int64_t i = 0; i < column->child_count; i++)
        tfos__unsafe_column_clear(&column->children[i]);
    tfos__free(column->children);
    tfos__aligned_clear(&column->bits);
    tfos__aligned_clear(&column->values);
    tfos__aligned_clear(&column->bytes);
    tfos__free(column->null_row);
    tfos__free(column->path);
    // Their types are those of what is only read; here they are our own copies.
    tfos__free((void *)(uintptr_t)column->schema.format);
    tfos__free((void *)(uintptr_t)column->schema.name);
    tfos__free((void *)(uintptr_t)column->schema.metadata);
    tfos__free(column->schema.children);
    tfos__free(column->array.children);
}
