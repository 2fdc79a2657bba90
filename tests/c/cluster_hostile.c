// SPDX-License-Identifier: Apache-2.0
// Peers that are no friends: strangers without the key, and members that break the protocol.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "rendezvous_scene.h"

#define HOSTILE_COUNT 200
#define NODE_COUNT 64
#define HELLO_TIMEOUT_MS 5000

static int connect_raw(const struct place *place)
{
    const char *port = strrchr(tfos_rendezvous_address(place->rendezvous), ':') + 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

/// What a hostile client says at once; kinds 3 and 4 say nothing, or a byte now and then.
static void attack(int fd, int kind)
{
    static const char pickle[] =
        "\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system";
    unsigned char bytes[300];
    if (kind == 0)
        assert_true(send(fd, pickle, sizeof(pickle), MSG_NOSIGNAL) > 0);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 167 + 13);
    if (kind == 1)
        assert_true(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0);
    if (kind == 2)
        assert_true(send(fd, "\xff\xff\xff\xff", 4, MSG_NOSIGNAL) > 0);
}

/// Whether the server has ended the connection.
static int is_over(int fd)
{
    char bytes[256];
    ssize_t size;
    while ((size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        continue;
    return size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static long resident_kilobytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void *enlist(void *argument)
{
    const struct place *place = ((void **)argument)[0];
    return join_as(place, (int)(intptr_t)((void **)argument)[1], "10.0.0.1");
}

static void s51_strangers_delay_nobody_and_are_dropped(void **state)
{
    (void)state;
    int hostile[HOSTILE_COUNT];
    struct tfos_error err;
    struct place place = open_place((struct tfos_rendezvous_options){
        .node_count = NODE_COUNT, .hello_timeout_ms = HELLO_TIMEOUT_MS});
    long before = resident_kilobytes();
    int64_t begin_ms = tfos__now_ms();
    for (int i = 0; i < HOSTILE_COUNT; i++) {
        hostile[i] = connect_raw(&place);
        attack(hostile[i], i % 5);
    }
    pthread_t threads[NODE_COUNT];
    void *arguments[NODE_COUNT][2], *members[NODE_COUNT];
    for (int id = 0; id < NODE_COUNT; id++) {
        arguments[id][0] = &place;
        arguments[id][1] = (void *)(intptr_t)id;
        assert_int_equal(pthread_create(&threads[id], NULL, enlist, arguments[id]), 0);
    }
    for (int id = 0; id < NODE_COUNT; id++)
        pthread_join(threads[id], &members[id]);
    assert_true(tfos__now_ms() - begin_ms <
                HELLO_TIMEOUT_MS); // long before the strangers' time was over
    for (int id = 0; id < NODE_COUNT; id++) {
        acknowledge(members[id]);
        assert_done(tfos__channel_pump(members[id], &err));
    }
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_RUNNING, PATIENCE_MS, &err));
    int open_count = HOSTILE_COUNT;
    while (open_count > 0 && tfos__now_ms() - begin_ms < HELLO_TIMEOUT_MS + PATIENCE_MS) {
        open_count = 0;
        for (int i = 0; i < HOSTILE_COUNT; i++) {
            if (i % 5 == 4 && !is_over(hostile[i]))
                (void)!send(hostile[i], "\x16", 1, MSG_NOSIGNAL);
            open_count += !is_over(hostile[i]);
        }
        usleep(200000); // strangers are polled: there is nobody to wait for
    }
    assert_int_equal(open_count, 0);
    // Far less than a frame of 4 MiB for each stranger, which is what 0xFFFFFFFF asks for.
    assert_true(resident_kilobytes() - before < 512 * 1024);
    for (int i = 0; i < HOSTILE_COUNT; i++)
        close(hostile[i]);
    json_t *event = expect_event(&place, "denied");
    assert_memory_equal(text_of(event, "peer"), "127.0.0.1:", 10);
    json_decref(event);
    assert_done(tfos_rendezvous_check(place.rendezvous, &err));
    for (int id = 0; id < NODE_COUNT; id++)
        tfos__channel_finish(members[id], 0);
    tfos_rendezvous_close(place.rendezvous);
}

static void s52_a_wrong_key_is_denied_and_told(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *member;
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    const char *address = tfos_rendezvous_address(place.rendezvous);
    char key[] = KEY;
    key[0] = 'f';
    assert_int_equal(tfos__cluster_join(address, place.cluster_id, key, NULL, &member, &err),
                     TFOS_DENIED);
    assert_says(err.message, address);
    assert_int_equal(tfos__cluster_join(address, "another", KEY, NULL, &member, &err), TFOS_DENIED);
    for (int i = 0; i < 2; i++) {
        json_t *event = expect_event(&place, "denied");
        assert_memory_equal(text_of(event, "peer"), "127.0.0.1:", 10);
        json_decref(event);
    }
    // A key that is none is refused before anything is sent.
    assert_int_equal(tfos__cluster_join(address, "another", "12", NULL, &member, &err),
                     TFOS_INVALID);
    tfos_rendezvous_close(place.rendezvous);
}

static bool interrupt(void *context)
{
    return ++*(int *)context == 3;
}

static void joining_can_be_interrupted(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *member;
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // The kernel accepts for a listener that nobody serves; the handshake gets no answer.
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    char address[64];
    snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(at.sin_port));
    int asked = 0;
    struct tfos_wait wait = {.is_interrupted = interrupt, .context = &asked};
    assert_int_equal(tfos__cluster_join(address, "test", KEY, &wait, &member, &err), TFOS_CLOSED);
    assert_int_equal(asked, 3);
    assert_says(err.message, address);
    assert_says(err.message, "interrupted");
    wait = (struct tfos_wait){.timeout_ms = 100};
    assert_int_equal(tfos__cluster_join(address, "test", KEY, &wait, &member, &err), TFOS_TIMEOUT);
    assert_says(err.message, address);
    close(listener);
}

static void *connect_once(void *argument)
{
    return connect_to(argument);
}

static void who_comes_to_a_full_server_gets_in_later(void **state)
{
    (void)state;
    enum { NEW_LIMIT = 1024 };
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_true(files.rlim_max > 2 * NEW_LIMIT + 100); // both ends are in this process
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    int strangers[NEW_LIMIT];
    for (int i = 0; i < NEW_LIMIT; i++)
        strangers[i] = connect_raw(&place);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, connect_once, &place), 0);
    json_t *event = expect_event(&place, "denied");
    assert_says(text_of(event, "message"), "1,024 connections have not said hello");
    json_decref(event);
    for (int i = 0; i < NEW_LIMIT; i++)
        close(strangers[i]);
    void *member;
    pthread_join(thread, &member);
    say(member, node_hello(0, "host-0", 1));
    expect_only(member, "role");
    tfos__channel_finish(member, 0);
    tfos_rendezvous_close(place.rendezvous);
}

static void *turn_away(void *argument)
{
    int fd;
    while ((fd = accept(*(int *)argument, NULL, NULL)) >= 0)
        close(fd);
    return NULL;
}

static void who_is_turned_away_to_the_end_is_told(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *member;
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof(at);
    char address[64];
    pthread_t thread;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&thread, NULL, turn_away, &listener), 0);
    int64_t begin_ms = tfos__now_ms();
    struct tfos_wait wait = {.timeout_ms = 400};
    assert_int_equal(tfos__cluster_join(address, "test", KEY, &wait, &member, &err), TFOS_CLOSED);
    assert_true(tfos__now_ms() - begin_ms >= 400);
    assert_says(err.message, address);
    assert_says(err.message, "it ended every connection before the handshake");
    int asked = 0;
    wait = (struct tfos_wait){.is_interrupted = interrupt, .context = &asked};
    assert_int_equal(tfos__cluster_join(address, "test", KEY, &wait, &member, &err), TFOS_CLOSED);
    assert_says(err.message, "interrupted");
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
}

static void a_breach_of_the_protocol_ends_the_connection(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "{\"type\":\"nonsense\"}",
        "{\"kind\":\"node\"}",
        "{\"type\":7}",
        "{\"type\":\"hello\",\"kind\":\"node\"}",
        "{\"type\":\"hello\",\"kind\":\"spy\",\"version\":1}",
        "{\"type\":\"hello\",\"kind\":\"node\",\"version\":1,\"executor_id\":0,\"host\":\"a b\"}",
        "{\"type\":\"hello\",\"kind\":\"feeder\",\"version\":1,\"feed\":-1}",
        "{\"type\":\"heartbeat\"}",
        "{\"type\":\"status\"}",
    };
    struct tfos_error err;
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        struct tfos__channel *member = connect_to(&place);
        assert_done(tfos__channel_queue(member, json_loads(messages[i], 0, NULL), NULL, 0, &err));
        assert_null(hear(member));
        tfos__channel_finish(member, 0);
        json_t *event = expect_event(&place, "denied");
        assert_says(text_of(event, "message"), "it broke the protocol");
        json_decref(event);
    }
    tfos_rendezvous_close(place.rendezvous);
}

static void a_node_that_breaks_the_protocol_is_lost(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *members[1];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    start_nodes(&place, members, 1);
    say(members[0], json_pack("{s:s, s:[[s,i]]}", "type", "lines", "lines", "stdout", 7));
    expect_failure(&place, &err);
    assert_says(err.message, "it broke the protocol");
    close_members(members, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void who_does_not_read_is_dropped(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *members[1];
    // On a slow machine the node would be lost for its silence first.
    struct place place = open_place((struct tfos_rendezvous_options){
        .node_count = 1, .is_feeding = true, .heartbeat_timeout_ms = 600000});
    start_nodes(&place, members, 1);
    // What is queued towards a node that never reads is bounded, and then it is lost.
    enum { SIZE = 1000000 };
    char *schema = malloc(SIZE + 1);
    memset(schema, 'x', SIZE);
    schema[0] = schema[SIZE - 1] = '"';
    schema[SIZE] = '\0';
    for (int i = 0; i < 100; i++) // more than the limit and all buffers
        assert_done(tfos_rendezvous_describe_feed(place.rendezvous, NULL, 1, 0, schema, &err));
    free(schema);
    expect_failure(&place, &err);
    assert_says(err.message, "worker:0");
    assert_says(err.message, "does not read");
    close_members(members, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s51_strangers_delay_nobody_and_are_dropped),
    cmocka_unit_test(s52_a_wrong_key_is_denied_and_told),
    cmocka_unit_test(joining_can_be_interrupted),
    cmocka_unit_test(who_comes_to_a_full_server_gets_in_later),
    cmocka_unit_test(who_is_turned_away_to_the_end_is_told),
    cmocka_unit_test(a_breach_of_the_protocol_ends_the_connection),
    cmocka_unit_test(a_node_that_breaks_the_protocol_is_lost),
    cmocka_unit_test(who_does_not_read_is_dropped),
};

TEST_MAIN(cases)
