// SPDX-License-Identifier: Apache-2.0
/// Joining a cluster. A member, a node or a feeder, has a channel to the rendezvous; messages are
/// JSON objects (docs/protocol.md).
#ifndef TFOS_CLUSTER_CLUSTER_H
#define TFOS_CLUSTER_CLUSTER_H

#include <tfos/status.h>
#include <tfos/wait.h>

struct tfos__channel;

/// Connects to the rendezvous at `address` and shakes hands; `wait` has 30,000 ms for it, which is
/// also the most that one attempt gets. There is another attempt while the server rejects
/// connections because it has too many new ones. `key` is 64 hexadecimal digits. DENIED when the
/// key or id is another cluster's; TIMEOUT and CLOSED name the address.
TFOS_MUST_CHECK enum tfos_status tfos__cluster_join(const char *address, const char *cluster_id,
                                                    const char *key, const struct tfos_wait *wait,
                                                    struct tfos__channel **out,
                                                    struct tfos_error *err);

#endif
