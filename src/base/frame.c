// SPDX-License-Identifier: Apache-2.0
// The length is checked as soon as its four bytes are there, before anything is allocated for the
// body. The kernel ends a read behind the bytes that descriptors came with, but may put bytes that
// were sent before in front of them (unix(7)): so the sender gives descriptors only to a message
// that begins with the first byte of their frame and holds no other frame, and the receiver knows
// them to belong to the last frame that begins in what it read.
#include "base/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

struct text_sink {
    struct tfos__buffer *out;
    size_t room; // bytes of body that the limit still allows
};

static int append_text(const char *text, size_t size, void *context)
{
    struct text_sink *sink = context;
    if (size > sink->room) {
        sink->room = 0;
        return -1;
    }
    sink->room -= size;
    return tfos__buffer_append(sink->out, text, size, NULL) == TFOS_OK ? 0 : -1;
}

enum tfos_status tfos__frame_append(struct tfos__buffer *out, const json_t *message,
                                    struct tfos_error *err)
{
    if (!json_is_object(message))
        return tfos__fail(err, TFOS_INVALID, "frame: a message must be a JSON object");
    size_t old_size = tfos__buffer_size(out);
    unsigned char header[TFOS__FRAME_HEADER_SIZE] = {0};
    TFOS__TRY(tfos__buffer_append(out, header, sizeof(header), err));
    struct text_sink sink = {.out = out, .room = TFOS__FRAME_LIMIT};
    if (json_dump_callback(message, append_text, &sink, JSON_COMPACT) != 0) {
        out->end = out->begin + old_size;
        if (sink.room == 0)
            return tfos__fail(err, TFOS_INVALID,
                              "frame: the message is larger than the limit of %u bytes",
                              TFOS__FRAME_LIMIT);
        return tfos__no_memory(err, "frame", "the text of a message");
    }
    uint32_t size = TFOS__FRAME_LIMIT - (uint32_t)sink.room;
    unsigned char *at = out->data + out->begin + old_size;
    at[0] = (unsigned char)(size >> 24);
    at[1] = (unsigned char)(size >> 16);
    at[2] = (unsigned char)(size >> 8);
    at[3] = (unsigned char)size;
    return TFOS_OK;
}

static uint32_t body_size(const struct tfos__buffer *in)
{
    const unsigned char *at = in->data + in->begin;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

enum tfos_status tfos__frame_check(const struct tfos__buffer *in, struct tfos_error *err)
{
    if (tfos__buffer_size(in) < TFOS__FRAME_HEADER_SIZE)
        return TFOS_OK;
    uint32_t size = body_size(in);
    if (size == 0 || size > TFOS__FRAME_LIMIT)
        return tfos__fail(err, TFOS_CORRUPT, "frame: a length of %u bytes is not from 1 to %u",
                          (unsigned)size, TFOS__FRAME_LIMIT);
    return TFOS_OK;
}

enum tfos_status tfos__frame_take(struct tfos__buffer *in, json_t **message, size_t *size,
                                  struct tfos_error *err)
{
    TFOS__TRY(tfos__frame_check(in, err));
    if (tfos__buffer_size(in) < TFOS__FRAME_HEADER_SIZE)
        return TFOS_AGAIN;
    size_t frame_size = TFOS__FRAME_HEADER_SIZE + body_size(in);
    if (tfos__buffer_size(in) < frame_size)
        return TFOS_AGAIN;
    const char *body = (const char *)in->data + in->begin + TFOS__FRAME_HEADER_SIZE;
    TFOS__TRY(tfos__json_parse(body, frame_size - TFOS__FRAME_HEADER_SIZE, message, err));
    tfos__buffer_consume(in, frame_size);
    *size = frame_size;
    return TFOS_OK;
}

// ---- descriptors

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

struct tfos__passed_fds *tfos__passed_fds_first(const struct tfos__buffer *queue)
{
    return tfos__buffer_size(queue) > 0 ? (void *)(queue->data + queue->begin) : NULL;
}

void tfos__passed_fds_shift(struct tfos__buffer *queue)
{
    tfos__buffer_consume(queue, sizeof(struct tfos__passed_fds));
}

void tfos__passed_fds_clear_all(struct tfos__buffer *queue)
{
    struct tfos__passed_fds *passed;
    for (; (passed = tfos__passed_fds_first(queue)); tfos__passed_fds_shift(queue))
        tfos__passed_fds_clear(passed);
    tfos__buffer_clear(queue);
}

enum tfos_status tfos__passed_fds_send(int fd, const void *data, size_t size,
                                       const struct tfos__passed_fds *passed, size_t *done,
                                       struct tfos_error *err)
{
    union control control;
    struct iovec bytes = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (passed) {
        memset(&control, 0, sizeof(control));
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
            memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
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
                             .msg_controllen = sizeof(control.bytes)};
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
