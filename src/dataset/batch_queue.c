// SPDX-License-Identifier: Apache-2.0
// Nothing behind an epoch's end is read before the dataset begins the next epoch.
#include "dataset/batch_queue.h"

#include <string.h>

#include "base/clock.h"
#include "base/fail.h"

#define INTERRUPT_INTERVAL_MS 50
#define FIRST_ROWS_WAIT_MS 5000
#define ROWS_WAIT_MS 200

static enum tfos_status append(struct tfos__dataset_batch_queue *queue,
                               struct tfos__dataset_shared_batch *batch, struct tfos_error *err)
{
    TFOS__TRY(tfos__buffer_append(&queue->batches, &batch, sizeof(batch), err));
    queue->row_count += batch->array.length;
    queue->size += batch->size;
    return TFOS_OK;
}

static enum tfos_status append_item(struct tfos__dataset_batch_queue *queue,
                                    struct tfos_feed_item *item, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = queue->options;
    struct tfos__dataset_shared_batch *batch = NULL;
    int64_t number = queue->batch_count++;

    TFOS__TRY(tfos__dataset_shared_batch_open(item, &batch, err));
    batch->number = number;
    batch->is_in_ring = options->reader != NULL;
    if (options->name_partition)
        batch->partition_name =
            options->name_partition(options->context, batch->partition, &batch->row_step);
    enum tfos_status status = TFOS_OK;
    if (item->has_results)
        status = tfos__fail(err, TFOS_INVALID,
                            "dataset: partition %lld is fed for inference, and a dataset cannot "
                            "answer: take its rows by DataFeed",
                            (long long)batch->partition);
    else if (batch->array.length > 0)
        status = append(queue, batch, err);
    if (status != TFOS_OK || batch->array.length == 0)
        tfos__dataset_shared_batch_release(batch);
    return status;
}

enum tfos_status tfos__dataset_batch_queue_read(struct tfos__dataset_batch_queue *queue,
                                                int64_t timeout_ms, struct tfos_error *err)
{
    struct tfos_feed_item item;

    if (queue->is_ended)
        return TFOS_END;
    const struct tfos_dataset_options *options = queue->options;
    enum tfos_status status = options->reader
                                  ? tfos_feed_reader_next(options->reader, timeout_ms, &item, err)
                                  : options->next(options->context, timeout_ms, &item, err);
    if (status == TFOS_END)
        queue->is_over = queue->is_ended = true;
    if (status != TFOS_OK)
        return status;
    if (item.kind == TFOS_FEED_BATCH)
        return append_item(queue, &item, err);
    queue->is_ended = item.kind == TFOS_FEED_EPOCH_END;
    return queue->is_ended ? TFOS_END : TFOS_OK;
}

enum tfos_status tfos__dataset_batch_queue_await(struct tfos__dataset_batch_queue *queue,
                                                 int64_t deadline, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = queue->options;

    for (;;) {
        int64_t slice =
            options->is_interrupted ? tfos__deadline(INTERRUPT_INTERVAL_MS) : TFOS__NEVER;
        bool is_last = deadline <= slice;
        enum tfos_status status = tfos__dataset_batch_queue_read(
            queue, tfos__remaining_ms(is_last ? deadline : slice), err);
        if (status != TFOS_AGAIN)
            return status;
        if (options->is_interrupted && options->is_interrupted(options->context))
            return tfos__fail(err, TFOS_CLOSED, "dataset: the wait for rows was interrupted");
        if (is_last)
            return TFOS_AGAIN;
    }
}

int64_t tfos__dataset_batch_queue_deadline(const struct tfos__dataset_batch_queue *queue)
{
    const struct tfos_dataset_options *options = queue->options;

    if (queue->has_begun || queue->is_idle)
        return tfos__deadline(options->rows_wait_ms ? options->rows_wait_ms : ROWS_WAIT_MS);
    return tfos__deadline(options->first_rows_wait_ms ? options->first_rows_wait_ms
                                                      : FIRST_ROWS_WAIT_MS);
}

struct tfos__dataset_shared_batch *
tfos__dataset_batch_queue_first(const struct tfos__dataset_batch_queue *queue)
{
    struct tfos__dataset_shared_batch *batch = NULL;

    if (tfos__buffer_size(&queue->batches) > 0)
        memcpy(&batch, queue->batches.data + queue->batches.begin, sizeof(batch));
    return batch;
}

static void drop_first(struct tfos__dataset_batch_queue *queue)
{
    struct tfos__dataset_shared_batch *batch = tfos__dataset_batch_queue_first(queue);

    queue->size -= batch->size;
    queue->position = 0;
    tfos__buffer_consume(&queue->batches, sizeof(batch));
    tfos__dataset_shared_batch_release(batch);
}

enum tfos_status tfos__dataset_batch_queue_take(struct tfos__dataset_batch_queue *queue,
                                                int64_t count,
                                                struct tfos__dataset_row_slices *slices,
                                                struct tfos_error *err)
{
    while (count > 0 && queue->row_count > 0) {
        struct tfos__dataset_shared_batch *batch = tfos__dataset_batch_queue_first(queue);
        int64_t left = batch->array.length - queue->position;
        int64_t taken = left < count ? left : count;
        TFOS__TRY(tfos__dataset_row_slices_add(slices, batch, queue->position, taken, err));
        if (batch->is_in_ring)
            tfos_feed_batch_use(&batch->array, taken);
        queue->position += taken;
        queue->row_count -= taken;
        count -= taken;
        if (taken == left)
            drop_first(queue);
    }
    return TFOS_OK;
}

void tfos__dataset_batch_queue_drop(struct tfos__dataset_batch_queue *queue)
{
    while (tfos__buffer_size(&queue->batches) > 0)
        drop_first(queue);
    queue->row_count = 0;
}

void tfos__dataset_batch_queue_restart(struct tfos__dataset_batch_queue *queue)
{
    tfos__dataset_batch_queue_drop(queue);
    queue->batch_count = 0;
    queue->is_ended = queue->is_over = false;
}

void tfos__dataset_batch_queue_begin_epoch(struct tfos__dataset_batch_queue *queue)
{
    queue->is_ended = queue->is_over;
}

void tfos__dataset_batch_queue_clear(struct tfos__dataset_batch_queue *queue)
{
    tfos__dataset_batch_queue_drop(queue);
    tfos__buffer_clear(&queue->batches);
}
