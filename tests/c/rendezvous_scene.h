// SPDX-License-Identifier: Apache-2.0
/// What the tests of the cluster share: a rendezvous on loopback, and nodes and feeders that are
/// played by the test.
#ifndef TFOS_TEST_RENDEZVOUS_SCENE_H
#define TFOS_TEST_RENDEZVOUS_SCENE_H

#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <tfos/memory.h>
#include <tfos/rendezvous.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/socket.h"
#include "cluster/cluster.h"
#include "harness.h"

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define PATIENCE_MS 20000 ///< for what must come; only a failing test waits so long

/// A rendezvous and its id.
struct place {
    struct tfos_rendezvous *rendezvous;
    char cluster_id[64];
};

static inline struct place open_place(struct tfos_rendezvous_options options)
{
    static int number;
    struct tfos_error err;
    struct place place = {0};
    snprintf(place.cluster_id, sizeof(place.cluster_id), "test-%d-%d", (int)getpid(), number++);
    options.cluster_id = place.cluster_id;
    options.key = KEY;
    options.listen_host = "127.0.0.1";
    assert_done(tfos_rendezvous_open(&options, &place.rendezvous, &err));
    return place;
}

static inline struct tfos__channel *connect_to(const struct place *place)
{
    struct tfos_error err;
    struct tfos__channel *member;
    assert_done(tfos__cluster_join(tfos_rendezvous_address(place->rendezvous), place->cluster_id,
                                   KEY, NULL, &member, &err));
    return member;
}

/// Sends `message`, taken over, all of it: whoever waits for another member afterwards does not
/// write the rest. That the driver has gone meanwhile is for hear() to find.
static inline void say(struct tfos__channel *member, json_t *message)
{
    struct tfos_error err;
    assert_done(tfos__channel_queue(member, message, NULL, 0, &err));
    enum tfos_status status = tfos__channel_pump(member, &err);
    while (status == TFOS_OK && tfos__channel_events(member) & EPOLLOUT) {
        struct pollfd poll_fd = {.fd = tfos__channel_fd(member), .events = POLLIN | POLLOUT};
        assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
        status = tfos__channel_pump(member, &err);
    }
    if (status != TFOS_OK && status != TFOS_CLOSED)
        fail_msg("cannot send: %s", err.message);
}

/// The next message, whatever it is; NULL when the driver has gone.
static inline json_t *hear(struct tfos__channel *member)
{
    json_t *message;
    struct tfos_error err;
    enum tfos_status status =
        tfos__channel_receive(member, &message, NULL, NULL, tfos__deadline(PATIENCE_MS), &err);
    if (status == TFOS_CLOSED)
        return NULL;
    if (status != TFOS_OK)
        fail_msg("no message: %s", err.message);
    return message;
}

static inline const char *text_of(const json_t *message, const char *key)
{
    const char *text = json_string_value(json_object_get(message, key));
    return text ? text : "";
}

static inline json_int_t number_of(const json_t *message, const char *key)
{
    return json_integer_value(json_object_get(message, key));
}

/// The next message, which must be of `type`.
static inline json_t *expect(struct tfos__channel *member, const char *type)
{
    json_t *message = hear(member);
    if (!message)
        fail_msg("the driver has gone where \"%s\" was expected", type);
    assert_string_equal(text_of(message, "type"), type);
    return message;
}

static inline void expect_only(struct tfos__channel *member, const char *type)
{
    json_decref(expect(member, type));
}

/// A node's hello; its feed listens at port 30000 + id, its executor has the pid 1000 + id.
static inline json_t *node_hello(int id, const char *host, int launch)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:s, s:i, s:i, s:i, s:s, s:i, s:i}", "type", "hello",
                     "kind", "node", "version", 1, "executor_id", id, "host", host, "port",
                     20000 + id, "pid", 5000 + id, "executor_pid", 1000 + id, "executor", "e7",
                     "feed_port", 30000 + id, "launch", launch);
}

static inline struct tfos__channel *join_as(const struct place *place, int id, const char *host)
{
    struct tfos__channel *member = connect_to(place);
    say(member, node_hello(id, host, 1));
    expect_only(member, "role");
    return member;
}

static inline void acknowledge(struct tfos__channel *member)
{
    json_t *spec = expect(member, "spec");
    say(member,
        json_pack("{s:s, s:O}", "type", "ack", "generation", json_object_get(spec, "generation")));
    json_decref(spec);
}

/// Joins `count` nodes on hosts "host-0", "host-1", ... and starts their trainers.
static inline void start_nodes(const struct place *place, struct tfos__channel **members, int count)
{
    char host[32];
    struct tfos_error err;
    for (int id = 0; id < count; id++) {
        snprintf(host, sizeof(host), "host-%d", id);
        members[id] = join_as(place, id, host);
    }
    for (int id = 0; id < count; id++)
        acknowledge(members[id]);
    for (int id = 0; id < count; id++) {
        expect_only(members[id], "start");
        say(members[id],
            json_pack("{s:s, s:s, s:i}", "type", "trainer", "state", "started", "pid", 7000 + id));
    }
    assert_done(tfos_rendezvous_wait(place->rendezvous, TFOS_PHASE_RUNNING, PATIENCE_MS, &err));
}

static inline json_t *trainer_exit(int exit_status)
{
    return json_pack("{s:s, s:s, s:i, s:s}", "type", "trainer", "state", "ended", "exit_status",
                     exit_status, "cause", "trainer");
}

static inline void close_members(struct tfos__channel **members, int count)
{
    for (int id = 0; id < count; id++)
        tfos__channel_finish(members[id], 0);
}

/// Waits for an event named `name`, past others.
static inline json_t *expect_event(const struct place *place, const char *name)
{
    for (;;) {
        char *text;
        struct tfos_error err;
        enum tfos_status status =
            tfos_rendezvous_next_event(place->rendezvous, PATIENCE_MS, &text, &err);
        if (status != TFOS_OK)
            fail_msg("no event \"%s\": %s", name, tfos_status_name(status));
        json_t *event = json_loads(text, 0, NULL);
        tfos_free(text);
        assert_non_null(event);
        if (!strcmp(text_of(event, "event"), name))
            return event;
        json_decref(event);
    }
}

/// Waits until the cluster has failed, and gives its message.
static inline void expect_failure(const struct place *place, struct tfos_error *err)
{
    enum tfos_status status =
        tfos_rendezvous_wait(place->rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, err);
    assert_int_equal(status, TFOS_CLOSED);
}

static inline void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

#endif
