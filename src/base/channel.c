// SPDX-License-Identifier: Apache-2.0
// Frames over a unix socket or TLS. Bytes read wait in `in` until next() takes them, bytes to write
// wait in `out`. The invariant that lets epoll be level-triggered: fill() leaves nothing readable
// inside TLS, and stops reading only while `in` holds a whole frame. The first failure stays: every
// later call gives it again.
#include "base/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/frame.h"
#include "base/memory.h"
#include "base/socket.h"
#include "base/tls.h"

#define READ_SIZE (16u << 10) // least room for one read; a TLS record
#define FULL_SIZE (TFOS__FRAME_LIMIT + TFOS__FRAME_HEADER_SIZE) // so many bytes hold a whole frame
#define FULL_PASSED_FDS_SIZE (64 * sizeof(struct tfos__passed_fds))
#define DRAIN_SIZE (1u << 20)

_Static_assert((int)EPOLLIN == POLLIN && (int)EPOLLOUT == POLLOUT,
               "events() serves poll() as well");

struct tfos__channel {
    int fd;                // owned
    char *peer;            // owned
    struct tfos__tls *tls; // owned; NULL for unix
    bool is_ready;
    struct tfos__buffer in;
    struct tfos__buffer out;
    uint64_t in_position;         // in the stream, of in.begin
    uint64_t out_position;        // in the stream, of out.begin
    struct tfos__buffer received; // struct tfos__passed_fds, with bytes of `in`
    struct tfos__buffer queued;   // the same, with bytes of `out`
    enum tfos_status failure;     // OK until something has failed
    struct tfos_error cause;      // its words
};

static enum tfos_status give_failure(const struct tfos__channel *channel, struct tfos_error *err)
{
    if (err)
        *err = channel->cause;
    return channel->failure;
}

// Takes up a failure whose words are in `cause`.
static enum tfos_status fail_channel(struct tfos__channel *channel, enum tfos_status status)
{
    tfos__fail_prefix(&channel->cause, "channel: %s", channel->peer);
    channel->failure = status;
    return status;
}

enum tfos_status tfos__channel_open(int fd, enum tfos__channel_kind kind,
                                    const struct tfos__identity *identity, const char *peer,
                                    struct tfos__channel **out, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    int flags = fcntl(fd, F_GETFL);
    struct tfos__channel *channel = tfos__alloc(1, sizeof(*channel));
    if (!channel) {
        close(fd);
        return tfos__no_memory(err, "channel", "a channel");
    }
    channel->fd = fd;
    channel->peer = tfos__strdup(peer);
    if (!channel->peer)
        status = tfos__no_memory(err, "channel", "a peer's name");
    else if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        status = tfos__fail_errno(err, TFOS_IO, "channel: %s: cannot use descriptor %d", peer, fd);
    else if (kind != TFOS__CHANNEL_UNIX)
        status = tfos__tls_open(fd, kind == TFOS__CHANNEL_TLS_SERVER, identity, &channel->tls, err);
    if (status != TFOS_OK) {
        tfos__channel_close(channel);
        return status;
    }
    channel->is_ready = kind == TFOS__CHANNEL_UNIX;
    *out = channel;
    return TFOS_OK;
}

enum tfos_status tfos__channel_open_pair(const char *peer, struct tfos__channel **out, int *peer_fd,
                                         struct tfos_error *err)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return tfos__fail_errno(err, TFOS_IO, "channel: cannot make the socket to %s", peer);
    enum tfos_status status = tfos__channel_open(fds[0], TFOS__CHANNEL_UNIX, NULL, peer, out, err);
    if (status == TFOS_OK)
        *peer_fd = fds[1];
    else
        close(fds[1]);
    return status;
}

enum tfos_status tfos__channel_expect_bulk(struct tfos__channel *channel, struct tfos_error *err)
{
    return channel->tls ? tfos__tls_expect_bulk(channel->tls, err) : TFOS_OK;
}

int tfos__channel_fd(const struct tfos__channel *channel)
{
    return channel->fd;
}

static bool is_full(const struct tfos__channel *channel)
{
    return tfos__buffer_size(&channel->in) >= FULL_SIZE ||
           tfos__buffer_size(&channel->received) >= FULL_PASSED_FDS_SIZE;
}

uint32_t tfos__channel_events(const struct tfos__channel *channel)
{
    const struct tfos__tls *tls = channel->tls;
    if (!channel->is_ready)
        return (uint32_t)tfos__tls_read_event(tls);
    uint32_t events = 0;
    if (!is_full(channel))
        events |= (uint32_t)(tls ? tfos__tls_read_event(tls) : POLLIN);
    if (tfos__buffer_size(&channel->out) > 0)
        events |= (uint32_t)(tls ? tfos__tls_write_event(tls) : POLLOUT);
    return events;
}

const char *tfos__channel_peer(const struct tfos__channel *channel)
{
    return channel->peer;
}

bool tfos__channel_is_ready(const struct tfos__channel *channel)
{
    return channel->is_ready;
}

size_t tfos__channel_pending_size(const struct tfos__channel *channel)
{
    return tfos__buffer_size(&channel->out);
}

// Continues the handshake. OK also while it is not done: see is_ready.
static enum tfos_status handshake(struct tfos__channel *channel)
{
    if (channel->is_ready)
        return TFOS_OK;
    enum tfos_status status = tfos__tls_handshake(channel->tls, &channel->cause);
    channel->is_ready = status == TFOS_OK;
    return status == TFOS_AGAIN ? TFOS_OK : status;
}

// Writes some of `out`. A message with descriptors holds bytes of their frame only, and one without
// ends before the next such frame.
static enum tfos_status write_some(struct tfos__channel *channel, size_t *done)
{
    const unsigned char *data = channel->out.data + channel->out.begin;
    size_t size = tfos__buffer_size(&channel->out);
    if (channel->tls)
        return tfos__tls_write(channel->tls, data, size, done, &channel->cause);
    struct tfos__passed_fds *passed = tfos__passed_fds_first(&channel->queued);
    if (!passed)
        return tfos__passed_fds_send(channel->fd, data, size, NULL, done, &channel->cause);
    if (passed->begin > channel->out_position)
        return tfos__passed_fds_send(channel->fd, data, passed->begin - channel->out_position, NULL,
                                     done, &channel->cause);
    enum tfos_status status = tfos__passed_fds_send(channel->fd, data, passed->end - passed->begin,
                                                    passed, done, &channel->cause);
    if (status == TFOS_OK) {
        tfos__passed_fds_clear(passed);
        tfos__passed_fds_shift(&channel->queued);
    }
    return status;
}

// Writes what the kernel takes: OK also when some is left.
static enum tfos_status flush(struct tfos__channel *channel)
{
    while (tfos__buffer_size(&channel->out) > 0) {
        size_t done = 0;
        enum tfos_status status = write_some(channel, &done);
        if (status == TFOS_AGAIN)
            break;
        TFOS__TRY(status);
        tfos__buffer_consume(&channel->out, done);
        channel->out_position += done;
    }
    return TFOS_OK;
}

static enum tfos_status read_some(struct tfos__channel *channel, void *data, size_t size,
                                  size_t *done)
{
    if (channel->tls)
        return tfos__tls_read(channel->tls, data, size, done, &channel->cause);
    struct tfos__passed_fds passed = {0};
    TFOS__TRY(tfos__passed_fds_receive(channel->fd, data, size, &passed, done, &channel->cause));
    if (passed.count == 0)
        return *done > 0 ? TFOS_OK : TFOS_AGAIN;
    passed.begin = channel->in_position + tfos__buffer_size(&channel->in);
    passed.end = passed.begin + *done;
    enum tfos_status status =
        tfos__buffer_append(&channel->received, &passed, sizeof(passed), &channel->cause);
    if (status != TFOS_OK)
        tfos__passed_fds_clear(&passed);
    return status;
}

// Reads until nothing more is there or `in` holds a whole frame of any size: OK in both cases.
static enum tfos_status fill(struct tfos__channel *channel)
{
    while (!is_full(channel) || (channel->tls && tfos__tls_has_pending(channel->tls))) {
        TFOS__TRY(tfos__buffer_reserve(&channel->in, READ_SIZE, &channel->cause));
        size_t done = 0;
        enum tfos_status status = read_some(channel, channel->in.data + channel->in.end,
                                            channel->in.capacity - channel->in.end, &done);
        if (status == TFOS_AGAIN)
            break;
        TFOS__TRY(status);
        channel->in.end += done;
        TFOS__TRY(tfos__frame_check(&channel->in, &channel->cause));
    }
    return TFOS_OK;
}

enum tfos_status tfos__channel_pump(struct tfos__channel *channel, struct tfos_error *err)
{
    if (channel->failure != TFOS_OK)
        return give_failure(channel, err);
    enum tfos_status status = handshake(channel);
    if (status == TFOS_OK && channel->is_ready) {
        status = flush(channel);
        // A peer that takes no more may have sent its reason before: what it wrote is read in any
        // case.
        enum tfos_status read_status = fill(channel);
        if (read_status != TFOS_OK)
            status = read_status;
    }
    if (status == TFOS_OK)
        return TFOS_OK;
    fail_channel(channel, status);
    return give_failure(channel, err);
}

// Takes the descriptors that belong to the frame of `size` bytes that was just taken out of `in`:
// those of the message in which it was the last frame to begin.
static enum tfos_status claim_fds(struct tfos__channel *channel, size_t size,
                                  struct tfos__passed_fds *out)
{
    uint64_t begin = channel->in_position;
    uint64_t end = begin + size;
    channel->in_position = end;
    struct tfos__passed_fds *passed = tfos__passed_fds_first(&channel->received);
    if (passed && passed->end <= end && passed->begin <= begin) {
        *out = *passed;
        tfos__passed_fds_shift(&channel->received);
        passed = tfos__passed_fds_first(&channel->received);
    }
    if (!passed || passed->end > end)
        return TFOS_OK;
    tfos__passed_fds_clear(out);
    return tfos__fail(&channel->cause, TFOS_CORRUPT, "descriptors came inside a frame");
}

// What next() gives when `in` holds no whole frame.
static enum tfos_status find_nothing(struct tfos__channel *channel, struct tfos_error *err)
{
    size_t size = tfos__buffer_size(&channel->in);
    const struct tfos__buffer *received = &channel->received;
    if (channel->failure == TFOS_OK && tfos__buffer_size(received) > 0 &&
        ((struct tfos__passed_fds *)(void *)(received->data + received->end))[-1].begin >
            channel->in_position) {
        tfos__fail(&channel->cause, TFOS_CORRUPT, "descriptors came inside a frame");
        fail_channel(channel, TFOS_CORRUPT);
    }
    if (channel->failure == TFOS_OK)
        return TFOS_AGAIN;
    enum tfos_status status = give_failure(channel, err);
    if (status == TFOS_CLOSED && size > 0)
        tfos__fail_prefix(err, "channel: %zu bytes into a frame", size);
    return status;
}

enum tfos_status tfos__channel_next(struct tfos__channel *channel, json_t **message,
                                    int fds[TFOS__FRAME_DESCRIPTORS], int *fd_count,
                                    struct tfos_error *err)
{
    if (channel->failure != TFOS_OK && channel->failure != TFOS_CLOSED)
        return give_failure(channel, err);
    json_t *taken;
    size_t size;
    struct tfos_error cause;
    enum tfos_status status = tfos__frame_take(&channel->in, &taken, &size, &cause);
    if (status == TFOS_AGAIN)
        return find_nothing(channel, err);
    struct tfos__passed_fds passed = {0};
    if (status == TFOS_OK) {
        status = claim_fds(channel, size, &passed);
        if (status != TFOS_OK)
            json_decref(taken);
    } else {
        channel->cause = cause;
    }
    if (status != TFOS_OK) {
        fail_channel(channel, status);
        return give_failure(channel, err);
    }
    if (fd_count)
        *fd_count = fds ? passed.count : 0;
    if (fds)
        memcpy(fds, passed.fds, sizeof(passed.fds));
    else
        tfos__passed_fds_clear(&passed);
    *message = taken;
    return TFOS_OK;
}

static enum tfos_status append_frame(struct tfos__channel *channel, const json_t *message,
                                     const int *fds, int fd_count, struct tfos_error *err)
{
    struct tfos__passed_fds passed = {0};
    if (fd_count < 0 || fd_count > TFOS__FRAME_DESCRIPTORS || (fd_count > 0 && channel->tls))
        return tfos__fail(err, TFOS_INVALID,
                          "channel: %s: cannot send %d descriptors: 0 to %d go over a unix socket",
                          channel->peer, fd_count, channel->tls ? 0 : TFOS__FRAME_DESCRIPTORS);
    size_t old_size = tfos__buffer_size(&channel->out);
    TFOS__TRY(tfos__frame_append(&channel->out, message, err));
    if (fd_count == 0)
        return TFOS_OK;
    enum tfos_status status = tfos__passed_fds_init(&passed, fds, fd_count, err);
    if (status == TFOS_OK) {
        passed.begin = channel->out_position + old_size;
        passed.end = channel->out_position + tfos__buffer_size(&channel->out);
        status = tfos__buffer_append(&channel->queued, &passed, sizeof(passed), err);
    }
    if (status != TFOS_OK) {
        tfos__passed_fds_clear(&passed);
        channel->out.end = channel->out.begin + old_size;
    }
    return status;
}

enum tfos_status tfos__channel_queue(struct tfos__channel *channel, json_t *message, const int *fds,
                                     int fd_count, struct tfos_error *err)
{
    enum tfos_status status;
    if (!message)
        status = tfos__no_memory(err, "channel", "a message");
    else if (channel->failure != TFOS_OK)
        status = give_failure(channel, err);
    else
        status = append_frame(channel, message, fds, fd_count, err);
    json_decref(message);
    return status;
}

enum tfos_status tfos__channel_flush(struct tfos__channel *channel, struct tfos_error *err)
{
    if (channel->failure != TFOS_OK)
        return give_failure(channel, err);
    enum tfos_status status = handshake(channel);
    if (status == TFOS_OK && channel->is_ready)
        status = flush(channel);
    if (status == TFOS_OK)
        return TFOS_OK;
    enum tfos_status read_status = channel->is_ready ? fill(channel) : TFOS_OK; // as pump() does
    fail_channel(channel, read_status != TFOS_OK ? read_status : status);
    return give_failure(channel, err);
}

enum tfos_status tfos__channel_send_bounded(struct tfos__channel *channel, json_t *message,
                                            const int *fds, int fd_count, size_t limit,
                                            struct tfos_error *err)
{
    if (channel->failure != TFOS_OK) {
        json_decref(message);
        return TFOS_OK;
    }
    TFOS__TRY(tfos__channel_queue(channel, message, fds, fd_count, err));
    size_t size =
        tfos__channel_flush(channel, NULL) == TFOS_OK ? tfos__buffer_size(&channel->out) : 0;
    if (size <= limit)
        return TFOS_OK;
    return tfos__fail(err, TFOS_BUSY, "channel: %s does not read: %zu bytes wait for it",
                      channel->peer, size);
}

// Waits for what the channel needs next. `what` says in the error what did not come.
static enum tfos_status wait_for(const struct tfos__channel *channel, int64_t deadline,
                                 const char *what, struct tfos_error *err)
{
    enum tfos_status status =
        tfos__socket_wait(channel->fd, (short)tfos__channel_events(channel), deadline, err);
    if (status != TFOS_TIMEOUT)
        return status;
    if (!channel->is_ready)
        what = "the TLS handshake was not done";
    return tfos__fail(err, TFOS_TIMEOUT, "channel: %s: %s in time", channel->peer, what);
}

enum tfos_status tfos__channel_send(struct tfos__channel *channel, json_t *message, const int *fds,
                                    int fd_count, int64_t deadline, struct tfos_error *err)
{
    TFOS__TRY(tfos__channel_queue(channel, message, fds, fd_count, err));
    for (;;) {
        TFOS__TRY(tfos__channel_pump(channel, err));
        if (tfos__buffer_size(&channel->out) == 0)
            return TFOS_OK;
        TFOS__TRY(wait_for(channel, deadline, "a message was not taken", err));
    }
}

enum tfos_status tfos__channel_receive(struct tfos__channel *channel, json_t **message,
                                       int fds[TFOS__FRAME_DESCRIPTORS], int *fd_count,
                                       int64_t deadline, struct tfos_error *err)
{
    for (;;) {
        enum tfos_status status = tfos__channel_next(channel, message, fds, fd_count, err);
        if (status != TFOS_AGAIN)
            return status;
        // A failure of the pump is left to next(), which first gives what came before it.
        if (tfos__channel_pump(channel, err) != TFOS_OK)
            continue;
        status = tfos__channel_next(channel, message, fds, fd_count, err);
        if (status != TFOS_AGAIN)
            return status;
        TFOS__TRY(wait_for(channel, deadline, "no whole message came", err));
    }
}

static size_t take_buffered(struct tfos__channel *channel, void *data, size_t size)
{
    size_t taken = tfos__buffer_size(&channel->in);
    if (taken > size)
        taken = size;
    if (taken > 0)
        memcpy(data, channel->in.data + channel->in.begin, taken);
    tfos__buffer_consume(&channel->in, taken);
    return taken;
}

// Counts raw bytes that have been given out, and closes the descriptors that came with them.
static void skip_passed_fds(struct tfos__channel *channel, size_t size)
{
    channel->in_position += size;
    struct tfos__passed_fds *passed;
    while ((passed = tfos__passed_fds_first(&channel->received)) &&
           passed->end <= channel->in_position) {
        tfos__passed_fds_clear(passed);
        tfos__passed_fds_shift(&channel->received);
    }
}

enum tfos_status tfos__channel_read_some(struct tfos__channel *channel, void *data, size_t size,
                                         size_t *done, struct tfos_error *err)
{
    size_t given = take_buffered(channel, data, size);
    skip_passed_fds(channel, given);
    *done = given;
    if (given > 0)
        return TFOS_OK;
    if (channel->failure != TFOS_OK)
        return give_failure(channel, err);
    enum tfos_status status = handshake(channel);
    if (status == TFOS_OK)
        status = channel->is_ready ? read_some(channel, data, size, done) : TFOS_AGAIN;
    if (status == TFOS_OK)
        skip_passed_fds(channel, *done);
    if (status >= 0)
        return status;
    fail_channel(channel, status);
    return give_failure(channel, err);
}

enum tfos_status tfos__channel_write_some(struct tfos__channel *channel, const void *data,
                                          size_t size, size_t *done, struct tfos_error *err)
{
    if (channel->failure != TFOS_OK)
        return give_failure(channel, err);
    enum tfos_status status = handshake(channel);
    if (status == TFOS_OK && channel->is_ready)
        status = flush(channel);
    if (status == TFOS_OK && (!channel->is_ready || tfos__buffer_size(&channel->out) > 0))
        status = TFOS_AGAIN;
    if (status == TFOS_OK)
        status = channel->tls
                     ? tfos__tls_write(channel->tls, data, size, done, &channel->cause)
                     : tfos__passed_fds_send(channel->fd, data, size, NULL, done, &channel->cause);
    if (status == TFOS_OK)
        channel->out_position += *done;
    if (status >= 0)
        return status;
    fail_channel(channel, status);
    return give_failure(channel, err);
}

// Closing a TCP socket with unread bytes resets the connection, and the peer would lose what it has
// not read yet (the alert that tells it why): so unread bytes are dropped first, up to a bound.
static void drain(int fd)
{
    char bytes[4096];
    shutdown(fd, SHUT_WR);
    for (size_t dropped = 0; dropped < DRAIN_SIZE; dropped += sizeof(bytes)) {
        if (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
            return;
    }
}

void tfos__channel_close(struct tfos__channel *channel)
{
    if (!channel)
        return;
    if (channel->tls) {
        tfos__tls_close(channel->tls);
        drain(channel->fd);
    }
    close(channel->fd);
    tfos__passed_fds_clear_all(&channel->received);
    tfos__passed_fds_clear_all(&channel->queued);
    tfos__buffer_clear(&channel->in);
    tfos__buffer_clear(&channel->out);
    tfos__free(channel->peer);
    tfos__free(channel);
}

void tfos__channel_finish(struct tfos__channel *channel, int64_t timeout_ms)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    while (channel && tfos__channel_pending_size(channel) > 0 &&
           tfos__channel_pump(channel, NULL) == TFOS_OK &&
           tfos__channel_pending_size(channel) > 0 &&
           wait_for(channel, deadline, "", NULL) == TFOS_OK)
        continue;
    tfos__channel_close(channel);
}
