// SPDX-License-Identifier: Apache-2.0
// Numbers are packed, as TensorFlow packs them; a list without values is an empty message.
#include "record/example_lists.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "record/decimal.h"
#include "record/wire.h"

#define LIST_FIELD 1 // of all three kinds of lists

uint8_t *tfos__wire_write_head(uint8_t *at, uint32_t field, size_t size)
{
    at = tfos__wire_write_varint(at, (uint64_t)field << 3 | TFOS__WIRE_BYTES);
    return tfos__wire_write_varint(at, size);
}

enum tfos_status tfos__wire_append_bytes(struct tfos__buffer *out, uint32_t field, const void *data,
                                         size_t size, struct tfos_error *err)
{
    TFOS__TRY(tfos__buffer_reserve(out, tfos__wire_bytes_size(size), err));
    uint8_t *at = tfos__wire_write_head(out->data + out->end, field, size);
    if (size > 0)
        memcpy(at, data, size);
    out->end = (size_t)(at + size - out->data);
    return TFOS_OK;
}

enum tfos_status tfos__wire_insert_head(struct tfos__buffer *out, uint32_t field, size_t begin,
                                        size_t *room, struct tfos_error *err)
{
    size_t size = out->end - begin - *room, head_size = tfos__wire_bytes_size(size) - size;
    if (head_size != *room) {
        TFOS__TRY(tfos__buffer_reserve(out, head_size, err));
        memmove(out->data + begin + head_size, out->data + begin + *room, size);
        *room = head_size;
    }
    tfos__wire_write_head(out->data + begin, field, size);
    out->end = begin + head_size + size;
    return TFOS_OK;
}

enum tfos_status tfos__example_size_check(const struct tfos__example_field *field, size_t size,
                                          struct tfos_error *err)
{
    if (size <= INT32_MAX)
        return TFOS_OK;
    return tfos__fail(err, TFOS_INVALID,
                      "column %s: with it the record has %zu bytes, and a protobuf message has at "
                      "most 2,147,483,647: leave columns out, or spread the value over rows",
                      field->name, size);
}

// Bytes of some texts, which lie one behind the other.
static size_t size_of_texts(const struct tfos__example_source *source,
                            struct tfos__example_range range)
{
    struct tfos_view last = tfos__example_source_text(source, range.end - 1);
    const uint8_t *begin = tfos__example_source_text(source, range.begin).data;

    return (size_t)((const uint8_t *)last.data - begin) + last.size;
}

struct tfos_view tfos__example_source_text(const struct tfos__example_source *source, int64_t index)
{
    index += source->offset;
    int64_t begin, end;
    if (source->field->has_wide_bytes) {
        const int64_t *offsets = source->values;
        begin = offsets[index];
        end = offsets[index + 1];
    } else {
        const int32_t *offsets = source->values;
        begin = offsets[index];
        end = offsets[index + 1];
    }
    return (struct tfos_view){source->bytes + begin, (size_t)(end - begin)};
}

static const void *value_at(const struct tfos__example_source *source, int64_t index)
{
    return (const uint8_t *)source->values +
           (size_t)(source->offset + index) * source->field->width;
}

static int64_t read_integer(const struct tfos__example_source *source, int64_t index)
{
    const void *at = value_at(source, index);
    int64_t bit = source->offset + index;
    if (source->field->value == TFOS__VALUE_BOOLEAN)
        return ((const uint8_t *)source->values)[bit / 8] >> bit % 8 & 1;
    switch (source->field->width * 2 + source->field->is_unsigned) {
    case 2:
        return *(const int8_t *)at;
    case 3:
        return *(const uint8_t *)at;
    case 4:
        return *(const int16_t *)at;
    case 5:
        return *(const uint16_t *)at;
    case 8:
        return *(const int32_t *)at;
    case 9:
        return *(const uint32_t *)at;
    default:
        return *(const int64_t *)at;
    }
}

static enum tfos_status write_integers(const struct tfos__example_source *source,
                                       struct tfos__example_range range, struct tfos__buffer *out,
                                       struct tfos_error *err)
{
    const struct tfos__example_field *field = source->field;
    size_t count = (size_t)(range.end - range.begin);
    // If each takes a byte.
    size_t room = tfos__wire_bytes_size(count) - count;
    bool is_huge = field->is_unsigned && field->width == sizeof(uint64_t);
    TFOS__TRY(tfos__buffer_reserve(out, 2 * TFOS__VARINT_SIZE + count * TFOS__VARINT_SIZE, err));
    size_t begin = out->end;
    uint8_t *at = out->data + begin + room;
    for (int64_t i = range.begin; i < range.end; i++) {
        int64_t value = read_integer(source, i);
        if (is_huge && value < 0)
            return tfos__fail(err, TFOS_INVALID, "column %s: %llu is more than an int64_list holds",
                              field->name, (unsigned long long)value);
        at = tfos__wire_write_varint(at, (uint64_t)value);
    }
    out->end = (size_t)(at - out->data);
    return tfos__wire_insert_head(out, LIST_FIELD, begin, &room, err);
}

static enum tfos_status note_rounding(const struct tfos__example_source *source, double number,
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
                      source->field->name, tfos__number_print(number, text));
}

// The float of a double or a decimal.
static enum tfos_status round_value(const struct tfos__example_source *source, int64_t index,
                                    struct tfos_example_loss *loss, float *out,
                                    struct tfos_error *err)
{
    const struct tfos__example_field *field = source->field;
    const void *at = value_at(source, index);
    if (field->value == TFOS__VALUE_DOUBLE) {
        double number;
        memcpy(&number, at, sizeof number);
        *out = (float)number;
        bool is_same = (double)*out == number || number != number;
        return is_same ? TFOS_OK : note_rounding(source, number, *out, loss, err);
    }
    char text[TFOS__DECIMAL_TEXT];
    uint8_t back[TFOS__DECIMAL_SIZE];
    tfos__decimal_print(at, field->scale, text);
    *out = strtof(text, NULL);
    bool is_same = tfos__decimal_of((double)*out, field->precision, field->scale, back) &&
                   memcmp(back, at, sizeof back) == 0;
    return is_same ? TFOS_OK : note_rounding(source, strtod(text, NULL), *out, loss, err);
}

static enum tfos_status write_floats(const struct tfos__example_source *source,
                                     struct tfos__example_range range, struct tfos__buffer *out,
                                     struct tfos_example_loss *loss, struct tfos_error *err)
{
    size_t size = (size_t)(range.end - range.begin) * sizeof(float);
    if (source->field->value == TFOS__VALUE_FLOAT)
        return tfos__wire_append_bytes(out, LIST_FIELD, value_at(source, range.begin), size, err);
    TFOS__TRY(tfos__buffer_reserve(out, tfos__wire_bytes_size(size), err));
    uint8_t *at = tfos__wire_write_head(out->data + out->end, LIST_FIELD, size);
    for (int64_t i = range.begin; i < range.end; i++, at += sizeof(float)) {
        float number;
        TFOS__TRY(round_value(source, i, loss, &number, err));
        memcpy(at, &number, sizeof number);
    }
    out->end = (size_t)(at - out->data);
    return TFOS_OK;
}

static enum tfos_status write_exact(const struct tfos__example_source *source, int64_t index,
                                    struct tfos__buffer *out, struct tfos_error *err)
{
    const void *at = value_at(source, index);
    char text[TFOS__DECIMAL_TEXT];
    if (source->field->value == TFOS__VALUE_DOUBLE)
        return tfos__wire_append_bytes(out, LIST_FIELD, at, sizeof(double), err);
    tfos__decimal_print(at, source->field->scale, text);
    return tfos__wire_append_bytes(out, LIST_FIELD, text, strlen(text), err);
}

enum tfos_status tfos__example_list_write(const struct tfos__example_source *source,
                                          struct tfos__example_range range,
                                          struct tfos__buffer *out, struct tfos_example_loss *loss,
                                          struct tfos_error *err)
{
    for (int64_t i = range.begin; source->value_validity.bits && i < range.end; i++)
        if (tfos__example_is_null(source->value_validity, i))
            return tfos__fail(err, TFOS_INVALID,
                              "column %s: a null within a list, which a record cannot hold",
                              source->field->name);
    if (range.begin == range.end)
        return TFOS_OK;
    if (source->field->kind == TFOS__FEATURE_INT64)
        return write_integers(source, range, out, err);
    if (source->field->kind == TFOS__FEATURE_FLOAT)
        return write_floats(source, range, out, loss, err);
    if (!source->field->is_exact)
        TFOS__TRY(tfos__example_size_check(source->field, size_of_texts(source, range), err));
    for (int64_t i = range.begin; i < range.end; i++) {
        if (source->field->is_exact) {
            TFOS__TRY(write_exact(source, i, out, err));
            continue;
        }
        struct tfos_view text = tfos__example_source_text(source, i);
        TFOS__TRY(tfos__wire_append_bytes(out, LIST_FIELD, text.data, text.size, err));
    }
    return TFOS_OK;
}
