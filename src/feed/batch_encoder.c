// SPDX-License-Identifier: Apache-2.0
// A schema is compared by its record's bytes: most batches have the schema of the one before, and
// nothing is made. A batch is planned first, the place and size of every buffer of the slice, and
// then written with one copy for each. Offsets are written so that they begin with 0, and only the
// values between the first and the last of them travel.
#include "feed/batch_encoder.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

// Where the parts of one column of a slice lie, here and in the body.
struct tfos__feed_column_plan {
    const struct ArrowArray *array;
    int64_t offset; // of the slice's first value in the array's buffers
    int64_t length;
    int64_t null_count;
    int64_t first;                        // the first of the offsets, for columns that have them
    uint64_t places[TFOS__ARROW_BUFFERS]; // in the body
    uint64_t sizes[TFOS__ARROW_BUFFERS];
};

static void drop_spill(struct tfos__feed_batch_encoder *encoder)
{
    tfos__free(encoder->spill);
    encoder->spill = NULL;
    encoder->spill_sent = 0;
}

void tfos__feed_batch_encoder_reset(struct tfos__feed_batch_encoder *encoder)
{
    drop_spill(encoder);
    encoder->row = 0;
}

enum tfos_status tfos__feed_batch_encoder_begin(struct tfos__feed_batch_encoder *encoder,
                                                const struct ArrowSchema *schema,
                                                const struct ArrowArray *array,
                                                struct tfos_error *err)
{
    if (array->offset < 0 || array->length < 0)
        return tfos__fail(err, TFOS_INVALID, "feed: a batch with length %lld and offset %lld",
                          (long long)array->length, (long long)array->offset);
    enum tfos_status status = tfos__arrow_schema_encode(schema, &encoder->scratch, err);
    TFOS__TRY(tfos__fail_in(err, status, "feed"));
    size_t size = tfos__buffer_size(&encoder->scratch);
    if (encoder->schema.field_count > 0 && size == tfos__buffer_size(&encoder->schema_body) &&
        memcmp(encoder->scratch.data, encoder->schema_body.data, size) == 0)
        return TFOS_OK;
    status = tfos__feed_schema_take(&encoder->schema, schema, err);
    if (status < 0) // the caller's mistake
        return status == TFOS_NO_MEMORY ? status : TFOS_INVALID;
    if (encoder->refuses_pickles)
        TFOS__TRY(tfos__feed_schema_refuse_pickles(&encoder->schema, err));
    struct tfos__buffer previous = encoder->schema_body;
    encoder->schema_body = encoder->scratch;
    encoder->scratch = previous;
    encoder->is_schema_sent = false;
    return TFOS_OK;
}

// ---- planning

static enum tfos_status place_buffer(struct tfos__feed_batch_encoder *encoder, size_t index,
                                     int buffer, int64_t length, int64_t width,
                                     struct tfos_error *err)
{
    struct tfos__feed_column_plan *column = &encoder->columns[index];
    uint64_t size = 0;

    if (!tfos__arrow_size(length, width, &size) || size > INT64_MAX - encoder->body_size)
        return tfos__fail(err, TFOS_INVALID, "feed: column %s: %lld values are too many",
                          encoder->schema.fields[index].name, (long long)length);
    if (size > 0 && !column->array->buffers[buffer])
        return tfos__fail(err, TFOS_INVALID, "feed: column %s: buffer %d is missing",
                          encoder->schema.fields[index].name, buffer);
    column->places[buffer] = encoder->body_size;
    column->sizes[buffer] = size;
    encoder->body_size += tfos__feed_record_pad(size);
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
static enum tfos_status measure_offsets(struct tfos__feed_batch_encoder *encoder, size_t index,
                                        int64_t *count, struct tfos_error *err)
{
    struct tfos__feed_column_plan *column = &encoder->columns[index];
    const struct tfos__feed_field *field = &encoder->schema.fields[index];
    int64_t width = field->type.width;

    column->first = 0;
    *count = 0;
    if (column->length == 0) // Arrow allows no offsets at all then
        return place_buffer(encoder, index, 1, 0, width, err);
    TFOS__TRY(place_buffer(encoder, index, 1, column->length + 1, width, err));
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
static enum tfos_status measure_field(struct tfos__feed_batch_encoder *encoder,
                                      const struct ArrowArray *array, size_t index, int64_t offset,
                                      int64_t length, size_t *next, struct tfos_error *err)
{
    const struct tfos__feed_field *field = &encoder->schema.fields[index];
    struct tfos__feed_column_plan *column = &encoder->columns[index];
    int64_t first = 0, count = length;

    TFOS__TRY(check_shape(field, array, length, err));
    if (length > array->length - offset)
        return tfos__fail(err, TFOS_INVALID, "feed: column %s: has %lld values, %lld are needed",
                          field->name, (long long)array->length, (long long)(offset + length));
    bool has_nulls = tfos__arrow_has_nulls(array);
    *column = (struct tfos__feed_column_plan){
        .array = array, .offset = array->offset + offset, .length = length};
    column->null_count = !has_nulls ? 0 : length == array->length ? array->null_count : -1;
    TFOS__TRY(place_buffer(encoder, index, 0, has_nulls ? length : 0, 1, err));
    switch (field->type.layout) {
    case TFOS__ARROW_FIXED:
        TFOS__TRY(place_buffer(encoder, index, 1, length, field->type.width, err));
        break;
    case TFOS__ARROW_VARIABLE:
        TFOS__TRY(measure_offsets(encoder, index, &count, err));
        TFOS__TRY(place_buffer(encoder, index, 2, count, 8, err));
        break;
    case TFOS__ARROW_OFFSETS:
        TFOS__TRY(measure_offsets(encoder, index, &count, err));
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
        TFOS__TRY(measure_field(encoder, array->children[i], *next, first, count, next, err));
    return TFOS_OK;
}

static uint64_t table_size(const struct tfos__feed_schema *schema)
{
    uint64_t words = 0;

    for (size_t i = 0; i < schema->field_count; i++)
        words += 2 + 2 * (uint64_t)tfos__arrow_buffer_count(&schema->fields[i].type);
    return words * sizeof(uint64_t);
}

enum tfos_status tfos__feed_batch_encoder_measure(struct tfos__feed_batch_encoder *encoder,
                                                  const struct ArrowArray *array, int64_t row,
                                                  int64_t rows, struct tfos_error *err)
{
    size_t count = encoder->schema.field_count, next = 0;

    if (encoder->capacity < count) {
        struct tfos__feed_column_plan *columns =
            tfos__realloc(encoder->columns, count, sizeof(*columns));
        if (!columns)
            return tfos__no_memory(err, "feed", "the plan of a batch");
        encoder->columns = columns;
        encoder->capacity = count;
    }
    encoder->body_size = tfos__feed_record_pad(table_size(&encoder->schema));
    return measure_field(encoder, array, 0, row, rows, &next, err);
}

// Plans the rows that go into the next record: all where they need no more than half of the ring,
// else so many that a quarter holds them, but one at least.
static enum tfos_status fit(struct tfos__feed_batch_encoder *encoder,
                            const struct ArrowArray *array, uint64_t ring_size,
                            struct tfos_error *err)
{
    uint64_t limit = ring_size / 2;
    int64_t rows = array->length - encoder->row;

    for (;;) {
        TFOS__TRY(tfos__feed_batch_encoder_measure(encoder, array, encoder->row, rows, err));
        encoder->row_count = rows;
        uint64_t size = tfos__feed_record_size(encoder->body_size);
        if (size <= limit || rows <= 1)
            return TFOS_OK;
        limit = ring_size / 4;
        // In proportion, but with an end in sight when few rows have most of the bytes.
        int64_t guess = (int64_t)((double)rows * ((double)limit / (double)size));
        int64_t most = rows - rows / 8 - 1;
        rows = guess < 1 ? 1 : guess > most ? most : guess;
    }
}

// Makes the body of a batch that the ring cannot hold, for it to go out in pieces.
static enum tfos_status spill(struct tfos__feed_batch_encoder *encoder, struct tfos_error *err)
{
    encoder->spill = tfos__alloc(encoder->body_size, 1);
    if (!encoder->spill)
        return tfos__no_memory(err, "feed", "a large result");
    tfos__feed_batch_encoder_write_body(encoder, encoder->spill);
    return TFOS_OK;
}

static enum tfos_status set_next(struct tfos__feed_batch_encoder *encoder,
                                 enum tfos__feed_record_kind kind, uint64_t size)
{
    encoder->next_kind = kind;
    encoder->next_body_size = size;
    encoder->next_size = tfos__feed_record_size(size);
    return TFOS_OK;
}

enum tfos_status tfos__feed_batch_encoder_plan(struct tfos__feed_batch_encoder *encoder,
                                               const struct ArrowArray *array, uint64_t ring_size,
                                               struct tfos_error *err)
{
    if (encoder->row >= array->length)
        return TFOS_END;
    if (!encoder->is_schema_sent)
        return set_next(encoder, TFOS__FEED_RECORD_SCHEMA,
                        tfos__buffer_size(&encoder->schema_body));
    if (!encoder->spill) {
        TFOS__TRY(fit(encoder, array, ring_size, err));
        if (!encoder->makes_pieces || tfos__feed_record_size(encoder->body_size) <= ring_size)
            return set_next(encoder, TFOS__FEED_RECORD_BATCH, encoder->body_size);
        TFOS__TRY(spill(encoder, err));
    }
    uint64_t left = encoder->body_size - encoder->spill_sent;
    uint64_t most = ring_size / 4 - sizeof(struct tfos__feed_record);
    return set_next(encoder, left > 0 ? TFOS__FEED_RECORD_PIECE : TFOS__FEED_RECORD_BATCH,
                    left < most ? left : most);
}

// ---- writing

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

void tfos__feed_batch_encoder_write_body(struct tfos__feed_batch_encoder *encoder, uint8_t *body)
{
    const struct tfos__feed_schema *schema = &encoder->schema;
    uint64_t *word = (uint64_t *)(void *)body;

    uint64_t words_size = table_size(schema);
    memset(body + words_size, 0, tfos__feed_record_pad(words_size) - words_size);
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct tfos__feed_column_plan *column = &encoder->columns[i];
        *word++ = (uint64_t)column->length;
        *word++ = (uint64_t)column->null_count;
        for (int buffer = 0; buffer < tfos__arrow_buffer_count(&schema->fields[i].type); buffer++) {
            *word++ = column->places[buffer];
            *word++ = column->sizes[buffer];
            clear_padding(column, buffer, body);
        }
    }
    for (size_t i = 0; i < schema->field_count; i++)
        write_buffers(&encoder->copier, &encoder->columns[i], &schema->fields[i].type, body);
}

void tfos__feed_batch_encoder_write(struct tfos__feed_batch_encoder *encoder,
                                    const struct tfos__feed_record *head, uint8_t *space)
{
    uint64_t size = encoder->next_body_size;
    uint8_t *body = space + sizeof(*head);
    struct tfos__feed_record record = *head;

    record.kind = encoder->next_kind;
    record.size = encoder->next_size;
    record.body_size = size;
    record.rows = record.kind == TFOS__FEED_RECORD_BATCH ? encoder->row_count : 0;
    if (record.kind == TFOS__FEED_RECORD_PIECE)
        record.row = (int64_t)encoder->spill_sent;
    memcpy(space, &record, sizeof(record));
    if (record.kind == TFOS__FEED_RECORD_SCHEMA)
        memcpy(body, encoder->schema_body.data, size);
    else if (record.kind == TFOS__FEED_RECORD_PIECE)
        memcpy(body, encoder->spill + encoder->spill_sent, size);
    else if (!encoder->spill)
        tfos__feed_batch_encoder_write_body(encoder, body);
    memset(body + size, 0, tfos__feed_record_pad(size) - size);
}

int64_t tfos__feed_batch_encoder_advance(struct tfos__feed_batch_encoder *encoder)
{
    if (encoder->next_kind == TFOS__FEED_RECORD_SCHEMA)
        encoder->is_schema_sent = true;
    if (encoder->next_kind == TFOS__FEED_RECORD_PIECE)
        encoder->spill_sent += encoder->next_body_size;
    if (encoder->next_kind != TFOS__FEED_RECORD_BATCH)
        return 0;
    drop_spill(encoder);
    encoder->row += encoder->row_count;
    return encoder->row_count;
}

void tfos__feed_batch_encoder_clear(struct tfos__feed_batch_encoder *encoder)
{
    drop_spill(encoder);
    tfos__feed_schema_clear(&encoder->schema);
    tfos__buffer_clear(&encoder->schema_body);
    tfos__buffer_clear(&encoder->scratch);
    tfos__free(encoder->columns);
}
