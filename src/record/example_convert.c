// SPDX-License-Identifier: Apache-2.0
// Values of a feature that is of another kind in this record than its column is: 1 beside 1.5.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "arrow/builder.h"
#include "arrow/decimal.h"
#include "base/fail.h"
#include "base/text.h"
#include "record/example_column.h"
#include "record/wire.h"

static enum tfos_status malformed(const struct tfos__example_field *field,
                                  enum tfos__feature_kind kind, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %s is damaged", field->name,
                      tfos__feature_kind_name(kind));
}

static enum tfos_status refuse_kind(const struct tfos__example_field *field,
                                    enum tfos__feature_kind kind, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    return tfos__fail(err, TFOS_CORRUPT,
                      "column %s: the feature is %s, which %s cannot hold: read it as %s%s",
                      field->name, tfos__feature_kind_name(kind), field->type,
                      tfos__example_type_of(field, kind, field->level_count, text),
                      kind == TFOS__FEATURE_BYTES ? ", or as text" : "");
}

static enum tfos_status refuse_integer(const struct tfos__example_field *field, int64_t number,
                                       struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CORRUPT,
                      "column %s: the feature is an int64_list, and its %" PRId64
                      " does not fit %s: read it as %stext",
                      field->name, number, field->type,
                      tfos__arrow_type_is(&tfos__example_values(field)->type, TFOS__ARROW_FLOAT, 32)
                          ? "double, or as "
                          : "");
}

// Whether a float or double that an integer became is the same number.
static bool is_same(double number, int64_t integer)
{
    return number < 0x1p63 && (int64_t)number == integer;
}

static enum tfos_status append_integer(const struct tfos__example_field *field, int64_t number,
                                       struct tfos_error *err)
{
    struct tfos__arrow_builder *values = tfos__example_values(field);
    const struct tfos__arrow_type *type = &values->type;
    char text[TFOS__NUMBER_TEXT];
    int size = snprintf(text, sizeof text, "%" PRId64, number);
    float narrow = (float)number;
    double wide = (double)number;
    bool fits = true;
    if (field->kind == TFOS__FEATURE_BYTES)
        return tfos__example_values_append_text(field, (struct tfos_view){text, (size_t)size}, err);
    TFOS__TRY(tfos__arrow_builder_reserve(values, 1, err));
    void *to = tfos__arrow_builder_end(values);
    if (type->kind == TFOS__ARROW_DECIMAL) {
        fits = tfos__arrow_decimal_parse(text, (size_t)size, type->precision, type->scale, to);
    } else if (type->width == 64) {
        fits = is_same(wide, number);
        memcpy(to, &wide, sizeof wide);
    } else {
        fits = is_same((double)narrow, number);
        memcpy(to, &narrow, sizeof narrow);
    }
    if (!fits)
        return refuse_integer(field, number, err);
    values->length++;
    return TFOS_OK;
}

static enum tfos_status append_float_text(const struct tfos__example_field *field, float number,
                                          struct tfos_error *err)
{
    char text[TFOS__NUMBER_TEXT];
    tfos__float_print(isnan(number) ? fabsf(number) : number, text);
    return tfos__example_values_append_text(field, (struct tfos_view){text, strlen(text)}, err);
}

static enum tfos_status append_numbers(const struct tfos__example_field *field,
                                       enum tfos__feature_kind kind, struct tfos_view numbers,
                                       struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(numbers);
    uint64_t integer;
    float number;
    if (kind == TFOS__FEATURE_FLOAT && numbers.size % sizeof number != 0)
        return malformed(field, kind, err);
    while (wire.at < wire.end) {
        if (kind == TFOS__FEATURE_FLOAT) {
            memcpy(&number, wire.at, sizeof number);
            wire.at += sizeof number;
            TFOS__PASS(append_float_text(field, number, err));
        } else if (!tfos__wire_read_varint(&wire, &integer)) {
            return malformed(field, kind, err);
        } else {
            TFOS__PASS(append_integer(field, (int64_t)integer, err));
        }
    }
    return TFOS_OK;
}

// A bytes_list fits no column of another kind, unless it is empty.
static enum tfos_status refuse_bytes(const struct tfos__example_field *field, struct tfos_view list,
                                     struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(list);
    struct tfos_view bytes;
    uint32_t number;
    enum tfos_status status = tfos__wire_next(&wire, 1, &number, &bytes);
    if (status == TFOS_END)
        return TFOS_OK;
    return status == TFOS_OK ? refuse_kind(field, TFOS__FEATURE_BYTES, err)
                             : malformed(field, TFOS__FEATURE_BYTES, err);
}

enum tfos_status tfos__example_values_convert(const struct tfos__example_field *field,
                                              enum tfos__feature_kind kind, struct tfos_view list,
                                              struct tfos_error *err)
{
    bool is_float = kind == TFOS__FEATURE_FLOAT;
    bool can_be = field->kind == TFOS__FEATURE_BYTES ? !field->is_exact : !is_float;
    if (kind == TFOS__FEATURE_BYTES)
        return refuse_bytes(field, list, err);
    struct tfos__wire wire = tfos__wire_of(list);
    enum tfos_status status;
    struct tfos_view numbers;
    while ((status = tfos__wire_next_numbers(
                &wire, is_float ? TFOS__WIRE_FIXED32 : TFOS__WIRE_VARINT, &numbers)) == TFOS_OK) {
        if (!can_be && numbers.size > 0)
            return refuse_kind(field, kind, err);
        TFOS__PASS(append_numbers(field, kind, numbers, err));
    }
    return status == TFOS_END ? TFOS_OK : malformed(field, kind, err);
}
