// SPDX-License-Identifier: Apache-2.0
/// A relay: the node's end of a writer on another machine. A thread of its own moves records from
/// the TLS connection into a lane and results back. The calls are for the host's thread.
#ifndef TFOS_FEED_RELAY_H
#define TFOS_FEED_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/channel.h"
#include "feed/lane.h"

struct tfos__relay;

struct tfos__relay_options {
    struct tfos__channel *channel; ///< taken over
    struct tfos__board *board;     ///< borrowed, outlives the relay
    int lane_fd;                   ///< borrowed for the call
    int wake_fd;                   ///< borrowed: an eventfd, written when the host should look
    int64_t feed, partition, attempt;
    int64_t timeout_ms; ///< the writer waits no longer without an explanation
    bool has_results;
};

/// What a relay wants from the host.
struct tfos__relay_news {
    bool has_ended;       ///< close() will not have to wait
    bool is_stalled;      ///< an explanation is asked for
    uint64_t wanted_size; ///< a larger lane, or 0
};

enum tfos_status tfos__relay_open(const struct tfos__relay_options *options,
                                  struct tfos__relay **out, struct tfos_error *err);

/// What has come up since the last call.
void tfos__relay_check(struct tfos__relay *relay, struct tfos__relay_news *news);

/// Gives it the larger lane (`fd` is borrowed for the call).
enum tfos_status tfos__relay_give_lane(struct tfos__relay *relay, int fd, struct tfos_error *err);

/// Sends a message (taken over); after the last one the connection ends.
void tfos__relay_send(struct tfos__relay *relay, json_t *message, bool is_last);

/// Ends the thread, within a fraction of a second, and the connection. NULL is accepted.
void tfos__relay_close(struct tfos__relay *relay);

#endif
