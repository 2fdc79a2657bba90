// SPDX-License-Identifier: Apache-2.0
// A channel serves one attempt after the other. Each gets a handle of its own, so that results that
// come late, for a writer that has gone, are never counted as another's.
#include "feed/reader_channel.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "feed/batch.h"
#include "feed/evacuation.h"
#include "feed/pickled.h"

#define SCHEMAS_AT_ONCE 64  ///< schemas without a batch that one look passes over
#define COPY_RATE (4 << 20) ///< bytes that an detachment copies in a millisecond, about
#define IDLE_MS 100         ///< before a channel without a writer is detached: nobody may want it
#define RETRY_MS 1000       ///< after an detachment that failed

static enum tfos_status take_schema(struct tfos__feed_reader_channel *channel,
                                    struct tfos_error *err)
{
    struct tfos__feed_consumer *consumer = &channel->channel->consumer;
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
    struct tfos__feed_consumer *consumer = &channel->channel->consumer;

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
            tfos__fail_prefix(err, "lane %d", channel->number);
        return status;
    }
    return TFOS_AGAIN;
}

// A consumer that is slow by a batch or two gives back what is in the way by itself. It gets as
// much time as the copy would take: whatever it does, the writer waits no more than twice as long
// as it must.
static int64_t patience_ms(const struct tfos__feed_blockage *blockage)
{
    return 1 + (int64_t)(blockage->size / COPY_RATE) + (blockage->has_writer_exited ? IDLE_MS : 0);
}

int64_t tfos__feed_reader_channel_unblock(struct tfos__feed_reader_channel *channel)
{
    struct tfos__feed_blockage blockage;
    bool was_blocking = channel->is_blocking;

    channel->is_blocking = tfos__feed_consumer_is_blocking(&channel->channel->consumer, &blockage);
    if (!channel->is_blocking)
        return TFOS__NEVER;
    int64_t now = tfos__now_ms();
    if (!was_blocking || channel->oldest != blockage.oldest) {
        channel->oldest = blockage.oldest;
        channel->unblock_ms = now + patience_ms(&blockage);
    } else if (now >= channel->unblock_ms) {
        // Without memory for it the batches stay where they are, and may still be released.
        channel->is_blocking = tfos__feed_channel_detach_batches(channel->channel, NULL) != TFOS_OK;
        channel->unblock_ms = channel->is_blocking ? now + RETRY_MS : TFOS__NEVER;
    }
    return channel->unblock_ms;
}

const struct tfos__feed_record *
tfos__feed_reader_channel_record(const struct tfos__feed_reader_channel *channel)
{
    return &channel->channel->consumer.record;
}

static void drop_spill(struct tfos__feed_reader_channel *channel)
{
    tfos__free(channel->spill);
    channel->spill = NULL;
    channel->spill_sent = 0;
}

static void begin_attempt(struct tfos__feed_reader_channel *channel,
                          const struct tfos__feed_record *record, int *next_handle)
{
    if (channel->handle >= 0 && channel->feed == record->feed &&
        channel->partition == record->partition && channel->attempt == record->attempt)
        return;
    channel->handle = (*next_handle)++;
    channel->feed = record->feed;
    channel->partition = record->partition;
    channel->attempt = record->attempt;
    channel->row = record->row;
    channel->given_count = 0;
    channel->answered_count = 0;
    channel->answers.is_sent = false;
    drop_spill(channel);
}

static enum tfos_status take_batch(struct tfos__feed_reader_channel *channel,
                                   struct tfos_feed_item *item, struct tfos_error *err)
{
    struct tfos__feed_consumer *consumer = &channel->channel->consumer;
    const uint8_t *body = tfos__feed_consumer_body(consumer);
    struct tfos__feed_record record = consumer->record;
    struct tfos__feed_batch_owner owner;
    struct ArrowSchema schema;
    struct ArrowArray array;

    if (channel->schema.field_count == 0)
        return tfos__fail(err, TFOS_CORRUPT, "feed: a batch came before any schema");
    TFOS__TRY(tfos_arrow_schema_copy(&channel->schema.tree, &schema, err));
    enum tfos_status status = tfos__feed_channel_hold(channel->channel, &owner, err);
    if (status != TFOS_OK)
        goto release_schema;
    status = tfos__feed_batch_decode(&channel->schema, body, record.body_size, record.rows, &owner,
                                     &array, err);
    if (status != TFOS_OK)
        goto release_record;
    channel->given_count += record.rows;
    channel->turn_size += record.size;
    item->schema = schema;
    item->array = array;
    return TFOS_OK;
release_record:
    owner.release(owner.holder, owner.sequence);
release_schema:
    schema.release(&schema);
    return status;
}

enum tfos_status tfos__feed_reader_channel_take(struct tfos__feed_reader_channel *channel,
                                                int *next_handle, struct tfos_feed_item *item,
                                                struct tfos_error *err)
{
    struct tfos__feed_consumer *consumer = &channel->channel->consumer;
    struct tfos__feed_record record = consumer->record;
    struct tfos_feed_item taken = {.kind = TFOS_FEED_PARTITION_END};

    begin_attempt(channel, &record, next_handle);
    if (record.kind == TFOS__FEED_RECORD_BATCH) {
        taken.kind = TFOS_FEED_BATCH;
        enum tfos_status status = take_batch(channel, &taken, err);
        if (status == TFOS_CORRUPT) {
            tfos__feed_consumer_abandon(consumer);
            tfos__fail_prefix(err, "lane %d", channel->number);
        }
        if (status != TFOS_OK)
            return status;
    } else {
        tfos__feed_consumer_skip(consumer);
    }
    taken.lane = channel->handle;
    taken.has_results = channel->channel->result_size > 0;
    taken.feed = record.feed;
    taken.partition = record.partition;
    taken.first_row = record.row;
    *item = taken;
    return TFOS_OK;
}

static bool writer_has_gone(const struct tfos__feed_reader_channel *channel)
{
    return atomic_load_explicit(&channel->channel->page->head, memory_order_acquire) &
           TFOS__FEED_HEAD_FENCED;
}

// Space in the result ring, or why there will be none.
static enum tfos_status reserve(struct tfos__feed_reader_channel *channel, uint64_t size,
                                uint8_t **space, struct tfos_error *err)
{
    if (writer_has_gone(channel))
        return tfos__fail(err, TFOS_CLOSED,
                          "feed: partition %lld: the task that waited for results has gone",
                          (long long)channel->partition);
    return tfos__feed_producer_reserve(&channel->channel->producer, size, space, err);
}

static struct tfos__feed_record make_head(const struct tfos__feed_reader_channel *channel,
                                          int64_t rows)
{
    return (struct tfos__feed_record){.feed = channel->feed,
                                      .partition = channel->partition,
                                      .attempt = channel->attempt,
                                      .row = channel->row + channel->answered_count,
                                      .rows = rows};
}

enum tfos_status tfos__feed_reader_channel_begin_answer(struct tfos__feed_reader_channel *channel,
                                                        const struct ArrowSchema *schema,
                                                        const struct ArrowArray *array,
                                                        struct tfos_error *err)
{
    drop_spill(channel);
    return tfos__feed_batch_encoder_begin(&channel->answers, schema, array, err);
}

static enum tfos_status send_schema(struct tfos__feed_reader_channel *channel,
                                    struct tfos_error *err)
{
    struct tfos__feed_record head = make_head(channel, 0);
    uint64_t size = tfos__feed_batch_encoder_schema_size(&channel->answers);
    uint8_t *space = NULL;

    if (size > channel->channel->result_size)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: partition %lld: the results' columns need %llu bytes to be "
                          "described, the ring for results has %llu: feed with a larger lane_size",
                          (long long)channel->partition, (unsigned long long)size,
                          (unsigned long long)channel->channel->result_size);
    enum tfos_status status = reserve(channel, size, &space, err);
    if (status != TFOS_OK)
        return status;
    tfos__feed_batch_encoder_put_schema(&channel->answers, &head, space);
    TFOS__TRY(tfos__feed_producer_commit(&channel->channel->producer, size, 0, err));
    channel->answers.is_sent = true;
    return TFOS_OK;
}

// Bytes of the next piece; 0 after the last.
static uint64_t piece_size(const struct tfos__feed_reader_channel *channel)
{
    uint64_t left = channel->answers.plan.body_size - channel->spill_sent;
    uint64_t most = channel->channel->result_size / 4 - sizeof(struct tfos__feed_record);

    return left < most ? left : most;
}

static enum tfos_status send_pieces(struct tfos__feed_reader_channel *channel,
                                    struct tfos_error *err)
{
    struct tfos__feed_record head = make_head(channel, channel->spill_rows);

    for (;;) {
        uint64_t data_size = piece_size(channel);
        uint64_t size = tfos__feed_record_size(data_size);
        uint8_t *space = NULL;
        enum tfos_status status = reserve(channel, size, &space, err);
        if (status != TFOS_OK)
            return status;
        if (data_size == 0)
            tfos__feed_batch_encoder_put_end_of_pieces(&head, space);
        else
            tfos__feed_batch_encoder_put_piece(
                &head, channel->spill_sent, channel->spill + channel->spill_sent, data_size, space);
        TFOS__TRY(tfos__feed_producer_commit(&channel->channel->producer, size, 0, err));
        channel->spill_sent += data_size;
        if (data_size == 0)
            return TFOS_OK;
    }
}

// Makes the body of a batch that the ring cannot hold, for it to go out in pieces.
static enum tfos_status spill(struct tfos__feed_reader_channel *channel, int64_t rows,
                              struct tfos_error *err)
{
    channel->spill = tfos__alloc(channel->answers.plan.body_size, 1);
    if (!channel->spill)
        return tfos__no_memory(err, "feed", "a large result");
    tfos__feed_batch_write(&channel->answers.plan, &channel->answers.schema, channel->spill);
    channel->spill_rows = rows;
    return TFOS_OK;
}

static enum tfos_status send_batch(struct tfos__feed_reader_channel *channel, int64_t rows,
                                   struct tfos_error *err)
{
    struct tfos__feed_record head = make_head(channel, rows);
    uint64_t size = tfos__feed_batch_encoder_batch_size(&channel->answers);
    uint8_t *space = NULL;
    enum tfos_status status = reserve(channel, size, &space, err);

    if (status != TFOS_OK)
        return status;
    tfos__feed_batch_encoder_put_batch(&channel->answers, &head, space);
    return tfos__feed_producer_commit(&channel->channel->producer, size, 0, err);
}

enum tfos_status tfos__feed_reader_channel_answer(struct tfos__feed_reader_channel *channel,
                                                  const struct ArrowArray *array, int64_t row,
                                                  int64_t *rows, struct tfos_error *err)
{
    enum tfos_status status = channel->answers.is_sent ? TFOS_OK : send_schema(channel, err);
    int64_t count = channel->spill_rows;

    if (status != TFOS_OK)
        return status;
    if (!channel->spill) {
        TFOS__TRY(tfos__feed_batch_fit(&channel->answers.plan, &channel->answers.schema, array, row,
                                       channel->channel->result_size, &count, err));
        if (tfos__feed_batch_encoder_batch_size(&channel->answers) > channel->channel->result_size)
            TFOS__TRY(spill(channel, count, err));
    }
    status = channel->spill ? send_pieces(channel, err) : send_batch(channel, count, err);
    if (status != TFOS_OK)
        return status;
    drop_spill(channel);
    channel->answered_count += count;
    *rows = count;
    return TFOS_OK;
}

bool tfos__feed_reader_channel_can_answer(struct tfos__feed_reader_channel *channel)
{
    uint64_t size = tfos__feed_batch_encoder_schema_size(&channel->answers);

    if (channel->spill)
        size = tfos__feed_record_size(piece_size(channel));
    else if (channel->answers.is_sent)
        size = tfos__feed_batch_encoder_batch_size(&channel->answers);
    return writer_has_gone(channel) ||
           tfos__feed_producer_has_space(&channel->channel->producer, size);
}

void tfos__feed_reader_channel_free(struct tfos__feed_reader_channel *channel)
{
    tfos__feed_schema_clear(&channel->schema);
    drop_spill(channel);
    tfos__feed_batch_encoder_clear(&channel->answers);
    tfos__feed_channel_release(channel->channel);
    tfos__free(channel);
}
