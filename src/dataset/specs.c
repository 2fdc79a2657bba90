// SPDX-License-Identifier: Apache-2.0
#include "dataset/specs.h"

#include "base/memory.h"
#include "dataset/tensor.h"

static struct tfos_tensor_spec make_spec(const struct tfos__feature *feature,
                                         enum tfos_tensor_role role, enum tfos_dtype dtype,
                                         int64_t first)
{
    return (struct tfos_tensor_spec){.path = feature->path,
                                     .depth = feature->depth,
                                     .role = role,
                                     .dtype = dtype,
                                     .rank = 1,
                                     .shape = {first}};
}

static int describe_ragged(const struct tfos__feature *feature, int64_t rows,
                           struct tfos_tensor_spec *specs)
{
    specs[0] = make_spec(feature, TFOS_TENSOR_RAGGED_VALUES, feature->dtype, -1);
    for (int i = 0; i < feature->level_count; i++)
        specs[1 + i] = make_spec(feature, TFOS_TENSOR_ROW_SPLITS, TFOS_DTYPE_INT64,
                                 i == 0 && rows >= 0 ? rows + 1 : -1);
    return 1 + feature->level_count;
}

static int describe_sparse(const struct tfos__feature *feature, struct tfos_tensor_spec *specs)
{
    specs[0] = make_spec(feature, TFOS_TENSOR_SPARSE_INDICES, TFOS_DTYPE_INT64, -1);
    specs[0].rank = 2;
    specs[0].shape[1] = 2;
    specs[1] = make_spec(feature, TFOS_TENSOR_SPARSE_VALUES, feature->dtype, -1);
    specs[2] = make_spec(feature, TFOS_TENSOR_SPARSE_SHAPE, TFOS_DTYPE_INT64, 2);
    return 3;
}

static int describe(const struct tfos__feature *feature, int64_t rows,
                    struct tfos_tensor_spec *specs)
{
    if (feature->form == TFOS_FORM_RAGGED)
        return describe_ragged(feature, rows, specs);
    if (feature->form == TFOS_FORM_SPARSE)
        return describe_sparse(feature, specs);
    specs[0] = make_spec(feature, TFOS_TENSOR_DENSE, feature->dtype, rows);
    specs[0].rank = 1 + feature->rank;
    for (int i = 0; i < feature->rank; i++)
        specs[0].shape[1 + i] = feature->shape[i];
    return 1;
}

enum tfos_status tfos__specs_make(const struct tfos__plan *plan, int64_t rows, bool has_weights,
                                  struct tfos_tensor_spec **out, int64_t *count,
                                  struct tfos_error *err)
{
    int64_t total = has_weights, position = 0;

    for (int64_t i = 0; i < plan->feature_count; i++)
        total += tfos__feature_tensor_count(&plan->features[i]);
    struct tfos_tensor_spec *specs = tfos__alloc((size_t)total, sizeof *specs);
    if (!specs)
        return tfos__no_memory(err, "dataset", "the specs");
    for (int64_t i = 0; i < plan->feature_count; i++)
        position += describe(&plan->features[i], rows, &specs[position]);
    if (has_weights)
        specs[position] = (struct tfos_tensor_spec){
            .role = TFOS_TENSOR_WEIGHTS, .dtype = TFOS_DTYPE_FLOAT32, .rank = 1, .shape = {rows}};
    *out = specs;
    *count = total;
    return TFOS_OK;
}
