// SPDX-License-Identifier: Apache-2.0
// Connecting, accepting and waiting. Every wait has a deadline; name resolution alone keeps the
// resolver's own (resolv.conf(5)), because getaddrinfo() takes none.
#include "base/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/fail.h"

#define LOOPBACK_TIMEOUT_MS 1000
#define BACKLOG_RETRY_MS 10

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

// Messages here are small and awaited: they must not be held back for more.
static void set_no_delay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
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
    socklen_t length = sizeof os_errno;
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
    TFOS__TRY(tfos__address_split(address, host, service, err));
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
    socklen_t near_size = sizeof near;
    socklen_t far_size = sizeof far;
    return getsockname(fd, (struct sockaddr *)&near, &near_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&far, &far_size) == 0 && near_size == far_size &&
           memcmp(&near, &far, near_size) == 0;
}

bool tfos__socket_is_connected(int fd)
{
    int os_errno = 0;
    socklen_t size = sizeof os_errno;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &os_errno, &size) == 0 && os_errno == 0 &&
           !is_connected_to_itself(fd);
}

static bool is_address_served(const char *host, int port)
{
    char address[TFOS__ADDRESS_SIZE];
    tfos__socket_join(host, port, address);
    int fd;
    struct tfos__wait *wait = TFOS__UNTIL(tfos__deadline(LOOPBACK_TIMEOUT_MS));
    if (tfos__socket_connect(address, wait, &fd, NULL) != TFOS_OK)
        return false;
    bool is_served = !is_connected_to_itself(fd);
    close(fd);
    return is_served;
}

bool tfos__socket_is_served(int port)
{
    bool is_found;
    if (tfos__address_find_listener(port, &is_found))
        return is_found;
    return is_address_served("127.0.0.1", port) || is_address_served("::1", port);
}

// Abstract names have no permissions: who is on the other side is told by its user id alone.
static bool is_own_user(int fd, struct ucred *peer)
{
    socklen_t size = sizeof *peer;
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
        if (status < 0) {
            tfos__fail_prefix(err, "socket: cannot connect to unix socket @%s", name);
            return status;
        }
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
    socklen_t size;
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
    socklen_t size = sizeof address;
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
        tfos__socket_join(host, port, peer);
        set_no_delay(accepted);
    }
    *fd = accepted;
    return TFOS_OK;
}
