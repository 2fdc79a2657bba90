// SPDX-License-Identifier: Apache-2.0
// A walk through the schema's tree with one leaf that grows and shrinks. docs/protocol.md says what
// the metadata of Python's rows mean, docs/types.md what becomes of each type.
#include "dataset/leaf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#define VALUE_SIZE 256 ///< most bytes of a column's metadata

struct scan {
    struct tfos__leaf leaf;
    bool is_bool;   ///< bytes are Python's or numpy's booleans
    bool is_moment; ///< integers are numpy's dates or durations
    enum tfos_status (*take)(void *context, const struct tfos__leaf *leaf, struct tfos_error *err);
    void *context;
};

static enum tfos_status scan_field(struct scan *scan, const struct ArrowSchema *schema,
                                   struct tfos_error *err);

static enum tfos_status give(struct scan *scan, const char *problem, struct tfos_error *err)
{
    scan->leaf.problem = problem;
    return scan->take(scan->context, &scan->leaf, err);
}

static bool is_list_of(const struct ArrowSchema *schema, const char *format)
{
    return (strcmp(schema->format, "+l") == 0 || strcmp(schema->format, "+L") == 0) &&
           strcmp(schema->children[0]->format, format) == 0;
}

// Spark's VectorUDT as it is in a DataFrame.
static bool is_vector(const struct ArrowSchema *schema)
{
    static const char *const names[] = {"type", "size", "indices", "values"};

    if (schema->n_children != 4)
        return false;
    for (int i = 0; i < 4; i++)
        if (strcmp(schema->children[i]->name, names[i]) != 0)
            return false;
    return strcmp(schema->children[0]->format, "c") == 0 &&
           strcmp(schema->children[1]->format, "i") == 0 && is_list_of(schema->children[2], "i") &&
           is_list_of(schema->children[3], "g") &&
           strcmp(schema->children[2]->format, schema->children[3]->format) == 0;
}

static enum tfos_status scan_vector(struct scan *scan, const struct ArrowSchema *schema,
                                    struct tfos_error *err)
{
    struct tfos__leaf *leaf = &scan->leaf;
    const char *problem = leaf->level_count > 0 ? "vectors within lists have no tensor form" : NULL;

    leaf->element = (struct tfos__element){TFOS__ELEMENT_PLAIN, TFOS_DTYPE_FLOAT64, 8, 0};
    leaf->is_vector = true;
    leaf->has_wide_lists = schema->children[3]->format[1] == 'L';
    enum tfos_status status = give(scan, problem, err);
    leaf->is_vector = false;
    return status;
}

static enum tfos_status scan_members(struct scan *scan, const struct ArrowSchema *schema,
                                     const char *const *names, struct tfos_error *err)
{
    struct tfos__leaf *leaf = &scan->leaf;
    enum tfos_status status = TFOS_OK;

    if (leaf->depth == TFOS__LEAF_STEPS || leaf->step_count == TFOS__LEAF_STEPS)
        return give(scan, "it is nested too deep", err);
    leaf->depth++;
    leaf->step_count++;
    for (int64_t i = 0; i < schema->n_children && status >= 0; i++) {
        leaf->names[leaf->depth - 1] = names ? names[i] : schema->children[i]->name;
        leaf->steps[leaf->step_count - 1] = (struct tfos__step){TFOS__STEP_MEMBER, i};
        status = scan_field(scan, schema->children[i], err);
    }
    leaf->depth--;
    leaf->step_count--;
    return status;
}

static enum tfos_status scan_list(struct scan *scan, const struct ArrowSchema *schema,
                                  struct tfos_error *err)
{
    static const char *const entry_names[] = {"key", "value"};
    struct tfos__leaf *leaf = &scan->leaf;
    struct tfos__step step = {TFOS__STEP_LIST, 0};
    const struct ArrowSchema *child = schema->children[0];
    bool is_map = schema->format[1] == 'm';
    bool was_map = leaf->is_map;

    if (leaf->level_count == TFOS__LEAF_LEVELS || leaf->step_count == TFOS__LEAF_STEPS)
        return give(scan, "it has more lists within lists than a tensor may have dimensions", err);
    if (schema->format[1] == 'L')
        step.kind = TFOS__STEP_WIDE_LIST;
    if (schema->format[1] == 'w')
        step = (struct tfos__step){TFOS__STEP_FIXED_LIST, strtoll(schema->format + 3, NULL, 10)};
    leaf->lengths[leaf->level_count++] = step.kind == TFOS__STEP_FIXED_LIST ? step.number : -1;
    leaf->steps[leaf->step_count++] = step;
    leaf->is_map = was_map || is_map;
    enum tfos_status status = is_map && strcmp(child->format, "+s") == 0 && child->n_children == 2
                                  ? scan_members(scan, child, entry_names, err)
                                  : scan_field(scan, child, err);
    leaf->is_map = was_map;
    leaf->step_count--;
    leaf->level_count--;
    return status;
}

// Three columns of one array.
static enum tfos_status scan_interval(struct scan *scan, struct tfos_error *err)
{
    static const struct {
        const char *name;
        struct tfos__element element;
    } parts[] = {
        {"months", {TFOS__ELEMENT_MONTHS, TFOS_DTYPE_INT32, 16, 0}},
        {"days", {TFOS__ELEMENT_DAYS, TFOS_DTYPE_INT32, 16, 0}},
        {"microseconds", {TFOS__ELEMENT_MICROSECONDS, TFOS_DTYPE_INT64, 16, 0}},
    };
    struct tfos__leaf *leaf = &scan->leaf;
    enum tfos_status status = TFOS_OK;

    if (leaf->depth == TFOS__LEAF_STEPS)
        return give(scan, "it is nested too deep", err);
    leaf->depth++;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && status >= 0; i++) {
        leaf->names[leaf->depth - 1] = parts[i].name;
        leaf->element = parts[i].element;
        status = give(scan, NULL, err);
    }
    leaf->depth--;
    return status;
}

// Whether a column, or the elements of its lists, have had no value yet.
static bool is_untyped(const struct ArrowSchema *schema)
{
    char text[VALUE_SIZE];

    return tfos_arrow_metadata_find(schema->metadata, "tfos.value", text, sizeof text) &&
           strcmp(text, "null") == 0;
}

static enum tfos_status scan_field(struct scan *scan, const struct ArrowSchema *schema,
                                   struct tfos_error *err)
{
    struct tfos__element *element = &scan->leaf.element;

    if (strcmp(schema->format, "+s") == 0)
        return is_vector(schema) ? scan_vector(scan, schema, err)
                                 : scan_members(scan, schema, NULL, err);
    if (schema->format[0] == '+')
        return scan_list(scan, schema, err);
    if (is_untyped(schema)) {
        element->kind = TFOS__ELEMENT_NOTHING;
        return give(scan, NULL, err);
    }
    if (!tfos__element_parse(schema->format, element))
        return give(scan, "its type has no tensor form", err);
    if (element->kind == TFOS__ELEMENT_MONTHS)
        return scan_interval(scan, err);
    if (scan->is_bool && element->dtype == TFOS_DTYPE_UINT8)
        element->dtype = TFOS_DTYPE_BOOL;
    scan->leaf.is_number = scan->leaf.is_python && !scan->is_moment &&
                           (strcmp(schema->format, "l") == 0 || strcmp(schema->format, "g") == 0);
    enum tfos_status status = give(scan, NULL, err);
    scan->leaf.is_number = false;
    return status;
}

// The next word of a column's metadata.
static const char *take_word(char **text)
{
    const char *word = *text;

    *text += strcspn(*text, " ");
    if (**text == ' ')
        *(*text)++ = '\0';
    return word;
}

// A numpy array's shape must be one of its length.
static bool take_shape(struct scan *scan, const struct ArrowSchema *schema, char *text)
{
    struct tfos__leaf *leaf = &scan->leaf;
    int64_t product = 1;

    for (leaf->rank = 0; *text; leaf->rank++) {
        char *end = NULL;
        const char *word = take_word(&text);
        long long size = strtoll(word, &end, 10);
        if (leaf->rank == TFOS__LEAF_LEVELS || *end != '\0' || end == word || size < 0 ||
            __builtin_mul_overflow(product, size, &product))
            return false;
        leaf->shape[leaf->rank] = size;
    }
    return leaf->rank == 0 || (strncmp(schema->format, "+w:", 3) == 0 &&
                               strtoll(schema->format + 3, NULL, 10) == product);
}

// Values beside which the originals of some are kept, for readers of Python's objects.
static enum tfos_status scan_values(struct scan *scan, const struct ArrowSchema *schema,
                                    struct tfos_error *err)
{
    struct tfos__leaf *leaf = &scan->leaf;

    if (strcmp(schema->format, "+s") != 0 || schema->n_children != 2)
        return give(scan, "its originals are not beside its values", err);
    leaf->steps[leaf->step_count++] = (struct tfos__step){TFOS__STEP_MEMBER, 0};
    enum tfos_status status = scan_field(scan, schema->children[0], err);
    leaf->step_count--;
    return status;
}

// Lists that have all been empty.
static enum tfos_status scan_empty_lists(struct scan *scan, const struct ArrowSchema *schema,
                                         struct tfos_error *err)
{
    struct tfos__leaf *leaf = &scan->leaf;
    bool is_wide = strcmp(schema->format, "+L") == 0;

    leaf->steps[leaf->step_count++] =
        (struct tfos__step){is_wide ? TFOS__STEP_WIDE_LIST : TFOS__STEP_LIST, 0};
    leaf->lengths[leaf->level_count++] = -1;
    leaf->element.kind = TFOS__ELEMENT_NOTHING;
    enum tfos_status status = give(scan, NULL, err);
    leaf->step_count--;
    leaf->level_count--;
    return status;
}

// A column that the Python extension packed.
static enum tfos_status scan_packed(struct scan *scan, const struct ArrowSchema *schema, char *text,
                                    struct tfos_error *err)
{
    const char *format = schema->n_children == 1 ? schema->children[0]->format : schema->format;
    const char *kind = take_word(&text);
    bool is_array = strcmp(kind, "array") == 0;
    bool is_list = strcmp(kind, "list") == 0 || strcmp(kind, "tuple") == 0;
    bool has_items = is_array || is_list || strcmp(kind, "scalar") == 0;
    const char *item = has_items ? take_word(&text) : kind;
    const char *problem = NULL;

    if (strcmp(kind, "original") == 0)
        return scan_values(scan, schema, err);
    if (strcmp(kind, "pickle") == 0)
        problem = "it holds objects of several types, or of one that has no tensor form; feed "
                  "numbers, text, bytes, lists of these, or arrays of one shape";
    else if (has_items && format[0] == 'w')
        problem = "its numpy type has no tensor form";
    else if (is_array && !take_shape(scan, schema, text))
        problem = "its shape is not one that a tensor can have";
    if (problem)
        return give(scan, problem, err);
    scan->is_bool = strcmp(item, "bool") == 0 || strcmp(item, "b1") == 0;
    scan->is_moment = strncmp(item, "M8", 2) == 0 || strncmp(item, "m8", 2) == 0;
    enum tfos_status status = is_list && strcmp(item, "null") == 0
                                  ? scan_empty_lists(scan, schema, err)
                                  : scan_field(scan, schema, err);
    scan->is_bool = scan->is_moment = false;
    scan->leaf.rank = 0;
    return status;
}

static enum tfos_status find_structure(const struct ArrowSchema *schema,
                                       enum tfos_row_structure *structure, bool *is_python,
                                       struct tfos_error *err)
{
    char text[VALUE_SIZE];

    *structure = TFOS_ROW_DICT;
    *is_python = tfos_arrow_metadata_find(schema->metadata, "tfos.row", text, sizeof text);
    if (!*is_python || strcmp(text, "dict") == 0 || strcmp(text, "row") == 0 ||
        strcmp(text, "named") == 0)
        return TFOS_OK;
    *structure = TFOS_ROW_TUPLE;
    if (strcmp(text, "tuple") == 0 || strcmp(text, "list") == 0)
        return TFOS_OK;
    *structure = TFOS_ROW_VALUE;
    if (strcmp(text, "value") == 0 && schema->n_children == 1)
        return TFOS_OK;
    return tfos__fail(err, TFOS_INVALID,
                      "dataset: the schema says of its rows \"%s\", which is unknown", text);
}

enum tfos_status tfos__leaf_scan(
    const struct ArrowSchema *schema, enum tfos_row_structure *structure,
    enum tfos_status (*take)(void *context, const struct tfos__leaf *leaf, struct tfos_error *err),
    void *context, struct tfos_error *err)
{
    struct scan scan = {.take = take, .context = context};
    struct tfos__leaf *leaf = &scan.leaf;
    char text[VALUE_SIZE];

    TFOS__TRY(find_structure(schema, structure, &leaf->is_python, err));
    for (int64_t i = 0; i < schema->n_children; i++) {
        const struct ArrowSchema *column = schema->children[i];
        snprintf(leaf->number, sizeof leaf->number, "%lld", (long long)i);
        leaf->names[0] = *structure == TFOS_ROW_DICT    ? column->name
                         : *structure == TFOS_ROW_TUPLE ? leaf->number
                                                        : "value";
        leaf->depth = 1;
        leaf->steps[0] = (struct tfos__step){TFOS__STEP_MEMBER, i};
        leaf->step_count = 1;
        if (tfos_arrow_metadata_find(column->metadata, "tfos.value", text, sizeof text))
            TFOS__TRY(scan_packed(&scan, column, text, err));
        else
            TFOS__TRY(scan_field(&scan, column, err));
    }
    return TFOS_OK;
}

int tfos__path_compare(const char *const *a, int a_depth, const char *const *b, int b_depth)
{
    for (int i = 0; i < a_depth && i < b_depth; i++) {
        int order = strcmp(a[i], b[i]);
        if (order != 0)
            return order;
    }
    return a_depth - b_depth;
}
