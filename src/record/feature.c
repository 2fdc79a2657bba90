// SPDX-License-Identifier: Apache-2.0
// Example { Features features = 1 }, SequenceExample { Features context = 1; FeatureLists
// feature_lists = 2 }; both of these are { map<string, ...> = 1 }, and a map is a list of entries
// { key = 1, value = 2 }. A value is a Feature { BytesList = 1 | FloatList = 2 | Int64List = 3 } or
// a FeatureList { repeated Feature = 1 }. A known field of another wire type is an unknown one.
#include "record/feature.h"

#include "base/fail.h"
#include "base/memory.h"
#include "record/wire.h"

#define FIRST_CAPACITY 4
#define CONTEXT_FIELD 1
#define LISTS_FIELD 2
#define KEY_FIELD 1
#define VALUE_FIELD 2

const char *tfos__record_feature_kind_name(enum tfos__record_feature_kind kind)
{
    static const char *const names[] = {"of no kind", "a bytes_list", "a float_list",
                                        "an int64_list"};
    return names[kind];
}

// Functions that parse return CORRUPT without a message; tfos__record_features_read() writes it. As
// the record's checksum is right, it is not damaged but another message.
static enum tfos_status conclude(enum tfos_status status)
{
    return status == TFOS_END ? TFOS_OK : status;
}

static enum tfos_status add_chunk(struct tfos__record_feature *feature,
                                  struct tfos__record_feature_chunk chunk, struct tfos_error *err)
{
    if (feature->chunk_count == feature->chunk_capacity) {
        uint32_t capacity =
            feature->chunk_capacity > 0 ? 2 * feature->chunk_capacity : FIRST_CAPACITY;
        struct tfos__record_feature_chunk *chunks =
            tfos__realloc(feature->chunks, capacity, sizeof(*chunks));
        if (!chunks)
            return tfos__no_memory(err, "record", "a record's features");
        feature->chunks = chunks;
        feature->chunk_capacity = capacity;
    }
    feature->chunks[feature->chunk_count++] = chunk;
    return TFOS_OK;
}

// Joins the lists of a Feature to those of the step, which begin at chunk `first`.
static enum tfos_status read_feature(struct tfos_view message, struct tfos__record_feature *feature,
                                     uint32_t step, uint32_t first, struct tfos_error *err)
{
    struct tfos__record_wire wire = tfos__record_wire_of(message);
    enum tfos_status status;
    struct tfos_view list;
    uint32_t field;
    while ((status = tfos__record_wire_next(&wire, TFOS__FEATURE_INT64, &field, &list)) ==
           TFOS_OK) {
        enum tfos__record_feature_kind kind = (enum tfos__record_feature_kind)field;
        if (feature->chunk_count > first && feature->chunks[feature->chunk_count - 1].kind != kind)
            feature->chunk_count = first;
        TFOS__TRY(add_chunk(feature, (struct tfos__record_feature_chunk){kind, step, list}, err));
    }
    return conclude(status);
}

// Adds the Features of a FeatureList.
static enum tfos_status read_feature_list(struct tfos_view message,
                                          struct tfos__record_feature *feature,
                                          struct tfos_error *err)
{
    struct tfos__record_wire wire = tfos__record_wire_of(message);
    enum tfos_status status;
    struct tfos_view item;
    uint32_t field;
    while ((status = tfos__record_wire_next(&wire, 1, &field, &item)) == TFOS_OK)
        TFOS__TRY(read_feature(item, feature, feature->step_count++, feature->chunk_count, err));
    return conclude(status);
}

/// Where features go.
struct destination {
    tfos__record_feature_finder *find;
    void *context;
    bool is_list;         ///< feature lists
    uint32_t entry_count; ///< of the maps read so far
};

static enum tfos_status read_value(struct tfos_view value, const struct destination *destination,
                                   struct tfos__record_feature *feature, struct tfos_error *err)
{
    return destination->is_list ? read_feature_list(value, feature, err)
                                : read_feature(value, feature, 0, 0, err);
}

// A map's entry. Its value may come in parts, and before its key.
static enum tfos_status read_entry(struct tfos_view message, struct destination *destination,
                                   struct tfos_error *err)
{
    struct tfos__record_wire wire = tfos__record_wire_of(message);
    enum tfos_status status;
    struct tfos_view key = {"", 0}, value = {"", 0}, bytes;
    uint32_t field, part_count = 0;
    bool is_entry = message.size == 0; // what has neither key nor value is another message
    while ((status = tfos__record_wire_next(&wire, VALUE_FIELD, &field, &bytes)) == TFOS_OK) {
        is_entry = true;
        part_count += field == VALUE_FIELD;
        *(field == KEY_FIELD ? &key : &value) = bytes;
    }
    TFOS__TRY(conclude(status));
    destination->entry_count += is_entry;
    struct tfos__record_feature *feature =
        destination->find(destination->context, key, destination->is_list);
    if (!feature)
        return TFOS_OK;
    tfos__record_feature_reset(feature);
    feature->is_present = true;
    feature->step_count = destination->is_list ? 0 : 1;
    if (part_count <= 1)
        return read_value(value, destination, feature, err);
    wire = tfos__record_wire_of(message);
    while (tfos__record_wire_next(&wire, VALUE_FIELD, &field, &bytes) == TFOS_OK)
        if (field == VALUE_FIELD)
            TFOS__TRY(read_value(bytes, destination, feature, err));
    return TFOS_OK;
}

static enum tfos_status read_map(struct tfos_view message, struct destination *destination,
                                 struct tfos_error *err)
{
    struct tfos__record_wire wire = tfos__record_wire_of(message);
    enum tfos_status status;
    struct tfos_view entry;
    uint32_t field;
    while ((status = tfos__record_wire_next(&wire, 1, &field, &entry)) == TFOS_OK)
        TFOS__TRY(read_entry(entry, destination, err));
    return conclude(status);
}

static struct tfos__record_feature *note_name(void *context, struct tfos_view name, bool is_list)
{
    (void)is_list;
    *(struct tfos_view *)context = name;
    return NULL;
}

// Refuses a field in the place of a SequenceExample's feature lists, if it is one.
static enum tfos_status refuse_lists(struct tfos_view map, struct tfos_error *err)
{
    struct tfos_view name = {"", 0};
    struct destination destination = {note_name, &name, true, 0};
    if (read_map(map, &destination, NULL) != TFOS_OK || destination.entry_count == 0)
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT,
                      "the record is a SequenceExample, with feature lists (%.*s) that an Example "
                      "does not have: read it with the record type SequenceExample",
                      tfos__record_name_width(name), (const char *)name.data);
}

// Whether a record without features is a message of its type, and not another one.
static bool is_without_features(struct tfos_view record)
{
    struct tfos__record_wire wire = tfos__record_wire_of(record);
    struct tfos_view map;
    enum tfos__record_wire_type type;
    uint32_t field;
    while (wire.at < wire.end)
        if (!tfos__record_wire_read_tag(&wire, &field, &type) || type != TFOS__WIRE_BYTES ||
            field > LISTS_FIELD || !tfos__record_wire_read_bytes(&wire, &map) || map.size > 0)
            return false;
    return true;
}

enum tfos_status tfos__record_features_read(struct tfos_view record, enum tfos_record_type type,
                                            tfos__record_feature_finder *find, void *context,
                                            struct tfos_error *err)
{
    bool has_lists = type == TFOS_RECORD_SEQUENCE_EXAMPLE;
    struct destination features = {find, context, false, 0}, lists = {find, context, true, 0};
    struct tfos__record_wire wire = tfos__record_wire_of(record);
    enum tfos_status status;
    struct tfos_view map;
    uint32_t field;
    while ((status = tfos__record_wire_next(&wire, LISTS_FIELD, &field, &map)) == TFOS_OK) {
        if (field == LISTS_FIELD && !has_lists) {
            TFOS__TRY(refuse_lists(map, err));
            continue;
        }
        status = read_map(map, field == LISTS_FIELD ? &lists : &features, err);
        if (status < 0)
            break;
    }
    bool is_read = status == TFOS_END &&
                   (features.entry_count + lists.entry_count > 0 || is_without_features(record));
    if (is_read)
        return TFOS_OK;
    if (status < 0 && status != TFOS_CORRUPT)
        return status;
    return tfos__fail(err, TFOS_CORRUPT,
                      "the record is no %s but another message, or none: the record type ByteArray "
                      "gives its bytes as they are",
                      has_lists ? "SequenceExample" : "Example");
}

void tfos__record_feature_clear(struct tfos__record_feature *feature)
{
    tfos__free(feature->chunks);
    *feature = (struct tfos__record_feature){0};
}
