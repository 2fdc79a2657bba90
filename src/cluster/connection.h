// SPDX-License-Identifier: Apache-2.0
/// A connection of the server: a peer with its channel. All functions are called with the server's
/// lock held; those that do input and output by the server's thread only.
#ifndef TFOS_CLUSTER_CONNECTION_H
#define TFOS_CLUSTER_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/channel.h"
#include "cluster/peer.h"

struct tfos__server;

struct tfos__connection {
    struct tfos__peer peer; ///< first, so that a peer's address is its connection's
    struct tfos__server *server;
    struct tfos__channel *channel; ///< owned
    struct tfos__connection *previous,
        *next; ///< in the server's list; `next` also in that of the dropped
    struct tfos__connection *next_unsettled;
    bool is_unsettled; ///< in the server's list of those
    bool is_dropped;
    bool is_new;    ///< counted as one that has not said hello
    bool is_ending; ///< the peer has its last message and should go
    bool is_broken; ///< a message could not be queued; `cause` says why
    struct tfos_error cause;
    uint32_t events;  ///< what epoll watches for
    int64_t deadline; ///< it is closed then
};

/// Accepts all that wait at `listener`. Afterwards the server may pause accepting, for want of
/// descriptors.
void tfos__connection_accept(struct tfos__server *server, int listener);

/// Reads, handles and writes what can be.
void tfos__connection_serve(struct tfos__connection *connection);

/// Writes what has been queued for any connection, once; what that leads to is left to the next
/// call, so that a busy cluster does not keep the lock.
void tfos__connection_settle_all(struct tfos__server *server);

/// Closes those whose time is over.
void tfos__connection_expire_all(struct tfos__server *server, int64_t now_ms);

/// Closes and frees all.
void tfos__connection_close_all(struct tfos__server *server);

/// Frees what was dropped and settled. No event of epoll may refer to them any more.
void tfos__connection_free_dropped(struct tfos__server *server);

#endif
