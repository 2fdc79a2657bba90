// SPDX-License-Identifier: Apache-2.0
/// Several queues on real nodes: fed, read, described, and the evaluator's.
#include "nodes.h"
#include "number_batch.h"

static void open_queues(struct cluster *cluster, const char *verb, bool has_evaluator)
{
    int count = has_evaluator ? 2 : 1;
    cluster_open_with(cluster, (struct tfos_rendezvous_options){.node_count = count,
                                                                .has_evaluator = has_evaluator,
                                                                .is_feeding = true,
                                                                .queues = "input,validation"});
    for (int id = 0; id < count; id++) {
        const char *const argv[] = {TFOS_TRAINER, verb, NULL};
        json_t *config = make_config(cluster, id, argv);
        json_object_set_new(config, "feeding", json_true());
        json_object_set_new(config, "queues", json_string("input,validation"));
        launch(cluster, id, config);
    }
    await_running(cluster, count);
}

static enum tfos_status feed(const struct cluster *cluster, const char *queue, const char *job,
                             int64_t first, int64_t rows)
{
    struct tfos_feeder_options options = {.address = tfos_rendezvous_address(cluster->rendezvous),
                                          .cluster_id = cluster->id,
                                          .key = KEY,
                                          .queue = queue,
                                          .job = job,
                                          .feed = 1,
                                          .wait.timeout_ms = PATIENCE_MS};
    struct tfos_feeder *feeder;
    struct tfos_error err;
    struct rows batch;
    enum tfos_status status = tfos_feeder_open(&options, &feeder, &err);
    if (status != TFOS_OK) {
        print_message("%s\n", err.message);
        return status;
    }
    make_rows(&batch, first, rows);
    assert_done(tfos_feeder_append(feeder, &batch.schema, &batch.array, &err));
    assert_done(tfos_feeder_finish(feeder, &err));
    tfos_feeder_close(feeder);
    return TFOS_OK;
}

static void end_epoch(const struct cluster *cluster, const char *queue)
{
    struct tfos_error err;
    assert_done(tfos_rendezvous_end_epoch(cluster->rendezvous, queue, 1, &err));
}

static void a_trainer_reads_two_queues_by_turns(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    open_queues(&cluster, "turns", false);
    assert_int_equal(feed(&cluster, "validation", NULL, 7, 3), TFOS_OK);
    assert_int_equal(feed(&cluster, NULL, NULL, 50, 10), TFOS_OK);
    assert_int_equal(feed(&cluster, "output", NULL, 0, 1), TFOS_CLOSED);
    end_epoch(&cluster, NULL);
    end_epoch(&cluster, "validation");
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_DRAINED, PATIENCE_MS, &err));
    assert_int_equal(node_number(&cluster, 0, "rows_read"), 13);
    tfos_rendezvous_end_feed(cluster.rendezvous);
    await_event(&cluster, "line", "input: 10 rows, sum of first ones 50");
    await_event(&cluster, "line", "validation: 3 rows, sum of first ones 7");
    cluster_close(&cluster);
}

static void an_unknown_queue_is_named_to_the_trainer(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    open_queues(&cluster, "unknown_queue", false);
    await_event(&cluster, "line",
                "NOT_FOUND: trainer: there is no queue \"output\": a node has \"input\", "
                "\"validation\"");
    assert_int_equal(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err),
                     TFOS_CLOSED);
    assert_non_null(strstr(err.message, "no queue \"output\""));
    cluster_close(&cluster);
}

static void a_description_reaches_the_trainer(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    open_queues(&cluster, "description", false);
    await_event(&cluster, "line", "input: TIMEOUT");
    assert_done(tfos_rendezvous_describe_feed(cluster.rendezvous, "validation", 1, 0,
                                              "{\"fields\": [1.50]}", &err));
    await_event(&cluster, "line", "validation: {\"fields\": [1.50]}");
    cluster_close(&cluster);
}

/// The second queue is named, not the first that happens to be open.
static void s12_the_queue_that_nobody_reads_is_named(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    open_queues(&cluster, "rows", false);
    assert_int_equal(feed(&cluster, "validation", NULL, 0, 5), TFOS_OK);
    assert_int_equal(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_DRAINED, 300, &err),
                     TFOS_TIMEOUT);
    if (!strstr(err.message, "unread in queue \"validation\""))
        fail_msg("%s", err.message);
    // A trainer that returns wants nothing of any queue.
    tfos_rendezvous_end_feed(cluster.rendezvous);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_DRAINED, PATIENCE_MS, &err));
    cluster_close(&cluster);
}

static void s19_an_evaluator_is_fed(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    open_queues(&cluster, "turns", true);
    assert_int_equal(feed(&cluster, "validation", "evaluator", 1000, 4), TFOS_OK);
    assert_int_equal(feed(&cluster, "input", NULL, 1, 6), TFOS_OK);
    // Each reads by turns, and one of its queues has no rows.
    tfos_rendezvous_end_feed(cluster.rendezvous);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_DRAINED, PATIENCE_MS, &err));
    assert_int_equal(node_number(&cluster, 0, "rows_written"), 4);
    assert_int_equal(node_number(&cluster, 1, "rows_written"), 6);
    await_event(&cluster, "line", "validation: 4 rows, sum of first ones 1000");
    await_event(&cluster, "line", "input: 6 rows, sum of first ones 1");
    cluster_close(&cluster);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(a_trainer_reads_two_queues_by_turns),
    cmocka_unit_test(an_unknown_queue_is_named_to_the_trainer),
    cmocka_unit_test(a_description_reaches_the_trainer),
    cmocka_unit_test(s12_the_queue_that_nobody_reads_is_named),
    cmocka_unit_test(s19_an_evaluator_is_fed),
};

TEST_MAIN(cases)
