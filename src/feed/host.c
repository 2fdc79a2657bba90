// SPDX-License-Identifier: Apache-2.0
// The host's own life, and the calls of the node. Nothing here waits: an epoll descriptor tells the
// node when to call step(), and a timer ticks while somebody waits for a lane, because a reader
// that drains one rings no descriptor.
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/listener.h"
#include "base/memory.h"
#include "base/socket.h"
#include "feed/host.h"

#define TICK_MS 10              ///< between looks for a free lane
#define TELL_MS 1000            ///< between words to those who wait
#define HELLO_TIMEOUT_MS 10000  ///< from accept until an `open` is accepted
#define ENDING_TIMEOUT_MS 3000  ///< for a writer to read its last message and go
#define PENDING_LIMIT (1 << 20) ///< bytes queued towards a writer, which reads only messages here

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
        TFOS__TRY(tfos__queue_open(&host->queues[i], host->names.names[i], i, err));
    host->pool.memory_limit =
        options->memory_limit ? (uint64_t)options->memory_limit : TFOS__FEED_MEMORY_LIMIT;
    TFOS__TRY(tfos__cluster_key_read(options->key, "feed", host->identity.key, err));
    TFOS__TRY(tfos__cluster_key_prove(host->identity.key, "feed", host->token, err));
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
    struct tfos__feed_host *host = tfos__alloc(1, sizeof *host);
    if (!host)
        return tfos__no_memory(err, "feed", "a host");
    host->server = (struct tfos__server){.epoll_fd = -1, .wake_fd = -1};
    host->timer_fd = -1;
    for (int i = 0; i < TFOS__QUEUE_LIMIT; i++)
        host->queues[i].bell_fd = -1;
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

int tfos__feed_host_bell_fd(const struct tfos__feed_host *host, const char *queue)
{
    int number = tfos__queue_names_find(&host->names, queue);

    return number < 0 ? -1 : host->queues[number].bell_fd;
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

// A trainer reads its queues by turns: while it gets on with one, writers of the others wait on.
static void note_progress(struct tfos__feed_host *host)
{
    for (int i = 0; i < host->names.count; i++) {
        if (!tfos__queue_note_progress(&host->queues[i], tfos__pool_progress(&host->pool, i)))
            continue;
        host->has_progress = true;
        for (int other = 0; other < host->names.count; other++)
            if (other != i)
                atomic_fetch_add(&host->queues[other].board->page->others, 1);
    }
}

// Whoever waits for a lane has patience as long as the readers of others go on.
static void tell_progress(struct tfos__feed_host *host, int64_t now)
{
    if (now - host->told_ms < TELL_MS || !host->has_progress)
        return;
    host->told_ms = now;
    host->has_progress = false;
    for (struct tfos__feed_connection *each = tfos__feed_host_first(host); each;
         each = tfos__feed_host_next(each))
        if (each->is_waiting)
            tfos__server_send(&each->base, json_pack("{ss}", "type", "wait"), NULL, 0);
}

// The reader may have terminated the feed by itself: those who wait would wait in vain.
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
        (void)!read(host->timer_fd, &ticks, sizeof ticks);
    tfos__server_wait(&host->server, now);
    tfos__server_step(&host->server);
    for (struct tfos__feed_connection *each = tfos__feed_host_first(host); each;
         each = tfos__feed_host_next(each))
        tfos__feed_connection_check_relay(each);
    dismiss_waiting(host);
    tfos__feed_host_serve(host);
    note_progress(host);
    tell_progress(host, now);
    tfos__server_flush(&host->server);
    tfos__pool_trim(&host->pool);
    set_timer(host);
    return TFOS_OK;
}

bool tfos__feed_host_reserve_event(struct tfos__feed_host *host)
{
    if (host->event_count + host->event_reserved == host->event_capacity) {
        size_t capacity = host->event_capacity * 2 + 16;
        struct tfos__feed_event *events = tfos__alloc(capacity, sizeof *events);
        if (!events)
            return false;
        for (size_t i = 0; i < host->event_count; i++)
            events[i] = host->events[(host->event_first + i) % host->event_capacity];
        tfos__free(host->events);
        host->events = events;
        host->event_first = 0;
        host->event_capacity = capacity;
    }
    host->event_reserved++;
    return true;
}

void tfos__feed_host_release_event(struct tfos__feed_host *host)
{
    host->event_reserved--;
}

void tfos__feed_host_emit(struct tfos__feed_host *host, const struct tfos__feed_event *event)
{
    host->event_reserved--;
    host->events[(host->event_first + host->event_count++) % host->event_capacity] = *event;
}

enum tfos_status tfos__feed_host_next_event(struct tfos__feed_host *host,
                                            struct tfos__feed_event *event, struct tfos_error *err)
{
    (void)err;
    if (host->event_count == 0)
        return TFOS_AGAIN;
    *event = host->events[host->event_first];
    host->event_first = (host->event_first + 1) % host->event_capacity;
    host->event_count--;
    if (event->kind == TFOS__FEED_LANE_OPENED)
        for (size_t i = 0; i < host->pool.count; i++)
            if (host->pool.lanes[i]->number == event->lane)
                host->pool.lanes[i]->is_announced = true;
    return TFOS_OK;
}

json_t *tfos__feed_host_close_message(const struct tfos__feed_connection *connection)
{
    const struct tfos__feed_host *host = connection->host;
    uint32_t state = tfos__queue_state(connection->queue);

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
        tfos__queue_set_state(&host->queues[i], state);
    for (struct tfos__feed_connection *each = tfos__feed_host_first(host); each;
         each = tfos__feed_host_next(each)) {
        bool is_touched = (each->is_waiting || each->lane) && !each->base.is_ending;
        json_t *last = is_touched ? tfos__feed_host_close_message(each) : NULL;
        if (last)
            tfos__feed_connection_dismiss(each, last);
    }
    for (size_t i = 0; i < host->pool.count; i++)
        tfos__bell_ring(tfos__lane_page_bell(host->pool.lanes[i]->page));
    for (int i = 0; i < host->names.count; i++)
        tfos__bell_ring(tfos__board_bell(host->queues[i].board));
    tfos__server_flush(&host->server);
}

void tfos__feed_host_end_epoch(struct tfos__feed_host *host, const char *queue, int64_t feed)
{
    int number = tfos__queue_names_find(&host->names, queue);

    if (number >= 0)
        tfos__queue_end_epoch(&host->queues[number], feed);
}

void tfos__feed_host_end_batch(struct tfos__feed_host *host, const char *queue, int64_t feed)
{
    int number = tfos__queue_names_find(&host->names, queue);

    if (number >= 0)
        tfos__queue_end_batch(&host->queues[number], feed);
}

void tfos__feed_host_fence(struct tfos__feed_host *host, struct tfos__feed_event *attempt)
{
    int number = tfos__queue_names_find(&host->names, attempt->queue);
    struct tfos__feed_attempt *entry = NULL;

    attempt->rows = 0;
    attempt->complete = false;
    // Without memory for the entry, a zombie that never came here yet could come later; its first
    // row would then be refused by the rows that are there.
    if (attempt->feed < 1 || number < 0 ||
        tfos__feed_attempt_get(&host->queues[number].attempts, attempt->feed, attempt->partition,
                               &entry, NULL) != TFOS_OK)
        return;
    tfos__feed_attempt_fence(entry, attempt->attempt);
    struct tfos__feed_connection *connection = entry->connection;
    if (connection && connection->attempt < attempt->attempt) {
        tfos__feed_host_close_attempt(connection, false);
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
        each->is_stalled = false;
        if (each->relay)
            tfos__relay_send(each->relay, message, false);
        else
            tfos__server_send(&each->base, message, NULL, 0);
    }
    tfos__server_flush(&host->server);
}

void tfos__feed_host_get_stats(struct tfos__feed_host *host, struct tfos__feed_stats *stats)
{
    const struct tfos__pool *pool = &host->pool;
    uint64_t writers_us = pool->gone_waited_us, readers_us = 0;

    *stats = (struct tfos__feed_stats){.rows_written = (int64_t)pool->gone_rows_written,
                                       .bytes_written = (int64_t)pool->gone_bytes,
                                       .is_drained = true,
                                       .is_terminated = true};
    for (size_t i = 0; i < pool->count; i++) {
        const struct tfos__pool_lane *lane = pool->lanes[i];
        uint64_t tail = atomic_load(&lane->page->tail) & ~TFOS__TAIL_ABANDONED;
        uint64_t head = atomic_load(&lane->page->head) & ~TFOS__HEAD_FENCED;
        if (lane->is_written)
            stats->rows_written += (int64_t)(tfos__pool_lane_rows(lane, NULL) - lane->first_row);
        stats->bytes_written += (int64_t)head;
        writers_us += atomic_load(&lane->page->waited_us);
        stats->used_size += head - tail <= lane->size ? (int64_t)(head - tail) : 0;
        stats->total_size += (int64_t)lane->size;
        stats->writer_count += lane->is_written;
    }
    struct tfos__feed_queue_stats queue;
    for (int i = 0; tfos__feed_host_get_queue(host, i, &queue); i++) {
        stats->rows_read += queue.rows_read;
        stats->is_drained &= queue.is_drained;
        stats->is_terminated &= queue.is_terminated;
        readers_us += atomic_load(&host->queues[i].board->page->waited_us);
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
    const struct tfos__queue *queue = &host->queues[number];
    *out = (struct tfos__feed_queue_stats){.name = queue->name,
                                           .rows_read = (int64_t)host->pool.gone_rows_read[number],
                                           .is_drained = true,
                                           .is_terminated =
                                               tfos__queue_state(queue) == TFOS__FEED_TERMINATED};
    for (size_t i = 0; i < host->pool.count; i++) {
        const struct tfos__pool_lane *lane = host->pool.lanes[i];
        if (lane->queue != number)
            continue;
        out->rows_read += (int64_t)atomic_load(&lane->page->rows_released);
        out->is_drained &= out->is_terminated || tfos__pool_lane_is_read(lane);
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
    tfos__pool_clear(&host->pool);
    for (int i = 0; i < TFOS__QUEUE_LIMIT; i++)
        tfos__queue_close(&host->queues[i]);
    tfos__free((char *)(uintptr_t)host->identity.cluster_id);
    tfos__free(host->message);
    tfos__free(host->events);
    explicit_bzero(host->identity.key, sizeof host->identity.key);
    explicit_bzero(host->token, sizeof host->token);
    tfos__free(host);
}
