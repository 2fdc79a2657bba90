// SPDX-License-Identifier: Apache-2.0
/// The cluster as its members see it. A member is one connection to the rendezvous, held by a node
/// or by a feeder. Messages are JSON objects (docs/protocol.md). A handle belongs to one thread at
/// a time.
#ifndef TFOS_CLUSTER_CLUSTER_H
#define TFOS_CLUSTER_CLUSTER_H

#include <jansson.h>
#include <stdint.h>
#include <tfos/status.h>
#include <tfos/wait.h>

struct tfos__cluster_member;

/// Connects to the rendezvous at `address` and shakes hands; `wait` has 30,000 ms for it, which
/// is also the most that one attempt gets. There is another attempt while the server turns
/// connections away because it has too many new ones. `key` is
/// 64 hexadecimal digits. DENIED when the key or id is another cluster's; TIMEOUT and CLOSED name
/// the address.
TFOS_MUST_CHECK enum tfos_status tfos__cluster_member_open(const char *address,
                                                           const char *cluster_id, const char *key,
                                                           const struct tfos_wait *wait,
                                                           struct tfos__cluster_member **out,
                                                           struct tfos_error *err);

/// This side's address on the connection, without port: what the driver's network sees. Valid until
/// close.
const char *tfos__cluster_member_local_host(const struct tfos__cluster_member *member);

/// The descriptor and the epoll events to wait for before the next step().
int tfos__cluster_member_fd(const struct tfos__cluster_member *member);
uint32_t tfos__cluster_member_events(const struct tfos__cluster_member *member);

/// Queues a message, which is taken over, also on failure; step() or wait() writes it. NO_MEMORY
/// for NULL.
TFOS_MUST_CHECK enum tfos_status tfos__cluster_member_send(struct tfos__cluster_member *member,
                                                           json_t *message, struct tfos_error *err);

/// Reads and writes what can be done without waiting. CLOSED when the driver has gone.
TFOS_MUST_CHECK enum tfos_status tfos__cluster_member_step(struct tfos__cluster_member *member,
                                                           struct tfos_error *err);

/// The next message read so far, which the caller owns; AGAIN when there is none.
TFOS_MUST_CHECK enum tfos_status tfos__cluster_member_next(struct tfos__cluster_member *member,
                                                           json_t **message,
                                                           struct tfos_error *err);

/// Writes what is queued and waits for the next message. TIMEOUT after `timeout_ms`.
TFOS_MUST_CHECK enum tfos_status tfos__cluster_member_wait(struct tfos__cluster_member *member,
                                                           int64_t timeout_ms, json_t **message,
                                                           struct tfos_error *err);

/// Writes what is queued for at most `timeout_ms` and closes. NULL is accepted.
void tfos__cluster_member_close(struct tfos__cluster_member *member, int64_t timeout_ms);

#endif
