// SPDX-License-Identifier: Apache-2.0
/// Sockets: their addresses, connecting with a deadline, accepting, waiting, options of TCP. All
/// descriptors made here are close-on-exec and non-blocking; TCP sockets send small messages at
/// once.
#ifndef TFOS_BASE_SOCKET_H
#define TFOS_BASE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tfos/status.h>

#include "base/clock.h"

struct addrinfo;

#define TFOS__ADDRESS_SIZE 300 ///< room for "host:port", brackets round an IPv6 host included

/// Writes the numeric host of a TCP address (an IPv4 address inside IPv6 as IPv4, a link-local one
/// with its scope) and gives its port.
int tfos__address_host(const struct sockaddr *address, char host[TFOS__ADDRESS_SIZE]);

/// Joins host and port, with brackets round an IPv6 host.
void tfos__address_join(const char *host, int port, char address[TFOS__ADDRESS_SIZE]);

/// The local address of a connected TCP socket, without its port: what the peer's side can reach us
/// by.
enum tfos_status tfos__address_local_host(int fd, char host[TFOS__ADDRESS_SIZE],
                                          struct tfos_error *err);

/// The address to advertise when nothing else is known: the first address of an interface that is
/// up, not loopback and not link-local (IPv4 before IPv6), else a loopback address.
enum tfos_status tfos__address_any_host(char host[TFOS__ADDRESS_SIZE], struct tfos_error *err);

/// The address of the abstract unix socket `name`. INVALID for a name that is empty or too long.
enum tfos_status tfos__address_unix(const char *name, struct sockaddr_un *address, socklen_t *size,
                                    struct tfos_error *err);

enum tfos__tcp_use {
    TFOS__TCP_MESSAGES, ///< small messages, each acknowledged soon
    TFOS__TCP_BULK      ///< megabytes to a reader that may let them wait for hours
};

/// Notices within about a minute (bulk: half a minute) that the machine at the other end is gone,
/// as far as the kernel has the options.
void tfos__socket_watch_peer(int fd, enum tfos__tcp_use use);

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

/// Connects to an abstract unix socket. NOT_FOUND when nobody listens there; DENIED when the
/// listener is another user's (root excepted, on either side); CLOSED when interrupted; TIMEOUT.
enum tfos_status tfos__socket_connect_unix(const char *name, struct tfos__wait *wait, int *fd,
                                           struct tfos_error *err);

/// Accepts one connection and writes its peer's address ("127.0.0.1:4711", or "unix:pid=12"). AGAIN
/// when none waits. A unix peer with another user id (root excepted) is closed and gives AGAIN.
enum tfos_status tfos__socket_accept(int listener, int *fd, char peer[TFOS__ADDRESS_SIZE],
                                     struct tfos_error *err);

/// Waits until `fd` has one of `events` (POLLIN, POLLOUT) or hung up. TIMEOUT at the deadline.
enum tfos_status tfos__socket_wait(int fd, short events, int64_t deadline, struct tfos_error *err);

/// The same for a wait that may be interrupted (CLOSED).
enum tfos_status tfos__socket_await(int fd, short events, struct tfos__wait *wait,
                                    struct tfos_error *err);

#endif
