// SPDX-License-Identifier: Apache-2.0
/// Addresses in words, and who holds a port. Used by the sockets only.
#ifndef TFOS_BASE_ADDRESS_H
#define TFOS_BASE_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/socket.h"

/// Writes the numeric host of a TCP address (an IPv4 address inside IPv6 as IPv4, a link-local one
/// with its scope) and gives its port.
int tfos__address_host(const struct sockaddr *address, char host[TFOS__ADDRESS_SIZE]);

/// Splits "host:port" or "[v6]:port". INVALID when it is neither.
enum tfos_status tfos__address_split(const char *address, char host[TFOS__ADDRESS_SIZE],
                                     char service[8], struct tfos_error *err);

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
