// SPDX-License-Identifier: Apache-2.0
/// A fed node: the messages that writers, trainer and driver exchange through it.
#include <sys/stat.h>

#include "feed/feed.h"
#include "nodes.h"
#include "number_batch.h"

static struct tfos__feed_writer *open_writer(struct cluster *cluster, int64_t partition,
                                             int64_t attempt, int64_t timeout_ms)
{
    struct tfos_error err;
    struct tfos__feed_writer *writer;
    char name[128];
    snprintf(name, sizeof(name), "tfos-feed-%s-0", cluster->id);
    struct tfos_feeder_options options = {.cluster_id = cluster->id,
                                          .key = KEY,
                                          .feed = 1,
                                          .partition = partition,
                                          .attempt = attempt,
                                          .wait.timeout_ms = timeout_ms};
    struct tfos__feed_target target = {.socket_name = name};
    assert_done(tfos__feed_writer_open(&options, &target, &writer, &err));
    return writer;
}

static enum tfos_status append(struct tfos__feed_writer *writer, int64_t first, int64_t count,
                               struct tfos_error *err)
{
    struct rows rows;
    make_rows(&rows, first, count);
    return tfos__feed_writer_append(writer, &rows.schema, &rows.array, err);
}

static void open_fed(struct cluster *cluster, const char *verb)
{
    cluster_open(cluster, 1, true);
    launch_trainer(cluster, 0, verb, true);
    await_running(cluster, 1);
}

static void feeds_rows_to_the_trainer(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    open_fed(&cluster, "rows");
    for (int partition = 0; partition < 3; partition++) {
        struct tfos__feed_writer *writer = open_writer(&cluster, partition, 0, PATIENCE_MS);
        for (int i = 0; i < 10; i++)
            assert_done(append(writer, i * 100, 100, &err));
        assert_done(tfos__feed_writer_finish(writer, &err));
        tfos__feed_writer_close(writer);
    }
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_DRAINED, PATIENCE_MS, &err));
    assert_done(tfos_rendezvous_end_epoch(cluster.rendezvous, NULL, 1, &err));
    tfos_rendezvous_end_feed(cluster.rendezvous);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err));
    await_event(&cluster, "line", "read 3000 rows, sum 1498500");
    assert_int_equal(node_number(&cluster, 0, "rows_written"), 3000);
    // A fed node stays for its feeders until the driver ends.
    assert_true(is_alive(cluster.pids[0]));
    cluster_close(&cluster);
}

static void feeds_what_came_before_the_trainer_asked(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, true);
    // The trainer opens its feed long after the rows are in their channel.
    char script[512];
    snprintf(script, sizeof(script), "read go < \"$GATE\"; exec %s rows", TFOS_TRAINER);
    char gate[64];
    snprintf(gate, sizeof(gate), "/tmp/tfos-gate-%d", (int)getpid());
    assert_int_equal(mkfifo(gate, 0600), 0);
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    json_t *config = make_config(&cluster, 0, argv);
    json_object_set_new(config, "feeding", json_true());
    json_object_set_new(config, "environment", json_pack("{s:s}", "GATE", gate));
    launch(&cluster, 0, config);
    await_running(&cluster, 1);
    struct tfos__feed_writer *writer = open_writer(&cluster, 0, 0, PATIENCE_MS);
    assert_done(append(writer, 0, 100, &err));
    assert_done(tfos__feed_writer_finish(writer, &err));
    tfos__feed_writer_close(writer);
    FILE *file = fopen(gate, "w");
    assert_non_null(file);
    fputs("go\n", file);
    fclose(file);
    unlink(gate);
    tfos_rendezvous_end_feed(cluster.rendezvous);
    await_event(&cluster, "line", "read 100 rows, sum 4950");
    cluster_close(&cluster);
}

/// Appends until that gives another status than OK; returns it.
static enum tfos_status append_to_the_end(struct tfos__feed_writer *writer, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    for (int64_t i = 0; status == TFOS_OK; i++)
        status = append(writer, i * 100, 100, err);
    return status;
}

static void s13_a_trainer_that_returns_ends_its_writers(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    open_fed(&cluster, "some_rows");
    struct tfos__feed_writer *writer = open_writer(&cluster, 0, 0, PATIENCE_MS);
    assert_int_equal(append_to_the_end(writer, &err), TFOS_END);
    tfos__feed_writer_close(writer);
    assert_done(tfos_rendezvous_check(cluster.rendezvous, &err));
    cluster_close(&cluster);
}

static void s13_a_trainer_that_terminates_ends_its_writers(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    open_fed(&cluster, "terminate");
    struct tfos__feed_writer *writer = open_writer(&cluster, 0, 0, PATIENCE_MS);
    assert_int_equal(append_to_the_end(writer, &err), TFOS_END);
    tfos__feed_writer_close(writer);
    await_event(&cluster, "terminated", NULL);
    cluster_close(&cluster);
}

static void s11_a_trainer_that_fails_fails_its_writers(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    open_fed(&cluster, "rows_then_fail");
    struct tfos__feed_writer *writer = open_writer(&cluster, 0, 0, PATIENCE_MS);
    assert_int_equal(append_to_the_end(writer, &err), TFOS_CLOSED);
    if (!strstr(err.message, "worker:0") || !strstr(err.message, "exit status 4"))
        fail_msg("the writer was told: %s", err.message);
    tfos__feed_writer_close(writer);
    assert_true(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err) < 0);
    cluster_close(&cluster);
}

static void s12_a_writer_that_times_out_shows_where_the_trainer_is(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    open_fed(&cluster, "stall");
    await_event(&cluster, "line", "stalling");
    struct tfos__feed_writer *writer = open_writer(&cluster, 0, 0, 1500);
    assert_int_equal(append_to_the_end(writer, &err), TFOS_TIMEOUT);
    if (!strstr(err.message, "line 12 in step"))
        fail_msg("the writer was told: %s", err.message);
    tfos__feed_writer_close(writer);
    cluster_close(&cluster);
}

static void s12_a_trainer_without_a_handler_is_not_killed(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, true);
    const char *const argv[] = {"/bin/sleep", "60", NULL};
    json_t *config = make_config(&cluster, 0, argv);
    json_object_set_new(config, "feeding", json_true());
    launch(&cluster, 0, config);
    int trainer = (int)await_number(&cluster, 0, "running", "trainer_pid");
    await_running(&cluster, 1);
    struct tfos__feed_writer *writer = open_writer(&cluster, 0, 0, 1500);
    assert_int_equal(append_to_the_end(writer, &err), TFOS_TIMEOUT);
    if (!strstr(err.message, "sleeping"))
        fail_msg("the writer was told: %s", err.message);
    tfos__feed_writer_close(writer);
    assert_true(is_alive(trainer));
    cluster_close(&cluster);
}

static void a_node_that_is_not_fed_has_no_queue(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, false);
    launch_trainer(&cluster, 0, "rows", false);
    assert_true(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err) < 0);
    assert_non_null(strstr(err.message, "InputMode.SPARK"));
    cluster_close(&cluster);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(feeds_rows_to_the_trainer),
    cmocka_unit_test(feeds_what_came_before_the_trainer_asked),
    cmocka_unit_test(s13_a_trainer_that_returns_ends_its_writers),
    cmocka_unit_test(s13_a_trainer_that_terminates_ends_its_writers),
    cmocka_unit_test(s11_a_trainer_that_fails_fails_its_writers),
    cmocka_unit_test(s12_a_writer_that_times_out_shows_where_the_trainer_is),
    cmocka_unit_test(s12_a_trainer_without_a_handler_is_not_killed),
    cmocka_unit_test(a_node_that_is_not_fed_has_no_queue),
};

TEST_MAIN(cases)
