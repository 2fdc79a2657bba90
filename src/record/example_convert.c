// SPDX-License-Identifier: Apache-2.0
// Values of a feature that is of another kind in this record than its column is: 1 beside 1.5.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "record/decimal.h"
#include "record/example_column.h"
#include "record/wire.h"

static enum tfos_status malformed(const struct tfos__example_column *column,
                                  enum tfos__feature_kind kind, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %s is damaged", column->field->name,
                      tfos__feature_kind_name(kind));
}

static enum tfos_status refuse_kind(const struct tfos__example_column *column,
                                    enum tfos__feature_kind kind, struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    const struct tfos__example_field *field = column->field;
    return tfos__fail(err, TFOS_CORRUPT,
                      "column %s: the feature is %s, which %s cannot hold: read it as %s%s",
                      field->name, tfos__feature_kind_name(kind), field->type,
                      tfos__example_type_of(field, kind, field->level_count, text),
                      kind == TFOS__FEATURE_BYTES ? ", or as text" : "");
}

static enum tfos_status refuse_integer(const struct tfos__example_column *column, int64_t number,
                                       struct tfos_error *err)
{
    const struct tfos__example_field *field = column->field;
    return tfos__fail(err, TFOS_CORRUPT,
                      "column %s: the feature is an int64_list, and its %" PRId64
                      " does not fit %s: read it as %stext",
                      field->name, number, field->type,
                      field->value == TFOS__VALUE_FLOAT ? "double, or as " : "");
}

// Whether a float or double that an integer became is the same number.
static bool is_same(double number, int64_t integer)
{
    return number < 0x1p63 && (int64_t)number == integer;
}

static enum tfos_status append_integer(struct tfos__example_column *column, int64_t number,
                                       struct tfos_error *err)
{
    const struct tfos__example_field *field = column->field;
    char text[TFOS__NUMBER_TEXT];
    int size = snprintf(text, sizeof text, "%" PRId64, number);
    float narrow = (float)number;
    double wide = (double)number;
    bool fits = true;
    if (field->kind == TFOS__FEATURE_BYTES)
        return tfos__example_values_append_text(column, (struct tfos_view){text, (size_t)size},
                                                err);
    TFOS__TRY(tfos__example_column_reserve(column, 1, err));
    uint8_t *to = tfos__example_column_end(column);
    if (field->value == TFOS__VALUE_DECIMAL) {
        fits = tfos__decimal_parse(text, (size_t)size, field->precision, field->scale, to);
    } else if (field->value == TFOS__VALUE_DOUBLE) {
        fits = is_same(wide, number);
        memcpy(to, &wide, sizeof wide);
    } else {
        fits = is_same((double)narrow, number);
        memcpy(to, &narrow, sizeof narrow);
    }
    if (!fits)
        return refuse_integer(column, number, err);
    column->extent.value_count++;
    return TFOS_OK;
}

static enum tfos_status append_float_text(struct tfos__example_column *column, float number,
                                          struct tfos_error *err)
{
    char text[TFOS__NUMBER_TEXT];
    tfos__float_print(isnan(number) ? fabsf(number) : number, text);
    return tfos__example_values_append_text(column, (struct tfos_view){text, strlen(text)}, err);
}

static enum tfos_status append_numbers(struct tfos__example_column *column,
                                       enum tfos__feature_kind kind, struct tfos_view numbers,
                                       struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(numbers);
    uint64_t integer;
    float number;
    if (kind == TFOS__FEATURE_FLOAT && numbers.size % sizeof number != 0)
        return malformed(column, kind, err);
    while (wire.at < wire.end) {
        if (kind == TFOS__FEATURE_FLOAT) {
            memcpy(&number, wire.at, sizeof number);
            wire.at += sizeof number;
            TFOS__TRY(append_float_text(column, number, err));
        } else if (!tfos__wire_read_varint(&wire, &integer)) {
            return malformed(column, kind, err);
        } else {
            TFOS__TRY(append_integer(column, (int64_t)integer, err));
        }
    }
    return TFOS_OK;
}

// A bytes_list fits no column of another kind, unless it is empty.
static enum tfos_status refuse_bytes(const struct tfos__example_column *column,
                                     struct tfos_view list, struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(list);
    struct tfos_view bytes;
    uint32_t field;
    enum tfos_status status = tfos__wire_next(&wire, 1, &field, &bytes);
    if (status == TFOS_END)
        return TFOS_OK;
    return status == TFOS_OK ? refuse_kind(column, TFOS__FEATURE_BYTES, err)
                             : malformed(column, TFOS__FEATURE_BYTES, err);
}

enum tfos_status tfos__example_values_convert(struct tfos__example_column *column,
                                              enum tfos__feature_kind kind, struct tfos_view list,
                                              struct tfos_error *err)
{
    const struct tfos__example_field *field = column->field;
    bool is_float = kind == TFOS__FEATURE_FLOAT;
    bool can_be = field->kind == TFOS__FEATURE_BYTES ? !field->is_exact : !is_float;
    if (kind == TFOS__FEATURE_BYTES)
        return refuse_bytes(column, list, err);
    struct tfos__wire wire = tfos__wire_of(list);
    enum tfos_status status;
    struct tfos_view numbers;
    while ((status = tfos__wire_next_numbers(
                &wire, is_float ? TFOS__WIRE_FIXED32 : TFOS__WIRE_VARINT, &numbers)) == TFOS_OK) {
        if (!can_be && numbers.size > 0)
            return refuse_kind(column, kind, err);
        TFOS__TRY(append_numbers(column, kind, numbers, err));
    }
    return status == TFOS_END ? TFOS_OK : malformed(column, kind, err);
}
