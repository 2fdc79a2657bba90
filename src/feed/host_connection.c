// SPDX-License-Identifier: Apache-2.0
// A writer's connection to the host, from its first byte to its end. What is wrong with a peer ends
// that peer and nothing else.
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/socket.h"
#include "feed/host.h"
#include "feed/keepalive.h"

#define ACCEPTS_AT_ONCE 64
#define FIRST_FRAME_MS 10000
#define LAST_WORD_MS 3000
#define SILENT_LIMIT 1024     ///< connections from which nothing was accepted yet
#define QUEUE_LIMIT (1 << 20) ///< bytes queued towards a writer, which reads only messages here

static void start_connection(struct tfos_feed_host *host, int fd, bool is_remote, const char *peer)
{
    struct tfos__connection *connection = tfos__alloc(1, sizeof *connection);

    if (!connection) {
        close(fd);
        return;
    }
    // A remote machine that vanishes must not hold its lane for hours.
    if (is_remote)
        tfos__keepalive_set(fd);
    if (tfos__channel_open(fd, is_remote ? TFOS__CHANNEL_TLS_SERVER : TFOS__CHANNEL_UNIX,
                           &host->identity, peer, &connection->channel, NULL) != TFOS_OK ||
        tfos__channel_expect_bulk(connection->channel, NULL) != TFOS_OK) {
        tfos__channel_close(connection->channel);
        tfos__free(connection);
        return;
    }
    connection->host = host;
    connection->is_remote = is_remote;
    connection->deadline = tfos__deadline(FIRST_FRAME_MS);
    connection->events = EPOLLIN;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(host->epoll_fd, EPOLL_CTL_ADD, tfos__channel_fd(connection->channel), &event) !=
        0) {
        tfos__channel_close(connection->channel);
        tfos__free(connection);
        return;
    }
    connection->next = host->connections;
    host->connections = connection;
    host->connection_count++;
    host->silent_count++;
}

void tfos__host_accept(struct tfos_feed_host *host, bool is_remote)
{
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        char peer[TFOS__ADDRESS_SIZE];
        int fd = -1;
        enum tfos_status status =
            tfos__socket_accept(is_remote ? host->tcp_fd : host->unix_fd, &fd, peer, NULL);
        if (status != TFOS_OK)
            return;
        if (host->silent_count >= SILENT_LIMIT)
            close(fd);
        else
            start_connection(host, fd, is_remote, peer);
    }
}

static void update_events(struct tfos__connection *connection)
{
    struct epoll_event event = {.events = tfos__channel_events(connection->channel),
                                .data.ptr = connection};

    if (event.events == connection->events)
        return;
    connection->events = event.events;
    (void)epoll_ctl(connection->host->epoll_fd, EPOLL_CTL_MOD,
                    tfos__channel_fd(connection->channel), &event);
}

void tfos__connection_send(struct tfos__connection *connection, json_t *message, const int *fds,
                           int fd_count)
{
    if (connection->is_dead || connection->is_ending) {
        json_decref(message);
        return;
    }
    if (tfos__channel_queue(connection->channel, message, fds, fd_count, NULL) != TFOS_OK ||
        tfos__channel_pump(connection->channel, NULL) != TFOS_OK ||
        tfos__channel_pending_size(connection->channel) > QUEUE_LIMIT)
        connection->is_dead = true;
    else
        update_events(connection);
    // The channel reads whenever it writes: a quick answer may be there already.
    uint64_t one = 1;
    if (!connection->is_unread)
        (void)!write(connection->host->wake_fd, &one, sizeof one);
    connection->is_unread = true;
}

void tfos__connection_end(struct tfos__connection *connection, json_t *message)
{
    tfos__connection_send(connection, message, NULL, 0);
    connection->is_waiting = false;
    connection->is_ending = true;
    connection->deadline = tfos__deadline(LAST_WORD_MS);
}

void tfos__connection_dismiss(struct tfos__connection *connection, json_t *message)
{
    if (connection->relay) {
        connection->is_waiting = false;
        tfos__relay_send(connection->relay, message, true);
    } else if (connection->is_waiting) {
        tfos__connection_end(connection, message);
    } else {
        tfos__connection_send(connection, message, NULL, 0);
    }
}

// The writer asks what the trainer is doing.
static void report_stall(struct tfos__connection *connection)
{
    struct tfos_feed_event event = {.kind = TFOS_FEED_STALLED,
                                    .lane = connection->lane ? connection->lane->number : -1,
                                    .fd = -1,
                                    .queue = connection->queue ? connection->queue->name : NULL,
                                    .feed = connection->feed,
                                    .partition = connection->partition,
                                    .attempt = connection->attempt};

    // Without memory nobody is asked, and the writer times out without an explanation.
    if (!connection->has_opened || connection->is_stalled ||
        !tfos__host_reserve_event(connection->host))
        return;
    tfos__host_emit(connection->host, &event);
    connection->is_stalled = true;
}

static void hear(struct tfos__connection *connection, const json_t *message)
{
    const char *type = tfos__json_string_or(message, "type", "");

    if (strcmp(type, "open") == 0) {
        tfos__host_admit(connection, message);
    } else if (strcmp(type, "stalled") == 0) {
        report_stall(connection);
    } else {
        // "close", or a type that is none of ours: the end in both cases. What was published says
        // the lane itself.
        connection->is_dead = true;
    }
}

void tfos__connection_step(struct tfos__connection *connection)
{
    if (connection->is_dead || !connection->channel)
        return;
    enum tfos_status pumped = tfos__channel_pump(connection->channel, NULL);
    connection->is_unread = false;
    while (!connection->is_dead && connection->channel) {
        json_t *message = NULL;
        enum tfos_status status =
            tfos__channel_next(connection->channel, &message, NULL, NULL, NULL);
        if (status != TFOS_OK) {
            connection->is_dead |= status != TFOS_AGAIN;
            break;
        }
        if (!connection->is_ending)
            hear(connection, message);
        json_decref(message);
    }
    if (!connection->channel)
        return; // a relay has it now
    connection->is_dead |= pumped != TFOS_OK;
    if (!connection->is_dead)
        update_events(connection);
}

void tfos__connection_check_relay(struct tfos__connection *connection)
{
    struct tfos__relay_news news;

    if (!connection->relay || connection->is_dead)
        return;
    tfos__relay_check(connection->relay, &news);
    if (news.wanted_size > 0 && connection->lane && !connection->is_closed)
        tfos__host_change_lane(connection, news.wanted_size);
    if (news.is_stalled)
        report_stall(connection);
    connection->is_dead |= news.has_ended;
}

void tfos__connection_check_deadline(struct tfos__connection *connection, int64_t now_ms)
{
    bool is_late = now_ms >= connection->deadline;

    if (connection->is_ending)
        connection->is_dead |= is_late || tfos__channel_pending_size(connection->channel) == 0;
    else if (!connection->has_opened)
        connection->is_dead |= is_late;
}

void tfos__connection_free(struct tfos__connection *connection)
{
    struct tfos_feed_host *host = connection->host;

    // The relay's thread ends before its lane is fenced, so that all it published counts and
    // nothing follows.
    tfos__relay_close(connection->relay);
    tfos__host_close_attempt(connection, true);
    for (size_t i = 0; i < host->pool.count; i++)
        if (host->pool.lanes[i]->owner == connection)
            tfos__pool_give_back(&host->pool, host->pool.lanes[i]);
    if (connection->channel)
        tfos__channel_close(connection->channel);
    if (!connection->has_opened)
        host->silent_count--;
    host->connection_count--;
    // The reader may be asleep beside a lane that has now come to its end.
    if (connection->queue)
        tfos__bell_ring(tfos__board_bell(connection->queue->board));
    tfos__free(connection);
}
