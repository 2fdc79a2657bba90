// SPDX-License-Identifier: Apache-2.0
// A lane serves one attempt after the other. Each gets a handle of its own, so that results that
// come late, for a writer that has gone, are never counted as another's.
#include "feed/reader_lane.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "feed/batch.h"
#include "feed/evacuation.h"
#include "feed/pickled.h"

#define SCHEMAS_AT_ONCE 64  ///< schemas without a batch that one look passes over
#define COPY_RATE (4 << 20) ///< bytes that an evacuation copies in a millisecond, about
#define IDLE_MS 100         ///< before a lane without a writer is evacuated: nobody may want it
#define RETRY_MS 1000       ///< after an evacuation that failed

static enum tfos_status take_schema(struct tfos__reader_lane *lane, struct tfos_error *err)
{
    struct tfos__outlet *outlet = &lane->lane->outlet;
    enum tfos_status status = tfos__schema_decode(&lane->schema, tfos__outlet_body(outlet),
                                                  outlet->record.body_size, err);

    if (status == TFOS_OK && lane->answers.refuses_pickles)
        status = tfos__pickled_refuse(&lane->schema, err);
    if (status != TFOS_OK) {
        tfos__outlet_abandon(outlet);
        return status;
    }
    tfos__outlet_skip(outlet);
    return TFOS_OK;
}

enum tfos_status tfos__reader_lane_peek(struct tfos__reader_lane *lane, struct tfos_error *err)
{
    struct tfos__outlet *outlet = &lane->lane->outlet;

    for (int i = 0; i < SCHEMAS_AT_ONCE; i++) {
        enum tfos_status status = tfos__outlet_peek(outlet, err);
        if (status == TFOS_OK && outlet->record.kind == TFOS__RECORD_SCHEMA) {
            status = take_schema(lane, err);
            if (status == TFOS_OK)
                continue;
        } else if (status == TFOS_OK && outlet->record.kind == TFOS__RECORD_PIECE) {
            status = tfos__fail(err, TFOS_CORRUPT, "feed: a piece of a result among the batches");
            tfos__outlet_abandon(outlet);
        }
        if (status < 0)
            tfos__fail_prefix(err, "lane %d", lane->number);
        return status;
    }
    return TFOS_AGAIN;
}

// A consumer that is slow by a batch or two gives back what is in the way by itself. It gets as
// much time as the copy would take: whatever it does, the writer waits no more than twice as long
// as it must.
static int64_t patience_ms(const struct tfos__obstacle *obstacle)
{
    return 1 + (int64_t)(obstacle->size / COPY_RATE) + (obstacle->is_without_user ? IDLE_MS : 0);
}

int64_t tfos__reader_lane_relieve(struct tfos__reader_lane *lane)
{
    struct tfos__obstacle obstacle;
    bool was_obstructed = lane->is_obstructed;

    lane->is_obstructed = tfos__outlet_is_obstructed(&lane->lane->outlet, &obstacle);
    if (!lane->is_obstructed)
        return TFOS__NEVER;
    int64_t now = tfos__now_ms();
    if (!was_obstructed || lane->oldest != obstacle.oldest) {
        lane->oldest = obstacle.oldest;
        lane->relief_ms = now + patience_ms(&obstacle);
    } else if (now >= lane->relief_ms) {
        // Without memory for it the batches stay where they are, and may still be released.
        lane->is_obstructed = tfos__lane_evacuate(lane->lane, NULL) != TFOS_OK;
        lane->relief_ms = lane->is_obstructed ? now + RETRY_MS : TFOS__NEVER;
    }
    return lane->relief_ms;
}

const struct tfos__record *tfos__reader_lane_record(const struct tfos__reader_lane *lane)
{
    return &lane->lane->outlet.record;
}

static void drop_spill(struct tfos__reader_lane *lane)
{
    tfos__free(lane->spill);
    lane->spill = NULL;
    lane->spill_sent = 0;
}

static void begin_attempt(struct tfos__reader_lane *lane, const struct tfos__record *record,
                          int *next_handle)
{
    if (lane->handle >= 0 && lane->feed == record->feed && lane->partition == record->partition &&
        lane->attempt == record->attempt)
        return;
    lane->handle = (*next_handle)++;
    lane->feed = record->feed;
    lane->partition = record->partition;
    lane->attempt = record->attempt;
    lane->row = record->row;
    lane->given_count = 0;
    lane->answered_count = 0;
    lane->answers.is_sent = false;
    drop_spill(lane);
}

static enum tfos_status take_batch(struct tfos__reader_lane *lane, struct tfos_feed_item *item,
                                   struct tfos_error *err)
{
    struct tfos__outlet *outlet = &lane->lane->outlet;
    const uint8_t *body = tfos__outlet_body(outlet);
    struct tfos__record record = outlet->record;
    struct tfos__batch_owner owner;
    struct ArrowSchema schema;
    struct ArrowArray array;

    if (lane->schema.field_count == 0)
        return tfos__fail(err, TFOS_CORRUPT, "feed: a batch came before any schema");
    TFOS__TRY(tfos_arrow_schema_copy(&lane->schema.tree, &schema, err));
    enum tfos_status status = tfos__lane_hold(lane->lane, &owner, err);
    if (status != TFOS_OK)
        goto release_schema;
    status =
        tfos__batch_decode(&lane->schema, body, record.body_size, record.rows, &owner, &array, err);
    if (status != TFOS_OK)
        goto release_record;
    lane->given_count += record.rows;
    lane->turn_size += record.size;
    item->schema = schema;
    item->array = array;
    return TFOS_OK;
release_record:
    owner.release(owner.holder, owner.sequence);
release_schema:
    schema.release(&schema);
    return status;
}

enum tfos_status tfos__reader_lane_take(struct tfos__reader_lane *lane, int *next_handle,
                                        struct tfos_feed_item *item, struct tfos_error *err)
{
    struct tfos__outlet *outlet = &lane->lane->outlet;
    struct tfos__record record = outlet->record;
    struct tfos_feed_item taken = {.kind = TFOS_FEED_PARTITION_END};

    begin_attempt(lane, &record, next_handle);
    if (record.kind == TFOS__RECORD_BATCH) {
        taken.kind = TFOS_FEED_BATCH;
        enum tfos_status status = take_batch(lane, &taken, err);
        if (status == TFOS_CORRUPT) {
            tfos__outlet_abandon(outlet);
            tfos__fail_prefix(err, "lane %d", lane->number);
        }
        if (status != TFOS_OK)
            return status;
    } else {
        tfos__outlet_skip(outlet);
    }
    taken.lane = lane->handle;
    taken.has_results = lane->lane->result_size > 0;
    taken.feed = record.feed;
    taken.partition = record.partition;
    taken.first_row = record.row;
    *item = taken;
    return TFOS_OK;
}

static bool writer_has_gone(const struct tfos__reader_lane *lane)
{
    return atomic_load_explicit(&lane->lane->page->head, memory_order_acquire) & TFOS__HEAD_FENCED;
}

// Space in the result ring, or why there will be none.
static enum tfos_status reserve(struct tfos__reader_lane *lane, uint64_t size, uint8_t **space,
                                struct tfos_error *err)
{
    if (writer_has_gone(lane))
        return tfos__fail(err, TFOS_CLOSED,
                          "feed: partition %lld: the task that waited for results has gone",
                          (long long)lane->partition);
    return tfos__inlet_reserve(&lane->lane->inlet, size, space, err);
}

static struct tfos__record make_head(const struct tfos__reader_lane *lane, int64_t rows)
{
    return (struct tfos__record){.feed = lane->feed,
                                 .partition = lane->partition,
                                 .attempt = lane->attempt,
                                 .row = lane->row + lane->answered_count,
                                 .rows = rows};
}

enum tfos_status tfos__reader_lane_begin_answer(struct tfos__reader_lane *lane,
                                                const struct ArrowSchema *schema,
                                                const struct ArrowArray *array,
                                                struct tfos_error *err)
{
    drop_spill(lane);
    return tfos__sender_begin(&lane->answers, schema, array, err);
}

static enum tfos_status send_schema(struct tfos__reader_lane *lane, struct tfos_error *err)
{
    struct tfos__record head = make_head(lane, 0);
    uint64_t size = tfos__sender_schema_size(&lane->answers);
    uint8_t *space = NULL;

    if (size > lane->lane->result_size)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: partition %lld: the results' columns need %llu bytes to be "
                          "described, the ring for results has %llu: feed with a larger lane_size",
                          (long long)lane->partition, (unsigned long long)size,
                          (unsigned long long)lane->lane->result_size);
    enum tfos_status status = reserve(lane, size, &space, err);
    if (status != TFOS_OK)
        return status;
    tfos__sender_put_schema(&lane->answers, &head, space);
    TFOS__TRY(tfos__inlet_commit(&lane->lane->inlet, size, 0, err));
    lane->answers.is_sent = true;
    return TFOS_OK;
}

// Bytes of the next piece; 0 after the last.
static uint64_t piece_size(const struct tfos__reader_lane *lane)
{
    uint64_t left = lane->answers.plan.body_size - lane->spill_sent;
    uint64_t most = lane->lane->result_size / 4 - sizeof(struct tfos__record);

    return left < most ? left : most;
}

static enum tfos_status send_pieces(struct tfos__reader_lane *lane, struct tfos_error *err)
{
    struct tfos__record head = make_head(lane, lane->spill_rows);

    for (;;) {
        uint64_t data_size = piece_size(lane);
        uint64_t size = tfos__record_size(data_size);
        uint8_t *space = NULL;
        enum tfos_status status = reserve(lane, size, &space, err);
        if (status != TFOS_OK)
            return status;
        if (data_size == 0)
            tfos__sender_put_end_of_pieces(&head, space);
        else
            tfos__sender_put_piece(&head, lane->spill_sent, lane->spill + lane->spill_sent,
                                   data_size, space);
        TFOS__TRY(tfos__inlet_commit(&lane->lane->inlet, size, 0, err));
        lane->spill_sent += data_size;
        if (data_size == 0)
            return TFOS_OK;
    }
}

// Makes the body of a batch that the ring cannot hold, for it to go out in pieces.
static enum tfos_status spill(struct tfos__reader_lane *lane, int64_t rows, struct tfos_error *err)
{
    lane->spill = tfos__alloc(lane->answers.plan.body_size, 1);
    if (!lane->spill)
        return tfos__no_memory(err, "feed", "a large result");
    tfos__batch_write(&lane->answers.plan, &lane->answers.schema, lane->spill);
    lane->spill_rows = rows;
    return TFOS_OK;
}

static enum tfos_status send_batch(struct tfos__reader_lane *lane, int64_t rows,
                                   struct tfos_error *err)
{
    struct tfos__record head = make_head(lane, rows);
    uint64_t size = tfos__sender_batch_size(&lane->answers);
    uint8_t *space = NULL;
    enum tfos_status status = reserve(lane, size, &space, err);

    if (status != TFOS_OK)
        return status;
    tfos__sender_put_batch(&lane->answers, &head, space);
    return tfos__inlet_commit(&lane->lane->inlet, size, 0, err);
}

enum tfos_status tfos__reader_lane_answer(struct tfos__reader_lane *lane,
                                          const struct ArrowArray *array, int64_t row,
                                          int64_t *rows, struct tfos_error *err)
{
    enum tfos_status status = lane->answers.is_sent ? TFOS_OK : send_schema(lane, err);
    int64_t count = lane->spill_rows;

    if (status != TFOS_OK)
        return status;
    if (!lane->spill) {
        TFOS__TRY(tfos__batch_fit(&lane->answers.plan, &lane->answers.schema, array, row,
                                  lane->lane->result_size, &count, err));
        if (tfos__sender_batch_size(&lane->answers) > lane->lane->result_size)
            TFOS__TRY(spill(lane, count, err));
    }
    status = lane->spill ? send_pieces(lane, err) : send_batch(lane, count, err);
    if (status != TFOS_OK)
        return status;
    drop_spill(lane);
    lane->answered_count += count;
    *rows = count;
    return TFOS_OK;
}

bool tfos__reader_lane_can_answer(struct tfos__reader_lane *lane)
{
    uint64_t size = tfos__sender_schema_size(&lane->answers);

    if (lane->spill)
        size = tfos__record_size(piece_size(lane));
    else if (lane->answers.is_sent)
        size = tfos__sender_batch_size(&lane->answers);
    return writer_has_gone(lane) || tfos__inlet_has_space(&lane->lane->inlet, size);
}

void tfos__reader_lane_free(struct tfos__reader_lane *lane)
{
    tfos__schema_clear(&lane->schema);
    drop_spill(lane);
    tfos__sender_clear(&lane->answers);
    tfos__lane_release(lane->lane);
    tfos__free(lane);
}
