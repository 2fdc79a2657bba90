// SPDX-License-Identifier: Apache-2.0
/// Frames: a 4-byte big-endian length and a JSON object, to and from a buffer of bytes
/// (docs/protocol.md, "Frames"). Knows nothing of sockets.
#ifndef TFOS_BASE_FRAME_H
#define TFOS_BASE_FRAME_H

#include <jansson.h>
#include <stddef.h>
#include <tfos/status.h>

#include "base/buffer.h"

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

#endif
