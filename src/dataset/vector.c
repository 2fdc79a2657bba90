// SPDX-License-Identifier: Apache-2.0
// A vector is a struct: type (0 sparse, 1 dense), size and indices of a sparse one, values. Each is
// read once, then checked and used, since another process can change the memory.
#include "dataset/vector.h"

#include <string.h>

#include "base/fail.h"

enum { TYPE, SIZE, INDICES, VALUES };

/// One row's vector.
struct vector {
    bool is_null, is_sparse;
    int64_t size;  ///< with the zeros
    int64_t count; ///< values
    const double *values;
    const int32_t *indices; ///< of a sparse one
};

// The elements of list `index` of a struct's member: their number and first.
static const void *list_at(const struct tfos__arrow_type *type, const struct ArrowArray *list,
                           int64_t index, size_t width, int64_t *count)
{
    const struct ArrowArray *child = list->children[0];

    *count = 0;
    if (tfos__arrow_is_null(list, index))
        return NULL;
    struct tfos__arrow_span span = tfos__arrow_list(type, list, index);
    *count = span.count;
    return (const uint8_t *)child->buffers[1] + (size_t)(child->offset + span.first) * width;
}

static enum tfos_status read_vector(const struct tfos__dataset_leaf_path *path,
                                    const struct ArrowArray *array, int64_t index,
                                    struct vector *vector, struct tfos_error *err)
{
    *vector = (struct vector){0};
    for (int step = 0;; step++) {
        if (tfos__arrow_is_null(array, index)) {
            vector->is_null = true;
            return TFOS_OK;
        }
        index += array->offset;
        if (step == path->step_count)
            break;
        array = array->children[path->steps[step].member];
    }
    const struct ArrowArray *type = array->children[TYPE], *size = array->children[SIZE];
    int64_t index_count = 0;
    vector->is_sparse = ((const int8_t *)type->buffers[1])[type->offset + index] == 0;
    vector->values =
        list_at(&path->lists, array->children[VALUES], index, sizeof(double), &vector->count);
    vector->indices =
        list_at(&path->lists, array->children[INDICES], index, sizeof(int32_t), &index_count);
    vector->size = vector->is_sparse ? ((const int32_t *)size->buffers[1])[size->offset + index]
                                     : vector->count;
    if (vector->is_sparse && (vector->size < 0 || index_count != vector->count))
        return tfos__fail(
            err, TFOS_INVALID, "a sparse vector of size %lld has %lld indices and %lld values",
            (long long)vector->size, (long long)index_count, (long long)vector->count);
    return TFOS_OK;
}

struct traversal {
    const struct tfos__dataset_feature *feature;
    const struct tfos__dataset_leaf_path *path;
    const struct ArrowArray *batch;
    int64_t size; ///< of each vector

    uint8_t *dense;    ///< the next row
    int64_t row, room; ///< of a sparse tensor: rows done, values to come
    int64_t *indices;  ///< of a sparse tensor: the next pair
    uint8_t *values;   ///< of a sparse tensor: the next value
};

// Reads the vector of one row and checks it against the feature.
static enum tfos_status take_row(const struct traversal *traversal, int64_t row,
                                 struct vector *vector, struct tfos_error *err)
{
    if (read_vector(traversal->path, traversal->batch, row, vector, err) < 0) {
        tfos__fail_prefix(err, "column %s", traversal->feature->name);
        return TFOS_INVALID;
    }
    if (vector->is_null && !traversal->feature->fills_nulls)
        return tfos__fail(err, TFOS_INVALID,
                          "column %s is null: say by null_value what a null becomes",
                          traversal->feature->name);
    if (!vector->is_null && vector->size != traversal->size)
        return tfos__fail(
            err, TFOS_INVALID, "column %s has a vector of size %lld where each has %lld",
            traversal->feature->name, (long long)vector->size, (long long)traversal->size);
    return TFOS_OK;
}

static enum tfos_status refuse_index(const struct traversal *traversal, int64_t index,
                                     struct tfos_error *err)
{
    return tfos__fail(
        err, TFOS_INVALID,
        "column %s: the index %lld of a sparse vector of size %lld is out of range or "
        "out of order",
        traversal->feature->name, (long long)index, (long long)traversal->size);
}

static enum tfos_status put_dense(struct traversal *traversal, const struct vector *vector,
                                  struct tfos_error *err)
{
    uint8_t *row = traversal->dense;
    size_t width = sizeof(double);

    traversal->dense += (size_t)traversal->size * width;
    if (!vector->is_null && !vector->is_sparse) {
        if (traversal->size > 0)
            memcpy(row, vector->values, (size_t)traversal->size * width);
        return TFOS_OK;
    }
    for (int64_t i = 0; vector->is_null && i < traversal->size; i++)
        memcpy(row + (size_t)i * width, traversal->feature->fill_value.bytes, width);
    if (vector->is_null)
        return TFOS_OK;
    memset(row, 0, (size_t)traversal->size * width);
    for (int64_t i = 0; i < vector->count; i++) {
        int32_t index = ((const volatile int32_t *)vector->indices)[i];
        if (index < 0 || index >= traversal->size)
            return refuse_index(traversal, index, err);
        memcpy(row + (size_t)index * width, &vector->values[i], width);
    }
    return TFOS_OK;
}

static enum tfos_status put_sparse(struct traversal *traversal, const struct vector *vector,
                                   struct tfos_error *err)
{
    int64_t previous = -1;

    if (vector->count > traversal->room)
        return tfos__fail(err, TFOS_CORRUPT, "column %s changed while it was read",
                          traversal->feature->name);
    for (int64_t i = 0; i < vector->count; i++) {
        int64_t index = vector->is_sparse ? ((const volatile int32_t *)vector->indices)[i] : i;
        if (index <= previous || index >= traversal->size)
            return refuse_index(traversal, index, err);
        previous = index;
        *traversal->indices++ = traversal->row;
        *traversal->indices++ = index;
    }
    if (vector->count > 0)
        memcpy(traversal->values, vector->values, (size_t)vector->count * sizeof(double));
    traversal->values += (size_t)vector->count * sizeof(double);
    traversal->room -= vector->count;
    traversal->row++;
    return TFOS_OK;
}

// One row in either form; a null is an empty row of a sparse tensor.
static enum tfos_status put_row(void *context, int64_t row, struct tfos_error *err)
{
    struct traversal *traversal = context;
    struct vector vector;

    TFOS__TRY(take_row(traversal, row, &vector, err));
    return traversal->dense ? put_dense(traversal, &vector, err)
                            : put_sparse(traversal, &vector, err);
}

static enum tfos_status count_row(void *context, int64_t row, struct tfos_error *err)
{
    struct traversal *traversal = context;
    struct vector vector;

    TFOS__TRY(take_row(traversal, row, &vector, err));
    traversal->room += vector.count;
    return TFOS_OK;
}

// Takes the size of the first vector for all, where the feature has none.
static enum tfos_status note_size(void *context, int64_t row, struct tfos_error *err)
{
    struct traversal *traversal = context;
    struct vector vector;

    if (traversal->size >= 0)
        return TFOS_OK;
    if (read_vector(traversal->path, traversal->batch, row, &vector, err) < 0) {
        tfos__fail_prefix(err, "column %s", traversal->feature->name);
        return TFOS_INVALID;
    }
    if (!vector.is_null)
        traversal->size = vector.size;
    return TFOS_OK;
}

static enum tfos_status
for_each(struct traversal *traversal, int64_t number, const struct tfos__dataset_row_slices *rows,
         enum tfos_status (*act)(void *context, int64_t row, struct tfos_error *err),
         struct tfos_error *err)
{
    for (int64_t i = 0; i < rows->count; i++) {
        const struct tfos__dataset_row_slice *slice = &rows->slices[i];
        traversal->path = &slice->batch->binding->paths[number];
        traversal->batch = &slice->batch->array;
        for (int64_t row = slice->first; row < slice->first + slice->count; row++) {
            enum tfos_status status = act(traversal, row, err);
            if (status == TFOS_OK)
                continue;
            tfos__dataset_shared_batch_locate(slice->batch, row, err);
            return status;
        }
    }
    return TFOS_OK;
}

static enum tfos_status make_sparse(struct traversal *traversal, int64_t number,
                                    const struct tfos__dataset_row_slices *rows,
                                    struct tfos_tensor *tensors, struct tfos_error *err)
{
    int64_t shape[] = {rows->row_count + rows->zero_count, traversal->size};
    const int64_t two = 2;
    uint8_t *data = NULL;

    TFOS__TRY(for_each(traversal, number, rows, count_row, err));
    int64_t pairs[] = {traversal->room, 2};
    TFOS__TRY(tfos__dataset_tensor_init(&tensors[0], TFOS_DTYPE_INT64, 2, pairs, &data, err));
    traversal->indices = (int64_t *)(void *)data;
    TFOS__TRY(tfos__dataset_tensor_init(&tensors[1], TFOS_DTYPE_FLOAT64, 1, pairs,
                                        &traversal->values, err));
    TFOS__TRY(tfos__dataset_tensor_init(&tensors[2], TFOS_DTYPE_INT64, 1, &two, &data, err));
    memcpy(data, shape, sizeof(shape));
    TFOS__TRY(for_each(traversal, number, rows, put_row, err));
    return traversal->room == 0
               ? TFOS_OK
               : tfos__fail(err, TFOS_CORRUPT, "dataset: column %s changed while it was read",
                            traversal->feature->name);
}

enum tfos_status tfos__dataset_vectors_make(const struct tfos__dataset_feature *feature,
                                            int64_t number,
                                            const struct tfos__dataset_row_slices *rows,
                                            struct tfos_tensor *tensors, struct tfos_error *err)
{
    struct traversal traversal = {.feature = feature, .size = feature->lengths[0]};

    if (traversal.size < 0) {
        TFOS__TRY(for_each(&traversal, number, rows, note_size, err));
        traversal.size = traversal.size < 0 ? 0 : traversal.size;
    }
    if (feature->form == TFOS_FORM_SPARSE)
        return make_sparse(&traversal, number, rows, tensors, err);
    int64_t shape[] = {rows->row_count + rows->zero_count, traversal.size};
    TFOS__TRY(tfos__dataset_tensor_init(&tensors[0], TFOS_DTYPE_FLOAT64, 2, shape, &traversal.dense,
                                        err));
    TFOS__TRY(for_each(&traversal, number, rows, put_row, err));
    memset(traversal.dense, 0, (size_t)(rows->zero_count * traversal.size) * sizeof(double));
    return TFOS_OK;
}

enum tfos_status tfos__dataset_vectors_measure(const struct tfos__dataset_leaf_path *path,
                                               const struct ArrowArray *batch, int64_t *shortest,
                                               int64_t *longest, struct tfos_error *err)
{
    struct vector vector;

    *shortest = INT64_MAX;
    *longest = -1;
    for (int64_t row = 0; row < batch->length; row++) {
        TFOS__TRY(read_vector(path, batch, row, &vector, err));
        if (vector.is_null)
            continue;
        *shortest = vector.size < *shortest ? vector.size : *shortest;
        *longest = vector.size > *longest ? vector.size : *longest;
    }
    return TFOS_OK;
}
