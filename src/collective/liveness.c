// SPDX-License-Identifier: Apache-2.0
// Rank 0 is the hub: who fails tells it, and it tells all. The ranks of a host also watch each
// other's processes, so that they notice an end without it. A process that was itself stopped hears
// first what has come meanwhile, and gives the others another silence_timeout.
#include "collective/liveness.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/process.h"
#include "base/thread.h"

#define HEARTBEATS 5 // in a silence_timeout, or a stall_timeout
#define HEARTBEAT_MIN_MS 20
#define HEARTBEAT_MAX_MS 1000
#define CLOSE_MS 1000 // for the peers to take the last message
#define APART_US 2000 // least difference of two ranks' waits that tells them apart
#define PENDING_LIMIT ((size_t)1 << 20)

static void fail_by(const struct tfos__collective_liveness *liveness, uint64_t first,
                    enum tfos_status status, int rank, const char *what)
{
    char message[1024];
    if (first == 0 && liveness->segment->head)
        atomic_store(&liveness->segment->head->slots[liveness->segment->index].blamed, rank + 1);
    snprintf(message, sizeof(message), "%s %s", liveness->roster->members[rank].label, what);
    tfos__collective_failure_set(liveness->failure, first, status, message);
}

static bool is_watched(const struct tfos__collective_liveness *liveness, int rank)
{
    return liveness->links->control[rank].channel && !liveness->has_left[rank];
}

/// Sends to all peers; `message` is taken over.
static void send_all(struct tfos__collective_liveness *liveness, json_t *message)
{
    for (int rank = 0; rank < liveness->roster->size; rank++)
        if (is_watched(liveness, rank))
            (void)tfos__channel_send_bounded(liveness->links->control[rank].channel,
                                             json_incref(message), NULL, 0, PENDING_LIMIT, NULL);
    json_decref(message);
}

/// On rank 0, of several hosts: who waited least for the others since the last time; -1: none is
/// told apart.
static int find_awaited(struct tfos__collective_liveness *liveness)
{
    const struct tfos__collective_roster *roster = liveness->roster;
    int64_t least = INT64_MAX, most = 0;
    int awaited = -1;
    if (roster->rank != 0 || roster->host_count == 1)
        return -1;
    for (int rank = 0; rank < roster->size; rank++) {
        int64_t blocked_us = atomic_load(&liveness->blocked_us[rank]);
        int64_t since_us = blocked_us - liveness->judged_us[rank];
        liveness->judged_us[rank] = blocked_us;
        most = since_us > most ? since_us : most;
        awaited = since_us < least ? rank : awaited;
        least = since_us < least ? since_us : least;
    }
    return most - least > APART_US && least < most / 2 ? awaited : -1;
}

/// The operation that this rank has reached, and how long it has waited; rank 0 tells who was
/// waited for, and the operations of all.
static json_t *make_heartbeat(struct tfos__collective_liveness *liveness)
{
    const struct tfos__collective_roster *roster = liveness->roster;
    int first = roster->rank, last = roster->rank == 0 ? roster->size - 1 : roster->rank;
    int awaited = find_awaited(liveness);
    json_t *reached = json_array();
    for (int rank = first; rank <= last; rank++)
        json_array_append_new(reached,
                              json_integer((json_int_t)atomic_load(&liveness->reached[rank])));
    if (awaited >= 0)
        atomic_fetch_add(&liveness->awaited[awaited], 1);
    return json_pack("{s:s, s:o, s:I, s:i}", "type", "heartbeat", "reached", reached, "blocked_us",
                     (json_int_t)atomic_load(&liveness->blocked_us[roster->rank]), "awaited",
                     awaited);
}

static void take_heartbeat(struct tfos__collective_liveness *liveness, int rank,
                           const json_t *message)
{
    const json_t *reached = json_object_get(message, "reached"), *item;
    int64_t awaited = tfos__json_int_or(message, "awaited", -1);
    size_t i;
    json_array_foreach(reached, i, item)
    {
        // Rank 0 begins with its own, as any does.
        size_t of = (size_t)rank + i;
        if (of < (size_t)liveness->roster->size && of != (size_t)liveness->roster->rank)
            atomic_store(&liveness->reached[of], (uint64_t)json_integer_value(item));
    }
    atomic_store(&liveness->blocked_us[rank], tfos__json_int_or(message, "blocked_us", 0));
    if (awaited >= 0 && awaited < liveness->roster->size)
        atomic_fetch_add(&liveness->awaited[awaited], 1);
}

static void send_failure(struct tfos__collective_liveness *liveness)
{
    struct tfos_error cause;
    uint64_t first;
    enum tfos_status status;
    if (!tfos__collective_failure_get_unsent(liveness->failure, &first, &status, &cause))
        return;
    send_all(liveness,
             json_pack("{s:s, s:I, s:i, s:s}", "type", "failed", "first", (json_int_t)first,
                       "status", (int)status, "message", cause.message));
    tfos__collective_failure_set_sent(liveness->failure, first);
}

static void take_failure(const struct tfos__collective_liveness *liveness, const json_t *message)
{
    int64_t first = tfos__json_int_or(message, "first", 0);
    int64_t status = tfos__json_int_or(message, "status", TFOS_CLOSED);
    if (status >= TFOS_OK || status < TFOS_UNSUPPORTED)
        status = TFOS_CLOSED;
    tfos__collective_failure_set(liveness->failure, first < 0 ? 0 : (uint64_t)first,
                                 (enum tfos_status)status,
                                 tfos__json_string_or(message, "message", "it has failed"));
}

static void take_leave(struct tfos__collective_liveness *liveness, int rank, const json_t *message)
{
    int64_t first = tfos__json_int_or(message, "first", 0);
    fail_by(liveness, first < 0 ? 0 : (uint64_t)first, TFOS_CLOSED, rank, "has closed the group");
    liveness->has_left[rank] = true;
}

static void read_messages(struct tfos__collective_liveness *liveness, int rank)
{
    struct tfos__channel *channel = liveness->links->control[rank].channel;
    enum tfos_status status;
    json_t *message;
    (void)tfos__channel_pump(channel, NULL); // next() gives the failure behind the last message
    while ((status = tfos__channel_next(channel, &message, NULL, NULL, NULL)) == TFOS_OK) {
        const char *type = tfos__json_string_or(message, "type", "");
        liveness->received_ms[rank] = tfos__now_ms();
        if (strcmp(type, "failed") == 0)
            take_failure(liveness, message);
        else if (strcmp(type, "left") == 0)
            take_leave(liveness, rank, message);
        else if (strcmp(type, "heartbeat") == 0)
            take_heartbeat(liveness, rank, message);
        json_decref(message);
    }
    if (status == TFOS_AGAIN || liveness->has_left[rank])
        return;
    fail_by(liveness, 0, TFOS_CLOSED, rank, "has ended");
    liveness->has_left[rank] = true;
}

/// The process of a rank on this host has ended.
static void note_end(struct tfos__collective_liveness *liveness, int rank)
{
    int index = liveness->roster->members[rank].index;
    // What it, or rank 0, has said before comes first.
    for (int hub = 0; hub < liveness->roster->size; hub++)
        if (is_watched(liveness, hub))
            read_messages(liveness, hub);
    uint64_t left = tfos__collective_segment_get(liveness->segment, index, TFOS__COLLECTIVE_LEFT);
    close(liveness->pid_fds[rank]);
    liveness->pid_fds[rank] = -1;
    // It may have ended because another has, of which nothing has come here yet.
    int blamed = atomic_load(&liveness->segment->head->slots[index].blamed) - 1;
    if (left == 0 && blamed >= 0 && blamed < liveness->roster->size)
        fail_by(liveness, 0, TFOS_CLOSED, blamed, "has ended, or is silent");
    else if (left == 0)
        fail_by(liveness, 0, TFOS_CLOSED, rank, "has ended");
    else
        fail_by(liveness, left, TFOS_CLOSED, rank, "has closed the group");
}

/// `slept_ms`: since this thread was last here; a long time means that it could not run.
static void check_silence(struct tfos__collective_liveness *liveness, int64_t slept_ms)
{
    char what[64];
    int64_t now = tfos__now_ms();
    bool was_stopped = slept_ms > liveness->silence_timeout_ms / 2;
    for (int rank = 0; rank < liveness->roster->size; rank++) {
        if (!is_watched(liveness, rank))
            continue;
        if (was_stopped)
            liveness->received_ms[rank] = now;
        if (now - liveness->received_ms[rank] <= liveness->silence_timeout_ms)
            continue;
        snprintf(what, sizeof(what), "has not been heard of for %.10g s",
                 (double)(now - liveness->received_ms[rank]) / 1000.0);
        fail_by(liveness, 0, TFOS_CLOSED, rank, what);
        liveness->has_left[rank] = true;
    }
}

/// Sleeps until a peer says something, a process ends, or until `deadline`, and handles it.
static void serve(struct tfos__collective_liveness *liveness, int64_t deadline)
{
    struct pollfd slots[2 * TFOS_COLLECTIVE_MAX_RANKS + 1];
    int size = liveness->roster->size;
    for (int rank = 0; rank < size; rank++) {
        const struct tfos__channel *channel = liveness->links->control[rank].channel;
        bool is_here = is_watched(liveness, rank);
        slots[rank] = (struct pollfd){.fd = is_here ? tfos__channel_fd(channel) : -1,
                                      .events = is_here ? (short)tfos__channel_events(channel) : 0};
        slots[size + rank] = (struct pollfd){.fd = liveness->pid_fds[rank], .events = POLLIN};
    }
    slots[2 * size] = (struct pollfd){.fd = liveness->wake_fd, .events = POLLIN};
    if (poll(slots, (nfds_t)(2 * size + 1), tfos__remaining_ms(deadline)) <= 0)
        return;
    eventfd_t wakes;
    if (slots[2 * size].revents)
        (void)eventfd_read(liveness->wake_fd, &wakes);
    for (int rank = 0; rank < size; rank++) {
        if (slots[rank].revents)
            read_messages(liveness, rank);
        if (slots[size + rank].revents)
            note_end(liveness, rank);
    }
}

static void send_close(struct tfos__collective_liveness *liveness, uint64_t first)
{
    send_all(liveness, json_pack("{s:s, s:I}", "type", "left", "first", (json_int_t)first));
    for (int rank = 0; rank < liveness->roster->size; rank++) {
        tfos__channel_finish(liveness->links->control[rank].channel, CLOSE_MS);
        liveness->links->control[rank].channel = NULL;
    }
}

static void *run(void *argument)
{
    struct tfos__collective_liveness *liveness = argument;
    int64_t timeout_ms = liveness->silence_timeout_ms < liveness->stall_timeout_ms
                             ? liveness->silence_timeout_ms
                             : liveness->stall_timeout_ms;
    int64_t interval_ms = timeout_ms / HEARTBEATS;
    if (interval_ms < HEARTBEAT_MIN_MS)
        interval_ms = HEARTBEAT_MIN_MS;
    if (interval_ms > HEARTBEAT_MAX_MS)
        interval_ms = HEARTBEAT_MAX_MS;
    int64_t heartbeat_at = tfos__now_ms();
    for (int rank = 0; rank < liveness->roster->size; rank++)
        liveness->received_ms[rank] = heartbeat_at;
    uint64_t leaving;
    while ((leaving = atomic_load(&liveness->leaving)) == 0) {
        int64_t before = tfos__now_ms();
        if (before >= heartbeat_at) {
            send_all(liveness, make_heartbeat(liveness));
            heartbeat_at = before + interval_ms;
        }
        send_failure(liveness);
        serve(liveness, heartbeat_at);
        check_silence(liveness, tfos__now_ms() - before);
    }
    send_failure(liveness);
    send_close(liveness, leaving);
    return NULL;
}

static void watch_processes(struct tfos__collective_liveness *liveness)
{
    const struct tfos__collective_roster *roster = liveness->roster;
    for (int rank = 0; rank < roster->size; rank++) {
        bool is_neighbour = liveness->segment->head && rank != roster->rank &&
                            roster->members[rank].host == roster->members[roster->rank].host;
        // Where there are no pidfds, connections tell.
        if (is_neighbour)
            (void)tfos__process_watch(roster->members[rank].pid, &liveness->pid_fds[rank], NULL);
    }
}

enum tfos_status tfos__collective_liveness_start(struct tfos__collective_liveness *liveness,
                                                 struct tfos_error *err)
{
    liveness->has_thread = false;
    for (int rank = 0; rank < TFOS_COLLECTIVE_MAX_RANKS; rank++)
        liveness->pid_fds[rank] = -1;
    liveness->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (liveness->wake_fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "collective: cannot make an eventfd");
    watch_processes(liveness);
    tfos__collective_failure_set_listener(liveness->failure, liveness->wake_fd);
    int fault = tfos__thread_start(&liveness->thread, NULL, run, liveness);
    if (fault != 0)
        return tfos__fail(err, TFOS_IO, "collective: cannot start a thread: %s", strerror(fault));
    liveness->has_thread = true;
    return TFOS_OK;
}

void tfos__collective_liveness_stop(struct tfos__collective_liveness *liveness, uint64_t first)
{
    if (!liveness->roster)
        return;
    if (liveness->has_thread) {
        atomic_store(&liveness->leaving, first);
        (void)eventfd_write(liveness->wake_fd, 1);
        pthread_join(liveness->thread, NULL);
    }
    tfos__collective_failure_set_listener(liveness->failure, -1);
    for (int rank = 0; rank < TFOS_COLLECTIVE_MAX_RANKS; rank++)
        if (liveness->pid_fds[rank] >= 0)
            close(liveness->pid_fds[rank]);
    if (liveness->wake_fd >= 0)
        close(liveness->wake_fd);
    liveness->roster = NULL; // an operation under way may still count
}
