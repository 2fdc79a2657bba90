// SPDX-License-Identifier: Apache-2.0
/// Noticing that the machine at the other end of a TCP connection has vanished.
#ifndef TFOS_FEED_KEEPALIVE_H
#define TFOS_FEED_KEEPALIVE_H

/// Lets the kernel probe an idle connection: it breaks within half a minute.
void tfos__keepalive_set(int fd);

#endif
