// SPDX-License-Identifier: Apache-2.0
// The client's side of a rendezvous: connecting again while it rejects new connections.
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/cluster_key.h"
#include "base/fail.h"
#include "base/socket.h"
#include "cluster/cluster.h"

#define ATTEMPT_TIMEOUT_MS 30000
#define PAUSE_MS 50 // before the second attempt; each later one doubles it
#define PAUSE_LIMIT_MS 800

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

static enum tfos_status try_connect(const char *address, const struct tfos__identity *identity,
                                    struct tfos__wait *wait, struct tfos__channel **out,
                                    struct tfos_error *err)
{
    int fd;
    TFOS__TRY(tfos__socket_connect(address, wait, &fd, err));
    tfos__socket_watch_peer(fd, TFOS__TCP_MESSAGES);
    struct tfos__channel *channel;
    TFOS__TRY(tfos__channel_open(fd, TFOS__CHANNEL_TLS_CLIENT, identity, address, &channel, err));
    enum tfos_status status = shake_hands(channel, wait, err);
    if (status == TFOS_OK)
        *out = channel;
    else
        tfos__channel_close(channel);
    return status;
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
static enum tfos_status connect_member(const char *address, const struct tfos__identity *identity,
                                       struct tfos__wait *wait, struct tfos__channel **out,
                                       struct tfos_error *err)
{
    int64_t deadline = wait->deadline;
    int64_t pause_ms = PAUSE_MS;
    struct tfos_error cause;
    bool is_rejected = false;
    for (;;) {
        shorten(wait, ATTEMPT_TIMEOUT_MS);
        enum tfos_status status = try_connect(address, identity, wait, out, err);
        if (status == TFOS_AGAIN) {
            is_rejected = true;
            cause = *err;
        } else if (status != TFOS_TIMEOUT || !is_rejected || tfos__remaining_ms(deadline) != 0) {
            return status;
        }
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

enum tfos_status tfos__cluster_join(const char *address, const char *cluster_id, const char *key,
                                    const struct tfos_wait *wait, struct tfos__channel **out,
                                    struct tfos_error *err)
{
    struct tfos__identity identity = {.cluster_id = cluster_id};
    struct tfos_error local;
    err = err ? err : &local;
    if (!address || !address[0] || !cluster_id || !cluster_id[0])
        return tfos__fail(err, TFOS_INVALID, "member: %s is empty",
                          address && address[0] ? "cluster_id" : "address");
    TFOS__TRY(tfos__cluster_key_read(key, "member", identity.key, err));
    struct tfos__wait joining = tfos__wait_begin(wait, ATTEMPT_TIMEOUT_MS);
    enum tfos_status status = connect_member(address, &identity, &joining, out, err);
    explicit_bzero(identity.key, sizeof(identity.key));
    return tfos__fail_in(err, status, "member: cannot join the cluster %s at %s", cluster_id,
                         address);
}
