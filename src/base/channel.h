// SPDX-License-Identifier: Apache-2.0
/// A channel: JSON objects as frames over one stream socket, TCP under TLS 1.3 with a pre-shared
/// key, or a unix socket in the clear that can also pass descriptors. Used by the rendezvous, its
/// members, the feed and the trainer alike; docs/protocol.md has the bytes. Non-blocking inside: a
/// caller with an event loop calls pump(), others use the calls with a deadline. A failure of the
/// connection (not of a wait for a frame) is final: later calls give it again. One thread at a
/// time.
#ifndef TFOS_BASE_CHANNEL_H
#define TFOS_BASE_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/cluster_key.h"
#include "base/frame.h"

struct tfos__channel;

enum tfos__channel_kind {
    TFOS__CHANNEL_UNIX,       ///< in the clear, descriptors may be passed
    TFOS__CHANNEL_TLS_SERVER, ///< TCP, this side accepted
    TFOS__CHANNEL_TLS_CLIENT  ///< TCP, this side connected
};

/// Takes over the connected socket `fd` (closed by close, and when this fails). `identity` is used
/// by the TLS kinds only, and copied. `peer` names the other end in messages and is copied.
enum tfos_status tfos__channel_open(int fd, enum tfos__channel_kind kind,
                                    const struct tfos__identity *identity, const char *peer,
                                    struct tfos__channel **out, struct tfos_error *err);

/// Makes a pair of unix sockets: a channel over the one, and the other for `peer`, a process to be
/// started.
enum tfos_status tfos__channel_open_pair(const char *peer, struct tfos__channel **out, int *peer_fd,
                                         struct tfos_error *err);

/// Right after open: raw bytes will come and go by the megabyte. Without it a channel is made for
/// frames, and there may be a thousand of them: it holds as little memory as it can.
enum tfos_status tfos__channel_expect_bulk(struct tfos__channel *channel, struct tfos_error *err);

/// For an event loop: the descriptor, and the events (EPOLLIN, EPOLLOUT) to wait for now.
int tfos__channel_fd(const struct tfos__channel *channel);
uint32_t tfos__channel_events(const struct tfos__channel *channel);
const char *tfos__channel_peer(const struct tfos__channel *channel);

/// Whether the handshake is done (always so for unix).
bool tfos__channel_is_ready(const struct tfos__channel *channel);

/// Bytes queued and not yet taken by the kernel; a caller bounds its peers by it.
size_t tfos__channel_pending_size(const struct tfos__channel *channel);

/// Shakes hands, reads and writes what can be done without waiting. OK; DENIED when the peer holds
/// another key or id; CLOSED when the peer is gone (frames read before are still given out by
/// next()); CORRUPT for a frame that breaks the limits.
enum tfos_status tfos__channel_pump(struct tfos__channel *channel, struct tfos_error *err);

/// Takes the next whole frame that has been read. On OK the caller owns `*message` (json_decref),
/// and in `fds` the `*fd_count` descriptors that came with it (`fds` may be NULL: then they are
/// closed). AGAIN when there is none yet; CLOSED once the peer has gone and all is read; CORRUPT
/// when the body is no JSON object.
enum tfos_status tfos__channel_next(struct tfos__channel *channel, json_t **message,
                                    int fds[TFOS__FRAME_DESCRIPTORS], int *fd_count,
                                    struct tfos_error *err);

/// Queues a frame, and with it duplicates of `fd_count` descriptors (unix only). Takes over the
/// reference to `message`, also when it fails. Nothing is written until pump(). INVALID when larger
/// than the limit; NO_MEMORY when `message` is NULL, so that the maker of one need not look.
enum tfos_status tfos__channel_queue(struct tfos__channel *channel, json_t *message, const int *fds,
                                     int fd_count, struct tfos_error *err);

/// Writes what the kernel takes of what is queued, and reads nothing: for a sender whose event loop
/// reads elsewhere and would not notice what pump() has read, and for the last frame before raw
/// bytes. Only when it fails are the peer's last messages read.
enum tfos_status tfos__channel_flush(struct tfos__channel *channel, struct tfos_error *err);

/// queue() and flush() towards a peer that may be slow, but must miss nothing. BUSY when more than
/// `limit` bytes wait for it then; NO_MEMORY and INVALID as queue() gives them. OK also when the
/// connection is lost, which the reader of the channel finds out.
enum tfos_status tfos__channel_send_bounded(struct tfos__channel *channel, json_t *message,
                                            const int *fds, int fd_count, size_t limit,
                                            struct tfos_error *err);

/// queue() and then pump() until all is written. TIMEOUT at the deadline.
enum tfos_status tfos__channel_send(struct tfos__channel *channel, json_t *message, const int *fds,
                                    int fd_count, int64_t deadline, struct tfos_error *err);

/// Waits for the next frame. TIMEOUT at the deadline.
enum tfos_status tfos__channel_receive(struct tfos__channel *channel, json_t **message,
                                       int fds[TFOS__FRAME_DESCRIPTORS], int *fd_count,
                                       int64_t deadline, struct tfos_error *err);

/// Raw bytes after the last frame, for a stream that follows a hello (the feed over TCP), both ways
/// and without waiting: some bytes go, `*done` of them; AGAIN when none can. After AGAIN from
/// write_some the next one must begin with the same bytes. TLS may hold more than the socket shows:
/// read until AGAIN before waiting for events.
enum tfos_status tfos__channel_read_some(struct tfos__channel *channel, void *data, size_t size,
                                         size_t *done, struct tfos_error *err);
enum tfos_status tfos__channel_write_some(struct tfos__channel *channel, const void *data,
                                          size_t size, size_t *done, struct tfos_error *err);

/// Ends the channel and closes its socket; what is queued is lost. NULL is accepted.
void tfos__channel_close(struct tfos__channel *channel);

/// Writes what is queued for at most `timeout_ms`, and closes. NULL is accepted.
void tfos__channel_finish(struct tfos__channel *channel, int64_t timeout_ms);

#endif
