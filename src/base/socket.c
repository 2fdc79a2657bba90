// SPDX-License-Identifier: Apache-2.0
// Connecting, accepting and waiting. Every wait has a deadline; name resolution alone keeps the
// resolver's own (resolv.conf(5)), because getaddrinfo() takes none.
//
// A peer may be silent for hours while all is well, so that only the kernel can find out that its
// machine or the network is gone. Bulk gets no TCP_USER_TIMEOUT: a closed window counts as silence,
// so it would break a connection whose reader is slow.
#include "base/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"

#define BACKLOG_RETRY_MS 10

// ---- addresses

int tfos__address_host(const struct sockaddr *address, char host[TFOS__ADDRESS_SIZE])
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        inet_ntop(AF_INET, &v4->sin_addr, host, TFOS__ADDRESS_SIZE);
        return ntohs(v4->sin_port);
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], host, TFOS__ADDRESS_SIZE);
    else if (getnameinfo(address, sizeof(*v6), host, TFOS__ADDRESS_SIZE, NULL, 0, NI_NUMERICHOST))
        inet_ntop(AF_INET6, &v6->sin6_addr, host, TFOS__ADDRESS_SIZE);
    return ntohs(v6->sin6_port);
}

// Splits "host:port" or "[v6]:port".
static enum tfos_status split_address(const char *address, char host[TFOS__ADDRESS_SIZE],
                                      char service[8], struct tfos_error *err)
{
    const char *begin = address;
    const char *end = strrchr(address, ':');
    const char *port = end ? end + 1 : "";
    if (*begin == '[' && end && end > begin + 1 && end[-1] == ']') {
        begin++;
        end--;
    } else if (end && memchr(begin, ':', (size_t)(end - begin))) {
        end = NULL; // an IPv6 host without brackets
    }
    size_t digits = strspn(port, "0123456789");
    if (!end || end == begin || (size_t)(end - begin) >= TFOS__ADDRESS_SIZE - 8 || digits == 0 ||
        digits > 5 || port[digits] != '\0')
        return tfos__fail(err, TFOS_INVALID,
                          "socket: cannot read the address \"%s\": expected host:port or "
                          "[IPv6 host]:port",
                          address);
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    memcpy(service, port, digits + 1);
    return TFOS_OK;
}

enum tfos_status tfos__address_unix(const char *name, struct sockaddr_un *address, socklen_t *size,
                                    struct tfos_error *err)
{
    size_t length = strlen(name);
    if (length == 0 || length >= sizeof(address->sun_path))
        return tfos__fail(err, TFOS_INVALID,
                          "socket: a unix socket's name must have 1 to %zu bytes, \"%s\" has %zu",
                          sizeof(address->sun_path) - 1, name, length);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name, length);
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return TFOS_OK;
}

void tfos__address_join(const char *host, int port, char address[TFOS__ADDRESS_SIZE])
{
    const char *format = strchr(host, ':') ? "[%.*s]:%d" : "%.*s:%d";
    snprintf(address, TFOS__ADDRESS_SIZE, format, TFOS__ADDRESS_SIZE - 9, host, port);
}

enum tfos_status tfos__address_local_host(int fd, char host[TFOS__ADDRESS_SIZE],
                                          struct tfos_error *err)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return tfos__fail_errno(err, TFOS_IO, "socket: cannot tell the local address");
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6)
        return tfos__fail(err, TFOS_INVALID, "socket: not a TCP socket");
    tfos__address_host((const struct sockaddr *)&address, host);
    return TFOS_OK;
}

// How good an interface's address is to advertise: 0 is useless, and the first of the best is
// taken.
static int rank_interface(const struct ifaddrs *item)
{
    if (!item->ifa_addr || !(item->ifa_flags & IFF_UP))
        return 0;
    bool is_loopback = item->ifa_flags & IFF_LOOPBACK;
    if (item->ifa_addr->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)item->ifa_addr;
        bool is_link_local = (ntohl(v4->sin_addr.s_addr) >> 16) == 0xA9FE; // 169.254.0.0/16
        if (is_loopback)
            return 2;
        // A bridge to which nothing is attached (docker0) is up, but does not run.
        return (item->ifa_flags & IFF_RUNNING) && !is_link_local ? 4 : 0;
    }
    if (item->ifa_addr->sa_family != AF_INET6)
        return 0;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)item->ifa_addr;
    if (is_loopback)
        return 1;
    return (item->ifa_flags & IFF_RUNNING) && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? 3 : 0;
}

enum tfos_status tfos__address_any_host(char host[TFOS__ADDRESS_SIZE], struct tfos_error *err)
{
    struct ifaddrs *items;
    if (getifaddrs(&items) != 0)
        return tfos__fail_errno(err, TFOS_IO, "socket: cannot list the network interfaces");
    const struct ifaddrs *best = NULL;
    for (const struct ifaddrs *item = items; item; item = item->ifa_next) {
        if (rank_interface(item) > (best ? rank_interface(best) : 0))
            best = item;
    }
    if (best)
        tfos__address_host(best->ifa_addr, host);
    freeifaddrs(items);
    if (!best)
        return tfos__fail(err, TFOS_NOT_FOUND,
                          "socket: no network interface is up, not even loopback; set "
                          "TFOS_SERVER_HOST");
    return TFOS_OK;
}

// ---- options

struct option {
    int level, name, value;
};

static void set_options(int fd, const struct option *options, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof(options[i].value));
}

#define OPTION_COUNT(options) (sizeof(options) / sizeof(options)[0])

static void set_no_delay(int fd)
{
    static const struct option options[] = {{IPPROTO_TCP, TCP_NODELAY, 1}};
    set_options(fd, options, OPTION_COUNT(options));
}

void tfos__socket_watch_peer(int fd, enum tfos__tcp_use use)
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
        set_options(fd, messages, OPTION_COUNT(messages));
    else
        set_options(fd, bulk, OPTION_COUNT(bulk));
}

// ---- connections

enum tfos_status tfos__socket_wait(int fd, short events, int64_t deadline, struct tfos_error *err)
{
    for (;;) {
        struct pollfd item = {.fd = fd, .events = events};
        int count = poll(&item, 1, tfos__remaining_ms(deadline));
        if (count > 0)
            return TFOS_OK;
        if (count < 0 && errno != EINTR)
            return tfos__fail_errno(err, TFOS_IO, "socket: cannot wait");
        if (count == 0 && tfos__remaining_ms(deadline) == 0)
            return tfos__fail(err, TFOS_TIMEOUT, "socket: not ready to be %s in time",
                              events & POLLIN ? "read" : "written");
    }
}

enum tfos_status tfos__socket_await(int fd, short events, struct tfos__wait *wait,
                                    struct tfos_error *err)
{
    for (;;) {
        int64_t slice = tfos__wait_slice(wait);
        enum tfos_status status = tfos__socket_wait(fd, events, slice, err);
        if (status != TFOS_TIMEOUT || slice == wait->deadline)
            return status;
        TFOS__TRY(tfos__wait_check(wait, err));
    }
}

int tfos__socket_connect_begin(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0 || errno == EINPROGRESS ||
        errno == EINTR)
        return fd;
    int os_errno = errno;
    close(fd);
    errno = os_errno;
    return -1;
}

// Connects to one address; -1 with errno: ETIMEDOUT at the deadline, ECANCELED when interrupted.
static int connect_until(const struct addrinfo *address, struct tfos__wait *wait)
{
    int fd = tfos__socket_connect_begin(address);
    if (fd < 0)
        return -1;
    enum tfos_status status = tfos__socket_await(fd, POLLOUT, wait, NULL);
    int os_errno = status == TFOS_CLOSED ? ECANCELED : ETIMEDOUT;
    socklen_t length = sizeof(os_errno);
    if (status == TFOS_OK && getsockopt(fd, SOL_SOCKET, SO_ERROR, &os_errno, &length) == 0 &&
        os_errno == 0) {
        set_no_delay(fd);
        return fd;
    }
    close(fd);
    errno = os_errno;
    return -1;
}

static enum tfos_status fail_connect(const char *address, const struct sockaddr *tried,
                                     struct tfos_error *err)
{
    int os_errno = errno;
    char host[TFOS__ADDRESS_SIZE];
    tfos__address_host(tried, host);
    errno = os_errno;
    enum tfos_status status = TFOS_IO;
    if (os_errno == ETIMEDOUT)
        status = TFOS_TIMEOUT;
    else if (os_errno == ECONNREFUSED || os_errno == ECONNRESET || os_errno == ECANCELED)
        status = TFOS_CLOSED;
    return tfos__fail_errno(err, status, "socket: cannot connect to %s (address %s)", address,
                            host);
}

enum tfos_status tfos__socket_resolve(const char *address, struct addrinfo **addresses,
                                      struct tfos_error *err)
{
    char host[TFOS__ADDRESS_SIZE];
    char service[8];
    TFOS__TRY(split_address(address, host, service, err));
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    int fault = getaddrinfo(host, service, &hints, addresses);
    if (fault == 0)
        return TFOS_OK;
    return tfos__fail(err, TFOS_NOT_FOUND, "socket: cannot connect to %s: host \"%s\": %s", address,
                      host, gai_strerror(fault));
}

enum tfos_status tfos__socket_connect(const char *address, struct tfos__wait *wait, int *fd,
                                      struct tfos_error *err)
{
    struct addrinfo *addresses;
    TFOS__TRY(tfos__socket_resolve(address, &addresses, err));
    int left = 0;
    for (const struct addrinfo *item = addresses; item; item = item->ai_next)
        left++;
    enum tfos_status status = TFOS_OK;
    bool is_interrupted = false;
    for (const struct addrinfo *item = addresses; item && !is_interrupted;
         item = item->ai_next, left--) {
        // An address that drops packets must not use up the time of those behind it.
        struct tfos__wait share = *wait;
        if (left > 1 && wait->deadline != TFOS__NEVER)
            share.deadline = tfos__deadline(tfos__remaining_ms(wait->deadline) / left);
        int connected = connect_until(item, &share);
        if (connected >= 0) {
            *fd = connected;
            status = TFOS_OK;
            break;
        }
        is_interrupted = errno == ECANCELED;
        status = fail_connect(address, item->ai_addr, err);
    }
    freeaddrinfo(addresses);
    return status;
}

// A connection to a free port of this machine can meet itself: the kernel may pick that same port
// for its near end.
static bool is_connected_to_itself(int fd)
{
    struct sockaddr_storage near = {0};
    struct sockaddr_storage far = {0};
    socklen_t near_size = sizeof(near);
    socklen_t far_size = sizeof(far);
    return getsockname(fd, (struct sockaddr *)&near, &near_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&far, &far_size) == 0 && near_size == far_size &&
           memcmp(&near, &far, near_size) == 0;
}

bool tfos__socket_is_connected(int fd)
{
    int os_errno = 0;
    socklen_t size = sizeof(os_errno);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &os_errno, &size) == 0 && os_errno == 0 &&
           !is_connected_to_itself(fd);
}

// Abstract names have no permissions: only its user id identifies the other side.
static bool is_own_user(int fd, struct ucred *peer)
{
    socklen_t size = sizeof(*peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &size) != 0)
        return false;
    return peer->uid == geteuid() || peer->uid == 0;
}

static enum tfos_status connect_unix(int fd, const struct sockaddr_un *address, socklen_t size,
                                     const char *name, struct tfos__wait *wait,
                                     struct tfos_error *err)
{
    while (connect(fd, (const struct sockaddr *)address, size) != 0) {
        if (errno == EINTR)
            continue;
        if (errno == ECONNREFUSED || errno == ENOENT)
            return tfos__fail_errno(err, TFOS_NOT_FOUND,
                                    "socket: nobody listens on unix socket @%s", name);
        if (errno != EAGAIN)
            return tfos__fail_errno(err, TFOS_IO, "socket: cannot connect to unix socket @%s",
                                    name);
        // The backlog is full; the kernel gives no event for room in it.
        if (tfos__remaining_ms(wait->deadline) == 0)
            return tfos__fail(err, TFOS_TIMEOUT,
                              "socket: unix socket @%s took no connection in time", name);
        enum tfos_status status = tfos__wait_check(wait, err);
        TFOS__TRY(tfos__fail_in(err, status, "socket: cannot connect to unix socket @%s", name));
        poll(NULL, 0, BACKLOG_RETRY_MS);
    }
    struct ucred peer;
    if (!is_own_user(fd, &peer) && geteuid() != 0)
        return tfos__fail(err, TFOS_DENIED, "socket: unix socket @%s belongs to another user",
                          name);
    return TFOS_OK;
}

enum tfos_status tfos__socket_connect_unix(const char *name, struct tfos__wait *wait, int *fd,
                                           struct tfos_error *err)
{
    struct sockaddr_un address;
    socklen_t size = 0;
    TFOS__TRY(tfos__address_unix(name, &address, &size, err));
    int connected = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connected < 0)
        return tfos__fail_errno(err, TFOS_IO, "socket: cannot make a unix socket for @%s", name);
    enum tfos_status status = connect_unix(connected, &address, size, name, wait, err);
    if (status == TFOS_OK)
        *fd = connected;
    else
        close(connected);
    return status;
}

// Failures of accept() that concern the connection that came, not the listener (accept(2)).
static bool is_passing(int os_errno)
{
    switch (os_errno) {
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
        return true;
    default:
        return false;
    }
}

enum tfos_status tfos__socket_accept(int listener, int *fd, char peer[TFOS__ADDRESS_SIZE],
                                     struct tfos_error *err)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    int accepted =
        accept4(listener, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted < 0 && is_passing(errno))
        return TFOS_AGAIN;
    if (accepted < 0)
        return tfos__fail_errno(err, TFOS_IO, "socket: cannot accept a connection");
    if (address.ss_family == AF_UNIX) {
        struct ucred owner;
        if (!is_own_user(accepted, &owner)) {
            close(accepted);
            return TFOS_AGAIN;
        }
        snprintf(peer, TFOS__ADDRESS_SIZE, "unix:pid=%d", (int)owner.pid);
    } else {
        char host[TFOS__ADDRESS_SIZE];
        int port = tfos__address_host((const struct sockaddr *)&address, host);
        tfos__address_join(host, port, peer);
        set_no_delay(accepted);
    }
    *fd = accepted;
    return TFOS_OK;
}
