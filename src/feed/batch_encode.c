// SPDX-License-Identifier: Apache-2.0
// First the plan: the place and size of every buffer of the slice; then one copy for each. Offsets
// are written so that they begin with 0, and only the values between the first and the last of them
// travel.
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "feed/batch.h"
#include "feed/record.h"

struct measure {
    struct tfos__feed_batch_plan *plan;
    const struct tfos__feed_schema *schema;
    uint64_t size;
};

static enum tfos_status place_buffer(struct measure *measure, size_t index, int buffer,
                                     int64_t length, int64_t width, struct tfos_error *err)
{
    struct tfos__feed_column_plan *column = &measure->plan->columns[index];
    uint64_t size = 0;

    if (!tfos__arrow_size(length, width, &size) || size > INT64_MAX - measure->size)
        return tfos__fail(err, TFOS_INVALID, "feed: column %s: %lld values are too many",
                          measure->schema->fields[index].name, (long long)length);
    if (size > 0 && !column->array->buffers[buffer])
        return tfos__fail(err, TFOS_INVALID, "feed: column %s: buffer %d is missing",
                          measure->schema->fields[index].name, buffer);
    column->places[buffer] = measure->size;
    column->sizes[buffer] = size;
    measure->size += tfos__feed_record_pad(size);
    return TFOS_OK;
}

static enum tfos_status check_shape(const struct tfos__feed_field *field,
                                    const struct ArrowArray *array, int64_t length,
                                    struct tfos_error *err)
{
    char name[TFOS__ARROW_TEXT_SIZE];

    if (!tfos__arrow_fits(&field->type, array, field->child_count))
        return tfos__fail(err, TFOS_INVALID,
                          "feed: column %s: the type %s has %d buffers and %lld children, the "
                          "array %lld and %lld%s",
                          field->name,
                          tfos__arrow_type_name(&field->type, TFOS_TYPE_NAMES_SPARK, name),
                          tfos__arrow_buffer_count(&field->type), (long long)field->child_count,
                          (long long)array->n_buffers, (long long)array->n_children,
                          array->dictionary ? " and a dictionary" : "");
    if (array->offset < 0 || length < 0)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: column %s: offset %lld or length %lld is negative", field->name,
                          (long long)array->offset, (long long)length);
    return TFOS_OK;
}

// Places the offsets of the slice; the range of values that they span.
static enum tfos_status measure_offsets(struct measure *measure, size_t index, int64_t *count,
                                        struct tfos_error *err)
{
    struct tfos__feed_column_plan *column = &measure->plan->columns[index];
    const struct tfos__feed_field *field = &measure->schema->fields[index];
    int64_t width = field->type.width;

    column->first = 0;
    *count = 0;
    if (column->length == 0) // Arrow allows no offsets at all then
        return place_buffer(measure, index, 1, 0, width, err);
    TFOS__TRY(place_buffer(measure, index, 1, column->length + 1, width, err));
    int64_t first = column->offset - column->array->offset;
    column->first = tfos__arrow_offset(&field->type, column->array, first);
    *count = tfos__arrow_offset(&field->type, column->array, first + column->length);
    if (column->first < 0 || *count < column->first)
        return tfos__fail(err, TFOS_INVALID, "feed: column %s: offsets run from %lld to %lld",
                          field->name, (long long)column->first, (long long)*count);
    *count -= column->first;
    return TFOS_OK;
}

// Plans field `index` and those below it for the values [offset, offset + length) of `array`, its
// own offset not counted. `*next` is the field after them.
static enum tfos_status measure_field(struct measure *measure, const struct ArrowArray *array,
                                      size_t index, int64_t offset, int64_t length, size_t *next,
                                      struct tfos_error *err)
{
    const struct tfos__feed_field *field = &measure->schema->fields[index];
    struct tfos__feed_column_plan *column = &measure->plan->columns[index];
    int64_t first = 0, count = length;

    TFOS__TRY(check_shape(field, array, length, err));
    if (length > array->length - offset)
        return tfos__fail(err, TFOS_INVALID, "feed: column %s: has %lld values, %lld are needed",
                          field->name, (long long)array->length, (long long)(offset + length));
    bool has_nulls = tfos__arrow_has_nulls(array);
    *column = (struct tfos__feed_column_plan){
        .array = array, .offset = array->offset + offset, .length = length};
    column->null_count = !has_nulls ? 0 : length == array->length ? array->null_count : -1;
    TFOS__TRY(place_buffer(measure, index, 0, has_nulls ? length : 0, 1, err));
    switch (field->type.layout) {
    case TFOS__ARROW_FIXED:
        TFOS__TRY(place_buffer(measure, index, 1, length, field->type.width, err));
        break;
    case TFOS__ARROW_VARIABLE:
        TFOS__TRY(measure_offsets(measure, index, &count, err));
        TFOS__TRY(place_buffer(measure, index, 2, count, 8, err));
        break;
    case TFOS__ARROW_OFFSETS:
        TFOS__TRY(measure_offsets(measure, index, &count, err));
        first = column->first;
        break;
    case TFOS__ARROW_FIXED_LIST:
        if (__builtin_mul_overflow(column->offset, field->type.list_size, &first) ||
            __builtin_mul_overflow(length, field->type.list_size, &count))
            return tfos__fail(err, TFOS_INVALID, "feed: column %s: %lld lists are too many",
                              field->name, (long long)length);
        break;
    default:
        first = column->offset;
        break;
    }
    *next = index + 1;
    for (int64_t i = 0; i < field->child_count; i++)
        TFOS__TRY(measure_field(measure, array->children[i], *next, first, count, next, err));
    return TFOS_OK;
}

static uint64_t table_size(const struct tfos__feed_schema *schema)
{
    uint64_t words = 0;

    for (size_t i = 0; i < schema->field_count; i++)
        words += 2 + 2 * (uint64_t)tfos__arrow_buffer_count(&schema->fields[i].type);
    return words * sizeof(uint64_t);
}

enum tfos_status tfos__feed_batch_measure(struct tfos__feed_batch_plan *plan,
                                          const struct tfos__feed_schema *schema,
                                          const struct ArrowArray *array, int64_t row, int64_t rows,
                                          struct tfos_error *err)
{
    struct measure measure = {plan, schema, tfos__feed_record_pad(table_size(schema))};
    size_t next = 0;

    if (plan->capacity < schema->field_count) {
        struct tfos__feed_column_plan *columns =
            tfos__realloc(plan->columns, schema->field_count, sizeof *columns);
        if (!columns)
            return tfos__no_memory(err, "feed", "the plan of a batch");
        plan->columns = columns;
        plan->capacity = schema->field_count;
    }
    TFOS__TRY(measure_field(&measure, array, 0, row, rows, &next, err));
    plan->body_size = measure.size;
    return TFOS_OK;
}

enum tfos_status tfos__feed_batch_fit(struct tfos__feed_batch_plan *plan,
                                      const struct tfos__feed_schema *schema,
                                      const struct ArrowArray *array, int64_t row,
                                      uint64_t ring_size, int64_t *rows, struct tfos_error *err)
{
    uint64_t limit = ring_size / 2;

    *rows = array->length - row;
    for (;;) {
        TFOS__TRY(tfos__feed_batch_measure(plan, schema, array, row, *rows, err));
        uint64_t size = tfos__feed_record_size(plan->body_size);
        if (size <= limit || *rows <= 1)
            return TFOS_OK;
        limit = ring_size / 4;
        // In proportion, but with an end in sight when few rows have most of the bytes.
        int64_t guess = (int64_t)((double)*rows * ((double)limit / (double)size));
        int64_t most = *rows - *rows / 8 - 1;
        *rows = guess < 1 ? 1 : guess > most ? most : guess;
    }
}

// Copies `count` bits that begin at bit `first` of `source` to bit 0 of `target`.
static void copy_bits(struct tfos__feed_copier *copier, uint8_t *target, const uint8_t *source,
                      int64_t first, int64_t count)
{
    size_t size = (size_t)(count + 7) / 8;

    if (first % 8 == 0) {
        tfos__feed_copy(copier, target, source + first / 8, size);
        return;
    }
    for (int64_t done = 0; done < count; done += 64) {
        unsigned step = count - done < 64 ? (unsigned)(count - done) : 64;
        uint64_t bits = tfos__arrow_bits(source, first + done, step);
        memcpy(target + done / 8, &bits, (step + 7) / 8);
    }
}

static void copy_offsets(struct tfos__feed_copier *copier, uint8_t *target,
                         const struct tfos__feed_column_plan *column, int64_t width)
{
    const uint8_t *source = column->array->buffers[1];
    int64_t count = column->length + 1;

    source += column->offset * (width / 8);
    if (column->first == 0) {
        tfos__feed_copy(copier, target, source, column->sizes[1]);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        if (width == 32)
            ((int32_t *)(void *)target)[i] =
                ((const int32_t *)(const void *)source)[i] - (int32_t)column->first;
        else
            ((int64_t *)(void *)target)[i] =
                ((const int64_t *)(const void *)source)[i] - column->first;
}

// The bytes between buffers: they would otherwise carry what lay there before to the other side.
static void clear_padding(const struct tfos__feed_column_plan *column, int buffer, uint8_t *body)
{
    uint64_t size = column->sizes[buffer];

    memset(body + column->places[buffer] + size, 0, tfos__feed_record_pad(size) - size);
}

static void write_buffers(struct tfos__feed_copier *copier,
                          const struct tfos__feed_column_plan *column,
                          const struct tfos__arrow_type *type, uint8_t *body)
{
    const uint8_t *const *buffers = (const uint8_t *const *)column->array->buffers;

    if (column->sizes[0] > 0)
        copy_bits(copier, body + column->places[0], buffers[0], column->offset, column->length);
    if (type->layout == TFOS__ARROW_FIXED && column->sizes[1] > 0) {
        if (type->width == 1)
            copy_bits(copier, body + column->places[1], buffers[1], column->offset, column->length);
        else
            tfos__feed_copy(copier, body + column->places[1],
                            buffers[1] + column->offset * (type->width / 8), column->sizes[1]);
    }
    if (tfos__arrow_has_offsets(type) && column->sizes[1] > 0)
        copy_offsets(copier, body + column->places[1], column, type->width);
    if (type->layout == TFOS__ARROW_VARIABLE && column->sizes[2] > 0)
        tfos__feed_copy(copier, body + column->places[2], buffers[2] + column->first,
                        column->sizes[2]);
}

void tfos__feed_batch_write(struct tfos__feed_batch_plan *plan,
                            const struct tfos__feed_schema *schema, uint8_t *body)
{
    uint64_t *word = (uint64_t *)(void *)body;

    uint64_t words_size = table_size(schema);
    memset(body + words_size, 0, tfos__feed_record_pad(words_size) - words_size);
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct tfos__feed_column_plan *column = &plan->columns[i];
        *word++ = (uint64_t)column->length;
        *word++ = (uint64_t)column->null_count;
        for (int buffer = 0; buffer < tfos__arrow_buffer_count(&schema->fields[i].type); buffer++) {
            *word++ = column->places[buffer];
            *word++ = column->sizes[buffer];
            clear_padding(column, buffer, body);
        }
    }
    for (size_t i = 0; i < schema->field_count; i++)
        write_buffers(&plan->copier, &plan->columns[i], &schema->fields[i].type, body);
}

void tfos__feed_batch_plan_clear(struct tfos__feed_batch_plan *plan)
{
    tfos__free(plan->columns);
    *plan = (struct tfos__feed_batch_plan){0};
}
