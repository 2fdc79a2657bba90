// SPDX-License-Identifier: Apache-2.0
/// Frames: a 4-byte big-endian length and a JSON object, to and from a buffer of bytes
/// (docs/protocol.md, "Frames"); and the descriptors that travel with a frame over a unix socket
/// (SCM_RIGHTS).
#ifndef TFOS_BASE_FRAME_H
#define TFOS_BASE_FRAME_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/memory.h"

#define TFOS__FRAME_HEADER_SIZE 4u
#define TFOS__FRAME_LIMIT (4u << 20) ///< largest body of a frame, in bytes
#define TFOS__FRAME_DESCRIPTORS 4    ///< most descriptors that travel with one frame

/// Appends `message` as a frame. INVALID when its text is larger than TFOS__FRAME_LIMIT or it is no
/// object; on failure `out` holds what it held.
enum tfos_status tfos__frame_append(struct tfos__buffer *out, const json_t *message,
                                    struct tfos_error *err);

/// Whether the length at the beginning of `in`, if it is there, keeps the limits: OK or CORRUPT.
enum tfos_status tfos__frame_check(const struct tfos__buffer *in, struct tfos_error *err);

/// Takes the frame at the beginning of `in`: on OK the caller owns `*message`, and `*size` is the
/// number of bytes used up, header included. AGAIN when it is not whole; CORRUPT for a length
/// outside the limits or a body that is no JSON object.
enum tfos_status tfos__frame_take(struct tfos__buffer *in, json_t **message, size_t *size,
                                  struct tfos_error *err);

/// Descriptors that go with the bytes [begin, end) of the stream. All zero is an empty one.
struct tfos__passed_fds {
    uint64_t begin;
    uint64_t end;
    int fds[TFOS__FRAME_DESCRIPTORS]; ///< the first `count` are owned
    int count;
};

/// Duplicates `count` descriptors into `passed`. IO when one cannot be duplicated.
enum tfos_status tfos__passed_fds_init(struct tfos__passed_fds *passed, const int *fds, int count,
                                       struct tfos_error *err);

/// Closes the descriptors.
void tfos__passed_fds_clear(struct tfos__passed_fds *passed);

/// A queue of them, in the order of the stream, is a buffer that holds the structs. The oldest, or
/// NULL.
struct tfos__passed_fds *tfos__passed_fds_first(const struct tfos__buffer *queue);

/// Removes the oldest, whose descriptors are the caller's.
void tfos__passed_fds_shift(struct tfos__buffer *queue);

/// Closes the descriptors of all.
void tfos__passed_fds_clear_all(struct tfos__buffer *queue);

/// sendmsg() and recvmsg() without waiting. On OK `*done` bytes went; AGAIN; CLOSED when the peer
/// is gone. send: with at least one byte, the descriptors of `passed` (may be NULL) went too.
/// receive: what came is in `passed`, which was empty.
enum tfos_status tfos__passed_fds_send(int fd, const void *data, size_t size,
                                       const struct tfos__passed_fds *passed, size_t *done,
                                       struct tfos_error *err);
enum tfos_status tfos__passed_fds_receive(int fd, void *data, size_t size,
                                          struct tfos__passed_fds *passed, size_t *done,
                                          struct tfos_error *err);

#endif
