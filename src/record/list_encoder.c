// SPDX-License-Identifier: Apache-2.0
// Numbers are packed, as TensorFlow packs them. A list without values is an empty message.
#include "record/list_encoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "record/wire.h"

#define LIST_FIELD 1 // of all three kinds of lists

enum tfos_status tfos__record_check_message_size(const struct tfos__record_field *field,
                                                 size_t size, struct tfos_error *err)
{
    if (size <= INT32_MAX)
        return TFOS_OK;
    return tfos__fail(err, TFOS_INVALID,
                      "column %s: with it the record has %zu bytes, and a protobuf message has at "
                      "most 2,147,483,647: leave columns out, or spread the value over rows",
                      field->name, size);
}

#define WRITE(type)                                                                                \
    for (int64_t i = 0; i < count; i++)                                                            \
        at = tfos__record_wire_write_varint(at, (uint64_t)(int64_t)((const type *)from)[i]);       \
    return at

// Writes adjacent integers; returns the place behind them.
static uint8_t *write_varints(uint8_t *at, const struct tfos__arrow_type *type, const void *from,
                              int64_t count)
{
    switch (type->width + (type->kind == TFOS__ARROW_UINT)) {
    case 8:
        WRITE(int8_t);
    case 9:
        WRITE(uint8_t);
    case 16:
        WRITE(int16_t);
    case 17:
        WRITE(uint16_t);
    case 32:
        WRITE(int32_t);
    case 33:
        WRITE(uint32_t);
    default:
        WRITE(int64_t);
    }
}

// Refuses unsigned integers of more than 63 bits.
static enum tfos_status check_huge(const struct tfos__record_field *field,
                                   const struct ArrowArray *values, struct tfos__arrow_span span,
                                   struct tfos_error *err)
{
    const uint64_t *numbers =
        tfos__arrow_value(&tfos__record_field_values(field)->type, values, span.first);
    for (int64_t i = 0; i < span.count; i++)
        if (numbers[i] > INT64_MAX)
            return tfos__fail(err, TFOS_INVALID, "column %s: %llu is more than an int64_list holds",
                              field->name, (unsigned long long)numbers[i]);
    return TFOS_OK;
}

static enum tfos_status write_integers(const struct tfos__record_field *field,
                                       const struct ArrowArray *values,
                                       struct tfos__arrow_span span, struct tfos__buffer *out,
                                       struct tfos_error *err)
{
    const struct tfos__arrow_type *type = &tfos__record_field_values(field)->type;
    size_t count = (size_t)span.count;
    size_t room = tfos__record_wire_bytes_size(count) - count; // right if each takes one byte
    if (tfos__arrow_type_is(type, TFOS__ARROW_UINT, 64))
        TFOS__TRY(check_huge(field, values, span, err));
    TFOS__TRY(tfos__buffer_reserve(out, 2 * TFOS__VARINT_SIZE + count * TFOS__VARINT_SIZE, err));
    size_t begin = out->end;
    uint8_t *at = out->data + begin + room;
    if (type->kind == TFOS__ARROW_BOOL)
        for (int64_t i = 0; i < span.count; i++)
            *at++ = tfos__arrow_bit(values->buffers[1], values->offset + span.first + i);
    else
        at = write_varints(at, type, tfos__arrow_value(type, values, span.first), span.count);
    out->end = (size_t)(at - out->data);
    return tfos__record_wire_insert_head(out, LIST_FIELD, begin, &room, err);
}

static enum tfos_status note_rounding(const struct tfos__record_field *field, double number,
                                      float nearest, struct tfos_example_loss *loss,
                                      struct tfos_error *err)
{
    if (loss) {
        loss->rounded++;
        loss->infinite += isinf(nearest) != 0;
        return TFOS_OK;
    }
    char text[TFOS__NUMBER_TEXT];
    return tfos__fail(err, TFOS_INVALID,
                      "column %s: %s is no float, which is what records hold, and is not to be "
                      "rounded: the metadata tfos.encoding=exact keeps it",
                      field->name, tfos__number_print(number, text));
}

// The float of a double or a decimal.
static enum tfos_status round_value(const struct tfos__record_field *field, const void *at,
                                    struct tfos_example_loss *loss, float *out,
                                    struct tfos_error *err)
{
    const struct tfos__arrow_type *type = &tfos__record_field_values(field)->type;
    if (type->kind == TFOS__ARROW_FLOAT) {
        double number;
        memcpy(&number, at, sizeof(number));
        *out = (float)number;
        bool is_same = (double)*out == number || number != number;
        return is_same ? TFOS_OK : note_rounding(field, number, *out, loss, err);
    }
    char text[TFOS__ARROW_DECIMAL_TEXT];
    uint8_t back[TFOS__ARROW_DECIMAL_SIZE];
    tfos__arrow_decimal_print(at, type->scale, text);
    *out = strtof(text, NULL);
    bool is_same = tfos__arrow_decimal_of((double)*out, type->precision, type->scale, back) &&
                   memcmp(back, at, sizeof(back)) == 0;
    return is_same ? TFOS_OK : note_rounding(field, strtod(text, NULL), *out, loss, err);
}

static enum tfos_status write_floats(const struct tfos__record_field *field,
                                     const struct ArrowArray *values, struct tfos__arrow_span span,
                                     struct tfos__buffer *out, struct tfos_example_loss *loss,
                                     struct tfos_error *err)
{
    const struct tfos__arrow_type *type = &tfos__record_field_values(field)->type;
    const uint8_t *from = tfos__arrow_value(type, values, span.first);
    size_t size = (size_t)span.count * sizeof(float);
    if (tfos__arrow_type_is(type, TFOS__ARROW_FLOAT, 32))
        return tfos__record_wire_append_bytes(out, LIST_FIELD, from, size, err);
    TFOS__TRY(tfos__record_wire_append_head(out, LIST_FIELD, size, err));
    uint8_t *at = out->data + out->end;
    for (int64_t i = 0; i < span.count; i++, at += sizeof(float)) {
        float number;
        TFOS__TRY(round_value(field, from + i * (type->width / 8), loss, &number, err));
        memcpy(at, &number, sizeof(number));
    }
    out->end = (size_t)(at - out->data);
    return TFOS_OK;
}

static enum tfos_status write_exact(const struct tfos__arrow_type *type, const void *at,
                                    struct tfos__buffer *out, struct tfos_error *err)
{
    char text[TFOS__ARROW_DECIMAL_TEXT];
    if (type->kind == TFOS__ARROW_FLOAT)
        return tfos__record_wire_append_bytes(out, LIST_FIELD, at, sizeof(double), err);
    tfos__arrow_decimal_print(at, type->scale, text);
    return tfos__record_wire_append_bytes(out, LIST_FIELD, text, strlen(text), err);
}

enum tfos_status tfos__record_list_encode(const struct tfos__record_field *field,
                                          const struct ArrowArray *values,
                                          struct tfos__arrow_span span, struct tfos__buffer *out,
                                          struct tfos_example_loss *loss, struct tfos_error *err)
{
    const struct tfos__arrow_type *type = &tfos__record_field_values(field)->type;
    if (tfos__arrow_has_nulls(values) && tfos__arrow_find_null(values, span.first, span.count) >= 0)
        return tfos__fail(err, TFOS_INVALID,
                          "column %s: a null within a list, which a record cannot hold",
                          field->name);
    if (span.count == 0)
        return TFOS_OK;
    if (field->kind == TFOS__FEATURE_INT64)
        return write_integers(field, values, span, out, err);
    if (field->kind == TFOS__FEATURE_FLOAT)
        return write_floats(field, values, span, out, loss, err);
    if (!field->is_exact)
        TFOS__TRY(tfos__record_check_message_size(
            field, (size_t)tfos__arrow_lists(type, values, span.first, span.count).count, err));
    for (int64_t i = span.first; i < span.first + span.count; i++) {
        if (field->is_exact) {
            TFOS__TRY(write_exact(type, tfos__arrow_value(type, values, i), out, err));
            continue;
        }
        struct tfos_view text = tfos__arrow_bytes(type, values, i);
        TFOS__TRY(tfos__record_wire_append_bytes(out, LIST_FIELD, text.data, text.size, err));
    }
    return TFOS_OK;
}
