// SPDX-License-Identifier: Apache-2.0
// The other end of a rendezvous' connection.
#include "cluster/cluster.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/cluster_key.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/socket.h"

#define ATTEMPT_TIMEOUT_MS 30000
#define PAUSE_MS 50 // before the second attempt; each later one doubles it
#define PAUSE_LIMIT_MS 800

struct tfos__cluster_member {
    struct tfos__channel *channel; // owned
    char host[TFOS__ADDRESS_SIZE];
};

/// AGAIN, with the error for giving up, when the server ends the connection: it does so while it
/// has as many new connections as it serves at once.
static enum tfos_status shake_hands(struct tfos__channel *channel, struct tfos__wait *wait,
                                    struct tfos_error *err)
{
    for (;;) {
        enum tfos_status status = tfos__channel_pump(channel, err);
        if (status == TFOS_CLOSED)
            return TFOS_AGAIN;
        TFOS__TRY(status);
        if (tfos__channel_is_ready(channel))
            return TFOS_OK;
        TFOS__TRY(tfos__socket_await(tfos__channel_fd(channel),
                                     (short)tfos__channel_events(channel), wait, err));
    }
}

static enum tfos_status try_connect(struct tfos__cluster_member *member, const char *address,
                                    const struct tfos__identity *identity, struct tfos__wait *wait,
                                    struct tfos_error *err)
{
    int fd;
    TFOS__TRY(tfos__socket_connect(address, wait, &fd, err));
    tfos__socket_watch_peer(fd, TFOS__TCP_MESSAGES);
    TFOS__TRY(
        tfos__channel_open(fd, TFOS__CHANNEL_TLS_CLIENT, identity, address, &member->channel, err));
    TFOS__TRY(tfos__address_local_host(fd, member->host, err));
    return shake_hands(member->channel, wait, err);
}

/// Runs `wait` for no longer than `limit_ms`; the caller puts its deadline back.
static void shorten(struct tfos__wait *wait, int64_t limit_ms)
{
    int64_t limit = tfos__deadline(limit_ms);
    if (limit < wait->deadline)
        wait->deadline = limit;
}

/// A server that does not answer is given up after one attempt's time, one that rejects only at the
/// deadline. `err` is not NULL.
static enum tfos_status connect_member(struct tfos__cluster_member *member, const char *address,
                                       const struct tfos__identity *identity,
                                       struct tfos__wait *wait, struct tfos_error *err)
{
    int64_t deadline = wait->deadline;
    int64_t pause_ms = PAUSE_MS;
    struct tfos_error cause;
    bool is_rejected = false;
    for (;;) {
        shorten(wait, ATTEMPT_TIMEOUT_MS);
        enum tfos_status status = try_connect(member, address, identity, wait, err);
        if (status == TFOS_AGAIN) {
            is_rejected = true;
            cause = *err;
        } else if (status != TFOS_TIMEOUT || !is_rejected || tfos__remaining_ms(deadline) != 0) {
            return status;
        }
        tfos__channel_close(member->channel);
        member->channel = NULL;
        if (tfos__remaining_ms(deadline) == 0) {
            *err = cause;
            tfos__fail_prefix(err, "it ended every connection before the handshake, as a driver "
                                   "does that has too many newcomers");
            return TFOS_CLOSED;
        }
        // Peers that were rejected together should not come back together.
        wait->deadline = deadline;
        shorten(wait, pause_ms + getpid() % pause_ms);
        status = tfos__socket_await(-1, 0, wait, err);
        if (status != TFOS_TIMEOUT)
            return status;
        wait->deadline = deadline;
        pause_ms = pause_ms < PAUSE_LIMIT_MS ? 2 * pause_ms : pause_ms;
    }
}

enum tfos_status tfos__cluster_member_open(const char *address, const char *cluster_id,
                                           const char *key, const struct tfos_wait *wait,
                                           struct tfos__cluster_member **out,
                                           struct tfos_error *err)
{
    struct tfos__identity identity = {.cluster_id = cluster_id};
    struct tfos_error local;
    err = err ? err : &local;
    if (!address || !address[0] || !cluster_id || !cluster_id[0])
        return tfos__fail(err, TFOS_INVALID, "member: %s is empty",
                          address && address[0] ? "cluster_id" : "address");
    TFOS__TRY(tfos__cluster_key_read(key, "member", identity.key, err));
    struct tfos__cluster_member *member = tfos__alloc(1, sizeof(*member));
    if (!member)
        return tfos__no_memory(err, "member", "its handle");
    struct tfos__wait joining = tfos__wait_begin(wait, ATTEMPT_TIMEOUT_MS);
    enum tfos_status status = connect_member(member, address, &identity, &joining, err);
    explicit_bzero(identity.key, sizeof(identity.key));
    if (status != TFOS_OK) {
        tfos__fail_prefix(err, "member: cannot join the cluster %s at %s", cluster_id, address);
        tfos__cluster_member_close(member, 0);
        return status;
    }
    *out = member;
    return TFOS_OK;
}

const char *tfos__cluster_member_local_host(const struct tfos__cluster_member *member)
{
    return member->host;
}

int tfos__cluster_member_fd(const struct tfos__cluster_member *member)
{
    return tfos__channel_fd(member->channel);
}

uint32_t tfos__cluster_member_events(const struct tfos__cluster_member *member)
{
    return tfos__channel_events(member->channel);
}

enum tfos_status tfos__cluster_member_send(struct tfos__cluster_member *member, json_t *message,
                                           struct tfos_error *err)
{
    return tfos__channel_queue(member->channel, message, NULL, 0, err);
}

enum tfos_status tfos__cluster_member_step(struct tfos__cluster_member *member,
                                           struct tfos_error *err)
{
    return tfos__channel_pump(member->channel, err);
}

enum tfos_status tfos__cluster_member_next(struct tfos__cluster_member *member, json_t **message,
                                           struct tfos_error *err)
{
    return tfos__channel_next(member->channel, message, NULL, NULL, err);
}

enum tfos_status tfos__cluster_member_wait(struct tfos__cluster_member *member, int64_t timeout_ms,
                                           json_t **message, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    // What is queued goes out even if a message has been read already.
    (void)tfos__channel_pump(member->channel, NULL);
    return tfos__channel_receive(member->channel, message, NULL, NULL, deadline, err);
}

void tfos__cluster_member_close(struct tfos__cluster_member *member, int64_t timeout_ms)
{
    if (!member)
        return;
    tfos__channel_finish(member->channel, timeout_ms);
    tfos__free(member);
}
