// SPDX-License-Identifier: Apache-2.0
// What the driver keeps apart by queue, and by whom a feed is for.
#include "feeder_scene.h"

static void beat(struct tfos__channel *node, const char *queue, int is_drained, int is_terminated)
{
    say(node, json_pack("{s:s, s:i, s:i, s:{s:{s:b, s:b}}}", "type", "heartbeat", "rows_written", 9,
                        "rows_read", 0, "queues", queue, "drained", is_drained, "terminated",
                        is_terminated));
}

/// The next message of this type for this queue; others come when the driver asks how far a task
/// that has gone came.
static void await_for(struct tfos__channel *node, const char *type, const char *queue)
{
    for (bool is_found = false; !is_found;) {
        json_t *message = hear(node);
        assert_non_null(message);
        is_found =
            !strcmp(text_of(message, "type"), type) && !strcmp(text_of(message, "queue"), queue);
        json_decref(message);
    }
}

static struct place open_two_queues(int node_count, bool has_evaluator)
{
    return open_place((struct tfos_rendezvous_options){.node_count = node_count,
                                                       .has_evaluator = has_evaluator,
                                                       .is_feeding = true,
                                                       .queues = "input,validation"});
}

static void feeds_are_numbered_within_their_queue(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *nodes[1], *feeder;
    struct place place = open_two_queues(1, false);
    start_nodes(&place, nodes, 1);
    struct ask input = {3, 0, 0, "host-0", .executor_pid = 1000, .queue = "input"},
               validation = {3, 0, 0, "host-0", .executor_pid = 1000, .queue = "validation"};
    assert_int_equal(feed_to(&place, input, "worker:0", &feeder), 0);
    report(nodes[0], input, 40, 0);
    tfos__channel_finish(feeder, 0);
    // The same numbers in the other queue are another partition.
    assert_int_equal(feed_to(&place, validation, "worker:0", &feeder), 0);
    report(nodes[0], validation, 7, 0);
    tfos__channel_finish(feeder, 0);
    input.attempt = validation.attempt = 1;
    assert_int_equal(feed_to(&place, validation, "worker:0", &feeder), 7);
    report(nodes[0], validation, 10, 1);
    tfos__channel_finish(feeder, 0);
    assert_int_equal(feed_to(&place, input, "worker:0", &feeder), 40);
    tfos__channel_finish(feeder, 0);
    await_for(nodes[0], "fence", "input");
    assert_done(tfos_rendezvous_end_epoch(place.rendezvous, "validation", 3, &err));
    await_for(nodes[0], "end_epoch", "validation");
    validation.attempt = 2;
    expect_dismissal(open_feeder(&place, validation), "skip", "the feed has ended");
    input.partition = 1;
    feed_to(&place, input, "worker:0", &feeder);
    tfos__channel_finish(feeder, 0);
    close_members(nodes, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void an_unknown_queue_is_refused_by_name(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *nodes[1];
    struct tfos_rendezvous *rendezvous = NULL;
    struct place place = open_two_queues(1, false);
    start_nodes(&place, nodes, 1);
    expect_dismissal(open_feeder(&place, (struct ask){1, 0, 0, "host-0", .executor_pid = 1000,
                                                      .queue = "output"}),
                     "failed", "no queue \"output\": a node has \"input\", \"validation\"");
    assert_int_equal(tfos_rendezvous_end_epoch(place.rendezvous, "output", 1, &err),
                     TFOS_NOT_FOUND);
    assert_says(err.message, "\"output\"");
    assert_int_equal(tfos_rendezvous_describe_feed(place.rendezvous, "output", 1, 0, "{}", &err),
                     TFOS_NOT_FOUND);
    assert_says(err.message, "\"validation\"");
    struct tfos_rendezvous_options options = {
        .cluster_id = "c", .key = KEY, .node_count = 1, .queues = "input,,b"};
    assert_int_equal(tfos_rendezvous_open(&options, &rendezvous, &err), TFOS_INVALID);
    close_members(nodes, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void drained_is_when_every_queue_is(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *nodes[1], *feeder;
    struct place place = open_two_queues(1, false);
    start_nodes(&place, nodes, 1);
    struct ask ask = {1, 0, 0, "host-0", .executor_pid = 1000, .queue = "validation"};
    feed_to(&place, ask, "worker:0", &feeder);
    report(nodes[0], ask, 9, 1);
    tfos__channel_finish(feeder, 0);
    beat(nodes[0], "input", 1, 0);
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_DRAINED, 100, &err),
                     TFOS_TIMEOUT);
    assert_says(err.message, "unread in queue \"validation\"");
    beat(nodes[0], "validation", 1, 0);
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_DRAINED, PATIENCE_MS, &err));
    close_members(nodes, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_queue_that_is_terminated_is_not_fed(void **state)
{
    (void)state;
    struct tfos__channel *nodes[1], *feeder;
    struct place place = open_two_queues(1, false);
    start_nodes(&place, nodes, 1);
    beat(nodes[0], "validation", 1, 1);
    json_t *event = expect_event(&place, "terminated");
    assert_string_equal(text_of(event, "queue"), "validation");
    json_decref(event);
    expect_dismissal(open_feeder(&place, (struct ask){1, 0, 0, "host-0", .executor_pid = 1000,
                                                      .queue = "validation"}),
                     "skip", "want no more rows");
    feed_to(&place, (struct ask){1, 0, 0, "host-0", .executor_pid = 1000, .queue = "input"},
            "worker:0", &feeder);
    tfos__channel_finish(feeder, 0);
    close_members(nodes, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void s19_an_evaluator_is_fed_what_is_for_it(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *nodes[2], *feeders[2];
    struct place place = open_two_queues(2, true); // evaluator:0 on host-0, worker:0 on host-1
    start_nodes(&place, nodes, 2);
    struct ask ask = {
        1, 0, 0, "host-1", .executor_pid = 1001, .queue = "validation", .job = "evaluator"};
    feed_to(&place, ask, "evaluator:0", &feeders[0]); // though a worker is nearer
    feed_to(&place, (struct ask){1, 0, 0, "host-0", .executor_pid = 1000, .job = "trainers"},
            "worker:0", &feeders[1]);
    close_members(feeders, 2);
    expect_only(nodes[0], "fence");
    expect_only(nodes[1], "fence");
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_DRAINED, 0, &err),
                     TFOS_TIMEOUT);
    assert_says(err.message, "evaluator:0");
    say(nodes[0], trainer_exit(0));
    json_decref(expect_event(&place, "ended"));
    ask.partition = 1;
    expect_dismissal(open_feeder(&place, ask), "skip", "the evaluator");
    close_members(nodes, 2);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_cluster_without_an_evaluator_says_so(void **state)
{
    (void)state;
    struct tfos__channel *nodes[1], *feeder;
    struct place place = open_two_queues(1, false);
    start_nodes(&place, nodes, 1);
    expect_dismissal(open_feeder(&place, (struct ask){1, 0, 0, "host-0", .executor_pid = 1000,
                                                      .job = "evaluator"}),
                     "failed", "no evaluator");
    feeder =
        open_feeder(&place, (struct ask){1, 1, 0, "host-0", .executor_pid = 1000, .job = "ps"});
    assert_null(hear(feeder));
    tfos__channel_finish(feeder, 0);
    close_members(nodes, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void expect_description(struct tfos__channel *node, const char *queue, const char *schema)
{
    json_t *message = expect(node, "describe");
    assert_string_equal(text_of(message, "queue"), queue);
    assert_string_equal(text_of(message, "schema"), schema);
    json_decref(message);
}

static void a_description_reaches_all_that_are_fed(void **state)
{
    (void)state;
    struct tfos_error err;
    struct place place = open_place((struct tfos_rendezvous_options){
        .node_count = 3, .ps_count = 1, .is_feeding = true, .queues = "input,validation"});
    // Before they come, unchanged and only the newest; and while they are there.
    assert_done(tfos_rendezvous_describe_feed(place.rendezvous, "validation", 1, 0, "[1]", &err));
    assert_done(
        tfos_rendezvous_describe_feed(place.rendezvous, "validation", 3, 7, "{ \"b\":2 }", &err));
    struct tfos__channel *nodes[3];
    for (int id = 0; id < 3; id++) {
        nodes[id] = join_as(&place, id, "host");
        if (id > 0)
            expect_description(nodes[id], "validation", "{ \"b\":2 }");
    }
    for (int id = 0; id < 3; id++)
        acknowledge(nodes[id]);
    for (int id = 0; id < 3; id++)
        expect_only(nodes[id], "start");
    assert_done(tfos_rendezvous_describe_feed(place.rendezvous, NULL, 2, 0, "\"any\"", &err));
    assert_done(tfos_rendezvous_end_epoch(place.rendezvous, NULL, 1, &err));
    for (int id = 1; id < 3; id++)
        expect_description(nodes[id], "input", "\"any\"");
    expect_only(nodes[0], "end_epoch"); // nothing was said to the parameter server
    close_members(nodes, 3);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_description_is_json_of_a_limited_size(void **state)
{
    (void)state;
    enum { LIMIT = 1 << 20 };
    struct tfos_error err;
    struct place place = open_two_queues(1, false);
    char *large = malloc(LIMIT + 2);
    memset(large, '\n', LIMIT); // doubles as it is written down
    large[LIMIT - 1] = '7';
    large[LIMIT] = '\0';
    struct tfos__channel *node = join_as(&place, 0, "host");
    acknowledge(node);
    expect_only(node, "start");
    assert_done(tfos_rendezvous_describe_feed(place.rendezvous, NULL, 1, 0, large, &err));
    expect_description(node, "input", large);
    large[LIMIT] = '7';
    large[LIMIT + 1] = '\0';
    assert_int_equal(tfos_rendezvous_describe_feed(place.rendezvous, NULL, 1, 0, large, &err),
                     TFOS_INVALID);
    assert_says(err.message, "1048576 bytes");
    assert_int_equal(tfos_rendezvous_describe_feed(place.rendezvous, NULL, 1, 0, "{", &err),
                     TFOS_INVALID);
    assert_says(err.message, "no JSON");
    free(large);
    tfos__channel_finish(node, 0);
    tfos_rendezvous_close(place.rendezvous);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(feeds_are_numbered_within_their_queue),
    cmocka_unit_test(an_unknown_queue_is_refused_by_name),
    cmocka_unit_test(drained_is_when_every_queue_is),
    cmocka_unit_test(a_queue_that_is_terminated_is_not_fed),
    cmocka_unit_test(s19_an_evaluator_is_fed_what_is_for_it),
    cmocka_unit_test(a_cluster_without_an_evaluator_says_so),
    cmocka_unit_test(a_description_reaches_all_that_are_fed),
    cmocka_unit_test(a_description_is_json_of_a_limited_size),
};

TEST_MAIN(cases)
