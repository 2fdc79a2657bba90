// SPDX-License-Identifier: Apache-2.0
/// Everything that ends a node before its trainer has ended by itself. After each, no process is
/// left.
#include "nodes.h"

/// Ignores SIGTERM and has a child that does too.
#define STUBBORN                                                                                   \
    "trap '' TERM; (trap '' TERM; echo child $$; while :; do sleep 1; done) & echo ready; wait; "  \
    "while :; do sleep 1; done"

static void stop_ends_a_stubborn_trainer(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_shell(&cluster, 0, STUBBORN);
    int trainer = (int)await_number(&cluster, 0, "running", "trainer_pid");
    await_running(&cluster, 1);
    await_event(&cluster, "line", "ready");
    int64_t stopped_at = tfos__now_ms();
    tfos_rendezvous_stop(cluster.rendezvous, 300);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    assert_true(tfos__now_ms() - stopped_at >= 300);
    json_t *ended = await_message(&cluster, 0, "ended");
    assert_true(json_is_true(json_object_get(ended, "ok")));
    json_decref(ended);
    assert_gone(trainer);
    assert_gone(cluster.pids[0]);
    // The whole group has gone with it.
    assert_int_equal(kill(-trainer, 0), -1);
    assert_int_equal(errno, ESRCH);
    cluster_close(&cluster);
}

static void stop_lets_a_trainer_finish(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_shell(&cluster, 0,
                 "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
    await_event(&cluster, "line", "ready");
    tfos_rendezvous_stop(cluster.rendezvous, PATIENCE_MS);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    await_event(&cluster, "line", "saved");
    cluster_close(&cluster);
}

static void stop_before_the_start_ends_the_node(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 2, false); // the second never comes
    launch_shell(&cluster, 0, "exec sleep 60");
    json_decref(await_message(&cluster, 0, "registered"));
    int node = (int)node_number(&cluster, 0, "pid");
    tfos_rendezvous_stop(cluster.rendezvous, 1000);
    char *text;
    assert_done(tfos_node_launch_next(cluster.launches[0], PATIENCE_MS, &text, &err));
    assert_non_null(strstr(text, "\"failed\""));
    tfos_free(text);
    assert_gone(node);
    cluster_close(&cluster);
}

static void the_launcher_s_end_is_the_node_s(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_shell(&cluster, 0, "exec sleep 60");
    int trainer = (int)await_number(&cluster, 0, "running", "trainer_pid");
    await_running(&cluster, 1);
    tfos_node_launch_close(cluster.launches[0]);
    cluster.launches[0] = NULL;
    assert_gone(trainer);
    assert_true(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err) < 0);
    assert_non_null(strstr(err.message, "worker:0"));
    assert_non_null(strstr(err.message, "task"));
    cluster_close(&cluster);
}

static void a_detached_node_outlives_its_launcher(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_shell(&cluster, 0, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done");
    int trainer = (int)await_number(&cluster, 0, "running", "trainer_pid");
    await_running(&cluster, 1);
    assert_done(tfos_node_launch_detach(cluster.launches[0], &err));
    tfos_node_launch_close(cluster.launches[0]);
    cluster.launches[0] = NULL;
    // Its next heartbeats come after the launcher has gone.
    int64_t deadline = tfos__deadline(1500);
    while (tfos__remaining_ms(deadline) != 0)
        pause_ms(50);
    assert_true(is_alive(trainer));
    assert_true(node_number(&cluster, 0, "heartbeat_age_ms") < 1500);
    assert_done(tfos_rendezvous_check(cluster.rendezvous, &err));
    tfos_rendezvous_close(cluster.rendezvous);
    cluster.rendezvous = NULL;
    assert_gone(trainer);
    assert_gone(cluster.pids[0]);
    // The process was reaped, too.
    deadline = tfos__deadline(PATIENCE_MS);
    while (kill(cluster.pids[0], 0) == 0 && tfos__remaining_ms(deadline) != 0)
        pause_ms(10);
    assert_int_equal(kill(cluster.pids[0], 0), -1);
    cluster_close(&cluster);
}

static void s06_the_executor_s_end_is_the_node_s(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    pid_t executor = fork();
    if (executor == 0) {
        execlp("sleep", "sleep", "60", (char *)NULL);
        _exit(127);
    }
    const char *const argv[] = {"/bin/sh", "-c", STUBBORN, NULL};
    json_t *config = make_config(&cluster, 0, argv);
    json_object_set_new(config, "executor_pid", json_integer(executor));
    launch(&cluster, 0, config);
    int trainer = (int)await_number(&cluster, 0, "running", "trainer_pid");
    await_running(&cluster, 1);
    assert_int_equal(kill(executor, SIGKILL), 0);
    assert_int_equal(waitpid(executor, NULL, 0), executor);
    assert_true(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err) < 0);
    assert_non_null(strstr(err.message, "executor 7"));
    assert_gone(trainer);
    assert_gone(cluster.pids[0]);
    cluster_close(&cluster);
}

static void the_driver_s_end_is_the_node_s(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    launch_shell(&cluster, 0, STUBBORN);
    int trainer = (int)await_number(&cluster, 0, "running", "trainer_pid");
    await_running(&cluster, 1);
    tfos_rendezvous_close(cluster.rendezvous);
    cluster.rendezvous = NULL;
    json_t *ended = await_message(&cluster, 0, "ended");
    assert_false(json_is_true(json_object_get(ended, "ok")));
    assert_non_null(strstr(json_string_value(json_object_get(ended, "message")), "driver"));
    json_decref(ended);
    assert_gone(trainer);
    assert_gone(cluster.pids[0]);
    cluster_close(&cluster);
}

static void a_signal_to_the_node_ends_the_trainer(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_shell(&cluster, 0, "exec sleep 60");
    int trainer = (int)await_number(&cluster, 0, "running", "trainer_pid");
    await_running(&cluster, 1);
    assert_int_equal(kill(cluster.pids[0], SIGTERM), 0);
    assert_true(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err) < 0);
    assert_non_null(strstr(err.message, "worker:0"));
    assert_gone(trainer);
    assert_gone(cluster.pids[0]);
    cluster_close(&cluster);
}

static void a_trainer_dies_with_a_node_that_is_killed(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_trainer(&cluster, 0, "report", false);
    int trainer = (int)await_number(&cluster, 0, "running", "trainer_pid");
    await_running(&cluster, 1);
    // It has opened its link, and with it tied itself to the node, once its report is shown.
    char *text = NULL;
    int64_t deadline = tfos__deadline(PATIENCE_MS);
    do {
        tfos_free(text);
        assert_true(tfos__remaining_ms(deadline) != 0);
        pause_ms(10);
        assert_done(tfos_rendezvous_get_status(cluster.rendezvous, &text, &err));
    } while (!strstr(text, "\"loss\""));
    tfos_free(text);
    assert_int_equal(kill(cluster.pids[0], SIGKILL), 0);
    assert_int_equal(tfos_node_launch_next(cluster.launches[0], PATIENCE_MS, &text, &err),
                     TFOS_CLOSED);
    assert_non_null(strstr(err.message, "signal 9"));
    assert_gone(trainer);
    cluster_close(&cluster);
}

static void an_orphan_goes_with_the_node(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_trainer(&cluster, 0, "orphan", false);
    const json_t *line = await_event(&cluster, "line", "orphan ");
    int orphan = atoi(json_string_value(json_object_get(line, "text")) + strlen("orphan "));
    // The orphan holds the trainer's stdout; its end is reported nevertheless.
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    assert_gone(orphan);
    cluster_close(&cluster);
}

/// The node's `failed` message, with `part` in it.
static void assert_failed(struct cluster *cluster, const char *status_name, const char *part)
{
    struct tfos_error err;
    char *text;
    assert_done(tfos_node_launch_next(cluster->launches[0], PATIENCE_MS, &text, &err));
    json_t *message = json_loads(text, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(message, "type")), "failed");
    assert_string_equal(json_string_value(json_object_get(message, "status")), status_name);
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in %s", part, text);
    json_decref(message);
    tfos_free(text);
    // The process is over, without success.
    assert_int_equal(tfos_node_launch_next(cluster->launches[0], PATIENCE_MS, &text, &err),
                     TFOS_CLOSED);
    assert_non_null(strstr(err.message, "exit status 1"));
}

static const char *const sleeper[] = {"/bin/sh", "-c", "exec sleep 60", NULL};

static void s52_fails_with_the_wrong_key(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    json_t *config = make_config(&cluster, 0, sleeper);
    json_object_set_new(
        config, "key",
        json_string("ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"));
    launch(&cluster, 0, config);
    assert_failed(&cluster, "DENIED", "127.0.0.1");
    cluster_close(&cluster);
}

static void fails_when_refused(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    launch(&cluster, 0, make_config(&cluster, 5, sleeper));
    assert_failed(&cluster, "INVALID", "executor id 5");
    cluster_close(&cluster);
}

static void fails_without_a_driver(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    json_t *config = make_config(&cluster, 0, sleeper);
    tfos_rendezvous_close(cluster.rendezvous);
    cluster.rendezvous = NULL;
    launch(&cluster, 0, config);
    assert_failed(&cluster, "CLOSED", "127.0.0.1");
    cluster_close(&cluster);
}

/// Launches a node and waits until it joins a server, which never answers. Gives the server's end
/// of the connection.
static int launch_joining(struct cluster *cluster)
{
    char address[32];
    int listener = listen_sharing(0);
    snprintf(address, sizeof(address), "127.0.0.1:%d", port_of(listener));
    json_t *config = make_config(cluster, 0, sleeper);
    json_object_set_new(config, "address", json_string(address));
    launch(cluster, 0, config);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_PEEK), 1);
    close(listener);
    return fd;
}

/// The pid of this process's one child.
static int find_child(void)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return pid;
}

static void a_node_that_joins_hears_its_launcher_s_end(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    int fd = launch_joining(&cluster);
    int64_t begin = tfos__now_ms();
    tfos_node_launch_close(cluster.launches[0]);
    cluster.launches[0] = NULL;
    assert_true(tfos__now_ms() - begin < 5000); // so it was not killed for being deaf
    close(fd);
    cluster_close(&cluster);
}

static void a_node_that_joins_hears_signals(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    char *text;
    cluster_open(&cluster, 1, false);
    int fd = launch_joining(&cluster);
    int64_t begin = tfos__now_ms();
    assert_int_equal(kill(find_child(), SIGTERM), 0);
    assert_done(tfos_node_launch_next(cluster.launches[0], PATIENCE_MS, &text, &err));
    assert_true(tfos__now_ms() - begin < 5000);
    assert_non_null(strstr(text, "\"failed\""));
    assert_non_null(strstr(text, "got signal 15"));
    tfos_free(text);
    close(fd);
    cluster_close(&cluster);
}

static void fails_with_a_bad_configuration(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    json_t *config = make_config(&cluster, 0, sleeper);
    json_object_set_new(config, "argv", json_string("python"));
    launch(&cluster, 0, config);
    assert_failed(&cluster, "INVALID", "\\\"argv\\\"");
    cluster_close(&cluster);
}

static void fails_when_its_fixed_port_is_taken(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    json_t *config = make_config(&cluster, 0, sleeper);
    int thief = listen_sharing(0);
    json_object_set_new(config, "tf_port", json_integer(port_of(thief)));
    launch(&cluster, 0, config);
    assert_failed(&cluster, "BUSY", "port");
    close(thief);
    cluster_close(&cluster);
}

static void fails_without_its_executor(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    pid_t executor = fork();
    if (executor == 0)
        _exit(0);
    assert_int_equal(waitpid(executor, NULL, 0), executor);
    json_t *config = make_config(&cluster, 0, sleeper);
    json_object_set_new(config, "executor_pid", json_integer(executor));
    launch(&cluster, 0, config);
    assert_failed(&cluster, "NOT_FOUND", "executor 7");
    cluster_close(&cluster);
}

static void launching_a_missing_command_fails(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos_node_launch *out;
    int fd_count = count_fds();
    assert_int_equal(tfos_node_launch("/nonexistent/tfos", "{}", NULL, 0, &out, &err),
                     TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, "/nonexistent/tfos"));
    assert_int_equal(tfos_node_launch(TFOS_COMMAND, "no json", NULL, 0, &out, &err), TFOS_INVALID);
    assert_int_equal(count_fds(), fd_count);
}

static void launch_daemon(struct cluster *cluster, const char *verb)
{
    const char *const argv[] = {TFOS_TRAINER, "daemon", verb, NULL};
    cluster_open(cluster, 1, false);
    launch(cluster, 0, make_config(cluster, 0, argv));
}

/// Its process has ended with 0, but not its work.
static void s75_a_daemon_is_waited_for(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    launch_daemon(&cluster, "work");
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err));
    await_event(&cluster, "line", "has worked");
    cluster_close(&cluster);
}

static void s75_a_daemon_s_failure_is_the_trainer_s(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    launch_daemon(&cluster, "fail");
    assert_true(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err) < 0);
    assert_non_null(strstr(err.message, "exit status 5"));
    cluster_close(&cluster);
}

static void s75_a_daemon_that_fails_before_the_first_process_ends(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    launch_daemon(&cluster, "fail_first");
    assert_true(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err) < 0);
    assert_non_null(strstr(err.message, "exit status 5"));
    cluster_close(&cluster);
}

static void s75_stop_ends_a_daemon(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    launch_daemon(&cluster, "hold");
    const json_t *event = await_event(&cluster, "line", "daemon ");
    int pid = 0;
    const char *text = json_string_value(json_object_get(event, "text"));
    assert_int_equal(sscanf(text, "daemon %d", &pid), 1);
    assert_true(is_alive(pid));
    tfos_rendezvous_stop(cluster.rendezvous, PATIENCE_MS);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    assert_gone(pid);
    cluster_close(&cluster);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(stop_ends_a_stubborn_trainer),
    cmocka_unit_test(stop_lets_a_trainer_finish),
    cmocka_unit_test(stop_before_the_start_ends_the_node),
    cmocka_unit_test(the_launcher_s_end_is_the_node_s),
    cmocka_unit_test(a_detached_node_outlives_its_launcher),
    cmocka_unit_test(s06_the_executor_s_end_is_the_node_s),
    cmocka_unit_test(the_driver_s_end_is_the_node_s),
    cmocka_unit_test(a_signal_to_the_node_ends_the_trainer),
    cmocka_unit_test(a_trainer_dies_with_a_node_that_is_killed),
    cmocka_unit_test(an_orphan_goes_with_the_node),
    cmocka_unit_test(s75_a_daemon_is_waited_for),
    cmocka_unit_test(s75_a_daemon_s_failure_is_the_trainer_s),
    cmocka_unit_test(s75_a_daemon_that_fails_before_the_first_process_ends),
    cmocka_unit_test(s75_stop_ends_a_daemon),
    cmocka_unit_test(s52_fails_with_the_wrong_key),
    cmocka_unit_test(fails_when_refused),
    cmocka_unit_test(fails_without_a_driver),
    cmocka_unit_test(a_node_that_joins_hears_its_launcher_s_end),
    cmocka_unit_test(a_node_that_joins_hears_signals),
    cmocka_unit_test(fails_with_a_bad_configuration),
    cmocka_unit_test(fails_when_its_fixed_port_is_taken),
    cmocka_unit_test(fails_without_its_executor),
    cmocka_unit_test(launching_a_missing_command_fails),
};

TEST_MAIN(cases)
