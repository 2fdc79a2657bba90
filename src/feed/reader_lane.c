// SPDX-License-Identifier: Apache-2.0
// A lane serves one attempt after the other. Each gets a handle of its own, so that results that
// come late, for a writer that has gone, are never counted as another's.
#include "feed/reader_lane.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "feed/batch.h"
#include "feed/evacuation.h"

#define SCHEMAS_AT_ONCE 64  ///< schemas without a batch that one look passes over
#define COPY_RATE (4 << 20) ///< bytes that an evacuation copies in a millisecond, about
#define IDLE_MS 100         ///< before a lane without a writer is evacuated: nobody may want it
#define RETRY_MS 1000       ///< after an evacuation that failed

static enum tfos_status take_schema(struct tfos__reader_lane *lane, struct tfos_error *err)
{
    struct tfos__outlet *outlet = &lane->lane->outlet;
    struct tfos__schema *schema = NULL;
    enum tfos_status status =
        tfos__schema_decode(tfos__outlet_body(outlet), outlet->record.body_size, &schema, err);

    if (status != TFOS_OK) {
        tfos__outlet_abandon(outlet);
        return status;
    }
    tfos__schema_release(lane->schema);
    lane->schema = schema;
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

    if (!lane->schema)
        return tfos__fail(err, TFOS_CORRUPT, "feed: a batch came before any schema");
    TFOS__TRY(tfos__schema_export(lane->schema, &schema, err));
    enum tfos_status status = tfos__lane_hold(lane->lane, &owner, err);
    if (status != TFOS_OK)
        goto release_schema;
    status =
        tfos__batch_decode(lane->schema, body, record.body_size, record.rows, &owner, &array, err);
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
    if (size > lane->lane->result_size)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: partition %lld: one result needs %llu bytes, the ring for results "
                          "has %llu: feed "
                          "with a larger lane_size",
                          (long long)lane->partition, (unsigned long long)size,
                          (unsigned long long)lane->lane->result_size);
    return tfos__inlet_reserve(&lane->lane->inlet, size, space, err);
}

enum tfos_status tfos__reader_lane_answer(struct tfos__reader_lane *lane,
                                          const struct ArrowArray *array, int64_t row,
                                          int64_t *rows, struct tfos_error *err)
{
    struct tfos__sender *answers = &lane->answers;
    struct tfos__inlet *inlet = &lane->lane->inlet;
    struct tfos__record head = {.feed = lane->feed,
                                .partition = lane->partition,
                                .attempt = lane->attempt,
                                .row = lane->row + lane->answered_count};
    uint8_t *space = NULL;

    if (!answers->is_sent) {
        uint64_t size = tfos__sender_schema_size(answers);
        enum tfos_status status = reserve(lane, size, &space, err);
        if (status != TFOS_OK)
            return status;
        tfos__sender_put_schema(answers, &head, space);
        TFOS__TRY(tfos__inlet_commit(inlet, size, 0, err));
        answers->is_sent = true;
    }
    TFOS__TRY(tfos__batch_fit(&answers->plan, answers->schema, array, row, lane->lane->result_size,
                              &head.rows, err));
    uint64_t size = tfos__sender_batch_size(answers);
    enum tfos_status status = reserve(lane, size, &space, err);
    if (status != TFOS_OK)
        return status;
    tfos__sender_put_batch(answers, &head, space);
    TFOS__TRY(tfos__inlet_commit(inlet, size, 0, err));
    lane->answered_count += head.rows;
    *rows = head.rows;
    return TFOS_OK;
}

bool tfos__reader_lane_can_answer(struct tfos__reader_lane *lane)
{
    uint64_t size = lane->answers.is_sent ? tfos__sender_batch_size(&lane->answers)
                                          : tfos__sender_schema_size(&lane->answers);

    return writer_has_gone(lane) || tfos__inlet_has_space(&lane->lane->inlet, size);
}

void tfos__reader_lane_free(struct tfos__reader_lane *lane)
{
    tfos__schema_release(lane->schema);
    tfos__sender_clear(&lane->answers);
    tfos__lane_release(lane->lane);
    tfos__free(lane);
}
