// SPDX-License-Identifier: Apache-2.0
/// Descriptors that travel over a unix socket (SCM_RIGHTS), each group with the range of the stream
/// that it belongs to.
#ifndef TFOS_BASE_PASSED_FDS_H
#define TFOS_BASE_PASSED_FDS_H

#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/frame.h"

/// Descriptors that go with the bytes [begin, end) of the stream. All zero is an empty one.
struct tfos__passed_fds {
    uint64_t begin;
    uint64_t end;
    int fds[TFOS__FRAME_DESCRIPTORS]; ///< the first `count` are owned
    int count;
};

/// Groups in the order of the stream. All zero is an empty list.
struct tfos__passed_fds_list {
    struct tfos__passed_fds *items; ///< owned
    size_t capacity;
    size_t begin;
    size_t end;
};

/// Duplicates `count` descriptors into `passed`. IO when one cannot be duplicated.
enum tfos_status tfos__passed_fds_init(struct tfos__passed_fds *passed, const int *fds, int count,
                                       struct tfos_error *err);

/// Closes the descriptors.
void tfos__passed_fds_clear(struct tfos__passed_fds *passed);

/// The oldest group, or NULL.
struct tfos__passed_fds *tfos__passed_fds_first(const struct tfos__passed_fds_list *list);

/// Appends a group and takes over its descriptors; on failure they stay the caller's.
enum tfos_status tfos__passed_fds_append(struct tfos__passed_fds_list *list,
                                         const struct tfos__passed_fds *passed,
                                         struct tfos_error *err);

/// Forgets the oldest group; its descriptors are the caller's.
void tfos__passed_fds_shift(struct tfos__passed_fds_list *list);

void tfos__passed_fds_list_clear(struct tfos__passed_fds_list *list);

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
