// SPDX-License-Identifier: Apache-2.0
// One thread a remote writer. It reads records straight into the ring: while that is full nothing
// is read, and TCP holds the writer back. Results go out as they lie in their ring, and between
// them messages. It sleeps when nothing moves, and ends when the writer has gone, when the final
// message is read, or when the host wants it to.
#include "feed/remote_proxy.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "feed/feed.h"
#include "feed/local_writer.h"
#include "feed/record_stream.h"

#define SLICE_MS 20         ///< longest sleep without a look at everything
#define RESULT_MS 1         ///< the same while results are due, which wake no descriptor
#define STOP_MS 200         ///< to send what is queued once the host wants to close
#define REPORT_MS 1000      ///< between reports of the reader's progress
#define DRAIN_MS 5000       ///< for the writer to read the final message
#define OUT_LIMIT (8 << 20) ///< bytes queued beyond which progress is not reported

enum input {
    READ_HEAD,
    AWAIT_CHANNEL, // a larger one
    AWAIT_SPACE,
    READ_BODY
};

// The thread owns everything but what the mutex guards.
struct tfos__feed_remote_proxy {
    struct tfos__channel *connection; // owned
    struct tfos__feed_control *control;
    int wake_fd;
    int64_t feed, partition, attempt;
    int64_t timeout_ms;
    pthread_t thread;
    bool has_thread;

    struct tfos__feed_local_writer writer;
    struct tfos__feed_record_stream stream;
    enum input input;
    uint8_t *space;             // where the record goes: to the ring, or
    uint8_t *message;           // owned: to here, if it is a message
    struct tfos__buffer schema; // record of the last schema: a larger channel needs it again
    bool is_schema_due;
    size_t result_sent; // bytes of the result record that goes out
    bool is_sending_result, is_sending_message;
    bool is_complete, has_reported_complete;
    bool has_stopped_reading;
    bool is_draining; // the final message is sent
    int64_t drain_deadline;
    int64_t reported_ms, reported_batch_rows, reported_step_rows;
    bool must_report;          // the writer asked for it
    uint64_t stalled_progress; // the reader's, when the ring was found full
    int64_t stall_deadline;

    pthread_mutex_t mutex; // guards what follows
    struct tfos__buffer outbox;
    bool has_last_message, is_stopping;
    struct tfos__feed_proxy_requests requests;
    struct tfos__feed_channel *given_channel;
};

static void ask_host(struct tfos__feed_remote_proxy *proxy,
                     struct tfos__feed_proxy_requests requests)
{
    uint64_t one = 1;

    pthread_mutex_lock(&proxy->mutex);
    proxy->requests.has_ended |= requests.has_ended;
    proxy->requests.is_stalled |= requests.is_stalled;
    if (requests.wanted_size > 0)
        proxy->requests.wanted_size = requests.wanted_size;
    pthread_mutex_unlock(&proxy->mutex);
    (void)!write(proxy->wake_fd, &one, sizeof(one));
}

// ---- input: records of the writer

static enum tfos_status check_record(const struct tfos__feed_remote_proxy *proxy,
                                     struct tfos_error *err)
{
    const struct tfos__feed_record *record = &proxy->stream.record;
    bool is_message = record->kind == TFOS__FEED_RECORD_MESSAGE;
    uint64_t rows = tfos__feed_local_writer_rows(&proxy->writer);
    // Rows in between went to other nodes.
    bool is_ours = is_message || (tfos__feed_record_is_of(record, proxy->feed, proxy->partition,
                                                          proxy->attempt) &&
                                  (uint64_t)record->row >= rows &&
                                  ((uint64_t)record->row == rows || !proxy->writer.has_results));
    int64_t limit = is_message ? TFOS__FEED_MESSAGE_LIMIT : TFOS__FEED_CHANNEL_SIZE_LIMIT / 2;

    if (tfos__feed_record_is_valid(record) && is_ours && record->kind != TFOS__FEED_RECORD_FILLER &&
        record->kind != TFOS__FEED_RECORD_PIECE && record->size <= (uint64_t)limit &&
        (record->rows == 0 || record->kind == TFOS__FEED_RECORD_BATCH))
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT, "feed: %s sent a broken record of kind %u",
                      tfos__channel_peer(proxy->connection), record->kind);
}

static enum tfos_status take_head(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    const struct tfos__feed_record *record = &proxy->stream.record;
    enum tfos_status status = tfos__feed_record_stream_read_head(&proxy->stream, err);

    if (status != TFOS_OK)
        return status;
    TFOS__TRY(check_record(proxy, err));
    if (record->kind == TFOS__FEED_RECORD_MESSAGE) {
        proxy->message = tfos__alloc(1, record->size);
        if (!proxy->message)
            return tfos__no_memory(err, "feed", "a message");
        proxy->space = proxy->message;
        proxy->input = READ_BODY;
    } else if (record->size > tfos__feed_local_writer_last(&proxy->writer)->size) {
        ask_host(proxy, (struct tfos__feed_proxy_requests){.wanted_size = record->size * 2});
        proxy->input = AWAIT_CHANNEL;
    } else {
        proxy->input = AWAIT_SPACE;
    }
    return TFOS_OK;
}

static enum tfos_status take_channel(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    pthread_mutex_lock(&proxy->mutex);
    struct tfos__feed_channel *channel = proxy->given_channel;
    proxy->given_channel = NULL;
    pthread_mutex_unlock(&proxy->mutex);
    if (!channel)
        return TFOS_AGAIN;
    TFOS__TRY(tfos__feed_local_writer_add(&proxy->writer, channel, err));
    proxy->input = AWAIT_SPACE;
    proxy->is_schema_due = proxy->stream.record.kind == TFOS__FEED_RECORD_BATCH;
    return TFOS_OK;
}

static enum tfos_status repeat_schema(struct tfos__feed_remote_proxy *proxy,
                                      struct tfos__feed_producer *producer, struct tfos_error *err)
{
    size_t size = tfos__buffer_size(&proxy->schema);
    uint8_t *space = NULL;

    if (size > 0) {
        enum tfos_status status = tfos__feed_producer_reserve(producer, size, &space, err);
        if (status != TFOS_OK)
            return status;
        memcpy(space, proxy->schema.data, size);
        TFOS__TRY(tfos__feed_producer_commit(producer, size, producer->rows, err));
    }
    proxy->is_schema_due = false;
    return TFOS_OK;
}

static enum tfos_status take_space(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    struct tfos__feed_producer *producer = &tfos__feed_local_writer_last(&proxy->writer)->producer;
    enum tfos_status status = proxy->is_schema_due ? repeat_schema(proxy, producer, err) : TFOS_OK;

    if (status == TFOS_OK)
        status =
            tfos__feed_producer_reserve(producer, proxy->stream.record.size, &proxy->space, err);
    if (status == TFOS_OK)
        proxy->input = READ_BODY;
    return status;
}

static enum tfos_status handle_message(struct tfos__feed_remote_proxy *proxy,
                                       struct tfos_error *err)
{
    const struct tfos__feed_record *record = &proxy->stream.record;
    json_t *message = NULL;
    enum tfos_status status = tfos__json_parse((const char *)proxy->message + sizeof(*record),
                                               record->body_size, &message, err);

    tfos__free(proxy->message);
    proxy->message = NULL;
    if (status != TFOS_OK)
        return status;
    const char *type = tfos__json_string_or(message, "type", "");
    if (strcmp(type, "stalled") == 0)
        ask_host(proxy, (struct tfos__feed_proxy_requests){.is_stalled = true});
    proxy->must_report |= strcmp(type, "confirm") == 0;
    if (strcmp(type, "close") == 0)
        status = tfos__fail(err, TFOS_CLOSED, "feed: the writer has closed");
    json_decref(message);
    return status;
}

static enum tfos_status publish_record(struct tfos__feed_remote_proxy *proxy,
                                       struct tfos_error *err)
{
    const struct tfos__feed_record *record = &proxy->stream.record;
    uint64_t rows = record->kind == TFOS__FEED_RECORD_SCHEMA
                        ? tfos__feed_local_writer_rows(&proxy->writer)
                        : (uint64_t)(record->row + record->rows);

    memcpy(proxy->space, record, sizeof(*record));
    if (record->kind == TFOS__FEED_RECORD_SCHEMA) {
        tfos__buffer_consume(&proxy->schema, tfos__buffer_size(&proxy->schema));
        TFOS__TRY(tfos__buffer_append(&proxy->schema, proxy->space, record->size, err));
    }
    if (record->kind == TFOS__FEED_RECORD_END) {
        rows |= TFOS__FEED_ROWS_COMPLETE;
        proxy->is_complete = true;
    }
    return tfos__feed_local_writer_commit(&proxy->writer, record->size, rows, record->rows, err);
}

// AGAIN when it must wait for something; BUSY when fenced; CLOSED when the writer has gone.
static enum tfos_status advance_input(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    switch (proxy->input) {
    case READ_HEAD:
        return take_head(proxy, err);
    case AWAIT_CHANNEL:
        return take_channel(proxy, err);
    case AWAIT_SPACE:
        return take_space(proxy, err);
    case READ_BODY:
        status = tfos__feed_record_stream_read(&proxy->stream, proxy->space,
                                               proxy->stream.record.size, err);
        if (status != TFOS_OK)
            return status;
        proxy->input = READ_HEAD;
        proxy->stream.received = 0;
        return proxy->message ? handle_message(proxy, err) : publish_record(proxy, err);
    }
    return status;
}

// After the final message: reads and drops until the writer has gone. To close with unread bytes
// would reset the connection, and the writer might lose that message.
static enum tfos_status drain_input(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    uint8_t dropped[16384];

    proxy->stream.received = 0;
    enum tfos_status status =
        tfos__feed_record_stream_read(&proxy->stream, dropped, sizeof(dropped), err);
    if (status == TFOS_AGAIN && tfos__now_ms() >= proxy->drain_deadline)
        return tfos__fail(err, TFOS_TIMEOUT, "feed: the writer did not close");
    return status;
}

// ---- output: results and messages

// Any later message than the last is dropped.
void tfos__feed_remote_proxy_send(struct tfos__feed_remote_proxy *proxy, json_t *message,
                                  bool is_last)
{
    pthread_mutex_lock(&proxy->mutex);
    if (proxy->has_last_message)
        json_decref(message);
    else
        (void)tfos__feed_record_append_message(&proxy->outbox, message, NULL);
    proxy->has_last_message |= is_last;
    pthread_mutex_unlock(&proxy->mutex);
}

// Sends the writer its reader's progress: at least once a second, and at once when it asks, when
// the partition's end is in the ring, or the reader's batches or steps change.
static enum tfos_status report_progress(struct tfos__feed_remote_proxy *proxy,
                                        struct tfos_error *err)
{
    const struct tfos__feed_control_page *page = proxy->control->page;
    int64_t now = tfos__now_ms();
    int64_t batch_rows = atomic_load(&page->batch_rows);
    int64_t step_rows = atomic_load(&page->step_rows);
    bool is_due = now - proxy->reported_ms >= REPORT_MS || proxy->must_report ||
                  batch_rows != proxy->reported_batch_rows ||
                  step_rows != proxy->reported_step_rows ||
                  (proxy->is_complete && !proxy->has_reported_complete);

    if (!is_due || tfos__buffer_size(&proxy->stream.out) > OUT_LIMIT)
        return TFOS_OK;
    proxy->reported_ms = now;
    proxy->has_reported_complete = proxy->is_complete;
    proxy->reported_batch_rows = batch_rows;
    proxy->reported_step_rows = step_rows;
    proxy->must_report = false;
    return tfos__feed_record_append_message(
        &proxy->stream.out,
        json_pack("{ss sI sI sI sI sI sb}", "type", "taken", "rows",
                  (json_int_t)tfos__feed_local_writer_rows(&proxy->writer), "taken",
                  (json_int_t)tfos__feed_local_writer_taken_rows(&proxy->writer), "batch_rows",
                  (json_int_t)batch_rows, "step_rows", (json_int_t)step_rows, "others",
                  (json_int_t)atomic_load(&page->others), "complete", proxy->is_complete),
        err);
}

// A result record travels as it lies in its ring, its head from the checked copy.
static enum tfos_status send_result(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    struct tfos__feed_consumer *consumer = &proxy->writer.channels[0].shared->consumer;
    enum tfos_status status = TFOS_OK;

    if (!proxy->is_sending_result)
        status = tfos__feed_local_writer_peek(&proxy->writer, &consumer, err);
    if (status != TFOS_OK)
        return status;
    const struct tfos__feed_record *record = &consumer->record;
    proxy->is_sending_result = true;
    status = tfos__feed_record_stream_write(&proxy->stream, (const uint8_t *)record,
                                            sizeof(*record), &proxy->result_sent, err);
    if (status == TFOS_OK)
        status = tfos__feed_record_stream_write(
            &proxy->stream, tfos__feed_consumer_body(consumer) - sizeof(*record), record->size,
            &proxy->result_sent, err);
    if (status != TFOS_OK)
        return status;
    proxy->is_sending_result = false;
    proxy->result_sent = 0;
    bool is_ours = tfos__feed_record_is_of(record, proxy->feed, proxy->partition, proxy->attempt);
    tfos__feed_local_writer_skip(&proxy->writer, is_ours ? record->rows : 0);
    return TFOS_OK;
}

// Takes the host's messages to those that go out. `*is_last`: none will follow.
static enum tfos_status take_outbox(struct tfos__feed_remote_proxy *proxy, bool *is_last,
                                    struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    pthread_mutex_lock(&proxy->mutex);
    size_t size = tfos__buffer_size(&proxy->outbox);
    if (size > 0) {
        status = tfos__buffer_append(&proxy->stream.out, proxy->outbox.data + proxy->outbox.begin,
                                     size, err);
        if (status == TFOS_OK)
            tfos__buffer_consume(&proxy->outbox, size);
    }
    *is_last = proxy->has_last_message;
    pthread_mutex_unlock(&proxy->mutex);
    return status;
}

// Results before messages, so that the final message comes last.
static enum tfos_status advance_output(struct tfos__feed_remote_proxy *proxy,
                                       struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    bool is_last = false;

    TFOS__TRY(take_outbox(proxy, &is_last, err));
    if (!is_last)
        TFOS__TRY(report_progress(proxy, err));
    while (!proxy->is_sending_message && status == TFOS_OK)
        status = send_result(proxy, err);
    if (status < 0 || proxy->is_sending_result)
        return status;
    status = tfos__feed_record_stream_flush(&proxy->stream, err);
    proxy->is_sending_message = status == TFOS_AGAIN;
    if (status == TFOS_OK && is_last && !proxy->is_draining) {
        proxy->is_draining = true;
        proxy->drain_deadline = tfos__deadline(DRAIN_MS);
    }
    return status;
}

// ---- the thread

static void wait_for_work(struct tfos__feed_remote_proxy *proxy)
{
    bool is_sending = proxy->is_sending_result || proxy->is_sending_message;

    if (proxy->input == AWAIT_SPACE && !is_sending && !proxy->is_draining) {
        tfos__feed_local_writer_wait(&proxy->writer, proxy->stream.record.size, SLICE_MS);
        return;
    }
    bool is_reading = proxy->input == READ_HEAD || proxy->input == READ_BODY || proxy->is_draining;
    struct pollfd descriptor = {tfos__channel_fd(proxy->connection),
                                (short)((is_reading ? POLLIN : 0) | (is_sending ? POLLOUT : 0)), 0};
    const struct tfos__feed_written_channel *first = &proxy->writer.channels[0];
    bool is_owed = proxy->writer.has_results && first->result_count < first->row_count;
    (void)poll(&descriptor, 1, is_owed && !is_sending ? RESULT_MS : SLICE_MS);
}

// What the reader or the host did to the channel, as a final message to the writer.
static void check_state(struct tfos__feed_remote_proxy *proxy)
{
    const struct tfos__feed_channel *last = tfos__feed_local_writer_last(&proxy->writer);

    if (atomic_load(&proxy->control->page->state) == TFOS__FEED_TERMINATED)
        tfos__feed_remote_proxy_send(proxy, json_pack("{ss}", "type", "end"), true);
    else if (atomic_load(&last->page->head) & TFOS__FEED_HEAD_FENCED &&
             proxy->input != AWAIT_CHANNEL)
        tfos__feed_remote_proxy_send(proxy, json_pack("{ss}", "type", "fenced"), true);
}

// While the ring is full, a writer's request for an explanation is not read, because it
// is behind its rows: the proxy asks in its place, after the same time.
static void check_stall(struct tfos__feed_remote_proxy *proxy)
{
    const struct tfos__feed_channel *last = tfos__feed_local_writer_last(&proxy->writer);
    uint64_t progress = atomic_load(&last->page->tail) + atomic_load(&proxy->control->page->others);

    if (proxy->input != AWAIT_SPACE || progress != proxy->stalled_progress) {
        proxy->stalled_progress = progress;
        proxy->stall_deadline = tfos__deadline(proxy->timeout_ms);
    } else if (tfos__now_ms() >= proxy->stall_deadline) {
        proxy->stall_deadline = TFOS__NEVER;
        ask_host(proxy, (struct tfos__feed_proxy_requests){.is_stalled = true});
    }
}

// Stops reading, and sends the writer the reason.
static void stop_reading(struct tfos__feed_remote_proxy *proxy, enum tfos_status status,
                         const struct tfos_error *err)
{
    tfos__feed_remote_proxy_send(
        proxy,
        status == TFOS_BUSY ? json_pack("{ss}", "type", "fenced")
                            : json_pack("{ss ss}", "type", "failed", "message", err->message),
        true);
    proxy->has_stopped_reading = true;
}

// Whether the host wants an end, and the time to send what is queued is over.
static bool must_stop(struct tfos__feed_remote_proxy *proxy, int64_t *stop_deadline)
{
    pthread_mutex_lock(&proxy->mutex);
    bool is_stopping = proxy->is_stopping;
    pthread_mutex_unlock(&proxy->mutex);
    if (!is_stopping)
        return false;
    if (*stop_deadline == TFOS__NEVER)
        *stop_deadline = tfos__deadline(STOP_MS);
    return tfos__buffer_size(&proxy->stream.out) == 0 || tfos__now_ms() >= *stop_deadline;
}

static uint64_t moved_count(const struct tfos__feed_remote_proxy *proxy)
{
    return proxy->stream.read_count + proxy->stream.write_count;
}

static void *run(void *argument)
{
    struct tfos__feed_remote_proxy *proxy = argument;
    int64_t stop_deadline = TFOS__NEVER;
    struct tfos_error err;

    for (;;) {
        uint64_t moved = moved_count(proxy);
        check_state(proxy);
        check_stall(proxy);
        enum tfos_status status = TFOS_AGAIN;
        if (proxy->is_draining)
            status = drain_input(proxy, &err);
        else if (!proxy->has_stopped_reading)
            status = advance_input(proxy, &err);
        if (status < 0 && (proxy->is_draining || status == TFOS_CLOSED))
            break;
        if (status < 0)
            stop_reading(proxy, status, &err);
        if (advance_output(proxy, &err) < 0 || must_stop(proxy, &stop_deadline))
            break;
        if (status != TFOS_OK && moved_count(proxy) == moved)
            wait_for_work(proxy);
    }
    ask_host(proxy, (struct tfos__feed_proxy_requests){.has_ended = true});
    return NULL;
}

// ---- the host's calls

static enum tfos_status start(struct tfos__feed_remote_proxy *proxy, int channel_fd,
                              struct tfos_error *err)
{
    struct tfos__feed_channel *channel = NULL;

    TFOS__TRY(tfos__feed_channel_map(channel_fd, TFOS__FEED_CHANNEL_WRITER, proxy->control,
                                     &channel, err));
    TFOS__TRY(tfos__feed_local_writer_add(&proxy->writer, channel, err));
    proxy->has_thread = pthread_create(&proxy->thread, NULL, run, proxy) == 0;
    if (!proxy->has_thread)
        return tfos__fail(err, TFOS_IO, "feed: cannot start a thread for %s",
                          tfos__channel_peer(proxy->connection));
    return TFOS_OK;
}

enum tfos_status tfos__feed_remote_proxy_open(const struct tfos__feed_remote_proxy_options *options,
                                              struct tfos__feed_remote_proxy **out,
                                              struct tfos_error *err)
{
    struct tfos__feed_remote_proxy *proxy = tfos__alloc(1, sizeof(*proxy));

    if (!proxy) {
        tfos__channel_close(options->connection);
        return tfos__no_memory(err, "feed", "a proxy");
    }
    proxy->connection = options->connection;
    proxy->control = options->control;
    proxy->wake_fd = options->wake_fd;
    proxy->feed = options->feed;
    proxy->partition = options->partition;
    proxy->attempt = options->attempt;
    proxy->timeout_ms = options->timeout_ms;
    proxy->writer.has_results = options->has_results;
    proxy->stream.connection = options->connection;
    proxy->reported_ms = tfos__now_ms();
    pthread_mutex_init(&proxy->mutex, NULL);
    enum tfos_status status = start(proxy, options->channel_fd, err);
    if (status != TFOS_OK) {
        tfos__feed_remote_proxy_close(proxy);
        return status;
    }
    *out = proxy;
    return TFOS_OK;
}

struct tfos__feed_proxy_requests
tfos__feed_remote_proxy_check(struct tfos__feed_remote_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    struct tfos__feed_proxy_requests requests = proxy->requests;
    proxy->requests = (struct tfos__feed_proxy_requests){.has_ended = requests.has_ended};
    pthread_mutex_unlock(&proxy->mutex);
    return requests;
}

enum tfos_status tfos__feed_remote_proxy_give_channel(struct tfos__feed_remote_proxy *proxy, int fd,
                                                      struct tfos_error *err)
{
    struct tfos__feed_channel *channel = NULL;

    TFOS__TRY(tfos__feed_channel_map(fd, TFOS__FEED_CHANNEL_WRITER, proxy->control, &channel, err));
    pthread_mutex_lock(&proxy->mutex);
    proxy->given_channel = channel;
    pthread_mutex_unlock(&proxy->mutex);
    return TFOS_OK;
}

void tfos__feed_remote_proxy_close(struct tfos__feed_remote_proxy *proxy)
{
    if (!proxy)
        return;
    pthread_mutex_lock(&proxy->mutex);
    proxy->is_stopping = true;
    pthread_mutex_unlock(&proxy->mutex);
    if (proxy->has_thread)
        pthread_join(proxy->thread, NULL);
    tfos__feed_local_writer_clear(&proxy->writer);
    tfos__feed_channel_release(proxy->given_channel);
    tfos__free(proxy->message);
    tfos__buffer_clear(&proxy->schema);
    tfos__buffer_clear(&proxy->stream.out);
    tfos__buffer_clear(&proxy->outbox);
    tfos__channel_close(proxy->connection);
    pthread_mutex_destroy(&proxy->mutex);
    tfos__free(proxy);
}
