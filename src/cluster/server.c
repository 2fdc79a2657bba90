// SPDX-License-Identifier: Apache-2.0
// The thread. It sleeps in epoll without the lock, and does everything else with it. Other threads
// change the cluster under the lock, queue messages, and wake it to write them.
#include "cluster/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cluster_key.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/socket.h"
#include "cluster/connection.h"
#include "cluster/overview.h"

#define EVENT_COUNT 64
#define TICK_MS 1000 // how often times are looked at, or more often with a short heartbeat timeout
#define FAREWELL_MS 500 // for the last messages to be taken when the server ends

static void wake_waits(struct tfos__server *server)
{
    if (!server->cluster.has_changed)
        return;
    server->cluster.has_changed = false;
    pthread_cond_broadcast(&server->changed);
}

void tfos__server_lock(struct tfos__server *server)
{
    pthread_mutex_lock(&server->lock);
}

void tfos__server_unlock(struct tfos__server *server)
{
    uint64_t one = 1;
    wake_waits(server);
    // Within the lock: after it the server may be closed by another thread. The counter of an
    // eventfd can only be full when the thread is awake already.
    if (server->unsettled || server->is_closing)
        (void)!write(server->wake_fd, &one, sizeof(one));
    pthread_mutex_unlock(&server->lock);
}

void tfos__server_wait(struct tfos__server *server, int64_t deadline)
{
    int remaining_ms = tfos__remaining_ms(deadline);
    if (remaining_ms < 0) {
        pthread_cond_wait(&server->changed, &server->lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += remaining_ms / 1000;
    until.tv_nsec += (long)(remaining_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&server->changed, &server->lock, &until);
}

static int64_t tick_ms(const struct tfos__server *server)
{
    int64_t fraction = server->cluster.heartbeat_timeout_ms / 8 + 1;
    return fraction < TICK_MS ? fraction : TICK_MS;
}

static bool watch(struct tfos__server *server, int fd, void *tag)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};
    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/// Stops listening while descriptors have run out, so that epoll does not report what cannot be
/// accepted.
static void pause_listeners(struct tfos__server *server, bool *is_paused)
{
    bool should_pause = tfos__remaining_ms(server->accept_ms) > 0 && server->accept_ms > 0;
    if (should_pause == *is_paused)
        return;
    struct epoll_event tcp = {.events = should_pause ? 0 : EPOLLIN,
                              .data.ptr = &server->listener_fd};
    struct epoll_event local = {.events = should_pause ? 0 : EPOLLIN,
                                .data.ptr = &server->status_fd};
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, server->listener_fd, &tcp) == 0 &&
        epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, server->status_fd, &local) == 0)
        *is_paused = should_pause;
}

static void handle_event(struct tfos__server *server, void *tag)
{
    if (tag == &server->wake_fd) {
        uint64_t count;
        while (read(server->wake_fd, &count, sizeof(count)) > 0)
            continue;
    } else if (tag == &server->listener_fd || tag == &server->status_fd) {
        tfos__connection_accept(server, *(int *)tag);
    } else {
        tfos__connection_serve(tag);
    }
}

static bool has_pending(const struct tfos__server *server)
{
    for (struct tfos__connection *connection = server->connections; connection;
         connection = connection->next)
        if (tfos__channel_is_ready(connection->channel) &&
            tfos__channel_pending_size(connection->channel) > 0)
            return true;
    return server->unsettled != NULL;
}

/// One sleep and what it was ended by.
static void turn(struct tfos__server *server, int timeout_ms)
{
    struct epoll_event events[EVENT_COUNT];
    wake_waits(server);
    pthread_mutex_unlock(&server->lock);
    int count = epoll_wait(server->epoll_fd, events, EVENT_COUNT, timeout_ms);
    pthread_mutex_lock(&server->lock);
    for (int i = 0; i < count; i++)
        handle_event(server, events[i].data.ptr);
    tfos__connection_settle_all(server);
}

static void *run(void *argument)
{
    struct tfos__server *server = argument;
    bool is_paused = false;
    pthread_mutex_lock(&server->lock);
    int64_t tick = tfos__deadline(tick_ms(server));
    while (!server->is_closing) {
        int timeout_ms = server->unsettled ? 0 : tfos__remaining_ms(tick);
        if (is_paused && timeout_ms > tfos__remaining_ms(server->accept_ms))
            timeout_ms = tfos__remaining_ms(server->accept_ms);
        turn(server, timeout_ms);
        int64_t now_ms = tfos__now_ms();
        if (now_ms >= tick) {
            tfos__cluster_tick(&server->cluster, now_ms);
            tfos__connection_expire_all(server, now_ms);
            tick = now_ms + tick_ms(server);
        }
        pause_listeners(server, &is_paused);
        tfos__connection_free_dropped(server);
    }
    int64_t end = tfos__deadline(FAREWELL_MS);
    tfos__connection_settle_all(server);
    while (has_pending(server) && tfos__remaining_ms(end) > 0)
        turn(server, server->unsettled ? 0 : tfos__remaining_ms(end));
    tfos__connection_close_all(server);
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

/// The host to give to others: what the user says, else where we listen, else what this machine
/// has.
static enum tfos_status find_host(const struct tfos_rendezvous_options *options,
                                  char host[TFOS__ADDRESS_SIZE], struct tfos_error *err)
{
    const char *given =
        options->host && options->host[0] ? options->host : getenv("TFOS_SERVER_HOST");
    if (!given || !given[0]) {
        given = options->listen_host;
        if (!given || !given[0] || !strcmp(given, "0.0.0.0") || !strcmp(given, "::"))
            return tfos__address_any_host(host, err);
    }
    if (strlen(given) >= TFOS__HOST_SIZE)
        return tfos__fail(err, TFOS_INVALID, "rendezvous: host is longer than %d bytes",
                          TFOS__HOST_SIZE - 1);
    snprintf(host, TFOS__ADDRESS_SIZE, "%s", given);
    return TFOS_OK;
}

static enum tfos_status listen_all(struct tfos__server *server,
                                   const struct tfos_rendezvous_options *options,
                                   struct tfos_error *err)
{
    char host[TFOS__ADDRESS_SIZE], name[TFOS__CLUSTER_ID_SIZE + sizeof(TFOS__STATUS_SOCKET_PREFIX)];
    const char *ports =
        options->ports && options->ports[0] ? options->ports : getenv("TFOS_SERVER_PORT");
    int port;
    TFOS__TRY(find_host(options, host, err));
    enum tfos_status status = tfos__socket_listen(
        options->listen_host && options->listen_host[0] ? options->listen_host : NULL,
        ports && ports[0] ? ports : NULL, &server->listener_fd, &port, err);
    if (status < 0) {
        tfos__fail_prefix(err, "rendezvous: cannot listen (ports, or TFOS_SERVER_PORT)");
        return status;
    }
    tfos__address_join(host, port, server->cluster.address);
    snprintf(name, sizeof(name), "%s%s", TFOS__STATUS_SOCKET_PREFIX, server->cluster.cluster_id);
    status = tfos__socket_listen_unix(name, &server->status_fd, err);
    if (status < 0)
        tfos__fail_prefix(err, "rendezvous: cannot serve the status (is cluster_id another's?)");
    return status;
}

static enum tfos_status watch_all(struct tfos__server *server, struct tfos_error *err)
{
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->epoll_fd < 0 || server->wake_fd < 0 ||
        !watch(server, server->wake_fd, &server->wake_fd) ||
        !watch(server, server->listener_fd, &server->listener_fd) ||
        !watch(server, server->status_fd, &server->status_fd))
        return tfos__fail_errno(err, TFOS_IO, "rendezvous: cannot watch its sockets");
    return TFOS_OK;
}

static enum tfos_status start_thread(struct tfos__server *server, struct tfos_error *err)
{
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errno = pthread_create(&server->thread, NULL, run, server);
    int result = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = result;
    if (result != 0)
        return tfos__fail_errno(err, TFOS_IO, "rendezvous: cannot start its thread");
    pthread_setname_np(server->thread, "tfos-rendezvous");
    return TFOS_OK;
}

static void init_lock(struct tfos__server *server)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&server->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&server->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void free_server(struct tfos__server *server)
{
    close_fd(server->epoll_fd);
    close_fd(server->wake_fd);
    close_fd(server->listener_fd);
    close_fd(server->status_fd);
    tfos__cluster_clear(&server->cluster);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    explicit_bzero(server->identity.key, sizeof(server->identity.key));
    tfos__free(server);
}

enum tfos_status tfos__server_open(const struct tfos_rendezvous_options *options,
                                   struct tfos__server **out, struct tfos_error *err)
{
    struct tfos__server *server = tfos__alloc(1, sizeof(*server));
    if (!server)
        return tfos__no_memory(err, "rendezvous", "the server");
    server->epoll_fd = server->wake_fd = server->listener_fd = server->status_fd = -1;
    init_lock(server);
    enum tfos_status status = tfos__cluster_init(&server->cluster, options, err);
    if (status == TFOS_OK)
        status = tfos__cluster_key_read(options->key, "rendezvous", server->identity.key, err);
    server->identity.cluster_id = server->cluster.cluster_id;
    if (status == TFOS_OK)
        status = listen_all(server, options, err);
    if (status == TFOS_OK)
        status = watch_all(server, err);
    if (status == TFOS_OK)
        status = start_thread(server, err);
    if (status != TFOS_OK) {
        free_server(server);
        return status;
    }
    *out = server;
    return TFOS_OK;
}

void tfos__server_close(struct tfos__server *server)
{
    tfos__server_lock(server);
    server->is_closing = true;
    server->cluster.has_changed = true;
    wake_waits(server);
    while (server->waiter_count > 0)
        tfos__server_wait(server, TFOS__NEVER);
    tfos__server_unlock(server);
    pthread_join(server->thread, NULL);
    free_server(server);
}
