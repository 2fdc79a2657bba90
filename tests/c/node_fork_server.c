// SPDX-License-Identifier: Apache-2.0
/// Nodes that are forked from an executor's fork server, and their trainers, which are forks again.
/// A process of the test is the executor.
#include <pthread.h>
#include <sys/prctl.h>

#include "nodes.h"

static pid_t start_executor(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

static void end_executor(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static json_t *make_preloading_config(const struct cluster *cluster, int slot, pid_t executor,
                                      const char *verb)
{
    const char *const argv[] = {TFOS_TRAINER, verb, NULL};
    json_t *config = make_config(cluster, slot, argv);
    json_object_set_new(config, "executor_pid", json_integer(executor));
    json_object_set_new(config, "preload", json_string("modules"));
    json_object_set_new(config, "directory", json_string("/proc"));
    json_object_set_new(config, "environment", json_pack("{s:s}", "MARK", "here"));
    return config;
}

/// A number of /proc/<pid>/status.
static int status_number(int pid, const char *name)
{
    char path[64], line[256];
    int number = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, name, strlen(name)) == 0)
            number = (int)strtol(line + strlen(name), NULL, 10);
    fclose(file);
    return number;
}

struct start {
    struct cluster *cluster;
    int slot;
    pid_t executor;
};

static void *launch_one(void *argument)
{
    const struct start *start = argument;
    launch(start->cluster, start->slot,
           make_preloading_config(start->cluster, start->slot, start->executor, "hold"));
    return NULL;
}

static void all_launchers_share_one_server(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    pthread_t threads[MAX_NODES];
    struct start starts[MAX_NODES];
    pid_t executor = start_executor();
    cluster_open(&cluster, MAX_NODES, false);
    for (int i = 0; i < MAX_NODES; i++) {
        starts[i] = (struct start){&cluster, i, executor};
        assert_int_equal(pthread_create(&threads[i], NULL, launch_one, &starts[i]), 0);
    }
    for (int i = 0; i < MAX_NODES; i++)
        pthread_join(threads[i], NULL);
    await_running(&cluster, MAX_NODES);
    int server = status_number(cluster.pids[0], "PPid:");
    for (int i = 0; i < MAX_NODES; i++) {
        assert_int_equal(status_number(cluster.pids[i], "PPid:"), server);
        int trainer = (int)await_number(&cluster, i, "running", "trainer_pid");
        assert_int_equal(status_number(trainer, "PPid:"), cluster.pids[i]);
    }
    // Another cluster's nodes come from the same server, while it serves the first one's.
    tfos_rendezvous_stop(cluster.rendezvous, 0);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    cluster_close(&cluster);
    assert_true(is_alive(server));
    cluster_open(&cluster, 1, false);
    launch(&cluster, 0, make_preloading_config(&cluster, 0, executor, "hold"));
    json_decref(await_message(&cluster, 0, "running"));
    await_running(&cluster, 1);
    assert_int_equal(status_number(cluster.pids[0], "PPid:"), server);
    // It ends with its executor, and so does the node.
    end_executor(executor);
    assert_gone(server);
    json_decref(await_message(&cluster, 0, "ended"));
    cluster_close(&cluster);
}

static void a_trainer_is_as_if_started(void **state)
{
    (void)state;
    struct cluster cluster;
    pid_t executor = start_executor();
    cluster_open(&cluster, 1, false);
    launch(&cluster, 0, make_preloading_config(&cluster, 0, executor, "process"));
    await_event(&cluster, "line", "server (null), config set, mark here");
    // Its standard descriptors, its link with the payload, and what wakes its thread.
    await_event(&cluster, "line", "in /proc, leader 1, SIGCHLD 0, descriptors 6");
    json_t *ended = await_message(&cluster, 0, "ended");
    assert_true(json_is_true(json_object_get(ended, "ok")));
    json_decref(ended);
    cluster_close(&cluster);
    end_executor(executor);
}

static void another_environment_gets_another_server(void **state)
{
    (void)state;
    struct cluster cluster;
    pid_t executor = start_executor();
    cluster_open(&cluster, 2, false);
    json_t *config = make_preloading_config(&cluster, 1, executor, "process");
    json_object_set_new(config, "environment", json_pack("{s:s}", "MARK", "there"));
    launch(&cluster, 0, make_preloading_config(&cluster, 0, executor, "process"));
    launch(&cluster, 1, config);
    await_event(&cluster, "line", "mark here");
    await_event(&cluster, "line", "mark there");
    for (int i = 0; i < 2; i++)
        json_decref(await_message(&cluster, i, "ended"));
    cluster_close(&cluster);
    end_executor(executor);
}

static void a_killed_node_takes_its_trainer_along(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    char *text;
    pid_t executor = start_executor();
    cluster_open(&cluster, 1, false);
    launch(&cluster, 0, make_preloading_config(&cluster, 0, executor, "hold"));
    int trainer = (int)await_number(&cluster, 0, "running", "trainer_pid");
    await_running(&cluster, 1);
    kill(cluster.pids[0], SIGKILL);
    assert_gone(trainer);
    assert_int_equal(tfos_node_launch_next(cluster.launches[0], PATIENCE_MS, &text, &err),
                     TFOS_CLOSED);
    cluster_close(&cluster);
    end_executor(executor);
}

static void a_launcher_that_closes_ends_its_node(void **state)
{
    (void)state;
    struct cluster cluster;
    pid_t executor = start_executor();
    cluster_open(&cluster, 1, false);
    launch(&cluster, 0, make_preloading_config(&cluster, 0, executor, "hold"));
    int trainer = (int)await_number(&cluster, 0, "running", "trainer_pid");
    await_running(&cluster, 1);
    tfos_node_launch_close(cluster.launches[0]);
    cluster.launches[0] = NULL;
    assert_gone(trainer);
    assert_gone(cluster.pids[0]);
    cluster_close(&cluster);
    end_executor(executor);
}

static void what_left_the_server_is_swept(void **state)
{
    (void)state;
    struct cluster cluster;
    pid_t executor = start_executor();
    cluster_open(&cluster, 1, false);
    launch(&cluster, 0, make_preloading_config(&cluster, 0, executor, "orphan"));
    const json_t *line = await_event(&cluster, "line", "orphan ");
    int orphan = 0;
    assert_int_equal(sscanf(json_string_value(json_object_get(line, "text")), "orphan %d", &orphan),
                     1);
    json_decref(await_message(&cluster, 0, "ended"));
    assert_gone(orphan);
    cluster_close(&cluster);
    end_executor(executor);
}

static void a_server_that_cannot_start_is_an_error(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    struct tfos_node_launch *out;
    static const char *const programs[] = {"/nonexistent/python", "/bin/false"};
    static const enum tfos_status statuses[] = {TFOS_NOT_FOUND, TFOS_CLOSED};
    static const char *const words[] = {"/nonexistent/python", "preloads \"modules\""};
    cluster_open(&cluster, 1, false);
    for (int i = 0; i < 2; i++) {
        json_t *config = make_preloading_config(&cluster, 0, getpid(), "hold");
        json_array_set_new(json_object_get(config, "argv"), 0, json_string(programs[i]));
        char *text = json_dumps(config, 0);
        assert_int_equal(tfos_node_launch(TFOS_COMMAND, text, NULL, 0, &out, &err), statuses[i]);
        if (!strstr(err.message, words[i]))
            fail_msg("%s", err.message);
        free(text);
        json_decref(config);
    }
    cluster_close(&cluster);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(all_launchers_share_one_server),
    cmocka_unit_test(a_trainer_is_as_if_started),
    cmocka_unit_test(another_environment_gets_another_server),
    cmocka_unit_test(a_killed_node_takes_its_trainer_along),
    cmocka_unit_test(a_launcher_that_closes_ends_its_node),
    cmocka_unit_test(what_left_the_server_is_swept),
    cmocka_unit_test(a_server_that_cannot_start_is_an_error),
};

TEST_MAIN(cases)
