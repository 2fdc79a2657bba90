// SPDX-License-Identifier: Apache-2.0
/// Feeders on a real cluster: the statuses that they get, and when.
#include "nodes.h"
#include "number_batch.h"

static struct tfos_feeder_options feeder_options(const struct cluster *cluster, int64_t partition,
                                                 int64_t attempt)
{
    return (struct tfos_feeder_options){.address = tfos_rendezvous_address(cluster->rendezvous),
                                        .cluster_id = cluster->id,
                                        .key = KEY,
                                        .feed = 1,
                                        .partition = partition,
                                        .attempt = attempt,
                                        .wait.timeout_ms = PATIENCE_MS};
}

static struct tfos_feeder *open_feeder(const struct tfos_feeder_options *options)
{
    struct tfos_feeder *feeder;
    struct tfos_error err;
    assert_done(tfos_feeder_open(options, &feeder, &err));
    return feeder;
}

static enum tfos_status append(struct tfos_feeder *feeder, int64_t first, int64_t count,
                               struct tfos_error *err)
{
    struct rows rows;
    make_rows(&rows, first, count);
    return tfos_feeder_append(feeder, &rows.schema, &rows.array, err);
}

static enum tfos_status append_to_the_end(struct tfos_feeder *feeder, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    for (int64_t i = 0; status == TFOS_OK; i++)
        status = append(feeder, i * 100, 100, err);
    return status;
}

static void feed_partition(const struct tfos_feeder_options *options, int64_t rows)
{
    struct tfos_error err;
    struct tfos_feeder *feeder = open_feeder(options);
    assert_string_equal(tfos_feeder_node(feeder), "worker:0");
    for (int64_t row = 0; row < rows; row += 100)
        assert_done(append(feeder, row, 100, &err));
    assert_done(tfos_feeder_finish(feeder, &err));
    assert_int_equal(tfos_feeder_row_count(feeder), rows);
    tfos_feeder_close(feeder);
}

static void feeds_a_node_by_memory_and_by_tcp(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, true);
    launch_trainer(&cluster, 0, "rows", true);
    struct tfos_feeder_options options = feeder_options(&cluster, 0, 1);
    feed_partition(&options, 1000);
    options = feeder_options(&cluster, 1, 2);
    options.is_remote = true;
    feed_partition(&options, 1000);
    await_running(&cluster, 1);
    tfos_rendezvous_end_feed(cluster.rendezvous);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err));
    await_event(&cluster, "line", "read 2000 rows, sum 999000");
    cluster_close(&cluster);
}

static void skips_what_was_fed_and_starts_behind_what_was_delivered(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, true);
    launch_trainer(&cluster, 0, "rows", true);
    struct tfos_feeder_options options = feeder_options(&cluster, 0, 1);
    struct tfos_feeder *feeder = open_feeder(&options);
    assert_done(append(feeder, 0, 100, &err));
    tfos_feeder_close(feeder);
    options.attempt = 2;
    feeder = open_feeder(&options);
    assert_int_equal(tfos_feeder_first_row(feeder), 100);
    assert_done(append(feeder, 100, 100, &err));
    assert_done(tfos_feeder_finish(feeder, &err));
    tfos_feeder_close(feeder);
    options.attempt = 3;
    feeder = open_feeder(&options);
    assert_int_equal(tfos_feeder_first_row(feeder), 200);
    assert_done(tfos_feeder_finish(feeder, &err));
    tfos_feeder_close(feeder);
    assert_done(tfos_rendezvous_end_epoch(cluster.rendezvous, NULL, 1, &err));
    options.attempt = 4;
    feeder = open_feeder(&options);
    assert_null(tfos_feeder_node(feeder));
    assert_int_equal(append(feeder, 0, 100, &err), TFOS_END);
    assert_int_equal(tfos_feeder_finish(feeder, &err), TFOS_END);
    struct ArrowSchema schema;
    struct ArrowArray array;
    assert_int_equal(tfos_feeder_next_result(feeder, 0, &schema, &array, &err), TFOS_CLOSED);
    assert_non_null(strstr(err.message, "partition 0"));
    assert_non_null(strstr(err.message, "takes no rows any more: the feed has ended"));
    tfos_feeder_close(feeder);
    await_running(&cluster, 1);
    tfos_rendezvous_end_feed(cluster.rendezvous);
    await_event(&cluster, "line", "read 200 rows, sum 19900");
    cluster_close(&cluster);
}

static void s11_is_told_why_the_trainer_failed(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, true);
    launch_trainer(&cluster, 0, "rows_then_fail", true);
    struct tfos_feeder_options options = feeder_options(&cluster, 0, 1);
    struct tfos_feeder *feeder = open_feeder(&options);
    assert_int_equal(append_to_the_end(feeder, &err), TFOS_CLOSED);
    if (!strstr(err.message, "worker:0") || !strstr(err.message, "exit status 4"))
        fail_msg("the feeder was told: %s", err.message);
    assert_int_equal(tfos_feeder_check(feeder, &err), TFOS_CLOSED);
    tfos_feeder_close(feeder);
    cluster_close(&cluster);
}

static void s12_a_reader_that_stands_still_fails_the_cluster(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 1, true);
    launch_trainer(&cluster, 0, "stall", true);
    await_running(&cluster, 1);
    await_event(&cluster, "line", "stalling");
    struct tfos_feeder_options options = feeder_options(&cluster, 0, 1);
    options.wait.timeout_ms = 1500;
    struct tfos_feeder *feeder = open_feeder(&options);
    assert_int_equal(append_to_the_end(feeder, &err), TFOS_TIMEOUT);
    assert_non_null(strstr(err.message, "line 12 in step"));
    tfos_feeder_close(feeder);
    await_event(&cluster, "failed", "line 12 in step");
    cluster_close(&cluster);
}

static bool always(void *context)
{
    ++*(int *)context;
    return true;
}

static void hears_its_caller_while_it_waits(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tfos_error err;
    struct tfos_feeder *feeder;
    int count = 0;
    cluster_open(&cluster, 1, true); // no node comes
    struct tfos_feeder_options options = feeder_options(&cluster, 0, 1);
    options.wait.is_interrupted = always;
    options.wait.context = &count;
    assert_int_equal(tfos_feeder_open(&options, &feeder, &err), TFOS_CLOSED);
    assert_true(count > 0);
    options = feeder_options(&cluster, 0, 2);
    options.wait.timeout_ms = 200;
    assert_int_equal(tfos_feeder_open(&options, &feeder, &err), TFOS_TIMEOUT);
    assert_non_null(strstr(err.message, "named no node"));
    cluster_close(&cluster);
}

static void lazy_feeds_have_numbers_of_their_own(void **state)
{
    struct tfos_feeder_options one = {.feed = 3, .attempt = 7}, other = one, later = one;

    (void)state;
    tfos_feeder_number_lazily(&one, 0);
    tfos_feeder_number_lazily(&other, UINT32_MAX);
    later.attempt++;
    tfos_feeder_number_lazily(&later, 0);
    assert_int_equal(one.feed, INT64_C(3) << 32);
    assert_int_equal(other.feed, (INT64_C(4) << 32) - 1);
    // The same attempt at another moment does not go back; the next of Spark's is above both.
    assert_true(one.attempt >= INT64_C(7) << 35 && other.attempt >= one.attempt);
    assert_true(later.attempt > other.attempt && later.attempt >= INT64_C(8) << 35);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(lazy_feeds_have_numbers_of_their_own),
    cmocka_unit_test(feeds_a_node_by_memory_and_by_tcp),
    cmocka_unit_test(skips_what_was_fed_and_starts_behind_what_was_delivered),
    cmocka_unit_test(s11_is_told_why_the_trainer_failed),
    cmocka_unit_test(s12_a_reader_that_stands_still_fails_the_cluster),
    cmocka_unit_test(hears_its_caller_while_it_waits),
};

TEST_MAIN(cases)
