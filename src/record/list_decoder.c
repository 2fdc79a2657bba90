// SPDX-License-Identifier: Apache-2.0
// BytesList { repeated bytes = 1 }, FloatList { repeated float = 1 }, Int64List { repeated int64 =
// 1 }; numbers packed, or a field each, or both.
#include "record/list_decoder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "record/wire.h"

#define CHUNK 256 // integers that are decoded before they are narrowed

static enum tfos_status malformed(const struct tfos__record_field *field,
                                  enum tfos__record_feature_kind kind, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %s is damaged", field->name,
                      tfos__record_feature_kind_name(kind));
}

static enum tfos_status refuse_kind(const struct tfos__record_field *field,
                                    enum tfos__record_feature_kind kind, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    return tfos__fail(err, TFOS_CORRUPT,
                      "column %s: the feature is %s, which %s cannot hold: read it as %s%s",
                      field->name, tfos__record_feature_kind_name(kind), field->type,
                      tfos__record_field_type_for(field, kind, field->level_count, text),
                      kind == TFOS__FEATURE_BYTES ? ", or as text" : "");
}

// A number of the field's kind that its type cannot hold.
static enum tfos_status refuse_number(const struct tfos__record_field *field, const char *number,
                                      struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %s does not fit %s: read it as %s",
                      field->name, number, field->type,
                      tfos__record_field_type_for(field, field->kind, field->level_count, text));
}

// ---- numbers of the field's kind

static enum tfos_status append_floats(const struct tfos__record_field *field,
                                      struct tfos_view packed, struct tfos_error *err)
{
    struct tfos__arrow_builder *values = tfos__record_field_values(field);
    const struct tfos__arrow_type *type = &values->type;
    size_t count = packed.size / sizeof(float);
    if (packed.size % sizeof(float) != 0)
        return malformed(field, field->kind, err);
    TFOS__TRY(tfos__arrow_builder_reserve(values, (int64_t)count, err));
    if (tfos__arrow_type_is(type, TFOS__ARROW_FLOAT, 32)) {
        if (count > 0)
            memcpy(tfos__arrow_builder_end(values), packed.data, packed.size);
        values->length += (int64_t)count;
        return TFOS_OK;
    }
    for (size_t i = 0; i < count; i++, values->length++) {
        float number;
        char text[TFOS__NUMBER_TEXT];
        memcpy(&number, (const uint8_t *)packed.data + i * sizeof(number), sizeof(number));
        double wide = number;
        if (type->kind == TFOS__ARROW_FLOAT)
            memcpy(tfos__arrow_builder_end(values), &wide, sizeof(wide));
        else if (!tfos__arrow_decimal_of(wide, type->precision, type->scale,
                                         tfos__arrow_builder_end(values)))
            return refuse_number(field, tfos__float_print(number, text), err);
    }
    return TFOS_OK;
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

static enum tfos_status append_integers(const struct tfos__record_field *field,
                                        struct tfos_view packed, struct tfos_error *err)
{
    struct tfos__arrow_builder *values = tfos__record_field_values(field);
    struct tfos__record_wire wire = tfos__record_wire_of(packed);
    size_t left = tfos__record_wire_count_varints(packed), count;
    bool is_direct = values->type.width == 64 && values->type.kind != TFOS__ARROW_UINT;
    TFOS__TRY(tfos__arrow_builder_reserve(values, (int64_t)left, err));
    if (is_direct) {
        if (!tfos__record_wire_read_varints(&wire, tfos__arrow_builder_end(values), left, &count) ||
            wire.at < wire.end)
            return malformed(field, field->kind, err);
        values->length += (int64_t)count;
        return TFOS_OK;
    }
    narrow *append_narrow = choose_narrow(&values->type);
    while (wire.at < wire.end) {
        uint64_t chunk[CHUNK];
        char text[TFOS__NUMBER_TEXT];
        if (!tfos__record_wire_read_varints(&wire, chunk, left < CHUNK ? left : CHUNK, &count) ||
            count == 0)
            return malformed(field, field->kind, err);
        size_t put = append_narrow(values, chunk, count);
        if (put < count) {
            snprintf(text, sizeof(text), "%" PRId64, (int64_t)chunk[put]);
            return refuse_number(field, text, err);
        }
        left -= count;
    }
    return TFOS_OK;
}

// ---- bytes

static enum tfos_status refuse_text(const struct tfos__record_field *field, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    return tfos__fail(err, TFOS_CORRUPT, "column %s: bytes that are no UTF-8: read it as %s",
                      field->name,
                      tfos__record_field_type_for(field, field->kind, field->level_count, text));
}

enum tfos_status tfos__record_list_decode_bytes(const struct tfos__record_field *field,
                                                struct tfos_view bytes, struct tfos_error *err)
{
    struct tfos__arrow_builder *values = tfos__record_field_values(field);
    if (values->type.kind == TFOS__ARROW_TEXT && !tfos__text_is_utf8(bytes.data, bytes.size))
        return refuse_text(field, err);
    return tfos__arrow_builder_append_bytes(values, bytes.data, bytes.size, err);
}

static enum tfos_status append_exact(const struct tfos__record_field *field, struct tfos_view bytes,
                                     struct tfos_error *err)
{
    struct tfos__arrow_builder *values = tfos__record_field_values(field);
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

// Appends a value of a BytesList.
static enum tfos_status append_bytes(const struct tfos__record_field *field, struct tfos_view bytes,
                                     struct tfos_error *err)
{
    if (field->kind != TFOS__FEATURE_BYTES)
        return refuse_kind(field, TFOS__FEATURE_BYTES, err);
    return field->is_exact ? append_exact(field, bytes, err)
                           : tfos__record_list_decode_bytes(field, bytes, err);
}

// ---- numbers of another kind

static enum tfos_status refuse_integer(const struct tfos__record_field *field, int64_t number,
                                       struct tfos_error *err)
{
    return tfos__fail(
        err, TFOS_CORRUPT,
        "column %s: the feature is an int64_list, and its %" PRId64
        " does not fit %s: read it as %stext",
        field->name, number, field->type,
        tfos__arrow_type_is(&tfos__record_field_values(field)->type, TFOS__ARROW_FLOAT, 32)
            ? "double, or as "
            : "");
}

// Whether a float or double that an integer became is the same number.
static bool is_same(double number, int64_t integer)
{
    return number < 0x1p63 && (int64_t)number == integer;
}

static enum tfos_status convert_integer(const struct tfos__record_field *field, int64_t number,
                                        struct tfos_error *err)
{
    struct tfos__arrow_builder *values = tfos__record_field_values(field);
    const struct tfos__arrow_type *type = &values->type;
    char text[TFOS__NUMBER_TEXT];
    int size = snprintf(text, sizeof(text), "%" PRId64, number);
    float single = (float)number;
    double wide = (double)number;
    bool fits = true;
    if (field->kind == TFOS__FEATURE_BYTES)
        return tfos__record_list_decode_bytes(field, (struct tfos_view){text, (size_t)size}, err);
    TFOS__TRY(tfos__arrow_builder_reserve(values, 1, err));
    void *to = tfos__arrow_builder_end(values);
    if (type->kind == TFOS__ARROW_DECIMAL) {
        fits = tfos__arrow_decimal_parse(text, (size_t)size, type->precision, type->scale, to);
    } else if (type->width == 64) {
        fits = is_same(wide, number);
        memcpy(to, &wide, sizeof(wide));
    } else {
        fits = is_same((double)single, number);
        memcpy(to, &single, sizeof(single));
    }
    if (!fits)
        return refuse_integer(field, number, err);
    values->length++;
    return TFOS_OK;
}

static enum tfos_status convert_float(const struct tfos__record_field *field, float number,
                                      struct tfos_error *err)
{
    char text[TFOS__NUMBER_TEXT];
    tfos__float_print(isnan(number) ? fabsf(number) : number, text);
    return tfos__record_list_decode_bytes(field, (struct tfos_view){text, strlen(text)}, err);
}

static enum tfos_status convert_numbers(const struct tfos__record_field *field,
                                        enum tfos__record_feature_kind kind,
                                        struct tfos_view numbers, struct tfos_error *err)
{
    struct tfos__record_wire wire = tfos__record_wire_of(numbers);
    bool can_convert =
        field->kind == TFOS__FEATURE_BYTES ? !field->is_exact : kind == TFOS__FEATURE_INT64;
    uint64_t integer;
    float number;
    if (!can_convert && numbers.size > 0)
        return refuse_kind(field, kind, err);
    if (kind == TFOS__FEATURE_FLOAT && numbers.size % sizeof(number) != 0)
        return malformed(field, kind, err);
    while (wire.at < wire.end) {
        if (kind == TFOS__FEATURE_FLOAT) {
            memcpy(&number, wire.at, sizeof(number));
            wire.at += sizeof(number);
            TFOS__PASS(convert_float(field, number, err));
        } else if (!tfos__record_wire_read_varint(&wire, &integer)) {
            return malformed(field, kind, err);
        } else {
            TFOS__PASS(convert_integer(field, (int64_t)integer, err));
        }
    }
    return TFOS_OK;
}

enum tfos_status tfos__record_list_decode(const struct tfos__record_field *field,
                                          enum tfos__record_feature_kind kind,
                                          struct tfos_view list, struct tfos_error *err)
{
    enum tfos__record_wire_type single =
        kind == TFOS__FEATURE_FLOAT ? TFOS__WIRE_FIXED32 : TFOS__WIRE_VARINT;
    struct tfos__record_wire wire = tfos__record_wire_of(list);
    enum tfos_status status;
    struct tfos_view part;
    uint32_t number;
    if (kind == TFOS__FEATURE_BYTES) {
        while ((status = tfos__record_wire_next(&wire, 1, &number, &part)) == TFOS_OK)
            TFOS__PASS(append_bytes(field, part, err));
    } else {
        while ((status = tfos__record_wire_next_numbers(&wire, single, &part)) == TFOS_OK)
            TFOS__PASS(kind != field->kind           ? convert_numbers(field, kind, part, err)
                       : kind == TFOS__FEATURE_FLOAT ? append_floats(field, part, err)
                                                     : append_integers(field, part, err));
    }
    return status == TFOS_END ? TFOS_OK : malformed(field, kind, err);
}
