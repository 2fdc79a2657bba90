// SPDX-License-Identifier: Apache-2.0
/// TensorBoard beside a trainer (S41): its address reaches the driver, and nothing that goes wrong
/// with it stops training.
#include <netdb.h>
#include <poll.h>

#include "base/listener.h"
#include "base/socket.h"
#include "node/node.h"
#include "nodes.h"

#define QUEUED_LIMIT 16

static void launch_with_board(struct cluster *cluster, int slot, json_t *tensorboard_argv)
{
    const char *const argv[] = {"/bin/sh", "-c", "echo training; exec sleep 60", NULL};
    json_t *config = make_config(cluster, slot, argv);
    json_object_set_new(config, "tensorboard",
                        json_pack("{s:o, s:i}", "argv", tensorboard_argv, "port", 0));
    launch(cluster, slot, config);
}

static void tells_the_driver_its_address(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_with_board(&cluster, 0, json_pack("[s, s, s]", TFOS_TRAINER, "serve", "{port}"));
    await_running(&cluster, 1);
    const json_t *event = await_event(&cluster, "tensorboard", "http://127.0.0.1:");
    const char *url = json_string_value(json_object_get(event, "url"));
    assert_true(atoi(url + strlen("http://127.0.0.1:")) > 0);
    assert_done(tfos_rendezvous_check(cluster.rendezvous, &err));
    cluster_close(&cluster);
}

static void only_one_node_has_it(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 2, false);
    for (int i = 0; i < 2; i++)
        launch_with_board(&cluster, i, json_pack("[s, s]", "/nonexistent/tensorboard", "{port}"));
    await_running(&cluster, 2);
    await_event(&cluster, "warning", "worker:0");
    await_event(&cluster, "line", "training");
    assert_false(has_event(&cluster, "warning", "worker:1"));
    cluster_close(&cluster);
}

static void s41_a_program_that_is_missing_is_a_warning(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_with_board(&cluster, 0, json_pack("[s]", "no-such-tensorboard"));
    await_running(&cluster, 1);
    await_event(&cluster, "warning", "no-such-tensorboard");
    await_event(&cluster, "line", "training");
    assert_done(tfos_rendezvous_check(cluster.rendezvous, &err));
    cluster_close(&cluster);
}

static void s41_one_that_ends_is_a_warning_with_its_last_line(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_with_board(
        &cluster, 0,
        json_pack("[s, s, s]", "/bin/sh", "-c", "echo no module named tensorboard >&2; exit 1"));
    await_running(&cluster, 1);
    const json_t *warning = await_event(&cluster, "warning", "no module named tensorboard");
    assert_non_null(
        strstr(json_string_value(json_object_get(warning, "message")), "exit status 1"));
    assert_done(tfos_rendezvous_check(cluster.rendezvous, &err));
    assert_false(has_event(&cluster, "line", "no module"));
    cluster_close(&cluster);
}

/// Connects to a listener without a backlog until its queue is full; the last stays undecided.
static int fill_queue(const struct addrinfo *address, int fds[QUEUED_LIMIT])
{
    for (int count = 0; count < QUEUED_LIMIT; count++) {
        fds[count] = tfos__socket_connect_begin(address);
        assert_true(fds[count] >= 0);
        struct pollfd slot = {.fd = fds[count], .events = POLLOUT};
        if (poll(&slot, 1, 100) == 0)
            return count + 1;
    }
    fail_msg("the listener's queue does not become full");
    return 0;
}

/// A server that is there, but takes no connection yet: the kernel drops the packets.
static void a_look_that_is_not_decided_holds_nothing_up(void **state)
{
    (void)state;
    struct tfos_error err;
    int listener, queued[QUEUED_LIMIT];
    char address[TFOS__ADDRESS_SIZE], peer[TFOS__ADDRESS_SIZE];
    struct tfos__node node = {.host = "127.0.0.1"};
    struct tfos__node_tensorboard *board = &node.tensorboard;
    assert_done(tfos__listener_open("127.0.0.1", NULL, &listener, &board->port, &err));
    assert_int_equal(listen(listener, 0), 0);
    tfos__address_join("127.0.0.1", board->port, address);
    assert_done(tfos__socket_resolve(address, &board->addresses, &err));
    int queued_count = fill_queue(board->addresses, queued);
    board->child = (struct tfos__node_child){.is_running = true, .kill_at = TFOS__NEVER};
    board->give_up_at = TFOS__NEVER;
    tfos__node_tensorboard_tick(&node);
    assert_true(board->is_probing);
    struct pollfd slot = {.fd = board->probe_fd, .events = POLLOUT};
    assert_int_equal(poll(&slot, 1, 0), 0);
    board->probe_at = 0; // the next look is due before the first is decided
    tfos__node_tensorboard_tick(&node);
    struct pollfd slots[] = {{.fd = board->probe_fd, .events = POLLOUT},
                             {.fd = listener, .events = POLLIN}};
    do {
        int accepted;
        while (tfos__socket_accept(listener, &accepted, peer, &err) == TFOS_OK)
            close(accepted);
        assert_in_range(poll(slots, 2, PATIENCE_MS), 1, 2);
    } while (!slots[0].revents);
    tfos__node_tensorboard_step(&node);
    assert_true(board->is_served);
    assert_false(board->is_probing);
    tfos__node_tensorboard_close(board);
    for (int i = 0; i < queued_count; i++)
        close(queued[i]);
    close(listener);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(tells_the_driver_its_address),
    cmocka_unit_test(a_look_that_is_not_decided_holds_nothing_up),
    cmocka_unit_test(only_one_node_has_it),
    cmocka_unit_test(s41_a_program_that_is_missing_is_a_warning),
    cmocka_unit_test(s41_one_that_ends_is_a_warning_with_its_last_line),
};

TEST_MAIN(cases)
