// SPDX-License-Identifier: Apache-2.0
/// Two connected channels in one process, and the turning of both from one thread. Included once by
/// a test of channels.
#ifndef TFOS_TEST_CHANNEL_PAIR_H
#define TFOS_TEST_CHANNEL_PAIR_H

#include <dirent.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/listener.h"
#include "base/socket.h"
#include "harness.h"

#define WAIT_MS 10000

/// `near` connected, `far` accepted.
struct channel_pair {
    struct tfos__channel *near;
    struct tfos__channel *far;
};

static inline struct tfos__identity make_identity(const char *cluster_id, unsigned char fill)
{
    struct tfos__identity identity = {.cluster_id = cluster_id};
    memset(identity.key, fill, sizeof(identity.key));
    return identity;
}

static inline int count_open_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/// A connected TCP pair: fds[0] connected, fds[1] accepted.
static inline void connect_tcp(int fds[2])
{
    struct tfos_error err;
    int listener;
    int port;
    char address[TFOS__ADDRESS_SIZE];
    char peer[TFOS__ADDRESS_SIZE];
    assert_done(tfos__listener_open("127.0.0.1", NULL, &listener, &port, &err));
    tfos__address_join("127.0.0.1", port, address);
    assert_done(tfos__socket_connect(address, TFOS__UNTIL(tfos__deadline(WAIT_MS)), &fds[0], &err));
    assert_done(tfos__socket_wait(listener, POLLIN, tfos__deadline(WAIT_MS), &err));
    assert_done(tfos__socket_accept(listener, &fds[1], peer, &err));
    close(listener);
}

static inline void connect_unix_pair(int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

static inline struct tfos__channel *open_channel(int fd, enum tfos__channel_kind kind,
                                                 const struct tfos__identity *identity)
{
    struct tfos_error err;
    struct tfos__channel *channel = NULL;
    assert_done(tfos__channel_open(fd, kind, identity, "peer", &channel, &err));
    return channel;
}

static inline struct channel_pair open_unix_pair(void)
{
    int fds[2];
    connect_unix_pair(fds);
    return (struct channel_pair){.near = open_channel(fds[0], TFOS__CHANNEL_UNIX, NULL),
                                 .far = open_channel(fds[1], TFOS__CHANNEL_UNIX, NULL)};
}

static inline struct channel_pair open_tls_pair(const struct tfos__identity *near,
                                                const struct tfos__identity *far)
{
    int fds[2];
    connect_tcp(fds);
    return (struct channel_pair){.near = open_channel(fds[0], TFOS__CHANNEL_TLS_CLIENT, near),
                                 .far = open_channel(fds[1], TFOS__CHANNEL_TLS_SERVER, far)};
}

static inline struct channel_pair open_same_pair(bool is_tls)
{
    struct tfos__identity identity = make_identity("cluster-1", 7);
    return is_tls ? open_tls_pair(&identity, &identity) : open_unix_pair();
}

static inline void close_pair(struct channel_pair *pair)
{
    tfos__channel_close(pair->near);
    tfos__channel_close(pair->far);
}

/// Waits until one of the pair can continue.
static inline void wait_pair(const struct channel_pair *pair)
{
    struct pollfd items[2] = {
        {.fd = tfos__channel_fd(pair->near), .events = (short)tfos__channel_events(pair->near)},
        {.fd = tfos__channel_fd(pair->far), .events = (short)tfos__channel_events(pair->far)}};
    if (poll(items, 2, WAIT_MS) <= 0)
        fail_msg("neither channel could go on");
}

/// Turns both until `to` gives a frame; failures of the sender are left to the receiver.
static inline enum tfos_status exchange(const struct channel_pair *pair, struct tfos__channel *to,
                                        json_t **message, int *fds, int *fd_count,
                                        struct tfos_error *err)
{
    for (;;) {
        enum tfos_status near_status = tfos__channel_pump(pair->near, err);
        enum tfos_status far_status = tfos__channel_pump(pair->far, err);
        enum tfos_status status = tfos__channel_next(to, message, fds, fd_count, err);
        if (status != TFOS_AGAIN)
            return status;
        if (near_status < 0)
            return near_status;
        if (far_status < 0)
            return far_status;
        wait_pair(pair);
    }
}

static inline void make_ready(const struct channel_pair *pair)
{
    struct tfos_error err;
    while (!tfos__channel_is_ready(pair->near) || !tfos__channel_is_ready(pair->far)) {
        assert_done(tfos__channel_pump(pair->near, &err));
        assert_done(tfos__channel_pump(pair->far, &err));
        if (!tfos__channel_is_ready(pair->near) || !tfos__channel_is_ready(pair->far))
            wait_pair(pair);
    }
}

static inline json_t *numbered(int number)
{
    return json_pack("{s:s, s:i}", "type", "test", "number", number);
}

static inline int take_number(json_t *message)
{
    int number = (int)json_integer_value(json_object_get(message, "number"));
    json_decref(message);
    return number;
}

#endif
