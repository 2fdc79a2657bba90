// SPDX-License-Identifier: Apache-2.0
// Passing descriptors. The kernel ends a read behind the bytes that descriptors came with, but may
// put bytes that were sent before in front of them (unix(7)): so the sender gives descriptors only
// to a message that begins with the first byte of their frame and holds no other frame, and the
// receiver knows them to belong to the last frame that begins in what it read.
#include "base/passed_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"

// Room for more than is allowed, so that too many are seen and closed rather than cut off by the
// kernel.
#define CONTROL_DESCRIPTORS (TFOS__FRAME_DESCRIPTORS + 4)

union control {
    char bytes[CMSG_SPACE(CONTROL_DESCRIPTORS * sizeof(int))];
    struct cmsghdr aligned;
};

enum tfos_status tfos__passed_fds_init(struct tfos__passed_fds *passed, const int *fds, int count,
                                       struct tfos_error *err)
{
    *passed = (struct tfos__passed_fds){0};
    for (int i = 0; i < count; i++) {
        int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            enum tfos_status status =
                tfos__fail_errno(err, TFOS_IO, "cannot duplicate descriptor %d", fds[i]);
            tfos__passed_fds_clear(passed);
            return status;
        }
        passed->fds[passed->count++] = fd;
    }
    return TFOS_OK;
}

void tfos__passed_fds_clear(struct tfos__passed_fds *passed)
{
    for (int i = 0; i < passed->count; i++)
        close(passed->fds[i]);
    *passed = (struct tfos__passed_fds){0};
}

struct tfos__passed_fds *tfos__passed_fds_first(const struct tfos__passed_fds_list *list)
{
    return list->begin < list->end ? &list->items[list->begin] : NULL;
}

enum tfos_status tfos__passed_fds_append(struct tfos__passed_fds_list *list,
                                         const struct tfos__passed_fds *passed,
                                         struct tfos_error *err)
{
    if (list->end == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 4;
        struct tfos__passed_fds *items = tfos__realloc(list->items, capacity, sizeof *items);
        if (!items)
            return tfos__no_memory(err, "channel", "passed descriptors");
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->end++] = *passed;
    return TFOS_OK;
}

void tfos__passed_fds_shift(struct tfos__passed_fds_list *list)
{
    if (++list->begin == list->end) {
        list->begin = 0;
        list->end = 0;
    } else if (list->begin > list->capacity / 2) {
        memmove(list->items, list->items + list->begin,
                (list->end - list->begin) * sizeof *list->items);
        list->end -= list->begin;
        list->begin = 0;
    }
}

void tfos__passed_fds_list_clear(struct tfos__passed_fds_list *list)
{
    for (size_t i = list->begin; i < list->end; i++)
        tfos__passed_fds_clear(&list->items[i]);
    tfos__free(list->items);
    *list = (struct tfos__passed_fds_list){0};
}

enum tfos_status tfos__passed_fds_send(int fd, const void *data, size_t size,
                                       const struct tfos__passed_fds *passed, size_t *done,
                                       struct tfos_error *err)
{
    union control control;
    struct iovec bytes = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (passed) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE((size_t)passed->count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN((size_t)passed->count * sizeof(int));
        memcpy(CMSG_DATA(header), passed->fds, (size_t)passed->count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) {
        *done = (size_t)sent;
        return TFOS_OK;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return TFOS_AGAIN;
    enum tfos_status status = errno == EPIPE || errno == ECONNRESET ? TFOS_CLOSED : TFOS_IO;
    return tfos__fail_errno(err, status, "cannot send %zu bytes", size);
}

// Puts what came into `passed`; what is beyond the limit is closed and counted.
static int collect_descriptors(struct msghdr *message, struct tfos__passed_fds *passed)
{
    int surplus = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
            if (passed->count < TFOS__FRAME_DESCRIPTORS) {
                passed->fds[passed->count++] = fd;
            } else {
                close(fd);
                surplus++;
            }
        }
    }
    return surplus;
}

enum tfos_status tfos__passed_fds_receive(int fd, void *data, size_t size,
                                          struct tfos__passed_fds *passed, size_t *done,
                                          struct tfos_error *err)
{
    union control control;
    struct iovec bytes = {.iov_base = data, .iov_len = size};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t received;
    do
        received = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (received < 0 && errno == EINTR);
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return TFOS_AGAIN;
    if (received < 0)
        return tfos__fail_errno(err, errno == ECONNRESET ? TFOS_CLOSED : TFOS_IO, "cannot receive");
    int surplus = collect_descriptors(&message, passed);
    if (surplus > 0 || (message.msg_flags & MSG_CTRUNC)) {
        tfos__passed_fds_clear(passed);
        if (surplus > 0)
            return tfos__fail(err, TFOS_CORRUPT, "more than %d descriptors in one frame",
                              TFOS__FRAME_DESCRIPTORS);
        return tfos__fail(err, TFOS_IO,
                          "descriptors were lost: this process has no room for more open "
                          "files; raise its limit (ulimit -n)");
    }
    if (received == 0)
        return tfos__fail(err, TFOS_CLOSED, "the peer closed the connection");
    *done = (size_t)received;
    return TFOS_OK;
}
