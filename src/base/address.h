// SPDX-License-Identifier: Apache-2.0
/// Addresses in words: taken apart, joined, found; and who holds a port.
#ifndef TFOS_BASE_ADDRESS_H
#define TFOS_BASE_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tfos/status.h>

#define TFOS__ADDRESS_SIZE 300 ///< room for "host:port", brackets round an IPv6 host included

/// Writes the numeric host of a TCP address (an IPv4 address inside IPv6 as IPv4, a link-local one
/// with its scope) and gives its port.
int tfos__address_host(const struct sockaddr *address, char host[TFOS__ADDRESS_SIZE]);

/// Splits "host:port" or "[v6]:port". INVALID when it is neither.
enum tfos_status tfos__address_split(const char *address, char host[TFOS__ADDRESS_SIZE],
                                     char service[8], struct tfos_error *err);

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

/// Whether a socket listens on TCP port `port` of any address of this machine. False when /proc
/// does not tell.
bool tfos__address_find_listener(int port, bool *is_found);

/// Writes "pid 12 (python3)", or "another process" where /proc does not tell, as the holder of TCP
/// port `port`.
void tfos__address_port_holder(int port, char *text, size_t size);

#endif
