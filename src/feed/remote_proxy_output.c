// SPDX-License-Identifier: Apache-2.0
// Results go out as they lie in their ring, and between them the messages of the host and the
// reader's progress.
#include "base/clock.h"
#include "base/fail.h"
#include "feed/message.h"
#include "feed/remote_proxy_state.h"

#define TELL_MS 1000   ///< between words about the reader's progress
#define LINGER_MS 5000 ///< for the writer to read the last word
#define OUT_LIMIT (8 << 20)

static int64_t taken_rows(const struct tfos__feed_remote_proxy *proxy)
{
    int64_t rows = proxy->left_count;

    for (size_t i = 0; i < proxy->channel_count; i++)
        rows += (int64_t)(atomic_load(&proxy->channels[i].channel->page->rows_released) -
                          proxy->channels[i].released_before);
    return rows;
}

// Tells the writer how far its reader is: at least once a second, and at once when the partition's
// end is in the ring or the reader's batches change.
static enum tfos_status tell_progress(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    int64_t now = tfos__now_ms();
    int64_t batch_rows = atomic_load(&proxy->control->page->batch_rows);
    bool is_due = now - proxy->told_ms >= TELL_MS || batch_rows != proxy->told_batch_rows ||
                  (proxy->is_complete && !proxy->has_told_complete);

    if (!is_due || tfos__buffer_size(&proxy->out) > OUT_LIMIT)
        return TFOS_OK;
    proxy->told_ms = now;
    proxy->has_told_complete = proxy->is_complete;
    proxy->told_batch_rows = batch_rows;
    return tfos__feed_control_message_append(
        &proxy->out,
        json_pack("{ss sI sI sI sI sb}", "type", "taken", "rows",
                  (json_int_t)tfos__feed_remote_proxy_published_rows(proxy), "taken",
                  (json_int_t)taken_rows(proxy), "batch_rows", (json_int_t)batch_rows, "others",
                  (json_int_t)atomic_load(&proxy->control->page->others), "complete",
                  proxy->is_complete),
        err);
}

// The channel from which the next result comes, or NULL when there is none.
static struct tfos__feed_remote_proxy_channel *
find_result(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err, enum tfos_status *status)
{
    while (proxy->channel_count > 1 &&
           proxy->channels[0].result_count >= proxy->channels[0].row_count &&
           !proxy->is_sending_result)
        tfos__feed_remote_proxy_leave_first_channel(proxy);
    *status = proxy->has_results
                  ? tfos__feed_consumer_peek(&proxy->channels[0].channel->consumer, err)
                  : TFOS_AGAIN;
    return *status == TFOS_OK ? &proxy->channels[0] : NULL;
}

// A result record travels as it lies in its ring, its head from the checked copy.
static enum tfos_status send_result(struct tfos__feed_remote_proxy *proxy,
                                    struct tfos__feed_remote_proxy_channel *channel,
                                    bool *has_moved, struct tfos_error *err)
{
    struct tfos__feed_consumer *consumer = &channel->channel->consumer;
    const struct tfos__feed_record *record = &consumer->record;

    proxy->is_sending_result = true;
    while (proxy->result_sent < record->size) {
        bool is_head = proxy->result_sent < sizeof *record;
        const uint8_t *data =
            is_head ? (const uint8_t *)record : tfos__feed_consumer_body(consumer) - sizeof *record;
        size_t end = is_head ? sizeof *record : record->size;
        size_t done = 0;
        enum tfos_status status = tfos__channel_write_some(
            proxy->connection, data + proxy->result_sent, end - proxy->result_sent, &done, err);
        if (status != TFOS_OK)
            return status;
        proxy->result_sent += done;
        *has_moved = true;
    }
    proxy->is_sending_result = false;
    proxy->result_sent = 0;
    channel->result_count += record->rows;
    tfos__feed_consumer_skip(consumer);
    return TFOS_OK;
}

static enum tfos_status send_messages(struct tfos__feed_remote_proxy *proxy, bool *has_moved,
                                      struct tfos_error *err)
{
    while (tfos__buffer_size(&proxy->out) > 0) {
        size_t done = 0;
        proxy->is_sending_message = true;
        enum tfos_status status =
            tfos__channel_write_some(proxy->connection, proxy->out.data + proxy->out.begin,
                                     tfos__buffer_size(&proxy->out), &done, err);
        if (status != TFOS_OK)
            return status;
        tfos__buffer_consume(&proxy->out, done);
        *has_moved = true;
    }
    proxy->is_sending_message = false;
    return TFOS_OK;
}

// Takes the host's messages to those that go out. `*is_last`: none will follow.
static enum tfos_status take_mail(struct tfos__feed_remote_proxy *proxy, bool *is_last,
                                  struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    pthread_mutex_lock(&proxy->mutex);
    size_t size = tfos__buffer_size(&proxy->mail);
    if (size > 0) {
        status = tfos__buffer_append(&proxy->out, proxy->mail.data + proxy->mail.begin, size, err);
        if (status == TFOS_OK)
            tfos__buffer_consume(&proxy->mail, size);
    }
    *is_last = proxy->has_last_mail;
    pthread_mutex_unlock(&proxy->mutex);
    return status;
}

// Moves on with what goes out: results before messages, so that the last word does come last.
enum tfos_status tfos__feed_remote_proxy_give_out(struct tfos__feed_remote_proxy *proxy,
                                                  bool *has_moved, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    struct tfos__feed_remote_proxy_channel *channel = NULL;
    bool is_last = false;

    TFOS__TRY(take_mail(proxy, &is_last, err));
    if (!is_last)
        TFOS__TRY(tell_progress(proxy, err));
    if (!proxy->is_sending_message)
        while ((channel = find_result(proxy, err, &status)) != NULL) {
            status = send_result(proxy, channel, has_moved, err);
            if (status != TFOS_OK)
                return status;
        }
    if (status < 0)
        return status;
    status = send_messages(proxy, has_moved, err);
    if (status == TFOS_OK && is_last && !proxy->is_lingering) {
        proxy->is_lingering = true;
        proxy->deadline = tfos__deadline(LINGER_MS);
    }
    return status;
}
