// SPDX-License-Identifier: Apache-2.0
// The life of a connection: accepted, within hello_timeout_ms past its hello, then until its end or
// that of the server. A dropped connection stays in memory until the events of the round are
// handled, so that none refers to freed memory.
#include "cluster/connection.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/socket.h"
#include "base/tcp_options.h"
#include "cluster/dispatch.h"
#include "cluster/explanation.h"
#include "cluster/server.h"

#define ENDING_TIMEOUT_MS 2000         // for a peer to read its last message and go
#define NEW_LIMIT 1024                 // connections that have not said hello
#define PENDING_SIZE_LIMIT (64u << 20) // bytes queued towards one peer
#define ACCEPT_PAUSE_MS 100            // when descriptors or memory have run out
#define DENIED_LIMIT 100               // events about refusals in one minute

/// Tells of a refusal, unless an attacker makes so many that other events would be lost over them.
static void tell_denied(struct tfos__server *server, const char *address, const char *message)
{
    int64_t now_ms = tfos__now_ms();
    if (now_ms - server->denied_ms >= 60000) {
        server->denied_ms = now_ms;
        server->denied_count = 0;
    }
    if (++server->denied_count > DENIED_LIMIT)
        return;
    char text[1024];
    tfos__explanation_copy(text, sizeof(text), message);
    const char *more =
        server->denied_count == DENIED_LIMIT ? " (the last one told this minute)" : "";
    tfos__cluster_tell(&server->cluster, NULL, "denied",
                       json_pack("{s:s, s:s+}", "peer", address, "message", text, more));
}

/// `is_breach`: by the peer's fault rather than its end.
static void drop(struct tfos__connection *connection, bool is_breach, const char *cause)
{
    struct tfos__server *server = connection->server;
    if (connection->is_dropped)
        return;
    connection->is_dropped = true;
    if (is_breach && connection->peer.kind != TFOS__PEER_NODE)
        tell_denied(server, connection->peer.address, cause);
    server->new_count -= connection->is_new;
    server->connection_count--;
    connection->is_new = false;
    tfos__dispatch_end(&connection->peer, cause);
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, tfos__channel_fd(connection->channel), NULL);
    tfos__channel_close(connection->channel);
    connection->channel = NULL;
    connection->next = server->dropped;
    server->dropped = connection;
}

static void mark_unsettled(struct tfos__connection *connection)
{
    if (connection->is_unsettled)
        return;
    connection->is_unsettled = true;
    connection->next_unsettled = connection->server->unsettled;
    connection->server->unsettled = connection;
}

static void send_message(struct tfos__peer *peer, json_t *message)
{
    struct tfos__connection *connection = (struct tfos__connection *)peer;
    if (connection->is_dropped || connection->is_broken) {
        json_decref(message);
        return;
    }
    enum tfos_status status =
        tfos__channel_queue(connection->channel, message, NULL, 0, &connection->cause);
    size_t pending_size = tfos__channel_pending_size(connection->channel);
    if (status == TFOS_OK && pending_size > PENDING_SIZE_LIMIT)
        status = tfos__fail(&connection->cause, TFOS_IO,
                            "rendezvous: %s does not read: %zu bytes wait for it",
                            connection->peer.address, pending_size);
    connection->is_broken = status != TFOS_OK;
    mark_unsettled(connection);
}

/// Adapts to what the peer has become and to what is left to write.
static void update(struct tfos__connection *connection)
{
    struct tfos__server *server = connection->server;
    if (connection->is_dropped)
        return;
    if (connection->is_broken) {
        drop(connection, true, connection->cause.message);
        return;
    }
    if (connection->is_new && connection->peer.kind != TFOS__PEER_NEW) {
        connection->is_new = false;
        connection->deadline = TFOS__NEVER;
        server->new_count--;
    }
    if (connection->peer.is_closing && !connection->is_ending) {
        connection->is_ending = true;
        connection->deadline = tfos__deadline(ENDING_TIMEOUT_MS);
    }
    struct epoll_event event = {.events = tfos__channel_events(connection->channel),
                                .data.ptr = connection};
    if (event.events == connection->events)
        return;
    connection->events = event.events;
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, tfos__channel_fd(connection->channel), &event) !=
        0)
        drop(connection, false, "the server cannot watch its connection");
}

static void drop_failed(struct tfos__connection *connection, enum tfos_status status,
                        const struct tfos_error *cause)
{
    char text[sizeof(cause->message) + 32];
    snprintf(text, sizeof(text), "%s: %s",
             status == TFOS_CLOSED ? "its connection ended" : "its connection failed",
             cause->message);
    drop(connection, status != TFOS_CLOSED, text);
}

void tfos__connection_serve(struct tfos__connection *connection)
{
    struct tfos_error err;
    if (connection->is_dropped)
        return;
    // A failure is kept by the channel, and next() gives it after what came before it.
    (void)tfos__channel_pump(connection->channel, NULL);
    enum tfos_status status;
    for (;;) {
        json_t *message;
        status = tfos__channel_next(connection->channel, &message, NULL, NULL, &err);
        if (status != TFOS_OK)
            break;
        enum tfos_status handled = tfos__dispatch_message(&connection->peer, message, &err);
        json_decref(message);
        if (handled < 0) {
            char text[sizeof(err.message) + 32];
            snprintf(text, sizeof(text), "it broke the protocol: %s", err.message);
            drop(connection, true, text);
            return;
        }
        if (connection->is_dropped)
            return;
    }
    if (status < 0)
        drop_failed(connection, status, &err);
    else
        update(connection);
}

void tfos__connection_settle_all(struct tfos__server *server)
{
    struct tfos__connection *next = server->unsettled;
    server->unsettled = NULL;
    while (next) {
        struct tfos__connection *connection = next;
        next = connection->next_unsettled;
        connection->is_unsettled = false;
        if (connection->is_broken)
            update(connection);
        else
            tfos__connection_serve(connection);
    }
}

static void drop_silent(struct tfos__connection *connection)
{
    char text[96];
    snprintf(text, sizeof(text), "rendezvous: it has not said hello within %lld ms",
             (long long)connection->server->cluster.hello_timeout_ms);
    drop(connection, true, text);
}

void tfos__connection_expire_all(struct tfos__server *server, int64_t now_ms)
{
    struct tfos__connection *next;
    for (struct tfos__connection *connection = server->connections; connection; connection = next) {
        next = connection->next;
        if (now_ms < connection->deadline)
            continue;
        if (connection->is_ending)
            drop(connection, false, "it was told to go");
        else
            drop_silent(connection);
    }
}

/// Takes over `fd`. Where it fails the peer sees its connection end, and may try again.
static void add(struct tfos__server *server, int fd, bool is_local, const char *address)
{
    struct tfos__connection *connection = tfos__alloc(1, sizeof(*connection));
    if (!connection) {
        close(fd);
        return;
    }
    enum tfos__channel_kind kind = is_local ? TFOS__CHANNEL_UNIX : TFOS__CHANNEL_TLS_SERVER;
    if (tfos__channel_open(fd, kind, &server->identity, address, &connection->channel, NULL) !=
        TFOS_OK)
        goto free_connection;
    connection->peer.cluster = &server->cluster;
    connection->peer.is_local = is_local;
    connection->peer.send = send_message;
    snprintf(connection->peer.address, sizeof(connection->peer.address), "%s", address);
    connection->server = server;
    connection->is_new = true;
    connection->deadline = tfos__deadline(server->cluster.hello_timeout_ms);
    connection->events = tfos__channel_events(connection->channel);
    struct epoll_event event = {.events = connection->events, .data.ptr = connection};
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, tfos__channel_fd(connection->channel), &event) !=
        0)
        goto close_channel;
    connection->next = server->connections;
    if (connection->next)
        connection->next->previous = connection;
    server->connections = connection;
    server->connection_count++;
    server->new_count++;
    return;

close_channel:
    tfos__channel_close(connection->channel);
free_connection:
    tfos__free(connection);
}

void tfos__connection_accept(struct tfos__server *server, int listener)
{
    bool is_local = listener == server->status_fd;
    for (;;) {
        int fd;
        char address[TFOS__ADDRESS_SIZE];
        enum tfos_status status = tfos__socket_accept(listener, &fd, address, NULL);
        if (status < 0)
            server->accept_ms = tfos__deadline(ACCEPT_PAUSE_MS);
        if (status != TFOS_OK)
            return;
        if (server->new_count >= NEW_LIMIT) {
            tell_denied(server, address, "rendezvous: 1,024 connections have not said hello yet");
            close(fd);
            continue;
        }
        if (!is_local)
            tfos__tcp_options_watch_peer(fd, TFOS__TCP_MESSAGES);
        add(server, fd, is_local, address);
    }
}

void tfos__connection_free_dropped(struct tfos__server *server)
{
    struct tfos__connection **link = &server->dropped;
    while (*link) {
        struct tfos__connection *connection = *link;
        if (connection->is_unsettled) {
            link = &connection->next;
            continue;
        }
        *link = connection->next;
        tfos__free(connection);
    }
}

void tfos__connection_close_all(struct tfos__server *server)
{
    // A drop may queue messages for others; those are dropped, too.
    while (server->connections)
        drop(server->connections, false, "the driver has closed the cluster");
    tfos__connection_settle_all(server);
    tfos__connection_free_dropped(server);
}
