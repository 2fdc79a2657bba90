// SPDX-License-Identifier: Apache-2.0
/// The life of a node with the real command: how its trainer starts, speaks and ends, and what is
/// told of it.
#include <fcntl.h>

#include "nodes.h"

static void reports_a_trainer_that_succeeds(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_shell(&cluster, 0, "echo to stdout; echo to stderr >&2; printf 'no end'");
    json_t *registered = await_message(&cluster, 0, "registered");
    assert_string_equal(json_string_value(json_object_get(registered, "job_name")), "worker");
    json_decref(registered);
    json_t *running = await_message(&cluster, 0, "running");
    assert_non_null(json_object_get(json_object_get(running, "cluster_spec"), "worker"));
    int trainer = (int)json_integer_value(json_object_get(running, "trainer_pid"));
    json_decref(running);
    json_t *ended = await_message(&cluster, 0, "ended");
    assert_true(json_is_true(json_object_get(ended, "ok")));
    assert_string_equal(json_string_value(json_object_get(ended, "exit")), "exit status 0");
    json_decref(ended);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    await_event(&cluster, "line", "to stdout");
    await_event(&cluster, "line", "no end");
    const json_t *line = await_event(&cluster, "line", "to stderr");
    assert_string_equal(json_string_value(json_object_get(line, "stream")), "stderr");
    assert_gone(trainer);
    // Nobody needs the node any more, so it ends by itself.
    char *text;
    assert_int_equal(tfos_node_launch_next(cluster.launches[0], PATIENCE_MS, &text, &err),
                     TFOS_CLOSED);
    assert_non_null(strstr(err.message, "exit status 0"));
    cluster_close(&cluster);
}

/// Waits for the cluster's failure, whose message must have all of `parts` (ended by NULL).
static void assert_failure(struct cluster *cluster, const char *const *parts)
{
    struct tfos_error err;
    enum tfos_status status =
        tfos_rendezvous_wait(cluster->rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err);
    assert_true(status < 0 && status != TFOS_TIMEOUT);
    for (; *parts; parts++) {
        if (!strstr(err.message, *parts))
            fail_msg("\"%s\" is not in the failure: %s", *parts, err.message);
    }
}

static void s11_reports_status_and_last_lines(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    launch_shell(&cluster, 0, "for i in $(seq 70); do echo line $i >&2; done; exit 3");
    json_t *ended = await_message(&cluster, 0, "ended");
    assert_false(json_is_true(json_object_get(ended, "ok")));
    json_decref(ended);
    assert_failure(&cluster, (const char *const[]){"worker:0", "exit status 3", "line 70", NULL});
    cluster_close(&cluster);
}

static void s11_reports_a_signal_within_a_second(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    launch_shell(&cluster, 0, "echo about to die >&2; read line < /dev/zero");
    int trainer = (int)await_number(&cluster, 0, "running", "trainer_pid");
    await_event(&cluster, "line", "about to die");
    int64_t killed_at = tfos__now_ms();
    assert_int_equal(kill(trainer, SIGKILL), 0);
    assert_failure(&cluster, (const char *const[]){"worker:0", "signal 9", "about to die", NULL});
    assert_true(tfos__now_ms() - killed_at < 1000);
    cluster_close(&cluster);
}

static void reports_the_trainer_s_own_reason(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    launch_trainer(&cluster, 0, "fail", false);
    assert_failure(&cluster, (const char *const[]){"worker:0", "exit status 1",
                                                   "ValueError: shapes do not match", NULL});
    cluster_close(&cluster);
}

static void reports_a_program_that_is_not_there(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    const char *const argv[] = {"/nonexistent/python", NULL};
    launch(&cluster, 0, make_config(&cluster, 0, argv));
    assert_failure(&cluster, (const char *const[]){"/nonexistent/python", NULL});
    json_t *failed = await_message(&cluster, 0, "registered");
    json_decref(failed);
    cluster_close(&cluster);
}

static void gives_the_trainer_its_context_and_payload(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    launch_trainer(&cluster, 0, "show", false);
    const json_t *line = await_event(&cluster, "line", "context ");
    const char *text = json_string_value(json_object_get(line, "text"));
    json_t *context = json_loads(text + strlen("context "), 0, NULL);
    assert_null(json_object_get(context, "collective_key")); // users see the context
    assert_string_equal(json_string_value(json_object_get(context, "job_name")), "worker");
    assert_string_equal(json_string_value(json_object_get(context, "cluster_id")), cluster.id);
    assert_string_equal(json_string_value(json_object_get(context, "default_fs")), "file://");
    assert_int_equal(json_integer_value(json_object_get(context, "task_index")), 0);
    assert_true(json_is_false(json_object_get(context, "fed")));
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(context, "user"), "answer")), 42);
    json_decref(context);
    await_event(&cluster, "line", "payload 7 payload");
    cluster_close(&cluster);
}

static void gives_the_trainer_its_environment(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    setenv("TFOS_TEST_KEPT", "kept", 1);
    setenv("TFOS_TEST_UNSET", "unset", 1);
    const char *const argv[] = {
        "/bin/sh", "-c",
        "echo \"$TF_CONFIG\"; echo \"$TFOS_TEST_KEPT ${TFOS_TEST_UNSET-none} $NEW "
        "$TF_GRPC_REUSE_PORT\"; pwd; echo fds $(ls /proc/self/fd | tr '\\n' ' ')",
        NULL};
    json_t *config = make_config(&cluster, 0, argv);
    json_object_set_new(config, "environment",
                        json_pack("{s:s, s:n}", "NEW", "new", "TFOS_TEST_UNSET"));
    json_object_set_new(config, "directory", json_string("/usr"));
    launch(&cluster, 0, config);
    const json_t *line = await_event(&cluster, "line", "\"worker\"");
    json_t *tf_config = json_loads(json_string_value(json_object_get(line, "text")), 0, NULL);
    const json_t *task = json_object_get(tf_config, "task");
    assert_string_equal(json_string_value(json_object_get(task, "type")), "worker");
    assert_null(json_object_get(tf_config, "environment"));
    json_decref(tf_config);
    await_event(&cluster, "line", "kept none new true");
    await_event(&cluster, "line", "/usr");
    // `ls` has its own descriptor of the folder, 4; nothing else of the node reaches the trainer.
    await_event(&cluster, "line", "fds 0 1 2 3 4");
    cluster_close(&cluster);
}

static void a_flood_of_output_holds_nothing_up(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    int old_stdout = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    launch_shell(&cluster, 0, "yes 'a line of some length' | head -c 50000000; echo the last line");
    dup2(old_stdout, STDOUT_FILENO);
    close(old_stdout);
    close(nowhere);
    await_event(&cluster, "line", "left out here");
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    cluster_close(&cluster);
}

static void two_trainers_agree(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 2, false);
    launch_trainer(&cluster, 0, "agree", false);
    launch_trainer(&cluster, 1, "agree", false);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    const json_t *line = await_event(&cluster, "line", "agreed [{\"rows\":3},{\"rows\":3}]");
    const char *first = json_string_value(json_object_get(line, "node"));
    assert_non_null(first);
    cluster_close(&cluster);
}

static void s46_three_trainers_reduce_together(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 3, false);
    for (int id = 0; id < 3; id++)
        launch_trainer(&cluster, id, "reduce", false);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    for (int rank = 0; rank < 3; rank++) {
        char text[64];
        snprintf(text, sizeof(text), "rank %d of 3 has 6", rank);
        const json_t *line = await_event(&cluster, "line", text);
        // Ranks are in the order of executor ids.
        assert_int_equal(json_integer_value(json_object_get(line, "executor_id")), rank);
    }
    cluster_close(&cluster);
}

static void a_trainer_that_agrees_alone_is_told_with_whom(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 2, false);
    launch_trainer(&cluster, 0, "agree_soon", false);
    launch_trainer(&cluster, 1, "hold", false);
    assert_int_equal(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err),
                     TFOS_CLOSED);
    if (!strstr(err.message, "no value within 0.3 s from worker:1 on host 127.0.0.1 (executor 7)."))
        fail_msg("%s", err.message);
    cluster_close(&cluster);
}

static void shows_what_a_trainer_reports(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_trainer(&cluster, 0, "report", false);
    await_running(&cluster, 1);
    int64_t deadline = tfos__deadline(PATIENCE_MS);
    for (bool is_shown = false; !is_shown;) {
        char *text;
        assert_done(tfos_rendezvous_get_status(cluster.rendezvous, &text, &err));
        is_shown = strstr(text, "\"step\":12") || strstr(text, "\"step\": 12");
        tfos_free(text);
        assert_true(tfos__remaining_ms(deadline) != 0);
        pause_ms(10);
    }
    cluster_close(&cluster);
}

static void s04_changes_a_port_that_was_taken(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 2, false);
    launch_shell(&cluster, 0, "echo \"$TF_CONFIG\"; exec sleep 60");
    json_decref(await_message(&cluster, 0, "registered"));
    int taken = (int)node_number(&cluster, 0, "port");
    assert_true(taken > 0);
    // Somebody of this user who shares ports as TensorFlow does is faster than the trainer.
    const char *const argv[] = {"/bin/sh", "-c", "exec sleep 60", NULL};
    int thief = listen_sharing(taken);
    launch(&cluster, 1, make_config(&cluster, 1, argv));
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_RUNNING, PATIENCE_MS, &err));
    await_running(&cluster, 2);
    int port = (int)node_number(&cluster, 0, "port");
    assert_int_not_equal(port, taken);
    char words[32];
    snprintf(words, sizeof(words), ":%d\"", port);
    await_event(&cluster, "line", words);
    close(thief);
    cluster_close(&cluster);
}

static void s04_a_fixed_port_that_was_taken_is_named(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 2, false);
    int thief = listen_sharing(0);
    int port = port_of(thief);
    close(thief);
    const char *const argv[] = {"/bin/sh", "-c", "exec sleep 60", NULL};
    json_t *config = make_config(&cluster, 0, argv);
    json_object_set_new(config, "tf_port", json_integer(port));
    launch(&cluster, 0, config);
    json_decref(await_message(&cluster, 0, "registered"));
    thief = listen_sharing(port);
    launch(&cluster, 1, make_config(&cluster, 1, argv));
    char words[32];
    snprintf(words, sizeof(words), "%d", port);
    assert_failure(&cluster, (const char *const[]){"worker:0", words, "TENSORFLOW_PORT", NULL});
    close(thief);
    cluster_close(&cluster);
}

static void keeps_the_port_until_it_is_released(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    launch_trainer(&cluster, 0, "bind_port", false);
    await_event(&cluster, "line", "alone before fails");
    await_event(&cluster, "line", "alone after works");
    cluster_close(&cluster);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(reports_a_trainer_that_succeeds),
    cmocka_unit_test(s11_reports_status_and_last_lines),
    cmocka_unit_test(s11_reports_a_signal_within_a_second),
    cmocka_unit_test(reports_the_trainer_s_own_reason),
    cmocka_unit_test(reports_a_program_that_is_not_there),
    cmocka_unit_test(gives_the_trainer_its_context_and_payload),
    cmocka_unit_test(gives_the_trainer_its_environment),
    cmocka_unit_test(a_flood_of_output_holds_nothing_up),
    cmocka_unit_test(two_trainers_agree),
    cmocka_unit_test(s46_three_trainers_reduce_together),
    cmocka_unit_test(a_trainer_that_agrees_alone_is_told_with_whom),
    cmocka_unit_test(shows_what_a_trainer_reports),
    cmocka_unit_test(s04_changes_a_port_that_was_taken),
    cmocka_unit_test(s04_a_fixed_port_that_was_taken_is_named),
    cmocka_unit_test(keeps_the_port_until_it_is_released),
};

TEST_MAIN(cases)
