// SPDX-License-Identifier: Apache-2.0
// Rows stay in the batches in which they came. A drawn row's slot is filled with the last row. A
// large batch is compacted when half of its rows have been drawn, so each row is copied about once.
#include "dataset/shuffle_buffer.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"

#define COMPACT_SIZE 65536 // bytes; a smaller batch is kept until its last row is drawn

/// The rows of one batch that are in the buffer.
struct tfos__dataset_shuffle_batch {
    struct tfos__dataset_shared_batch *batch; ///< held
    int64_t *slots;                           ///< owned; the slot of each row, or -1
    int64_t added_count, live_count;
};

struct tfos__dataset_shuffle_slot {
    struct tfos__dataset_shuffle_batch *rows;
    int64_t row;
};

void tfos__dataset_shuffle_buffer_begin(struct tfos__dataset_shuffle_buffer *buffer, uint64_t seed,
                                        int64_t epoch)
{
    buffer->random_state = seed ^ ((uint64_t)epoch * UINT64_C(0xd1342543de82ef95));
}

static void free_rows(struct tfos__dataset_shuffle_buffer *buffer,
                      struct tfos__dataset_shuffle_batch *rows)
{
    if (buffer->newest == rows)
        buffer->newest = NULL;
    tfos__dataset_shared_batch_release(rows->batch);
    tfos__free(rows->slots);
    tfos__free(rows);
}

static enum tfos_status no_memory(struct tfos_error *err)
{
    return tfos__no_memory(err, "dataset", "rows to shuffle");
}

// Takes over a reference to the batch, also on failure.
static struct tfos__dataset_shuffle_batch *make_rows(struct tfos__dataset_shared_batch *batch)
{
    struct tfos__dataset_shuffle_batch *rows = tfos__alloc(1, sizeof(*rows));
    int64_t *slots = tfos__alloc((size_t)batch->array.length, sizeof(*slots));

    if (!rows || !slots) {
        tfos__free(rows);
        tfos__free(slots);
        tfos__dataset_shared_batch_release(batch);
        return NULL;
    }
    for (int64_t i = 0; i < batch->array.length; i++)
        slots[i] = -1;
    rows->batch = batch;
    rows->slots = slots;
    return rows;
}

// Makes the rows of a slice's batch the newest, without any of its rows.
static struct tfos__dataset_shuffle_batch *begin_rows(struct tfos__dataset_shuffle_buffer *buffer,
                                                      const struct tfos__dataset_row_slice *slice)
{
    tfos__dataset_shared_batch_hold(slice->batch);
    struct tfos__dataset_shuffle_batch *rows = make_rows(slice->batch);
    buffer->newest = rows ? rows : buffer->newest;
    return rows;
}

static enum tfos_status reserve(struct tfos__dataset_shuffle_buffer *buffer, int64_t count,
                                struct tfos_error *err)
{
    int64_t capacity = buffer->capacity * 2;

    count += buffer->count;
    if (count <= buffer->capacity)
        return TFOS_OK;
    capacity = capacity > count ? capacity : count;
    struct tfos__dataset_shuffle_slot *slots =
        tfos__realloc(buffer->slots, (size_t)capacity, sizeof(*slots));
    if (!slots)
        return no_memory(err);
    buffer->slots = slots;
    buffer->capacity = capacity;
    return TFOS_OK;
}

static void put(struct tfos__dataset_shuffle_buffer *buffer, int64_t slot,
                struct tfos__dataset_shuffle_batch *rows, int64_t row)
{
    rows->slots[row] = slot;
    buffer->slots[slot] = (struct tfos__dataset_shuffle_slot){rows, row};
}

static enum tfos_status add(struct tfos__dataset_shuffle_buffer *buffer,
                            const struct tfos__dataset_row_slice *slice, struct tfos_error *err)
{
    struct tfos__dataset_shuffle_batch *rows = buffer->newest;

    TFOS__TRY(reserve(buffer, slice->count, err));
    if (!rows || rows->batch != slice->batch)
        rows = begin_rows(buffer, slice);
    if (!rows)
        return no_memory(err);
    for (int64_t row = slice->first; row < slice->first + slice->count; row++)
        put(buffer, buffer->count++, rows, row);
    rows->live_count += slice->count;
    rows->added_count += slice->count;
    return TFOS_OK;
}

static enum tfos_status refill(struct tfos__dataset_shuffle_buffer *buffer,
                               struct tfos__dataset_batch_queue *queue, struct tfos_error *err)
{
    struct tfos__dataset_row_slices list = {0};

    if (buffer->count >= buffer->limit || queue->row_count == 0)
        return TFOS_OK;
    enum tfos_status status =
        tfos__dataset_batch_queue_take(queue, buffer->limit - buffer->count, &list, err);
    for (int64_t i = 0; i < list.count && status == TFOS_OK; i++)
        status = add(buffer, &list.slices[i], err);
    tfos__dataset_row_slices_clear(&list);
    return status;
}

static enum tfos_status copy_rows(const struct tfos__dataset_shuffle_batch *rows,
                                  struct tfos__arrow_span *spans,
                                  struct tfos__dataset_shared_batch **out, struct tfos_error *err)
{
    int64_t count = 0;

    for (int64_t row = 0; row < rows->batch->array.length; row++)
        if (rows->slots[row] >= 0)
            spans[count++] = (struct tfos__arrow_span){row, 1};
    return tfos__dataset_shared_batch_extract(rows->batch, spans, count, out, err);
}

// Moves what is left of a batch to a copy of only that.
static enum tfos_status compact(struct tfos__dataset_shuffle_buffer *buffer,
                                struct tfos__dataset_shuffle_batch *rows, struct tfos_error *err)
{
    struct tfos__dataset_shared_batch *batch = NULL;
    struct tfos__dataset_shuffle_batch *copy = NULL;
    struct tfos__arrow_span *spans = tfos__alloc((size_t)rows->live_count, sizeof(*spans));
    enum tfos_status status = spans ? copy_rows(rows, spans, &batch, err) : no_memory(err);

    if (status == TFOS_OK && !(copy = make_rows(batch)))
        status = no_memory(err);
    if (status == TFOS_OK) {
        copy->added_count = copy->live_count = rows->live_count;
        for (int64_t row = 0; row < copy->live_count; row++)
            put(buffer, rows->slots[spans[row].first], copy, row);
        free_rows(buffer, rows);
    }
    tfos__free(spans);
    return status;
}

// Whether all rows of the batch have been added, so that it may be released.
static bool is_added(const struct tfos__dataset_shuffle_batch *rows)
{
    return rows->added_count == rows->batch->array.length;
}

static bool is_worth_compacting(const struct tfos__dataset_shuffle_batch *rows)
{
    return rows->batch->size >= COMPACT_SIZE && rows->live_count < rows->batch->array.length / 2;
}

static enum tfos_status draw(struct tfos__dataset_shuffle_buffer *buffer,
                             struct tfos__dataset_row_slices *slices, struct tfos_error *err)
{
    uint64_t random = tfos__dataset_random_next(&buffer->random_state);
    int64_t slot = (int64_t)(random % (uint64_t)buffer->count);
    struct tfos__dataset_shuffle_slot drawn = buffer->slots[slot];
    struct tfos__dataset_shuffle_batch *rows = drawn.rows;

    TFOS__TRY(tfos__dataset_row_slices_add(slices, rows->batch, drawn.row, 1, err));
    struct tfos__dataset_shuffle_slot last = buffer->slots[--buffer->count];
    put(buffer, slot, last.rows, last.row);
    rows->slots[drawn.row] = -1;
    rows->live_count--;
    if (!is_added(rows))
        return TFOS_OK;
    if (rows->live_count == 0)
        free_rows(buffer, rows);
    else if (rows->batch->binding && is_worth_compacting(rows))
        return compact(buffer, rows, err);
    return TFOS_OK;
}

enum tfos_status tfos__dataset_shuffle_buffer_draw(struct tfos__dataset_shuffle_buffer *buffer,
                                                   struct tfos__dataset_batch_queue *queue,
                                                   int64_t count,
                                                   struct tfos__dataset_row_slices *slices,
                                                   struct tfos_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        TFOS__TRY(refill(buffer, queue, err));
        if (buffer->count == 0)
            break;
        TFOS__TRY(draw(buffer, slices, err));
    }
    return TFOS_OK;
}

/// A row that is in the buffer at the point, by number, and its slot.
struct resident {
    int64_t row, slot;
};

static int compare_residents(const void *left, const void *right)
{
    int64_t a = ((const struct resident *)left)->row, b = ((const struct resident *)right)->row;

    return (a > b) - (a < b);
}

// Repeats the draws with numbers of rows; what is left is in `residents`, in the order of the
// slots.
static void repeat_draws(struct tfos__dataset_shuffle_buffer *buffer,
                         const struct tfos__dataset_shuffle_point *point,
                         struct resident *residents)
{
    int64_t count = 0, next = 0;

    for (int64_t i = 0; i < point->drawn_count; i++) {
        while (count < buffer->limit && next < point->added_count)
            residents[count++].row = next++;
        uint64_t random = tfos__dataset_random_next(&buffer->random_state);
        int64_t slot = (int64_t)(random % (uint64_t)count);
        residents[slot] = residents[--count];
    }
    for (int64_t i = 0; i < count; i++)
        residents[i].slot = i;
}

/// What resuming needs besides the buffer.
struct resumption {
    struct tfos__dataset_batch_queue *queue;
    const struct tfos__dataset_plan *plan;
    struct tfos__dataset_schema_binding **binding;
    const struct resident *next, *end; ///< residents that are still to come, ordered by row
    int64_t row;                       ///< number of the queue's next row
};

// Adds those rows of a slice that are residents. The others have been drawn.
static enum tfos_status resume_slice(struct tfos__dataset_shuffle_buffer *buffer,
                                     struct resumption *resumption,
                                     const struct tfos__dataset_row_slice *slice,
                                     struct tfos_error *err)
{
    const struct tfos_dataset_options *options = resumption->queue->options;
    struct tfos__dataset_shuffle_batch *rows = begin_rows(buffer, slice);

    if (!rows)
        return no_memory(err);
    rows->added_count = slice->count;
    for (int64_t i = 0; i < slice->count; i++, resumption->row++) {
        if (resumption->next == resumption->end || resumption->next->row != resumption->row)
            continue;
        put(buffer, resumption->next++->slot, rows, slice->first + i);
        rows->live_count++;
    }
    if (options->use && rows->live_count < slice->count)
        options->use(options->context, slice->batch->number, slice->count - rows->live_count);
    if (!is_added(rows))
        return TFOS_OK;
    if (rows->live_count == 0)
        free_rows(buffer, rows);
    else if (is_worth_compacting(rows)) {
        TFOS__TRY(tfos__dataset_shared_batch_bind(slice->batch, resumption->plan,
                                                  resumption->binding, err));
        return compact(buffer, rows, err);
    }
    return TFOS_OK;
}

// Reads rows up to number `added_count`. END: there are fewer.
static enum tfos_status resume_rows(struct tfos__dataset_shuffle_buffer *buffer,
                                    struct resumption *resumption, int64_t added_count,
                                    struct tfos_error *err)
{
    struct tfos__dataset_batch_queue *queue = resumption->queue;
    struct tfos__dataset_row_slices list = {0};
    enum tfos_status status = TFOS_OK;

    while (status == TFOS_OK && resumption->row < added_count) {
        int64_t count = added_count - resumption->row;
        status = queue->row_count > 0 ? tfos__dataset_batch_queue_take(queue, count, &list, err)
                                      : tfos__dataset_batch_queue_read(queue, -1, err);
        for (int64_t i = 0; i < list.count && status == TFOS_OK; i++)
            status = resume_slice(buffer, resumption, &list.slices[i], err);
        tfos__dataset_row_slices_drop(&list);
    }
    tfos__dataset_row_slices_clear(&list);
    return status;
}

enum tfos_status tfos__dataset_shuffle_buffer_resume(
    struct tfos__dataset_shuffle_buffer *buffer, struct tfos__dataset_batch_queue *queue,
    const struct tfos__dataset_shuffle_point *point, const struct tfos__dataset_plan *plan,
    struct tfos__dataset_schema_binding **binding, struct tfos_error *err)
{
    int64_t added = point->added_count, count = added - point->drawn_count;
    int64_t most = added < buffer->limit ? added : buffer->limit;

    if (point->drawn_count < 0 || point->first < 0 || count < 0 || count > most)
        return tfos__fail(
            err, TFOS_INVALID, "dataset: no buffer of %lld rows has given %lld of %lld rows",
            (long long)buffer->limit, (long long)point->drawn_count, (long long)added);
    struct resident *residents = tfos__alloc((size_t)most, sizeof(*residents));
    enum tfos_status status = residents ? reserve(buffer, count, err) : no_memory(err);
    if (status == TFOS_OK) {
        repeat_draws(buffer, point, residents);
        qsort(residents, (size_t)count, sizeof(*residents), compare_residents);
        for (buffer->count = 0; buffer->count < count; buffer->count++)
            buffer->slots[buffer->count] = (struct tfos__dataset_shuffle_slot){0};
        struct resumption resumption = {queue,       plan, binding, residents, residents + count,
                                        point->first};
        status = resume_rows(buffer, &resumption, added, err);
    }
    tfos__free(residents);
    return status;
}

void tfos__dataset_shuffle_buffer_drop(struct tfos__dataset_shuffle_buffer *buffer)
{
    while (buffer->count > 0) {
        struct tfos__dataset_shuffle_batch *rows = buffer->slots[--buffer->count].rows;
        if (rows && --rows->live_count == 0) // a slot is empty where resuming failed
            free_rows(buffer, rows);
    }
    if (buffer->newest)
        free_rows(buffer, buffer->newest);
}

void tfos__dataset_shuffle_buffer_clear(struct tfos__dataset_shuffle_buffer *buffer)
{
    tfos__dataset_shuffle_buffer_drop(buffer);
    tfos__free(buffer->slots);
    *buffer = (struct tfos__dataset_shuffle_buffer){0};
}
