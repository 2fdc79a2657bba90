// SPDX-License-Identifier: Apache-2.0
// Inferring a schema from records. The kind of a feature, whether it is a list and whether its
// bytes are text depend on all records that have it.
#include <string.h>
#include <tfos/example_file.h>

#include "arrow/arrow.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/feature.h"
#include "record/name_index.h"
#include "record/record.h"
#include "record/wire.h"

#define FEATURES_LIMIT 100000 // most features that are kept
#define FIRST_CAPACITY 16
#define VIEW_COUNT 256

/// What the records say of a feature.
struct summary {
    const char *name;                    ///< borrowed from the index of names
    enum tfos__record_feature_kind kind; ///< of all values; without values, of empty lists
    bool has_values;
    bool is_known;        ///< a record had it, so that `is_feature_list` counts
    bool is_feature_list; ///< of a SequenceExample
    char *place;          ///< file and offset of a record with it; owned, or NULL
    bool is_list;         ///< some record had not exactly one value
    bool is_text;         ///< all bytes were UTF-8
    struct tfos__record_feature plain, list; ///< in the current record
};

struct tfos_schema_inference {
    enum tfos_record_type type;
    struct summary *summaries; ///< in the order in which features were first seen; owned
    uint32_t count, capacity;
    struct tfos__record_name_index names; ///< in the same order
    uint64_t skipped;                     ///< damages in files without a good record
    enum tfos_status status;              ///< of finding the features of a record
    struct tfos_error failure;
    struct tfos_record_reader *frames; ///< of the current records; or NULL
    const char *file;                  ///< its name; NULL with `frames`
};

enum tfos_status tfos_schema_inference_open(enum tfos_record_type type,
                                            struct tfos_schema_inference **out,
                                            struct tfos_error *err)
{
    if (type == TFOS_RECORD_BYTES)
        return tfos__fail(err, TFOS_INVALID, "record: plain records have no features to look at");
    struct tfos_schema_inference *inference = tfos__alloc(1, sizeof(*inference));
    if (!inference)
        return tfos__no_memory(err, "record", "a schema inference");
    inference->type = type;
    *out = inference;
    return TFOS_OK;
}

void tfos_schema_inference_close(struct tfos_schema_inference *inference)
{
    if (!inference)
        return;
    for (uint32_t i = 0; i < inference->count; i++) {
        tfos__record_feature_clear(&inference->summaries[i].plain);
        tfos__record_feature_clear(&inference->summaries[i].list);
        tfos__free(inference->summaries[i].place);
    }
    tfos__free(inference->summaries);
    tfos__record_name_index_clear(&inference->names);
    tfos__free(inference);
}

// ---- features

static enum tfos_status reserve(struct tfos_schema_inference *inference, struct tfos_error *err)
{
    if (inference->count == FEATURES_LIMIT)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "record: more than %d names of features: the records are no rows of a "
                          "table",
                          FEATURES_LIMIT);
    if (inference->count < inference->capacity)
        return TFOS_OK;
    uint32_t capacity = inference->capacity > 0 ? 2 * inference->capacity : FIRST_CAPACITY;
    struct summary *summaries = tfos__realloc(inference->summaries, capacity, sizeof(*summaries));
    if (!summaries)
        return tfos__no_memory(err, "record", "a schema inference");
    inference->summaries = summaries;
    inference->capacity = capacity;
    return TFOS_OK;
}

// The summary of the round's next feature, which is added if there is none.
static enum tfos_status find(struct tfos_schema_inference *inference, struct tfos_view name,
                             struct summary **summary, struct tfos_error *err)
{
    uint32_t number = tfos__record_name_index_next(&inference->names, name);
    if (number == TFOS__NAME_UNKNOWN) {
        number = inference->count;
        if (!tfos__text_is_utf8(name.data, name.size) ||
            (name.size > 0 && memchr(name.data, 0, name.size)))
            return tfos__fail(err, TFOS_CORRUPT, "record: a feature's name is no UTF-8 text");
        TFOS__TRY(reserve(inference, err));
        TFOS__TRY(tfos__record_name_index_add(&inference->names, name, number, err));
        inference->summaries[inference->count++] =
            (struct summary){.name = inference->names.names[number].text.data, .is_text = true};
    }
    *summary = &inference->summaries[number];
    return TFOS_OK;
}

static struct tfos__record_feature *find_feature(void *context, struct tfos_view name, bool is_list)
{
    struct tfos_schema_inference *inference = context;
    struct summary *summary = NULL;
    if (inference->status == TFOS_OK)
        inference->status = find(inference, name, &summary, &inference->failure);
    if (inference->status < 0)
        return NULL;
    return is_list ? &summary->list : &summary->plain;
}

// A record, or those at `place`, and the records before it contradict each other.
static enum tfos_status refuse_shape(const struct summary *summary, const char *place,
                                     struct tfos_error *err)
{
    static const char *const shapes[] = {"a context feature", "a feature list"};
    return tfos__fail(err, TFOS_CORRUPT,
                      "record: %s%sfeature %s: %s, and %s in %s: no column holds both, so give a "
                      "schema",
                      place ? place : "", place ? ": " : "", summary->name,
                      shapes[!summary->is_feature_list], shapes[summary->is_feature_list],
                      summary->place ? summary->place : "another record");
}

static enum tfos_status add_shape(struct summary *summary, bool is_feature_list, const char *place,
                                  struct tfos_error *err)
{
    if (summary->is_known)
        return summary->is_feature_list == is_feature_list ? TFOS_OK
                                                           : refuse_shape(summary, place, err);
    summary->is_known = true;
    summary->is_feature_list = is_feature_list;
    if (!place)
        return TFOS_OK;
    summary->place = tfos__strdup(place);
    return summary->place ? TFOS_OK : tfos__no_memory(err, "record", "a schema inference");
}

// Of two kinds of values the one that can hold both counts: it has the smaller number. Lists
// without values do not count beside others.
static void add_kind(struct summary *summary, enum tfos__record_feature_kind kind, bool has_values)
{
    bool is_like = has_values == summary->has_values;
    if (kind == TFOS__FEATURE_NONE || (is_like && kind == summary->kind))
        return;
    if (summary->kind == TFOS__FEATURE_NONE || (is_like ? kind < summary->kind : has_values))
        summary->kind = kind;
    summary->has_values |= has_values;
}

// ---- records

/// What the chunks of a step hold.
struct content {
    enum tfos__record_feature_kind kind;
    int count; ///< of values: 0, 1, or 2 for more
    bool is_text;
};

static void count_numbers(struct tfos_view packed, enum tfos__record_feature_kind kind,
                          struct content *content)
{
    const uint8_t *data = packed.data;
    size_t first = sizeof(float);
    if (kind == TFOS__FEATURE_INT64)
        for (first = 1; first < packed.size && data[first - 1] >= 0x80;)
            first++;
    int count = packed.size == 0 ? 0 : packed.size <= first ? 1 : 2;
    content->count = content->count + count > 2 ? 2 : content->count + count;
}

static enum tfos_status read_list(const struct summary *summary, struct tfos_view list,
                                  struct content *content, struct tfos_error *err)
{
    struct tfos__record_wire wire = tfos__record_wire_of(list);
    enum tfos__record_wire_type single =
        content->kind == TFOS__FEATURE_FLOAT ? TFOS__WIRE_FIXED32 : TFOS__WIRE_VARINT;
    enum tfos_status status;
    struct tfos_view part;
    uint32_t field;
    if (content->kind == TFOS__FEATURE_BYTES) {
        while ((status = tfos__record_wire_next(&wire, 1, &field, &part)) == TFOS_OK) {
            content->count += content->count < 2;
            // A feature that is known to be binary is not examined again.
            content->is_text =
                content->is_text && (!summary->is_text || tfos__text_is_utf8(part.data, part.size));
        }
    } else {
        while ((status = tfos__record_wire_next_numbers(&wire, single, &part)) == TFOS_OK)
            count_numbers(part, content->kind, content);
    }
    if (status == TFOS_END)
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT, "record: feature %s: %s is damaged", summary->name,
                      tfos__record_feature_kind_name(content->kind));
}

// Notes where a feature of a SequenceExample was first seen, for a record elsewhere that
// contradicts it.
static enum tfos_status note_place(const struct tfos_schema_inference *inference,
                                   struct tfos_view record, struct summary *summary,
                                   struct tfos_error *err)
{
    uint64_t offset = tfos__record_reader_offset(inference->frames, record);
    summary->place = tfos__format("%s: offset %llu", inference->file, (unsigned long long)offset);
    if (!summary->place)
        return tfos__no_memory(err, "record", "a schema inference");
    if (!tfos__text_is_utf8(summary->place, strlen(summary->place)))
        for (char *at = summary->place; *at; at++)
            *at = (char)(*at & 0x80 ? '?' : *at);
    return TFOS_OK;
}

static enum tfos_status add_feature(const struct tfos_schema_inference *inference,
                                    struct tfos_view record, struct summary *summary,
                                    bool is_feature_list, struct tfos_error *err)
{
    const struct tfos__record_feature *feature = is_feature_list ? &summary->list : &summary->plain;
    uint32_t chunk = 0;
    if (!summary->is_known && inference->frames && inference->type == TFOS_RECORD_SEQUENCE_EXAMPLE)
        TFOS__TRY(note_place(inference, record, summary, err));
    TFOS__TRY(add_shape(summary, is_feature_list, NULL, err));
    for (uint32_t step = 0; step < feature->step_count; step++) {
        struct content content = {.is_text = true};
        for (; chunk < feature->chunk_count && feature->chunks[chunk].step == step; chunk++) {
            content.kind = feature->chunks[chunk].kind;
            TFOS__TRY(read_list(summary, feature->chunks[chunk].list, &content, err));
        }
        add_kind(summary, content.kind, content.count > 0);
        summary->is_list |= content.kind != TFOS__FEATURE_NONE && content.count != 1;
        summary->is_text &= content.is_text;
    }
    return TFOS_OK;
}

static enum tfos_status add_record(struct tfos_schema_inference *inference, struct tfos_view record,
                                   struct tfos_error *err)
{
    for (uint32_t i = 0; i < inference->count; i++) {
        tfos__record_feature_reset(&inference->summaries[i].plain);
        tfos__record_feature_reset(&inference->summaries[i].list);
    }
    tfos__record_name_index_restart(&inference->names);
    inference->status = TFOS_OK;
    enum tfos_status status =
        tfos__record_features_read(record, inference->type, find_feature, inference, err);
    if (status < 0) {
        tfos__fail_prefix(err, "record");
        return status;
    }
    if (inference->status < 0) {
        if (err)
            *err = inference->failure;
        return inference->status;
    }
    for (uint32_t i = 0; i < inference->count; i++) {
        struct summary *summary = &inference->summaries[i];
        if (summary->plain.is_present)
            TFOS__TRY(add_feature(inference, record, summary, false, err));
        if (summary->list.is_present)
            TFOS__TRY(add_feature(inference, record, summary, true, err));
    }
    return TFOS_OK;
}

enum tfos_status tfos_schema_inference_append(struct tfos_schema_inference *inference,
                                              const struct tfos_view *records, size_t count,
                                              size_t *seen, struct tfos_error *err)
{
    for (*seen = 0; *seen < count; ++*seen)
        TFOS__TRY(add_record(inference, records[*seen], err));
    return TFOS_OK;
}

// Adds the records of one call on the reader. Those that are no messages of the type are rejected.
static enum tfos_status add_records(struct tfos_schema_inference *inference,
                                    const struct tfos_view *records, size_t count,
                                    struct tfos_error *err)
{
    while (count > 0) {
        size_t seen;
        struct tfos_error cause;
        enum tfos_status status =
            tfos_schema_inference_append(inference, records, count, &seen, &cause);
        if (status == TFOS_CORRUPT)
            status = tfos_record_reader_reject(inference->frames, records[seen++], &cause);
        if (status < 0 && err)
            *err = cause;
        if (status != TFOS_OK)
            return status;
        records += seen;
        count -= seen;
    }
    return TFOS_OK;
}

enum tfos_status tfos_schema_inference_read(struct tfos_schema_inference *inference,
                                            struct tfos_stream *stream,
                                            const struct tfos_record_reader_options *options,
                                            uint64_t limit, uint64_t *seen, struct tfos_error *err)
{
    struct tfos_view records[VIEW_COUNT];
    enum tfos_status status = tfos_record_reader_open(stream, options, &inference->frames, err);
    uint64_t left = limit > 0 ? limit : UINT64_MAX;
    if (status < 0)
        return status;
    inference->file = options && options->name ? options->name : "the file";
    while (status == TFOS_OK && left > 0) {
        size_t count = 0;
        status = tfos_record_reader_next_batch(
            inference->frames, records, left < VIEW_COUNT ? (size_t)left : VIEW_COUNT, &count, err);
        if (status == TFOS_OK)
            status = add_records(inference, records, count, err);
        left -= count;
    }
    struct tfos_record_counts counts = tfos_record_reader_get_counts(inference->frames);
    *seen = counts.records;
    inference->skipped += counts.records == 0 ? counts.damages : 0;
    tfos_record_reader_close(inference->frames);
    inference->frames = NULL;
    return status == TFOS_END ? TFOS_OK : status;
}

// ---- merging

static enum tfos_status add_summary(struct tfos_schema_inference *inference,
                                    const struct summary *other, struct tfos_error *err)
{
    struct summary *summary = NULL;
    TFOS__TRY(find(inference, (struct tfos_view){other->name, strlen(other->name)}, &summary, err));
    if (other->is_known)
        TFOS__TRY(add_shape(summary, other->is_feature_list, other->place, err));
    add_kind(summary, other->kind, other->has_values);
    summary->is_list |= other->is_list;
    summary->is_text &= other->is_text;
    return TFOS_OK;
}

enum tfos_status tfos_schema_inference_merge(struct tfos_schema_inference *inference,
                                             const struct tfos_schema_inference *other,
                                             struct tfos_error *err)
{
    if (inference->type != other->type)
        return tfos__fail(err, TFOS_INVALID, "record: schema inferences of two kinds of records");
    inference->skipped += other->skipped;
    tfos__record_name_index_restart(&inference->names);
    for (uint32_t i = 0; i < other->count; i++)
        TFOS__TRY(add_summary(inference, &other->summaries[i], err));
    return TFOS_OK;
}

// ---- text
//
// A JSON object: "type" ("example" or "sequence"), and "features", a list of objects, each with
// "name", "kind" ("bytes", "float", "int64", or "none"), and, where they are true, "list",
// "feature_list", "binary", "empty" (its lists had no values), "absent"; of a SequenceExample's
// "place", a record that has it. "passed_over": damages in files without a good record.

static const char *const KINDS[] = {"none", "bytes", "float", "int64"};
static const char *const TYPES[] = {"example", "sequence"};

static json_t *flag(bool is_true)
{
    return is_true ? json_true() : NULL;
}

static json_t *describe(const struct summary *summary)
{
    bool is_empty = summary->kind != TFOS__FEATURE_NONE && !summary->has_values;
    return json_pack("{s:s, s:s, s:o*, s:o*, s:o*, s:o*, s:o*, s:s*}", "name", summary->name,
                     "kind", KINDS[summary->kind], "list", flag(summary->is_list), "feature_list",
                     flag(summary->is_feature_list), "binary", flag(!summary->is_text), "empty",
                     flag(is_empty), "absent", flag(!summary->is_known), "place", summary->place);
}

enum tfos_status tfos_schema_inference_save(const struct tfos_schema_inference *inference,
                                            char **json, struct tfos_error *err)
{
    json_t *features = json_array();
    bool is_whole = features != NULL;
    for (uint32_t i = 0; is_whole && i < inference->count; i++)
        is_whole = json_array_append_new(features, describe(&inference->summaries[i])) == 0;
    json_t *skipped = inference->skipped > 0 ? json_integer((json_int_t)inference->skipped) : NULL;
    json_t *object = json_pack("{s:s, s:o, s:o*}", "type", TYPES[inference->type], "features",
                               features, "passed_over", skipped);
    char *text = object && is_whole ? tfos__json_text(object) : NULL;
    json_decref(object);
    if (!text)
        return tfos__no_memory(err, "record", "a schema inference's text");
    *json = text;
    return TFOS_OK;
}

// The index of a text in a list of `count`, or -1.
static int find_text(const char *text, const char *const *list, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, list[i]) == 0)
            return i;
    return -1;
}

static enum tfos_status load_summary(struct tfos_schema_inference *inference, const json_t *object,
                                     struct tfos_error *err)
{
    const char *name, *kind_text;
    TFOS__TRY(tfos__json_get_string(object, "name", &name, err));
    TFOS__TRY(tfos__json_get_string(object, "kind", &kind_text, err));
    int kind = find_text(kind_text, KINDS, 4);
    if (kind < 0)
        return tfos__fail(err, TFOS_CORRUPT, "feature %s: there is no kind \"%s\"", name,
                          kind_text);
    const char *place = json_string_value(json_object_get(object, "place"));
    struct summary summary = {.name = name,
                              .kind = (enum tfos__record_feature_kind)kind,
                              .has_values = kind != TFOS__FEATURE_NONE &&
                                            !tfos__json_bool_or(object, "empty", false),
                              .place = (char *)(uintptr_t)place,
                              .is_known = !tfos__json_bool_or(object, "absent", false),
                              .is_feature_list = tfos__json_bool_or(object, "feature_list", false),
                              .is_list = tfos__json_bool_or(object, "list", false),
                              .is_text = !tfos__json_bool_or(object, "binary", false)};
    return add_summary(inference, &summary, err);
}

static enum tfos_status load_features(struct tfos_schema_inference *inference, const json_t *object,
                                      struct tfos_error *err)
{
    const json_t *features = json_object_get(object, "features"), *feature;
    size_t index;
    if (!json_is_array(features))
        return tfos__fail(err, TFOS_CORRUPT, "\"features\" is no list");
    json_array_foreach(features, index, feature) TFOS__TRY(load_summary(inference, feature, err));
    return TFOS_OK;
}

static enum tfos_status load(const json_t *object, struct tfos_schema_inference **out,
                             struct tfos_error *err)
{
    const char *type_text;
    TFOS__TRY(tfos__json_get_string(object, "type", &type_text, err));
    int type = find_text(type_text, TYPES, 2);
    if (type < 0)
        return tfos__fail(err, TFOS_CORRUPT, "there is no type \"%s\"", type_text);
    struct tfos_schema_inference *inference = NULL;
    TFOS__TRY(tfos_schema_inference_open((enum tfos_record_type)type, &inference, err));
    json_int_t skipped = json_integer_value(json_object_get(object, "passed_over"));
    inference->skipped = skipped > 0 ? (uint64_t)skipped : 0;
    enum tfos_status status = load_features(inference, object, err);
    if (status < 0)
        tfos_schema_inference_close(inference);
    else
        *out = inference;
    return status;
}

enum tfos_status tfos_schema_inference_load(const char *json, struct tfos_schema_inference **out,
                                            struct tfos_error *err)
{
    json_t *object = NULL;
    enum tfos_status status = tfos__json_parse(json, strlen(json), &object, err);
    if (status == TFOS_OK)
        status = load(object, out, err);
    json_decref(object);
    if (status < 0) {
        tfos__fail_prefix(err, "record: a schema inference's text");
        return status == TFOS_NO_MEMORY ? status : TFOS_CORRUPT;
    }
    return TFOS_OK;
}

// ---- the schema

// Makes a field with `level_count` lists around its value.
static enum tfos_status make_field(const char *name, struct tfos__arrow_type value, int level_count,
                                   struct ArrowSchema *out, struct tfos_error *err)
{
    if (level_count == 0)
        return tfos__arrow_schema_init(out, value, name, 0, err);
    TFOS__TRY(
        tfos__arrow_schema_init(out, tfos__arrow_type_of(TFOS__ARROW_LIST, 32, 0), name, 1, err));
    return make_field("item", value, level_count - 1, out->children[0], err);
}

static struct tfos__arrow_type type_of(const struct summary *summary)
{
    if (summary->kind == TFOS__FEATURE_BYTES)
        return tfos__arrow_type_of(summary->is_text ? TFOS__ARROW_TEXT : TFOS__ARROW_BINARY, 32, 0);
    return summary->kind == TFOS__FEATURE_FLOAT ? tfos__arrow_type_of(TFOS__ARROW_FLOAT, 32, 0)
                                                : tfos__arrow_type_of(TFOS__ARROW_INT, 64, 0);
}

enum tfos_status tfos_schema_inference_schema(const struct tfos_schema_inference *inference,
                                              struct ArrowSchema *out, struct tfos_error *err)
{
    struct ArrowSchema schema;
    int64_t count = 0, made = 0;
    for (uint32_t i = 0; i < inference->count; i++)
        count += inference->summaries[i].kind != TFOS__FEATURE_NONE;
    if (count == 0 && inference->skipped > 0)
        return tfos__fail(err, TFOS_CORRUPT,
                          "record: there is no good record to find columns in: %llu places were "
                          "passed over; read without skipping to see what they are",
                          (unsigned long long)inference->skipped);
    enum tfos_status status = tfos__arrow_schema_init_struct(&schema, count, err);
    if (status < 0)
        return status;
    for (uint32_t i = 0; status == TFOS_OK && i < inference->count; i++) {
        const struct summary *summary = &inference->summaries[i];
        if (summary->kind != TFOS__FEATURE_NONE)
            status = make_field(summary->name, type_of(summary),
                                summary->is_feature_list ? 2 : summary->is_list,
                                schema.children[made++], err);
    }
    if (status < 0)
        schema.release(&schema);
    else
        *out = schema;
    return status;
}
