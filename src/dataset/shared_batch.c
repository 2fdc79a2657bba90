// SPDX-License-Identifier: Apache-2.0
// A buffer is one allocation: its header, then the data at the next multiple of the alignment. A
// batch is a buffer whose data is Arrow's.
#include "dataset/shared_batch.h"

#include <stdio.h>

#include "base/fail.h"
#include "base/memory.h"

#define ALIGNMENT 64 // bytes

// ---- buffers and tensors

struct block {
    struct tfos__dataset_shared_buffer buffer;
    struct tfos__dataset_shared_buffer *parent; ///< held
};

static void free_block(struct tfos__dataset_shared_buffer *buffer)
{
    struct block *block = (struct block *)buffer;

    tfos__dataset_shared_buffer_release(block->parent);
    tfos__free(block);
}

struct tfos__dataset_shared_buffer *
tfos__dataset_shared_buffer_open(size_t size, struct tfos__dataset_shared_buffer *parent,
                                 uint8_t **data)
{
    size_t whole = 0;

    if (__builtin_add_overflow(size, sizeof(struct block) + ALIGNMENT, &whole))
        return NULL;
    struct block *block = tfos__realloc(NULL, whole, 1);
    if (!block)
        return NULL;
    *block = (struct block){.buffer = {.reference_count = 1, .free = free_block}, .parent = parent};
    if (parent)
        tfos__dataset_shared_buffer_hold(parent);
    uintptr_t end = (uintptr_t)(block + 1);
    *data = (uint8_t *)(block + 1) + (-end & (ALIGNMENT - 1));
    return &block->buffer;
}

void tfos__dataset_shared_buffer_hold(struct tfos__dataset_shared_buffer *buffer)
{
    atomic_fetch_add_explicit(&buffer->reference_count, 1, memory_order_relaxed);
}

void tfos__dataset_shared_buffer_release(struct tfos__dataset_shared_buffer *buffer)
{
    if (buffer && atomic_fetch_sub(&buffer->reference_count, 1) == 1)
        buffer->free(buffer);
}

enum tfos_status tfos__dataset_tensor_init(struct tfos_tensor *tensor, enum tfos_dtype dtype,
                                           int rank, const int64_t *shape, uint8_t **data,
                                           struct tfos_error *err)
{
    int64_t size = (int64_t)tfos__dataset_type_size(dtype);

    *tensor = (struct tfos_tensor){.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++) {
        tensor->shape[i] = shape[i];
        if (__builtin_mul_overflow(size, shape[i], &size))
            return tfos__no_memory(err, "dataset", "a batch of tensors");
    }
    tensor->owner = tfos__dataset_shared_buffer_open((size_t)size, NULL, data);
    if (!tensor->owner)
        return tfos__no_memory(err, "dataset", "a batch of tensors");
    tensor->data = *data;
    tensor->size = size;
    return TFOS_OK;
}

void tfos_tensor_release(struct tfos_tensor *tensor)
{
    tfos__dataset_shared_buffer_release(tensor->owner);
    *tensor = (struct tfos_tensor){0};
}

// ---- batches

static void free_batch(struct tfos__dataset_shared_buffer *buffer)
{
    struct tfos__dataset_shared_batch *batch = (struct tfos__dataset_shared_batch *)buffer;

    tfos__arrow_array_release(&batch->array);
    tfos__arrow_schema_release(&batch->schema);
    tfos__dataset_schema_binding_release(batch->binding);
    tfos__free(batch->row_numbers);
    tfos__free(batch);
}

// Approximate bytes of an array: its values and offsets, without the validity bits.
static int64_t measure(const struct ArrowSchema *schema, const struct ArrowArray *array)
{
    struct tfos__arrow_type type;

    if (array->length == 0 || tfos__arrow_type_read(&type, schema, NULL) < 0)
        return 0;
    int64_t size = array->length * type.width / 8;
    if (type.layout == TFOS__ARROW_VARIABLE)
        size += tfos__arrow_offset(&type, array, array->length);
    for (int64_t i = 0; i < array->n_children; i++)
        size += measure(schema->children[i], array->children[i]);
    return size;
}

static struct tfos__dataset_shared_batch *new_batch(struct tfos_error *err)
{
    struct tfos__dataset_shared_batch *batch = tfos__alloc(1, sizeof(*batch));

    if (batch)
        batch->buffer = (struct tfos__dataset_shared_buffer){1, free_batch};
    else
        tfos__no_memory(err, "dataset", "a batch");
    return batch;
}

enum tfos_status tfos__dataset_shared_batch_open(struct tfos_feed_item *item,
                                                 struct tfos__dataset_shared_batch **out,
                                                 struct tfos_error *err)
{
    struct tfos__dataset_shared_batch *batch = new_batch(err);

    if (!batch) {
        item->array.release(&item->array);
        item->schema.release(&item->schema);
        return TFOS_NO_MEMORY;
    }
    batch->schema = item->schema;
    batch->array = item->array;
    batch->partition = item->partition;
    batch->first_row = item->first_row;
    batch->row_step = 1;
    batch->size = measure(&batch->schema, &batch->array);
    *out = batch;
    return TFOS_OK;
}

static int64_t row_number(const struct tfos__dataset_shared_batch *batch, int64_t row)
{
    return batch->row_numbers ? batch->row_numbers[row] : batch->first_row + row * batch->row_step;
}

enum tfos_status tfos__dataset_shared_batch_extract(const struct tfos__dataset_shared_batch *batch,
                                                    const struct tfos__arrow_span *spans,
                                                    int64_t span_count,
                                                    struct tfos__dataset_shared_batch **out,
                                                    struct tfos_error *err)
{
    const struct ArrowSchema *schema = &batch->binding->schema;
    struct tfos__dataset_shared_batch *copy = new_batch(err);

    if (!copy)
        return TFOS_NO_MEMORY;
    copy->number = batch->number;
    copy->partition = batch->partition;
    copy->partition_name = batch->partition_name;
    copy->binding = tfos__dataset_schema_binding_hold(batch->binding);
    enum tfos_status status =
        tfos__arrow_array_extract(schema, &batch->array, spans, span_count, &copy->array, err);
    if (status == TFOS_OK) {
        copy->row_numbers = tfos__alloc((size_t)copy->array.length, sizeof(*copy->row_numbers));
        if (!copy->row_numbers)
            status = tfos__no_memory(err, "dataset", "a batch");
    }
    if (status != TFOS_OK) {
        tfos__dataset_shared_batch_release(copy);
        return status;
    }
    int64_t position = 0;
    for (int64_t i = 0; i < span_count; i++)
        for (int64_t k = 0; k < spans[i].count; k++)
            copy->row_numbers[position++] = row_number(batch, spans[i].first + k);
    copy->size = measure(schema, &copy->array);
    *out = copy;
    return TFOS_OK;
}

enum tfos_status tfos__dataset_shared_batch_bind(struct tfos__dataset_shared_batch *batch,
                                                 const struct tfos__dataset_plan *plan,
                                                 struct tfos__dataset_schema_binding **last,
                                                 struct tfos_error *err)
{
    if (batch->binding)
        return TFOS_OK;
    if (!*last || !tfos__arrow_schema_equals(&(*last)->schema, &batch->schema)) {
        struct tfos__dataset_schema_binding *binding = NULL;
        enum tfos_status status =
            tfos__dataset_schema_binding_open(&batch->schema, plan, &binding, err);
        if (status != TFOS_OK) {
            tfos__dataset_shared_batch_locate(batch, 0, err);
            return status;
        }
        tfos__dataset_schema_binding_release(*last);
        *last = binding;
    }
    batch->binding = tfos__dataset_schema_binding_hold(*last);
    return TFOS_OK;
}

void tfos__dataset_shared_batch_locate(const struct tfos__dataset_shared_batch *batch, int64_t row,
                                       struct tfos_error *err)
{
    char place[48] = "";

    if (row >= 0)
        snprintf(place, sizeof(place), ", row %lld", (long long)row_number(batch, row));
    if (batch->partition_name)
        tfos__fail_prefix(err, "dataset: %s%s", batch->partition_name, place);
    else
        tfos__fail_prefix(err, "dataset: partition %lld%s", (long long)batch->partition, place);
}

void tfos__dataset_shared_batch_hold(struct tfos__dataset_shared_batch *batch)
{
    tfos__dataset_shared_buffer_hold(&batch->buffer);
}

void tfos__dataset_shared_batch_release(struct tfos__dataset_shared_batch *batch)
{
    tfos__dataset_shared_buffer_release(&batch->buffer);
}

// ---- slices

enum tfos_status tfos__dataset_row_slices_add(struct tfos__dataset_row_slices *list,
                                              struct tfos__dataset_shared_batch *batch,
                                              int64_t first, int64_t count, struct tfos_error *err)
{
    struct tfos__dataset_row_slice *last = list->count > 0 ? &list->slices[list->count - 1] : NULL;

    list->row_count += count;
    if (last && last->batch == batch && last->first + last->count == first) {
        last->count += count;
        return TFOS_OK;
    }
    if (list->count == list->capacity) {
        int64_t capacity = list->capacity * 2 + 16;
        struct tfos__dataset_row_slice *slices =
            tfos__realloc(list->slices, (size_t)capacity, sizeof(*slices));
        if (!slices)
            return tfos__no_memory(err, "dataset", "a batch");
        list->slices = slices;
        list->capacity = capacity;
    }
    tfos__dataset_shared_batch_hold(batch);
    list->slices[list->count++] = (struct tfos__dataset_row_slice){batch, first, count};
    return TFOS_OK;
}

void tfos__dataset_row_slices_drop(struct tfos__dataset_row_slices *list)
{
    for (int64_t i = 0; i < list->count; i++)
        tfos__dataset_shared_batch_release(list->slices[i].batch);
    list->count = list->row_count = list->zero_count = 0;
}

void tfos__dataset_row_slices_clear(struct tfos__dataset_row_slices *list)
{
    tfos__dataset_row_slices_drop(list);
    tfos__free(list->slices);
    *list = (struct tfos__dataset_row_slices){0};
}
