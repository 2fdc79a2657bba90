// SPDX-License-Identifier: Apache-2.0
// "Every address" is one IPv6 socket that takes IPv4 as well; where the machine has no IPv6 it is
// an IPv4 socket. The holder of a port is found as ss(8) without netlink does: the socket's inode
// from /proc/net/tcp, then the process that has it open; another user's processes do not show
// theirs.
#include "base/listener.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/process.h"
#include "base/socket.h"

#define LOOPBACK_TIMEOUT_MS 1000
#define BACKLOG 1024
#define PORT_MAX 65535
#define HOLDERS_NAMED 16 // so that a message about a wide range stays readable

#define LISTENING 0x0A // TCP_LISTEN in the kernel's tables

// ---- who has a port

struct table_socket {
    unsigned state;
    unsigned long inode; // 0: no process has it open any more
};

// The next socket in one of the kernel's tables that is bound to `port`.
static bool read_socket(FILE *table, int port, struct table_socket *out)
{
    char line[512];
    while (fgets(line, sizeof(line), table)) {
        unsigned local_port;
        if (sscanf(line,
                   "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*d %lu",
                   &local_port, &out->state, &out->inode) == 3 &&
            (int)local_port == port)
            return true;
    }
    return false;
}

// Finds a socket that is bound to `port`, a listening one if there is one. False when /proc does
// not tell.
static bool find_socket(int port, struct table_socket *out)
{
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    bool is_known = false;
    *out = (struct table_socket){0};
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && out->state != LISTENING; i++) {
        FILE *table = fopen(tables[i], "re"); // there is none of a family that the kernel lacks
        struct table_socket found;
        is_known |= table != NULL;
        while (table && out->state != LISTENING && read_socket(table, port, &found))
            if (found.inode != 0 || found.state == LISTENING)
                *out = found;
        if (table)
            fclose(table);
    }
    return is_known;
}

static bool has_socket_open(const char *pid, const char *link)
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    DIR *folder = opendir(path);
    if (!folder)
        return false;
    bool found = false;
    const struct dirent *entry;
    while (!found && (entry = readdir(folder))) {
        char target[64];
        ssize_t size = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
        if (size <= 0)
            continue;
        target[size] = '\0';
        found = strcmp(target, link) == 0;
    }
    closedir(folder);
    return found;
}

static void describe_process(pid_t pid, char *text, size_t size)
{
    struct tfos__process_stat stat;
    bool is_there = tfos__process_get_stat(pid, &stat);
    snprintf(text, size, "pid %d (%s)", (int)pid, is_there ? stat.command : "ended since");
}

// Writes "pid 12 (python3)", or "another process" where /proc does not tell.
static void find_holder(int port, char *text, size_t size)
{
    struct table_socket socket;
    snprintf(text, size, "another process");
    find_socket(port, &socket);
    DIR *folder = socket.inode != 0 ? opendir("/proc") : NULL;
    if (!folder)
        return;
    char link[64];
    snprintf(link, sizeof(link), "socket:[%lu]", socket.inode);
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        if (!isdigit((unsigned char)entry->d_name[0]) || !has_socket_open(entry->d_name, link))
            continue;
        describe_process((pid_t)strtol(entry->d_name, NULL, 10), text, size);
        break;
    }
    closedir(folder);
}

static bool is_address_served(const char *host, int port)
{
    char address[TFOS__ADDRESS_SIZE];
    tfos__address_join(host, port, address);
    int fd;
    struct tfos__wait *wait = TFOS__UNTIL(tfos__deadline(LOOPBACK_TIMEOUT_MS));
    if (tfos__socket_connect(address, wait, &fd, NULL) != TFOS_OK)
        return false;
    bool is_served = tfos__socket_is_connected(fd);
    close(fd);
    return is_served;
}

bool tfos__listener_is_served(int port)
{
    struct table_socket socket;
    if (find_socket(port, &socket))
        return socket.state == LISTENING;
    return is_address_served("127.0.0.1", port) || is_address_served("::1", port);
}

// ---- ports

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

// A socket bound to `address`, or -1 with errno.
static int bind_socket(const struct sockaddr_storage *address, bool reuse_address)
{
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int on = 1;
    int off = 0;
    // After a restart, old connections in TIME_WAIT would otherwise keep the port for a minute.
    bool is_done = !reuse_address || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0;
    if (is_done && address->ss_family == AF_INET6)
        is_done = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0;
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
    static const sa_family_t families[] = {AF_INET6, AF_INET};
    int fd = -1;
    for (int i = 0; i < 2 && (i == 0 || (fd < 0 && means_no_ipv6(errno))); i++) {
        struct sockaddr_storage address = {.ss_family = families[i]}; // zero: every address
        set_port(&address, port);
        fd = bind_socket(&address, reuse_address);
    }
    return fd;
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
    socklen_t size = sizeof(address);
    char host[TFOS__ADDRESS_SIZE];
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return tfos__fail_errno(err, TFOS_IO, "socket: cannot tell the port");
    *port = tfos__address_host((const struct sockaddr *)&address, host);
    return TFOS_OK;
}

static enum tfos_status fail_taken(const struct port_range *range, struct tfos_error *err)
{
    char text[16], list[2048];
    struct tfos__bounded_text holders = {.data = list, .capacity = sizeof(list)};
    int port = range->first;
    for (; port <= range->last && port < range->first + HOLDERS_NAMED; port++) {
        char holder[96];
        find_holder(port, holder, sizeof(holder));
        tfos__bounded_text_append(&holders, "%s%d is held by %s", holders.size > 0 ? ", " : "",
                                  port, holder);
    }
    if (port <= range->last)
        tfos__bounded_text_append(&holders, ", and so on");
    snprintf(text, sizeof(text), range->first == range->last ? "%d" : "%d-%d", range->first,
             range->last);
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

enum tfos_status tfos__listener_open(const char *host, const char *ports, int *fd, int *port,
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

enum tfos_status tfos__listener_reserve(int port, int *fd, int *reserved_port,
                                        struct tfos_error *err)
{
    if (port < 0 || port > PORT_MAX)
        return tfos__fail(err, TFOS_INVALID, "socket: cannot reserve port %d: not from 0 to %d",
                          port, PORT_MAX);
    int reserved = bind_any(port, false);
    if (reserved < 0 && errno == EADDRINUSE) {
        char holder[96];
        find_holder(port, holder, sizeof(holder));
        return tfos__fail(err, TFOS_BUSY, "socket: cannot reserve port %d: it is held by %s", port,
                          holder);
    }
    if (reserved < 0)
        return tfos__fail_errno(err, TFOS_IO, "socket: cannot reserve port %d", port);
    // Set only now: a second reservation of the same port finds it taken, but a server that has the
    // option when it binds may share it.
    int on = 1;
    enum tfos_status status = TFOS_OK;
    if (setsockopt(reserved, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0)
        status = tfos__fail_errno(err, TFOS_IO, "socket: cannot share port %d", port);
    if (status == TFOS_OK)
        status = get_port(reserved, reserved_port, err);
    if (status == TFOS_OK)
        *fd = reserved;
    else
        close(reserved);
    return status;
}

enum tfos_status tfos__listener_open_unix(const char *name, int *fd, struct tfos_error *err)
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
