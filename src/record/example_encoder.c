// SPDX-License-Identifier: Apache-2.0
// The size of a message comes before it. The list of a feature is written first, into a buffer of
// its own: then the sizes of the messages around it are known, up to the map's entry. For the size
// of the map of features, as many bytes are reserved as it took in the last row.
#include <string.h>
#include <tfos/example.h>
#include <tfos/record.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/list_encoder.h"
#include "record/wire.h"

#define CONTEXT_FIELD 1
#define LISTS_FIELD 2
#define KEY_FIELD 1
#define VALUE_FIELD 2
#define ENTRY_FIELD 1
#define ITEM_FIELD 1      // of a feature list
#define MAPS_HEAD_SIZE 12 // tags and sizes of the two maps, at most

/// A column of the current batch.
struct source {
    const struct tfos__record_field *field; ///< borrowed
    int64_t offset;                         ///< index of the first row in levels[0]
    /// The arrays of the lists, outermost first, then that of the values; borrowed from the batch.
    const struct ArrowArray *levels[TFOS__EXAMPLE_LEVELS + 1];
};

struct tfos_example_encoder {
    struct tfos__record_schema schema;
    bool is_exact;                    ///< nothing is rounded
    struct tfos_example_loss *losses; ///< one a field of the schema; owned
    int64_t row_count;                ///< of the batches before
    struct source *sources;           ///< one a field of the schema; owned
    struct tfos__buffer list;         ///< of a feature
    struct tfos__buffer features;     ///< of a feature list
    struct tfos__buffer lists;        ///< the map of feature lists
    size_t map_room;                  ///< bytes of the tag and size of the last map of features
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
    struct tfos_example_encoder *encoder = tfos__alloc(1, sizeof(*encoder));
    if (!encoder)
        return tfos__no_memory(err, "record", "an encoder");
    if (!options)
        options = &defaults;
    encoder->is_exact = options->exact;
    encoder->schema.type = options->type;
    encoder->schema.type_names = options->type_names;
    enum tfos_status status = tfos__record_schema_init(&encoder->schema, schema, err);
    if (status == TFOS_OK) {
        encoder->sources = tfos__alloc(encoder->schema.field_count, sizeof(*encoder->sources));
        encoder->losses = tfos__alloc(encoder->schema.field_count, sizeof(*encoder->losses));
        if (!encoder->sources || !encoder->losses)
            status = tfos__no_memory(err, "record", "an encoder");
    }
    for (size_t i = 0; status == TFOS_OK && i < encoder->schema.field_count; i++)
        encoder->losses[i].column = encoder->schema.fields[i].name;
    if (status < 0)
        tfos_example_encoder_close(encoder);
    else
        *out = encoder;
    return status;
}

// ---- columns of a batch
//
// The children of a struct begin at the offset of the struct, those of a list at 0; each array adds
// its own offset.

/// The state of the search for the columns of a batch.
struct search {
    const struct tfos__record_schema *schema;
    struct source *sources;
    size_t field;
};

static enum tfos_status mismatch(const char *name, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_INVALID,
                      "column %s: the batch is not of the schema that the encoder was made "
                      "for",
                      name);
}

static enum tfos_status find_leaf(struct source *source, const struct ArrowArray *array,
                                  struct tfos_error *err)
{
    const struct tfos__record_field *field = source->field;
    for (int i = 0; i <= field->level_count; i++) {
        const struct tfos__arrow_builder *level = field->levels[i];
        if (!tfos__arrow_fits(&level->type, array, level->child_count))
            return mismatch(field->name, err);
        source->levels[i] = array;
        array = i < field->level_count ? array->children[0] : NULL;
    }
    return TFOS_OK;
}

// `offset` is the index of the first row in the array.
static enum tfos_status find_node(struct search *search, const struct tfos__arrow_builder *node,
                                  const struct ArrowArray *array, int64_t offset, int64_t row_count,
                                  struct tfos_error *err)
{
    const struct tfos__record_field *field = &search->schema->fields[search->field];
    bool is_any_left = search->field < search->schema->field_count;
    if (node->type.kind != TFOS__ARROW_STRUCT) {
        struct source *source = &search->sources[search->field++];
        *source = (struct source){.field = field, .offset = offset};
        return find_leaf(source, array, err);
    }
    const char *first = is_any_left ? field->name : "of the batch";
    if (!tfos__arrow_fits(&node->type, array, node->child_count))
        return mismatch(first, err);
    int64_t null = tfos__arrow_find_null(array, offset, row_count);
    if (null >= 0)
        return tfos__fail(err, TFOS_INVALID,
                          "row %lld, column %s: the struct that it is in is null, "
                          "which a record cannot say",
                          (long long)(null - offset), first);
    for (int64_t i = 0; i < node->child_count; i++)
        TFOS__TRY(find_node(search, &node->children[i], array->children[i], array->offset + offset,
                            row_count, err));
    return TFOS_OK;
}

static enum tfos_status find_sources(struct tfos_example_encoder *encoder,
                                     const struct ArrowArray *batch, struct tfos_error *err)
{
    struct search search = {.schema = &encoder->schema, .sources = encoder->sources};
    return find_node(&search, &encoder->schema.rows, batch, 0, batch->length, err);
}

// What list number `index` of a level holds. INVALID: it is null.
static enum tfos_status find_list(const struct source *source, int level, int64_t index,
                                  struct tfos__arrow_span *span, struct tfos_error *err)
{
    const struct ArrowArray *array = source->levels[level];
    if (tfos__arrow_is_null(array, index))
        return tfos__fail(err, TFOS_INVALID,
                          "column %s: a null within a list, which a record cannot hold",
                          source->field->name);
    *span = tfos__arrow_list(&source->field->levels[level]->type, array, index);
    return TFOS_OK;
}

// ---- records

static void empty(struct tfos__buffer *buffer)
{
    buffer->begin = buffer->end = 0;
}

// Encodes the list of some values into encoder->list; `*feature_size` is the size of its Feature.
static enum tfos_status make_list(struct tfos_example_encoder *encoder, const struct source *source,
                                  struct tfos__arrow_span range, size_t *feature_size,
                                  struct tfos_error *err)
{
    empty(&encoder->list);
    struct tfos_example_loss *loss = &encoder->losses[source - encoder->sources];
    TFOS__TRY(tfos__record_list_encode(source->field, source->levels[source->field->level_count],
                                       range, &encoder->list, encoder->is_exact ? NULL : loss,
                                       err));
    *feature_size = tfos__record_wire_bytes_size(encoder->list.end);
    return TFOS_OK;
}

// Appends a field that is a Feature of encoder->list.
static enum tfos_status append_feature(const struct tfos_example_encoder *encoder, uint32_t field,
                                       size_t feature_size, enum tfos__record_feature_kind kind,
                                       struct tfos__buffer *out, struct tfos_error *err)
{
    TFOS__TRY(tfos__record_wire_append_head(out, field, feature_size, err));
    return tfos__record_wire_append_bytes(out, kind, encoder->list.data, encoder->list.end, err);
}

// Appends a map's entry for a column up to its value, which has `value_size` bytes.
static enum tfos_status append_key(const struct tfos__record_field *field, size_t value_size,
                                   struct tfos__buffer *map, struct tfos_error *err)
{
    size_t size =
        tfos__record_wire_bytes_size(field->name_size) + tfos__record_wire_bytes_size(value_size);
    TFOS__TRY(tfos__record_wire_append_head(map, ENTRY_FIELD, size, err));
    return tfos__record_wire_append_bytes(map, KEY_FIELD, field->name, field->name_size, err);
}

static enum tfos_status append_plain(struct tfos_example_encoder *encoder,
                                     const struct source *source, int64_t row,
                                     struct tfos_error *err)
{
    struct tfos__arrow_span range = {source->offset + row, 1};
    size_t size = 0;
    if (source->field->level_count == 1)
        TFOS__TRY(find_list(source, 0, range.first, &range, err));
    TFOS__TRY(make_list(encoder, source, range, &size, err));
    TFOS__TRY(append_key(source->field, size, &encoder->frames, err));
    return append_feature(encoder, VALUE_FIELD, size, source->field->kind, &encoder->frames, err);
}

static enum tfos_status append_list(struct tfos_example_encoder *encoder,
                                    const struct source *source, int64_t row,
                                    struct tfos_error *err)
{
    struct tfos__buffer *features = &encoder->features;
    struct tfos__arrow_span steps, range;
    size_t size = 0;
    TFOS__TRY(find_list(source, 0, source->offset + row, &steps, err));
    empty(features);
    for (int64_t step = 0; step < steps.count; step++) {
        TFOS__TRY(find_list(source, 1, steps.first + step, &range, err));
        TFOS__TRY(make_list(encoder, source, range, &size, err));
        TFOS__TRY(append_feature(encoder, ITEM_FIELD, size, source->field->kind, features, err));
    }
    TFOS__TRY(append_key(source->field, features->end, &encoder->lists, err));
    return tfos__record_wire_append_bytes(&encoder->lists, VALUE_FIELD, features->data,
                                          features->end, err);
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
    for (size_t i = 0; i < encoder->schema.field_count; i++) {
        const struct source *source = &encoder->sources[i];
        if (tfos__arrow_is_null(source->levels[0], source->offset + row)) {
            if (source->field->is_nullable)
                continue;
            return tfos__fail(err, TFOS_INVALID,
                              "column %s: a null, and the schema says that there is none",
                              source->field->name);
        }
        TFOS__TRY(source->field->level_count == 2 ? append_list(encoder, source, row, err)
                                                  : append_plain(encoder, source, row, err));
        TFOS__TRY(tfos__record_check_message_size(
            source->field, frames->end - begin - room + encoder->lists.end + MAPS_HEAD_SIZE, err));
    }
    return tfos__record_wire_insert_head(frames, CONTEXT_FIELD, begin, &encoder->map_room, err);
}

// Appends the record of a row to the frames, without its frame.
static enum tfos_status append_row(struct tfos_example_encoder *encoder, int64_t row,
                                   struct tfos_error *err)
{
    TFOS__TRY(append_maps(encoder, row, err));
    if (encoder->schema.type != TFOS_RECORD_SEQUENCE_EXAMPLE)
        return TFOS_OK;
    return tfos__record_wire_append_bytes(&encoder->frames, LISTS_FIELD, encoder->lists.data,
                                          encoder->lists.end, err);
}

static enum tfos_status append_bytes(struct tfos_example_encoder *encoder, int64_t row,
                                     struct tfos_error *err)
{
    const struct source *source = &encoder->sources[0];
    if (tfos__arrow_is_null(source->levels[0], source->offset + row))
        return tfos__fail(err, TFOS_INVALID, "column %s: a null, which no record stands for",
                          source->field->name);
    struct tfos_view text = tfos__arrow_bytes(&tfos__record_field_values(source->field)->type,
                                              source->levels[0], source->offset + row);
    return tfos__buffer_append(&encoder->frames, text.data, text.size, err);
}

// Appends the frame of a row. Only sizes are kept: the bytes may still move.
static enum tfos_status append_frame(struct tfos_example_encoder *encoder, int64_t row,
                                     struct tfos_error *err)
{
    struct tfos__buffer *frames = &encoder->frames;
    struct tfos_record_frame frame;
    size_t begin = frames->end + sizeof(frame.head);
    TFOS__TRY(tfos__buffer_reserve(frames, sizeof(frame), err));
    frames->end = begin;
    enum tfos_status status = encoder->schema.type == TFOS_RECORD_BYTES
                                  ? append_bytes(encoder, row, err)
                                  : append_row(encoder, row, err);
    if (status < 0) {
        tfos__fail_prefix(err, "record: row %lld", (long long)(encoder->row_count + row));
        return status;
    }
    size_t size = frames->end - begin;
    tfos_record_frame_init(&frame, frames->data + begin, size);
    memcpy(frames->data + begin - sizeof(frame.head), frame.head, sizeof(frame.head));
    encoder->records[row].size = size;
    return tfos__buffer_append(frames, frame.tail, sizeof(frame.tail), err);
}

static enum tfos_status reserve_records(struct tfos_example_encoder *encoder, int64_t count,
                                        struct tfos_error *err)
{
    if (count <= encoder->record_capacity)
        return TFOS_OK;
    struct tfos_view *records =
        tfos__realloc(encoder->records, (size_t)count, sizeof(*encoder->records));
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
    enum tfos_status status = find_sources(encoder, batch, err);
    TFOS__TRY(
        tfos__fail_in(err, status, "record: behind %lld rows", (long long)encoder->row_count));
    TFOS__TRY(reserve_records(encoder, batch->length, err));
    empty(&encoder->frames);
    for (int64_t row = 0; row < batch->length; row++)
        TFOS__TRY(append_frame(encoder, row, err));
    const uint8_t *at = encoder->frames.data;
    for (int64_t row = 0; row < batch->length; row++) {
        encoder->records[row].data = at + sizeof(frame.head);
        at += sizeof(frame.head) + encoder->records[row].size + sizeof(frame.tail);
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
    *count = encoder->schema.field_count;
    return encoder->losses;
}

void tfos_example_encoder_close(struct tfos_example_encoder *encoder)
{
    if (!encoder)
        return;
    struct tfos__buffer *buffers[] = {&encoder->list, &encoder->features, &encoder->lists,
                                      &encoder->frames};
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
        tfos__buffer_clear(buffers[i]);
    tfos__free(encoder->records);
    tfos__free(encoder->sources);
    tfos__free(encoder->losses);
    tfos__record_schema_clear(&encoder->schema);
    tfos__free(encoder);
}
