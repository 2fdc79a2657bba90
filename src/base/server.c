// SPDX-License-Identifier: Apache-2.0
// A dropped connection stays in memory until the events of the step are handled and it is in no
// list, so that nothing refers to freed memory.
#include "base/server.h"

#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/socket.h"

#define NEW_LIMIT 1024 // connections that have not said hello
#define TOO_MANY "1,024 connections have not said hello yet"
#define ACCEPTS_AT_ONCE 64
#define PAUSE_MS 100 // when descriptors or memory have run out

static bool watch(struct tfos__server *server, int fd, uint32_t events, void *tag, int operation)
{
    struct epoll_event event = {.events = events, .data.ptr = tag};
    return epoll_ctl(server->epoll_fd, operation, fd, &event) == 0;
}

enum tfos_status tfos__server_init(struct tfos__server *server,
                                   const struct tfos__server_options *options,
                                   struct tfos_error *err)
{
    *server = (struct tfos__server){.options = *options, .due_ms = TFOS__NEVER};
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->epoll_fd < 0 || server->wake_fd < 0 ||
        !watch(server, server->wake_fd, EPOLLIN, &server->wake_fd, EPOLL_CTL_ADD))
        return tfos__fail_errno(err, TFOS_IO, "server: cannot make its descriptors");
    return TFOS_OK;
}

enum tfos_status tfos__server_listen(struct tfos__server *server, int fd, bool is_local,
                                     struct tfos_error *err)
{
    struct tfos__server_listener *listener = &server->listeners[server->listener_count++];
    *listener = (struct tfos__server_listener){fd, is_local};
    if (!watch(server, fd, EPOLLIN, listener, EPOLL_CTL_ADD))
        return tfos__fail_errno(err, TFOS_IO, "server: cannot watch a listener");
    return TFOS_OK;
}

enum tfos_status tfos__server_watch(struct tfos__server *server, int fd, struct tfos_error *err)
{
    if (!watch(server, fd, EPOLLIN, NULL, EPOLL_CTL_ADD))
        return tfos__fail_errno(err, TFOS_IO, "server: cannot watch descriptor %d", fd);
    return TFOS_OK;
}

// Epoll must not report what cannot be accepted.
static void set_paused(struct tfos__server *server, bool is_paused)
{
    server->is_paused = is_paused;
    server->resume_ms = is_paused ? tfos__deadline(PAUSE_MS) : 0;
    for (int i = 0; i < server->listener_count; i++)
        (void)watch(server, server->listeners[i].fd, is_paused ? 0 : EPOLLIN, &server->listeners[i],
                    EPOLL_CTL_MOD);
}

static void set_deadline(struct tfos__server_connection *connection, int64_t timeout_ms)
{
    struct tfos__server *server = connection->server;
    connection->deadline = tfos__deadline(timeout_ms);
    if (connection->deadline < server->due_ms)
        server->due_ms = connection->deadline;
}

// Takes over `fd`. Where it fails the peer sees its connection end, and may try again.
static void add(struct tfos__server *server, int fd, bool is_local, const char *address)
{
    const struct tfos__server_options *options = &server->options;
    struct tfos__server_connection *connection = tfos__alloc(1, options->handler->connection_size);
    if (!connection) {
        close(fd);
        return;
    }
    enum tfos__channel_kind kind = is_local ? TFOS__CHANNEL_UNIX : TFOS__CHANNEL_TLS_SERVER;
    if (tfos__channel_open(fd, kind, options->identity, address, &connection->channel, NULL) !=
        TFOS_OK)
        goto free_connection;
    if (options->use == TFOS__TCP_BULK &&
        tfos__channel_expect_bulk(connection->channel, NULL) != TFOS_OK)
        goto close_channel;
    connection->events = tfos__channel_events(connection->channel);
    if (!watch(server, fd, connection->events, connection, EPOLL_CTL_ADD))
        goto close_channel;
    connection->server = server;
    connection->is_local = is_local;
    connection->is_new = true;
    set_deadline(connection, options->hello_timeout_ms);
    connection->next = server->connections;
    if (connection->next)
        connection->next->previous = connection;
    server->connections = connection;
    server->connection_count++;
    server->new_count++;
    options->handler->accepted(connection, address);
    return;

close_channel:
    tfos__channel_close(connection->channel);
free_connection:
    tfos__free(connection);
}

static void reject(struct tfos__server *server, int fd, const char *address)
{
    close(fd);
    if (server->options.handler->rejected)
        server->options.handler->rejected(server->options.context, address, TOO_MANY);
}

static void accept_all(struct tfos__server *server, const struct tfos__server_listener *listener)
{
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        int fd;
        char address[TFOS__ADDRESS_SIZE];
        enum tfos_status status = tfos__socket_accept(listener->fd, &fd, address, NULL);
        if (status < 0)
            set_paused(server, true);
        if (status != TFOS_OK)
            return;
        if (server->new_count >= NEW_LIMIT) {
            reject(server, fd, address);
            continue;
        }
        if (!listener->is_local)
            tfos__socket_watch_peer(fd, server->options.use);
        add(server, fd, listener->is_local, address);
    }
}

struct tfos__channel *tfos__server_detach(struct tfos__server_connection *connection)
{
    struct tfos__channel *channel = connection->channel;
    connection->channel = NULL;
    if (channel)
        epoll_ctl(connection->server->epoll_fd, EPOLL_CTL_DEL, tfos__channel_fd(channel), NULL);
    return channel;
}

void tfos__server_drop(struct tfos__server_connection *connection, bool is_breach,
                       const char *cause)
{
    struct tfos__server *server = connection->server;
    if (connection->is_dropped)
        return;
    connection->is_dropped = true;
    server->new_count -= connection->is_new;
    server->connection_count--;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    connection->next_dropped = server->dropped;
    server->dropped = connection;
    struct tfos__channel *channel = tfos__server_detach(connection);
    server->options.handler->dropped(connection, is_breach, cause);
    tfos__channel_close(channel);
}

static void mark_unflushed(struct tfos__server_connection *connection)
{
    if (connection->is_unflushed)
        return;
    connection->is_unflushed = true;
    connection->next_unflushed = connection->server->unflushed;
    connection->server->unflushed = connection;
}

void tfos__server_send(struct tfos__server_connection *connection, json_t *message, const int *fds,
                       int fd_count)
{
    size_t limit = connection->server->options.pending_limit;
    if (!connection->channel || connection->is_broken || connection->is_ending) {
        json_decref(message);
        return;
    }
    enum tfos_status status =
        tfos__channel_queue(connection->channel, message, fds, fd_count, &connection->cause);
    size_t pending_size = tfos__channel_pending_size(connection->channel);
    if (status == TFOS_OK && pending_size > limit)
        status = tfos__fail(&connection->cause, TFOS_IO, "%s does not read: %zu bytes wait for it",
                            tfos__channel_peer(connection->channel), pending_size);
    connection->is_broken = status != TFOS_OK;
    mark_unflushed(connection);
}

void tfos__server_accept_hello(struct tfos__server_connection *connection)
{
    if (!connection->is_new || connection->is_dropped)
        return;
    connection->is_new = false;
    connection->server->new_count--;
    if (!connection->is_ending)
        connection->deadline = TFOS__NEVER;
}

void tfos__server_end(struct tfos__server_connection *connection)
{
    if (connection->is_ending || connection->is_dropped)
        return;
    connection->is_ending = true;
    set_deadline(connection, connection->server->options.ending_timeout_ms);
}

static void update_events(struct tfos__server_connection *connection)
{
    if (!connection->channel)
        return;
    uint32_t events = tfos__channel_events(connection->channel);
    if (events == connection->events)
        return;
    connection->events = events;
    if (!watch(connection->server, tfos__channel_fd(connection->channel), events, connection,
               EPOLL_CTL_MOD))
        tfos__server_drop(connection, false, "the server cannot watch its connection");
}

static void drop_failed(struct tfos__server_connection *connection, enum tfos_status status,
                        const struct tfos_error *cause)
{
    char text[sizeof(cause->message) + 32];
    snprintf(text, sizeof(text), "%s: %s",
             status == TFOS_CLOSED ? "its connection ended" : "its connection failed",
             cause->message);
    tfos__server_drop(connection, status != TFOS_CLOSED, text);
}

static void drop_breach(struct tfos__server_connection *connection, const struct tfos_error *cause)
{
    char text[sizeof(cause->message) + 32];
    snprintf(text, sizeof(text), "it broke the protocol: %s", cause->message);
    tfos__server_drop(connection, true, text);
}

// Reads, and handles what has come. Writes, too, as the channel does.
static void serve(struct tfos__server_connection *connection)
{
    const struct tfos__server_handler *handler = connection->server->options.handler;
    struct tfos_error err;
    enum tfos_status status = TFOS_AGAIN;
    // A failure is kept by the channel, and next() gives it after what came before it.
    if (connection->channel)
        (void)tfos__channel_pump(connection->channel, NULL);
    while (connection->channel) {
        json_t *message;
        status = tfos__channel_next(connection->channel, &message, NULL, NULL, &err);
        if (status != TFOS_OK)
            break;
        enum tfos_status handled =
            connection->is_ending ? TFOS_OK : handler->message(connection, message, &err);
        json_decref(message);
        if (handled < 0) {
            drop_breach(connection, &err);
            return;
        }
    }
    if (status < 0)
        drop_failed(connection, status, &err);
    else
        update_events(connection);
}

static void flush(struct tfos__server_connection *connection)
{
    if (!connection->channel)
        return;
    if (connection->is_broken)
        tfos__server_drop(connection, true, connection->cause.message);
    else if (!tfos__channel_is_ready(connection->channel) ||
             tfos__channel_flush(connection->channel, NULL) != TFOS_OK)
        serve(connection); // which also finds out how it failed
    else
        update_events(connection);
}

void tfos__server_flush(struct tfos__server *server)
{
    while (server->unflushed) {
        struct tfos__server_connection *connection = server->unflushed;
        server->unflushed = connection->next_unflushed;
        connection->is_unflushed = false;
        flush(connection);
    }
}

static void drop_late(struct tfos__server_connection *connection)
{
    char text[96];
    if (connection->is_ending) {
        tfos__server_drop(connection, false, "it was told to go");
        return;
    }
    snprintf(text, sizeof(text), "it has not said hello within %lld ms",
             (long long)connection->server->options.hello_timeout_ms);
    tfos__server_drop(connection, true, text);
}

static void expire(struct tfos__server *server)
{
    int64_t now_ms = tfos__now_ms();
    if (now_ms < server->due_ms)
        return;
    server->due_ms = TFOS__NEVER;
    for (struct tfos__server_connection *each = server->connections; each; each = each->next) {
        if (now_ms >= each->deadline)
            drop_late(each);
        else if (each->deadline < server->due_ms)
            server->due_ms = each->deadline;
    }
}

static void free_dropped(struct tfos__server *server)
{
    struct tfos__server_connection *kept = NULL, *next;
    for (struct tfos__server_connection *each = server->dropped; each; each = next) {
        next = each->next_dropped;
        if (each->is_unflushed) {
            each->next_dropped = kept;
            kept = each;
        } else {
            tfos__free(each);
        }
    }
    server->dropped = kept;
}

void tfos__server_wait(struct tfos__server *server, int64_t deadline)
{
    if (server->is_paused && server->resume_ms < deadline)
        deadline = server->resume_ms;
    if (server->due_ms < deadline)
        deadline = server->due_ms;
    server->event_count = epoll_wait(server->epoll_fd, server->events, TFOS__SERVER_EVENTS,
                                     tfos__remaining_ms(deadline));
}

static void handle_event(struct tfos__server *server, void *tag)
{
    if (tag == &server->wake_fd) {
        uint64_t count;
        (void)!read(server->wake_fd, &count, sizeof(count));
        return;
    }
    for (int i = 0; i < server->listener_count; i++) {
        if (tag == &server->listeners[i]) {
            accept_all(server, &server->listeners[i]);
            return;
        }
    }
    if (tag)
        serve(tag);
}

void tfos__server_step(struct tfos__server *server)
{
    if (server->is_paused && tfos__remaining_ms(server->resume_ms) == 0)
        set_paused(server, false);
    for (int i = 0; i < server->event_count; i++)
        handle_event(server, server->events[i].data.ptr);
    server->event_count = 0;
    tfos__server_flush(server);
    expire(server);
    free_dropped(server);
}

void tfos__server_wake(struct tfos__server *server)
{
    uint64_t one = 1;
    // The counter of an eventfd can only be full when the thread is awake already.
    (void)!write(server->wake_fd, &one, sizeof(one));
}

bool tfos__server_has_pending(const struct tfos__server *server)
{
    for (const struct tfos__server_connection *each = server->connections; each; each = each->next)
        if (each->channel && tfos__channel_is_ready(each->channel) &&
            tfos__channel_pending_size(each->channel) > 0)
            return true;
    return server->unflushed != NULL;
}

void tfos__server_clear(struct tfos__server *server, const char *cause)
{
    // A drop may queue messages for others; those are dropped, too.
    while (server->connections)
        tfos__server_drop(server->connections, false, cause);
    tfos__server_flush(server);
    free_dropped(server);
    for (int i = 0; i < server->listener_count; i++)
        close(server->listeners[i].fd);
    if (server->epoll_fd >= 0)
        close(server->epoll_fd);
    if (server->wake_fd >= 0)
        close(server->wake_fd);
    *server = (struct tfos__server){.epoll_fd = -1, .wake_fd = -1};
}
