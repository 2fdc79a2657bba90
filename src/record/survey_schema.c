// SPDX-License-Identifier: Apache-2.0
// What a survey knows, as JSON and as an Arrow schema. The JSON is an object: "type" ("example" or
// "sequence"), and "features", a list of objects, each with "name", "kind" ("bytes", "float",
// "int64", or "none"), and, where they are true, "list", "feature_list", "binary".
#include <stdio.h>
#include <string.h>
#include <tfos/example.h>

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
                 {"absent", !trait->is_known}};
    for (size_t i = 0; object && i < sizeof flags / sizeof flags[0]; i++)
        if (flags[i].is_true && json_object_set_new(object, flags[i].key, json_true()) != 0) {
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
    struct tfos__trait trait = {.name = (char *)(uintptr_t)name,
                                .kind = (enum tfos__feature_kind)kind,
                                .is_known = !tfos__json_bool_or(object, "absent", false),
                                .is_feature_list =
                                    tfos__json_bool_or(object, "feature_list", false),
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

/// A schema and those below it, in one block.
struct node {
    struct ArrowSchema *children[1];
    struct ArrowSchema child;
    char name[];
};

static void release_node(struct ArrowSchema *schema)
{
    struct node *node = schema->private_data;
    if (schema->n_children > 0 && node->child.release)
        node->child.release(&node->child);
    tfos__free(node);
    schema->release = NULL;
}

static enum tfos_status make_node(const char *name, const char *format, struct ArrowSchema *out,
                                  struct tfos_error *err)
{
    size_t size = strlen(name) + 1;
    struct node *node = tfos__alloc(1, sizeof *node + size);
    if (!node)
        return tfos__no_memory(err, "record", "a schema");
    memcpy(node->name, name, size);
    node->children[0] = &node->child;
    *out = (struct ArrowSchema){.format = format,
                                .name = node->name,
                                .flags = ARROW_FLAG_NULLABLE,
                                .children = node->children,
                                .release = release_node,
                                .private_data = node};
    return TFOS_OK;
}

// A field with `level_count` lists around its value.
static enum tfos_status make_field(const char *name, const char *format, int level_count,
                                   struct ArrowSchema *out, struct tfos_error *err)
{
    TFOS__TRY(make_node(name, level_count > 0 ? "+l" : format, out, err));
    if (level_count == 0)
        return TFOS_OK;
    enum tfos_status status = make_field("item", format, level_count - 1, out->children[0], err);
    out->n_children = status == TFOS_OK;
    if (status < 0)
        out->release(out);
    return status;
}

static const char *format_of(const struct tfos__trait *trait)
{
    if (trait->kind == TFOS__FEATURE_BYTES)
        return trait->is_text ? "u" : "z";
    return trait->kind == TFOS__FEATURE_FLOAT ? "f" : "l";
}

/// The columns of a schema.
struct root {
    struct ArrowSchema **children; ///< owned
    struct ArrowSchema items[];
};

static void release_root(struct ArrowSchema *schema)
{
    struct root *root = schema->private_data;
    for (int64_t i = 0; i < schema->n_children; i++)
        if (root->items[i].release)
            root->items[i].release(&root->items[i]);
    tfos__free(root->children);
    tfos__free(root);
    schema->release = NULL;
}

enum tfos_status tfos_example_survey_schema(const struct tfos_example_survey *survey,
                                            struct ArrowSchema *out, struct tfos_error *err)
{
    struct root *root = tfos__alloc(1, sizeof *root + survey->count * sizeof root->items[0]);
    if (!root)
        return tfos__no_memory(err, "record", "a schema");
    struct ArrowSchema schema = {
        .format = "+s", .name = "", .release = release_root, .private_data = root};
    root->children = tfos__alloc(survey->count, sizeof(struct ArrowSchema *));
    schema.children = root->children;
    enum tfos_status status = root->children ? TFOS_OK : tfos__no_memory(err, "record", "a schema");
    for (uint32_t i = 0; status == TFOS_OK && i < survey->count; i++) {
        const struct tfos__trait *trait = &survey->traits[i];
        if (trait->kind == TFOS__FEATURE_NONE)
            continue;
        struct ArrowSchema *item = &root->items[schema.n_children];
        int level_count = trait->is_feature_list ? 2 : trait->is_list;
        status = make_field(trait->name, format_of(trait), level_count, item, err);
        if (status == TFOS_OK)
            root->children[schema.n_children++] = item;
    }
    if (status < 0)
        schema.release(&schema);
    else
        *out = schema;
    return status;
}
