// SPDX-License-Identifier: Apache-2.0
/// A peer: one connection as the message handling sees it, free of sockets, so that tests and
/// fuzzers can drive the handling without any. The server embeds it in a connection of its own.
#ifndef TFOS_CLUSTER_PEER_H
#define TFOS_CLUSTER_PEER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/address.h"

struct tfos__cluster;
struct tfos__entry;
struct tfos__feeder;

enum tfos__peer_kind {
    TFOS__PEER_NEW,    ///< has not said who it is
    TFOS__PEER_NODE,   ///< `entry` is its place, NULL once another launch has it
    TFOS__PEER_FEEDER, ///< `feeder` is what it feeds
    TFOS__PEER_WATCHER ///< asked for the status
};

struct tfos__peer {
    struct tfos__cluster *cluster;                          ///< borrowed
    char address[TFOS__ADDRESS_SIZE];                       ///< for messages
    bool is_local;                                          ///< came by the status socket
    enum tfos__peer_kind kind;                              ///< set by its hello
    struct tfos__entry *entry;                              ///< borrowed
    struct tfos__feeder *feeder;                            ///< owned
    bool is_closing;                                        ///< end() was called
    void (*send)(struct tfos__peer *peer, json_t *message); ///< queues; takes over `message`
    void (*end)(struct tfos__peer *peer); ///< lets it go once it has read all; NULL: nothing to do
};

/// Queues `message`, taken over, for `peer`; drops it when there is no such peer any more. A NULL
/// message (no memory to make it) is passed on: the owner then ends the connection, so that nobody
/// waits for it.
void tfos__peer_send(struct tfos__peer *peer, json_t *message);

/// The last message is sent; nothing is taken from it any more.
void tfos__peer_end(struct tfos__peer *peer);

#endif
