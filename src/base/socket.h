// SPDX-License-Identifier: Apache-2.0
/// Sockets: listening on a range of ports or an abstract unix name, connecting with a deadline,
/// passing descriptors, and finding the address that others reach this machine by. All descriptors
/// made here are close-on-exec and non-blocking.
#ifndef TFOS_BASE_SOCKET_H
#define TFOS_BASE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tfos/status.h>

#include "base/wait.h"

struct addrinfo;

#define TFOS__ADDRESS_SIZE 300 ///< room for "host:port", brackets round an IPv6 host included

/// Listens on `host` (NULL: every address, IPv4 and IPv6) and the first free port of `ports`: "0"
/// any, "40001" one, "40001-40002" a range; NULL is "0". When all are taken: BUSY, with the range
/// and, for each port, the process that holds it as far as /proc shows it. INVALID for a range that
/// cannot be read.
enum tfos_status tfos__socket_listen(const char *host, const char *ports, int *fd, int *port,
                                     struct tfos_error *err);

/// A TCP socket that is bound to a free port on every address (or to `port` if not 0), does not
/// listen, and has SO_REUSEPORT: it keeps the port from others while a server of this user that
/// sets SO_REUSEPORT too may listen on it. BUSY when `port` is taken.
enum tfos_status tfos__socket_reserve(int port, int *fd, int *reserved_port,
                                      struct tfos_error *err);

/// Whether somebody listens on `port` of any address of this machine; where /proc does not tell,
/// whether somebody accepts connections on it at a loopback address.
bool tfos__socket_is_served(int port);

/// Connects to "host:port" or "[v6]:port", trying every address that the name has. NOT_FOUND for a
/// name without address, CLOSED when refused or interrupted, TIMEOUT.
enum tfos_status tfos__socket_connect(const char *address, struct tfos__wait *wait, int *fd,
                                      struct tfos_error *err);

/// All addresses that the name of "host:port" has, for freeaddrinfo(). The resolver waits as
/// resolv.conf(5) says. NOT_FOUND for a name without address.
enum tfos_status tfos__socket_resolve(const char *address, struct addrinfo **addresses,
                                      struct tfos_error *err);

/// Begins to connect to one address and waits for nothing: poll() gives POLLOUT once it is decided.
/// -1 with errno.
int tfos__socket_connect_begin(const struct addrinfo *address);

/// Whether a connection that is decided is there. It is not when the kernel connected the socket to
/// itself, as it may where nobody listens.
bool tfos__socket_is_connected(int fd);

/// Listens on an abstract unix socket (SOCK_STREAM) named `name` (without the leading NUL). BUSY if
/// taken.
enum tfos_status tfos__socket_listen_unix(const char *name, int *fd, struct tfos_error *err);

/// Connects to an abstract unix socket. NOT_FOUND when nobody listens there; DENIED when the
/// listener is another user's (root excepted, on either side); CLOSED when interrupted; TIMEOUT.
enum tfos_status tfos__socket_connect_unix(const char *name, struct tfos__wait *wait, int *fd,
                                           struct tfos_error *err);

/// Accepts one connection and writes its peer's address ("127.0.0.1:4711", or "unix:pid=12"). AGAIN
/// when none waits. A unix peer with another user id (root excepted) is closed and gives AGAIN.
enum tfos_status tfos__socket_accept(int listener, int *fd, char peer[TFOS__ADDRESS_SIZE],
                                     struct tfos_error *err);

/// The local address of a connected TCP socket, without its port: what the peer's side can reach us
/// by.
enum tfos_status tfos__socket_local_host(int fd, char host[TFOS__ADDRESS_SIZE],
                                         struct tfos_error *err);

/// The address to advertise when nothing else is known: the first address of an interface that is
/// up, not loopback and not link-local (IPv4 before IPv6), else a loopback address.
enum tfos_status tfos__socket_any_host(char host[TFOS__ADDRESS_SIZE], struct tfos_error *err);

/// Joins host and port, with brackets round an IPv6 host.
void tfos__socket_join(const char *host, int port, char address[TFOS__ADDRESS_SIZE]);

/// Waits until `fd` has one of `events` (POLLIN, POLLOUT) or hung up. TIMEOUT at the deadline.
enum tfos_status tfos__socket_wait(int fd, short events, int64_t deadline, struct tfos_error *err);

/// The same for a wait that may be interrupted (CLOSED).
enum tfos_status tfos__socket_await(int fd, short events, struct tfos__wait *wait,
                                    struct tfos_error *err);

#endif
