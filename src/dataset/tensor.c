// SPDX-License-Identifier: Apache-2.0
// A column is measured over all runs, and lent when that found one span of values and nothing made
// up. Everything else is written into one block, one copy for each span.
#include "dataset/tensor.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/vector.h"
#include "dataset/walk.h"

void tfos_tensor_release(struct tfos_tensor *tensor)
{
    tfos__lease_release(tensor->lease);
    *tensor = (struct tfos_tensor){0};
}

int tfos__feature_tensor_count(const struct tfos__feature *feature)
{
    if (feature->form == TFOS_FORM_RAGGED)
        return 1 + feature->level_count;
    return feature->form == TFOS_FORM_SPARSE ? 3 : 1;
}

static enum tfos_status no_room(struct tfos_error *err)
{
    return tfos__no_memory(err, "dataset", "a batch of tensors");
}

enum tfos_status tfos__tensor_init(struct tfos_tensor *tensor, enum tfos_dtype dtype, int rank,
                                   const int64_t *shape, uint8_t **data, struct tfos_error *err)
{
    int64_t size = (int64_t)tfos__dtype_size(dtype);

    *tensor = (struct tfos_tensor){.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++) {
        tensor->shape[i] = shape[i];
        if (__builtin_mul_overflow(size, shape[i], &size))
            return no_room(err);
    }
    tensor->lease = tfos__block_open((size_t)size, NULL, data);
    if (!tensor->lease)
        return no_room(err);
    tensor->data = *data;
    tensor->size = size;
    return TFOS_OK;
}

enum tfos_status tfos__weights_make(const struct tfos__rows *rows, struct tfos_tensor *tensor,
                                    struct tfos_error *err)
{
    int64_t count = rows->row_count + rows->zero_count;
    const float one = 1;
    uint8_t *data = NULL;

    TFOS__TRY(tfos__tensor_init(tensor, TFOS_DTYPE_FLOAT32, 1, &count, &data, err));
    memset(data, 0, (size_t)tensor->size);
    for (int64_t i = 0; i < rows->row_count; i++)
        memcpy(data + (size_t)i * sizeof one, &one, sizeof one);
    return TFOS_OK;
}

enum tfos_status tfos__row_locate(const struct tfos__run *run,
                                  enum tfos_status (*check)(void *context, int64_t row,
                                                            struct tfos_error *err),
                                  void *context, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    int64_t row = run->first;

    for (; row < run->first + run->count && status == TFOS_OK; row++)
        status = check(context, row, err);
    if (status == TFOS_OK) // the memory has changed meanwhile
        return tfos__fail(err, TFOS_CORRUPT, "dataset: partition %lld changed while it was read",
                          (long long)run->piece->partition);
    tfos__piece_locate_row(run->piece, row - 1, err);
    return status;
}

struct column {
    const struct tfos__rows *rows;
    const struct tfos__run *run;      ///< where the walk is
    const struct tfos__run *span_run; ///< where the last span of values is
    int64_t number;
    struct tfos__walk walk;
};

static enum tfos_status check_row(void *context, int64_t row, struct tfos_error *err)
{
    const struct column *column = context;
    struct tfos__walk walk;

    tfos__walk_init(&walk, column->walk.feature);
    walk.route = column->walk.route;
    memcpy(walk.targets, column->walk.targets, sizeof walk.targets);
    return tfos__walk_rows(&walk, &column->run->piece->array, row, 1, err);
}

// One walk over all rows, measuring or writing.
static enum tfos_status walk_all(struct column *column, struct tfos_error *err)
{
    struct tfos__walk *walk = &column->walk;

    for (int64_t i = 0; i < column->rows->run_count; i++) {
        column->run = &column->rows->runs[i];
        struct tfos__piece *piece = column->run->piece;
        int64_t span_count = walk->span_count;
        walk->route = &piece->binding->routes[column->number];
        if (tfos__walk_rows(walk, &piece->array, column->run->first, column->run->count, err) < 0)
            return tfos__row_locate(column->run, check_row, column, err);
        if (walk->span_count > span_count)
            column->span_run = column->run;
    }
    tfos__walk_zeros(walk, column->rows->zero_count);
    return TFOS_OK;
}

// The length of lists that the feature leaves open: of the longest, to which others are filled up,
// or of each, which is seen where they differ.
static int64_t length_of(const struct tfos__walk *walk, int level)
{
    int64_t length = walk->feature->form == TFOS_FORM_PADDED || walk->longest[level] < 0
                         ? walk->longest[level]
                         : walk->shortest[level];

    return length > 0 ? length : 0;
}

// Measures; where the batch decides on lengths a second time, now that they are known.
static enum tfos_status measure(struct column *column, const struct tfos__feature *feature,
                                struct tfos_error *err)
{
    struct tfos__walk *walk = &column->walk;
    int64_t targets[TFOS__LEAF_LEVELS];
    bool is_open = false;

    tfos__walk_init(walk, feature);
    TFOS__TRY(walk_all(column, err));
    if (feature->form == TFOS_FORM_RAGGED)
        return tfos__walk_check(walk, err);
    for (int i = 0; i < feature->level_count; i++) {
        is_open = is_open || walk->targets[i] < 0;
        targets[i] = walk->targets[i] >= 0 ? walk->targets[i] : length_of(walk, i);
    }
    if (!is_open)
        return tfos__walk_check(walk, err);
    tfos__walk_init(walk, feature);
    memcpy(walk->targets, targets, sizeof targets);
    TFOS__TRY(walk_all(column, err));
    return tfos__walk_check(walk, err);
}

// The shape of the values: rows and what a row is, or all values of ragged lists.
static void set_shape(const struct column *column, struct tfos_tensor *tensor)
{
    const struct tfos__walk *walk = &column->walk;
    const struct tfos__feature *feature = walk->feature;

    *tensor = (struct tfos_tensor){.dtype = feature->dtype, .rank = 1};
    if (feature->form == TFOS_FORM_RAGGED) {
        tensor->shape[0] = walk->value_count + walk->fill_count;
        return;
    }
    tensor->rank = 1 + feature->rank;
    tensor->shape[0] = column->rows->row_count + column->rows->zero_count;
    for (int i = 0; i < feature->rank; i++)
        tensor->shape[1 + i] = feature->shape[i] < 0 ? walk->targets[i] : feature->shape[i];
}

// Whether the values lie together, and as the tensor wants them.
static bool can_lend(const struct tfos__walk *walk)
{
    return walk->span_count == 1 && walk->fill_count == 0 && tfos__element_is_plain(&walk->element);
}

static void lend_numbers(const struct tfos__walk *walk, struct tfos__lease *lender,
                         struct tfos_tensor *tensor)
{
    tfos__lease_hold(lender);
    tensor->lease = lender;
    tensor->data = tfos__arrow_value(&walk->element.type, walk->values, walk->first_value);
    tensor->size = walk->value_count * (int64_t)tfos__dtype_size(tensor->dtype);
}

// Room for numbers that the writing walk fills.
static enum tfos_status make_numbers(struct column *column, struct tfos_tensor *tensor,
                                     struct tfos_error *err)
{
    struct tfos__walk *walk = &column->walk;
    int64_t count = walk->value_count + walk->fill_count, size = 0;
    uint8_t *data = NULL;

    if (__builtin_mul_overflow(count, (int64_t)tfos__dtype_size(tensor->dtype), &size))
        return no_room(err);
    tensor->lease = tfos__block_open((size_t)size, NULL, &data);
    if (!tensor->lease)
        return no_room(err);
    tensor->data = walk->out = data;
    tensor->size = size;
    return TFOS_OK;
}

// Strings whose bytes lie together need no copy of them, only offsets where theirs are narrow.
static enum tfos_status lend_text(const struct tfos__walk *walk, struct tfos__lease *lender,
                                  struct tfos_tensor *tensor, struct tfos_error *err)
{
    const struct tfos__arrow_type *type = &walk->element.type;
    int64_t count = walk->value_count;
    uint8_t *data = NULL;

    tensor->size = (count + 1) * (int64_t)sizeof(int64_t);
    tensor->bytes = walk->values->buffers[2];
    if (type->width == 64) {
        tfos__lease_hold(lender);
        tensor->lease = lender;
        tensor->data = tfos__arrow_value(type, walk->values, walk->first_value);
        return TFOS_OK;
    }
    tensor->lease = tfos__block_open((size_t)tensor->size, lender, &data);
    if (!tensor->lease)
        return no_room(err);
    int64_t *offsets = (int64_t *)(void *)data;
    for (int64_t i = 0; i <= count; i++)
        offsets[i] = tfos__arrow_offset(type, walk->values, walk->first_value + i);
    tensor->data = data;
    return TFOS_OK;
}

// Room for strings that the writing walk fills.
static enum tfos_status make_text(struct column *column, struct tfos_tensor *tensor,
                                  struct tfos_error *err)
{
    struct tfos__walk *walk = &column->walk;
    int64_t count = walk->value_count + walk->fill_count, whole = 0;
    uint8_t *data = NULL;

    if (__builtin_mul_overflow(count + 1, (int64_t)sizeof(int64_t), &tensor->size) ||
        __builtin_add_overflow(tensor->size, walk->text_size, &whole))
        return no_room(err);
    tensor->lease = tfos__block_open((size_t)whole, NULL, &data);
    if (!tensor->lease)
        return no_room(err);
    walk->offsets = (int64_t *)(void *)data;
    walk->offsets[0] = 0;
    walk->text = (char *)data + tensor->size;
    tensor->data = data;
    tensor->bytes = walk->text;
    return TFOS_OK;
}

static enum tfos_status make_splits(struct column *column, struct tfos_tensor *tensors,
                                    struct tfos_error *err)
{
    struct tfos__walk *walk = &column->walk;

    for (int i = 0; i < walk->feature->level_count; i++) {
        int64_t count = walk->list_counts[i] + 1;
        uint8_t *data = NULL;
        TFOS__TRY(tfos__tensor_init(&tensors[1 + i], TFOS_DTYPE_INT64, 1, &count, &data, err));
        walk->splits[i] = (int64_t *)(void *)data;
        walk->splits[i][0] = 0;
    }
    return TFOS_OK;
}

static enum tfos_status make_values(struct column *column, struct tfos_tensor *tensors,
                                    struct tfos_error *err)
{
    struct tfos__walk *walk = &column->walk;
    bool is_text = walk->feature->dtype == TFOS_DTYPE_STRING;
    bool is_ragged = walk->feature->form == TFOS_FORM_RAGGED;

    set_shape(column, &tensors[0]);
    if (is_ragged)
        TFOS__TRY(make_splits(column, tensors, err));
    walk->is_lent = can_lend(walk);
    if (walk->is_lent && is_text)
        TFOS__TRY(lend_text(walk, &column->span_run->piece->lease, &tensors[0], err));
    else if (walk->is_lent)
        lend_numbers(walk, &column->span_run->piece->lease, &tensors[0]);
    else
        TFOS__TRY(is_text ? make_text(column, &tensors[0], err)
                          : make_numbers(column, &tensors[0], err));
    if (walk->is_lent && !is_ragged)
        return TFOS_OK;
    tfos__walk_write(walk);
    TFOS__TRY(walk_all(column, err));
    return tfos__walk_finish(walk, err);
}

enum tfos_status tfos__tensors_make(const struct tfos__plan *plan, int64_t number,
                                    const struct tfos__rows *rows, struct tfos_tensor *tensors,
                                    struct tfos_error *err)
{
    const struct tfos__feature *feature = &plan->features[number];
    struct column column = {.rows = rows, .number = number};
    int tensor_count = tfos__feature_tensor_count(feature);
    enum tfos_status status = TFOS_OK;

    memset(tensors, 0, (size_t)tensor_count * sizeof *tensors);
    if (feature->is_vector) {
        status = tfos__vectors_make(feature, number, rows, tensors, err);
    } else {
        status = measure(&column, feature, err);
        if (status == TFOS_OK)
            status = make_values(&column, tensors, err);
    }
    for (int i = 0; i < tensor_count && status != TFOS_OK; i++)
        tfos_tensor_release(&tensors[i]);
    return status;
}
