// SPDX-License-Identifier: Apache-2.0
// Inferring a schema from records. The kind of a feature, whether it is a list and whether its
// bytes are text depend on all records that have it.
#include <string.h>
#include <tfos/example_file.h>

#include "arrow/arrow.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/utf8.h"
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

struct tfos_example_survey {
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

enum tfos_status tfos_example_survey_open(enum tfos_record_type type,
                                          struct tfos_example_survey **out, struct tfos_error *err)
{
    if (type == TFOS_RECORD_BYTES)
        return tfos__fail(err, TFOS_INVALID, "record: plain records have no features to look at");
    struct tfos_example_survey *survey = tfos__alloc(1, sizeof *survey);
    if (!survey)
        return tfos__no_memory(err, "record", "a survey");
    survey->type = type;
    *out = survey;
    return TFOS_OK;
}

void tfos_example_survey_close(struct tfos_example_survey *survey)
{
    if (!survey)
        return;
    for (uint32_t i = 0; i < survey->count; i++) {
        tfos__record_feature_clear(&survey->summaries[i].plain);
        tfos__record_feature_clear(&survey->summaries[i].list);
        tfos__free(survey->summaries[i].place);
    }
    tfos__free(survey->summaries);
    tfos__record_name_index_clear(&survey->names);
    tfos__free(survey);
}

// ---- features

static enum tfos_status reserve(struct tfos_example_survey *survey, struct tfos_error *err)
{
    if (survey->count == FEATURES_LIMIT)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "record: more than %d names of features: the records are no rows of a "
                          "table",
                          FEATURES_LIMIT);
    if (survey->count < survey->capacity)
        return TFOS_OK;
    uint32_t capacity = survey->capacity > 0 ? 2 * survey->capacity : FIRST_CAPACITY;
    struct summary *summaries = tfos__realloc(survey->summaries, capacity, sizeof *summaries);
    if (!summaries)
        return tfos__no_memory(err, "record", "a survey");
    survey->summaries = summaries;
    survey->capacity = capacity;
    return TFOS_OK;
}

// The summary of the round's next feature, which is added if there is none.
static enum tfos_status find(struct tfos_example_survey *survey, struct tfos_view name,
                             struct summary **summary, struct tfos_error *err)
{
    uint32_t number = tfos__record_name_index_next(&survey->names, name);
    if (number == TFOS__NAME_UNKNOWN) {
        number = survey->count;
        if (!tfos__is_utf8(name.data, name.size) ||
            (name.size > 0 && memchr(name.data, 0, name.size)))
            return tfos__fail(err, TFOS_CORRUPT, "record: a feature's name is no UTF-8 text");
        TFOS__TRY(reserve(survey, err));
        TFOS__TRY(tfos__record_name_index_add(&survey->names, name, number, err));
        survey->summaries[survey->count++] =
            (struct summary){.name = survey->names.names[number].text.data, .is_text = true};
    }
    *summary = &survey->summaries[number];
    return TFOS_OK;
}

static struct tfos__record_feature *find_feature(void *context, struct tfos_view name, bool is_list)
{
    struct tfos_example_survey *survey = context;
    struct summary *summary = NULL;
    if (survey->status == TFOS_OK)
        survey->status = find(survey, name, &summary, &survey->failure);
    if (survey->status < 0)
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
    return summary->place ? TFOS_OK : tfos__no_memory(err, "record", "a survey");
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
                content->is_text && (!summary->is_text || tfos__is_utf8(part.data, part.size));
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
static enum tfos_status note_place(const struct tfos_example_survey *survey,
                                   struct tfos_view record, struct summary *summary,
                                   struct tfos_error *err)
{
    uint64_t offset = tfos__record_reader_offset(survey->frames, record);
    summary->place = tfos__format("%s: offset %llu", survey->file, (unsigned long long)offset);
    if (!summary->place)
        return tfos__no_memory(err, "record", "a survey");
    if (!tfos__is_utf8(summary->place, strlen(summary->place)))
        for (char *at = summary->place; *at; at++)
            *at = (char)(*at & 0x80 ? '?' : *at);
    return TFOS_OK;
}

static enum tfos_status add_feature(const struct tfos_example_survey *survey,
                                    struct tfos_view record, struct summary *summary,
                                    bool is_feature_list, struct tfos_error *err)
{
    const struct tfos__record_feature *feature = is_feature_list ? &summary->list : &summary->plain;
    uint32_t chunk = 0;
    if (!summary->is_known && survey->frames && survey->type == TFOS_RECORD_SEQUENCE_EXAMPLE)
        TFOS__TRY(note_place(survey, record, summary, err));
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

static enum tfos_status add_record(struct tfos_example_survey *survey, struct tfos_view record,
                                   struct tfos_error *err)
{
    for (uint32_t i = 0; i < survey->count; i++) {
        tfos__record_feature_reset(&survey->summaries[i].plain);
        tfos__record_feature_reset(&survey->summaries[i].list);
    }
    tfos__record_name_index_restart(&survey->names);
    survey->status = TFOS_OK;
    enum tfos_status status =
        tfos__record_features_read(record, survey->type, find_feature, survey, err);
    if (status < 0) {
        tfos__fail_prefix(err, "record");
        return status;
    }
    if (survey->status < 0) {
        if (err)
            *err = survey->failure;
        return survey->status;
    }
    for (uint32_t i = 0; i < survey->count; i++) {
        struct summary *summary = &survey->summaries[i];
        if (summary->plain.is_present)
            TFOS__TRY(add_feature(survey, record, summary, false, err));
        if (summary->list.is_present)
            TFOS__TRY(add_feature(survey, record, summary, true, err));
    }
    return TFOS_OK;
}

enum tfos_status tfos_example_survey_append(struct tfos_example_survey *survey,
                                            const struct tfos_view *records, size_t count,
                                            size_t *seen, struct tfos_error *err)
{
    for (*seen = 0; *seen < count; ++*seen)
        TFOS__TRY(add_record(survey, records[*seen], err));
    return TFOS_OK;
}

// Adds the records of one call on the reader. Those that are no messages of the type are rejected.
static enum tfos_status add_records(struct tfos_example_survey *survey,
                                    const struct tfos_view *records, size_t count,
                                    struct tfos_error *err)
{
    while (count > 0) {
        size_t seen;
        struct tfos_error cause;
        enum tfos_status status = tfos_example_survey_append(survey, records, count, &seen, &cause);
        if (status == TFOS_CORRUPT)
            status = tfos_record_reader_reject(survey->frames, records[seen++], &cause);
        if (status < 0 && err)
            *err = cause;
        if (status != TFOS_OK)
            return status;
        records += seen;
        count -= seen;
    }
    return TFOS_OK;
}

enum tfos_status tfos_example_survey_read(struct tfos_example_survey *survey,
                                          struct tfos_stream *stream,
                                          const struct tfos_record_reader_options *options,
                                          uint64_t limit, uint64_t *seen, struct tfos_error *err)
{
    struct tfos_view records[VIEW_COUNT];
    enum tfos_status status = tfos_record_reader_open(stream, options, &survey->frames, err);
    uint64_t left = limit > 0 ? limit : UINT64_MAX;
    if (status < 0)
        return status;
    survey->file = options && options->name ? options->name : "the file";
    while (status == TFOS_OK && left > 0) {
        size_t count = 0;
        status = tfos_record_reader_next_batch(
            survey->frames, records, left < VIEW_COUNT ? (size_t)left : VIEW_COUNT, &count, err);
        if (status == TFOS_OK)
            status = add_records(survey, records, count, err);
        left -= count;
    }
    struct tfos_record_counts counts = tfos_record_reader_get_counts(survey->frames);
    *seen = counts.records;
    survey->skipped += counts.records == 0 ? counts.damages : 0;
    tfos_record_reader_close(survey->frames);
    survey->frames = NULL;
    return status == TFOS_END ? TFOS_OK : status;
}

// ---- merging

static enum tfos_status add_summary(struct tfos_example_survey *survey, const struct summary *other,
                                    struct tfos_error *err)
{
    struct summary *summary = NULL;
    TFOS__TRY(find(survey, (struct tfos_view){other->name, strlen(other->name)}, &summary, err));
    if (other->is_known)
        TFOS__TRY(add_shape(summary, other->is_feature_list, other->place, err));
    add_kind(summary, other->kind, other->has_values);
    summary->is_list |= other->is_list;
    summary->is_text &= other->is_text;
    return TFOS_OK;
}

enum tfos_status tfos_example_survey_merge(struct tfos_example_survey *survey,
                                           const struct tfos_example_survey *other,
                                           struct tfos_error *err)
{
    if (survey->type != other->type)
        return tfos__fail(err, TFOS_INVALID, "record: surveys of two kinds of records");
    survey->skipped += other->skipped;
    tfos__record_name_index_restart(&survey->names);
    for (uint32_t i = 0; i < other->count; i++)
        TFOS__TRY(add_summary(survey, &other->summaries[i], err));
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

enum tfos_status tfos_example_survey_save(const struct tfos_example_survey *survey, char **json,
                                          struct tfos_error *err)
{
    json_t *features = json_array();
    bool is_whole = features != NULL;
    for (uint32_t i = 0; is_whole && i < survey->count; i++)
        is_whole = json_array_append_new(features, describe(&survey->summaries[i])) == 0;
    json_t *skipped = survey->skipped > 0 ? json_integer((json_int_t)survey->skipped) : NULL;
    json_t *object = json_pack("{s:s, s:o, s:o*}", "type", TYPES[survey->type], "features",
                               features, "passed_over", skipped);
    char *text = object && is_whole ? tfos__json_text(object) : NULL;
    json_decref(object);
    if (!text)
        return tfos__no_memory(err, "record", "a survey's text");
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

static enum tfos_status load_summary(struct tfos_example_survey *survey, const json_t *object,
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
    return add_summary(survey, &summary, err);
}

static enum tfos_status load_features(struct tfos_example_survey *survey, const json_t *object,
                                      struct tfos_error *err)
{
    const json_t *features = json_object_get(object, "features"), *feature;
    size_t index;
    if (!json_is_array(features))
        return tfos__fail(err, TFOS_CORRUPT, "\"features\" is no list");
    json_array_foreach(features, index, feature) TFOS__TRY(load_summary(survey, feature, err));
    return TFOS_OK;
}

static enum tfos_status load(const json_t *object, struct tfos_example_survey **out,
                             struct tfos_error *err)
{
    const char *type_text;
    TFOS__TRY(tfos__json_get_string(object, "type", &type_text, err));
    int type = find_text(type_text, TYPES, 2);
    if (type < 0)
        return tfos__fail(err, TFOS_CORRUPT, "there is no type \"%s\"", type_text);
    struct tfos_example_survey *survey = NULL;
    TFOS__TRY(tfos_example_survey_open((enum tfos_record_type)type, &survey, err));
    json_int_t skipped = json_integer_value(json_object_get(object, "passed_over"));
    survey->skipped = skipped > 0 ? (uint64_t)skipped : 0;
    enum tfos_status status = load_features(survey, object, err);
    if (status < 0)
        tfos_example_survey_close(survey);
    else
        *out = survey;
    return status;
}

enum tfos_status tfos_example_survey_load(const char *json, struct tfos_example_survey **out,
                                          struct tfos_error *err)
{
    json_t *object = NULL;
    enum tfos_status status = tfos__json_parse(json, strlen(json), &object, err);
    if (status == TFOS_OK)
        status = load(object, out, err);
    json_decref(object);
    if (status < 0) {
        tfos__fail_prefix(err, "record: a survey's text");
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

enum tfos_status tfos_example_survey_schema(const struct tfos_example_survey *survey,
                                            struct ArrowSchema *out, struct tfos_error *err)
{
    struct ArrowSchema schema;
    int64_t count = 0, made = 0;
    for (uint32_t i = 0; i < survey->count; i++)
        count += survey->summaries[i].kind != TFOS__FEATURE_NONE;
    if (count == 0 && survey->skipped > 0)
        return tfos__fail(err, TFOS_CORRUPT,
                          "record: there is no good record to find columns in: %llu places were "
                          "passed over; read without skipping to see what they are",
                          (unsigned long long)survey->skipped);
    enum tfos_status status = tfos__arrow_schema_init_struct(&schema, count, err);
    if (status < 0)
        return status;
    for (uint32_t i = 0; status == TFOS_OK && i < survey->count; i++) {
        const struct summary *summary = &survey->summaries[i];
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
