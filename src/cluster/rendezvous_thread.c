// SPDX-License-Identifier: Apache-2.0
// The thread sleeps in the server's wait() without the lock, and does everything else with it.
// Other threads change the cluster under the lock, queue messages, and wake it to write them.
#include "cluster/rendezvous_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/listener.h"
#include "base/memory.h"
#include "base/socket.h"
#include "cluster/dispatch.h"
#include "cluster/failure_text.h"
#include "cluster/session.h"
#include "cluster/status_document.h"

#define TICK_MS 1000 // how often times are looked at, or more often with a short heartbeat timeout
#define FAREWELL_MS 500                // for the last messages to be taken when the thread ends
#define ENDING_TIMEOUT_MS 2000         // for a peer to read its last message and go
#define PENDING_SIZE_LIMIT (64u << 20) // bytes queued towards one peer
#define DENIED_LIMIT 100               // events about refusals in one minute

struct connection {
    struct tfos__server_connection base; // first, so that the one's address is the other's
    struct tfos__cluster_session session;
};

// ---- connections

static struct tfos_rendezvous *rendezvous_of(const struct tfos__server_connection *connection)
{
    return connection->server->options.context;
}

static struct connection *connection_of(struct tfos__cluster_session *session)
{
    return (struct connection *)((char *)session - offsetof(struct connection, session));
}

/// Tells of a refusal, unless an attacker makes so many that other events would be lost over them.
static void tell_denied(struct tfos_rendezvous *rendezvous, const char *address,
                        const char *message)
{
    int64_t now_ms = tfos__now_ms();
    if (now_ms - rendezvous->denied_ms >= 60000) {
        rendezvous->denied_ms = now_ms;
        rendezvous->denied_count = 0;
    }
    if (++rendezvous->denied_count > DENIED_LIMIT)
        return;
    char text[1024];
    tfos__cluster_failure_text_copy(text, sizeof(text), message);
    const char *more =
        rendezvous->denied_count == DENIED_LIMIT ? " (the last one told this minute)" : "";
    tfos__cluster_tell(&rendezvous->cluster, NULL, "denied",
                       json_pack("{s:s, s:s+}", "peer", address, "message", text, more));
}

static void rejected(void *context, const char *address, const char *reason)
{
    char message[128];
    snprintf(message, sizeof(message), "rendezvous: %s", reason);
    tell_denied(context, address, message);
}

static void send_message(struct tfos__cluster_session *session, json_t *message)
{
    tfos__server_send(&connection_of(session)->base, message, NULL, 0);
}

static void end_connection(struct tfos__cluster_session *session)
{
    tfos__server_end(&connection_of(session)->base);
}

static void accepted(struct tfos__server_connection *base, const char *address)
{
    struct tfos__cluster_session *session = &((struct connection *)base)->session;
    session->cluster = &rendezvous_of(base)->cluster;
    session->is_local = base->is_local;
    session->send = send_message;
    session->end = end_connection;
    snprintf(session->address, sizeof(session->address), "%s", address);
}

static enum tfos_status handle_message(struct tfos__server_connection *base, const json_t *message,
                                       struct tfos_error *err)
{
    struct tfos__cluster_session *session = &((struct connection *)base)->session;
    TFOS__TRY(tfos__cluster_dispatch_message(session, message, err));
    if (session->kind != TFOS__SESSION_NEW)
        tfos__server_accept_hello(base);
    return TFOS_OK;
}

static void dropped(struct tfos__server_connection *base, bool is_breach, const char *cause)
{
    struct tfos__cluster_session *session = &((struct connection *)base)->session;
    if (is_breach && session->kind != TFOS__SESSION_NODE)
        tell_denied(rendezvous_of(base), session->address, cause);
    tfos__cluster_dispatch_end(session, cause);
}

static const struct tfos__server_handler handler = {.connection_size = sizeof(struct connection),
                                                    .accepted = accepted,
                                                    .message = handle_message,
                                                    .dropped = dropped,
                                                    .rejected = rejected};

// ---- the lock

static void wake_waits(struct tfos_rendezvous *rendezvous)
{
    if (!rendezvous->cluster.has_changed)
        return;
    rendezvous->cluster.has_changed = false;
    pthread_cond_broadcast(&rendezvous->changed);
}

void tfos__cluster_thread_lock(struct tfos_rendezvous *rendezvous)
{
    pthread_mutex_lock(&rendezvous->lock);
}

void tfos__cluster_thread_unlock(struct tfos_rendezvous *rendezvous)
{
    wake_waits(rendezvous);
    // Within the lock: after it the rendezvous may be closed by another thread.
    if (rendezvous->server.unflushed || rendezvous->is_closing)
        tfos__server_wake(&rendezvous->server);
    pthread_mutex_unlock(&rendezvous->lock);
}

void tfos__cluster_thread_wait(struct tfos_rendezvous *rendezvous, int64_t deadline)
{
    int remaining_ms = tfos__remaining_ms(deadline);
    if (remaining_ms < 0) {
        pthread_cond_wait(&rendezvous->changed, &rendezvous->lock);
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
    pthread_cond_timedwait(&rendezvous->changed, &rendezvous->lock, &until);
}

// ---- the thread

static int64_t tick_ms(const struct tfos_rendezvous *rendezvous)
{
    int64_t fraction = rendezvous->cluster.heartbeat_timeout_ms / 8 + 1;
    return fraction < TICK_MS ? fraction : TICK_MS;
}

/// One sleep and what it was ended by.
static void turn(struct tfos_rendezvous *rendezvous, int64_t deadline)
{
    wake_waits(rendezvous);
    pthread_mutex_unlock(&rendezvous->lock);
    tfos__server_wait(&rendezvous->server, deadline);
    pthread_mutex_lock(&rendezvous->lock);
    tfos__server_step(&rendezvous->server);
}

static void *run(void *argument)
{
    struct tfos_rendezvous *rendezvous = argument;
    pthread_mutex_lock(&rendezvous->lock);
    int64_t tick = tfos__deadline(tick_ms(rendezvous));
    while (!rendezvous->is_closing) {
        turn(rendezvous, tick);
        int64_t now_ms = tfos__now_ms();
        if (now_ms < tick)
            continue;
        tfos__cluster_tick(&rendezvous->cluster, now_ms);
        tfos__server_flush(&rendezvous->server);
        tick = now_ms + tick_ms(rendezvous);
    }
    int64_t end = tfos__deadline(FAREWELL_MS);
    tfos__server_flush(&rendezvous->server);
    while (tfos__server_has_pending(&rendezvous->server) && tfos__remaining_ms(end) > 0)
        turn(rendezvous, end);
    tfos__server_clear(&rendezvous->server, "the driver has closed the cluster");
    pthread_mutex_unlock(&rendezvous->lock);
    return NULL;
}

// ---- start and stop

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

static enum tfos_status listen_tcp(struct tfos_rendezvous *rendezvous,
                                   const struct tfos_rendezvous_options *options,
                                   struct tfos_error *err)
{
    char host[TFOS__ADDRESS_SIZE];
    const char *ports =
        options->ports && options->ports[0] ? options->ports : getenv("TFOS_SERVER_PORT");
    int fd, port;
    TFOS__TRY(find_host(options, host, err));
    enum tfos_status status = tfos__listener_open(
        options->listen_host && options->listen_host[0] ? options->listen_host : NULL,
        ports && ports[0] ? ports : NULL, &fd, &port, err);
    if (status < 0) {
        tfos__fail_prefix(err, "rendezvous: cannot listen (ports, or TFOS_SERVER_PORT)");
        return status;
    }
    tfos__address_join(host, port, rendezvous->cluster.address);
    return tfos__server_listen(&rendezvous->server, fd, false, err);
}

static enum tfos_status listen_local(struct tfos_rendezvous *rendezvous, struct tfos_error *err)
{
    char name[TFOS__CLUSTER_ID_SIZE + sizeof(TFOS__STATUS_SOCKET_PREFIX)];
    int fd;
    snprintf(name, sizeof(name), "%s%s", TFOS__STATUS_SOCKET_PREFIX,
             rendezvous->cluster.cluster_id);
    enum tfos_status status = tfos__listener_open_unix(name, &fd, err);
    if (status < 0) {
        tfos__fail_prefix(err, "rendezvous: cannot serve the status (is cluster_id another's?)");
        return status;
    }
    return tfos__server_listen(&rendezvous->server, fd, true, err);
}

static enum tfos_status open_server(struct tfos_rendezvous *rendezvous,
                                    const struct tfos_rendezvous_options *options,
                                    struct tfos_error *err)
{
    struct tfos__server_options server_options = {.handler = &handler,
                                                  .context = rendezvous,
                                                  .identity = &rendezvous->identity,
                                                  .use = TFOS__TCP_MESSAGES,
                                                  .hello_timeout_ms =
                                                      rendezvous->cluster.hello_timeout_ms,
                                                  .ending_timeout_ms = ENDING_TIMEOUT_MS,
                                                  .pending_limit = PENDING_SIZE_LIMIT};
    TFOS__TRY(tfos__server_init(&rendezvous->server, &server_options, err));
    TFOS__TRY(listen_tcp(rendezvous, options, err));
    return listen_local(rendezvous, err);
}

static enum tfos_status start_thread(struct tfos_rendezvous *rendezvous, struct tfos_error *err)
{
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errno = pthread_create(&rendezvous->thread, NULL, run, rendezvous);
    int result = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = result;
    if (result != 0)
        return tfos__fail_errno(err, TFOS_IO, "rendezvous: cannot start its thread");
    pthread_setname_np(rendezvous->thread, "tfos-rendezvous");
    return TFOS_OK;
}

static void init_lock(struct tfos_rendezvous *rendezvous)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&rendezvous->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&rendezvous->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void free_rendezvous(struct tfos_rendezvous *rendezvous)
{
    tfos__server_clear(&rendezvous->server, "the driver has closed the cluster");
    tfos__cluster_clear(&rendezvous->cluster);
    pthread_cond_destroy(&rendezvous->changed);
    pthread_mutex_destroy(&rendezvous->lock);
    explicit_bzero(rendezvous->identity.key, sizeof(rendezvous->identity.key));
    tfos__free(rendezvous);
}

enum tfos_status tfos__cluster_thread_start(const struct tfos_rendezvous_options *options,
                                            struct tfos_rendezvous **out, struct tfos_error *err)
{
    struct tfos_rendezvous *rendezvous = tfos__alloc(1, sizeof(*rendezvous));
    if (!rendezvous)
        return tfos__no_memory(err, "rendezvous", "its handle");
    rendezvous->server = (struct tfos__server){.epoll_fd = -1, .wake_fd = -1};
    init_lock(rendezvous);
    enum tfos_status status = tfos__cluster_init(&rendezvous->cluster, options, err);
    rendezvous->identity.cluster_id = rendezvous->cluster.cluster_id;
    if (status == TFOS_OK)
        status = tfos__cluster_key_read(options->key, "rendezvous", rendezvous->identity.key, err);
    if (status == TFOS_OK)
        status = open_server(rendezvous, options, err);
    if (status == TFOS_OK)
        status = start_thread(rendezvous, err);
    if (status != TFOS_OK) {
        free_rendezvous(rendezvous);
        return status;
    }
    *out = rendezvous;
    return TFOS_OK;
}

void tfos__cluster_thread_stop(struct tfos_rendezvous *rendezvous)
{
    tfos__cluster_thread_lock(rendezvous);
    rendezvous->is_closing = true;
    rendezvous->cluster.has_changed = true;
    wake_waits(rendezvous);
    while (rendezvous->waiter_count > 0)
        tfos__cluster_thread_wait(rendezvous, TFOS__NEVER);
    tfos__cluster_thread_unlock(rendezvous);
    pthread_join(rendezvous->thread, NULL);
    free_rendezvous(rendezvous);
}
