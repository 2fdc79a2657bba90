// SPDX-License-Identifier: Apache-2.0
// A writer's connection to the host, from its first byte to its end: the token, the attempt's
// standing among the others of its partition, and then, in the order of coming, a channel. Each row
// of a partition is accepted once: an attempt that would repeat rows is refused. What is wrong with
// a peer ends that peer and nothing else.
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "feed/host.h"

// ---- connections

struct tfos__feed_connection *tfos__feed_host_first(const struct tfos__feed_host *host)
{
    return (struct tfos__feed_connection *)host->server.connections;
}

struct tfos__feed_connection *tfos__feed_host_next(const struct tfos__feed_connection *connection)
{
    return (struct tfos__feed_connection *)connection->base.next;
}

static void end_connection(struct tfos__feed_connection *connection, json_t *message)
{
    tfos__server_send(&connection->base, message, NULL, 0);
    tfos__server_end(&connection->base);
    connection->is_waiting = false;
}

void tfos__feed_connection_dismiss(struct tfos__feed_connection *connection, json_t *message)
{
    if (connection->proxy) {
        connection->is_waiting = false;
        tfos__feed_remote_proxy_send(connection->proxy, message, true);
    } else if (connection->is_waiting) {
        end_connection(connection, message);
    } else {
        tfos__server_send(&connection->base, message, NULL, 0);
    }
}

struct tfos__feed_event tfos__feed_connection_event(const struct tfos__feed_connection *connection,
                                                    enum tfos__feed_event_kind kind)
{
    return (struct tfos__feed_event){.kind = kind,
                                     .channel =
                                         connection->channel ? connection->channel->number : -1,
                                     .fd = -1,
                                     .queue = connection->queue->name,
                                     .feed = connection->feed,
                                     .partition = connection->partition,
                                     .attempt = connection->attempt,
                                     .rows = (int64_t)connection->rows,
                                     .written = (int64_t)connection->written,
                                     .complete = connection->is_complete};
}

// ---- attempts

static void refuse(struct tfos__feed_connection *connection, enum tfos_status status,
                   const char *words)
{
    end_connection(connection, json_pack("{ss ss ss}", "type", "refused", "status",
                                         tfos_status_name(status), "message", words));
}

// Reads the members of an `open` into the connection.
static enum tfos_status read_open(struct tfos__feed_connection *connection, const json_t *message,
                                  struct tfos_error *err)
{
    const int64_t max = INT64_MAX / 2;
    const char *token = NULL, *queue = NULL;
    int64_t size = 0;
    int number = 0;

    TFOS__TRY(tfos__json_get_string(message, "token", &token, err));
    if (!tfos__cluster_key_is_proven(token, connection->host->token))
        return tfos__fail(err, TFOS_DENIED, "the writer does not hold this cluster's key");
    TFOS__TRY(tfos__json_get_string(message, "queue", &queue, err));
    TFOS__TRY(tfos__queue_names_get(&connection->host->names, queue, &number, err));
    connection->queue = &connection->host->queues[number];
    TFOS__TRY(tfos__json_get_int(message, "feed", 1, max, &connection->feed, err));
    TFOS__TRY(tfos__json_get_int(message, "partition", 0, max, &connection->partition, err));
    TFOS__TRY(tfos__json_get_int(message, "attempt", 0, max, &connection->attempt, err));
    TFOS__TRY(tfos__json_get_int(message, "first_row", 0, max, &connection->first_row, err));
    TFOS__TRY(tfos__json_get_int(message, "size", 0, TFOS__FEED_CHANNEL_SIZE_LIMIT, &size, err));
    connection->timeout_ms = tfos__json_int_or(message, "timeout_ms", TFOS__FEED_TIMEOUT_MS);
    connection->has_results = tfos__json_bool_or(message, "results", false);
    connection->is_extra = tfos__json_bool_or(message, "extra", false);
    if (size == 0)
        size = TFOS__FEED_CHANNEL_SIZE;
    connection->size = tfos__feed_whole_pages((uint64_t)size);
    return TFOS_OK;
}

// Keeps what was published in the channel that the writer leaves, and where it stopped: what
// follows, be it in a larger channel or by another attempt, is read after it.
static void remember_place(struct tfos__feed_connection *connection)
{
    const struct tfos__feed_pool_channel *channel = connection->channel;

    connection->before_channel = (uint64_t)channel->number + 1;
    connection->before_head = atomic_load(&channel->page->head) & ~TFOS__FEED_HEAD_FENCED;
    struct tfos__feed_rows rows = tfos__feed_pool_channel_rows(channel);
    connection->rows = rows.count;
    connection->is_complete = rows.is_complete;
    connection->written += tfos__feed_pool_channel_written(channel);
}

void tfos__feed_host_close_attempt(struct tfos__feed_connection *connection, bool is_announced)
{
    struct tfos__feed_host *host = connection->host;

    if (!connection->has_opened || connection->is_closed)
        return;
    connection->is_closed = true;
    for (size_t i = 0; i < host->pool.count; i++)
        if (host->pool.channels[i]->owner == connection)
            tfos__feed_channel_pool_fence(&host->pool, host->pool.channels[i]);
    if (connection->channel)
        remember_place(connection);
    struct tfos__feed_attempt *entry = tfos__feed_attempt_table_find(
        &connection->queue->attempts, connection->feed, connection->partition);
    if (entry && entry->connection == connection) {
        entry->connection = NULL;
        entry->rows = (int64_t)connection->rows;
        entry->is_complete = connection->is_complete;
        entry->last_channel = connection->before_channel;
        entry->last_head = connection->before_head;
    }
    struct tfos__feed_closed_attempt *closed = connection->closing;
    connection->closing = NULL;
    if (!is_announced) {
        tfos__free(closed);
        return;
    }
    closed->event = tfos__feed_connection_event(connection, TFOS__FEED_ATTEMPT_CLOSED);
    *host->closed_end = closed;
    host->closed_end = &closed->next;
}

// Ends the living attempt of the partition, which `connection` supersedes.
static void supersede(struct tfos__feed_attempt *entry,
                      const struct tfos__feed_connection *connection)
{
    struct tfos__feed_connection *old = entry->connection;

    tfos__feed_host_close_attempt(old, true);
    tfos__feed_connection_dismiss(
        old, json_pack("{ss sI}", "type", "fenced", "attempt", (json_int_t)connection->attempt));
}

// Enters the attempt into the table, or says why not.
static enum tfos_status enter_attempt(struct tfos__feed_connection *connection,
                                      struct tfos_error *err)
{
    struct tfos__feed_attempt *entry = NULL;

    TFOS__TRY(tfos__feed_attempt_table_get(&connection->queue->attempts, connection->feed,
                                           connection->partition, &entry, err));
    if (connection->attempt < entry->superseded ||
        (entry->connection && connection->attempt <= entry->attempt))
        return tfos__fail(err, TFOS_BUSY, "attempt %lld was superseded by attempt %lld",
                          (long long)connection->attempt,
                          (long long)(entry->connection && entry->attempt > entry->superseded
                                          ? entry->attempt
                                          : entry->superseded));
    if (entry->connection)
        supersede(entry, connection);
    if (!connection->has_results && connection->first_row < entry->rows)
        return tfos__fail(
            err, TFOS_INVALID,
            "attempt %lld would begin at row %lld, but %lld rows of the partition were delivered",
            (long long)connection->attempt, (long long)connection->first_row,
            (long long)entry->rows);
    entry->attempt = connection->attempt;
    entry->superseded = connection->attempt;
    entry->connection = connection;
    entry->rows = connection->first_row;
    entry->is_complete = false;
    entry->has_results = connection->has_results;
    connection->before_channel = entry->last_channel;
    connection->before_head = entry->last_head;
    return TFOS_OK;
}

static void start_waiting(struct tfos__feed_connection *connection)
{
    connection->is_waiting = true;
    connection->ticket = connection->host->next_ticket++;
}

// The writer of this connection goes on in a larger channel. Without results, the old one goes back
// at once: it may be what stands in the way of the new one.
static void change_channel(struct tfos__feed_connection *connection, uint64_t size)
{
    struct tfos__feed_pool_channel *channel = connection->channel;

    remember_place(connection);
    connection->channel = NULL;
    if (connection->has_results)
        tfos__feed_channel_pool_leave(&connection->host->pool, channel);
    else
        tfos__feed_channel_pool_give_back(&connection->host->pool, channel);
    connection->size = tfos__feed_whole_pages(size);
    start_waiting(connection);
}

static enum tfos_status reopen(struct tfos__feed_connection *connection, const json_t *message,
                               struct tfos_error *err)
{
    struct tfos__feed_connection asked = {.host = connection->host};

    TFOS__TRY(read_open(&asked, message, err));
    if (!connection->channel || connection->is_waiting || connection->is_closed ||
        asked.queue != connection->queue || asked.feed != connection->feed ||
        asked.partition != connection->partition || asked.attempt != connection->attempt)
        return tfos__fail(err, TFOS_INVALID,
                          "a second open on this connection is for another attempt");
    change_channel(connection, asked.size);
    return TFOS_OK;
}

static void admit(struct tfos__feed_connection *connection, const json_t *message)
{
    struct tfos_error err;
    enum tfos_status status;

    if (connection->has_opened) {
        status = reopen(connection, message, &err);
        if (status != TFOS_OK)
            refuse(connection, status, err.message);
        return;
    }
    status = read_open(connection, message, &err);
    json_t *last = status == TFOS_OK ? tfos__feed_host_close_message(connection) : NULL;
    if (last) {
        end_connection(connection, last);
        return;
    }
    if (status == TFOS_OK) {
        connection->closing = tfos__alloc(1, sizeof(*connection->closing));
        status = connection->closing ? enter_attempt(connection, &err)
                                     : tfos__no_memory(&err, "feed", "an attempt");
    }
    if (status != TFOS_OK) {
        refuse(connection, status, err.message);
        return;
    }
    connection->has_opened = true;
    tfos__server_accept_hello(&connection->base);
    connection->rows = (uint64_t)connection->first_row;
    start_waiting(connection);
}

static json_t *channel_message(const struct tfos__feed_queue *queue,
                               const struct tfos__feed_pool_channel *channel)
{
    const struct tfos__feed_control_page *page = queue->control->page;

    return json_pack("{ss si sI sI sI}", "type", "channel", "channel", channel->number, "size",
                     (json_int_t)channel->size, "batch_rows",
                     (json_int_t)atomic_load(&page->batch_rows), "step_rows",
                     (json_int_t)atomic_load(&page->step_rows));
}

static bool hand_to_writer(struct tfos__feed_connection *connection,
                           struct tfos__feed_pool_channel *channel)
{
    int fds[2] = {channel->fd, connection->queue->control_fd};

    tfos__server_send(&connection->base, channel_message(connection->queue, channel), fds, 2);
    return true;
}

// The rest of the conversation is the proxy's.
static bool start_proxy(struct tfos__feed_connection *connection,
                        struct tfos__feed_pool_channel *channel)
{
    struct tfos__feed_host *host = connection->host;
    struct tfos__channel *peer = connection->base.channel;
    struct tfos__feed_remote_proxy_options options = {.connection = peer,
                                                      .control = connection->queue->control,
                                                      .channel_fd = channel->fd,
                                                      .wake_fd = host->server.wake_fd,
                                                      .feed = connection->feed,
                                                      .partition = connection->partition,
                                                      .attempt = connection->attempt,
                                                      .timeout_ms = connection->timeout_ms,
                                                      .has_results = connection->has_results};

    // The writer answers with records, which are no frames: nothing is read here any more.
    if (tfos__channel_queue(peer, channel_message(connection->queue, channel), NULL, 0, NULL) !=
            TFOS_OK ||
        tfos__channel_flush(peer, NULL) != TFOS_OK)
        return false;
    tfos__server_detach(&connection->base);
    return tfos__feed_remote_proxy_open(&options, &connection->proxy, NULL) == TFOS_OK;
}

static bool hand_over(struct tfos__feed_connection *connection,
                      struct tfos__feed_pool_channel *channel)
{
    if (connection->proxy)
        return tfos__feed_remote_proxy_give_channel(connection->proxy, channel->fd, NULL) ==
               TFOS_OK;
    if (!connection->base.is_local)
        return start_proxy(connection, channel);
    return hand_to_writer(connection, channel);
}

// AGAIN: there is no channel for it yet.
static enum tfos_status serve(struct tfos__feed_connection *connection, struct tfos_error *err)
{
    struct tfos__feed_host *host = connection->host;
    struct tfos__feed_pool_channel *channel = NULL;
    bool is_new = false;

    struct tfos__feed_channel_request request = {.queue = connection->queue->number,
                                                 .size = connection->size,
                                                 .result_size =
                                                     connection->has_results ? connection->size : 0,
                                                 .first_row = connection->rows,
                                                 .is_extra = connection->is_extra,
                                                 .owner = connection};
    enum tfos_status status =
        tfos__feed_channel_pool_take(&host->pool, &request, &channel, &is_new, err);
    if (status != TFOS_OK)
        return status;
    connection->channel = channel;
    connection->is_waiting = false;
    connection->has_written = true;
    atomic_store(&channel->page->before_channel, connection->before_channel);
    atomic_store(&channel->page->before_head, connection->before_head);
    if (is_new)
        atomic_fetch_add(&connection->queue->control->page->channel_count, 1);
    if (!hand_over(connection, channel))
        tfos__server_drop(&connection->base, false, "its channel could not be handed over");
    return TFOS_OK;
}

void tfos__feed_host_serve(struct tfos__feed_host *host)
{
    for (;;) {
        struct tfos__feed_connection *first = NULL;
        for (struct tfos__feed_connection *each = tfos__feed_host_first(host); each;
             each = tfos__feed_host_next(each))
            if (each->is_waiting && (!first || each->ticket < first->ticket))
                first = each;
        struct tfos_error err;
        enum tfos_status status = first ? serve(first, &err) : TFOS_AGAIN;
        if (status == TFOS_AGAIN)
            return;
        if (status < 0 && first->proxy)
            tfos__server_drop(&first->base, false, "there is no channel for it");
        else if (status < 0)
            refuse(first, status, err.message);
    }
}

// ---- what the server calls

static void accepted(struct tfos__server_connection *base, const char *address)
{
    (void)address;
    ((struct tfos__feed_connection *)base)->host = base->server->options.context;
}

static enum tfos_status handle_message(struct tfos__server_connection *base, const json_t *message,
                                       struct tfos_error *err)
{
    struct tfos__feed_connection *connection = (struct tfos__feed_connection *)base;
    const char *type = tfos__json_string_or(message, "type", "");

    (void)err;
    if (strcmp(type, "open") == 0)
        admit(connection, message);
    else if (strcmp(type, "stalled") == 0)
        connection->is_stalled |= connection->has_opened;
    else // "close", or a type that is none of ours. What was published says the channel itself.
        tfos__server_drop(base, false, "the writer has closed");
    return TFOS_OK;
}

void tfos__feed_connection_check_proxy(struct tfos__feed_connection *connection)
{
    if (!connection->proxy || connection->base.is_dropped)
        return;
    struct tfos__feed_proxy_requests requests = tfos__feed_remote_proxy_check(connection->proxy);
    if (requests.wanted_size > 0 && connection->channel && !connection->is_closed)
        change_channel(connection, requests.wanted_size);
    if (requests.is_stalled)
        connection->is_stalled |= connection->has_opened;
    if (requests.has_ended)
        tfos__server_drop(&connection->base, false, "its proxy has ended");
}

static void dropped(struct tfos__server_connection *base, bool is_breach, const char *cause)
{
    struct tfos__feed_connection *connection = (struct tfos__feed_connection *)base;
    struct tfos__feed_host *host = connection->host;

    (void)is_breach;
    (void)cause;
    // The proxy's thread ends before its channel is fenced, so that all it published counts and
    // nothing follows.
    tfos__feed_remote_proxy_close(connection->proxy);
    tfos__feed_host_close_attempt(connection, true);
    tfos__free(connection->closing); // of one that was not admitted
    for (size_t i = 0; i < host->pool.count; i++)
        if (host->pool.channels[i]->owner == connection)
            tfos__feed_channel_pool_give_back(&host->pool, host->pool.channels[i]);
    connection->is_waiting = false;
    connection->channel = NULL;
    // The reader may be asleep beside a channel that has now come to its end.
    if (connection->queue)
        tfos__feed_futex_wake(tfos__feed_control_futex(connection->queue->control));
}

const struct tfos__server_handler tfos__feed_host_handler = {
    .connection_size = sizeof(struct tfos__feed_connection),
    .accepted = accepted,
    .message = handle_message,
    .dropped = dropped};
