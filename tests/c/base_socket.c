// SPDX-License-Identifier: Apache-2.0
// Listening, reserving, connecting, accepting, and the words for addresses.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/listener.h"
#include "base/socket.h"
#include "harness.h"

#define WAIT_MS 10000

static void expect_flags(int fd)
{
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

// Two neighbouring free ports, held until the listeners are closed.
static void hold_two_ports(int listeners[2], int *first)
{
    struct tfos_error err;
    for (int port = 20000 + getpid() % 20000; port < 60000; port++) {
        char text[16];
        int got;
        snprintf(text, sizeof(text), "%d", port);
        if (tfos__listener_open("127.0.0.1", text, &listeners[0], &got, &err) != TFOS_OK)
            continue;
        snprintf(text, sizeof(text), "%d", port + 1);
        if (tfos__listener_open("127.0.0.1", text, &listeners[1], &got, &err) == TFOS_OK) {
            *first = port;
            return;
        }
        close(listeners[0]);
    }
    fail_msg("no two neighbouring ports are free");
}

static void a_taken_range_names_the_holders(void **state)
{
    (void)state;
    struct tfos_error err;
    int listeners[2];
    int first;
    int fd = -1;
    int port;
    hold_two_ports(listeners, &first);
    char ports[32];
    char expected[256];
    snprintf(ports, sizeof(ports), "%d-%d", first, first + 1);
    assert_int_equal(tfos__listener_open(NULL, ports, &fd, &port, &err), TFOS_BUSY);
    snprintf(expected, sizeof(expected),
             "socket: no free port in %s: %d is held by pid %d (test_base_socke), %d is held by "
             "pid %d (test_base_socke); set TFOS_SERVER_PORT to another range",
             ports, first, (int)getpid(), first + 1, (int)getpid());
    assert_string_equal(err.message, expected);
    assert_int_equal(fd, -1);
    close(listeners[0]);
    assert_done(tfos__listener_open("127.0.0.1", ports, &fd, &port, &err));
    assert_int_equal(port, first);
    close(fd);
    close(listeners[1]);
}

static void a_range_gives_its_next_free_port(void **state)
{
    (void)state;
    struct tfos_error err;
    int listeners[2];
    int first;
    int fd;
    int port;
    hold_two_ports(listeners, &first);
    close(listeners[1]);
    char ports[32];
    snprintf(ports, sizeof(ports), "%d-%d", first, first + 1);
    assert_done(tfos__listener_open(NULL, ports, &fd, &port, &err));
    assert_int_equal(port, first + 1);
    expect_flags(fd);
    close(fd);
    close(listeners[0]);
}

static void ranges_that_cannot_be_read_are_invalid(void **state)
{
    (void)state;
    static const char *const samples[] = {"",       "x",     "-1",     "1-",          "2-1",
                                          "0-5",    "65536", "1 - 2",  "40001-70000", "40001x",
                                          "999999", "1-2-3", "40001,", " 40001"};
    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
        struct tfos_error err;
        int fd;
        int port;
        if (tfos__listener_open(NULL, samples[i], &fd, &port, &err) != TFOS_INVALID)
            fail_msg("\"%s\" was taken", samples[i]);
        assert_non_null(strstr(err.message, "cannot read the ports"));
    }
}

static void connect_and_accept(const char *listen_host, const char *connect_host, const char *seen)
{
    struct tfos_error err;
    int listener;
    int port;
    char address[TFOS__ADDRESS_SIZE];
    assert_done(tfos__listener_open(listen_host, NULL, &listener, &port, &err));
    assert_true(port > 0);
    assert_true(tfos__listener_is_served(port));
    tfos__address_join(connect_host, port, address);
    int fd;
    assert_done(tfos__socket_connect(address, TFOS__UNTIL(tfos__deadline(WAIT_MS)), &fd, &err));
    expect_flags(fd);
    char peer[TFOS__ADDRESS_SIZE];
    char expected[TFOS__ADDRESS_SIZE];
    int accepted;
    struct sockaddr_storage own;
    socklen_t size = sizeof(own);
    getsockname(fd, (struct sockaddr *)&own, &size);
    tfos__address_join(seen, ntohs(((struct sockaddr_in *)&own)->sin_port), expected);
    // Nobody else has connected: to look whether a port is served disturbs no server.
    assert_done(tfos__socket_wait(listener, POLLIN, tfos__deadline(WAIT_MS), &err));
    assert_done(tfos__socket_accept(listener, &accepted, peer, &err));
    expect_flags(accepted);
    close(accepted);
    assert_string_equal(peer, expected);
    char host[TFOS__ADDRESS_SIZE];
    assert_done(tfos__address_local_host(fd, host, &err));
    assert_string_equal(host, seen);
    assert_int_equal(tfos__socket_accept(listener, &accepted, peer, &err), TFOS_AGAIN);
    close(fd);
    close(listener);
    assert_false(tfos__listener_is_served(port));
}

static void every_address_takes_both_families(void **state)
{
    (void)state;
    connect_and_accept(NULL, "127.0.0.1", "127.0.0.1");
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool has_ipv6 = fd >= 0 && bind(fd, (struct sockaddr *)&loopback, sizeof(loopback)) == 0;
    if (fd >= 0)
        close(fd);
    if (!has_ipv6)
        return;
    connect_and_accept(NULL, "::1", "::1");
    connect_and_accept("::1", "::1", "::1");
}

static void one_host_is_listened_on_alone(void **state)
{
    (void)state;
    connect_and_accept("127.0.0.1", "localhost", "127.0.0.1");
    struct tfos_error err;
    int fd;
    int port;
    assert_int_equal(tfos__listener_open("no such host.invalid", NULL, &fd, &port, &err),
                     TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, "no such host.invalid"));
    assert_int_equal(tfos__listener_open("192.0.2.1", NULL, &fd, &port, &err), TFOS_IO);
    assert_non_null(strstr(err.message, "192.0.2.1"));
}

static void bursts_of_connections_wait(void **state)
{
    (void)state;
    struct tfos_error err;
    int listener;
    int port;
    int fds[300];
    char address[TFOS__ADDRESS_SIZE];
    assert_done(tfos__listener_open("127.0.0.1", "0", &listener, &port, &err));
    tfos__address_join("127.0.0.1", port, address);
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        assert_done(
            tfos__socket_connect(address, TFOS__UNTIL(tfos__deadline(WAIT_MS)), &fds[i], &err));
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
        char peer[TFOS__ADDRESS_SIZE];
        int accepted;
        assert_done(tfos__socket_accept(listener, &accepted, peer, &err));
        close(accepted);
        close(fds[i]);
    }
    close(listener);
}

static void failing_connections_tell_why(void **state)
{
    (void)state;
    struct tfos_error err;
    int fd = -1;
    int reserved;
    int port;
    char address[TFOS__ADDRESS_SIZE];
    assert_done(tfos__listener_reserve(0, &reserved, &port, &err));
    tfos__address_join("127.0.0.1", port, address);
    int64_t deadline = tfos__deadline(WAIT_MS);
    assert_int_equal(tfos__socket_connect(address, TFOS__UNTIL(deadline), &fd, &err), TFOS_CLOSED);
    assert_non_null(strstr(err.message, address));
    assert_int_equal(err.os_errno, ECONNREFUSED);
    close(reserved);
    assert_int_equal(
        tfos__socket_connect("no-such-host.invalid:1", TFOS__UNTIL(deadline), &fd, &err),
        TFOS_NOT_FOUND);
    static const char *const samples[] = {"",      "host", "host:",       ":1",  "::1:5",
                                          "[::1]", "a:b",  "host:123456", "[]:1"};
    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
        if (tfos__socket_connect(samples[i], TFOS__UNTIL(deadline), &fd, &err) != TFOS_INVALID)
            fail_msg("\"%s\" was taken", samples[i]);
    }
    assert_int_equal(fd, -1);
}

// A full backlog answers no connection: that must end at the deadline.
static bool interrupt(void *context)
{
    return ++*(int *)context == 2;
}

static void an_unanswered_connection_meets_the_deadline(void **state)
{
    (void)state;
    struct tfos_error err;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in bound = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(bound);
    assert_int_equal(bind(listener, (struct sockaddr *)&bound, sizeof(bound)), 0);
    assert_int_equal(listen(listener, 0), 0);
    getsockname(listener, (struct sockaddr *)&bound, &size);
    char address[TFOS__ADDRESS_SIZE];
    tfos__address_join("127.0.0.1", ntohs(bound.sin_port), address);
    int fds[8];
    int count = 0;
    enum tfos_status status = TFOS_OK;
    int64_t begin = 0;
    while (count < 8 && status == TFOS_OK) {
        begin = tfos__now_ms();
        status = tfos__socket_connect(address, TFOS__UNTIL(tfos__deadline(100)), &fds[count], &err);
        count += status == TFOS_OK;
    }
    assert_int_equal(status, TFOS_TIMEOUT);
    assert_true(tfos__now_ms() - begin >= 100);
    int asked = 0;
    struct tfos_wait caller = {.is_interrupted = interrupt, .context = &asked};
    struct tfos__wait wait = tfos__wait_begin(&caller, -1);
    assert_int_equal(tfos__socket_connect(address, &wait, &fds[count], &err), TFOS_CLOSED);
    assert_int_equal(asked, 2);
    for (int i = 0; i < count; i++)
        close(fds[i]);
    close(listener);
}

static int bind_any_port(int port, bool reuse_port)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int family = AF_INET6;
    if (fd < 0) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        family = AF_INET;
    }
    int on = 1;
    if (reuse_port)
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int result = family == AF_INET6 ? bind(fd, (struct sockaddr *)&v6, sizeof(v6))
                                    : bind(fd, (struct sockaddr *)&v4, sizeof(v4));
    if (result == 0 && listen(fd, 5) == 0)
        return fd;
    close(fd);
    return -1;
}

static void a_reserved_port_is_kept_for_those_who_share(void **state)
{
    (void)state;
    struct tfos_error err;
    int reserved;
    int other;
    int port;
    int other_port;
    assert_done(tfos__listener_reserve(0, &reserved, &port, &err));
    expect_flags(reserved);
    assert_false(tfos__listener_is_served(port));
    assert_int_equal(bind_any_port(port, false), -1);
    char text[16];
    snprintf(text, sizeof(text), "%d", port);
    assert_int_equal(tfos__listener_open(NULL, text, &other, &other_port, &err), TFOS_BUSY);
    // A second reservation may not share: two nodes would believe that the port is theirs.
    assert_int_equal(tfos__listener_reserve(port, &other, &other_port, &err), TFOS_BUSY);
    assert_non_null(strstr(err.message, text));
    int server = bind_any_port(port, true);
    assert_true(server >= 0);
    assert_true(tfos__listener_is_served(port));
    char address[TFOS__ADDRESS_SIZE];
    char peer[TFOS__ADDRESS_SIZE];
    tfos__address_join("127.0.0.1", port, address);
    for (int i = 0; i < 32; i++) { // none may go to the reservation
        int fd;
        assert_done(tfos__socket_connect(address, TFOS__UNTIL(tfos__deadline(WAIT_MS)), &fd, &err));
        close(fd);
        int accepted;
        assert_done(tfos__socket_wait(server, POLLIN, tfos__deadline(WAIT_MS), &err));
        assert_done(tfos__socket_accept(server, &accepted, peer, &err));
        close(accepted);
    }
    close(server);
    close(reserved);
    assert_done(tfos__listener_reserve(port, &reserved, &other_port, &err));
    assert_int_equal(other_port, port);
    close(reserved);
    assert_int_equal(tfos__listener_reserve(70000, &reserved, &port, &err), TFOS_INVALID);
}

// It shares the port where TensorFlow listens on every address, and gets the connections to its
// own.
static void a_server_on_any_one_address_is_found(void **state)
{
    (void)state;
    struct tfos_error err;
    char host[TFOS__ADDRESS_SIZE];
    assert_done(tfos__address_any_host(host, &err));
    const char *const hosts[] = {"127.0.0.1", "127.0.0.2", host};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
        struct addrinfo *address;
        int reserved;
        int port;
        char service[8];
        assert_done(tfos__listener_reserve(0, &reserved, &port, &err));
        snprintf(service, sizeof(service), "%d", port);
        assert_int_equal(getaddrinfo(hosts[i], service, &hints, &address), 0);
        int server = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int on = 1;
        assert_int_equal(setsockopt(server, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
        assert_int_equal(bind(server, address->ai_addr, address->ai_addrlen), 0);
        assert_false(tfos__listener_is_served(port));
        assert_int_equal(listen(server, 5), 0);
        assert_true(tfos__listener_is_served(port));
        close(server);
        assert_false(tfos__listener_is_served(port));
        close(reserved);
        freeaddrinfo(address);
    }
}

static void many_reservations_get_ports_of_their_own(void **state)
{
    (void)state;
    struct tfos_error err;
    int fds[64];
    int ports[64];
    for (int i = 0; i < 64; i++) {
        assert_done(tfos__listener_reserve(0, &fds[i], &ports[i], &err));
        for (int k = 0; k < i; k++)
            assert_int_not_equal(ports[i], ports[k]);
    }
    for (int i = 0; i < 64; i++)
        close(fds[i]);
}

static void unix_sockets_meet_by_name(void **state)
{
    (void)state;
    struct tfos_error err;
    char name[64];
    int listener;
    int fd;
    snprintf(name, sizeof(name), "tfos-test-%d", (int)getpid());
    int64_t deadline = tfos__deadline(WAIT_MS);
    assert_int_equal(tfos__socket_connect_unix(name, TFOS__UNTIL(deadline), &fd, &err),
                     TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, name));
    assert_done(tfos__listener_open_unix(name, &listener, &err));
    expect_flags(listener);
    assert_int_equal(tfos__listener_open_unix(name, &fd, &err), TFOS_BUSY);
    assert_done(tfos__socket_connect_unix(name, TFOS__UNTIL(deadline), &fd, &err));
    expect_flags(fd);
    char peer[TFOS__ADDRESS_SIZE];
    char expected[64];
    int accepted;
    assert_done(tfos__socket_accept(listener, &accepted, peer, &err));
    expect_flags(accepted);
    snprintf(expected, sizeof(expected), "unix:pid=%d", (int)getpid());
    assert_string_equal(peer, expected);
    assert_int_equal(tfos__socket_accept(listener, &accepted, peer, &err), TFOS_AGAIN);
    char host[TFOS__ADDRESS_SIZE];
    assert_int_equal(tfos__address_local_host(fd, host, &err), TFOS_INVALID);
    close(accepted);
    close(fd);
    close(listener);
}

static void unix_names_have_a_length(void **state)
{
    (void)state;
    struct tfos_error err;
    char name[110];
    int fd;
    memset(name, 'n', sizeof(name));
    name[108] = '\0';
    assert_int_equal(tfos__listener_open_unix(name, &fd, &err), TFOS_INVALID);
    assert_int_equal(tfos__socket_connect_unix("", TFOS__UNTIL(tfos__deadline(0)), &fd, &err),
                     TFOS_INVALID);
    name[107] = '\0';
    assert_done(tfos__listener_open_unix(name, &fd, &err));
    close(fd);
}

static void a_full_unix_backlog_meets_the_deadline(void **state)
{
    (void)state;
    struct tfos_error err;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length =
        snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "tfos-full-%d", (int)getpid());
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 0), 0);
    int first;
    int second;
    assert_done(tfos__socket_connect_unix(address.sun_path + 1,
                                          TFOS__UNTIL(tfos__deadline(WAIT_MS)), &first, &err));
    assert_int_equal(tfos__socket_connect_unix(address.sun_path + 1,
                                               TFOS__UNTIL(tfos__deadline(50)), &second, &err),
                     TFOS_TIMEOUT);
    int asked = 0;
    struct tfos_wait caller = {.is_interrupted = interrupt, .context = &asked};
    struct tfos__wait wait = tfos__wait_begin(&caller, -1);
    assert_int_equal(tfos__socket_connect_unix(address.sun_path + 1, &wait, &second, &err),
                     TFOS_CLOSED);
    assert_int_equal(asked, 2);
    close(first);
    close(listener);
}

// Another user is refused in silence. Only root can become another user: without it the case is
// shown as skipped.
static void unix_peers_of_other_users_are_closed(void **state)
{
    (void)state;
    struct tfos_error err;
    char name[64];
    int listener;
    int fd;
    if (geteuid() != 0)
        skip();
    snprintf(name, sizeof(name), "tfos-user-%d", (int)getpid());
    assert_done(tfos__listener_open_unix(name, &listener, &err));
    assert_int_equal(seteuid(65534), 0);
    enum tfos_status status =
        tfos__socket_connect_unix(name, TFOS__UNTIL(tfos__deadline(WAIT_MS)), &fd, &err);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, TFOS_OK); // the listener is root's, whom everybody may trust
    char peer[TFOS__ADDRESS_SIZE];
    int accepted;
    assert_int_equal(tfos__socket_accept(listener, &accepted, peer, &err), TFOS_AGAIN);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(fd);
    close(listener);
    assert_int_equal(seteuid(65534), 0);
    assert_done(tfos__listener_open_unix(name, &listener, &err));
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(seteuid(65533), 0);
    status = tfos__socket_connect_unix(name, TFOS__UNTIL(tfos__deadline(WAIT_MS)), &fd, &err);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, TFOS_DENIED);
    close(listener);
}

static void addresses_are_joined_and_found(void **state)
{
    (void)state;
    struct tfos_error err;
    char text[TFOS__ADDRESS_SIZE];
    tfos__address_join("host", 80, text);
    assert_string_equal(text, "host:80");
    tfos__address_join("fe80::1%eth0", 65535, text);
    assert_string_equal(text, "[fe80::1%eth0]:65535");
    char name[400];
    memset(name, 'h', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    tfos__address_join(name, 65535, text); // cut, not overrun
    assert_true(strlen(text) < TFOS__ADDRESS_SIZE);
    assert_done(tfos__address_any_host(text, &err));
    int listener;
    int fd;
    int port;
    char address[TFOS__ADDRESS_SIZE];
    assert_done(tfos__listener_open(NULL, NULL, &listener, &port, &err));
    tfos__address_join(text, port, address);
    assert_done(tfos__socket_connect(address, TFOS__UNTIL(tfos__deadline(WAIT_MS)), &fd, &err));
    close(fd);
    close(listener);
}

static void waiting_ends_at_the_deadline(void **state)
{
    (void)state;
    struct tfos_error err;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    int64_t begin = tfos__now_ms();
    assert_int_equal(tfos__socket_wait(fds[0], POLLIN, tfos__deadline(50), &err), TFOS_TIMEOUT);
    assert_true(tfos__now_ms() - begin >= 50);
    assert_done(tfos__socket_wait(fds[1], POLLOUT, tfos__deadline(0), &err));
    close(fds[1]);
    assert_done(tfos__socket_wait(fds[0], POLLIN, TFOS__NEVER, &err)); // hung up
    close(fds[0]);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(a_taken_range_names_the_holders),
    cmocka_unit_test(a_range_gives_its_next_free_port),
    cmocka_unit_test(ranges_that_cannot_be_read_are_invalid),
    cmocka_unit_test(every_address_takes_both_families),
    cmocka_unit_test(one_host_is_listened_on_alone),
    cmocka_unit_test(bursts_of_connections_wait),
    cmocka_unit_test(failing_connections_tell_why),
    cmocka_unit_test(an_unanswered_connection_meets_the_deadline),
    cmocka_unit_test(a_reserved_port_is_kept_for_those_who_share),
    cmocka_unit_test(a_server_on_any_one_address_is_found),
    cmocka_unit_test(many_reservations_get_ports_of_their_own),
    cmocka_unit_test(unix_sockets_meet_by_name),
    cmocka_unit_test(unix_names_have_a_length),
    cmocka_unit_test(a_full_unix_backlog_meets_the_deadline),
    cmocka_unit_test(unix_peers_of_other_users_are_closed),
    cmocka_unit_test(addresses_are_joined_and_found),
    cmocka_unit_test(waiting_ends_at_the_deadline),
};

TEST_MAIN(cases)
