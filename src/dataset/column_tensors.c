// SPDX-License-Identifier: Apache-2.0
// A column is measured over all slices. Its tensor refers to the batch's memory when it has one
// span of values and no fill values; otherwise the values are written into one buffer, one copy for
// each span.
#include "dataset/column_tensors.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/column_visitor.h"
#include "dataset/vector.h"

static enum tfos_status no_memory(struct tfos_error *err)
{
    return tfos__no_memory(err, "dataset", "a batch of tensors");
}

struct column {
    const struct tfos__dataset_row_slices *rows;
    const struct tfos__dataset_row_slice *slice;   ///< the one that is visited
    struct tfos__dataset_shared_batch *span_batch; ///< of the last span of values
    int64_t number;
    struct tfos__dataset_column_visitor visitor;
};

// Names in the message the row at which visiting a slice has failed: visiting it alone fails too.
static enum tfos_status locate_failure(const struct column *column, struct tfos_error *err)
{
    const struct tfos__dataset_row_slice *slice = column->slice;
    struct tfos__dataset_shared_batch *batch = slice->batch;
    struct tfos__dataset_column_visitor visitor;

    for (int64_t row = slice->first; row < slice->first + slice->count; row++) {
        tfos__dataset_column_visitor_init(&visitor, column->visitor.feature);
        visitor.path = column->visitor.path;
        memcpy(visitor.targets, column->visitor.targets, sizeof(visitor.targets));
        enum tfos_status status =
            tfos__dataset_column_visitor_rows(&visitor, &batch->array, row, 1, err);
        if (status == TFOS_OK)
            continue;
        tfos__dataset_shared_batch_locate(batch, row, err);
        return status;
    }
    // The memory has changed meanwhile.
    return tfos__fail(err, TFOS_CORRUPT, "dataset: partition %lld changed while it was read",
                      (long long)batch->partition);
}

// One traversal of all rows, measuring or writing.
static enum tfos_status visit_all(struct column *column, struct tfos_error *err)
{
    struct tfos__dataset_column_visitor *visitor = &column->visitor;

    for (int64_t i = 0; i < column->rows->count; i++) {
        column->slice = &column->rows->slices[i];
        struct tfos__dataset_shared_batch *batch = column->slice->batch;
        int64_t span_count = visitor->span_count;
        visitor->path = &batch->binding->paths[column->number];
        if (tfos__dataset_column_visitor_rows(visitor, &batch->array, column->slice->first,
                                              column->slice->count, err) < 0)
            return locate_failure(column, err);
        if (visitor->span_count > span_count)
            column->span_batch = batch;
    }
    tfos__dataset_column_visitor_zeros(visitor, column->rows->zero_count);
    return TFOS_OK;
}

// The length of lists that the feature leaves open: that of the longest, to which others are
// padded, or the one that all have. Where they differ, the second traversal refuses them.
static int64_t length_of(const struct tfos__dataset_column_visitor *visitor, int level)
{
    int64_t length = visitor->feature->form == TFOS_FORM_PADDED || visitor->longest[level] < 0
                         ? visitor->longest[level]
                         : visitor->shortest[level];

    return length > 0 ? length : 0;
}

// Measures. Where the batch decides on lengths, it is measured again with the lengths as targets.
static enum tfos_status measure(struct column *column, const struct tfos__dataset_feature *feature,
                                struct tfos_error *err)
{
    struct tfos__dataset_column_visitor *visitor = &column->visitor;
    int64_t targets[TFOS__LIST_LEVELS];
    bool is_open = false;

    tfos__dataset_column_visitor_init(visitor, feature);
    TFOS__TRY(visit_all(column, err));
    if (feature->form == TFOS_FORM_RAGGED)
        return tfos__dataset_column_visitor_check(visitor, err);
    for (int i = 0; i < feature->level_count; i++) {
        is_open = is_open || visitor->targets[i] < 0;
        targets[i] = visitor->targets[i] >= 0 ? visitor->targets[i] : length_of(visitor, i);
    }
    if (!is_open)
        return tfos__dataset_column_visitor_check(visitor, err);
    tfos__dataset_column_visitor_init(visitor, feature);
    memcpy(visitor->targets, targets, sizeof(targets));
    TFOS__TRY(visit_all(column, err));
    return tfos__dataset_column_visitor_check(visitor, err);
}

// The shape of the values: rows and what a row is, or all values of ragged lists.
static void set_shape(const struct column *column, struct tfos_tensor *tensor)
{
    const struct tfos__dataset_column_visitor *visitor = &column->visitor;
    const struct tfos__dataset_feature *feature = visitor->feature;

    *tensor = (struct tfos_tensor){.dtype = feature->dtype, .rank = 1};
    if (feature->form == TFOS_FORM_RAGGED) {
        tensor->shape[0] = visitor->value_count + visitor->fill_count;
        return;
    }
    tensor->rank = 1 + feature->rank;
    tensor->shape[0] = column->rows->row_count + column->rows->zero_count;
    for (int i = 0; i < feature->rank; i++)
        tensor->shape[1 + i] = feature->shape[i] < 0 ? visitor->targets[i] : feature->shape[i];
}

// Whether the tensor can use the memory of the batch.
static bool can_borrow(const struct tfos__dataset_column_visitor *visitor)
{
    return visitor->span_count == 1 && visitor->fill_count == 0 &&
           tfos__dataset_element_is_plain(&visitor->element);
}

static void borrow_numbers(const struct tfos__dataset_column_visitor *visitor,
                           struct tfos__dataset_shared_buffer *memory, struct tfos_tensor *tensor)
{
    tfos__dataset_shared_buffer_hold(memory);
    tensor->owner = memory;
    tensor->data = tfos__arrow_value(&visitor->element.type, visitor->values, visitor->first_value);
    tensor->size = visitor->value_count * (int64_t)tfos__dataset_type_size(tensor->dtype);
}

// Allocates the numbers that the second traversal writes.
static enum tfos_status make_numbers(struct column *column, struct tfos_tensor *tensor,
                                     struct tfos_error *err)
{
    struct tfos__dataset_column_visitor *visitor = &column->visitor;
    int64_t count = visitor->value_count + visitor->fill_count, size = 0;
    uint8_t *data = NULL;

    if (__builtin_mul_overflow(count, (int64_t)tfos__dataset_type_size(tensor->dtype), &size))
        return no_memory(err);
    tensor->owner = tfos__dataset_shared_buffer_open((size_t)size, NULL, &data);
    if (!tensor->owner)
        return no_memory(err);
    tensor->data = visitor->out = data;
    tensor->size = size;
    return TFOS_OK;
}

// Contiguous strings are not copied; only their offsets are, where those have 32 bits.
static enum tfos_status borrow_text(const struct tfos__dataset_column_visitor *visitor,
                                    struct tfos__dataset_shared_buffer *memory,
                                    struct tfos_tensor *tensor, struct tfos_error *err)
{
    const struct tfos__arrow_type *type = &visitor->element.type;
    int64_t count = visitor->value_count;
    uint8_t *data = NULL;

    tensor->size = (count + 1) * (int64_t)sizeof(int64_t);
    tensor->bytes = visitor->values->buffers[2];
    if (type->width == 64) {
        tfos__dataset_shared_buffer_hold(memory);
        tensor->owner = memory;
        tensor->data = tfos__arrow_value(type, visitor->values, visitor->first_value);
        return TFOS_OK;
    }
    tensor->owner = tfos__dataset_shared_buffer_open((size_t)tensor->size, memory, &data);
    if (!tensor->owner)
        return no_memory(err);
    int64_t *offsets = (int64_t *)(void *)data;
    for (int64_t i = 0; i <= count; i++)
        offsets[i] = tfos__arrow_offset(type, visitor->values, visitor->first_value + i);
    tensor->data = data;
    return TFOS_OK;
}

// Allocates the strings that the second traversal writes.
static enum tfos_status make_text(struct column *column, struct tfos_tensor *tensor,
                                  struct tfos_error *err)
{
    struct tfos__dataset_column_visitor *visitor = &column->visitor;
    int64_t count = visitor->value_count + visitor->fill_count, whole = 0;
    uint8_t *data = NULL;

    if (__builtin_mul_overflow(count + 1, (int64_t)sizeof(int64_t), &tensor->size) ||
        __builtin_add_overflow(tensor->size, visitor->text_size, &whole))
        return no_memory(err);
    tensor->owner = tfos__dataset_shared_buffer_open((size_t)whole, NULL, &data);
    if (!tensor->owner)
        return no_memory(err);
    visitor->offsets = (int64_t *)(void *)data;
    visitor->offsets[0] = 0;
    visitor->text = (char *)data + tensor->size;
    tensor->data = data;
    tensor->bytes = visitor->text;
    return TFOS_OK;
}

static enum tfos_status make_splits(struct column *column, struct tfos_tensor *tensors,
                                    struct tfos_error *err)
{
    struct tfos__dataset_column_visitor *visitor = &column->visitor;

    for (int i = 0; i < visitor->feature->level_count; i++) {
        int64_t count = visitor->list_counts[i] + 1;
        uint8_t *data = NULL;
        TFOS__TRY(
            tfos__dataset_tensor_init(&tensors[1 + i], TFOS_DTYPE_INT64, 1, &count, &data, err));
        visitor->splits[i] = (int64_t *)(void *)data;
        visitor->splits[i][0] = 0;
    }
    return TFOS_OK;
}

static enum tfos_status make_values(struct column *column, struct tfos_tensor *tensors,
                                    struct tfos_error *err)
{
    struct tfos__dataset_column_visitor *visitor = &column->visitor;
    bool is_text = visitor->feature->dtype == TFOS_DTYPE_STRING;
    bool is_ragged = visitor->feature->form == TFOS_FORM_RAGGED;

    set_shape(column, &tensors[0]);
    if (is_ragged)
        TFOS__TRY(make_splits(column, tensors, err));
    visitor->is_borrowed = can_borrow(visitor);
    if (visitor->is_borrowed && is_text)
        TFOS__TRY(borrow_text(visitor, &column->span_batch->buffer, &tensors[0], err));
    else if (visitor->is_borrowed)
        borrow_numbers(visitor, &column->span_batch->buffer, &tensors[0]);
    else
        TFOS__TRY(is_text ? make_text(column, &tensors[0], err)
                          : make_numbers(column, &tensors[0], err));
    if (visitor->is_borrowed && !is_ragged)
        return TFOS_OK;
    tfos__dataset_column_visitor_write(visitor);
    TFOS__TRY(visit_all(column, err));
    return tfos__dataset_column_visitor_finish(visitor, err);
}

enum tfos_status tfos__dataset_column_tensors_make(const struct tfos__dataset_plan *plan,
                                                   int64_t number,
                                                   const struct tfos__dataset_row_slices *rows,
                                                   struct tfos_tensor *tensors,
                                                   struct tfos_error *err)
{
    const struct tfos__dataset_feature *feature = &plan->features[number];
    struct column column = {.rows = rows, .number = number};
    int tensor_count = tfos__dataset_feature_tensor_count(feature);
    enum tfos_status status = TFOS_OK;

    memset(tensors, 0, (size_t)tensor_count * sizeof(*tensors));
    if (feature->is_vector) {
        status = tfos__dataset_vectors_make(feature, number, rows, tensors, err);
    } else {
        status = measure(&column, feature, err);
        if (status == TFOS_OK)
            status = make_values(&column, tensors, err);
    }
    for (int i = 0; i < tensor_count && status != TFOS_OK; i++)
        tfos_tensor_release(&tensors[i]);
    return status;
}

enum tfos_status tfos__dataset_weights_make(const struct tfos__dataset_row_slices *rows,
                                            struct tfos_tensor *tensor, struct tfos_error *err)
{
    int64_t count = rows->row_count + rows->zero_count;
    const float of_row = 1, of_padding = -0.0F;
    uint8_t *data = NULL;

    TFOS__TRY(tfos__dataset_tensor_init(tensor, TFOS_DTYPE_FLOAT32, 1, &count, &data, err));
    for (int64_t i = 0; i < count; i++)
        memcpy(data + (size_t)i * sizeof(of_row), i < rows->row_count ? &of_row : &of_padding,
               sizeof(of_row));
    return TFOS_OK;
}

enum tfos_status tfos__dataset_column_measure(const struct tfos__dataset_feature *feature,
                                              const struct tfos__dataset_leaf_path *path,
                                              const struct ArrowArray *batch, int64_t *shortest,
                                              int64_t *longest, struct tfos_error *err)
{
    struct tfos__dataset_column_visitor visitor;

    if (feature->is_vector)
        return tfos__dataset_vectors_measure(path, batch, shortest, longest, err);
    tfos__dataset_column_visitor_init(&visitor, feature);
    visitor.path = path;
    TFOS__TRY(tfos__dataset_column_visitor_rows(&visitor, batch, 0, batch->length, err));
    memcpy(shortest, visitor.shortest, sizeof(visitor.shortest));
    memcpy(longest, visitor.longest, sizeof(visitor.longest));
    return TFOS_OK;
}
