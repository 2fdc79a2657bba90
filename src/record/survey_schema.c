// SPDX-License-Identifier: Apache-2.0
// What a survey knows, as JSON and as an Arrow schema. The JSON is an object: "type" ("example" or
// "sequence"), and "features", a list of objects, each with "name", "kind" ("bytes", "float",
// "int64", or "none"), and, where they are true, "list", "feature_list", "binary", "empty" (its
// lists had no values), "absent"; of a SequenceExample's "place", a record that has it;
// "passed_over", places that were damaged in files without a good record.
#include <string.h>
#include <tfos/example.h>

#include "arrow/arrow.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "record/example_trait.h"

static const char *const KINDS[] = {"none", "bytes", "float", "int64"};
static const char *const TYPES[] = {"example", "sequence"};

static json_t *describe(const struct tfos__trait *trait)
{
    json_t *object = json_pack("{s:s, s:s}", "name", trait->name, "kind", KINDS[trait->kind]);
    const struct {
        const char *key;
        bool is_true;
    } flags[] = {{"list", trait->is_list},
                 {"feature_list", trait->is_feature_list},
                 {"binary", !trait->is_text},
                 {"empty", trait->kind != TFOS__FEATURE_NONE && !trait->has_values},
                 {"absent", !trait->is_known}};
    for (size_t i = 0; object && i < sizeof flags / sizeof flags[0]; i++)
        if (flags[i].is_true && json_object_set_new(object, flags[i].key, json_true()) != 0) {
            json_decref(object);
            return NULL;
        }
    if (object && trait->place &&
        json_object_set_new(object, "place", json_string(trait->place)) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

enum tfos_status tfos_example_survey_save(const struct tfos_example_survey *survey, char **json,
                                          struct tfos_error *err)
{
    json_t *features = json_array();
    for (uint32_t i = 0; features && i < survey->count; i++)
        if (json_array_append_new(features, describe(&survey->traits[i])) != 0) {
            json_decref(features);
            features = NULL;
        }
    json_t *object = json_pack("{s:s, s:o}", "type", TYPES[survey->type], "features", features);
    json_t *passed_over =
        survey->passed_over > 0 ? json_integer((json_int_t)survey->passed_over) : NULL;
    if (object && passed_over && json_object_set(object, "passed_over", passed_over) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(passed_over);
    char *text = object ? tfos__json_text(object) : NULL;
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

static enum tfos_status load_trait(struct tfos_example_survey *survey, const json_t *object,
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
    struct tfos__trait trait = {
        .name = (char *)(uintptr_t)name,
        .kind = (enum tfos__feature_kind)kind,
        .has_values = kind != TFOS__FEATURE_NONE && !tfos__json_bool_or(object, "empty", false),
        .place = (char *)(uintptr_t)place,
        .is_known = !tfos__json_bool_or(object, "absent", false),
        .is_feature_list = tfos__json_bool_or(object, "feature_list", false),
        .is_list = tfos__json_bool_or(object, "list", false),
        .is_text = !tfos__json_bool_or(object, "binary", false)};
    return tfos__example_survey_learn(survey, &trait, err);
}

static enum tfos_status load_traits(struct tfos_example_survey *survey, const json_t *object,
                                    struct tfos_error *err)
{
    const json_t *features = json_object_get(object, "features"), *feature;
    size_t index;
    if (!json_is_array(features))
        return tfos__fail(err, TFOS_CORRUPT, "\"features\" is no list");
    json_array_foreach(features, index, feature) TFOS__TRY(load_trait(survey, feature, err));
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
    json_int_t passed_over = json_integer_value(json_object_get(object, "passed_over"));
    survey->passed_over = passed_over > 0 ? (uint64_t)passed_over : 0;
    enum tfos_status status = load_traits(survey, object, err);
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

// A field with `level_count` lists around its value.
static enum tfos_status make_field(const char *name, struct tfos__arrow_type value, int level_count,
                                   struct ArrowSchema *out, struct tfos_error *err)
{
    if (level_count == 0)
        return tfos__arrow_schema_init(out, value, name, 0, err);
    TFOS__TRY(
        tfos__arrow_schema_init(out, tfos__arrow_type_of(TFOS__ARROW_LIST, 32, 0), name, 1, err));
    return make_field("item", value, level_count - 1, out->children[0], err);
}

static struct tfos__arrow_type type_of(const struct tfos__trait *trait)
{
    if (trait->kind == TFOS__FEATURE_BYTES)
        return tfos__arrow_type_of(trait->is_text ? TFOS__ARROW_TEXT : TFOS__ARROW_BINARY, 32, 0);
    return trait->kind == TFOS__FEATURE_FLOAT ? tfos__arrow_type_of(TFOS__ARROW_FLOAT, 32, 0)
                                              : tfos__arrow_type_of(TFOS__ARROW_INT, 64, 0);
}

enum tfos_status tfos_example_survey_schema(const struct tfos_example_survey *survey,
                                            struct ArrowSchema *out, struct tfos_error *err)
{
    struct ArrowSchema schema;
    int64_t count = 0, made = 0;
    for (uint32_t i = 0; i < survey->count; i++)
        count += survey->traits[i].kind != TFOS__FEATURE_NONE;
    if (count == 0 && survey->passed_over > 0)
        return tfos__fail(err, TFOS_CORRUPT,
                          "record: there is no good record to find columns in: %llu places were "
                          "passed over; read without skipping to see what they are",
                          (unsigned long long)survey->passed_over);
    enum tfos_status status = tfos__arrow_schema_init_struct(&schema, count, err);
    if (status < 0)
        return status;
    for (uint32_t i = 0; status == TFOS_OK && i < survey->count; i++) {
        const struct tfos__trait *trait = &survey->traits[i];
        if (trait->kind != TFOS__FEATURE_NONE)
            status =
                make_field(trait->name, type_of(trait), trait->is_feature_list ? 2 : trait->is_list,
                           schema.children[made++], err);
    }
    if (status < 0)
        schema.release(&schema);
    else
        *out = schema;
    return status;
}
