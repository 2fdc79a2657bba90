// SPDX-License-Identifier: Apache-2.0
// All connections are made at once, without waiting for one before another: two ranks that each
// waited for the other's proof first would wait for ever. A connection that does not prove itself
// is closed and forgotten: anybody may connect. When a rank has all its own it is ready; when all
// are, rank 0 says start.
#include "collective/links.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/socket.h"

#define STRANGERS_MAX 128    ///< accepted, and not yet proven
#define ANSWER_GRACE_MS 2000 ///< for rank 0 to name those that are missing
#define LIST_SIZE 2048

/// The state of open().
struct opening {
    struct tfos__collective_links *links;
    const struct tfos__collective_roster *roster;
    const struct tfos__collective_credentials *credentials;
    int listener;
    struct tfos__collective_peer strangers[STRANGERS_MAX];
    int stranger_count;
    bool is_ready[TFOS_COLLECTIVE_MAX_RANKS]; ///< by the messages to rank 0
    bool has_sent_ready;                      ///< that this rank is ready, to rank 0
    bool is_started;
    struct tfos_error lost; ///< why the connection to the next host is lost; empty: it is not
};

static bool is_leader(const struct tfos__collective_roster *roster)
{
    return roster->host_count > 1 && roster->members[roster->rank].index == 0;
}

static int neighbour(const struct tfos__collective_roster *roster, int step)
{
    int host = roster->members[roster->rank].host + step;
    return roster->leaders[(host + roster->host_count) % roster->host_count];
}

static enum tfos_status connect_to(const struct opening *opening,
                                   struct tfos__collective_peer *peer,
                                   enum tfos__collective_purpose purpose, int rank,
                                   int64_t deadline, struct tfos_error *err)
{
    const struct tfos__collective_member *member = &opening->roster->members[rank];
    int fd;
    enum tfos_status status =
        tfos__socket_connect(member->address, TFOS__UNTIL(deadline), &fd, err);
    TFOS__TRY(tfos__fail_in(err, status, "collective: cannot reach %s", member->label));
    return tfos__collective_peer_open(peer, fd, false, purpose, rank, opening->credentials, err);
}

static enum tfos_status connect_all(const struct opening *opening, int64_t deadline,
                                    struct tfos_error *err)
{
    const struct tfos__collective_roster *roster = opening->roster;
    struct tfos__collective_links *links = opening->links;
    if (roster->rank != 0)
        TFOS__TRY(
            connect_to(opening, &links->control[0], TFOS__COLLECTIVE_CONTROL, 0, deadline, err));
    if (tfos__collective_roster_is_remote(roster, roster->rank))
        TFOS__TRY(connect_to(opening, &links->parameters[0], TFOS__COLLECTIVE_PARAMETERS, 0,
                             deadline, err));
    if (is_leader(roster))
        TFOS__TRY(connect_to(opening, &links->next, TFOS__COLLECTIVE_RING, neighbour(roster, 1),
                             deadline, err));
    return TFOS_OK;
}

static void accept_all(struct opening *opening)
{
    char address[TFOS__ADDRESS_SIZE];
    int fd;
    while (opening->stranger_count < STRANGERS_MAX &&
           tfos__socket_accept(opening->listener, &fd, address, NULL) == TFOS_OK) {
        struct tfos__collective_peer *peer = &opening->strangers[opening->stranger_count];
        if (tfos__collective_peer_open(peer, fd, true, TFOS__COLLECTIVE_CONTROL, -1,
                                       opening->credentials, NULL) == TFOS_OK)
            opening->stranger_count++;
    }
}

/// Where a proven connection belongs; NULL: it is not expected.
static struct tfos__collective_peer *find_place(const struct opening *opening,
                                                const struct tfos__collective_peer *peer)
{
    const struct tfos__collective_roster *roster = opening->roster;
    struct tfos__collective_peer *place = NULL;
    if (peer->purpose == TFOS__COLLECTIVE_CONTROL && roster->rank == 0)
        place = &opening->links->control[peer->rank];
    else if (peer->purpose == TFOS__COLLECTIVE_RING && is_leader(roster) &&
             peer->rank == neighbour(roster, -1))
        place = &opening->links->previous;
    else if (peer->purpose == TFOS__COLLECTIVE_PARAMETERS && roster->rank == 0 &&
             tfos__collective_roster_is_remote(roster, peer->rank))
        place = &opening->links->parameters[peer->rank];
    return place && !place->channel && peer->rank != roster->rank ? place : NULL;
}

static void pump_strangers(struct opening *opening)
{
    for (int i = opening->stranger_count - 1; i >= 0; i--) {
        struct tfos__collective_peer *peer = &opening->strangers[i];
        enum tfos_status status = tfos__collective_peer_pump(peer, opening->credentials, NULL);
        if (status == TFOS_AGAIN)
            continue;
        struct tfos__collective_peer *place = status == TFOS_OK ? find_place(opening, peer) : NULL;
        if (place)
            *place = *peer;
        else
            tfos__collective_peer_close(peer);
        *peer = opening->strangers[--opening->stranger_count];
    }
}

/// Reads the messages of rank `rank` on its control connection.
static enum tfos_status read_messages(struct opening *opening, int rank, struct tfos_error *err)
{
    struct tfos__channel *channel = opening->links->control[rank].channel;
    const char *label = opening->roster->members[rank].label;
    json_t *message;
    enum tfos_status status;
    struct tfos_error cause;
    (void)tfos__channel_pump(channel, NULL); // next() gives the failure behind the last message
    while ((status = tfos__channel_next(channel, &message, NULL, NULL, &cause)) == TFOS_OK) {
        const char *type = tfos__json_string_or(message, "type", "");
        if (strcmp(type, "ready") == 0)
            opening->is_ready[rank] = true;
        else if (strcmp(type, "start") == 0 && rank == 0)
            opening->is_started = true;
        else if (strcmp(type, "failed") == 0)
            status =
                tfos__fail(err, (enum tfos_status)tfos__json_int_or(message, "status", TFOS_CLOSED),
                           "collective: %s", tfos__json_string_or(message, "message", ""));
        json_decref(message);
        if (status != TFOS_OK || opening->is_started)
            return status;
    }
    if (status == TFOS_AGAIN)
        return TFOS_OK;
    return tfos__fail(err, status, "collective: %s has ended: %s", label, cause.message);
}

static bool is_linked(const struct opening *opening)
{
    const struct tfos__collective_links *links = opening->links;
    const struct tfos__collective_roster *roster = opening->roster;
    bool is_whole = roster->rank == 0 || links->control[0].is_proven;
    for (int rank = 0; rank < roster->size; rank++) {
        int server = roster->rank == 0 ? rank : 0, client = roster->rank == 0 ? rank : roster->rank;
        if (tfos__collective_roster_is_remote(roster, client))
            is_whole = is_whole && links->parameters[server].is_proven;
    }
    return is_whole && (!is_leader(roster) || (links->next.is_proven && links->previous.is_proven));
}

static enum tfos_status pump_own(const struct opening *opening, struct tfos__collective_peer *peer,
                                 struct tfos_error *err)
{
    if (!peer->channel || peer->is_server ||
        (peer->is_proven && tfos__channel_pending_size(peer->channel) == 0))
        return TFOS_OK;
    const char *label = opening->roster->members[peer->rank].label;
    enum tfos_status status = tfos__collective_peer_pump(peer, opening->credentials, err);
    return tfos__fail_in(err, status, "collective: %s", label);
}

/// Tells rank 0 that this one is ready, or, on rank 0, all that they may start.
static enum tfos_status advance(struct opening *opening, struct tfos_error *err)
{
    struct tfos__collective_links *links = opening->links;
    int size = opening->roster->size;
    if (opening->has_sent_ready || !is_linked(opening))
        return TFOS_OK;
    if (opening->roster->rank != 0) {
        opening->has_sent_ready = true;
        TFOS__TRY(tfos__channel_queue(links->control[0].channel,
                                      json_pack("{s:s}", "type", "ready"), NULL, 0, err));
        return tfos__channel_flush(links->control[0].channel, err);
    }
    for (int rank = 1; rank < size; rank++)
        if (!opening->is_ready[rank])
            return TFOS_OK;
    for (int rank = 1; rank < size; rank++) {
        TFOS__TRY(tfos__channel_queue(links->control[rank].channel,
                                      json_pack("{s:s}", "type", "start"), NULL, 0, err));
        TFOS__TRY(tfos__channel_flush(links->control[rank].channel, err));
    }
    opening->is_started = true;
    return TFOS_OK;
}

/// All that can be done without waiting.
static enum tfos_status step(struct opening *opening, struct tfos_error *err)
{
    struct tfos__collective_links *links = opening->links;
    accept_all(opening);
    pump_strangers(opening);
    // That a rank is gone rank 0 hears too, and knows why.
    if (pump_own(opening, &links->next, &opening->lost) < 0)
        tfos__collective_peer_close(&links->next);
    TFOS__TRY(pump_own(opening, &links->control[0], err));
    TFOS__TRY(pump_own(opening, &links->parameters[0], err));
    for (int rank = 0; rank < opening->roster->size; rank++)
        if (links->control[rank].is_proven)
            TFOS__TRY(read_messages(opening, rank, err));
    return advance(opening, err);
}

static enum tfos_status wait_for_events(const struct opening *opening, int64_t deadline,
                                        struct tfos_error *err)
{
    struct pollfd slots[3 + TFOS_COLLECTIVE_MAX_RANKS + STRANGERS_MAX];
    const struct tfos__collective_links *links = opening->links;
    nfds_t count = 0;
    bool has_room = opening->stranger_count < STRANGERS_MAX;
    slots[count++] = (struct pollfd){.fd = has_room ? opening->listener : -1, .events = POLLIN};
    const struct tfos__channel *channels[2 + TFOS_COLLECTIVE_MAX_RANKS + STRANGERS_MAX];
    int channel_count = 0;
    if (links->next.channel && !links->next.is_proven)
        channels[channel_count++] = links->next.channel;
    if (links->parameters[0].channel && !links->parameters[0].is_proven)
        channels[channel_count++] = links->parameters[0].channel;
    for (int rank = 0; rank < opening->roster->size; rank++)
        if (links->control[rank].channel)
            channels[channel_count++] = links->control[rank].channel;
    for (int i = 0; i < opening->stranger_count; i++)
        channels[channel_count++] = opening->strangers[i].channel;
    for (int i = 0; i < channel_count; i++)
        slots[count++] = (struct pollfd){.fd = tfos__channel_fd(channels[i]),
                                         .events = (short)tfos__channel_events(channels[i])};
    if (poll(slots, count, tfos__remaining_ms(deadline)) < 0 && errno != EINTR)
        return tfos__fail_errno(err, TFOS_IO, "collective: cannot wait");
    return TFOS_OK;
}

static enum tfos_status fail_late(const struct opening *opening, struct tfos_error *err)
{
    const struct tfos__collective_roster *roster = opening->roster;
    char list[LIST_SIZE] = "";
    if (opening->lost.message[0] != '\0')
        return tfos__fail(err, TFOS_CLOSED, "%s", opening->lost.message);
    struct tfos__bounded_text missing = {.data = list, .capacity = sizeof(list)};
    for (int rank = 0; rank < roster->size; rank++) {
        bool is_missing = roster->rank == 0 ? rank != 0 && !opening->is_ready[rank] : rank == 0;
        if (is_missing)
            tfos__bounded_text_append(&missing, "%s%s", missing.size > 0 ? ", " : "",
                                      roster->members[rank].label);
    }
    if (missing.size == 0)
        tfos__bounded_text_append(&missing, "%s", roster->members[neighbour(roster, -1)].label);
    return tfos__fail(err, TFOS_TIMEOUT, "collective: no connection in time from %s", list);
}

static enum tfos_status run(struct opening *opening, int64_t deadline, struct tfos_error *err)
{
    // Rank 0 knows who is missing, and tells the others.
    bool has_grace = opening->roster->rank != 0 && deadline < TFOS__NEVER - ANSWER_GRACE_MS;
    int64_t own_deadline = has_grace ? deadline + ANSWER_GRACE_MS : deadline;
    TFOS__TRY(connect_all(opening, deadline, err));
    for (;;) {
        TFOS__TRY(step(opening, err));
        if (opening->is_started)
            return TFOS_OK;
        if (tfos__remaining_ms(own_deadline) == 0)
            return fail_late(opening, err);
        TFOS__TRY(wait_for_events(opening, own_deadline, err));
    }
}

/// Sends those that are connected the reason why this rank gives up.
static void send_failure(const struct tfos__collective_links *links, enum tfos_status status,
                         const char *message)
{
    static const char prefix[] = "collective: ";
    if (strncmp(message, prefix, sizeof(prefix) - 1) == 0)
        message += sizeof(prefix) - 1;
    for (int rank = 0; rank < TFOS_COLLECTIVE_MAX_RANKS; rank++) {
        if (!links->control[rank].is_proven)
            continue;
        struct tfos__channel *channel = links->control[rank].channel;
        if (tfos__channel_queue(channel,
                                json_pack("{s:s, s:i, s:s}", "type", "failed", "status",
                                          (int)status, "message", message),
                                NULL, 0, NULL) == TFOS_OK)
            (void)tfos__channel_flush(channel, NULL);
    }
}

enum tfos_status tfos__collective_links_open(struct tfos__collective_links *links, int listener,
                                             const struct tfos__collective_roster *roster,
                                             const struct tfos__collective_credentials *credentials,
                                             int64_t deadline, struct tfos_error *err)
{
    struct opening opening = {
        .links = links, .roster = roster, .credentials = credentials, .listener = listener};
    struct tfos_error cause;
    *links = (struct tfos__collective_links){0};
    enum tfos_status status = run(&opening, deadline, &cause);
    for (int i = 0; i < opening.stranger_count; i++)
        tfos__collective_peer_close(&opening.strangers[i]);
    if (status == TFOS_OK)
        return TFOS_OK;
    send_failure(links, status, cause.message);
    if (err)
        *err = cause;
    return status;
}

void tfos__collective_links_clear(struct tfos__collective_links *links)
{
    for (int rank = 0; rank < TFOS_COLLECTIVE_MAX_RANKS; rank++) {
        tfos__collective_peer_close(&links->control[rank]);
        tfos__collective_peer_close(&links->parameters[rank]);
    }
    tfos__collective_peer_close(&links->next);
    tfos__collective_peer_close(&links->previous);
}
