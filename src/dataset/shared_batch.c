// SPDX-License-Identifier: Apache-2.0
// A batch is released by whichever thread gives up its last reference.
#include "dataset/shared_batch.h"

#include "base/fail.h"
#include "base/memory.h"

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
            tfos__dataset_shared_batch_locate_row(batch, 0, err);
            return status;
        }
        tfos__dataset_schema_binding_release(*last);
        *last = binding;
    }
    batch->binding = tfos__dataset_schema_binding_hold(*last);
    return TFOS_OK;
}

void tfos__dataset_shared_batch_locate(const struct tfos__dataset_shared_batch *batch,
                                       struct tfos_error *err)
{
    if (batch->partition_name)
        tfos__fail_prefix(err, "dataset: %s", batch->partition_name);
    else
        tfos__fail_prefix(err, "dataset: partition %lld", (long long)batch->partition);
}

void tfos__dataset_shared_batch_locate_row(const struct tfos__dataset_shared_batch *batch,
                                           int64_t row, struct tfos_error *err)
{
    long long number = (long long)row_number(batch, row);

    if (batch->partition_name)
        tfos__fail_prefix(err, "dataset: %s, row %lld", batch->partition_name, number);
    else
        tfos__fail_prefix(err, "dataset: partition %lld, row %lld", (long long)batch->partition,
                          number);
}

void tfos__dataset_shared_batch_hold(struct tfos__dataset_shared_batch *batch)
{
    tfos__dataset_shared_buffer_hold(&batch->buffer);
}

void tfos__dataset_shared_batch_release(struct tfos__dataset_shared_batch *batch)
{
    tfos__dataset_shared_buffer_release(&batch->buffer);
}

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
