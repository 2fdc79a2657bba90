// SPDX-License-Identifier: Apache-2.0
// A server's loop, turned by the test, and peers of it in the same process.
#include <sys/resource.h>

#include "base/server.h"
#include "channel_pair.h"

#define PENDING_LIMIT 100000
#define MEMBERS(connection) ((struct member *)(connection))

/// What the tests keep for a connection.
struct member {
    struct tfos__server_connection base;
    char address[TFOS__ADDRESS_SIZE];
};

struct site {
    struct tfos__server server;
    struct tfos__identity identity;
    char name[64], address[TFOS__ADDRESS_SIZE];
    int accepted_count, dropped_count, breach_count;
    struct tfos__server_connection *last;
    char cause[1024]; // of the last that was dropped
};

static struct site *site_of(const struct tfos__server_connection *connection)
{
    return connection->server->options.context;
}

static void accepted(struct tfos__server_connection *connection, const char *address)
{
    struct site *site = site_of(connection);
    site->accepted_count++;
    site->last = connection;
    snprintf(MEMBERS(connection)->address, TFOS__ADDRESS_SIZE, "%s", address);
}

/// Does what the message's "do" says.
static enum tfos_status follow(struct tfos__server_connection *connection, const json_t *message,
                               struct tfos_error *err)
{
    const char *order = json_string_value(json_object_get(message, "do"));
    struct site *site = site_of(connection);
    tfos__server_accept_hello(connection);
    if (!order)
        return tfos__fail(err, TFOS_INVALID, "no order");
    if (strcmp(order, "detach") == 0)
        site->last = connection;
    else if (strcmp(order, "drop the others") == 0)
        for (struct tfos__server_connection *each = site->server.connections; each;
             each = each->next) {
            if (each != connection)
                tfos__server_drop(each, false, "another said so");
        }
    tfos__server_send(connection, json_pack("{s:s}", "done", order), NULL, 0);
    if (strcmp(order, "end") == 0)
        tfos__server_end(connection);
    return TFOS_OK;
}

static void dropped(struct tfos__server_connection *connection, bool is_breach, const char *cause)
{
    struct site *site = site_of(connection);
    assert_true(MEMBERS(connection)->address[0] != '\0');
    site->dropped_count++;
    site->breach_count += is_breach;
    snprintf(site->cause, sizeof(site->cause), "%s", cause);
}

static const struct tfos__server_handler handler = {.connection_size = sizeof(struct member),
                                                    .accepted = accepted,
                                                    .message = follow,
                                                    .dropped = dropped};

static void open_site(struct site *site, int64_t hello_timeout_ms, int64_t ending_timeout_ms)
{
    struct tfos_error err;
    int fd, port;
    *site = (struct site){.identity = make_identity("cluster-1", 7)};
    struct tfos__server_options options = {.handler = &handler,
                                           .context = site,
                                           .identity = &site->identity,
                                           .hello_timeout_ms = hello_timeout_ms,
                                           .ending_timeout_ms = ending_timeout_ms,
                                           .pending_limit = PENDING_LIMIT};
    assert_done(tfos__server_init(&site->server, &options, &err));
    snprintf(site->name, sizeof(site->name), "tfos-test-server-%d", (int)getpid());
    assert_done(tfos__listener_open_unix(site->name, &fd, &err));
    assert_done(tfos__server_listen(&site->server, fd, true, &err));
    assert_done(tfos__listener_open("127.0.0.1", NULL, &fd, &port, &err));
    assert_done(tfos__server_listen(&site->server, fd, false, &err));
    tfos__address_join("127.0.0.1", port, site->address);
}

static struct tfos__channel *join(const struct site *site, bool is_local)
{
    struct tfos__wait *wait = TFOS__UNTIL(tfos__deadline(WAIT_MS));
    struct tfos_error err;
    int fd;
    if (is_local)
        assert_done(tfos__socket_connect_unix(site->name, wait, &fd, &err));
    else
        assert_done(tfos__socket_connect(site->address, wait, &fd, &err));
    return open_channel(fd, is_local ? TFOS__CHANNEL_UNIX : TFOS__CHANNEL_TLS_CLIENT,
                        &site->identity);
}

static void order(struct tfos__channel *channel, const char *what)
{
    struct tfos_error err;
    assert_done(tfos__channel_queue(channel, json_pack("{s:s}", "do", what), NULL, 0, &err));
    (void)tfos__channel_pump(channel, NULL);
}

static void turn(struct site *site)
{
    tfos__server_wait(&site->server, tfos__deadline(5));
    tfos__server_step(&site->server);
}

/// Turns the server until an answer has come: OK, or how the connection ended.
static enum tfos_status await_answer(struct site *site, struct tfos__channel *channel)
{
    int64_t deadline = tfos__deadline(WAIT_MS);
    for (;;) {
        json_t *answer;
        turn(site);
        (void)tfos__channel_pump(channel, NULL);
        enum tfos_status status = tfos__channel_next(channel, &answer, NULL, NULL, NULL);
        if (status == TFOS_OK)
            json_decref(answer);
        if (status != TFOS_AGAIN)
            return status;
        assert_true(tfos__remaining_ms(deadline) > 0);
    }
}

static void turn_until_dropped(struct site *site, int count)
{
    int64_t deadline = tfos__deadline(WAIT_MS);
    while (site->dropped_count < count) {
        assert_true(tfos__remaining_ms(deadline) > 0);
        turn(site);
    }
    assert_int_equal(site->server.connection_count, site->accepted_count - count);
}

static void messages_are_answered_on_either_kind_of_socket(void **state)
{
    (void)state;
    for (int is_local = 0; is_local < 2; is_local++) {
        struct site site;
        open_site(&site, WAIT_MS, WAIT_MS);
        struct tfos__channel *channel = join(&site, is_local);
        for (int i = 0; i < 100; i++) {
            order(channel, "answer");
            assert_int_equal(await_answer(&site, channel), TFOS_OK);
        }
        assert_int_equal(site.server.new_count, 0);
        tfos__channel_close(channel);
        turn_until_dropped(&site, 1);
        assert_non_null(strstr(site.cause, "its connection ended"));
        assert_int_equal(site.breach_count, 0);
        tfos__server_clear(&site.server, "the end");
    }
}

static void who_says_no_hello_in_time_is_dropped(void **state)
{
    (void)state;
    struct site site;
    open_site(&site, 30, WAIT_MS);
    struct tfos__channel *silent = join(&site, true);
    turn_until_dropped(&site, 1);
    assert_string_equal(site.cause, "it has not said hello within 30 ms");
    assert_int_equal(site.breach_count, 1);
    assert_int_equal(site.server.new_count, 0);
    tfos__channel_close(silent);
    tfos__server_clear(&site.server, "the end");
}

static void a_breach_of_the_protocol_ends_the_connection(void **state)
{
    (void)state;
    struct site site;
    struct tfos_error err;
    open_site(&site, WAIT_MS, WAIT_MS);
    struct tfos__channel *channel = join(&site, true);
    assert_done(tfos__channel_queue(channel, numbered(1), NULL, 0, &err));
    assert_int_equal(await_answer(&site, channel), TFOS_CLOSED);
    assert_string_equal(site.cause, "it broke the protocol: no order");
    assert_int_equal(site.breach_count, 1);
    tfos__channel_close(channel);
    tfos__server_clear(&site.server, "the end");
}

static void who_has_its_last_message_may_read_it_and_go(void **state)
{
    (void)state;
    struct site site;
    open_site(&site, WAIT_MS, 30);
    struct tfos__channel *leaves = join(&site, true), *stays = join(&site, true);
    order(leaves, "end");
    assert_int_equal(await_answer(&site, leaves), TFOS_OK);
    tfos__channel_close(leaves);
    turn_until_dropped(&site, 1);
    order(stays, "end");
    order(stays, "answer"); // nobody listens any more
    assert_int_equal(await_answer(&site, stays), TFOS_OK);
    turn_until_dropped(&site, 2);
    assert_string_equal(site.cause, "it was told to go");
    assert_int_equal(await_answer(&site, stays), TFOS_CLOSED);
    tfos__channel_close(stays);
    tfos__server_clear(&site.server, "the end");
}

static void who_does_not_read_is_dropped(void **state)
{
    (void)state;
    struct site site;
    open_site(&site, WAIT_MS, WAIT_MS);
    struct tfos__channel *channel = join(&site, true);
    while (site.accepted_count == 0)
        turn(&site);
    char text[1000];
    memset(text, 'x', sizeof(text));
    for (int i = 0; site.dropped_count == 0; i++) {
        assert_true(i < 10000);
        tfos__server_send(site.last, json_pack("{s:s%}", "text", text, sizeof(text)), NULL, 0);
        tfos__server_flush(&site.server);
    }
    assert_non_null(strstr(site.cause, "does not read"));
    tfos__server_step(&site.server);
    tfos__channel_close(channel);
    tfos__server_clear(&site.server, "the end");
}

static void connections_dropped_in_a_step_are_handled_no_more_in_it(void **state)
{
    (void)state;
    struct site site;
    struct tfos__channel *channels[5];
    open_site(&site, WAIT_MS, WAIT_MS);
    for (int i = 0; i < 5; i++) {
        channels[i] = join(&site, true);
        order(channels[i], "answer");
        assert_int_equal(await_answer(&site, channels[i]), TFOS_OK);
    }
    for (int i = 0; i < 5; i++)
        order(channels[i], "drop the others");
    turn_until_dropped(&site, 4);
    int closed_count = 0;
    for (int i = 0; i < 5; i++) {
        closed_count += await_answer(&site, channels[i]) == TFOS_CLOSED;
        tfos__channel_close(channels[i]);
    }
    assert_int_equal(closed_count, 4);
    tfos__server_clear(&site.server, "the end");
}

static void a_detached_channel_is_its_takers(void **state)
{
    (void)state;
    struct site site;
    struct tfos_error err;
    json_t *message;
    open_site(&site, WAIT_MS, WAIT_MS);
    struct tfos__channel *near = join(&site, true);
    order(near, "detach");
    assert_int_equal(await_answer(&site, near), TFOS_OK);
    struct tfos__channel *far = tfos__server_detach(site.last);
    order(near, "answer");
    turn(&site);
    assert_done(tfos__channel_receive(far, &message, NULL, NULL, tfos__deadline(WAIT_MS), &err));
    json_decref(message);
    tfos__server_send(site.last, numbered(1), NULL, 0); // reaches nobody
    tfos__server_drop(site.last, false, "enough");
    turn(&site);
    tfos__channel_close(far);
    assert_int_equal(await_answer(&site, near), TFOS_CLOSED);
    tfos__channel_close(near);
    tfos__server_clear(&site.server, "the end");
}

/// Lets this process open no descriptor, or as many as before.
static void set_room(bool has_room)
{
    static struct rlimit before;
    struct rlimit limit;
    if (has_room) {
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        return;
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void accepting_pauses_while_descriptors_have_run_out(void **state)
{
    (void)state;
    struct site site;
    open_site(&site, WAIT_MS, WAIT_MS);
    struct tfos__channel *early = join(&site, true);
    order(early, "answer");
    assert_int_equal(await_answer(&site, early), TFOS_OK);
    struct tfos__channel *late = join(&site, true);
    set_room(false);
    while (!site.server.is_paused)
        turn(&site);
    tfos__server_wait(&site.server, 0);
    assert_int_equal(site.server.event_count, 0); // it would else be awake all the time
    order(early, "answer");
    assert_int_equal(await_answer(&site, early), TFOS_OK);
    set_room(true);
    order(late, "answer");
    assert_int_equal(await_answer(&site, late), TFOS_OK);
    tfos__channel_close(early);
    tfos__channel_close(late);
    tfos__server_clear(&site.server, "the end");
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(messages_are_answered_on_either_kind_of_socket),
    cmocka_unit_test(who_says_no_hello_in_time_is_dropped),
    cmocka_unit_test(a_breach_of_the_protocol_ends_the_connection),
    cmocka_unit_test(who_has_its_last_message_may_read_it_and_go),
    cmocka_unit_test(who_does_not_read_is_dropped),
    cmocka_unit_test(connections_dropped_in_a_step_are_handled_no_more_in_it),
    cmocka_unit_test(a_detached_channel_is_its_takers),
    cmocka_unit_test(accepting_pauses_while_descriptors_have_run_out),
};

TEST_MAIN(cases)
