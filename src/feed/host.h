// SPDX-License-Identifier: Apache-2.0
/// The inside of a host, for host.c and attempt_admission.c: connections of writers, what they wait
/// for, and the events for the node. One thread; proxies have their own and are reached through
/// their calls only.
#ifndef TFOS_FEED_HOST_H
#define TFOS_FEED_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/channel.h"
#include "base/cluster_key.h"
#include "base/queue_names.h"
#include "base/server.h"
#include "feed/attempt_table.h"
#include "feed/channel_pool.h"
#include "feed/feed.h"
#include "feed/feed_channel.h"
#include "feed/remote_proxy.h"

/// A queue: its control page, by which its reader and its writers know its state, and the attempts
/// of its partitions. Channels are made for one queue, out of the memory that all queues share.
struct tfos__feed_queue {
    const char *name; ///< borrowed
    int number;       ///< its place among the host's
    int control_fd;   ///< owned; -1 before open()
    struct tfos__feed_control *control;
    struct tfos__partition_table attempts;
    uint64_t progress; ///< of its readers, as last seen
};

/// The event that an attempt has ended. It is made when the attempt is admitted: a partition whose
/// attempt is not said to be closed gets no other.
struct tfos__feed_closed_attempt {
    struct tfos__feed_closed_attempt *next;
    struct tfos__feed_event event;
};

struct tfos__feed_connection {
    struct tfos__server_connection base; ///< first; a proxy has its channel, once there is one
    struct tfos__feed_host *host;
    struct tfos__feed_remote_proxy *proxy; ///< owned; NULL for a writer on this machine
    bool has_opened;                       ///< its first `open` was accepted
    bool is_waiting;                       ///< for a channel
    bool is_closed;                        ///< its attempt has ended
    bool has_written;    ///< it had a channel: the end of the feed does not end it
    bool is_stalled;     ///< it waits for an explanation
    bool has_told_stall; ///< the node has the event
    struct tfos__feed_closed_attempt *closing; ///< owned; from its first `open` to its end
    uint64_t ticket;                           ///< its place among those who wait
    struct tfos__feed_queue *queue;            ///< borrowed; NULL before its first `open`
    int64_t feed, partition, attempt, first_row;
    uint64_t size;      ///< of the ring that it waits for
    int64_t timeout_ms; ///< the writer's
    bool has_results;
    bool is_extra;                           ///< its attempt has a channel at another node
    struct tfos__feed_pool_channel *channel; ///< the one it writes to; NULL while it has none
    uint64_t rows;    ///< of the partition, up to the last in channels before that one
    uint64_t written; ///< published in those
    bool is_complete;
    uint64_t before_channel,
        before_head; ///< where the channel before ended (struct tfos__feed_channel_page)
};

struct tfos__feed_host {
    struct tfos__identity identity; ///< the id is owned
    struct tfos__queue_names names;
    struct tfos__feed_queue queues[TFOS__QUEUE_LIMIT]; ///< the first names.count
    char token[TFOS__KEY_PROOF_SIZE];
    struct tfos__server server;
    int timer_fd; ///< owned; in the server's epoll
    int port;
    struct tfos__feed_channel_pool pool;
    uint64_t next_ticket;
    bool is_timer_on;
    char *message;                                          ///< of the failure
    struct tfos__feed_closed_attempt *closed, **closed_end; ///< owned list, for next_event()
    int64_t reported_ms; ///< when progress was last reported to those who wait
    bool has_progress;   ///< there was some since
};

extern const struct tfos__server_handler tfos__feed_host_handler;

/// The first connection, or the next one; NULL: there is none.
struct tfos__feed_connection *tfos__feed_host_first(const struct tfos__feed_host *host);
struct tfos__feed_connection *tfos__feed_host_next(const struct tfos__feed_connection *connection);

struct tfos__feed_event tfos__feed_connection_event(const struct tfos__feed_connection *connection,
                                                    enum tfos__feed_event_kind kind);

/// Looks at the connection's proxy.
void tfos__feed_connection_check_proxy(struct tfos__feed_connection *connection);

/// Sends the final message (taken over) to a writer that may have a channel: it will leave by
/// itself, or ends where it waits.
void tfos__feed_connection_dismiss(struct tfos__feed_connection *connection, json_t *message);

/// Assigns channels to connections that wait for one, in the order in which they came.
void tfos__feed_host_serve(struct tfos__feed_host *host);

/// Ends the connection's attempt: fences it and keeps its count. Emits an event if `is_announced`.
void tfos__feed_host_close_attempt(struct tfos__feed_connection *connection, bool is_announced);

/// The message that says that the feed is over, "end" or "failed"; NULL while it is not, and at the
/// end of the feed for those who have written.
json_t *tfos__feed_host_close_message(const struct tfos__feed_connection *connection);

#endif
