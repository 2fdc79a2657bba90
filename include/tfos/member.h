// SPDX-License-Identifier: Apache-2.0
/// A member: one connection to the rendezvous, held by a node or by a feeder. Messages are JSON
/// text (docs/protocol.md). A handle belongs to one thread at a time.
#ifndef TFOS_MEMBER_H
#define TFOS_MEMBER_H

#include <stdint.h>
#include <tfos/status.h>
#include <tfos/wait.h>

struct tfos_member;

/// Connects to the rendezvous at `address` and shakes hands; `wait` has 30,000 ms for it, which
/// is also the most that one attempt gets. There is another attempt while the server turns
/// connections away because it has too many new ones. `key` is
/// 64 hexadecimal digits. DENIED when the key or id is another cluster's; TIMEOUT and CLOSED name
/// the address.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_member_open(const char *address, const char *cluster_id, const char *key,
                 const struct tfos_wait *wait, struct tfos_member **out, struct tfos_error *err);

/// This side's address on the connection, without port: what the driver's network sees. Valid until
/// close.
TFOS_API const char *tfos_member_local_host(const struct tfos_member *member);

/// The descriptor and the epoll events to wait for before the next step().
TFOS_API int tfos_member_fd(const struct tfos_member *member);
TFOS_API uint32_t tfos_member_events(const struct tfos_member *member);

/// Queues a message; step() or wait() writes it.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_member_send(struct tfos_member *member, const char *json, struct tfos_error *err);

/// Reads and writes what can be done without waiting. CLOSED when the driver has gone.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_member_step(struct tfos_member *member,
                                                           struct tfos_error *err);

/// The next message read so far; AGAIN when there is none. The caller frees it with tfos_free().
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_member_next(struct tfos_member *member, char **json,
                                                           struct tfos_error *err);

/// Writes what is queued and waits for the next message. TIMEOUT after `timeout_ms`.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_member_wait(struct tfos_member *member,
                                                           int64_t timeout_ms, char **json,
                                                           struct tfos_error *err);

/// Writes what is queued for at most `timeout_ms` and closes. NULL is accepted.
TFOS_API void tfos_member_close(struct tfos_member *member, int64_t timeout_ms);

#endif
