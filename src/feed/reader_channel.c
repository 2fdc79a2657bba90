// SPDX-License-Identifier: Apache-2.0
// A channel serves one attempt after the other. Each gets a handle of its own, so that results that
// come late, for a writer that has gone, are never counted as another's.
#include "feed/reader_channel.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "feed/batch_decoder.h"

#define SCHEMAS_AT_ONCE 64  ///< schemas without a batch that one call skips
#define COPY_RATE (4 << 20) ///< bytes that detaching copies in a millisecond, about
#define IDLE_MS 100         ///< before a channel without a writer is detached: it may not be needed
#define RETRY_MS 1000       ///< after detaching failed

static enum tfos_status take_schema(struct tfos__feed_reader_channel *channel,
                                    struct tfos_error *err)
{
    struct tfos__feed_consumer *consumer = &channel->shared->consumer;
    enum tfos_status status = tfos__feed_schema_decode(
        &channel->schema, tfos__feed_consumer_body(consumer), consumer->record.body_size, err);

    if (status == TFOS_OK && channel->answers.refuses_pickles)
        status = tfos__feed_schema_refuse_pickles(&channel->schema, err);
    if (status != TFOS_OK) {
        tfos__feed_consumer_abandon(consumer);
        return status;
    }
    tfos__feed_consumer_skip(consumer);
    return TFOS_OK;
}

enum tfos_status tfos__feed_reader_channel_peek(struct tfos__feed_reader_channel *channel,
                                                struct tfos_error *err)
{
    struct tfos__feed_consumer *consumer = &channel->shared->consumer;

    for (int i = 0; i < SCHEMAS_AT_ONCE; i++) {
        enum tfos_status status = tfos__feed_consumer_peek(consumer, err);
        if (status == TFOS_OK && consumer->record.kind == TFOS__FEED_RECORD_SCHEMA) {
            status = take_schema(channel, err);
            if (status == TFOS_OK)
                continue;
        } else if (status == TFOS_OK && consumer->record.kind == TFOS__FEED_RECORD_PIECE) {
            status = tfos__fail(err, TFOS_CORRUPT, "feed: a piece of a result among the batches");
            tfos__feed_consumer_abandon(consumer);
        }
        if (status < 0)
            tfos__fail_prefix(err, "channel %d", channel->number);
        return status;
    }
    return TFOS_AGAIN;
}

// A user who is slow by a batch or two releases the space soon. He gets as much time as the copy
// would take, so that the writer waits at most twice as long as it must.
static int64_t detach_delay_ms(const struct tfos__feed_blockage *blockage)
{
    return 1 + (int64_t)(blockage->size / COPY_RATE) + (blockage->has_writer_exited ? IDLE_MS : 0);
}

int64_t tfos__feed_reader_channel_unblock(struct tfos__feed_reader_channel *channel)
{
    struct tfos__feed_blockage blockage;
    bool was_blocking = channel->is_blocking;

    channel->is_blocking = tfos__feed_consumer_is_blocking(&channel->shared->consumer, &blockage);
    if (!channel->is_blocking)
        return TFOS__NEVER;
    int64_t now = tfos__now_ms();
    if (!was_blocking || channel->oldest != blockage.oldest) {
        channel->oldest = blockage.oldest;
        channel->unblock_ms = now + detach_delay_ms(&blockage);
    } else if (now >= channel->unblock_ms) {
        // Without memory for it the batches stay where they are, and may still be released.
        channel->is_blocking = tfos__feed_channel_detach_batches(channel->shared, NULL) != TFOS_OK;
        channel->unblock_ms = channel->is_blocking ? now + RETRY_MS : TFOS__NEVER;
    }
    return channel->unblock_ms;
}

static void begin_attempt(struct tfos__feed_reader_channel *channel,
                          const struct tfos__feed_record *record, int *next_handle)
{
    if (channel->handle >= 0 &&
        tfos__feed_record_is_of(record, channel->feed, channel->partition, channel->attempt))
        return;
    channel->handle = (*next_handle)++;
    channel->feed = record->feed;
    channel->partition = record->partition;
    channel->attempt = record->attempt;
    channel->row = record->row;
    channel->given_count = 0;
    channel->answered_count = 0;
    channel->answers.is_schema_sent = false;
    tfos__feed_batch_encoder_reset(&channel->answers);
}

static enum tfos_status take_batch(struct tfos__feed_reader_channel *channel,
                                   struct tfos_feed_item *item, struct tfos_error *err)
{
    struct tfos__feed_consumer *consumer = &channel->shared->consumer;
    const uint8_t *body = tfos__feed_consumer_body(consumer);
    struct tfos__feed_record record = consumer->record;
    struct tfos__feed_batch_owner owner;

    if (channel->schema.field_count == 0)
        return tfos__fail(err, TFOS_CORRUPT, "feed: a batch came before any schema");
    TFOS__TRY(tfos__feed_channel_hold(channel->shared, &owner, err));
    TFOS__TRY(tfos__feed_batch_decode(&channel->schema, body, record.body_size, record.rows, &owner,
                                      &item->schema, &item->array, err));
    channel->given_count += record.rows;
    channel->burst_size += record.size;
    return TFOS_OK;
}

enum tfos_status tfos__feed_reader_channel_take(struct tfos__feed_reader_channel *channel,
                                                int *next_handle, struct tfos_feed_item *item,
                                                struct tfos_error *err)
{
    struct tfos__feed_consumer *consumer = &channel->shared->consumer;
    struct tfos__feed_record record = consumer->record;
    struct tfos_feed_item taken = {.kind = TFOS_FEED_PARTITION_END};

    begin_attempt(channel, &record, next_handle);
    if (record.kind == TFOS__FEED_RECORD_BATCH) {
        taken.kind = TFOS_FEED_BATCH;
        enum tfos_status status = take_batch(channel, &taken, err);
        if (status == TFOS_CORRUPT) {
            tfos__feed_consumer_abandon(consumer);
            tfos__fail_prefix(err, "channel %d", channel->number);
        }
        if (status != TFOS_OK)
            return status;
    } else {
        tfos__feed_consumer_skip(consumer);
    }
    taken.channel = channel->handle;
    taken.has_results = channel->shared->result_size > 0;
    taken.feed = record.feed;
    taken.partition = record.partition;
    taken.first_row = record.row;
    *item = taken;
    return TFOS_OK;
}

static bool writer_has_gone(const struct tfos__feed_reader_channel *channel)
{
    return atomic_load_explicit(&channel->shared->page->head, memory_order_acquire) &
           TFOS__FEED_HEAD_FENCED;
}

enum tfos_status tfos__feed_reader_channel_begin_answer(struct tfos__feed_reader_channel *channel,
                                                        const struct ArrowSchema *schema,
                                                        const struct ArrowArray *array,
                                                        struct tfos_error *err)
{
    tfos__feed_batch_encoder_reset(&channel->answers);
    channel->answers.makes_pieces = true;
    return tfos__feed_batch_encoder_begin(&channel->answers, schema, array, err);
}

// Plans the next record, and finds space for it.
static enum tfos_status reserve(struct tfos__feed_reader_channel *channel,
                                const struct ArrowArray *array, uint8_t **space,
                                struct tfos_error *err)
{
    struct tfos__feed_batch_encoder *answers = &channel->answers;
    uint64_t ring_size = channel->shared->result_size;
    enum tfos_status status = tfos__feed_batch_encoder_plan(answers, array, ring_size, err);

    if (status != TFOS_OK)
        return status;
    if (answers->next_size > ring_size)
        return tfos__fail(
            err, TFOS_INVALID,
            "feed: partition %lld: the results' columns need %llu bytes to be "
            "described, the ring for results has %llu: feed with a larger channel_size",
            (long long)channel->partition, (unsigned long long)answers->next_size,
            (unsigned long long)ring_size);
    if (writer_has_gone(channel))
        return tfos__fail(err, TFOS_CLOSED,
                          "feed: partition %lld: the task that waited for results has gone",
                          (long long)channel->partition);
    return tfos__feed_producer_reserve(&channel->shared->producer, answers->next_size, space, err);
}

enum tfos_status tfos__feed_reader_channel_answer(struct tfos__feed_reader_channel *channel,
                                                  const struct ArrowArray *array,
                                                  struct tfos_error *err)
{
    for (;;) {
        uint8_t *space = NULL;
        enum tfos_status status = reserve(channel, array, &space, err);
        if (status != TFOS_OK)
            return status == TFOS_END ? TFOS_OK : status;
        struct tfos__feed_record head = {.feed = channel->feed,
                                         .partition = channel->partition,
                                         .attempt = channel->attempt,
                                         .row = channel->row + channel->answered_count};
        tfos__feed_batch_encoder_write(&channel->answers, &head, space);
        TFOS__TRY(tfos__feed_producer_commit(&channel->shared->producer, channel->answers.next_size,
                                             0, err));
        channel->answered_count += tfos__feed_batch_encoder_advance(&channel->answers);
    }
}

bool tfos__feed_reader_channel_can_answer(struct tfos__feed_reader_channel *channel)
{
    return writer_has_gone(channel) ||
           tfos__feed_producer_has_space(&channel->shared->producer, channel->answers.next_size);
}

void tfos__feed_reader_channel_free(struct tfos__feed_reader_channel *channel)
{
    tfos__feed_schema_clear(&channel->schema);
    tfos__feed_batch_encoder_clear(&channel->answers);
    tfos__feed_channel_release(channel->shared);
    tfos__free(channel);
}
