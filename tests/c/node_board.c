// SPDX-License-Identifier: Apache-2.0
/// TensorBoard beside a trainer (S41): its address reaches the driver, and nothing that goes wrong
/// with it stops training.
#include "nodes.h"

static void launch_with_board(struct cluster *cluster, int slot, json_t *board_argv)
{
    const char *const argv[] = {"/bin/sh", "-c", "echo training; exec sleep 60", NULL};
    json_t *config = make_config(cluster, slot, argv);
    json_object_set_new(config, "tensorboard",
                        json_pack("{s:o, s:i}", "argv", board_argv, "port", 0));
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

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(tells_the_driver_its_address),
    cmocka_unit_test(only_one_node_has_it),
    cmocka_unit_test(s41_a_program_that_is_missing_is_a_warning),
    cmocka_unit_test(s41_one_that_ends_is_a_warning_with_its_last_line),
};

TEST_MAIN(cases)
