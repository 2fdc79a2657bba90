// SPDX-License-Identifier: Apache-2.0
/// The proxy of a writer on another machine, in the node: a thread that writes the records that
/// come over TLS to channels, as a local writer does, and sends results back. The calls are for the
/// host's thread.
#ifndef TFOS_FEED_REMOTE_PROXY_H
#define TFOS_FEED_REMOTE_PROXY_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/channel.h"
#include "feed/feed_channel.h"

struct tfos__feed_remote_proxy;

struct tfos__feed_remote_proxy_options {
    struct tfos__channel *connection;   ///< taken over
    struct tfos__feed_control *control; ///< borrowed, outlives the proxy
    int channel_fd;                     ///< borrowed for the call
    int wake_fd;                        ///< borrowed: an eventfd, written for check() to be called
    int64_t feed, partition, attempt;
    int64_t timeout_ms; ///< the writer waits no longer without an explanation
    bool has_results;
};

/// What a proxy wants from the host.
struct tfos__feed_proxy_requests {
    bool has_ended;       ///< close() will not have to wait
    bool is_stalled;      ///< an explanation is asked for
    uint64_t wanted_size; ///< a larger channel, or 0
};

enum tfos_status tfos__feed_remote_proxy_open(const struct tfos__feed_remote_proxy_options *options,
                                              struct tfos__feed_remote_proxy **out,
                                              struct tfos_error *err);

/// What has come up since the last call.
struct tfos__feed_proxy_requests
tfos__feed_remote_proxy_check(struct tfos__feed_remote_proxy *proxy);

/// Gives it the larger channel (`fd` is borrowed for the call).
enum tfos_status tfos__feed_remote_proxy_give_channel(struct tfos__feed_remote_proxy *proxy, int fd,
                                                      struct tfos_error *err);

/// Sends a message (taken over); after the last one the connection ends, and any later one is
/// dropped. Also for the proxy's own thread.
void tfos__feed_remote_proxy_send(struct tfos__feed_remote_proxy *proxy, json_t *message,
                                  bool is_last);

/// Ends the thread, within a fraction of a second, and the connection. NULL is accepted.
void tfos__feed_remote_proxy_close(struct tfos__feed_remote_proxy *proxy);

#endif
