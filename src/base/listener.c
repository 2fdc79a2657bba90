// SPDX-License-Identifier: Apache-2.0
// Sockets that others connect to, and ports kept for others. "Every address" is one IPv6 socket
// that takes IPv4 as well; where the machine has no IPv6 it is an IPv4 socket.
#include "base/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"
#include "base/fail.h"

#define BACKLOG 1024
#define PORT_MAX 65535
#define HOLDERS_NAMED 16 // so that a message about a wide range stays readable

struct port_range {
    int first;
    int last;
};

static bool read_port(const char **text, int *port)
{
    size_t digits = strspn(*text, "0123456789");
    if (digits == 0 || digits > 5)
        return false;
    *port = 0;
    for (size_t i = 0; i < digits; i++)
        *port = *port * 10 + ((*text)[i] - '0');
    *text += digits;
    return *port <= PORT_MAX;
}

static enum tfos_status read_range(const char *ports, struct port_range *range,
                                   struct tfos_error *err)
{
    const char *at = ports;
    if (read_port(&at, &range->first)) {
        range->last = range->first;
        if (*at == '\0')
            return TFOS_OK;
        if (*at++ == '-' && read_port(&at, &range->last) && *at == '\0' && range->first > 0 &&
            range->last >= range->first)
            return TFOS_OK;
    }
    return tfos__fail(err, TFOS_INVALID,
                      "socket: cannot read the ports \"%s\": expected 0 (any), one port as 40001, "
                      "or a range as 40001-40002",
                      ports);
}

static void set_port(struct sockaddr_storage *address, int port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
}

static socklen_t address_size(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

static void set_any(struct sockaddr_storage *address, int family)
{
    *address =
        (struct sockaddr_storage){.ss_family = (sa_family_t)family}; // all zero: every address
}

// A socket bound to `address`, or -1 with errno.
static int bind_socket(const struct sockaddr_storage *address, bool reuse_address)
{
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int on = 1;
    int off = 0;
    // After a restart, old connections in TIME_WAIT would otherwise keep the port for a minute.
    bool is_done = !reuse_address || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
    if (is_done && address->ss_family == AF_INET6)
        is_done = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
    if (is_done && bind(fd, (const struct sockaddr *)address, address_size(address)) == 0)
        return fd;
    int os_errno = errno;
    close(fd);
    errno = os_errno;
    return -1;
}

static bool means_no_ipv6(int os_errno)
{
    return os_errno == EAFNOSUPPORT || os_errno == EADDRNOTAVAIL || os_errno == EPROTONOSUPPORT;
}

// Binds to every address of this machine; -1 with errno.
static int bind_any(int port, bool reuse_address)
{
    struct sockaddr_storage address;
    set_any(&address, AF_INET6);
    set_port(&address, port);
    int fd = bind_socket(&address, reuse_address);
    if (fd >= 0 || !means_no_ipv6(errno))
        return fd;
    set_any(&address, AF_INET);
    set_port(&address, port);
    return bind_socket(&address, reuse_address);
}

// Binds to the first of the host's addresses that is one of this machine; -1 with errno.
static int bind_host(const struct addrinfo *addresses, int port)
{
    int fd = -1;
    for (const struct addrinfo *item = addresses; item; item = item->ai_next) {
        struct sockaddr_storage address = {0};
        memcpy(&address, item->ai_addr, item->ai_addrlen);
        set_port(&address, port);
        fd = bind_socket(&address, true);
        if (fd >= 0 || !means_no_ipv6(errno))
            break;
    }
    return fd;
}

static enum tfos_status resolve_listen_host(const char *host, struct addrinfo **addresses,
                                            struct tfos_error *err)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    int fault = getaddrinfo(host, NULL, &hints, addresses);
    if (fault != 0)
        return tfos__fail(err, TFOS_NOT_FOUND, "socket: cannot listen on host \"%s\": %s", host,
                          gai_strerror(fault));
    return TFOS_OK;
}

static enum tfos_status get_port(int fd, int *port, struct tfos_error *err)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    char host[TFOS__ADDRESS_SIZE];
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return tfos__fail_errno(err, TFOS_IO, "socket: cannot tell the port");
    *port = tfos__address_host((const struct sockaddr *)&address, host);
    return TFOS_OK;
}

static enum tfos_status fail_taken(const struct port_range *range, struct tfos_error *err)
{
    char list[2048] = "";
    size_t used = 0;
    int port = range->first;
    for (; port <= range->last && port < range->first + HOLDERS_NAMED; port++) {
        char holder[96];
        tfos__address_port_holder(port, holder, sizeof holder);
        int size = snprintf(list + used, sizeof list - used, "%s%d is held by %s",
                            used > 0 ? ", " : "", port, holder);
        used += (size_t)size < sizeof list - used ? (size_t)size : sizeof list - used - 1;
    }
    if (port <= range->last)
        snprintf(list + used, sizeof list - used, ", and so on");
    char text[16];
    if (range->first == range->last)
        snprintf(text, sizeof text, "%d", range->first);
    else
        snprintf(text, sizeof text, "%d-%d", range->first, range->last);
    return tfos__fail(err, TFOS_BUSY,
                      "socket: no free port in %s: %s; set TFOS_SERVER_PORT to another range", text,
                      list);
}

static enum tfos_status listen_in_range(const char *host, const struct addrinfo *addresses,
                                        const struct port_range *range, int *fd, int *port,
                                        struct tfos_error *err)
{
    for (int number = range->first; number <= range->last; number++) {
        int listener = host ? bind_host(addresses, number) : bind_any(number, true);
        // Two sockets with SO_REUSEADDR may both be bound; then listen() finds the port taken.
        if (listener >= 0 && listen(listener, BACKLOG) == 0) {
            enum tfos_status status = get_port(listener, port, err);
            if (status == TFOS_OK)
                *fd = listener;
            else
                close(listener);
            return status;
        }
        int os_errno = errno;
        if (listener >= 0)
            close(listener);
        errno = os_errno;
        if (errno != EADDRINUSE)
            return tfos__fail_errno(err, TFOS_IO, "socket: cannot listen on %s, port %d",
                                    host ? host : "every address", number);
    }
    return fail_taken(range, err);
}

enum tfos_status tfos__socket_listen(const char *host, const char *ports, int *fd, int *port,
                                     struct tfos_error *err)
{
    struct port_range range = {0};
    TFOS__TRY(read_range(ports ? ports : "0", &range, err));
    struct addrinfo *addresses = NULL;
    if (host)
        TFOS__TRY(resolve_listen_host(host, &addresses, err));
    enum tfos_status status = listen_in_range(host, addresses, &range, fd, port, err);
    if (addresses)
        freeaddrinfo(addresses);
    return status;
}

enum tfos_status tfos__socket_reserve(int port, int *fd, int *reserved_port, struct tfos_error *err)
{
    if (port < 0 || port > PORT_MAX)
        return tfos__fail(err, TFOS_INVALID, "socket: cannot reserve port %d: not from 0 to %d",
                          port, PORT_MAX);
    int reserved = bind_any(port, false);
    if (reserved < 0 && errno == EADDRINUSE) {
        char holder[96];
        tfos__address_port_holder(port, holder, sizeof holder);
        return tfos__fail(err, TFOS_BUSY, "socket: cannot reserve port %d: it is held by %s", port,
                          holder);
    }
    if (reserved < 0)
        return tfos__fail_errno(err, TFOS_IO, "socket: cannot reserve port %d", port);
    // Set only now: a second reservation of the same port finds it taken, but a server that has the
    // option when it binds may share it.
    int on = 1;
    enum tfos_status status = TFOS_OK;
    if (setsockopt(reserved, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0)
        status = tfos__fail_errno(err, TFOS_IO, "socket: cannot share port %d", port);
    if (status == TFOS_OK)
        status = get_port(reserved, reserved_port, err);
    if (status == TFOS_OK)
        *fd = reserved;
    else
        close(reserved);
    return status;
}

enum tfos_status tfos__socket_listen_unix(const char *name, int *fd, struct tfos_error *err)
{
    struct sockaddr_un address;
    socklen_t size;
    TFOS__TRY(tfos__address_unix(name, &address, &size, err));
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0)
        return tfos__fail_errno(err, TFOS_IO, "socket: cannot make a unix socket for %s", name);
    if (bind(listener, (const struct sockaddr *)&address, size) == 0 &&
        listen(listener, BACKLOG) == 0) {
        *fd = listener;
        return TFOS_OK;
    }
    enum tfos_status status = tfos__fail_errno(err, errno == EADDRINUSE ? TFOS_BUSY : TFOS_IO,
                                               "socket: cannot listen on unix socket @%s", name);
    close(listener);
    return status;
}
