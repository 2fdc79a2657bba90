// SPDX-License-Identifier: Apache-2.0
// `lengths` are those of the lists in the data, `shape` is that of one row in the tensor. They are
// the same, unless lists of one level become several dimensions.
#include "dataset/dataset_feature.h"

#include <string.h>

#include "base/fail.h"

#define ROW_LIMIT INT32_MAX // most elements of a row, so that products with rows fit 64 bits

static enum tfos_status refuse(const struct tfos__dataset_feature *feature, const char *reason,
                               struct tfos_error *err)
{
    return tfos__fail(err, TFOS_INVALID, "dataset: column %s: %s", feature->name, reason);
}

static enum tfos_status check_form(const struct tfos__dataset_feature *feature,
                                   const struct tfos__dataset_leaf_column *leaf,
                                   struct tfos_error *err)
{
    enum tfos_column_form form = feature->form;

    if (leaf->is_vector && (form == TFOS_FORM_RAGGED || form == TFOS_FORM_PADDED))
        return refuse(feature, "an MLlib vector is given out dense or sparse, not ragged or padded",
                      err);
    if (!leaf->is_vector && form == TFOS_FORM_SPARSE)
        return refuse(feature, "only an MLlib vector has a sparse form", err);
    if (!leaf->is_vector && leaf->level_count == 0 &&
        (form == TFOS_FORM_RAGGED || form == TFOS_FORM_PADDED))
        return refuse(feature, "single values have no ragged or padded form, only lists have", err);
    if (form < TFOS_FORM_AUTO || form > TFOS_FORM_SPARSE)
        return refuse(feature, "the form asked for is unknown", err);
    return TFOS_OK;
}

// The product of the shape; -1 when a dimension varies.
static int64_t product_of(const int64_t *shape, int rank)
{
    int64_t product = 1;

    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return -1;
        if (__builtin_mul_overflow(product, shape[i], &product) || product > ROW_LIMIT)
            return INT64_MAX;
    }
    return product;
}

static enum tfos_status refuse_length(const struct tfos__dataset_feature *feature, int64_t length,
                                      int64_t size, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_INVALID,
                      "dataset: column %s: its lists have %lld elements, the shape asked for has "
                      "%lld",
                      feature->name, (long long)length, (long long)size);
}

// The shape has a dimension for each level, with which fixed lengths must agree.
static enum tfos_status take_dimensions(struct tfos__dataset_feature *feature,
                                        struct tfos_error *err)
{
    bool is_padded = feature->form == TFOS_FORM_PADDED;

    for (int i = 0; i < feature->rank; i++) {
        int64_t length = feature->lengths[i], size = feature->shape[i];
        if (size < 0 && !is_padded)
            return refuse(feature,
                          "a dense shape has no dimension that varies: ask for form padded", err);
        if (length >= 0 && size >= 0 && (is_padded ? length > size : length != size))
            return refuse_length(feature, length, size, err);
        if (size < 0)
            feature->shape[i] = size = length;
        feature->lengths[i] = size;
    }
    return TFOS_OK;
}

// Lists of one level that become several dimensions.
static enum tfos_status take_product(struct tfos__dataset_feature *feature, struct tfos_error *err)
{
    int64_t product = product_of(feature->shape, feature->rank);
    bool is_padded = feature->form == TFOS_FORM_PADDED;

    if (product < 0)
        return refuse(feature,
                      "a shape of more dimensions than its lists have has none that varies", err);
    if (feature->lengths[0] >= 0 &&
        (is_padded ? feature->lengths[0] > product : feature->lengths[0] != product))
        return refuse_length(feature, feature->lengths[0], product, err);
    feature->lengths[0] = product;
    feature->is_product = true;
    return TFOS_OK;
}

static enum tfos_status take_shape(struct tfos__dataset_feature *feature,
                                   const struct tfos_dataset_column *options,
                                   struct tfos_error *err)
{
    if (options->rank < 0 || options->rank > TFOS__LIST_LEVELS)
        return refuse(feature, "the shape asked for has too many dimensions", err);
    if (feature->form == TFOS_FORM_RAGGED)
        return refuse(feature, "a ragged column has no shape", err);
    feature->is_flexible = false;
    if (feature->form == TFOS_FORM_AUTO)
        feature->form = TFOS_FORM_DENSE;
    feature->rank = options->rank;
    for (int i = 0; i < options->rank; i++)
        feature->shape[i] = options->shape[i];
    if (options->rank == feature->level_count)
        return take_dimensions(feature, err);
    if (feature->level_count == 1 && !feature->is_vector)
        return take_product(feature, err);
    return tfos__fail(err, TFOS_INVALID,
                      "dataset: column %s: the shape asked for has %d dimensions, a row has %d",
                      feature->name, options->rank, feature->level_count);
}

static bool has_any_length(const struct tfos__dataset_feature *feature)
{
    for (int i = 0; i < feature->level_count; i++)
        if (feature->lengths[i] < 0)
            return true;
    return false;
}

void tfos__dataset_feature_make_ragged(struct tfos__dataset_feature *feature)
{
    feature->form = TFOS_FORM_RAGGED;
    feature->is_undecided = false;
    feature->rank = 0;
    for (int i = 0; i < feature->level_count; i++)
        feature->lengths[i] = -1;
}

// The options have no shape: it follows from the type, or from the first rows.
static enum tfos_status take_type(struct tfos__dataset_feature *feature,
                                  const struct tfos__dataset_leaf_column *leaf,
                                  struct tfos_error *err)
{
    if (leaf->is_map && feature->form == TFOS_FORM_AUTO) {
        feature->form = TFOS_FORM_RAGGED;
        feature->is_flexible = false;
    }
    if (feature->form == TFOS_FORM_RAGGED && leaf->rank > 1)
        return refuse(feature, "arrays of several dimensions have no ragged form", err);
    if (feature->form == TFOS_FORM_RAGGED) {
        tfos__dataset_feature_make_ragged(feature);
        return TFOS_OK;
    }
    bool is_array = leaf->rank > 0;
    feature->is_product = leaf->rank > 1;
    feature->rank = is_array ? leaf->rank : feature->level_count;
    memcpy(feature->shape, is_array ? leaf->shape : feature->lengths, sizeof(feature->shape));
    if (feature->form != TFOS_FORM_PADDED && has_any_length(feature))
        feature->is_undecided = true;
    else if (feature->form == TFOS_FORM_AUTO)
        feature->form = TFOS_FORM_DENSE;
    return TFOS_OK;
}

enum tfos_status tfos__dataset_feature_init(struct tfos__dataset_feature *feature,
                                            const struct tfos__dataset_leaf_column *leaf,
                                            const struct tfos_dataset_column *options,
                                            struct tfos_error *err)
{
    feature->form = options ? options->form : TFOS_FORM_AUTO;
    TFOS__TRY(check_form(feature, leaf, err));
    feature->dtype = leaf->path.element.dtype;
    feature->is_number = leaf->is_number;
    feature->is_vector = leaf->is_vector;
    feature->level_count = leaf->is_vector ? 1 : leaf->level_count;
    memcpy(feature->lengths, leaf->lengths, sizeof(feature->lengths));
    if (leaf->is_vector) {
        feature->lengths[0] = -1;
        if (feature->form == TFOS_FORM_AUTO)
            feature->form = TFOS_FORM_DENSE;
    }
    feature->is_flexible =
        feature->form == TFOS_FORM_AUTO && feature->level_count > 0 && leaf->rank < 2;
    if (options && options->shape)
        TFOS__TRY(take_shape(feature, options, err));
    else
        TFOS__TRY(take_type(feature, leaf, err));
    if (product_of(feature->shape, feature->rank) > ROW_LIMIT)
        return refuse(feature, "a row has more elements than a tensor can hold", err);
    return TFOS_OK;
}

enum tfos_status tfos__dataset_feature_decide(struct tfos__dataset_feature *feature,
                                              const int64_t *shortest, const int64_t *longest,
                                              struct tfos_error *err)
{
    bool is_even = true;
    int64_t size = 1;

    feature->is_measured = true;
    for (int i = 0; i < feature->level_count; i++) {
        is_even = is_even && longest[i] > 0 && shortest[i] == longest[i];
        size = is_even && size <= ROW_LIMIT ? size * longest[i] : size;
    }
    if (is_even && size <= ROW_LIMIT) {
        for (int i = 0; i < feature->level_count; i++)
            feature->lengths[i] = feature->shape[i] = longest[i];
        if (feature->form == TFOS_FORM_AUTO)
            feature->form = TFOS_FORM_DENSE;
        feature->is_undecided = false;
        return TFOS_OK;
    }
    if (feature->form == TFOS_FORM_AUTO) {
        tfos__dataset_feature_make_ragged(feature);
        return TFOS_OK;
    }
    return tfos__fail(
        err, TFOS_INVALID,
        "dataset: column %s: rows of the first batch do not have one length, so there "
        "is no dense tensor: give its shape, or ask for another form",
        feature->name);
}

// ---- tensors

int tfos__dataset_feature_tensor_count(const struct tfos__dataset_feature *feature)
{
    if (feature->form == TFOS_FORM_RAGGED)
        return 1 + feature->level_count;
    return feature->form == TFOS_FORM_SPARSE ? 3 : 1;
}

static struct tfos_tensor_spec make_spec(const struct tfos__dataset_feature *feature,
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

static int describe_ragged(const struct tfos__dataset_feature *feature, int64_t rows,
                           struct tfos_tensor_spec *specs)
{
    specs[0] = make_spec(feature, TFOS_TENSOR_RAGGED_VALUES, feature->dtype, -1);
    for (int i = 0; i < feature->level_count; i++)
        specs[1 + i] = make_spec(feature, TFOS_TENSOR_ROW_SPLITS, TFOS_DTYPE_INT64,
                                 i == 0 && rows >= 0 ? rows + 1 : -1);
    return 1 + feature->level_count;
}

static int describe_sparse(const struct tfos__dataset_feature *feature,
                           struct tfos_tensor_spec *specs)
{
    specs[0] = make_spec(feature, TFOS_TENSOR_SPARSE_INDICES, TFOS_DTYPE_INT64, -1);
    specs[0].rank = 2;
    specs[0].shape[1] = 2;
    specs[1] = make_spec(feature, TFOS_TENSOR_SPARSE_VALUES, feature->dtype, -1);
    specs[2] = make_spec(feature, TFOS_TENSOR_SPARSE_SHAPE, TFOS_DTYPE_INT64, 2);
    return 3;
}

int tfos__dataset_feature_specs(const struct tfos__dataset_feature *feature, int64_t rows,
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
