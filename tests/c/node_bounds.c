// SPDX-License-Identifier: Apache-2.0
/// What a node does with peers that do not read what it tells them. Each case has a node's state
/// and plays the peer on the other end of a socket pair.
#include <poll.h>

#include "base/channel.h"
#include "node/node.h"
#include "nodes.h"

#define REQUESTS 50000
#define BIG ((size_t)1 << 20)

/// Makes the node's end of a channel, and the peer's.
static struct tfos__channel *open_peer(struct tfos__channel **end, const char *name)
{
    struct tfos_error err;
    struct tfos__channel *peer;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_done(tfos__channel_open(fds[0], TFOS__CHANNEL_UNIX, NULL, name, end, &err));
    assert_done(tfos__channel_open(fds[1], TFOS__CHANNEL_UNIX, NULL, "node", &peer, &err));
    return peer;
}

static json_t *big_message(void)
{
    static char text[BIG];
    memset(text, 'x', sizeof(text) - 1);
    return json_pack("{s:s, s:s}", "type", "agreed", "name", text);
}

/// As the node's loop: steps when poll() says so, and ticks.
static void turn(struct tfos__node *node)
{
    uint32_t events = tfos__node_trainer_events(node);
    struct pollfd slot = {.fd = tfos__channel_fd(node->trainer.channel), .events = (short)events};
    assert_int_not_equal(events, 0);
    if (poll(&slot, 1, 0) == 1)
        tfos__node_trainer_step(node);
    if (node->trainer.channel)
        tfos__node_trainer_tick(node);
}

static int take_answers(struct tfos__channel *peer)
{
    struct tfos_error err;
    json_t *message;
    int count = 0;
    assert_done(tfos__channel_pump(peer, &err));
    for (; tfos__channel_next(peer, &message, NULL, NULL, &err) == TFOS_OK; count++) {
        assert_string_equal(json_string_value(json_object_get(message, "type")), "refused");
        json_decref(message);
    }
    return count;
}

static void requests_wait_while_their_answers_are_not_taken(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__node node = {.port_fd = -1};
    struct tfos__channel *peer = open_peer(&node.trainer.channel, "trainer");
    for (int i = 0; i < REQUESTS; i++)
        assert_done(tfos__channel_queue(
            peer, json_pack("{s:s, s:s}", "type", "open_feed", "queue", "input"), NULL, 0, &err));
    size_t left = SIZE_MAX;
    while (tfos__channel_pending_size(peer) < left) { // until the node reads no more
        left = tfos__channel_pending_size(peer);
        assert_done(tfos__channel_flush(peer, &err));
        turn(&node);
    }
    assert_in_range(tfos__channel_pending_size(node.trainer.channel), 1 << 20, 2 << 20);
    assert_false(node.trainer.is_given_up);
    int64_t deadline = tfos__deadline(PATIENCE_MS);
    for (int answers = 0; answers < REQUESTS;) {
        turn(&node);
        answers += take_answers(peer);
        assert_true(tfos__now_ms() < deadline);
    }
    tfos__channel_close(peer);
    tfos__channel_close(node.trainer.channel);
}

static void start_trainer(struct tfos__node *node)
{
    struct tfos_error err;
    char *argv[] = {"/bin/sleep", "600", NULL};
    char *envp[] = {NULL};
    struct tfos__spawn_options options = {.argv = argv, .envp = envp};
    assert_done(tfos__node_child_start(&node->trainer.child, &options, NULL, NULL, &err));
}

static void a_trainer_that_cannot_be_told_is_ended(void **state)
{
    for (int is_out_of_memory = 0; is_out_of_memory < 2; is_out_of_memory++) {
        (void)state;
        struct tfos__node node = {.port_fd = -1};
        struct tfos__channel *peer = open_peer(&node.trainer.channel, "trainer");
        int status;
        start_trainer(&node);
        if (is_out_of_memory)
            tfos__node_trainer_send(&node, NULL, NULL, 0);
        for (int i = 0; i < 50; i++) {
            assert_int_equal(node.trainer.is_given_up, is_out_of_memory || i > 16);
            tfos__node_trainer_send(&node, big_message(), NULL, 0);
        }
        assert_true(tfos__channel_pending_size(node.trainer.channel) <= 18 * BIG);
        assert_int_equal(waitpid(node.trainer.child.pid, &status, 0), node.trainer.child.pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_non_null(strstr(node.trainer.message, "the node ended it"));
        assert_non_null(
            strstr(node.trainer.message, is_out_of_memory ? "no memory" : "does not read"));
        free(node.trainer.message);
        tfos__channel_close(peer);
        tfos__channel_close(node.trainer.channel);
    }
}

static void a_trainer_that_goes_with_answers_unread_is_heard_to_the_end(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__node node = {.port_fd = -1};
    struct tfos__channel *peer = open_peer(&node.trainer.channel, "trainer");
    for (int i = 0; i < 3; i++)
        tfos__node_trainer_send(&node, big_message(), NULL, 0);
    assert_done(tfos__channel_send(peer,
                                   json_pack("{s:s, s:s}", "type", "fail", "message", "no data"),
                                   NULL, 0, tfos__deadline(PATIENCE_MS), &err));
    tfos__channel_close(peer);
    tfos__node_trainer_send(&node, json_pack("{s:s}", "type", "port_released"), NULL, 0);
    turn(&node);
    assert_null(node.trainer.channel);
    assert_string_equal(node.trainer.message, "no data");
    free(node.trainer.message);
}

static void a_launcher_that_cannot_be_told_counts_as_gone(void **state)
{
    (void)state;
    for (int is_detached = 0; is_detached < 2; is_detached++) {
        struct tfos__node node = {.is_detached = is_detached};
        struct tfos__channel *peer = open_peer(&node.launcher, "launcher");
        for (int i = 0; i < 50; i++)
            tfos__node_launcher_send(&node, big_message());
        assert_null(node.launcher);
        assert_int_equal(node.is_ending, !is_detached);
        if (!is_detached)
            assert_non_null(strstr(node.end_message, "launcher does not read"));
        tfos__channel_close(peer);
    }
}

static void a_driver_that_cannot_be_told_ends_the_node(void **state)
{
    (void)state;
    struct tfos__node node = {.is_member = true, .config.address = "driver:1"};
    tfos__node_rendezvous_send(&node, NULL);
    assert_true(node.is_ending);
    assert_non_null(strstr(node.end_message, "no memory for a message"));
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(requests_wait_while_their_answers_are_not_taken),
    cmocka_unit_test(a_trainer_that_cannot_be_told_is_ended),
    cmocka_unit_test(a_trainer_that_goes_with_answers_unread_is_heard_to_the_end),
    cmocka_unit_test(a_launcher_that_cannot_be_told_counts_as_gone),
    cmocka_unit_test(a_driver_that_cannot_be_told_ends_the_node),
};

TEST_MAIN(cases)
