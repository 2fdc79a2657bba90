// SPDX-License-Identifier: Apache-2.0
// {"uneven": 1, "over": false, "plan": null or {"structure": 1, "selective": false, "columns":
// [[path, dtype, form, [lengths], [shape], flags], ...]}}. Every node makes the same plan of the
// same values, in the same order, so that one exchange is enough.
#include "dataset/accord.h"

#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

enum { FLAG_VECTOR = 1, FLAG_FLEXIBLE = 2, FLAG_PRODUCT = 4 };

static json_t *write_numbers(const int64_t *numbers, int count)
{
    json_t *array = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(array, json_integer(numbers[i]));
    return array;
}

static json_t *write_feature(const struct tfos__feature *feature)
{
    json_t *path = json_array();
    int flags = (feature->is_vector ? FLAG_VECTOR : 0) |
                (feature->is_flexible ? FLAG_FLEXIBLE : 0) |
                (feature->is_product ? FLAG_PRODUCT : 0);

    for (int i = 0; i < feature->depth; i++)
        json_array_append_new(path, json_string(feature->path[i]));
    return json_pack("[o, s, i, o, o, i]", path, tfos__dtype_name(feature->dtype),
                     (int)feature->form, write_numbers(feature->lengths, feature->level_count),
                     write_numbers(feature->shape, feature->rank), flags);
}

enum tfos_status tfos__accord_write(const struct tfos__plan *plan, enum tfos_uneven uneven,
                                    bool is_over, char **out, struct tfos_error *err)
{
    json_t *columns = json_array();
    json_t *told = NULL;

    for (int64_t i = 0; plan && i < plan->feature_count; i++)
        json_array_append_new(columns, write_feature(&plan->features[i]));
    if (plan && json_array_size(columns) != (size_t)plan->feature_count) {
        json_decref(columns);
        return tfos__fail(
            err, TFOS_INVALID,
            "dataset: the columns cannot be told to other nodes: a name is not UTF-8, "
            "or there is no memory");
    }
    if (plan)
        told = json_pack("{s:i, s:b, s:O}", "structure", (int)plan->structure, "selective",
                         (int)plan->is_selective, "columns", columns);
    json_decref(columns);
    json_t *value =
        json_pack("{s:i, s:b, s:o?}", "uneven", (int)uneven, "over", (int)is_over, "plan", told);
    *out = value ? tfos__json_text(value) : NULL;
    json_decref(value);
    return *out ? TFOS_OK : tfos__no_memory(err, "dataset", "an exchange");
}

static bool read_numbers(const json_t *array, int64_t *numbers, int *count)
{
    size_t size = json_array_size(array);

    if (!json_is_array(array) || size > TFOS__LEAF_LEVELS)
        return false;
    *count = (int)size;
    for (size_t i = 0; i < size; i++)
        numbers[i] = (int64_t)json_integer_value(json_array_get(array, i));
    return true;
}

static bool read_feature(const json_t *told, struct tfos__plan *plan)
{
    const char *names[TFOS__LEAF_STEPS];
    const json_t *path = json_array_get(told, 0);
    size_t depth = json_array_size(path);
    const char *dtype = json_string_value(json_array_get(told, 1));
    int64_t form = json_integer_value(json_array_get(told, 2));
    int64_t flags = json_integer_value(json_array_get(told, 5));

    if (depth == 0 || depth > TFOS__LEAF_STEPS || !dtype || form < TFOS_FORM_DENSE ||
        form > TFOS_FORM_SPARSE || tfos__dtype_find(dtype) == 0)
        return false;
    for (size_t i = 0; i < depth; i++) {
        names[i] = json_string_value(json_array_get(path, i));
        if (!names[i])
            return false;
    }
    struct tfos__feature *feature = tfos__plan_add(plan, names, (int)depth);
    if (!feature)
        return false;
    feature->dtype = tfos__dtype_find(dtype);
    feature->form = (enum tfos_column_form)form;
    feature->is_vector = flags & FLAG_VECTOR;
    feature->is_flexible = flags & FLAG_FLEXIBLE;
    feature->is_product = flags & FLAG_PRODUCT;
    return read_numbers(json_array_get(told, 3), feature->lengths, &feature->level_count) &&
           read_numbers(json_array_get(told, 4), feature->shape, &feature->rank);
}

static enum tfos_status read_plan(const json_t *told, struct tfos__plan *plan,
                                  struct tfos_error *err)
{
    const json_t *columns = json_object_get(told, "columns");
    size_t index = 0;
    json_t *column = NULL;
    bool is_read = json_array_size(columns) > 0;

    *plan = (struct tfos__plan){
        .structure = (enum tfos_row_structure)tfos__json_int_or(told, "structure", TFOS_ROW_DICT),
        .is_selective = tfos__json_bool_or(told, "selective", false)};
    json_array_foreach(columns, index, column) is_read = is_read && read_feature(column, plan);
    if (is_read)
        return TFOS_OK;
    tfos__plan_clear(plan);
    return tfos__fail(err, TFOS_INVALID, "dataset: another node told a plan that cannot be read");
}

static bool has_equal_numbers(const int64_t *a, int a_count, const int64_t *b, int b_count)
{
    return a_count == b_count && memcmp(a, b, (size_t)a_count * sizeof *a) == 0;
}

// Makes `feature` fit `other` too.
static bool merge_feature(struct tfos__feature *feature, const struct tfos__feature *other)
{
    if (tfos__path_compare(feature->path, feature->depth, other->path, other->depth) != 0 ||
        feature->dtype != other->dtype || feature->is_vector != other->is_vector ||
        feature->level_count != other->level_count)
        return false;
    if (feature->form == other->form &&
        has_equal_numbers(feature->lengths, feature->level_count, other->lengths,
                          other->level_count) &&
        has_equal_numbers(feature->shape, feature->rank, other->shape, other->rank))
        return true;
    if (!feature->is_flexible || !other->is_flexible)
        return false;
    tfos__feature_make_ragged(feature);
    return true;
}

static enum tfos_status refuse(const json_t *told, const json_t *other, struct tfos_error *err)
{
    char *first = tfos__json_text(told), *second = tfos__json_text(other);

    tfos__fail(err, TFOS_INVALID,
               "dataset: nodes were fed rows of different structure: %.1500s and %.1500s",
               first ? first : "?", second ? second : "?");
    tfos__free(first);
    tfos__free(second);
    return TFOS_INVALID;
}

static enum tfos_status merge(struct tfos__plan *plan, const struct tfos__plan *other,
                              const json_t *told, const json_t *other_told, struct tfos_error *err)
{
    if (plan->structure != other->structure || plan->feature_count != other->feature_count)
        return refuse(told, other_told, err);
    for (int64_t i = 0; i < plan->feature_count; i++)
        if (!merge_feature(&plan->features[i], &other->features[i]))
            return refuse(json_array_get(json_object_get(told, "columns"), (size_t)i),
                          json_array_get(json_object_get(other_told, "columns"), (size_t)i), err);
    return TFOS_OK;
}

static enum tfos_status merge_all(const json_t *values, struct tfos__plan *plan,
                                  struct tfos_error *err)
{
    const json_t *first = NULL;
    size_t index = 0;
    json_t *value = NULL;

    json_array_foreach(values, index, value)
    {
        const json_t *told = json_object_get(value, "plan");
        struct tfos__plan other;
        if (!json_is_object(told))
            continue;
        if (!first) {
            first = told;
            TFOS__TRY(read_plan(told, plan, err));
            continue;
        }
        enum tfos_status status = read_plan(told, &other, err);
        if (status == TFOS_OK) {
            status = merge(plan, &other, first, told, err);
            tfos__plan_clear(&other);
        }
        if (status != TFOS_OK) {
            tfos__plan_clear(plan);
            return status;
        }
    }
    return first ? TFOS_OK : TFOS_AGAIN;
}

enum tfos_status tfos__accord_read(const char *values, enum tfos_uneven uneven,
                                   struct tfos__plan *plan, struct tfos_error *err)
{
    json_t *array = json_loads(values, 0, NULL);
    size_t index = 0;
    json_t *value = NULL;
    bool all_over = true;
    enum tfos_status status = TFOS_OK;

    if (json_array_size(array) == 0)
        status =
            tfos__fail(err, TFOS_INVALID,
                       "dataset: the exchange of plans gave no list of values: %.200s", values);
    json_array_foreach(array, index, value)
    {
        all_over = all_over && tfos__json_bool_or(value, "over", false);
        if (status == TFOS_OK && tfos__json_int_or(value, "uneven", -1) != (int64_t)uneven)
            status = tfos__fail(err, TFOS_INVALID,
                                "dataset: nodes do not agree on what to do with uneven rows: give "
                                "all the same `uneven`");
    }
    if (status == TFOS_OK)
        status = merge_all(array, plan, err);
    json_decref(array);
    return status == TFOS_AGAIN && all_over ? TFOS_END : status;
}
