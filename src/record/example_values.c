// SPDX-License-Identifier: Apache-2.0
// BytesList { repeated bytes = 1 }, FloatList { repeated float = 1 }, Int64List { repeated int64 =
// 1 }; numbers packed, or a field each, or both.
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/utf8.h"
#include "record/decimal.h"
#include "record/example_column.h"
#include "record/varints.h"
#include "record/wire.h"

#define CHUNK 256 // integers that are decoded before they are narrowed

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats and words are read as they lie");

static enum tfos_status malformed(const struct tfos__example_column *column, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %s is damaged", column->field->name,
                      tfos__feature_kind_name(column->field->kind));
}

static enum tfos_status append_decimal(struct tfos__example_column *column, float number,
                                       struct tfos_error *err)
{
    const struct tfos__example_field *field = column->field;
    char value[TFOS__NUMBER_TEXT], text[TFOS_TYPE_TEXT_SIZE];
    if (!tfos__decimal_of((double)number, field->precision, field->scale,
                          tfos__example_column_end(column)))
        return tfos__fail(err, TFOS_CORRUPT, "column %s: %s does not fit %s: read it as %s",
                          field->name, tfos__float_print(number, value), field->type,
                          tfos__example_type_of(field, field->kind, field->level_count, text));
    column->extent.value_count++;
    return TFOS_OK;
}

static enum tfos_status append_floats(struct tfos__example_column *column, struct tfos_view packed,
                                      struct tfos_error *err)
{
    size_t count = packed.size / sizeof(float);
    if (packed.size % sizeof(float) != 0)
        return malformed(column, err);
    TFOS__TRY(tfos__example_column_reserve(column, count, err));
    if (column->field->value == TFOS__VALUE_FLOAT) {
        if (count > 0)
            memcpy(tfos__example_column_end(column), packed.data, packed.size);
        column->extent.value_count += (int64_t)count;
        return TFOS_OK;
    }
    for (size_t i = 0; i < count; i++) {
        float number;
        memcpy(&number, (const uint8_t *)packed.data + i * sizeof number, sizeof number);
        if (column->field->value == TFOS__VALUE_DECIMAL) {
            TFOS__TRY(append_decimal(column, number, err));
            continue;
        }
        double wide = number;
        memcpy(tfos__example_column_end(column), &wide, sizeof wide);
        column->extent.value_count++;
    }
    return TFOS_OK;
}

static enum tfos_status out_of_range(const struct tfos__example_column *column, uint64_t value,
                                     struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    const struct tfos__example_field *field = column->field;
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %lld does not fit %s: read it as %s",
                      field->name, (long long)value, field->type,
                      tfos__example_type_of(field, field->kind, field->level_count, text));
}

// The number of values that the type can hold, from the first on; those are written.
typedef size_t narrow(void *to, const uint64_t *values, size_t count);

#define DEFINE_NARROW(type)                                                                        \
    static size_t narrow_##type(void *to, const uint64_t *values, size_t count)                    \
    {                                                                                              \
        type *narrowed = to;                                                                       \
        size_t i = 0;                                                                              \
        for (; i < count; i++) {                                                                   \
            narrowed[i] = (type)values[i];                                                         \
            if ((uint64_t)(int64_t)narrowed[i] != values[i])                                       \
                break;                                                                             \
        }                                                                                          \
        return i;                                                                                  \
    }

DEFINE_NARROW(int8_t)
DEFINE_NARROW(uint8_t)
DEFINE_NARROW(int16_t)
DEFINE_NARROW(uint16_t)
DEFINE_NARROW(int32_t)
DEFINE_NARROW(uint32_t)

static size_t narrow_boolean(void *to, const uint64_t *values, size_t count)
{
    uint8_t *booleans = to;
    size_t i = 0;
    for (; i < count && values[i] <= 1; i++)
        booleans[i] = (uint8_t)values[i];
    return i;
}

static size_t narrow_uint64_t(void *to, const uint64_t *values, size_t count)
{
    uint64_t *same = to;
    size_t i = 0;
    for (; i < count && values[i] <= INT64_MAX; i++)
        same[i] = values[i];
    return i;
}

static narrow *choose_narrow(const struct tfos__example_field *field)
{
    if (field->value == TFOS__VALUE_BOOLEAN)
        return narrow_boolean;
    switch (field->width) {
    case 1:
        return field->is_unsigned ? narrow_uint8_t : narrow_int8_t;
    case 2:
        return field->is_unsigned ? narrow_uint16_t : narrow_int16_t;
    case 4:
        return field->is_unsigned ? narrow_uint32_t : narrow_int32_t;
    default: // signed ones of 64 bits need none
        return narrow_uint64_t;
    }
}

static enum tfos_status append_integers(struct tfos__example_column *column,
                                        struct tfos_view packed, struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(packed);
    size_t left = tfos__varints_count(packed), count;
    bool is_direct = column->field->width == sizeof(uint64_t) && !column->field->is_unsigned;
    TFOS__TRY(tfos__example_column_reserve(column, left, err));
    if (is_direct) {
        if (!tfos__varints_decode(&wire, (uint64_t *)(void *)tfos__example_column_end(column), left,
                                  &count) ||
            wire.at < wire.end)
            return malformed(column, err);
        column->extent.value_count += (int64_t)count;
        return TFOS_OK;
    }
    narrow *narrow_values = choose_narrow(column->field);
    while (wire.at < wire.end) {
        uint64_t values[CHUNK];
        if (!tfos__varints_decode(&wire, values, left < CHUNK ? left : CHUNK, &count) || count == 0)
            return malformed(column, err);
        size_t put = narrow_values(tfos__example_column_end(column), values, count);
        if (put < count)
            return out_of_range(column, values[put], err);
        column->extent.value_count += (int64_t)count;
        left -= count;
    }
    return TFOS_OK;
}

static enum tfos_status refuse_text(const struct tfos__example_column *column,
                                    struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    const struct tfos__example_field *field = column->field;
    return tfos__fail(err, TFOS_CORRUPT, "column %s: bytes that are no UTF-8: read it as %s",
                      field->name,
                      tfos__example_type_of(field, field->kind, field->level_count, text));
}

enum tfos_status tfos__example_values_append_text(struct tfos__example_column *column,
                                                  struct tfos_view text, struct tfos_error *err)
{
    struct tfos__example_extent *extent = &column->extent;
    bool is_wide = column->field->has_wide_bytes;
    size_t width = is_wide ? sizeof(int64_t) : sizeof(int32_t);
    if (column->field->value == TFOS__VALUE_TEXT && !tfos__is_utf8(text.data, text.size))
        return refuse_text(column, err);
    size_t used = extent->value_count > 0 ? ((size_t)extent->value_count + 1) * width : 0;
    TFOS__TRY(tfos__aligned_reserve(&column->values, used, 2 * width, err));
    TFOS__TRY(tfos__aligned_reserve(&column->bytes, extent->byte_count, text.size, err));
    if (used == 0)
        memset(column->values.data, 0, width);
    if (text.size > 0)
        memcpy(column->bytes.data + extent->byte_count, text.data, text.size);
    extent->byte_count += text.size;
    extent->value_count++;
    if (is_wide)
        ((int64_t *)(void *)column->values.data)[extent->value_count] = (int64_t)extent->byte_count;
    else
        ((uint32_t *)(void *)column->values.data)[extent->value_count] =
            (uint32_t)extent->byte_count;
    return TFOS_OK;
}

static enum tfos_status append_exact(struct tfos__example_column *column, struct tfos_view bytes,
                                     struct tfos_error *err)
{
    const struct tfos__example_field *field = column->field;
    TFOS__TRY(tfos__example_column_reserve(column, 1, err));
    bool is_double = field->value == TFOS__VALUE_DOUBLE;
    if (is_double && bytes.size == sizeof(double))
        memcpy(tfos__example_column_end(column), bytes.data, sizeof(double));
    else if (is_double || !tfos__decimal_parse(bytes.data, bytes.size, field->precision,
                                               field->scale, tfos__example_column_end(column)))
        return tfos__fail(err, TFOS_CORRUPT, "column %s: %zu bytes that are no exact %s",
                          field->name, bytes.size, field->type);
    column->extent.value_count++;
    return TFOS_OK;
}

static enum tfos_status append_bytes_list(struct tfos__example_column *column,
                                          struct tfos_view list, struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(list);
    enum tfos_status status;
    struct tfos_view bytes;
    uint32_t field;
    while ((status = tfos__wire_next(&wire, 1, &field, &bytes)) == TFOS_OK)
        TFOS__TRY(column->field->is_exact ? append_exact(column, bytes, err)
                                          : tfos__example_values_append_text(column, bytes, err));
    return status == TFOS_END ? TFOS_OK : malformed(column, err);
}

enum tfos_status tfos__example_values_append(struct tfos__example_column *column,
                                             struct tfos_view list, struct tfos_error *err)
{
    bool is_float = column->field->kind == TFOS__FEATURE_FLOAT;
    if (column->field->kind == TFOS__FEATURE_BYTES)
        return append_bytes_list(column, list, err);
    struct tfos__wire wire = tfos__wire_of(list);
    enum tfos_status status;
    struct tfos_view numbers;
    while ((status = tfos__wire_next_numbers(
                &wire, is_float ? TFOS__WIRE_FIXED32 : TFOS__WIRE_VARINT, &numbers)) == TFOS_OK)
        TFOS__TRY(is_float ? append_floats(column, numbers, err)
                           : append_integers(column, numbers, err));
    return status == TFOS_END ? TFOS_OK : malformed(column, err);
}

enum tfos_status tfos__example_values_append_zeros(struct tfos__example_column *column,
                                                   int64_t count, struct tfos_error *err)
{
    if (column->field->value >= TFOS__VALUE_TEXT) {
        for (int64_t i = 0; i < count; i++)
            TFOS__TRY(tfos__example_values_append_text(column, (struct tfos_view){"", 0}, err));
        return TFOS_OK;
    }
    if (count == 0)
        return TFOS_OK;
    TFOS__TRY(tfos__example_column_reserve(column, (size_t)count, err));
    memset(tfos__example_column_end(column), 0, (size_t)count * column->field->width);
    column->extent.value_count += count;
    return TFOS_OK;
}
