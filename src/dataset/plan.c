// SPDX-License-Identifier: Apache-2.0
// Features are added in the order of the schema and then sorted in that of the selection. They are
// found by their paths, whatever the order in another schema.
//
// As JSON: {"structure": 1, "selective": false, "columns": [[path, dtype, form, [lengths], [shape],
// flags], ...]}.
#include "dataset/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

#define NAMES_SIZE 640 // bytes of the names of columns in a message

/// Names of columns, as far as they fit.
struct names {
    char text[NAMES_SIZE];
    size_t size;
};

struct builder {
    struct tfos__dataset_plan *plan;
    const struct tfos__dataset_column_options *options;
    struct names names; ///< of all columns
};

enum { FLAG_VECTOR = 1, FLAG_FLEXIBLE = 2, FLAG_PRODUCT = 4, FLAG_NUMBER = 8 };

static void add_name(struct names *names, const char *name)
{
    size_t room = sizeof(names->text) - names->size;

    if (room == 0)
        return;
    int size = snprintf(names->text + names->size, room, "%s%s", names->size > 0 ? ", " : "", name);
    if ((size_t)size < room) {
        names->size += (size_t)size;
        return;
    }
    memcpy(names->text + sizeof(names->text) - sizeof "...", "...", sizeof "...");
    names->size = sizeof(names->text);
}

// The path, its names and the joined name in one block.
static const char **copy_path(const char *const *path, int depth, const char **name)
{
    size_t pointers_size = (size_t)depth * sizeof(char *), size = 0;

    for (int i = 0; i < depth; i++)
        size += strlen(path[i]) + 1;
    const char **copy = tfos__alloc(pointers_size + 2 * size + 1, 1);
    if (!copy)
        return NULL;
    char *text = (char *)(copy + depth);
    char *joined = text + size;
    *name = joined;
    for (int i = 0; i < depth; i++) {
        size_t length = strlen(path[i]) + 1;
        memcpy(text, path[i], length);
        copy[i] = text;
        text += length;
        if (i > 0)
            joined[-1] = '.';
        memcpy(joined, path[i], length);
        joined += length;
    }
    return copy;
}

struct tfos__dataset_feature *tfos__dataset_plan_add(struct tfos__dataset_plan *plan,
                                                     const char *const *path, int depth)
{
    const char *name = NULL;

    void *features =
        tfos__array_grow(plan->features, (size_t)plan->feature_count, sizeof(*plan->features));
    if (!features)
        return NULL;
    plan->features = features;
    const char **copy = copy_path(path, depth, &name);
    if (!copy)
        return NULL;
    struct tfos__dataset_feature *feature = &plan->features[plan->feature_count++];
    *feature = (struct tfos__dataset_feature){
        .path = copy, .name = name, .depth = depth, .number = plan->feature_count};
    return feature;
}

static enum tfos_status add_leaf(void *context, const struct tfos__dataset_leaf_column *leaf,
                                 struct tfos_error *err)
{
    struct builder *builder = context;
    struct tfos__dataset_plan *plan = builder->plan;
    struct tfos__dataset_feature *feature = tfos__dataset_plan_add(plan, leaf->names, leaf->depth);

    if (!feature)
        return tfos__no_memory(err, "dataset", "a column");
    add_name(&builder->names, feature->name);
    feature->order = tfos__dataset_column_options_select(builder->options, feature->name);
    if (feature->order < 0) {
        tfos__free(feature->path);
        plan->feature_count--;
        return TFOS_OK;
    }
    if (leaf->problem)
        return tfos__fail(err, TFOS_INVALID, "dataset: column %s has no tensor form: %s",
                          feature->name, leaf->problem);
    if (leaf->path.element.part == TFOS__PART_NOTHING)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: column %s has no type yet: no row of the first batch has a "
                          "value in it",
                          feature->name);
    return tfos__dataset_feature_init(
        feature, leaf, tfos__dataset_column_options_find(builder->options, feature->name), err);
}

// The first selected name that selects no feature, or -1. Features are sorted by the names'
// numbers.
static int64_t find_unused(const struct tfos__dataset_plan *plan, int64_t selection_count)
{
    int64_t next = 0;

    for (int64_t i = 0; i < plan->feature_count && plan->features[i].order <= next; i++)
        next = plan->features[i].order + 1;
    return next < selection_count ? next : -1;
}

static bool has_feature(const struct tfos__dataset_plan *plan, const char *name)
{
    for (int64_t i = 0; i < plan->feature_count; i++)
        if (strcmp(plan->features[i].name, name) == 0)
            return true;
    return false;
}

static enum tfos_status check_options(const struct builder *builder, struct tfos_error *err)
{
    const struct tfos__dataset_column_options *options = builder->options;
    const struct tfos__dataset_plan *plan = builder->plan;
    struct names names = {.size = 0};

    int64_t unused = find_unused(plan, options->selection_count);
    if (unused >= 0)
        return tfos__fail(err, TFOS_INVALID, "dataset: there is no column %s: the rows have %s",
                          options->selection[unused], builder->names.text);
    for (int64_t i = 0; i < plan->feature_count; i++)
        add_name(&names, plan->features[i].name);
    for (int64_t i = 0; i < options->column_count; i++)
        if (!has_feature(plan, options->columns[i].name))
            return tfos__fail(err, TFOS_INVALID,
                              "dataset: there is no column %s among those that are given out: %s",
                              options->columns[i].name, names.text);
    return plan->feature_count > 0
               ? TFOS_OK
               : tfos__fail(err, TFOS_INVALID, "dataset: the rows have no columns");
}

static int compare_orders(const void *a, const void *b)
{
    const struct tfos__dataset_feature *left = a, *right = b;

    if (left->order != right->order)
        return left->order < right->order ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

enum tfos_status tfos__dataset_plan_init(struct tfos__dataset_plan *plan,
                                         const struct ArrowSchema *schema,
                                         const struct tfos__dataset_column_options *options,
                                         struct tfos_error *err)
{
    struct builder builder = {.plan = plan, .options = options};

    *plan = (struct tfos__dataset_plan){.is_selective = options->selection_count > 0};
    enum tfos_status status =
        tfos__dataset_leaf_columns_visit(schema, &plan->structure, add_leaf, &builder, err);
    if (status == TFOS_OK && plan->feature_count > 0)
        qsort(plan->features, (size_t)plan->feature_count, sizeof(*plan->features), compare_orders);
    if (status == TFOS_OK)
        status = check_options(&builder, err);
    if (status == TFOS_OK)
        status = tfos__dataset_plan_set_fill_values(plan, options, err);
    if (status == TFOS_OK)
        status = tfos__dataset_plan_sort(plan, err);
    if (status != TFOS_OK)
        tfos__dataset_plan_clear(plan);
    return status;
}

bool tfos__dataset_plan_is_undecided(const struct tfos__dataset_plan *plan)
{
    for (int64_t i = 0; i < plan->feature_count; i++)
        if (plan->features[i].is_undecided)
            return true;
    return false;
}

bool tfos__dataset_plan_follows_rows(const struct tfos__dataset_plan *plan)
{
    for (int64_t i = 0; i < plan->feature_count; i++)
        if (plan->features[i].is_measured || plan->features[i].is_flexible)
            return true;
    return false;
}

void tfos__dataset_plan_leave_open(struct tfos__dataset_plan *plan)
{
    for (int64_t i = 0; i < plan->feature_count; i++) {
        struct tfos__dataset_feature *feature = &plan->features[i];
        if (feature->is_undecided && feature->form == TFOS_FORM_AUTO)
            feature->form = TFOS_FORM_DENSE;
        feature->is_undecided = false;
    }
}

enum tfos_status
tfos__dataset_plan_set_fill_values(struct tfos__dataset_plan *plan,
                                   const struct tfos__dataset_column_options *options,
                                   struct tfos_error *err)
{
    for (int64_t i = 0; i < plan->feature_count; i++) {
        struct tfos__dataset_feature *feature = &plan->features[i];
        const struct tfos_dataset_column *column =
            tfos__dataset_column_options_find(options, feature->name);
        const char *text = column && column->null_value ? column->null_value : options->null_value;
        if (!text)
            continue;
        TFOS__TRY(tfos__dataset_fill_value_init(&feature->fill_value, feature->dtype, text,
                                                feature->name, err));
        feature->fills_nulls = true;
    }
    return TFOS_OK;
}

static int compare_paths(const char *const *a, int a_depth, const char *const *b, int b_depth)
{
    for (int i = 0; i < a_depth && i < b_depth; i++) {
        int order = strcmp(a[i], b[i]);
        if (order != 0)
            return order;
    }
    return a_depth - b_depth;
}

static int compare_features(const void *a, const void *b)
{
    const struct tfos__dataset_feature *const *left = a;
    const struct tfos__dataset_feature *const *right = b;

    return compare_paths((*left)->path, (*left)->depth, (*right)->path, (*right)->depth);
}

enum tfos_status tfos__dataset_plan_sort(struct tfos__dataset_plan *plan, struct tfos_error *err)
{
    size_t count = (size_t)plan->feature_count;

    plan->sorted = tfos__alloc(count, sizeof(*plan->sorted));
    if (!plan->sorted)
        return tfos__no_memory(err, "dataset", "the columns");
    for (size_t i = 0; i < count; i++)
        plan->sorted[i] = &plan->features[i];
    qsort(plan->sorted, count, sizeof(*plan->sorted), compare_features);
    for (size_t i = 1; i < count; i++) {
        if (compare_features(&plan->sorted[i - 1], &plan->sorted[i]) == 0)
            return tfos__fail(err, TFOS_INVALID, "dataset: two columns have the name %s",
                              plan->sorted[i]->name);
    }
    return TFOS_OK;
}

int64_t tfos__dataset_plan_find(const struct tfos__dataset_plan *plan, const char *const *path,
                                int depth)
{
    int64_t low = 0, high = plan->feature_count;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        const struct tfos__dataset_feature *feature = plan->sorted[middle];
        int order = compare_paths(path, depth, feature->path, feature->depth);
        if (order == 0)
            return feature - plan->features;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

enum tfos_status tfos__dataset_plan_specs(const struct tfos__dataset_plan *plan, int64_t rows,
                                          bool has_weights, struct tfos_tensor_spec **out,
                                          int64_t *count, struct tfos_error *err)
{
    int64_t total = has_weights, position = 0;

    for (int64_t i = 0; i < plan->feature_count; i++)
        total += tfos__dataset_feature_tensor_count(&plan->features[i]);
    struct tfos_tensor_spec *specs = tfos__alloc((size_t)total, sizeof(*specs));
    if (!specs)
        return tfos__no_memory(err, "dataset", "the specs");
    for (int64_t i = 0; i < plan->feature_count; i++)
        position += tfos__dataset_feature_specs(&plan->features[i], rows, &specs[position]);
    if (has_weights)
        specs[position] = (struct tfos_tensor_spec){
            .role = TFOS_TENSOR_WEIGHTS, .dtype = TFOS_DTYPE_FLOAT32, .rank = 1, .shape = {rows}};
    *out = specs;
    *count = total;
    return TFOS_OK;
}

static json_t *write_numbers(const int64_t *numbers, int count)
{
    json_t *array = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(array, json_integer(numbers[i]));
    return array;
}

static json_t *write_feature(const struct tfos__dataset_feature *feature)
{
    json_t *path = json_array();
    int flags = (feature->is_vector ? FLAG_VECTOR : 0) |
                (feature->is_flexible ? FLAG_FLEXIBLE : 0) |
                (feature->is_product ? FLAG_PRODUCT : 0) | (feature->is_number ? FLAG_NUMBER : 0);

    for (int i = 0; i < feature->depth; i++)
        json_array_append_new(path, json_string(feature->path[i]));
    return json_pack("[o, s, i, o, o, i]", path, tfos__dataset_type_name(feature->dtype),
                     (int)feature->form, write_numbers(feature->lengths, feature->level_count),
                     write_numbers(feature->shape, feature->rank), flags);
}

json_t *tfos__dataset_plan_write(const struct tfos__dataset_plan *plan, struct tfos_error *err)
{
    json_t *columns = json_array();
    json_t *layout = NULL;

    for (int64_t i = 0; i < plan->feature_count; i++)
        json_array_append_new(columns, write_feature(&plan->features[i]));
    if (json_array_size(columns) == (size_t)plan->feature_count)
        layout = json_pack("{s:i, s:b, s:O}", "structure", (int)plan->structure, "selective",
                           (int)plan->is_selective, "columns", columns);
    json_decref(columns);
    if (!layout)
        tfos__fail(err, TFOS_INVALID,
                   "dataset: the columns cannot be sent to other nodes: a name is not UTF-8, or "
                   "there is no memory");
    return layout;
}

static bool read_numbers(const json_t *array, int64_t *numbers, int *count)
{
    size_t size = json_array_size(array);

    if (!json_is_array(array) || size > TFOS__LIST_LEVELS)
        return false;
    *count = (int)size;
    for (size_t i = 0; i < size; i++)
        numbers[i] = (int64_t)json_integer_value(json_array_get(array, i));
    return true;
}

static bool read_feature(const json_t *value, struct tfos__dataset_plan *plan)
{
    const char *names[TFOS__PATH_LIMIT];
    const json_t *path = json_array_get(value, 0);
    size_t depth = json_array_size(path);
    const char *dtype = json_string_value(json_array_get(value, 1));
    int64_t form = json_integer_value(json_array_get(value, 2));
    int64_t flags = json_integer_value(json_array_get(value, 5));

    if (depth == 0 || depth > TFOS__PATH_LIMIT || !dtype || form < TFOS_FORM_DENSE ||
        form > TFOS_FORM_SPARSE || tfos__dataset_type_find(dtype) == 0)
        return false;
    for (size_t i = 0; i < depth; i++) {
        names[i] = json_string_value(json_array_get(path, i));
        if (!names[i])
            return false;
    }
    struct tfos__dataset_feature *feature = tfos__dataset_plan_add(plan, names, (int)depth);
    if (!feature)
        return false;
    feature->dtype = tfos__dataset_type_find(dtype);
    feature->form = (enum tfos_column_form)form;
    feature->is_vector = flags & FLAG_VECTOR;
    feature->is_flexible = flags & FLAG_FLEXIBLE;
    feature->is_product = flags & FLAG_PRODUCT;
    feature->is_number = flags & FLAG_NUMBER;
    return read_numbers(json_array_get(value, 3), feature->lengths, &feature->level_count) &&
           read_numbers(json_array_get(value, 4), feature->shape, &feature->rank);
}

enum tfos_status tfos__dataset_plan_read(const json_t *layout, struct tfos__dataset_plan *plan,
                                         struct tfos_error *err)
{
    const json_t *columns = json_object_get(layout, "columns");
    size_t index = 0;
    json_t *column = NULL;
    bool is_read = json_array_size(columns) > 0;
    enum tfos_status status = TFOS_OK;

    *plan = (struct tfos__dataset_plan){
        .structure = (enum tfos_row_structure)tfos__json_int_or(layout, "structure", TFOS_ROW_DICT),
        .is_selective = tfos__json_bool_or(layout, "selective", false)};
    json_array_foreach(columns, index, column) is_read = is_read && read_feature(column, plan);
    if (!is_read)
        status = tfos__fail(err, TFOS_INVALID, "dataset: the plan of another node cannot be read");
    if (status == TFOS_OK)
        status = tfos__dataset_plan_sort(plan, err);
    if (status != TFOS_OK)
        tfos__dataset_plan_clear(plan);
    return status;
}

void tfos__dataset_plan_clear(struct tfos__dataset_plan *plan)
{
    for (int64_t i = 0; i < plan->feature_count; i++) {
        tfos__free(plan->features[i].path);
        tfos__dataset_fill_value_clear(&plan->features[i].fill_value);
    }
    tfos__free(plan->features);
    tfos__free(plan->sorted);
    *plan = (struct tfos__dataset_plan){0};
}
