// SPDX-License-Identifier: Apache-2.0
// Socket options. A feeder may be silent for hours and a driver has nothing to say while all is
// well, so that only the kernel can find out that a machine or a network is gone.
#include "cluster/transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/socket.h>

#define IDLE_S 20               // of silence before the first probe
#define INTERVAL_S 10           // between probes
#define PROBE_COUNT 4           // without an answer
#define UNACKNOWLEDGED_MS 60000 // for what was sent

void tfos__transport_tune(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},           {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S},     {IPPROTO_TCP, TCP_KEEPINTVL, INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, PROBE_COUNT}, {IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof(options[i].value));
}
