// SPDX-License-Identifier: Apache-2.0
// Results go out as they lie in their ring, and between them the messages of the host and the
// reader's progress.
#include "base/clock.h"
#include "base/fail.h"
#include "feed/message.h"
#include "feed/relay_state.h"

#define TELL_MS 1000   ///< between words about the reader's progress
#define LINGER_MS 5000 ///< for the writer to read the last word
#define OUT_LIMIT (8 << 20)

static int64_t taken_rows(const struct tfos__relay *relay)
{
    int64_t rows = relay->left_count;

    for (size_t i = 0; i < relay->lane_count; i++)
        rows += (int64_t)(atomic_load(&relay->lanes[i].lane->page->rows_released) -
                          relay->lanes[i].released_before);
    return rows;
}

// Tells the writer how far its reader is: at least once a second, and at once when the partition's
// end is in the ring or the reader's batches change.
static enum tfos_status tell_progress(struct tfos__relay *relay, struct tfos_error *err)
{
    int64_t now = tfos__now_ms();
    int64_t batch_rows = atomic_load(&relay->board->page->batch_rows);
    bool is_due = now - relay->told_ms >= TELL_MS || batch_rows != relay->told_batch_rows ||
                  (relay->is_complete && !relay->has_told_complete);

    if (!is_due || tfos__buffer_size(&relay->out) > OUT_LIMIT)
        return TFOS_OK;
    relay->told_ms = now;
    relay->has_told_complete = relay->is_complete;
    relay->told_batch_rows = batch_rows;
    return tfos__message_append(&relay->out,
                                json_pack("{ss sI sI sI sI sb}", "type", "taken", "rows",
                                          (json_int_t)tfos__relay_published_rows(relay), "taken",
                                          (json_int_t)taken_rows(relay), "batch_rows",
                                          (json_int_t)batch_rows, "others",
                                          (json_int_t)atomic_load(&relay->board->page->others),
                                          "complete", relay->is_complete),
                                err);
}

// The lane from which the next result comes, or NULL when there is none.
static struct tfos__relay_lane *find_result(struct tfos__relay *relay, struct tfos_error *err,
                                            enum tfos_status *status)
{
    while (relay->lane_count > 1 && relay->lanes[0].result_count >= relay->lanes[0].row_count &&
           !relay->is_sending_result)
        tfos__relay_leave_first_lane(relay);
    *status =
        relay->has_results ? tfos__outlet_peek(&relay->lanes[0].lane->outlet, err) : TFOS_AGAIN;
    return *status == TFOS_OK ? &relay->lanes[0] : NULL;
}

// A result record travels as it lies in its ring, its head from the checked copy.
static enum tfos_status send_result(struct tfos__relay *relay, struct tfos__relay_lane *lane,
                                    bool *has_moved, struct tfos_error *err)
{
    struct tfos__outlet *outlet = &lane->lane->outlet;
    const struct tfos__record *record = &outlet->record;

    relay->is_sending_result = true;
    while (relay->result_sent < record->size) {
        bool is_head = relay->result_sent < sizeof *record;
        const uint8_t *data =
            is_head ? (const uint8_t *)record : tfos__outlet_body(outlet) - sizeof *record;
        size_t end = is_head ? sizeof *record : record->size;
        size_t done = 0;
        enum tfos_status status = tfos__channel_write_some(
            relay->channel, data + relay->result_sent, end - relay->result_sent, &done, err);
        if (status != TFOS_OK)
            return status;
        relay->result_sent += done;
        *has_moved = true;
    }
    relay->is_sending_result = false;
    relay->result_sent = 0;
    lane->result_count += record->rows;
    tfos__outlet_skip(outlet);
    return TFOS_OK;
}

static enum tfos_status send_messages(struct tfos__relay *relay, bool *has_moved,
                                      struct tfos_error *err)
{
    while (tfos__buffer_size(&relay->out) > 0) {
        size_t done = 0;
        relay->is_sending_message = true;
        enum tfos_status status =
            tfos__channel_write_some(relay->channel, relay->out.data + relay->out.begin,
                                     tfos__buffer_size(&relay->out), &done, err);
        if (status != TFOS_OK)
            return status;
        tfos__buffer_consume(&relay->out, done);
        *has_moved = true;
    }
    relay->is_sending_message = false;
    return TFOS_OK;
}

// Takes the host's messages to those that go out. `*is_last`: none will follow.
static enum tfos_status take_mail(struct tfos__relay *relay, bool *is_last, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    pthread_mutex_lock(&relay->mutex);
    size_t size = tfos__buffer_size(&relay->mail);
    if (size > 0) {
        status = tfos__buffer_append(&relay->out, relay->mail.data + relay->mail.begin, size, err);
        if (status == TFOS_OK)
            tfos__buffer_consume(&relay->mail, size);
    }
    *is_last = relay->has_last_mail;
    pthread_mutex_unlock(&relay->mutex);
    return status;
}

// Moves on with what goes out: results before messages, so that the last word does come last.
enum tfos_status tfos__relay_give_out(struct tfos__relay *relay, bool *has_moved,
                                      struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    struct tfos__relay_lane *lane = NULL;
    bool is_last = false;

    TFOS__TRY(take_mail(relay, &is_last, err));
    if (!is_last)
        TFOS__TRY(tell_progress(relay, err));
    if (!relay->is_sending_message)
        while ((lane = find_result(relay, err, &status)) != NULL) {
            status = send_result(relay, lane, has_moved, err);
            if (status != TFOS_OK)
                return status;
        }
    if (status < 0)
        return status;
    status = send_messages(relay, has_moved, err);
    if (status == TFOS_OK && is_last && !relay->is_lingering) {
        relay->is_lingering = true;
        relay->deadline = tfos__deadline(LINGER_MS);
    }
    return status;
}
