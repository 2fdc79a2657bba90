// SPDX-License-Identifier: Apache-2.0
/// A session: one connection as the handling of messages sees it, without its socket, so that tests
/// and fuzzers can drive the handling. The rendezvous' thread embeds it in a connection.
#ifndef TFOS_CLUSTER_SESSION_H
#define TFOS_CLUSTER_SESSION_H

#include <jansson.h>
#include <stdbool.h>

#include "base/socket.h"

struct tfos__cluster;
struct tfos__cluster_feeder;
struct tfos__cluster_node;

enum tfos__cluster_session_kind {
    TFOS__SESSION_NEW,    ///< has not sent its hello
    TFOS__SESSION_NODE,   ///< `node` is its place, NULL once another launch has it
    TFOS__SESSION_FEEDER, ///< `feeder` is what it feeds
    TFOS__SESSION_WATCHER ///< asked for the status, or for a stop
};

struct tfos__cluster_session {
    struct tfos__cluster *cluster;        ///< borrowed
    char address[TFOS__ADDRESS_SIZE];     ///< of the peer, for messages
    bool is_local;                        ///< came by the status socket
    enum tfos__cluster_session_kind kind; ///< set by its hello
    struct tfos__cluster_node *node;      ///< borrowed
    struct tfos__cluster_feeder *feeder;  ///< owned
    bool is_ending;                       ///< end() was called

    /// Queues a message, which it takes over. One that is NULL, for want of memory, ends the
    /// connection, since the peer would wait for it.
    void (*send)(struct tfos__cluster_session *session, json_t *message);

    /// Closes the connection once the peer has read all; NULL: there is none.
    void (*end)(struct tfos__cluster_session *session);
};

/// Sends `message`, taken over, as send() does; drops it where there is no session any more.
static inline void tfos__cluster_session_send(struct tfos__cluster_session *session,
                                              json_t *message)
{
    if (session)
        session->send(session, message);
    else
        json_decref(message);
}

/// The last message is sent; nothing is taken from the peer any more.
static inline void tfos__cluster_session_end(struct tfos__cluster_session *session)
{
    session->is_ending = true;
    if (session->end)
        session->end(session);
}

#endif
