// SPDX-License-Identifier: Apache-2.0
// The host and the node's calls. Nothing here waits: an epoll descriptor becomes readable when
// step() has work, and a timer ticks while a writer waits for a channel, because a reader that
// drains one signals no descriptor.
#include "feed/host.h"

#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/listener.h"
#include "base/memory.h"
#include "base/socket.h"

#define TICK_MS 10              ///< between looks for a free channel
#define REPORT_MS 1000          ///< between reports of progress to writers that wait
#define HELLO_TIMEOUT_MS 10000  ///< from accept until an `open` is accepted
#define ENDING_TIMEOUT_MS 3000  ///< for a writer to read its last message and go
#define PENDING_LIMIT (1 << 20) ///< bytes queued towards a writer, which reads only messages here

// ---- queues

static enum tfos_status open_queue(struct tfos__feed_queue *queue, const char *name, int number,
                                   struct tfos_error *err)
{
    enum tfos_status status;

    *queue = (struct tfos__feed_queue){.name = name, .number = number, .control_fd = -1};
    status = tfos__feed_control_create(&queue->control_fd, err);
    return status == TFOS_OK ? tfos__feed_control_map(queue->control_fd, &queue->control, err)
                             : status;
}

static void set_queue_state(struct tfos__feed_queue *queue, enum tfos__feed_state state)
{
    _Atomic uint32_t *word = &queue->control->page->state;
    uint32_t present = atomic_load(word);

    while (present < (uint32_t)state &&
           !atomic_compare_exchange_weak(word, &present, (uint32_t)state))
        continue;
}

static void end_epoch(struct tfos__feed_queue *queue, int64_t feed)
{
    _Atomic int64_t *complete = &queue->control->page->complete_feed;

    if (feed <= atomic_load(complete))
        return;
    atomic_store(complete, feed);
    tfos__feed_attempt_table_forget(&queue->attempts, feed);
    tfos__feed_futex_wake(tfos__feed_control_futex(queue->control));
}

static void close_queue(struct tfos__feed_queue *queue)
{
    if (queue->control_fd >= 0)
        close(queue->control_fd);
    tfos__partition_table_clear(&queue->attempts);
    tfos__feed_control_release(queue->control);
}

// ---- life

static enum tfos_status listen_all(struct tfos__feed_host *host,
                                   const struct tfos__feed_host_options *options,
                                   struct tfos_error *err)
{
    int fd = -1;

    TFOS__TRY(tfos__listener_open_unix(options->socket_name, &fd, err));
    TFOS__TRY(tfos__server_listen(&host->server, fd, true, err));
    TFOS__TRY(tfos__listener_open(options->listen_host, NULL, &fd, &host->port, err));
    return tfos__server_listen(&host->server, fd, false, err);
}

static enum tfos_status open_server(struct tfos__feed_host *host,
                                    const struct tfos__feed_host_options *options,
                                    struct tfos_error *err)
{
    struct tfos__server_options server_options = {.handler = &tfos__feed_host_handler,
                                                  .context = host,
                                                  .identity = &host->identity,
                                                  .use = TFOS__TCP_BULK,
                                                  .hello_timeout_ms = HELLO_TIMEOUT_MS,
                                                  .ending_timeout_ms = ENDING_TIMEOUT_MS,
                                                  .pending_limit = PENDING_LIMIT};

    TFOS__TRY(tfos__server_init(&host->server, &server_options, err));
    TFOS__TRY(tfos__server_watch(&host->server, host->timer_fd, err));
    return listen_all(host, options, err);
}

static enum tfos_status set_up(struct tfos__feed_host *host,
                               const struct tfos__feed_host_options *options,
                               struct tfos_error *err)
{
    host->identity.cluster_id = tfos__strdup(options->cluster_id);
    if (!host->identity.cluster_id)
        return tfos__no_memory(err, "feed", "a host");
    for (int i = 0; i < host->names.count; i++)
        TFOS__TRY(open_queue(&host->queues[i], host->names.names[i], i, err));
    host->pool.memory_limit =
        options->memory_limit ? (uint64_t)options->memory_limit : TFOS__FEED_MEMORY_LIMIT;
    TFOS__TRY(tfos__cluster_key_read(options->key, "feed", host->identity.key, err));
    TFOS__TRY(tfos__cluster_key_prove(host->identity.key, "feed", "feed", host->token, err));
    host->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (host->timer_fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "feed: cannot make the host's timer");
    return open_server(host, options, err);
}

enum tfos_status tfos__feed_host_open(const struct tfos__feed_host_options *options,
                                      struct tfos__feed_host **out, struct tfos_error *err)
{
    if (!options->cluster_id || !options->socket_name || options->memory_limit < 0)
        return tfos__fail(
            err, TFOS_INVALID,
            "feed: a host needs cluster_id, socket_name and a memory_limit of 0 or more");
    struct tfos__feed_host *host = tfos__alloc(1, sizeof(*host));
    if (!host)
        return tfos__no_memory(err, "feed", "a host");
    host->server = (struct tfos__server){.epoll_fd = -1, .wake_fd = -1};
    host->timer_fd = -1;
    host->closed_end = &host->closed;
    for (int i = 0; i < TFOS__QUEUE_LIMIT; i++)
        host->queues[i].control_fd = -1;
    enum tfos_status status = tfos__queue_names_init(&host->names, options->queues, err);
    if (status == TFOS_OK)
        status = set_up(host, options, err);
    if (status != TFOS_OK) {
        tfos__feed_host_close(host);
        return status;
    }
    *out = host;
    return TFOS_OK;
}

int tfos__feed_host_fd(const struct tfos__feed_host *host)
{
    return host->server.epoll_fd;
}

int tfos__feed_host_port(const struct tfos__feed_host *host)
{
    return host->port;
}

int tfos__feed_host_control_fd(const struct tfos__feed_host *host, const char *queue)
{
    int number = tfos__queue_names_find(&host->names, queue);

    return number < 0 ? -1 : host->queues[number].control_fd;
}

static void set_timer(struct tfos__feed_host *host)
{
    bool is_wanted = false;

    for (struct tfos__feed_connection *each = tfos__feed_host_first(host); each;
         each = tfos__feed_host_next(each))
        is_wanted |= each->is_waiting;
    if (is_wanted == host->is_timer_on)
        return;
    long interval = is_wanted ? TICK_MS * 1000000L : 0;
    struct itimerspec times = {.it_interval = {0, interval}, .it_value = {0, interval}};
    (void)timerfd_settime(host->timer_fd, 0, &times, NULL);
    host->is_timer_on = is_wanted;
}

// A trainer reads its queues in turn: while it makes progress with one, writers of the others keep
// waiting.
static void note_progress(struct tfos__feed_host *host)
{
    for (int i = 0; i < host->names.count; i++) {
        uint64_t progress = tfos__feed_channel_pool_progress(&host->pool, i);
        if (progress == host->queues[i].progress)
            continue;
        host->queues[i].progress = progress;
        host->has_progress = true;
        for (int other = 0; other < host->names.count; other++)
            if (other != i)
                atomic_fetch_add(&host->queues[other].control->page->others, 1);
    }
}

// A writer that waits for a channel does not time out while readers make progress.
static void report_progress(struct tfos__feed_host *host, int64_t now)
{
    if (now - host->reported_ms < REPORT_MS || !host->has_progress)
        return;
    host->reported_ms = now;
    host->has_progress = false;
    for (struct tfos__feed_connection *each = tfos__feed_host_first(host); each;
         each = tfos__feed_host_next(each))
        if (each->is_waiting)
            tfos__server_send(&each->base, json_pack("{ss}", "type", "wait"), NULL, 0);
}

// The reader may have terminated the feed: no channel will come free for those who wait.
static void dismiss_waiting(struct tfos__feed_host *host)
{
    for (struct tfos__feed_connection *each = tfos__feed_host_first(host); each;
         each = tfos__feed_host_next(each)) {
        json_t *last = each->is_waiting ? tfos__feed_host_close_message(each) : NULL;
        if (last)
            tfos__feed_connection_dismiss(each, last);
    }
}

enum tfos_status tfos__feed_host_step(struct tfos__feed_host *host, struct tfos_error *err)
{
    uint64_t ticks = 0;
    int64_t now = tfos__now_ms();

    (void)err;
    if (host->is_timer_on)
        (void)!read(host->timer_fd, &ticks, sizeof(ticks));
    tfos__server_wait(&host->server, now);
    tfos__server_step(&host->server);
    for (struct tfos__feed_connection *each = tfos__feed_host_first(host); each;
         each = tfos__feed_host_next(each))
        tfos__feed_connection_check_proxy(each);
    dismiss_waiting(host);
    tfos__feed_host_serve(host);
    note_progress(host);
    report_progress(host, now);
    tfos__server_flush(&host->server);
    tfos__feed_channel_pool_trim(&host->pool);
    set_timer(host);
    return TFOS_OK;
}

enum tfos_status tfos__feed_host_next_event(struct tfos__feed_host *host,
                                            struct tfos__feed_event *event, struct tfos_error *err)
{
    struct tfos__feed_closed_attempt *closed = host->closed;

    (void)err;
    for (size_t i = 0; i < host->pool.count; i++) {
        struct tfos__feed_pool_channel *channel = host->pool.channels[i];
        if (channel->is_announced)
            continue;
        channel->is_announced = true;
        *event = (struct tfos__feed_event){.kind = TFOS__FEED_CHANNEL_OPENED,
                                           .channel = channel->number,
                                           .fd = channel->fd,
                                           .queue = host->queues[channel->queue].name};
        return TFOS_OK;
    }
    if (closed) {
        *event = closed->event;
        host->closed = closed->next;
        if (!host->closed)
            host->closed_end = &host->closed;
        tfos__free(closed);
        return TFOS_OK;
    }
    for (struct tfos__feed_connection *each = tfos__feed_host_first(host); each;
         each = tfos__feed_host_next(each)) {
        if (!each->is_stalled || each->has_told_stall)
            continue;
        each->has_told_stall = true;
        *event = tfos__feed_connection_event(each, TFOS__FEED_STALLED);
        return TFOS_OK;
    }
    return TFOS_AGAIN;
}

json_t *tfos__feed_host_close_message(const struct tfos__feed_connection *connection)
{
    const struct tfos__feed_host *host = connection->host;
    uint32_t state = atomic_load(&connection->queue->control->page->state);

    if (state == TFOS__FEED_RUNNING || (state == TFOS__FEED_ENDED && connection->has_written))
        return NULL;
    if (state == TFOS__FEED_FAILED)
        return json_pack("{ss ss}", "type", "failed", "message",
                         host->message ? host->message : "the cluster has failed");
    return json_pack("{ss}", "type", "end");
}

void tfos__feed_host_set_state(struct tfos__feed_host *host, enum tfos__feed_state state,
                               const char *message)
{
    if (state == TFOS__FEED_FAILED && !host->message)
        host->message = tfos__strdup(message ? message : "the cluster has failed");
    for (int i = 0; i < host->names.count; i++)
        set_queue_state(&host->queues[i], state);
    for (struct tfos__feed_connection *each = tfos__feed_host_first(host); each;
         each = tfos__feed_host_next(each)) {
        bool is_touched = (each->is_waiting || each->channel) && !each->base.is_ending;
        json_t *last = is_touched ? tfos__feed_host_close_message(each) : NULL;
        if (last)
            tfos__feed_connection_dismiss(each, last);
    }
    for (size_t i = 0; i < host->pool.count; i++)
        tfos__feed_futex_wake(tfos__feed_channel_page_futex(host->pool.channels[i]->page));
    for (int i = 0; i < host->names.count; i++)
        tfos__feed_futex_wake(tfos__feed_control_futex(host->queues[i].control));
    tfos__server_flush(&host->server);
}

void tfos__feed_host_end_epoch(struct tfos__feed_host *host, const char *queue, int64_t feed)
{
    int number = tfos__queue_names_find(&host->names, queue);

    if (number >= 0)
        end_epoch(&host->queues[number], feed);
}

void tfos__feed_host_end_batch(struct tfos__feed_host *host, const char *queue, int64_t feed)
{
    int number = tfos__queue_names_find(&host->names, queue);

    if (number < 0)
        return;
    _Atomic int64_t *stream = &host->queues[number].control->page->stream_feed;
    // Before the feed is complete: who sees that it is must know that it ends no epoch.
    if (atomic_load(stream) == 0)
        atomic_store(stream, feed);
    end_epoch(&host->queues[number], feed);
}

void tfos__feed_host_fence(struct tfos__feed_host *host, struct tfos__feed_event *attempt)
{
    int number = tfos__queue_names_find(&host->names, attempt->queue);
    struct tfos__feed_attempt *entry = NULL;

    attempt->rows = attempt->written = 0;
    attempt->complete = false;
    // Without memory for the entry, an older attempt could still come; it would be refused because
    // its first row is already there.
    if (attempt->feed < 1 || number < 0 ||
        tfos__feed_attempt_table_get(&host->queues[number].attempts, attempt->feed,
                                     attempt->partition, &entry, NULL) != TFOS_OK)
        return;
    tfos__feed_attempt_fence(entry, attempt->attempt);
    struct tfos__feed_connection *connection = entry->connection;
    if (connection && connection->attempt < attempt->attempt) {
        tfos__feed_host_close_attempt(connection, false);
        attempt->written = (int64_t)connection->written;
        tfos__feed_connection_dismiss(connection, json_pack("{ss sI}", "type", "fenced", "attempt",
                                                            (json_int_t)attempt->attempt));
        tfos__server_flush(&host->server);
    }
    attempt->rows = entry->rows;
    attempt->complete = entry->is_complete;
}

void tfos__feed_host_explain(struct tfos__feed_host *host, const char *text)
{
    for (struct tfos__feed_connection *each = tfos__feed_host_first(host); each;
         each = tfos__feed_host_next(each)) {
        if (!each->is_stalled)
            continue;
        json_t *message = json_pack("{ss ss}", "type", "explained", "text", text);
        each->is_stalled = each->has_told_stall = false;
        if (each->proxy)
            tfos__feed_remote_proxy_send(each->proxy, message, false);
        else
            tfos__server_send(&each->base, message, NULL, 0);
    }
    tfos__server_flush(&host->server);
}

void tfos__feed_host_get_stats(struct tfos__feed_host *host, struct tfos__feed_stats *stats)
{
    const struct tfos__feed_channel_pool *pool = &host->pool;
    uint64_t writers_us = pool->gone_waited_us, readers_us = 0;

    *stats = (struct tfos__feed_stats){.rows_written = (int64_t)pool->gone_rows_written,
                                       .bytes_written = (int64_t)pool->gone_bytes,
                                       .is_drained = true,
                                       .is_terminated = true};
    for (size_t i = 0; i < pool->count; i++) {
        const struct tfos__feed_pool_channel *channel = pool->channels[i];
        uint64_t tail = atomic_load(&channel->page->tail) & ~TFOS__FEED_TAIL_ABANDONED;
        uint64_t head = atomic_load(&channel->page->head) & ~TFOS__FEED_HEAD_FENCED;
        if (channel->is_written)
            stats->rows_written += (int64_t)tfos__feed_pool_channel_written(channel);
        stats->bytes_written += (int64_t)head;
        writers_us += atomic_load(&channel->page->waited_us);
        stats->used_size += head - tail <= channel->size ? (int64_t)(head - tail) : 0;
        stats->total_size += (int64_t)channel->size;
        stats->writer_count += channel->is_written;
    }
    struct tfos__feed_queue_stats queue;
    for (int i = 0; tfos__feed_host_get_queue(host, i, &queue); i++) {
        stats->rows_read += queue.rows_read;
        stats->is_drained &= queue.is_drained;
        stats->is_terminated &= queue.is_terminated;
        readers_us += atomic_load(&host->queues[i].control->page->waited_us);
    }
    // What others write into shared memory may be anything; it must not become negative.
    stats->writer_wait_ms = (int64_t)(writers_us / 1000 & INT64_MAX);
    stats->reader_wait_ms = (int64_t)(readers_us / 1000 & INT64_MAX);
}

bool tfos__feed_host_get_queue(const struct tfos__feed_host *host, int number,
                               struct tfos__feed_queue_stats *out)
{
    if (number < 0 || number >= host->names.count)
        return false;
    const struct tfos__feed_queue *queue = &host->queues[number];
    *out = (struct tfos__feed_queue_stats){
        .name = queue->name,
        .rows_read = (int64_t)host->pool.gone_rows_read[number],
        .is_drained = true,
        .is_terminated = atomic_load(&queue->control->page->state) == TFOS__FEED_TERMINATED};
    for (size_t i = 0; i < host->pool.count; i++) {
        const struct tfos__feed_pool_channel *channel = host->pool.channels[i];
        if (channel->queue != number)
            continue;
        out->rows_read += (int64_t)atomic_load(&channel->page->rows_released);
        out->is_drained &= out->is_terminated || tfos__feed_pool_channel_is_read(channel);
    }
    return true;
}

void tfos__feed_host_close(struct tfos__feed_host *host)
{
    if (!host)
        return;
    tfos__server_clear(&host->server, "the node has ended");
    if (host->timer_fd >= 0)
        close(host->timer_fd);
    tfos__feed_channel_pool_clear(&host->pool);
    for (int i = 0; i < TFOS__QUEUE_LIMIT; i++)
        close_queue(&host->queues[i]);
    tfos__free((char *)(uintptr_t)host->identity.cluster_id);
    tfos__free(host->message);
    while (host->closed) {
        struct tfos__feed_closed_attempt *next = host->closed->next;
        tfos__free(host->closed);
        host->closed = next;
    }
    explicit_bzero(host->identity.key, sizeof(host->identity.key));
    explicit_bzero(host->token, sizeof(host->token));
    tfos__free(host);
}
