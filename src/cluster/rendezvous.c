// SPDX-License-Identifier: Apache-2.0
// The server of a cluster: a thread that serves its connections, and the public interface, whose
// calls take the lock, do one thing to the cluster, and release it. The thread sleeps in the
// server's wait() without the lock, and does everything else with it. Other threads change the
// cluster under the lock, queue messages, and wake it to write them.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/rendezvous.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/listener.h"
#include "base/memory.h"
#include "base/server.h"
#include "base/socket.h"
#include "base/thread.h"
#include "cluster/cluster_state.h"
#include "cluster/dispatch.h"
#include "cluster/failure_text.h"
#include "cluster/session.h"
#include "cluster/status_document.h"

#define TICK_MS 1000 // how often times are looked at, or more often with a short heartbeat timeout
#define CLOSE_TIMEOUT_MS 500           // for the last messages to be taken when the thread ends
#define ENDING_TIMEOUT_MS 2000         // for a peer to read its last message and close
#define PENDING_SIZE_LIMIT (64u << 20) // bytes queued towards one peer
#define DENIED_LIMIT 100               // events about refusals in one minute

// Everything but the monitor is guarded by it. Its condition is that the cluster has changed, an
// event has come, or the end has begun.
struct tfos_rendezvous {
    struct tfos__monitor monitor;
    struct tfos__cluster cluster;
    bool is_closing;
    int waiter_count; // calls that wait in other threads

    struct tfos__identity identity; // its id is the cluster's
    struct tfos__server server;     // run by `thread`
    pthread_t thread;
    int64_t denied_ms; // when the present minute of counting refusals began
    int denied_count;  // refusals in it
};

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

/// An event for a refusal, unless an attacker makes so many that other events would be lost.
static void report_denied(struct tfos_rendezvous *rendezvous, const char *address,
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
    tfos__cluster_push_event(&rendezvous->cluster, NULL, "denied",
                             json_pack("{s:s, s:s+}", "peer", address, "message", text, more));
}

static void rejected(void *context, const char *address, const char *reason)
{
    char message[128];
    snprintf(message, sizeof(message), "rendezvous: %s", reason);
    report_denied(context, address, message);
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
        report_denied(rendezvous_of(base), session->address, cause);
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
    pthread_cond_broadcast(&rendezvous->monitor.changed);
}

static void lock(struct tfos_rendezvous *rendezvous)
{
    pthread_mutex_lock(&rendezvous->monitor.mutex);
}

// Also wakes the thread, and other waits, when there is something for them.
static void unlock(struct tfos_rendezvous *rendezvous)
{
    wake_waits(rendezvous);
    // Within the lock: after it the rendezvous may be closed by another thread.
    if (rendezvous->server.unflushed || rendezvous->is_closing)
        tfos__server_wake(&rendezvous->server);
    pthread_mutex_unlock(&rendezvous->monitor.mutex);
}

// ---- the thread

static int64_t tick_ms(const struct tfos_rendezvous *rendezvous)
{
    int64_t fraction = rendezvous->cluster.heartbeat_timeout_ms / 8 + 1;
    return fraction < TICK_MS ? fraction : TICK_MS;
}

/// One wait and what ended it.
static void run_once(struct tfos_rendezvous *rendezvous, int64_t deadline)
{
    wake_waits(rendezvous);
    pthread_mutex_unlock(&rendezvous->monitor.mutex);
    tfos__server_wait(&rendezvous->server, deadline);
    lock(rendezvous);
    tfos__server_step(&rendezvous->server);
}

static void *run(void *argument)
{
    struct tfos_rendezvous *rendezvous = argument;
    lock(rendezvous);
    int64_t tick = tfos__deadline(tick_ms(rendezvous));
    while (!rendezvous->is_closing) {
        run_once(rendezvous, tick);
        int64_t now_ms = tfos__now_ms();
        if (now_ms < tick)
            continue;
        tfos__cluster_tick(&rendezvous->cluster, now_ms);
        tfos__server_flush(&rendezvous->server);
        tick = now_ms + tick_ms(rendezvous);
    }
    int64_t end = tfos__deadline(CLOSE_TIMEOUT_MS);
    tfos__server_flush(&rendezvous->server);
    while (tfos__server_has_pending(&rendezvous->server) && tfos__remaining_ms(end) > 0)
        run_once(rendezvous, end);
    tfos__server_clear(&rendezvous->server, "the driver has closed the cluster");
    pthread_mutex_unlock(&rendezvous->monitor.mutex);
    return NULL;
}

// ---- start and stop

/// The host to advertise: the user's, else where the server listens, else the machine's first.
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
    TFOS__TRY(tfos__fail_in(err, status, "rendezvous: cannot listen (ports, or TFOS_SERVER_PORT)"));
    tfos__address_join(host, port, rendezvous->cluster.address);
    return tfos__server_listen(&rendezvous->server, fd, false, err);
}

static enum tfos_status listen_local(struct tfos_rendezvous *rendezvous, struct tfos_error *err)
{
    char name[TFOS__CLUSTER_ID_SIZE + sizeof(TFOS__STATUS_SOCKET_PREFIX)];
    int fd;
    snprintf(name, sizeof(name), "%s%s", TFOS__STATUS_SOCKET_PREFIX,
             rendezvous->cluster.cluster_id);
    TFOS__TRY(tfos__fail_in(err, tfos__listener_open_unix(name, &fd, err),
                            "rendezvous: cannot serve the status (is cluster_id another's?)"));
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

static void free_rendezvous(struct tfos_rendezvous *rendezvous)
{
    tfos__server_clear(&rendezvous->server, "the driver has closed the cluster");
    tfos__cluster_clear(&rendezvous->cluster);
    tfos__monitor_clear(&rendezvous->monitor);
    explicit_bzero(rendezvous->identity.key, sizeof(rendezvous->identity.key));
    tfos__free(rendezvous);
}

enum tfos_status tfos_rendezvous_open(const struct tfos_rendezvous_options *options,
                                      struct tfos_rendezvous **out, struct tfos_error *err)
{
    struct tfos_rendezvous *rendezvous = tfos__alloc(1, sizeof(*rendezvous));
    if (!rendezvous)
        return tfos__no_memory(err, "rendezvous", "its handle");
    rendezvous->server = (struct tfos__server){.epoll_fd = -1, .wake_fd = -1};
    tfos__monitor_init(&rendezvous->monitor);
    enum tfos_status status = tfos__cluster_init(&rendezvous->cluster, options, err);
    rendezvous->identity.cluster_id = rendezvous->cluster.cluster_id;
    if (status == TFOS_OK)
        status = tfos__cluster_key_read(options->key, "rendezvous", rendezvous->identity.key, err);
    if (status == TFOS_OK)
        status = open_server(rendezvous, options, err);
    if (status == TFOS_OK &&
        (errno = tfos__thread_start(&rendezvous->thread, NULL, run, rendezvous)) != 0)
        status = tfos__fail_errno(err, TFOS_IO, "rendezvous: cannot start its thread");
    if (status != TFOS_OK) {
        free_rendezvous(rendezvous);
        return status;
    }
    pthread_setname_np(rendezvous->thread, "tfos-rendezvous");
    *out = rendezvous;
    return TFOS_OK;
}

void tfos_rendezvous_close(struct tfos_rendezvous *rendezvous)
{
    if (!rendezvous)
        return;
    lock(rendezvous);
    rendezvous->is_closing = true;
    rendezvous->cluster.has_changed = true;
    wake_waits(rendezvous);
    while (rendezvous->waiter_count > 0)
        tfos__monitor_wait(&rendezvous->monitor, TFOS__NEVER);
    unlock(rendezvous);
    pthread_join(rendezvous->thread, NULL);
    free_rendezvous(rendezvous);
}

// ---- calls

const char *tfos_rendezvous_address(const struct tfos_rendezvous *rendezvous)
{
    return rendezvous->cluster.address;
}

enum tfos_status tfos_rendezvous_get_roles(struct tfos_rendezvous *rendezvous, char **json,
                                           struct tfos_error *err)
{
    return tfos__json_print(tfos__cluster_roles_json(&rendezvous->cluster.roles), "rendezvous",
                            "the roles", json, err);
}

static enum tfos_status fail_closed(struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CLOSED, "rendezvous: it has been closed");
}

static enum tfos_status check(const struct tfos__cluster *cluster, struct tfos_error *err)
{
    if (cluster->state == TFOS__CLUSTER_FAILED)
        return tfos__fail(err, cluster->failure, "%s", cluster->failure_message);
    return TFOS_OK;
}

/// With the lock held.
static enum tfos_status wait_for_phase(struct tfos_rendezvous *rendezvous,
                                       enum tfos_rendezvous_phase phase, int64_t timeout_ms,
                                       struct tfos_error *err)
{
    const struct tfos__cluster *cluster = &rendezvous->cluster;
    int64_t begin_ms = tfos__now_ms();
    for (;;) {
        if (rendezvous->is_closing)
            return fail_closed(err);
        if (phase != TFOS_PHASE_ENDED)
            TFOS__TRY(check(cluster, err));
        if (tfos__cluster_has_reached(cluster, phase))
            return TFOS_OK;
        if (phase == TFOS_PHASE_DRAINED && begin_ms < cluster->scheduler.progress_ms)
            begin_ms = cluster->scheduler.progress_ms;
        int64_t waited_ms = tfos__now_ms() - begin_ms;
        if (timeout_ms >= 0 && waited_ms >= timeout_ms)
            return tfos__cluster_failure_text_of_timeout(&cluster->scheduler, cluster->address,
                                                         phase, waited_ms, err);
        tfos__monitor_wait(&rendezvous->monitor,
                           tfos__deadline(timeout_ms < 0 ? timeout_ms : timeout_ms - waited_ms));
    }
}

/// A wait's end: close() may be waiting for it.
static void end_wait(struct tfos_rendezvous *rendezvous)
{
    rendezvous->waiter_count--;
    if (rendezvous->is_closing)
        rendezvous->cluster.has_changed = true;
    unlock(rendezvous);
}

enum tfos_status tfos_rendezvous_wait(struct tfos_rendezvous *rendezvous,
                                      enum tfos_rendezvous_phase phase, int64_t timeout_ms,
                                      struct tfos_error *err)
{
    if (phase < TFOS_PHASE_RUNNING || phase > TFOS_PHASE_ENDED)
        return tfos__fail(err, TFOS_INVALID, "rendezvous: phase is %d: expected %d to %d",
                          (int)phase, TFOS_PHASE_RUNNING, TFOS_PHASE_ENDED);
    lock(rendezvous);
    rendezvous->waiter_count++;
    enum tfos_status status = wait_for_phase(rendezvous, phase, timeout_ms, err);
    end_wait(rendezvous);
    return status;
}

int64_t tfos_rendezvous_idle_ms(struct tfos_rendezvous *rendezvous)
{
    lock(rendezvous);
    int64_t idle_ms = tfos__now_ms() - rendezvous->cluster.scheduler.progress_ms;
    unlock(rendezvous);
    return idle_ms;
}

enum tfos_status tfos_rendezvous_time_out(struct tfos_rendezvous *rendezvous,
                                          enum tfos_rendezvous_phase phase, int64_t waited_ms,
                                          struct tfos_error *err)
{
    lock(rendezvous);
    enum tfos_status status = tfos__cluster_failure_text_of_timeout(
        &rendezvous->cluster.scheduler, rendezvous->cluster.address, phase, waited_ms, err);
    unlock(rendezvous);
    return status;
}

enum tfos_status tfos_rendezvous_check(struct tfos_rendezvous *rendezvous, struct tfos_error *err)
{
    lock(rendezvous);
    enum tfos_status status = check(&rendezvous->cluster, err);
    unlock(rendezvous);
    return status;
}

void tfos_rendezvous_fail(struct tfos_rendezvous *rendezvous, enum tfos_status status,
                          const char *message)
{
    lock(rendezvous);
    tfos__cluster_fail(&rendezvous->cluster, status < 0 ? status : TFOS_CLOSED,
                       message ? message : tfos_status_text(status));
    unlock(rendezvous);
}

static enum tfos_status find_queue(const struct tfos_rendezvous *rendezvous, const char *name,
                                   int *queue, struct tfos_error *err)
{
    return tfos__fail_in(err, tfos__queue_names_get(&rendezvous->cluster.queues, name, queue, err),
                         "rendezvous");
}

enum tfos_status tfos_rendezvous_plan_feed(struct tfos_rendezvous *rendezvous, int64_t feed,
                                           const struct tfos_feed_plan *plan,
                                           struct tfos_error *err)
{
    if (feed < 1 || plan->epoch < 1 || plan->epoch_count < plan->epoch || plan->partition_count < 0)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: the plan of feed %lld: epoch %lld of %lld with %lld "
                          "partitions: numbers begin with 1, counts are not negative",
                          (long long)feed, (long long)plan->epoch, (long long)plan->epoch_count,
                          (long long)plan->partition_count);
    int queue;
    TFOS__TRY(find_queue(rendezvous, plan->queue, &queue, err));
    lock(rendezvous);
    tfos__cluster_plan_feed(&rendezvous->cluster, queue, feed, plan);
    unlock(rendezvous);
    return TFOS_OK;
}

typedef void end_feed_number(struct tfos__cluster *cluster, int queue, int64_t feed);

static enum tfos_status end_numbered(struct tfos_rendezvous *rendezvous, const char *queue,
                                     int64_t feed, end_feed_number *end, struct tfos_error *err)
{
    int number;
    TFOS__TRY(find_queue(rendezvous, queue, &number, err));
    lock(rendezvous);
    end(&rendezvous->cluster, number, feed);
    unlock(rendezvous);
    return TFOS_OK;
}

enum tfos_status tfos_rendezvous_end_epoch(struct tfos_rendezvous *rendezvous, const char *queue,
                                           int64_t feed, struct tfos_error *err)
{
    return end_numbered(rendezvous, queue, feed, tfos__cluster_end_epoch, err);
}

enum tfos_status tfos_rendezvous_end_batch(struct tfos_rendezvous *rendezvous, const char *queue,
                                           int64_t feed, struct tfos_error *err)
{
    return end_numbered(rendezvous, queue, feed, tfos__cluster_end_batch, err);
}

enum tfos_status tfos_rendezvous_describe_feed(struct tfos_rendezvous *rendezvous,
                                               const char *queue, int64_t first_feed,
                                               int64_t last_feed, const char *schema_json,
                                               struct tfos_error *err)
{
    const struct tfos__cluster_feed_description description = {(char *)schema_json, first_feed,
                                                               last_feed};

    lock(rendezvous);
    enum tfos_status status =
        tfos__cluster_scheduler_describe(&rendezvous->cluster.scheduler, queue, &description, err);
    unlock(rendezvous);
    return status;
}

void tfos_rendezvous_end_feed(struct tfos_rendezvous *rendezvous)
{
    lock(rendezvous);
    tfos__cluster_end_feed(&rendezvous->cluster);
    unlock(rendezvous);
}

void tfos_rendezvous_terminate_feed(struct tfos_rendezvous *rendezvous)
{
    lock(rendezvous);
    tfos__cluster_terminate_feed(&rendezvous->cluster);
    unlock(rendezvous);
}

void tfos_rendezvous_stop(struct tfos_rendezvous *rendezvous, int64_t grace_ms)
{
    lock(rendezvous);
    tfos__cluster_stop(&rendezvous->cluster, grace_ms < 0 ? 0 : grace_ms);
    unlock(rendezvous);
}

enum tfos_status tfos_rendezvous_next_event(struct tfos_rendezvous *rendezvous, int64_t timeout_ms,
                                            char **json, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    enum tfos_status status = TFOS_OK;
    char *text = NULL;
    lock(rendezvous);
    rendezvous->waiter_count++;
    for (;;) {
        if (rendezvous->is_closing)
            status = fail_closed(err);
        else if (!(text = tfos__cluster_event_queue_take(&rendezvous->cluster.events)) &&
                 tfos__remaining_ms(deadline) == 0)
            status = TFOS_AGAIN;
        if (text || status != TFOS_OK)
            break;
        tfos__monitor_wait(&rendezvous->monitor, deadline);
    }
    end_wait(rendezvous);
    if (status == TFOS_OK)
        *json = text;
    return status;
}

enum tfos_status tfos_rendezvous_get_status(struct tfos_rendezvous *rendezvous, char **json,
                                            struct tfos_error *err)
{
    lock(rendezvous);
    json_t *document = tfos__cluster_status_document(&rendezvous->cluster);
    // The reports in it are shared with the cluster, so it is made text, and let go of, under the
    // lock.
    enum tfos_status status = tfos__json_print(document, "rendezvous", "the status", json, err);
    unlock(rendezvous);
    return status;
}
