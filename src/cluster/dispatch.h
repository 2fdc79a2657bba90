// SPDX-License-Identifier: Apache-2.0
/// What each message of a session does to the cluster.
#ifndef TFOS_CLUSTER_DISPATCH_H
#define TFOS_CLUSTER_DISPATCH_H

#include <jansson.h>
#include <tfos/status.h>

struct tfos__cluster_session;

/// Handles one message. A negative status is a breach of the protocol: the caller drops the
/// session.
enum tfos_status tfos__cluster_dispatch_message(struct tfos__cluster_session *session,
                                                const json_t *message, struct tfos_error *err);

/// The session has ended, or is about to: `cause` in words. It may be freed then.
void tfos__cluster_dispatch_end(struct tfos__cluster_session *session, const char *cause);

#endif
