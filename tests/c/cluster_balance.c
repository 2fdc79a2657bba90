// SPDX-License-Identifier: Apache-2.0
// S15: which nodes get the rows of a balanced feed, and where the next attempt of a partition
// begins.
#include "cluster/feed_balance.h"
#include "feeder_scene.h"

// ---- the split alone

static int64_t ceiling(int64_t count, int64_t divisor)
{
    return (count + divisor - 1) / divisor;
}

static uint32_t next_random(uint32_t *seed)
{
    return *seed = *seed * 1664525 + 1013904223;
}

// Whatever the parts that rows come in, and wherever they come from, no node needs more steps than
// an even split would.
static void s15_an_epoch_has_the_least_number_of_steps(void **state)
{
    static const struct {
        size_t nodes;
        int64_t step_rows, blocks;
    } cases[] = {{1, 64, 1}, {2, 64, 1},  {2, 60, 5}, {3, 7, 7},
                 {4, 64, 8}, {7, 100, 4}, {16, 32, 1}};

    (void)state;
    for (uint32_t round = 0; round < 200; round++) {
        size_t nodes = cases[round % 7].nodes;
        int64_t step_rows = cases[round % 7].step_rows, total = 0, sum = 0;
        int64_t levels[16] = {0};
        uint32_t seed = round;
        for (int part = 0; part < 300; part++) {
            struct tfos__cluster_share shares[16] = {0};
            size_t own = next_random(&seed) / 7 % nodes;
            int64_t rows = next_random(&seed) / 11 % 3 == 0 ? next_random(&seed) / 13 % 5000 + 1
                                                            : next_random(&seed) / 13 % 50 + 1;
            for (size_t i = 0; i < nodes; i++)
                shares[i].assigned_rows = levels[(own + i) % nodes];
            // The block is the step, or a divisor of it where rows are large.
            int64_t blocks = next_random(&seed) / 17 % 2 ? 1 : cases[round % 7].blocks;
            tfos__cluster_balance_split(shares, nodes, rows, step_rows / blocks);
            for (size_t i = 0; i < nodes; i++)
                levels[(own + i) % nodes] += shares[i].rows;
            total += rows;
            int64_t most = 0;
            for (size_t i = 0; i < nodes; i++)
                most = levels[i] > most ? levels[i] : most;
            assert_int_equal(ceiling(most, step_rows), ceiling(total, (int64_t)nodes * step_rows));
        }
        for (size_t i = 0; i < nodes; i++)
            sum += levels[i];
        assert_int_equal(sum, total);
    }
}

// ---- the driver

// The parts that rows are assigned in, as "worker:0 64, worker:1 36".
static void assign(struct tfos__channel *feeder, int rows, int block_rows, json_t *except,
                   const char *expected)
{
    char text[512] = "";
    say(feeder, json_pack("{s:s, s:i, s:i, s:o*}", "type", "assign", "rows", rows, "block_rows",
                          block_rows, "except", except));
    json_t *answer = expect(feeder, "assigned"), *parts = json_object_get(answer, "parts");
    for (size_t i = 0; i < json_array_size(parts); i++) {
        json_t *part = json_array_get(parts, i);
        size_t size = strlen(text);
        snprintf(text + size, sizeof(text) - size, "%s%s %lld", i ? ", " : "",
                 text_of(part, "node"), (long long)number_of(part, "rows"));
    }
    assert_string_equal(text, expected);
    json_decref(answer);
}

static struct ask ask_of(int feed, int partition, int attempt, int node)
{
    static const char *const hosts[] = {"host-0", "host-1", "host-2"};
    return (struct ask){feed, partition, attempt, hosts[node], .executor_pid = 1000 + node};
}

static void report_written(struct tfos__channel *node, struct ask ask, int rows, int written)
{
    say(node, json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:b}", "type", "partition", "feed",
                        ask.feed, "partition", ask.partition, "attempt", ask.attempt, "rows", rows,
                        "written", written, "complete", 0));
}

struct scene {
    struct place place;
    struct tfos__channel *nodes[3];
    int count;
};

static void open_scene(struct scene *scene, int node_count)
{
    scene->count = node_count;
    scene->place =
        open_place((struct tfos_rendezvous_options){.node_count = node_count, .is_feeding = true});
    start_nodes(&scene->place, scene->nodes, node_count);
}

static void close_scene(struct scene *scene)
{
    close_members(scene->nodes, scene->count);
    tfos_rendezvous_close(scene->place.rendezvous);
}

static void s15_rows_go_to_all_nodes_evenly(void **state)
{
    (void)state;
    struct scene scene;
    struct tfos__channel *feeders[3];
    open_scene(&scene, 3);
    feeders[0] = open_feeder(&scene.place, ask_of(1, 0, 0, 1));
    json_t *target = expect(feeders[0], "target");
    assert_string_equal(text_of(target, "node"), "worker:1");
    assert_int_equal(number_of(target, "trainers"), 3);
    json_decref(target);
    // The own node comes first; a block that is not full gets the next rows.
    assign(feeders[0], 100, 64, NULL, "worker:1 64, worker:0 36");
    assign(feeders[0], 40, 64, NULL, "worker:0 28, worker:2 12");
    feed_to(&scene.place, ask_of(1, 1, 1, 2), "worker:2", &feeders[1]);
    assign(feeders[1], 52, 64, NULL, "worker:2 52");
    assign(feeders[1], 64 * 7, 64, NULL, "worker:2 192, worker:0 128, worker:1 128");
    // A feeder from elsewhere counts on what the others were assigned.
    feed_to(&scene.place, (struct ask){1, 2, 2, "elsewhere", .executor_pid = 1}, "worker:0",
            &feeders[2]);
    assign(feeders[2], 130, 64, NULL, "worker:0 66, worker:1 64");
    close_members(feeders, 3);
    close_scene(&scene);
}

static void s15_each_epoch_is_even_and_a_stream_is_one(void **state)
{
    (void)state;
    struct scene scene;
    struct tfos_error err;
    struct tfos__channel *feeder;
    open_scene(&scene, 2);
    for (int feed = 1; feed <= 2; feed++) {
        feed_to(&scene.place, ask_of(feed, 0, feed, 0), "worker:0", &feeder);
        assign(feeder, 64, 64, NULL, "worker:0 64");
        report_written(scene.nodes[0], ask_of(feed, 0, feed, 0), 64, 64);
        tfos__channel_finish(feeder, 0);
        assert_done(tfos_rendezvous_end_epoch(scene.place.rendezvous, NULL, feed, &err));
    }
    feed_to(&scene.place, ask_of(3, 0, 3, 0), "worker:0", &feeder);
    assign(feeder, 64, 64, NULL, "worker:0 64");
    report_written(scene.nodes[0], ask_of(3, 0, 3, 0), 64, 64);
    tfos__channel_finish(feeder, 0);
    assert_done(tfos_rendezvous_end_batch(scene.place.rendezvous, NULL, 3, &err));
    feed_to(&scene.place, ask_of(4, 0, 4, 0), "worker:0", &feeder);
    assign(feeder, 64, 64, NULL, "worker:1 64");
    tfos__channel_finish(feeder, 0);
    close_scene(&scene);
}

// The task is killed between what it published at one node and at the next: each is asked, the
// prefix reaches to the highest row, and what was never written counts for no node.
static void s21_a_retry_begins_behind_what_all_nodes_have(void **state)
{
    (void)state;
    struct scene scene;
    struct tfos__channel *feeder;
    open_scene(&scene, 3);
    feed_to(&scene.place, ask_of(1, 0, 4, 0), "worker:0", &feeder);
    assign(feeder, 192, 64, NULL, "worker:0 64, worker:1 64, worker:2 64");
    tfos__channel_finish(feeder, 0);
    for (int i = 0; i < 3; i++)
        expect_fence(scene.nodes[i], 0, 5);
    report_written(scene.nodes[1], ask_of(1, 0, 5, 0), 100, 36); // it got as far as there
    report_written(scene.nodes[2], ask_of(1, 0, 5, 0), 0, 0);    // and never opened this one
    struct tfos__channel *retry = open_feeder(&scene.place, ask_of(1, 0, 6, 2));
    expect_fence(scene.nodes[0], 0, 6);
    struct tfos_error err;
    json_t *message;
    assert_int_equal(tfos__channel_receive(retry, &message, NULL, NULL, tfos__deadline(30), &err),
                     TFOS_TIMEOUT);
    report_written(scene.nodes[0], ask_of(1, 0, 5, 0), 64, 64);
    json_t *target = expect(retry, "target");
    assert_int_equal(number_of(target, "first_row"), 100);
    json_decref(target);
    assign(retry, 92, 64, NULL, "worker:2 64, worker:1 28");
    // It dies as well, without a row; the nodes still know what the first had published.
    tfos__channel_finish(retry, 0);
    report_written(scene.nodes[1], ask_of(1, 0, 7, 0), 100, 0);
    report_written(scene.nodes[2], ask_of(1, 0, 7, 0), 100, 0);
    assert_int_equal(feed_to(&scene.place, ask_of(1, 0, 8, 0), "worker:0", &retry), 100);
    assign(retry, 92, 64, NULL, "worker:1 28, worker:2 64");
    tfos__channel_finish(retry, 0);
    close_scene(&scene);
}

static void s21_an_attempt_that_is_superseded_is_assigned_nothing(void **state)
{
    (void)state;
    struct scene scene;
    struct tfos__channel *first, *second;
    open_scene(&scene, 2);
    feed_to(&scene.place, ask_of(1, 0, 4, 0), "worker:0", &first);
    assign(first, 128, 64, NULL, "worker:0 64, worker:1 64");
    second = open_feeder(&scene.place, ask_of(1, 0, 9, 1));
    for (int i = 0; i < 2; i++)
        expect_fence(scene.nodes[i], 0, 9);
    say(first, json_pack("{s:s, s:i, s:i}", "type", "assign", "rows", 64, "block_rows", 64));
    expect_dismissal(first, "failed", "superseded");
    report_written(scene.nodes[0], ask_of(1, 0, 8, 0), 64, 64);
    report_written(scene.nodes[1], ask_of(1, 0, 8, 0), 128, 64);
    json_t *target = expect(second, "target");
    assert_int_equal(number_of(target, "first_row"), 128);
    json_decref(target);
    tfos__channel_finish(second, 0);
    close_scene(&scene);
}

static void s13_nodes_that_want_no_more_are_assigned_nothing(void **state)
{
    (void)state;
    struct scene scene;
    struct tfos__channel *feeder;
    open_scene(&scene, 3);
    feed_to(&scene.place, ask_of(1, 0, 0, 0), "worker:0", &feeder);
    // The driver may be notified later than the feeder.
    assign(feeder, 256, 64, json_pack("[i]", 2), "worker:0 128, worker:1 128");
    send_heartbeat(scene.nodes[1], 0, 0, 1);
    json_decref(expect_event(&scene.place, "terminated"));
    assign(feeder, 64, 64, json_pack("[i]", 2), "worker:0 64");
    assign(feeder, 64, 64, NULL, "worker:2 64");
    send_heartbeat(scene.nodes[0], 0, 0, 1);
    json_decref(expect_event(&scene.place, "terminated"));
    say(feeder, json_pack("{s:s, s:i, s:i}", "type", "assign", "rows", 64, "block_rows", 64));
    expect_dismissal(feeder, "skip", "want no more rows");
    close_scene(&scene);
}

static void s12_a_timeout_names_the_node_that_stands_still(void **state)
{
    (void)state;
    struct scene scene;
    struct tfos__channel *feeder;
    struct tfos_error err;
    open_scene(&scene, 2);
    feed_to(&scene.place, ask_of(1, 0, 0, 0), "worker:0", &feeder);
    assign(feeder, 128, 64, NULL, "worker:0 64, worker:1 64");
    say(feeder, json_pack("{s:s, s:i, s:s}", "type", "timed_out", "executor_id", 1, "message",
                          "nothing taken for 4 s"));
    expect_only(scene.nodes[0], "stop");
    assert_int_equal(tfos_rendezvous_check(scene.place.rendezvous, &err), TFOS_TIMEOUT);
    assert_says(err.message, "worker:1: nothing taken for 4 s");
    tfos__channel_finish(feeder, 0);
    close_scene(&scene);
}

static void wrong_requests_end_the_feeder(void **state)
{
    static const char *const requests[] = {
        "{\"type\": \"assign\"}",
        "{\"type\": \"assign\", \"rows\": 0, \"block_rows\": 1}",
        "{\"type\": \"assign\", \"rows\": 1, \"block_rows\": 0}",
        "{\"type\": \"assign\", \"rows\": 1048577, \"block_rows\": 64}",
        "{\"type\": \"assign\", \"rows\": 64, \"block_rows\": 4294967296}",
        "{\"type\": \"assign\", \"rows\": \"64\", \"block_rows\": 64}"};

    (void)state;
    struct scene scene;
    struct tfos__channel *feeder;
    open_scene(&scene, 2);
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        feed_to(&scene.place, ask_of(1, (int)i, 0, 0), "worker:0", &feeder);
        say(feeder, json_loads(requests[i], 0, NULL));
        assert_null(hear(feeder));
        tfos__channel_finish(feeder, 0);
    }
    // Nor is a feed with results split, or anything before there is a target.
    struct ask results = ask_of(9, 0, 0, 0);
    results.has_results = 1;
    feed_to(&scene.place, results, "worker:0", &feeder);
    say(feeder, json_loads("{\"type\": \"assign\", \"rows\": 64, \"block_rows\": 64}", 0, NULL));
    assert_null(hear(feeder));
    tfos__channel_finish(feeder, 0);
    // What is listed as an exception may be anything.
    feed_to(&scene.place, ask_of(1, 70, 0, 0), "worker:0", &feeder);
    assign(feeder, 128, 64, json_pack("[s, n, i]", "1", -5), "worker:0 64, worker:1 64");
    tfos__channel_finish(feeder, 0);
    close_scene(&scene);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s15_an_epoch_has_the_least_number_of_steps),
    cmocka_unit_test(s15_rows_go_to_all_nodes_evenly),
    cmocka_unit_test(s15_each_epoch_is_even_and_a_stream_is_one),
    cmocka_unit_test(s21_a_retry_begins_behind_what_all_nodes_have),
    cmocka_unit_test(s21_an_attempt_that_is_superseded_is_assigned_nothing),
    cmocka_unit_test(s13_nodes_that_want_no_more_are_assigned_nothing),
    cmocka_unit_test(s12_a_timeout_names_the_node_that_stands_still),
    cmocka_unit_test(wrong_requests_end_the_feeder),
};

TEST_MAIN(cases)
