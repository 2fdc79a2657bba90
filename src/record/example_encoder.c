// SPDX-License-Identifier: Apache-2.0
// A message's size stands before it. The list of a feature is written first, into a buffer of its
// own; with it the sizes of all that is around it are known, up to the map's entry. For the size of
// the map of features, as much room is left as that of the row before took, since rows are mostly
// alike.
#include <string.h>
#include <tfos/example.h>
#include <tfos/record.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/example_lists.h"

#define CONTEXT_FIELD 1
#define LISTS_FIELD 2
#define KEY_FIELD 1
#define VALUE_FIELD 2
#define ENTRY_FIELD 1
#define ITEM_FIELD 1      // of a feature list
#define MAPS_HEAD_SIZE 12 // tags and sizes of the two maps, at most

struct tfos_example_encoder {
    struct tfos__example_plan plan;
    bool is_exact;                        ///< nothing is rounded
    struct tfos_example_loss *losses;     ///< one a field of the plan; owned
    int64_t row_count;                    ///< of the batches before
    struct tfos__example_source *sources; ///< one a field of the plan; owned
    struct tfos__buffer list;             ///< of a feature
    struct tfos__buffer features;         ///< of a feature list
    struct tfos__buffer lists;            ///< the map of feature lists
    size_t map_room;                      ///< bytes of the tag and size of the last map of features
    struct tfos__buffer frames;
    struct tfos_view *records; ///< owned
    int64_t record_capacity;
};

enum tfos_status tfos_example_encoder_open(const struct ArrowSchema *schema,
                                           const struct tfos_example_encoder_options *options,
                                           struct tfos_example_encoder **out,
                                           struct tfos_error *err)
{
    static const struct tfos_example_encoder_options defaults;
    struct tfos_example_encoder *encoder = tfos__alloc(1, sizeof *encoder);
    if (!encoder)
        return tfos__no_memory(err, "record", "an encoder");
    if (!options)
        options = &defaults;
    encoder->is_exact = options->exact;
    encoder->plan.type = options->type;
    encoder->plan.type_names = options->type_names;
    enum tfos_status status = tfos__example_plan_init(&encoder->plan, schema, err);
    if (status == TFOS_OK) {
        encoder->sources = tfos__alloc(encoder->plan.field_count, sizeof *encoder->sources);
        encoder->losses = tfos__alloc(encoder->plan.field_count, sizeof *encoder->losses);
        if (!encoder->sources || !encoder->losses)
            status = tfos__no_memory(err, "record", "an encoder");
    }
    for (size_t i = 0; status == TFOS_OK && i < encoder->plan.field_count; i++)
        encoder->losses[i].column = encoder->plan.fields[i].name;
    if (status < 0)
        tfos_example_encoder_close(encoder);
    else
        *out = encoder;
    return status;
}

static void empty(struct tfos__buffer *buffer)
{
    buffer->begin = buffer->end = 0;
}

// Makes encoder->list the list of some values; says how large a Feature of it is.
static enum tfos_status make_list(struct tfos_example_encoder *encoder,
                                  const struct tfos__example_source *source,
                                  struct tfos__arrow_span range, size_t *feature_size,
                                  struct tfos_error *err)
{
    empty(&encoder->list);
    struct tfos_example_loss *loss = &encoder->losses[source - encoder->sources];
    TFOS__TRY(tfos__example_list_write(source, range, &encoder->list,
                                       encoder->is_exact ? NULL : loss, err));
    *feature_size = tfos__wire_bytes_size(encoder->list.end);
    return TFOS_OK;
}

// Appends a field that is a Feature of encoder->list.
static enum tfos_status append_feature(const struct tfos_example_encoder *encoder, uint32_t field,
                                       size_t feature_size, enum tfos__feature_kind kind,
                                       struct tfos__buffer *out, struct tfos_error *err)
{
    TFOS__TRY(tfos__buffer_reserve(out, tfos__wire_bytes_size(feature_size), err));
    out->end =
        (size_t)(tfos__wire_write_head(out->data + out->end, field, feature_size) - out->data);
    return tfos__wire_append_bytes(out, kind, encoder->list.data, encoder->list.end, err);
}

// Appends a map's entry for a column up to its value, which has `value_size` bytes.
static enum tfos_status append_key(const struct tfos__example_field *field, size_t value_size,
                                   struct tfos__buffer *map, struct tfos_error *err)
{
    size_t size = tfos__wire_bytes_size(field->name_size) + tfos__wire_bytes_size(value_size);
    TFOS__TRY(tfos__buffer_reserve(map, tfos__wire_bytes_size(size), err));
    map->end = (size_t)(tfos__wire_write_head(map->data + map->end, ENTRY_FIELD, size) - map->data);
    return tfos__wire_append_bytes(map, KEY_FIELD, field->name, field->name_size, err);
}

static enum tfos_status append_plain(struct tfos_example_encoder *encoder,
                                     const struct tfos__example_source *source, int64_t row,
                                     struct tfos_error *err)
{
    struct tfos__arrow_span range = {source->offset + row, 1};
    size_t size = 0;
    if (source->field->level_count == 1)
        TFOS__TRY(tfos__example_source_list(source, 0, range.first, &range, err));
    TFOS__TRY(make_list(encoder, source, range, &size, err));
    TFOS__TRY(append_key(source->field, size, &encoder->frames, err));
    return append_feature(encoder, VALUE_FIELD, size, source->field->kind, &encoder->frames, err);
}

static enum tfos_status append_list(struct tfos_example_encoder *encoder,
                                    const struct tfos__example_source *source, int64_t row,
                                    struct tfos_error *err)
{
    struct tfos__buffer *features = &encoder->features;
    struct tfos__arrow_span steps, range;
    size_t size = 0;
    TFOS__TRY(tfos__example_source_list(source, 0, source->offset + row, &steps, err));
    empty(features);
    for (int64_t step = 0; step < steps.count; step++) {
        TFOS__TRY(tfos__example_source_list(source, 1, steps.first + step, &range, err));
        TFOS__TRY(make_list(encoder, source, range, &size, err));
        TFOS__TRY(append_feature(encoder, ITEM_FIELD, size, source->field->kind, features, err));
    }
    TFOS__TRY(append_key(source->field, features->end, &encoder->lists, err));
    return tfos__wire_append_bytes(&encoder->lists, VALUE_FIELD, features->data, features->end,
                                   err);
}

// Appends the map of features to the frames, and makes that of feature lists.
static enum tfos_status append_maps(struct tfos_example_encoder *encoder, int64_t row,
                                    struct tfos_error *err)
{
    struct tfos__buffer *frames = &encoder->frames;
    size_t begin = frames->end, room = encoder->map_room;
    empty(&encoder->lists);
    TFOS__TRY(tfos__buffer_reserve(frames, room, err));
    frames->end += room;
    for (size_t i = 0; i < encoder->plan.field_count; i++) {
        const struct tfos__example_source *source = &encoder->sources[i];
        if (tfos__arrow_is_null(source->levels[0], source->offset + row)) {
            if (source->field->is_nullable)
                continue;
            return tfos__fail(err, TFOS_INVALID,
                              "column %s: a null, and the schema says that there is none",
                              source->field->name);
        }
        TFOS__TRY(source->field->level_count == 2 ? append_list(encoder, source, row, err)
                                                  : append_plain(encoder, source, row, err));
        TFOS__TRY(tfos__example_size_check(
            source->field, frames->end - begin - room + encoder->lists.end + MAPS_HEAD_SIZE, err));
    }
    return tfos__wire_insert_head(frames, CONTEXT_FIELD, begin, &encoder->map_room, err);
}

// Appends the record of a row to the frames, without its frame.
static enum tfos_status append_row(struct tfos_example_encoder *encoder, int64_t row,
                                   struct tfos_error *err)
{
    TFOS__TRY(append_maps(encoder, row, err));
    if (encoder->plan.type != TFOS_RECORD_SEQUENCE_EXAMPLE)
        return TFOS_OK;
    return tfos__wire_append_bytes(&encoder->frames, LISTS_FIELD, encoder->lists.data,
                                   encoder->lists.end, err);
}

static enum tfos_status append_bytes(struct tfos_example_encoder *encoder, int64_t row,
                                     struct tfos_error *err)
{
    const struct tfos__example_source *source = &encoder->sources[0];
    if (tfos__arrow_is_null(source->levels[0], source->offset + row))
        return tfos__fail(err, TFOS_INVALID, "column %s: a null, which no record stands for",
                          source->field->name);
    struct tfos_view text = tfos__arrow_bytes(tfos__example_source_type(source), source->levels[0],
                                              source->offset + row);
    return tfos__buffer_append(&encoder->frames, text.data, text.size, err);
}

// Appends the frame of a row. Only sizes are kept: the bytes may still move.
static enum tfos_status append_frame(struct tfos_example_encoder *encoder, int64_t row,
                                     struct tfos_error *err)
{
    struct tfos__buffer *frames = &encoder->frames;
    struct tfos_record_frame frame;
    size_t begin = frames->end + sizeof frame.head;
    TFOS__TRY(tfos__buffer_reserve(frames, sizeof frame, err));
    frames->end = begin;
    enum tfos_status status = encoder->plan.type == TFOS_RECORD_BYTES
                                  ? append_bytes(encoder, row, err)
                                  : append_row(encoder, row, err);
    if (status < 0) {
        tfos__fail_prefix(err, "record: row %lld", (long long)(encoder->row_count + row));
        return status;
    }
    size_t size = frames->end - begin;
    tfos_record_frame_init(&frame, frames->data + begin, size);
    memcpy(frames->data + begin - sizeof frame.head, frame.head, sizeof frame.head);
    encoder->records[row].size = size;
    return tfos__buffer_append(frames, frame.tail, sizeof frame.tail, err);
}

static enum tfos_status reserve_records(struct tfos_example_encoder *encoder, int64_t count,
                                        struct tfos_error *err)
{
    if (count <= encoder->record_capacity)
        return TFOS_OK;
    struct tfos_view *records =
        tfos__realloc(encoder->records, (size_t)count, sizeof *encoder->records);
    if (!records)
        return tfos__no_memory(err, "record", "a batch of records");
    encoder->records = records;
    encoder->record_capacity = count;
    return TFOS_OK;
}

enum tfos_status tfos_example_encoder_encode(struct tfos_example_encoder *encoder,
                                             const struct ArrowArray *batch,
                                             struct tfos_view *frames,
                                             const struct tfos_view **records,
                                             struct tfos_error *err)
{
    struct tfos_record_frame frame;
    enum tfos_status status =
        tfos__example_sources_find(&encoder->plan, batch, encoder->sources, err);
    if (status < 0) {
        tfos__fail_prefix(err, "record: behind %lld rows", (long long)encoder->row_count);
        return status;
    }
    TFOS__TRY(reserve_records(encoder, batch->length, err));
    empty(&encoder->frames);
    for (int64_t row = 0; row < batch->length; row++)
        TFOS__TRY(append_frame(encoder, row, err));
    const uint8_t *at = encoder->frames.data;
    for (int64_t row = 0; row < batch->length; row++) {
        encoder->records[row].data = at + sizeof frame.head;
        at += sizeof frame.head + encoder->records[row].size + sizeof frame.tail;
    }
    encoder->row_count += batch->length;
    *frames = (struct tfos_view){encoder->frames.data, encoder->frames.end};
    if (records)
        *records = encoder->records;
    return TFOS_OK;
}

const struct tfos_example_loss *
tfos_example_encoder_losses(const struct tfos_example_encoder *encoder, size_t *count)
{
    *count = encoder->plan.field_count;
    return encoder->losses;
}

void tfos_example_encoder_close(struct tfos_example_encoder *encoder)
{
    if (!encoder)
        return;
    struct tfos__buffer *buffers[] = {&encoder->list, &encoder->features, &encoder->lists,
                                      &encoder->frames};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        tfos__buffer_clear(buffers[i]);
    tfos__free(encoder->records);
    tfos__free(encoder->sources);
    tfos__free(encoder->losses);
    tfos__example_plan_clear(&encoder->plan);
    tfos__free(encoder);
}
