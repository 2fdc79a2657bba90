// SPDX-License-Identifier: Apache-2.0
/// TLS 1.3 over a non-blocking socket with an external pre-shared key and nothing else: no
/// certificates, no tickets, no resumption. Never raises SIGPIPE. Used by channel.c only.
#ifndef TFOS_BASE_TLS_H
#define TFOS_BASE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <tfos/status.h>

#include "base/cluster_key.h"

struct tfos__tls;

/// A session over `fd`, which stays the caller's and must outlive it.
enum tfos_status tfos__tls_open(int fd, bool is_server, const struct tfos__identity *identity,
                                struct tfos__tls **out, struct tfos_error *err);

/// Before the handshake: much is going to come, so memory is given for speed.
enum tfos_status tfos__tls_expect_bulk(struct tfos__tls *tls, struct tfos_error *err);

/// Continues the handshake. OK once it is done; AGAIN; DENIED when the peer holds another key or
/// id, or does not speak this protocol; CLOSED when the peer is gone.
enum tfos_status tfos__tls_handshake(struct tfos__tls *tls, struct tfos_error *err);

/// Reads or writes some bytes. OK with `*done` > 0; AGAIN; CLOSED; CORRUPT when the stream was
/// tampered with. After AGAIN from write the next write must begin with the same bytes.
enum tfos_status tfos__tls_read(struct tfos__tls *tls, void *data, size_t size, size_t *done,
                                struct tfos_error *err);
enum tfos_status tfos__tls_write(struct tfos__tls *tls, const void *data, size_t size, size_t *done,
                                 struct tfos_error *err);

/// The event (POLLIN or POLLOUT) that the last call which gave AGAIN waits for: handshake or read,
/// and write.
short tfos__tls_read_event(const struct tfos__tls *tls);
short tfos__tls_write_event(const struct tfos__tls *tls);

/// Whether bytes have left the socket that read() has not given out, or not yet a whole record.
bool tfos__tls_has_pending(const struct tfos__tls *tls);

/// Sends the peer close_notify, if that can be done without waiting, and frees the session.
void tfos__tls_close(struct tfos__tls *tls);

#endif
