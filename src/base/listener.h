// SPDX-License-Identifier: Apache-2.0
/// Sockets that others connect to, ports kept for others, and who has a port. All descriptors made
/// here are close-on-exec and non-blocking.
#ifndef TFOS_BASE_LISTENER_H
#define TFOS_BASE_LISTENER_H

#include <stdbool.h>
#include <tfos/status.h>

/// Listens on `host` (NULL: every address, IPv4 and IPv6) and the first free port of `ports`: "0"
/// any, "40001" one, "40001-40002" a range; NULL is "0". When all are taken: BUSY, with the range
/// and, for each port, the process that holds it as far as /proc shows it. INVALID for a range that
/// cannot be read.
enum tfos_status tfos__listener_open(const char *host, const char *ports, int *fd, int *port,
                                     struct tfos_error *err);

/// A TCP socket that is bound to a free port on every address (or to `port` if not 0), does not
/// listen, and has SO_REUSEPORT: it keeps the port from others while a server of this user that
/// sets SO_REUSEPORT too may listen on it. BUSY when `port` is taken.
enum tfos_status tfos__listener_reserve(int port, int *fd, int *reserved_port,
                                        struct tfos_error *err);

/// Whether somebody listens on `port` of any address of this machine; where /proc does not tell,
/// whether somebody accepts connections on it at a loopback address.
bool tfos__listener_is_served(int port);

/// Listens on an abstract unix socket (SOCK_STREAM) named `name` (without the leading NUL). BUSY if
/// taken.
enum tfos_status tfos__listener_open_unix(const char *name, int *fd, struct tfos_error *err);

#endif
