// SPDX-License-Identifier: Apache-2.0
// BytesList { repeated bytes = 1 }, FloatList { repeated float = 1 }, Int64List { repeated int64 =
// 1 }; numbers packed, or a field each, or both.
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "record/example_column.h"
#include "record/varints.h"
#include "record/wire.h"

#define CHUNK 256 // integers that are decoded before they are narrowed

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats and words are read as they lie");

static enum tfos_status malformed(const struct tfos__example_field *field, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %s is damaged", field->name,
                      tfos__feature_kind_name(field->kind));
}

static enum tfos_status not_a_decimal(const struct tfos__example_field *field, float number,
                                      struct tfos_error *err)
{
    char value[TFOS__NUMBER_TEXT], text[TFOS_TYPE_TEXT_SIZE];
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %s does not fit %s: read it as %s",
                      field->name, tfos__float_print(number, value), field->type,
                      tfos__example_type_of(field, field->kind, field->level_count, text));
}

static enum tfos_status append_floats(const struct tfos__example_field *field,
                                      struct tfos_view packed, struct tfos_error *err)
{
    struct tfos__arrow_builder *values = tfos__example_values(field);
    const struct tfos__arrow_type *type = &values->type;
    size_t count = packed.size / sizeof(float);
    if (packed.size % sizeof(float) != 0)
        return malformed(field, err);
    TFOS__TRY(tfos__arrow_builder_reserve(values, (int64_t)count, err));
    if (tfos__arrow_type_is(type, TFOS__ARROW_FLOAT, 32)) {
        if (count > 0)
            memcpy(tfos__arrow_builder_end(values), packed.data, packed.size);
        values->length += (int64_t)count;
        return TFOS_OK;
    }
    for (size_t i = 0; i < count; i++, values->length++) {
        float number;
        memcpy(&number, (const uint8_t *)packed.data + i * sizeof number, sizeof number);
        double wide = number;
        if (type->kind == TFOS__ARROW_FLOAT)
            memcpy(tfos__arrow_builder_end(values), &wide, sizeof wide);
        else if (!tfos__arrow_decimal_of(wide, type->precision, type->scale,
                                         tfos__arrow_builder_end(values)))
            return not_a_decimal(field, number, err);
    }
    return TFOS_OK;
}

static enum tfos_status out_of_range(const struct tfos__example_field *field, uint64_t value,
                                     struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %lld does not fit %s: read it as %s",
                      field->name, (long long)value, field->type,
                      tfos__example_type_of(field, field->kind, field->level_count, text));
}

// Appends values for which there is room; their number, up to the first that the type cannot hold.
typedef size_t narrow(struct tfos__arrow_builder *column, const uint64_t *values, size_t count);

#define DEFINE_NARROW(type)                                                                        \
    static size_t narrow_##type(struct tfos__arrow_builder *column, const uint64_t *values,        \
                                size_t count)                                                      \
    {                                                                                              \
        type *narrowed = tfos__arrow_builder_end(column);                                          \
        size_t i = 0;                                                                              \
        for (; i < count; i++) {                                                                   \
            narrowed[i] = (type)values[i];                                                         \
            if ((uint64_t)(int64_t)narrowed[i] != values[i])                                       \
                break;                                                                             \
        }                                                                                          \
        column->length += (int64_t)i;                                                              \
        return i;                                                                                  \
    }

DEFINE_NARROW(int8_t)
DEFINE_NARROW(uint8_t)
DEFINE_NARROW(int16_t)
DEFINE_NARROW(uint16_t)
DEFINE_NARROW(int32_t)
DEFINE_NARROW(uint32_t)

static size_t narrow_boolean(struct tfos__arrow_builder *column, const uint64_t *values,
                             size_t count)
{
    size_t i = 0;
    while (i < count && values[i] <= 1) {
        uint64_t word = 0;
        unsigned size = 0;
        for (; size < 64 && i < count && values[i] <= 1; i++)
            word |= values[i] << size++;
        tfos__arrow_builder_put_bits(column, word, size);
    }
    return i;
}

static size_t narrow_uint64_t(struct tfos__arrow_builder *column, const uint64_t *values,
                              size_t count)
{
    uint64_t *same = tfos__arrow_builder_end(column);
    size_t i = 0;
    for (; i < count && values[i] <= INT64_MAX; i++)
        same[i] = values[i];
    column->length += (int64_t)i;
    return i;
}

static narrow *choose_narrow(const struct tfos__arrow_type *type)
{
    bool is_unsigned = type->kind == TFOS__ARROW_UINT;
    switch (type->width) {
    case 1:
        return narrow_boolean;
    case 8:
        return is_unsigned ? narrow_uint8_t : narrow_int8_t;
    case 16:
        return is_unsigned ? narrow_uint16_t : narrow_int16_t;
    case 32:
        return is_unsigned ? narrow_uint32_t : narrow_int32_t;
    default: // signed ones of 64 bits need none
        return narrow_uint64_t;
    }
}

static enum tfos_status append_integers(const struct tfos__example_field *field,
                                        struct tfos_view packed, struct tfos_error *err)
{
    struct tfos__arrow_builder *values = tfos__example_values(field);
    struct tfos__wire wire = tfos__wire_of(packed);
    size_t left = tfos__varints_count(packed), count;
    bool is_direct = values->type.width == 64 && values->type.kind != TFOS__ARROW_UINT;
    TFOS__TRY(tfos__arrow_builder_reserve(values, (int64_t)left, err));
    if (is_direct) {
        if (!tfos__varints_decode(&wire, tfos__arrow_builder_end(values), left, &count) ||
            wire.at < wire.end)
            return malformed(field, err);
        values->length += (int64_t)count;
        return TFOS_OK;
    }
    narrow *append_narrow = choose_narrow(&values->type);
    while (wire.at < wire.end) {
        uint64_t chunk[CHUNK];
        if (!tfos__varints_decode(&wire, chunk, left < CHUNK ? left : CHUNK, &count) || count == 0)
            return malformed(field, err);
        size_t put = append_narrow(values, chunk, count);
        if (put < count)
            return out_of_range(field, chunk[put], err);
        left -= count;
    }
    return TFOS_OK;
}

static enum tfos_status refuse_text(const struct tfos__example_field *field, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    return tfos__fail(err, TFOS_CORRUPT, "column %s: bytes that are no UTF-8: read it as %s",
                      field->name,
                      tfos__example_type_of(field, field->kind, field->level_count, text));
}

enum tfos_status tfos__example_values_append_text(const struct tfos__example_field *field,
                                                  struct tfos_view text, struct tfos_error *err)
{
    struct tfos__arrow_builder *values = tfos__example_values(field);
    if (values->type.kind == TFOS__ARROW_TEXT && !tfos__text_is_utf8(text.data, text.size))
        return refuse_text(field, err);
    return tfos__arrow_builder_append_bytes(values, text.data, text.size, err);
}

static enum tfos_status append_exact(const struct tfos__example_field *field,
                                     struct tfos_view bytes, struct tfos_error *err)
{
    struct tfos__arrow_builder *values = tfos__example_values(field);
    const struct tfos__arrow_type *type = &values->type;
    bool is_double = type->kind == TFOS__ARROW_FLOAT;
    TFOS__TRY(tfos__arrow_builder_reserve(values, 1, err));
    void *to = tfos__arrow_builder_end(values);
    if (is_double && bytes.size == sizeof(double))
        memcpy(to, bytes.data, sizeof(double));
    else if (is_double ||
             !tfos__arrow_decimal_parse(bytes.data, bytes.size, type->precision, type->scale, to))
        return tfos__fail(err, TFOS_CORRUPT, "column %s: %zu bytes that are no exact %s",
                          field->name, bytes.size, field->type);
    values->length++;
    return TFOS_OK;
}

static enum tfos_status append_bytes_list(const struct tfos__example_field *field,
                                          struct tfos_view list, struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(list);
    enum tfos_status status;
    struct tfos_view bytes;
    uint32_t number;
    while ((status = tfos__wire_next(&wire, 1, &number, &bytes)) == TFOS_OK)
        TFOS__PASS(field->is_exact ? append_exact(field, bytes, err)
                                   : tfos__example_values_append_text(field, bytes, err));
    return status == TFOS_END ? TFOS_OK : malformed(field, err);
}

enum tfos_status tfos__example_values_append(const struct tfos__example_field *field,
                                             struct tfos_view list, struct tfos_error *err)
{
    bool is_float = field->kind == TFOS__FEATURE_FLOAT;
    if (field->kind == TFOS__FEATURE_BYTES)
        return append_bytes_list(field, list, err);
    struct tfos__wire wire = tfos__wire_of(list);
    enum tfos_status status;
    struct tfos_view numbers;
    while ((status = tfos__wire_next_numbers(
                &wire, is_float ? TFOS__WIRE_FIXED32 : TFOS__WIRE_VARINT, &numbers)) == TFOS_OK)
        TFOS__TRY(is_float ? append_floats(field, numbers, err)
                           : append_integers(field, numbers, err));
    return status == TFOS_END ? TFOS_OK : malformed(field, err);
}
