// SPDX-License-Identifier: Apache-2.0
#include "dataset/schema_binding.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

struct binder {
    struct tfos__dataset_schema_binding *binding;
    const struct tfos__dataset_plan *plan;
    enum tfos_row_structure structure; ///< set before the first leaf
};

static void describe(enum tfos_dtype dtype, bool is_vector, int level_count, char text[64])
{
    text[0] = '\0';
    for (int i = 0; i < level_count && !is_vector && i < 4; i++)
        memcpy(text + strlen(text), "list of ", sizeof "list of ");
    const char *name = is_vector ? "MLlib vector" : tfos__dataset_type_name(dtype);
    memcpy(text + strlen(text), name, strlen(name) + 1);
}

static enum tfos_status refuse_type(const struct tfos__dataset_feature *feature,
                                    const struct tfos__dataset_leaf_column *leaf,
                                    struct tfos_error *err)
{
    char expected[64], found[64];

    describe(feature->dtype, feature->is_vector, feature->level_count, expected);
    describe(leaf->path.element.dtype, leaf->is_vector, leaf->level_count, found);
    return tfos__fail(
        err, TFOS_INVALID, "column %s is %s where the first rows have %s%s", feature->name, found,
        expected, leaf->is_python ? ": feed values of one type in all rows, as by float(x)" : "");
}

// Python's integers become floats where the first rows have floats.
static bool is_whole_float(const struct tfos__dataset_feature *feature,
                           const struct tfos__dataset_leaf_column *leaf)
{
    return feature->is_number && feature->dtype == TFOS_DTYPE_FLOAT64 && leaf->is_number &&
           leaf->path.element.dtype == TFOS_DTYPE_INT64;
}

// A numpy array of several dimensions must have those of the first, unless the options give others.
static bool has_shape(const struct tfos__dataset_feature *feature,
                      const struct tfos__dataset_leaf_column *leaf)
{
    if (leaf->rank < 2 || !feature->is_product)
        return true;
    return feature->rank != leaf->rank ||
           memcmp(feature->shape, leaf->shape, (size_t)leaf->rank * sizeof(leaf->shape[0])) == 0;
}

static enum tfos_status check_type(const struct tfos__dataset_feature *feature,
                                   const struct tfos__dataset_leaf_column *leaf,
                                   struct tfos_error *err)
{
    bool is_nothing = leaf->path.element.part == TFOS__PART_NOTHING;

    if (leaf->problem)
        return tfos__fail(err, TFOS_INVALID, "column %s has no tensor form: %s", feature->name,
                          leaf->problem);
    // A column of nulls may have fewer lists around them.
    if (is_nothing && leaf->level_count <= feature->level_count && !feature->is_vector)
        return TFOS_OK;
    int level_count = leaf->is_vector ? 1 : leaf->level_count;
    if (leaf->is_vector != feature->is_vector || level_count != feature->level_count ||
        (leaf->path.element.dtype != feature->dtype && !is_whole_float(feature, leaf)))
        return refuse_type(feature, leaf, err);
    if (!has_shape(feature, leaf))
        return tfos__fail(err, TFOS_INVALID,
                          "column %s has arrays of another shape than in the first rows",
                          feature->name);
    return TFOS_OK;
}

static enum tfos_status refuse_path(const struct tfos__dataset_leaf_column *leaf,
                                    struct tfos_error *err)
{
    char name[512] = "";

    for (int i = 0; i < leaf->depth; i++) {
        size_t used = strlen(name);
        snprintf(name + used, sizeof(name) - used, "%s%s", i > 0 ? "." : "", leaf->names[i]);
    }
    return tfos__fail(err, TFOS_INVALID, "column %s is not among those of the first rows", name);
}

static const char *structure_name(enum tfos_row_structure structure)
{
    return structure == TFOS_ROW_TUPLE  ? "tuples"
           : structure == TFOS_ROW_DICT ? "named fields"
                                        : "single values";
}

static enum tfos_status check_structure(const struct binder *binder, struct tfos_error *err)
{
    if (binder->structure == binder->plan->structure)
        return TFOS_OK;
    return tfos__fail(err, TFOS_INVALID,
                      "rows are %s where the first rows are %s: feed rows of one kind; lists of "
                      "several lengths go into a tuple, (list,)",
                      structure_name(binder->structure), structure_name(binder->plan->structure));
}

static enum tfos_status bind_leaf(void *context, const struct tfos__dataset_leaf_column *leaf,
                                  struct tfos_error *err)
{
    struct binder *binder = context;

    TFOS__TRY(check_structure(binder, err));
    int64_t number = tfos__dataset_plan_find(binder->plan, leaf->names, leaf->depth);

    if (number < 0 && binder->plan->is_selective)
        return TFOS_OK;
    if (number < 0)
        return refuse_path(leaf, err);
    const struct tfos__dataset_feature *feature = &binder->plan->features[number];
    TFOS__TRY(check_type(feature, leaf, err));
    struct tfos__dataset_leaf_path *path = &binder->binding->paths[number];
    if (path->steps)
        return tfos__fail(err, TFOS_INVALID, "two columns have the name %s", feature->name);
    size_t step_count = (size_t)leaf->path.step_count;
    struct tfos__dataset_path_step *steps = tfos__alloc(step_count, sizeof(*steps));
    if (!steps)
        return tfos__no_memory(err, "dataset", "a schema");
    memcpy(steps, leaf->path.steps, step_count * sizeof(*steps));
    *path = leaf->path;
    path->steps = steps;
    if (is_whole_float(feature, leaf))
        path->element.part = TFOS__PART_DOUBLE;
    return TFOS_OK;
}

static enum tfos_status bind(struct tfos__dataset_schema_binding *binding,
                             const struct tfos__dataset_plan *plan, struct tfos_error *err)
{
    struct binder binder = {.binding = binding, .plan = plan};

    TFOS__TRY(tfos__dataset_leaf_columns_visit(&binding->schema, &binder.structure, bind_leaf,
                                               &binder, err));
    TFOS__TRY(check_structure(&binder, err));
    for (int64_t i = 0; i < plan->feature_count; i++)
        if (!binding->paths[i].steps)
            return tfos__fail(err, TFOS_INVALID, "column %s of the first rows is missing",
                              plan->features[i].name);
    return TFOS_OK;
}

enum tfos_status tfos__dataset_schema_binding_open(struct ArrowSchema *schema,
                                                   const struct tfos__dataset_plan *plan,
                                                   struct tfos__dataset_schema_binding **out,
                                                   struct tfos_error *err)
{
    struct tfos__dataset_schema_binding *binding = tfos__alloc(1, sizeof(*binding));

    if (!binding)
        return tfos__no_memory(err, "dataset", "a schema");
    binding->reference_count = 1;
    binding->schema = *schema;
    binding->paths = tfos__alloc((size_t)plan->feature_count, sizeof(*binding->paths));
    binding->path_count = binding->paths ? plan->feature_count : 0;
    enum tfos_status status =
        binding->paths ? bind(binding, plan, err) : tfos__no_memory(err, "dataset", "a schema");
    if (status == TFOS_OK) {
        schema->release = NULL;
        *out = binding;
    } else {
        binding->schema.release = NULL; // it stays the caller's
        tfos__dataset_schema_binding_release(binding);
    }
    return status;
}

struct tfos__dataset_schema_binding *
tfos__dataset_schema_binding_hold(struct tfos__dataset_schema_binding *binding)
{
    atomic_fetch_add_explicit(&binding->reference_count, 1, memory_order_relaxed);
    return binding;
}

void tfos__dataset_schema_binding_release(struct tfos__dataset_schema_binding *binding)
{
    if (!binding || atomic_fetch_sub(&binding->reference_count, 1) != 1)
        return;
    for (int64_t i = 0; i < binding->path_count; i++)
        tfos__free(binding->paths[i].steps);
    tfos__free(binding->paths);
    tfos__arrow_schema_release(&binding->schema);
    tfos__free(binding);
}
