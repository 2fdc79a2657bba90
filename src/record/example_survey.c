// SPDX-License-Identifier: Apache-2.0
// A feature's kind, whether it is a list, and whether its bytes are text, is what all records seen
// say together.
#include <string.h>
#include <tfos/example.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/example_column.h"
#include "record/example_trait.h"
#include "record/record.h"
#include "record/wire.h"

#define TRAITS_LIMIT 100000 // names that a survey keeps
#define FIRST_CAPACITY 16

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

static enum tfos_status make_room(struct tfos_example_survey *survey, struct tfos_error *err)
{
    if (survey->count == TRAITS_LIMIT)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "record: more than %d names of features: the records are no rows of a "
                          "table",
                          TRAITS_LIMIT);
    if (survey->count < survey->capacity)
        return TFOS_OK;
    uint32_t capacity = survey->capacity > 0 ? 2 * survey->capacity : FIRST_CAPACITY;
    struct tfos__trait *traits = tfos__realloc(survey->traits, capacity, sizeof *traits);
    if (!traits)
        return tfos__no_memory(err, "record", "a survey");
    survey->traits = traits;
    survey->capacity = capacity;
    return TFOS_OK;
}

enum tfos_status tfos__example_survey_add(struct tfos_example_survey *survey, struct tfos_view name,
                                          struct tfos_error *err)
{
    if (!tfos__text_is_utf8(name.data, name.size) ||
        (name.size > 0 && memchr(name.data, 0, name.size)))
        return tfos__fail(err, TFOS_CORRUPT, "record: a feature's name is no UTF-8 text");
    TFOS__TRY(make_room(survey, err));
    char *copy = tfos__alloc(name.size + 1, 1);
    if (!copy)
        return tfos__no_memory(err, "record", "a feature's name");
    if (name.size > 0)
        memcpy(copy, name.data, name.size);
    enum tfos_status status =
        tfos__name_index_add(&survey->names, (struct tfos_view){copy, name.size}, err);
    if (status < 0) {
        tfos__free(copy);
        return status;
    }
    survey->traits[survey->count++] = (struct tfos__trait){.name = copy, .is_text = true};
    return TFOS_OK;
}

static struct tfos__feature *find_feature(void *context, struct tfos_view name, bool is_list)
{
    struct tfos_example_survey *survey = context;
    uint32_t number = tfos__name_index_next(&survey->names, name);
    if (survey->status == TFOS_OK && number == TFOS__NAME_UNKNOWN) {
        number = survey->count;
        survey->status = tfos__example_survey_add(survey, name, &survey->failure);
    }
    if (survey->status < 0)
        return NULL;
    struct tfos__trait *trait = &survey->traits[number];
    return is_list ? &trait->list : &trait->plain;
}

/// What the pieces of a step say.
struct content {
    enum tfos__feature_kind kind;
    int count; ///< of values: 0, 1, or 2 for more
    bool is_text;
};

static enum tfos_status damaged(const struct tfos__trait *trait, enum tfos__feature_kind kind,
                                struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CORRUPT, "record: feature %s: %s is damaged", trait->name,
                      tfos__feature_kind_name(kind));
}

static enum tfos_status look_at_bytes(const struct tfos__trait *trait, struct tfos_view list,
                                      struct content *content, struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(list);
    enum tfos_status status;
    struct tfos_view bytes;
    uint32_t field;
    while ((status = tfos__wire_next(&wire, 1, &field, &bytes)) == TFOS_OK) {
        content->count += content->count < 2;
        // One that is known to be binary stays so.
        content->is_text =
            content->is_text && (!trait->is_text || tfos__text_is_utf8(bytes.data, bytes.size));
    }
    return status == TFOS_END ? TFOS_OK : damaged(trait, TFOS__FEATURE_BYTES, err);
}

static void count_numbers(struct tfos_view packed, enum tfos__feature_kind kind,
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

static enum tfos_status look_at_numbers(const struct tfos__trait *trait, struct tfos_view list,
                                        enum tfos__feature_kind kind, struct content *content,
                                        struct tfos_error *err)
{
    struct tfos__wire wire = tfos__wire_of(list);
    enum tfos_status status;
    struct tfos_view numbers;
    while ((status = tfos__wire_next_numbers(
                &wire, kind == TFOS__FEATURE_FLOAT ? TFOS__WIRE_FIXED32 : TFOS__WIRE_VARINT,
                &numbers)) == TFOS_OK)
        count_numbers(numbers, kind, content);
    return status == TFOS_END ? TFOS_OK : damaged(trait, kind, err);
}

// The pieces of one step, from `*piece` on.
static enum tfos_status look_at_step(const struct tfos__trait *trait,
                                     const struct tfos__feature *feature, uint32_t step,
                                     uint32_t *piece, struct content *content,
                                     struct tfos_error *err)
{
    *content = (struct content){.is_text = true};
    for (; *piece < feature->piece_count && feature->pieces[*piece].step == step; ++*piece) {
        struct tfos_view list = feature->pieces[*piece].list;
        content->kind = feature->pieces[*piece].kind;
        TFOS__TRY(content->kind == TFOS__FEATURE_BYTES
                      ? look_at_bytes(trait, list, content, err)
                      : look_at_numbers(trait, list, content->kind, content, err));
    }
    return TFOS_OK;
}

// A record is, or records at `place` are, of another shape than those before.
static enum tfos_status refuse_shape(const struct tfos__trait *trait, const char *place,
                                     struct tfos_error *err)
{
    static const char *const shapes[] = {"a context feature", "a feature list"};
    return tfos__fail(err, TFOS_CORRUPT,
                      "record: %s%sfeature %s: %s, and %s in %s: no column holds both, so give a "
                      "schema",
                      place ? place : "", place ? ": " : "", trait->name,
                      shapes[!trait->is_feature_list], shapes[trait->is_feature_list],
                      trait->place ? trait->place : "another record");
}

static enum tfos_status learn_shape(struct tfos__trait *trait, bool is_feature_list,
                                    const char *place, struct tfos_error *err)
{
    if (trait->is_known)
        return trait->is_feature_list == is_feature_list ? TFOS_OK
                                                         : refuse_shape(trait, place, err);
    trait->is_known = true;
    trait->is_feature_list = is_feature_list;
    if (!place)
        return TFOS_OK;
    trait->place = tfos__strdup(place);
    return trait->place ? TFOS_OK : tfos__no_memory(err, "record", "a survey");
}

// Of two kinds of values the one that can hold both counts, which has the smaller number. Lists
// without values say nothing beside others.
static void learn_kind(struct tfos__trait *trait, enum tfos__feature_kind kind, bool has_values)
{
    bool is_like = has_values == trait->has_values;
    if (kind == TFOS__FEATURE_NONE || (is_like && kind == trait->kind))
        return;
    if (trait->kind == TFOS__FEATURE_NONE || (is_like ? kind < trait->kind : has_values))
        trait->kind = kind;
    trait->has_values |= has_values;
}

// Notes where a feature of a SequenceExample was first seen, for a record elsewhere that
// contradicts.
static enum tfos_status note_place(const struct tfos_example_survey *survey,
                                   struct tfos_view record, struct tfos__trait *trait,
                                   struct tfos_error *err)
{
    uint64_t offset = tfos__record_reader_offset(survey->frames, record);
    trait->place = tfos__format("%s: offset %llu", survey->file, (unsigned long long)offset);
    if (!trait->place)
        return tfos__no_memory(err, "record", "a survey");
    if (!tfos__text_is_utf8(trait->place, strlen(trait->place)))
        for (char *at = trait->place; *at; at++)
            *at = (char)(*at & 0x80 ? '?' : *at);
    return TFOS_OK;
}

static enum tfos_status learn(const struct tfos_example_survey *survey, struct tfos_view record,
                              struct tfos__trait *trait, bool is_feature_list,
                              struct tfos_error *err)
{
    const struct tfos__feature *feature = is_feature_list ? &trait->list : &trait->plain;
    uint32_t piece = 0;
    struct content content;
    if (!trait->is_known && survey->frames && survey->type == TFOS_RECORD_SEQUENCE_EXAMPLE)
        TFOS__TRY(note_place(survey, record, trait, err));
    TFOS__TRY(learn_shape(trait, is_feature_list, NULL, err));
    for (uint32_t step = 0; step < feature->step_count; step++) {
        TFOS__TRY(look_at_step(trait, feature, step, &piece, &content, err));
        learn_kind(trait, content.kind, content.count > 0);
        trait->is_list |= content.kind != TFOS__FEATURE_NONE && content.count != 1;
        trait->is_text &= content.is_text;
    }
    return TFOS_OK;
}

static enum tfos_status look_at_record(struct tfos_example_survey *survey, struct tfos_view record,
                                       struct tfos_error *err)
{
    for (uint32_t i = 0; i < survey->count; i++) {
        tfos__feature_reset(&survey->traits[i].plain);
        tfos__feature_reset(&survey->traits[i].list);
    }
    tfos__name_index_restart(&survey->names);
    survey->status = TFOS_OK;
    enum tfos_status status = tfos__features_read(record, survey->type, find_feature, survey, err);
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
        struct tfos__trait *trait = &survey->traits[i];
        if (trait->plain.is_present)
            TFOS__TRY(learn(survey, record, trait, false, err));
        if (trait->list.is_present)
            TFOS__TRY(learn(survey, record, trait, true, err));
    }
    return TFOS_OK;
}

enum tfos_status tfos_example_survey_append(struct tfos_example_survey *survey,
                                            const struct tfos_view *records, size_t count,
                                            size_t *seen, struct tfos_error *err)
{
    for (*seen = 0; *seen < count; ++*seen)
        TFOS__TRY(look_at_record(survey, records[*seen], err));
    return TFOS_OK;
}

enum tfos_status tfos__example_survey_learn(struct tfos_example_survey *survey,
                                            const struct tfos__trait *known, struct tfos_error *err)
{
    struct tfos_view name = {known->name, strlen(known->name)};
    uint32_t number = tfos__name_index_next(&survey->names, name);
    if (number == TFOS__NAME_UNKNOWN) {
        number = survey->count;
        TFOS__TRY(tfos__example_survey_add(survey, name, err));
    }
    struct tfos__trait *trait = &survey->traits[number];
    if (known->is_known)
        TFOS__TRY(learn_shape(trait, known->is_feature_list, known->place, err));
    learn_kind(trait, known->kind, known->has_values);
    trait->is_list |= known->is_list;
    trait->is_text &= known->is_text;
    return TFOS_OK;
}

enum tfos_status tfos_example_survey_merge(struct tfos_example_survey *survey,
                                           const struct tfos_example_survey *other,
                                           struct tfos_error *err)
{
    if (survey->type != other->type)
        return tfos__fail(err, TFOS_INVALID, "record: surveys of two kinds of records");
    survey->passed_over += other->passed_over;
    tfos__name_index_restart(&survey->names);
    for (uint32_t i = 0; i < other->count; i++)
        TFOS__TRY(tfos__example_survey_learn(survey, &other->traits[i], err));
    return TFOS_OK;
}

void tfos_example_survey_close(struct tfos_example_survey *survey)
{
    if (!survey)
        return;
    for (uint32_t i = 0; i < survey->count; i++) {
        tfos__feature_clear(&survey->traits[i].plain);
        tfos__feature_clear(&survey->traits[i].list);
        tfos__free(survey->traits[i].name);
        tfos__free(survey->traits[i].place);
    }
    tfos__free(survey->traits);
    tfos__name_index_clear(&survey->names);
    tfos__free(survey);
}
