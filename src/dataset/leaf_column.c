// SPDX-License-Identifier: Apache-2.0
// A depth-first traversal of the schema with one leaf, whose path grows and shrinks.
// docs/protocol.md describes the metadata of Python's rows, docs/types.md what becomes of each
// type.
#include "dataset/leaf_column.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#define METADATA_SIZE 256 // most bytes of a column's metadata

struct scan {
    struct tfos__dataset_leaf_column leaf;
    struct tfos__dataset_path_step steps[TFOS__PATH_LIMIT]; ///< of the leaf's path
    char number[24];                                        ///< name of a tuple's element
    bool is_bool;   ///< bytes are booleans of Python or numpy
    bool is_moment; ///< integers are dates or durations of numpy
    enum tfos_status (*visit)(void *context, const struct tfos__dataset_leaf_column *leaf,
                              struct tfos_error *err);
    void *context;
};

static enum tfos_status scan_field(struct scan *scan, const struct ArrowSchema *schema,
                                   struct tfos_error *err);

static enum tfos_status report(struct scan *scan, const char *problem, struct tfos_error *err)
{
    scan->leaf.problem = problem;
    return scan->visit(scan->context, &scan->leaf, err);
}

static bool is_of(const struct ArrowSchema *schema, enum tfos__arrow_kind kind, int64_t width)
{
    struct tfos__arrow_type type;

    return tfos__arrow_type_read(&type, schema, NULL) == TFOS_OK &&
           tfos__arrow_type_is(&type, kind, width);
}

// Whether it is Spark's VectorUDT, as a DataFrame has it; the type of its lists.
static bool is_vector(const struct ArrowSchema *schema, struct tfos__arrow_type *lists)
{
    static const char *const names[] = {"type", "size", "indices", "values"};
    struct tfos__arrow_type indices;

    if (schema->n_children != 4)
        return false;
    for (int i = 0; i < 4; i++)
        if (strcmp(schema->children[i]->name, names[i]) != 0)
            return false;
    return is_of(schema->children[0], TFOS__ARROW_INT, 8) &&
           is_of(schema->children[1], TFOS__ARROW_INT, 32) &&
           tfos__arrow_type_read(&indices, schema->children[2], NULL) == TFOS_OK &&
           tfos__arrow_type_read(lists, schema->children[3], NULL) == TFOS_OK &&
           indices.layout == TFOS__ARROW_OFFSETS && tfos__arrow_type_equals(&indices, lists) &&
           is_of(schema->children[2]->children[0], TFOS__ARROW_INT, 32) &&
           is_of(schema->children[3]->children[0], TFOS__ARROW_FLOAT, 64);
}

static enum tfos_status scan_vector(struct scan *scan, struct tfos_error *err)
{
    const struct tfos__arrow_type type = tfos__arrow_type_of(TFOS__ARROW_FLOAT, 64, 0);
    struct tfos__dataset_leaf_column *leaf = &scan->leaf;
    const char *problem = leaf->level_count > 0 ? "vectors within lists have no tensor form" : NULL;

    tfos__dataset_element_init(&leaf->path.element, &type);
    leaf->is_vector = true;
    enum tfos_status status = report(scan, problem, err);
    leaf->is_vector = false;
    return status;
}

static struct tfos__dataset_path_step member_step(int64_t member)
{
    return (struct tfos__dataset_path_step){tfos__arrow_type_of(TFOS__ARROW_STRUCT, 0, 0), member};
}

static enum tfos_status scan_members(struct scan *scan, const struct ArrowSchema *schema,
                                     const char *const *names, struct tfos_error *err)
{
    struct tfos__dataset_leaf_column *leaf = &scan->leaf;
    enum tfos_status status = TFOS_OK;

    if (leaf->depth == TFOS__PATH_LIMIT || leaf->path.step_count == TFOS__PATH_LIMIT)
        return report(scan, "it is nested too deep", err);
    leaf->depth++;
    leaf->path.step_count++;
    for (int64_t i = 0; i < schema->n_children && status >= 0; i++) {
        leaf->names[leaf->depth - 1] = names ? names[i] : schema->children[i]->name;
        scan->steps[leaf->path.step_count - 1] = member_step(i);
        status = scan_field(scan, schema->children[i], err);
    }
    leaf->depth--;
    leaf->path.step_count--;
    return status;
}

static void push_list(struct scan *scan, const struct tfos__arrow_type *type)
{
    struct tfos__dataset_leaf_column *leaf = &scan->leaf;

    leaf->lengths[leaf->level_count++] =
        type->layout == TFOS__ARROW_FIXED_LIST ? type->list_size : -1;
    scan->steps[leaf->path.step_count++] = (struct tfos__dataset_path_step){.type = *type};
}

static enum tfos_status scan_list(struct scan *scan, const struct ArrowSchema *schema,
                                  const struct tfos__arrow_type *type, struct tfos_error *err)
{
    static const char *const entry_names[] = {"key", "value"};
    struct tfos__dataset_leaf_column *leaf = &scan->leaf;
    bool is_map = type->kind == TFOS__ARROW_MAP, was_map = leaf->is_map;

    if (leaf->level_count == TFOS__LIST_LEVELS || leaf->path.step_count == TFOS__PATH_LIMIT)
        return report(scan, "it has more lists within lists than a tensor may have dimensions",
                      err);
    push_list(scan, type);
    leaf->is_map = was_map || is_map;
    enum tfos_status status = is_map ? scan_members(scan, schema->children[0], entry_names, err)
                                     : scan_field(scan, schema->children[0], err);
    leaf->is_map = was_map;
    leaf->path.step_count--;
    leaf->level_count--;
    return status;
}

// Three leaf columns of one array.
static enum tfos_status scan_interval(struct scan *scan, const struct tfos__arrow_type *type,
                                      struct tfos_error *err)
{
    static const struct {
        const char *name;
        enum tfos__dataset_element_part part;
        enum tfos_dtype dtype;
    } parts[] = {
        {"months", TFOS__PART_MONTHS, TFOS_DTYPE_INT32},
        {"days", TFOS__PART_DAYS, TFOS_DTYPE_INT32},
        {"microseconds", TFOS__PART_MICROSECONDS, TFOS_DTYPE_INT64},
    };
    struct tfos__dataset_leaf_column *leaf = &scan->leaf;
    enum tfos_status status = TFOS_OK;

    if (leaf->depth == TFOS__PATH_LIMIT)
        return report(scan, "it is nested too deep", err);
    leaf->depth++;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status >= 0; i++) {
        leaf->names[leaf->depth - 1] = parts[i].name;
        leaf->path.element = (struct tfos__dataset_element){*type, parts[i].part, parts[i].dtype};
        status = report(scan, NULL, err);
    }
    leaf->depth--;
    return status;
}

// A column that has no type yet: all values are null, or all lists are empty.
static enum tfos_status scan_nothing(struct scan *scan, const struct tfos__arrow_type *list,
                                     struct tfos_error *err)
{
    struct tfos__dataset_leaf_column *leaf = &scan->leaf;

    if (list)
        push_list(scan, list);
    leaf->path.element = (struct tfos__dataset_element){.part = TFOS__PART_NOTHING};
    enum tfos_status status = report(scan, NULL, err);
    leaf->path.step_count -= list != NULL;
    leaf->level_count -= list != NULL;
    return status;
}

// Whether a column, or the elements of its lists, have no type yet.
static bool is_untyped(const struct ArrowSchema *schema)
{
    char text[METADATA_SIZE];

    return tfos_arrow_metadata_find(schema->metadata, "tfos.value", text, sizeof(text)) &&
           strcmp(text, "null") == 0;
}

static enum tfos_status scan_field(struct scan *scan, const struct ArrowSchema *schema,
                                   struct tfos_error *err)
{
    struct tfos__dataset_element *element = &scan->leaf.path.element;
    struct tfos__arrow_type type;

    if (tfos__arrow_type_read(&type, schema, NULL) < 0)
        return report(scan, "its type has no tensor form", err);
    if (type.kind == TFOS__ARROW_STRUCT)
        return is_vector(schema, &scan->leaf.path.lists) ? scan_vector(scan, err)
                                                         : scan_members(scan, schema, NULL, err);
    if (type.kind == TFOS__ARROW_LIST || type.kind == TFOS__ARROW_MAP)
        return scan_list(scan, schema, &type, err);
    if (type.kind == TFOS__ARROW_INTERVAL)
        return scan_interval(scan, &type, err);
    if (is_untyped(schema))
        return scan_nothing(scan, NULL, err);
    if (!tfos__dataset_element_init(element, &type))
        return report(scan, "its type has no tensor form", err);
    if (scan->is_bool && element->dtype == TFOS_DTYPE_UINT8)
        element->dtype = TFOS_DTYPE_BOOL;
    scan->leaf.is_number = scan->leaf.is_python && !scan->is_moment &&
                           (tfos__arrow_type_is(&type, TFOS__ARROW_INT, 64) ||
                            tfos__arrow_type_is(&type, TFOS__ARROW_FLOAT, 64));
    enum tfos_status status = report(scan, NULL, err);
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

// Reads a numpy array's shape, whose product must be the array's length.
static bool take_shape(struct scan *scan, const struct tfos__arrow_type *type, char *text)
{
    struct tfos__dataset_leaf_column *leaf = &scan->leaf;
    int64_t product = 1;

    for (leaf->rank = 0; *text; leaf->rank++) {
        char *end = NULL;
        const char *word = take_word(&text);
        long long size = strtoll(word, &end, 10);
        if (leaf->rank == TFOS__LIST_LEVELS || *end != '\0' || end == word || size < 0 ||
            __builtin_mul_overflow(product, size, &product))
            return false;
        leaf->shape[leaf->rank] = size;
    }
    return leaf->rank == 0 ||
           (type->layout == TFOS__ARROW_FIXED_LIST && type->list_size == product);
}

// A column of values and, for readers of Python's objects, the originals of some of them.
static enum tfos_status scan_values(struct scan *scan, const struct ArrowSchema *schema,
                                    struct tfos_error *err)
{
    struct tfos__dataset_leaf_column *leaf = &scan->leaf;

    if (!tfos__arrow_is_struct(schema) || schema->n_children != 2)
        return report(scan, "its originals are not beside its values", err);
    scan->steps[leaf->path.step_count++] = member_step(0);
    enum tfos_status status = scan_field(scan, schema->children[0], err);
    leaf->path.step_count--;
    return status;
}

// A column that the Python extension made.
static enum tfos_status scan_packed(struct scan *scan, const struct ArrowSchema *schema, char *text,
                                    struct tfos_error *err)
{
    const struct ArrowSchema *value = schema->n_children == 1 ? schema->children[0] : schema;
    const char *kind = take_word(&text);
    bool is_array = strcmp(kind, "array") == 0;
    bool is_list = strcmp(kind, "list") == 0 || strcmp(kind, "tuple") == 0;
    bool has_items = is_array || is_list || strcmp(kind, "scalar") == 0;
    const char *item = has_items ? take_word(&text) : kind;
    struct tfos__arrow_type type, value_type;

    if (strcmp(kind, "original") == 0)
        return scan_values(scan, schema, err);
    if (tfos__arrow_type_read(&type, schema, NULL) < 0 ||
        tfos__arrow_type_read(&value_type, value, NULL) < 0)
        return report(scan, "its type has no tensor form", err);
    const char *problem = NULL;
    if (strcmp(kind, "pickle") == 0)
        problem = "it holds objects of several types, or of one that has no tensor form; feed "
                  "numbers, text, bytes, lists of these, or arrays of one shape";
    else if (has_items && value_type.kind == TFOS__ARROW_BINARY &&
             value_type.layout == TFOS__ARROW_FIXED)
        problem = "its numpy type has no tensor form";
    else if (is_array && !take_shape(scan, &type, text))
        problem = "its shape is not one that a tensor can have";
    if (problem)
        return report(scan, problem, err);
    scan->is_bool = strcmp(item, "bool") == 0 || strcmp(item, "b1") == 0;
    scan->is_moment = strncmp(item, "M8", 2) == 0 || strncmp(item, "m8", 2) == 0;
    enum tfos_status status = is_list && strcmp(item, "null") == 0 ? scan_nothing(scan, &type, err)
                                                                   : scan_field(scan, schema, err);
    scan->is_bool = scan->is_moment = false;
    scan->leaf.rank = 0;
    return status;
}

static enum tfos_status find_structure(const struct ArrowSchema *schema,
                                       enum tfos_row_structure *structure, bool *is_python,
                                       struct tfos_error *err)
{
    char text[METADATA_SIZE];

    *structure = TFOS_ROW_DICT;
    *is_python = tfos_arrow_metadata_find(schema->metadata, "tfos.row", text, sizeof(text));
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

enum tfos_status tfos__dataset_leaf_columns_visit(
    const struct ArrowSchema *schema, enum tfos_row_structure *structure,
    enum tfos_status (*visit)(void *context, const struct tfos__dataset_leaf_column *leaf,
                              struct tfos_error *err),
    void *context, struct tfos_error *err)
{
    struct scan scan = {.visit = visit, .context = context};
    struct tfos__dataset_leaf_column *leaf = &scan.leaf;
    char text[METADATA_SIZE];

    leaf->path.steps = scan.steps;
    leaf->depth = leaf->path.step_count = 1;
    TFOS__TRY(find_structure(schema, structure, &leaf->is_python, err));
    for (int64_t i = 0; i < schema->n_children; i++) {
        const struct ArrowSchema *column = schema->children[i];
        snprintf(scan.number, sizeof(scan.number), "%lld", (long long)i);
        leaf->names[0] = *structure == TFOS_ROW_DICT    ? column->name
                         : *structure == TFOS_ROW_TUPLE ? scan.number
                                                        : "value";
        scan.steps[0] = member_step(i);
        if (tfos_arrow_metadata_find(column->metadata, "tfos.value", text, sizeof(text)))
            TFOS__TRY(scan_packed(&scan, column, text, err));
        else
            TFOS__TRY(scan_field(&scan, column, err));
    }
    return TFOS_OK;
}
