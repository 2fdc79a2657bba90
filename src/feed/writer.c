// SPDX-License-Identifier: Apache-2.0
// A writer cuts batches to the ring and waits for space: never longer than its timeout without the
// reader taking something, and never without hearing what the node says. Rows are counted as they
// are committed, so that after any failure the count is what the reader has or will have.
#include "feed/writer.h"

#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#define EXPLANATION_WAIT_MS 3000
#define BATCH_ROWS_LIMIT INT32_MAX

// The deadline of a wait, which starts anew whenever the reader takes something.
struct progress_timeout {
    uint64_t progress;
    int64_t deadline;
};

static void begin_timeout(const struct tfos__feed_writer *writer, struct progress_timeout *timeout)
{
    timeout->progress = writer->transport->progress(writer).sum;
    timeout->deadline = tfos__deadline(writer->timeout_ms);
}

// Asks the node what the trainer is doing, and gives up with the answer.
static enum tfos_status give_up(struct tfos__feed_writer *writer, const char *wanted,
                                struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(EXPLANATION_WAIT_MS);
    enum tfos_status asked = TFOS_OK;
    struct tfos_error ignored;

    if (!writer->explanation &&
        writer->transport->send(writer, json_pack("{ss}", "type", "stalled"), &ignored) == TFOS_OK)
        while (!writer->explanation && tfos__now_ms() < deadline &&
               (asked = tfos__feed_writer_check_interrupt(writer, err)) == TFOS_OK &&
               writer->transport->check(writer, &ignored) == TFOS_OK)
            writer->transport->wait(writer, 0);
    TFOS__TRY(asked);
    if (writer->final_status != TFOS_OK)
        return tfos__feed_writer_final_status(writer, err);
    return tfos__fail(err, TFOS_TIMEOUT,
                      "feed: partition %lld at %s: the trainer has taken nothing from queue "
                      "\"%s\" for %lld s (%lld rows appended, %lld taken, %lld results), while "
                      "waiting for %s. Raise feed_timeout if it needs so long for a step.%s%s",
                      (long long)writer->partition, writer->place, writer->queue,
                      (long long)(writer->timeout_ms / 1000), (long long)writer->row_count,
                      (long long)writer->transport->progress(writer).taken_rows,
                      (long long)writer->result_count, wanted,
                      writer->explanation ? " The trainer was here:\n" : "",
                      writer->explanation ? writer->explanation : "");
}

// One step of a wait: OK to look again.
static enum tfos_status wait_step(struct tfos__feed_writer *writer,
                                  struct progress_timeout *timeout, uint64_t size,
                                  const char *wanted, struct tfos_error *err)
{
    enum tfos_status status = writer->transport->check(writer, err);

    if (status != TFOS_OK)
        return status;
    TFOS__TRY(tfos__feed_writer_check_interrupt(writer, err));
    uint64_t progress = writer->transport->progress(writer).sum;
    if (progress != timeout->progress) {
        begin_timeout(writer, timeout);
        tfos__free(writer->explanation);
        writer->explanation = NULL;
    } else if (tfos__now_ms() >= timeout->deadline)
        return give_up(writer, wanted, err);
    writer->transport->wait(writer, size);
    return TFOS_OK;
}

static enum tfos_status skip(struct tfos__feed_writer *writer)
{
    return writer->transport->take(writer, NULL, NULL, NULL);
}

static enum tfos_status take_result_schema(struct tfos__feed_writer *writer, const uint8_t *body,
                                           uint64_t size, struct tfos_error *err)
{
    TFOS__TRY(tfos__feed_schema_decode(&writer->result_schema, body, size, err));
    if (writer->encoder.refuses_pickles)
        TFOS__TRY(tfos__feed_schema_refuse_pickles(&writer->result_schema, err));
    return skip(writer);
}

// Puts a piece of a batch's body behind those before; the first begins anew.
static enum tfos_status take_piece(struct tfos__feed_writer *writer,
                                   const struct tfos__feed_record *record, const uint8_t *body,
                                   struct tfos_error *err)
{
    if (record->row == 0)
        tfos__buffer_clear(&writer->pieces);
    if ((uint64_t)record->row != tfos__buffer_size(&writer->pieces))
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: partition %lld: a piece of a result for place %lld came, where "
                          "place %zu was due",
                          (long long)writer->partition, (long long)record->row,
                          tfos__buffer_size(&writer->pieces));
    TFOS__TRY(tfos__buffer_append(&writer->pieces, body, record->body_size, err));
    return skip(writer);
}

// Skips to the next batch of results that has come. AGAIN: none.
static enum tfos_status find_result(struct tfos__feed_writer *writer,
                                    const struct tfos__feed_record **record, const uint8_t **body,
                                    struct tfos_error *err)
{
    for (;;) {
        enum tfos_status status = writer->transport->peek(writer, record, body, err);
        if (status != TFOS_OK)
            return status;
        // A reader may answer late for the writer that had this channel before.
        bool is_ours =
            tfos__feed_record_is_of(*record, writer->feed, writer->partition, writer->attempt);
        if (is_ours && (*record)->kind == TFOS__FEED_RECORD_BATCH)
            return TFOS_OK;
        if (is_ours && (*record)->kind == TFOS__FEED_RECORD_SCHEMA)
            TFOS__TRY(take_result_schema(writer, *body, (*record)->body_size, err));
        else if (is_ours && (*record)->kind == TFOS__FEED_RECORD_PIECE)
            TFOS__TRY(take_piece(writer, *record, *body, err));
        else
            TFOS__TRY(skip(writer));
    }
}

static bool has_result(struct tfos__feed_writer *writer)
{
    const struct tfos__feed_record *record = NULL;
    const uint8_t *body = NULL;

    // A broken ring counts as a result: next_result() reports it.
    return writer->has_results && find_result(writer, &record, &body, NULL) != TFOS_AGAIN;
}

static enum tfos_status reserve(struct tfos__feed_writer *writer, uint64_t size, uint8_t **space,
                                struct tfos_error *err)
{
    struct progress_timeout timeout = {0};

    for (bool is_waiting = false;; is_waiting = true) {
        enum tfos_status status = writer->transport->reserve(writer, size, space, err);
        if (status != TFOS_AGAIN)
            return status;
        if (has_result(writer))
            return TFOS_AGAIN;
        if (!is_waiting)
            begin_timeout(writer, &timeout);
        status = wait_step(writer, &timeout, size, "space in the feed", err);
        if (status != TFOS_OK)
            return status;
    }
}

static struct tfos__feed_record make_head(const struct tfos__feed_writer *writer)
{
    return (struct tfos__feed_record){.feed = writer->feed,
                                      .partition = writer->partition,
                                      .attempt = writer->attempt,
                                      .row = writer->row};
}

// Commits the record that was written. It has so many rows, and may be the partition's end.
static enum tfos_status commit(struct tfos__feed_writer *writer, uint64_t size, int64_t row_count,
                               uint64_t completion, struct tfos_error *err)
{
    TFOS__TRY(writer->transport->commit(
        writer, size, (uint64_t)(writer->row + row_count) | completion, row_count, err));
    writer->row_count += row_count;
    writer->row += row_count;
    writer->committed_row = writer->row;
    return TFOS_OK;
}

// Waits until all that is committed has left, and the end, if it is committed, is confirmed.
static enum tfos_status wait_for_delivery(struct tfos__feed_writer *writer, const char *wanted,
                                          struct tfos_error *err)
{
    struct progress_timeout timeout;

    if (writer->transport->progress(writer).is_delivered)
        return TFOS_OK;
    begin_timeout(writer, &timeout);
    do {
        if (has_result(writer))
            return TFOS_AGAIN;
        enum tfos_status status = wait_step(writer, &timeout, 0, wanted, err);
        if (status != TFOS_OK)
            return status;
    } while (!writer->transport->progress(writer).is_delivered);
    return TFOS_OK;
}

// Publishes the batch, a record at a time, and does not return while some of it waits here: the
// next call may be a long time away.
static enum tfos_status put_batch(struct tfos__feed_writer *writer, const struct ArrowArray *array,
                                  struct tfos_error *err)
{
    struct tfos__feed_batch_encoder *encoder = &writer->encoder;

    for (;;) {
        uint8_t *space = NULL;
        enum tfos_status status =
            tfos__feed_batch_encoder_plan(encoder, array, writer->ring_size, err);
        if (status == TFOS_END)
            return wait_for_delivery(writer, "the node to read the rows", err);
        if (status == TFOS_OK)
            status = reserve(writer, encoder->next_size, &space, err);
        if (status != TFOS_OK)
            return status;
        // A larger channel may have come with the space: it knows no schema yet.
        if (!encoder->is_schema_sent && encoder->next_kind != TFOS__FEED_RECORD_SCHEMA)
            continue;
        bool is_batch = encoder->next_kind == TFOS__FEED_RECORD_BATCH;
        struct tfos__feed_record head = make_head(writer);
        tfos__feed_batch_encoder_write(encoder, &head, space);
        TFOS__TRY(commit(writer, encoder->next_size, is_batch ? encoder->row_count : 0, 0, err));
        tfos__feed_batch_encoder_advance(encoder);
    }
}

// Whether the reader has more rows before it than it is to have. What has a result was used, even
// where the node tells so later.
static bool is_far_ahead(const struct tfos__feed_writer *writer)
{
    int64_t used = writer->transport->progress(writer).taken_rows;

    if (used < writer->result_count)
        used = writer->result_count;
    return writer->ahead_rows > 0 && writer->row_count - used > writer->ahead_rows;
}

static enum tfos_status wait_for_reader(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    struct progress_timeout timeout;

    begin_timeout(writer, &timeout);
    while (is_far_ahead(writer)) {
        if (has_result(writer))
            return TFOS_AGAIN;
        enum tfos_status status = wait_step(writer, &timeout, 0, "rows fed before to be used", err);
        if (status != TFOS_OK)
            return status;
    }
    return TFOS_OK;
}

static enum tfos_status append(struct tfos__feed_writer *writer, const struct ArrowSchema *schema,
                               const struct ArrowArray *array, struct tfos_error *err)
{
    if (writer->is_finished)
        return tfos__fail(err, TFOS_INVALID, "feed: partition %lld: append after finish",
                          (long long)writer->partition);
    if (writer->encoder.row > array->length)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: partition %lld: after AGAIN the same batch is to be appended",
                          (long long)writer->partition);
    TFOS__TRY(tfos__feed_batch_encoder_begin(&writer->encoder, schema, array, err));
    enum tfos_status status = writer->transport->check(writer, err);
    if (status != TFOS_OK)
        return status;
    if (writer->has_results && is_far_ahead(writer))
        status = wait_for_reader(writer, err);
    if (status == TFOS_OK)
        status = put_batch(writer, array, err);
    if (status == TFOS_OK)
        tfos__feed_batch_encoder_reset(&writer->encoder);
    return status;
}

enum tfos_status tfos__feed_writer_append(struct tfos__feed_writer *writer,
                                          const struct ArrowSchema *schema,
                                          const struct ArrowArray *array, struct tfos_error *err)
{
    enum tfos_status status = append(writer, schema, array, err);

    writer->is_cut |= status == TFOS_END;
    return status;
}

static enum tfos_status finish(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    struct tfos__feed_record record = make_head(writer);
    uint8_t *space = NULL;
    enum tfos_status status = writer->transport->check(writer, err);

    if (status != TFOS_OK)
        return status;
    if (!writer->is_finished) {
        status = reserve(writer, sizeof(record), &space, err);
        if (status != TFOS_OK)
            return status;
        record.kind = TFOS__FEED_RECORD_END;
        record.size = sizeof(record);
        memcpy(space, &record, sizeof(record));
        TFOS__TRY(commit(writer, sizeof(record), 0, TFOS__FEED_ROWS_COMPLETE, err));
        writer->is_finished = true;
    }
    return wait_for_delivery(writer, "the node to confirm the end", err);
}

enum tfos_status tfos__feed_writer_finish(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    enum tfos_status status = finish(writer, err);

    writer->is_left |= status == TFOS_END;
    return status;
}

// Takes the body of the current batch; an empty one means that the pieces before it are the body.
static enum tfos_status take_body(struct tfos__feed_writer *writer, const uint8_t **body,
                                  uint64_t *size, struct tfos__feed_batch_owner *owner,
                                  struct tfos_error *err)
{
    TFOS__TRY(writer->transport->take(writer, body, owner, err));
    if (*size > 0) {
        tfos__buffer_clear(&writer->pieces);
        return TFOS_OK;
    }
    owner->release(owner->holder, owner->sequence);
    *owner = tfos__feed_batch_owner_of_memory(writer->pieces.data);
    *body = writer->pieces.data;
    *size = tfos__buffer_size(&writer->pieces);
    writer->pieces = (struct tfos__buffer){0};
    return TFOS_OK;
}

// Returns the next batch of results that has come. AGAIN: none.
static enum tfos_status take_result(struct tfos__feed_writer *writer, struct ArrowSchema *schema,
                                    struct ArrowArray *array, struct tfos_error *err)
{
    const struct tfos__feed_record *record = NULL;
    const uint8_t *body = NULL;
    struct tfos__feed_batch_owner owner;
    enum tfos_status status = find_result(writer, &record, &body, err);

    if (status != TFOS_OK)
        return status;
    struct tfos__feed_record head = *record;
    if (writer->result_schema.field_count == 0 ||
        head.row != writer->first_row + writer->result_count ||
        head.rows > writer->row_count - writer->result_count)
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: partition %lld: results from row %lld on for %lld rows came where "
                          "row %lld was due",
                          (long long)writer->partition, (long long)head.row, (long long)head.rows,
                          (long long)(writer->first_row + writer->result_count));
    TFOS__TRY(take_body(writer, &body, &head.body_size, &owner, err));
    TFOS__TRY(tfos__feed_batch_decode(&writer->result_schema, body, head.body_size, head.rows,
                                      &owner, schema, array, err));
    writer->result_count += head.rows;
    return TFOS_OK;
}

static enum tfos_status lack_results(const struct tfos__feed_writer *writer, struct tfos_error *err)
{
    if (writer->result_count == writer->row_count)
        return tfos__fail(err, TFOS_CLOSED,
                          "feed: partition %lld at %s: the trainer ended after %lld rows and "
                          "results, and the partition has more rows: each needs a result",
                          (long long)writer->partition, writer->place,
                          (long long)writer->row_count);
    return tfos__fail(err, TFOS_CLOSED,
                      "feed: partition %lld at %s: the trainer ended with %lld results for %lld "
                      "rows: each row needs one",
                      (long long)writer->partition, writer->place, (long long)writer->result_count,
                      (long long)writer->row_count);
}

enum tfos_status tfos__feed_writer_next_result(struct tfos__feed_writer *writer, int64_t timeout_ms,
                                               struct ArrowSchema *schema, struct ArrowArray *array,
                                               struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    struct progress_timeout timeout;

    if (!writer->has_results)
        return tfos__fail(err, TFOS_INVALID, "feed: partition %lld was opened without results",
                          (long long)writer->partition);
    begin_timeout(writer, &timeout);
    for (;;) {
        enum tfos_status status = writer->transport->check(writer, err);
        if (status < 0)
            return status;
        // Only after the look at the state: results put before the end are not lost.
        enum tfos_status taken = take_result(writer, schema, array, err);
        if (taken != TFOS_AGAIN)
            return taken;
        bool has_all = writer->result_count == writer->row_count;
        if (has_all && (writer->is_finished || writer->is_left))
            return TFOS_END;
        // A trainer may go as soon as it has answered: whether there are more rows is not known
        // yet.
        if (status == TFOS_END)
            return has_all && !writer->is_cut ? TFOS_AGAIN : lack_results(writer, err);
        if (timeout_ms >= 0 && tfos__now_ms() >= deadline)
            return TFOS_AGAIN;
        status = wait_step(writer, &timeout, 0, "results", err);
        if (status < 0)
            return status;
    }
}

int64_t tfos__feed_writer_row_count(const struct tfos__feed_writer *writer)
{
    return writer->row_count;
}

int64_t tfos__feed_writer_batch_rows(const struct tfos__feed_writer *writer)
{
    int64_t rows = writer->transport->progress(writer).batch_rows;

    // Another process wrote it, and callers make room by it.
    if (rows <= 0)
        return 0;
    return rows < BATCH_ROWS_LIMIT ? rows : BATCH_ROWS_LIMIT;
}

int64_t tfos__feed_writer_step_rows(const struct tfos__feed_writer *writer)
{
    int64_t rows = writer->transport->progress(writer).step_rows;

    // Another process wrote it.
    return rows < 0 ? -1 : rows < BATCH_ROWS_LIMIT ? rows : BATCH_ROWS_LIMIT;
}

enum tfos_status tfos__feed_writer_await_reader(struct tfos__feed_writer *writer,
                                                struct tfos_error *err)
{
    struct progress_timeout timeout;

    begin_timeout(writer, &timeout);
    while (tfos__feed_writer_step_rows(writer) == 0) {
        enum tfos_status status =
            wait_step(writer, &timeout, 0, "the trainer to open the queue", err);
        if (status != TFOS_OK)
            return status;
    }
    return TFOS_OK;
}

enum tfos_status tfos__feed_writer_measure(struct tfos__feed_writer *writer,
                                           const struct ArrowSchema *schema,
                                           const struct ArrowArray *array, int64_t *size,
                                           struct tfos_error *err)
{
    struct tfos__feed_batch_encoder *encoder = &writer->encoder;

    TFOS__TRY(tfos__feed_batch_encoder_begin(encoder, schema, array, err));
    enum tfos_status status =
        tfos__feed_batch_encoder_measure(encoder, array, 0, array->length, err);
    if (status == TFOS_OK)
        *size = (int64_t)encoder->body_size;
    tfos__feed_batch_encoder_reset(encoder);
    return status;
}

void tfos__feed_writer_seek(struct tfos__feed_writer *writer, int64_t row)
{
    writer->row = row;
}

enum tfos_status tfos__feed_writer_confirm(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    struct progress_timeout timeout;

    if (writer->transport->progress(writer).published_row >= writer->committed_row)
        return TFOS_OK;
    TFOS__TRY(writer->transport->send(writer, json_pack("{ss}", "type", "confirm"), err));
    begin_timeout(writer, &timeout);
    do {
        enum tfos_status status = wait_step(writer, &timeout, 0, "the node to read the rows", err);
        if (status != TFOS_OK)
            return status;
    } while (writer->transport->progress(writer).published_row < writer->committed_row);
    return TFOS_OK;
}
