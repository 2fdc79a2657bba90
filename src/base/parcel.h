// SPDX-License-Identifier: Apache-2.0
/// Descriptors on their way over a unix socket, each group beside the range of the stream it
/// travels with.
#ifndef TFOS_BASE_PARCEL_H
#define TFOS_BASE_PARCEL_H

#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/frame.h"

/// Descriptors that go with the bytes [begin, end) of the stream. All zero is an empty one.
struct tfos__parcel {
    uint64_t begin;
    uint64_t end;
    int fds[TFOS__FRAME_DESCRIPTORS]; ///< the first `count` are owned
    int count;
};

/// Parcels in the order of the stream. All zero is an empty list.
struct tfos__parcel_list {
    struct tfos__parcel *items; ///< owned
    size_t capacity;
    size_t begin;
    size_t end;
};

/// Duplicates `count` descriptors into `parcel`. IO when one cannot be duplicated.
enum tfos_status tfos__parcel_init(struct tfos__parcel *parcel, const int *fds, int count,
                                   struct tfos_error *err);

/// Closes the descriptors.
void tfos__parcel_clear(struct tfos__parcel *parcel);

/// The oldest parcel, or NULL.
struct tfos__parcel *tfos__parcel_first(const struct tfos__parcel_list *list);

/// Appends a parcel and takes over its descriptors; on failure they stay the caller's.
enum tfos_status tfos__parcel_append(struct tfos__parcel_list *list,
                                     const struct tfos__parcel *parcel, struct tfos_error *err);

/// Forgets the oldest parcel; its descriptors are the caller's.
void tfos__parcel_shift(struct tfos__parcel_list *list);

void tfos__parcel_list_clear(struct tfos__parcel_list *list);

/// sendmsg() and recvmsg() without waiting. On OK `*done` bytes went; AGAIN; CLOSED when the peer
/// is gone. send: with at least one byte, the descriptors of `parcel` (may be NULL) went too.
/// receive: what came is in `parcel`, which was empty.
enum tfos_status tfos__parcel_send(int fd, const void *data, size_t size,
                                   const struct tfos__parcel *parcel, size_t *done,
                                   struct tfos_error *err);
enum tfos_status tfos__parcel_receive(int fd, void *data, size_t size, struct tfos__parcel *parcel,
                                      size_t *done, struct tfos_error *err);

#endif
