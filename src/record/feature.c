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

const char *tfos__feature_kind_name(enum tfos__feature_kind kind)
{
    static const char *const names[] = {"no list", "bytes_list", "float_list", "int64_list"};
    return names[kind];
}

// The end of reading a message's fields: `status` is that of tfos__wire_next().
static enum tfos_status conclude(enum tfos_status status, const char *message,
                                 struct tfos_error *err)
{
    if (status == TFOS_END)
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT, "it is no %s, or a damaged one", message);
}

static enum tfos_status add_piece(struct tfos__feature *feature, struct tfos__feature_piece piece,
                                  struct tfos_error *err)
{
    if (feature->piece_count == feature->piece_capacity) {
        uint32_t capacity =
            feature->piece_capacity > 0 ? 2 * feature->piece_capacity : FIRST_CAPACITY;
        struct tfos__feature_piece *pieces =
            tfos__realloc(feature->pieces, capacity, sizeof *pieces);
        if (!pieces)
            return tfos__no_memory(err, "record", "a record's features");
        feature->pieces = pieces;
        feature->piece_capacity = capacity;
    }
    feature->pieces[feature->piece_count++] = piece;
    return TFOS_OK;
}

// Joins the lists of a Feature to those of the step, which begin at piece `first`.
static enum tfos_status read_feature(struct tfos_view message, struct tfos__feature *feature,
                                     uint32_t step, uint32_t first, struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(message);
    enum tfos_status status;
    struct tfos_view list;
    uint32_t field;
    while ((status = tfos__wire_next(&wire, TFOS__FEATURE_INT64, &field, &list)) == TFOS_OK) {
        enum tfos__feature_kind kind = (enum tfos__feature_kind)field;
        if (feature->piece_count > first && feature->pieces[feature->piece_count - 1].kind != kind)
            feature->piece_count = first;
        TFOS__TRY(add_piece(feature, (struct tfos__feature_piece){kind, step, list}, err));
    }
    return conclude(status, "Feature", err);
}

// Adds the Features of a FeatureList.
static enum tfos_status read_feature_list(struct tfos_view message, struct tfos__feature *feature,
                                          struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(message);
    enum tfos_status status;
    struct tfos_view item;
    uint32_t field;
    while ((status = tfos__wire_next(&wire, 1, &field, &item)) == TFOS_OK)
        TFOS__TRY(read_feature(item, feature, feature->step_count++, feature->piece_count, err));
    return conclude(status, "FeatureList", err);
}

/// Where features go.
struct destination {
    tfos__feature_finder *find;
    void *context;
    bool is_list; ///< feature lists
};

static enum tfos_status read_value(struct tfos_view value, const struct destination *destination,
                                   struct tfos__feature *feature, struct tfos_error *err)
{
    return destination->is_list ? read_feature_list(value, feature, err)
                                : read_feature(value, feature, 0, 0, err);
}

// A map's entry. Its value may come in parts, and before its key.
static enum tfos_status read_entry(struct tfos_view message, const struct destination *destination,
                                   struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(message);
    enum tfos_status status;
    struct tfos_view key = {"", 0}, value = {"", 0}, bytes;
    uint32_t field, part_count = 0;
    while ((status = tfos__wire_next(&wire, VALUE_FIELD, &field, &bytes)) == TFOS_OK) {
        part_count += field == VALUE_FIELD;
        *(field == KEY_FIELD ? &key : &value) = bytes;
    }
    TFOS__TRY(conclude(status, "map entry", err));
    struct tfos__feature *feature =
        destination->find(destination->context, key, destination->is_list);
    if (!feature)
        return TFOS_OK;
    tfos__feature_reset(feature);
    feature->is_present = true;
    feature->step_count = destination->is_list ? 0 : 1;
    if (part_count <= 1)
        return read_value(value, destination, feature, err);
    wire = tfos__wire_of(message);
    while (tfos__wire_next(&wire, VALUE_FIELD, &field, &bytes) == TFOS_OK)
        if (field == VALUE_FIELD)
            TFOS__TRY(read_value(bytes, destination, feature, err));
    return TFOS_OK;
}

static enum tfos_status read_map(struct tfos_view message, const struct destination *destination,
                                 struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(message);
    enum tfos_status status;
    struct tfos_view entry;
    uint32_t field;
    while ((status = tfos__wire_next(&wire, 1, &field, &entry)) == TFOS_OK)
        TFOS__TRY(read_entry(entry, destination, err));
    return conclude(status, destination->is_list ? "FeatureLists" : "Features", err);
}

enum tfos_status tfos__features_read(struct tfos_view record, enum tfos_record_type type,
                                     tfos__feature_finder *find, void *context,
                                     struct tfos_error *err)
{
    bool has_lists = type == TFOS_RECORD_SEQUENCE_EXAMPLE;
    struct tfos__wire wire = tfos__wire_of(record);
    enum tfos_status status;
    struct tfos_view map;
    uint32_t field;
    while ((status = tfos__wire_next(&wire, has_lists ? LISTS_FIELD : CONTEXT_FIELD, &field,
                                     &map)) == TFOS_OK) {
        struct destination destination = {find, context, field == LISTS_FIELD};
        TFOS__TRY(read_map(map, &destination, err));
    }
    return conclude(status, has_lists ? "SequenceExample" : "Example", err);
}

void tfos__feature_clear(struct tfos__feature *feature)
{
    tfos__free(feature->pieces);
    *feature = (struct tfos__feature){0};
}
