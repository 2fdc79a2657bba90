// SPDX-License-Identifier: Apache-2.0
// A peer may be silent for hours while all is well, so that only the kernel can find out that its
// machine or the network is gone. Bulk gets no TCP_USER_TIMEOUT: a closed window counts as silence,
// so it would break a connection whose reader is slow.
#include "base/tcp_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/socket.h>

struct option {
    int level, name, value;
};

static void set(int fd, const struct option *options, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof(options[i].value));
}

#define COUNT(options) (sizeof(options) / sizeof(options)[0])

void tfos__tcp_options_set_no_delay(int fd)
{
    static const struct option options[] = {{IPPROTO_TCP, TCP_NODELAY, 1}};
    set(fd, options, COUNT(options));
}

void tfos__tcp_options_watch_peer(int fd, enum tfos__tcp_use use)
{
    // Seconds until the first probe, seconds between probes, probes, and milliseconds for what was
    // sent.
    static const struct option messages[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                                             {IPPROTO_TCP, TCP_KEEPIDLE, 20},
                                             {IPPROTO_TCP, TCP_KEEPINTVL, 10},
                                             {IPPROTO_TCP, TCP_KEEPCNT, 4},
                                             {IPPROTO_TCP, TCP_USER_TIMEOUT, 60000}};
    static const struct option bulk[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                                         {IPPROTO_TCP, TCP_KEEPIDLE, 10},
                                         {IPPROTO_TCP, TCP_KEEPINTVL, 5},
                                         {IPPROTO_TCP, TCP_KEEPCNT, 4}};
    if (use == TFOS__TCP_MESSAGES)
        set(fd, messages, COUNT(messages));
    else
        set(fd, bulk, COUNT(bulk));
}
