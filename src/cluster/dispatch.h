// SPDX-License-Identifier: Apache-2.0
/// What each message of a peer does to the cluster.
#ifndef TFOS_CLUSTER_DISPATCH_H
#define TFOS_CLUSTER_DISPATCH_H

#include <jansson.h>
#include <tfos/status.h>

struct tfos__peer;

/// Handles one message. A negative status is a breach of the protocol, `err` says which: the caller
/// drops the peer.
enum tfos_status tfos__dispatch_message(struct tfos__peer *peer, const json_t *message,
                                        struct tfos_error *err);

/// The peer's connection has ended, or is about to be: `cause` in words. The peer may be freed
/// then.
void tfos__dispatch_end(struct tfos__peer *peer, const char *cause);

#endif
