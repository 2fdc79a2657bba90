// SPDX-License-Identifier: Apache-2.0
// Which node a feeder gets and from which row, whatever attempts Spark makes.
#include "feeder_scene.h"

static void the_nearest_node_is_fed(void **state)
{
    (void)state;
    struct tfos__channel *nodes[3], *feeders[5];
    struct place place = open_place(
        (struct tfos_rendezvous_options){.node_count = 3, .ps_count = 1, .is_feeding = true});
    start_nodes(&place, nodes, 3);
    feeders[0] = open_feeder(&place, (struct ask){1, 0, 0, "host-2", .executor_pid = 1002});
    json_t *target = expect(feeders[0], "target");
    char socket_name[128];
    snprintf(socket_name, sizeof(socket_name), "tfos-feed-%s-2", place.cluster_id);
    assert_string_equal(text_of(target, "node"), "worker:1");
    assert_string_equal(text_of(target, "socket_name"), socket_name);
    assert_string_equal(text_of(target, "address"), "host-2:30002");
    assert_int_equal(number_of(target, "executor_id"), 2);
    assert_true(json_is_true(json_object_get(target, "local")));
    json_decref(target);
    // On the same host though not of the same executor, then from elsewhere: there the one with
    // fewest feeders.
    feed_to(&place, (struct ask){1, 1, 0, "host-2", .executor_pid = 999}, "worker:1", &feeders[1]);
    feeders[2] = open_feeder(&place, (struct ask){1, 2, 0, "elsewhere", .executor_pid = 1002});
    target = expect(feeders[2], "target");
    assert_string_equal(text_of(target, "node"), "worker:0");
    assert_true(json_is_false(json_object_get(target, "local")));
    json_decref(target);
    feed_to(&place, (struct ask){1, 3, 0, "elsewhere", .executor_pid = 1}, "worker:0", &feeders[3]);
    // Two each: the one that was fed longest ago.
    feed_to(&place, (struct ask){1, 4, 0, "elsewhere", .executor_pid = 1}, "worker:1", &feeders[4]);
    close_members(feeders, 5);
    close_members(nodes, 3);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_feeder_waits_for_the_start(void **state)
{
    (void)state;
    struct tfos__channel *nodes[1];
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 1, .is_feeding = true});
    struct tfos__channel *feeder =
        open_feeder(&place, (struct ask){1, 0, 0, "host-0", .executor_pid = 1000});
    struct tfos_error err;
    json_t *message;
    assert_int_equal(tfos__channel_receive(feeder, &message, NULL, NULL, tfos__deadline(50), &err),
                     TFOS_TIMEOUT);
    start_nodes(&place, nodes, 1);
    expect_only(feeder, "target");
    tfos__channel_finish(feeder, 0);
    close_members(nodes, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void s21_a_retry_goes_on_where_the_first_came_to(void **state)
{
    (void)state;
    struct tfos__channel *nodes[1], *feeder;
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 1, .is_feeding = true});
    start_nodes(&place, nodes, 1);
    struct ask ask = {1, 5, 0, "host-0", .executor_pid = 1000};
    assert_int_equal(feed_to(&place, ask, "worker:0", &feeder), 0);
    report(nodes[0], ask, 40, 0);
    tfos__channel_finish(feeder, 0);
    ask.attempt = 1;
    assert_int_equal(feed_to(&place, ask, "worker:0", &feeder), 40);
    report(nodes[0], ask, 100, 1);
    tfos__channel_finish(feeder, 0);
    ask.attempt = 2;
    // An end may have been that of a broken input, which a Python worker cannot tell from the
    // whole.
    assert_int_equal(feed_to(&place, ask, "worker:0", &feeder), 100);
    report(nodes[0], ask, 120, 1);
    tfos__channel_finish(feeder, 0);
    // With results the whole is fed anew: what the first task got of them is lost.
    ask = (struct ask){2, 5, 0, "host-0", .executor_pid = 1000, .has_results = 1};
    assert_int_equal(feed_to(&place, ask, "worker:0", &feeder), 0);
    report(nodes[0], ask, 100, 1);
    tfos__channel_finish(feeder, 0);
    ask.attempt = 1;
    assert_int_equal(feed_to(&place, ask, "worker:0", &feeder), 0);
    tfos__channel_finish(feeder, 0);
    close_members(nodes, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void an_open_attempt_is_fenced_first(void **state)
{
    (void)state;
    struct tfos_error err;
    json_t *message;
    struct tfos__channel *nodes[2], *first, *second;
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 2, .is_feeding = true});
    start_nodes(&place, nodes, 2);
    struct ask ask = {1, 3, 7, "host-0", .executor_pid = 1000};
    feed_to(&place, ask, "worker:0", &first);
    // The next attempt runs elsewhere while the first is still open.
    struct ask next = {1, 3, 9, "host-1", .executor_pid = 1001};
    second = open_feeder(&place, next);
    expect_fence(nodes[0], 3, 9);
    assert_int_equal(tfos__channel_receive(second, &message, NULL, NULL, tfos__deadline(30), &err),
                     TFOS_TIMEOUT);
    report(nodes[0], (struct ask){1, 3, 9, "", .executor_pid = 0}, 25, 0);
    json_t *target = expect(second, "target");
    assert_string_equal(text_of(target, "node"), "worker:1");
    assert_int_equal(number_of(target, "first_row"), 25);
    json_decref(target);
    // An older attempt that comes late, and a second one of the same number, must not pass for
    // success.
    expect_dismissal(open_feeder(&place, (struct ask){1, 3, 8, "host-0", .executor_pid = 1000}),
                     "failed", "superseded");
    expect_dismissal(open_feeder(&place, next), "failed", "superseded");
    tfos__channel_finish(first, 0);
    tfos__channel_finish(second, 0);
    close_members(nodes, 2);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_dead_task_is_asked_about(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *nodes[1], *feeder;
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 1, .is_feeding = true});
    start_nodes(&place, nodes, 1);
    // It dies before it has opened a channel: its node alone would never hear of it.
    struct ask ask = {1, 0, 4, "host-0", .executor_pid = 1000};
    feed_to(&place, ask, "worker:0", &feeder);
    tfos__channel_finish(feeder, 0);
    expect_fence(nodes[0], 0, 5);
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_DRAINED, 30, &err),
                     TFOS_TIMEOUT);
    report(nodes[0], (struct ask){1, 0, 5, "", .executor_pid = 0}, 0, 0);
    send_heartbeat(nodes[0], 0, 1, 0);
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_DRAINED, PATIENCE_MS, &err));
    close_members(nodes, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void drained_is_when_all_is_taken(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *nodes[2], *feeder;
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 2, .is_feeding = true});
    start_nodes(&place, nodes, 2);
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_DRAINED, 0, &err));
    struct ask ask = {1, 0, 0, "host-0", .executor_pid = 1000};
    feed_to(&place, ask, "worker:0", &feeder);
    send_heartbeat(nodes[0], 0, 1, 0); // of before the first batch: it does not count
    report(nodes[0], ask, 100, 1);
    tfos__channel_finish(feeder, 0);
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_DRAINED, 100, &err),
                     TFOS_TIMEOUT);
    send_heartbeat(nodes[0], 60, 0, 0);
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_DRAINED, 100, &err),
                     TFOS_TIMEOUT);
    assert_says(err.message, "no row was taken for 0.1");
    assert_says(err.message, "worker:0 on host host-0 (executor e7): 100 rows were fed, 60 taken");
    assert_true(tfos_rendezvous_idle_ms(place.rendezvous) >= 100);
    send_heartbeat(nodes[0], 100, 1, 0);
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_DRAINED, PATIENCE_MS, &err));
    // A slow reader that continues renews the time; one that wants no more does not hold it up.
    ask.partition = 1;
    feed_to(&place, ask, "worker:0", &feeder);
    report(nodes[0], ask, 200, 1);
    tfos__channel_finish(feeder, 0);
    send_heartbeat(nodes[0], 150, 0, 1);
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_DRAINED, PATIENCE_MS, &err));
    close_members(nodes, 2);
    tfos_rendezvous_close(place.rendezvous);
}

static void s13_feeders_of_a_node_that_wants_no_more_skip(void **state)
{
    (void)state;
    struct tfos__channel *nodes[3], *feeder;
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 3, .is_feeding = true});
    start_nodes(&place, nodes, 3);
    send_heartbeat(nodes[0], 0, 1, 1);
    json_t *event = expect_event(&place, "terminated");
    assert_string_equal(text_of(event, "node"), "worker:0");
    json_decref(event);
    say(nodes[1], trainer_exit(0));
    json_decref(expect_event(&place, "ended"));
    expect_dismissal(open_feeder(&place, (struct ask){1, 0, 0, "host-0", .executor_pid = 1000}),
                     "skip", "want no more rows");
    expect_dismissal(open_feeder(&place, (struct ask){1, 1, 0, "host-1", .executor_pid = 1001}),
                     "skip", "want no more rows");
    // The third continues, for its own executor and for those without a node.
    feed_to(&place, (struct ask){1, 2, 0, "host-2", .executor_pid = 1002}, "worker:2", &feeder);
    tfos__channel_finish(feeder, 0);
    feed_to(&place, (struct ask){1, 3, 0, "elsewhere", .executor_pid = 1}, "worker:2", &feeder);
    tfos__channel_finish(feeder, 0);
    say(nodes[2], trainer_exit(0));
    json_decref(expect_event(&place, "ended"));
    expect_dismissal(open_feeder(&place, (struct ask){1, 4, 0, "elsewhere", .executor_pid = 1}),
                     "skip", "want no more rows");
    close_members(nodes, 3);
    tfos_rendezvous_close(place.rendezvous);
}

static void an_executor_with_two_nodes_uses_the_living(void **state)
{
    (void)state;
    struct tfos__channel *nodes[2], *feeder;
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 2, .is_feeding = true});
    for (int id = 0; id < 2; id++) {
        nodes[id] = connect_to(&place);
        json_t *hello = node_hello(id, "same", 1);
        json_object_set_new(hello, "executor_pid", json_integer(77));
        say(nodes[id], hello);
        expect_only(nodes[id], "role");
    }
    for (int id = 0; id < 2; id++)
        acknowledge(nodes[id]);
    for (int id = 0; id < 2; id++)
        expect_only(nodes[id], "start");
    say(nodes[0], trainer_exit(0));
    json_decref(expect_event(&place, "ended"));
    for (int partition = 0; partition < 2; partition++) {
        feed_to(&place, (struct ask){1, partition, 0, "same", .executor_pid = 77}, "worker:1",
                &feeder);
        tfos__channel_finish(feeder, 0);
    }
    close_members(nodes, 2);
    tfos_rendezvous_close(place.rendezvous);
}

static void epochs_and_the_feed_end(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *nodes[1];
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 1, .is_feeding = true});
    start_nodes(&place, nodes, 1);
    assert_done(tfos_rendezvous_end_epoch(place.rendezvous, NULL, 3, &err));
    json_t *message = expect(nodes[0], "end_epoch");
    assert_int_equal(number_of(message, "feed"), 3);
    json_decref(message);
    expect_dismissal(open_feeder(&place, (struct ask){3, 0, 0, "host-0", .executor_pid = 1000}),
                     "skip", "the feed has ended");
    assert_done(tfos_rendezvous_end_batch(place.rendezvous, NULL, 4, &err));
    message = expect(nodes[0], "end_batch");
    assert_int_equal(number_of(message, "feed"), 4);
    json_decref(message);
    expect_dismissal(open_feeder(&place, (struct ask){4, 0, 0, "host-0", .executor_pid = 1000}),
                     "skip", "the feed has ended");
    tfos_rendezvous_end_feed(place.rendezvous);
    expect_only(nodes[0], "end_feed");
    expect_dismissal(open_feeder(&place, (struct ask){5, 0, 0, "host-0", .executor_pid = 1000}),
                     "skip", "the feed has ended");
    close_members(nodes, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_failure_reaches_all_feeders(void **state)
{
    (void)state;
    struct tfos__channel *nodes[2], *feeding, *waiting;
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 2, .is_feeding = true});
    start_nodes(&place, nodes, 2);
    feed_to(&place, (struct ask){1, 0, 0, "host-0", .executor_pid = 1000}, "worker:0", &feeding);
    waiting = open_feeder(&place, (struct ask){1, 0, 1, "host-0", .executor_pid = 1000});
    expect_fence(nodes[0], 0, 1);
    tfos__channel_finish(nodes[1], 0);
    expect_dismissal(feeding, "failed", "worker:1");
    expect_dismissal(waiting, "failed", "worker:1");
    expect_dismissal(open_feeder(&place, (struct ask){1, 1, 0, "host-0", .executor_pid = 1000}),
                     "failed", "worker:1");
    tfos__channel_finish(nodes[0], 0);
    tfos_rendezvous_close(place.rendezvous);
}

// Results went to a task that is gone: whoever wants them again gets the whole partition fed anew.
static void results_are_computed_anew(void **state)
{
    (void)state;
    struct tfos__channel *nodes[1], *feeder;
    struct tfos_error err;
    struct ask first = {9, 0, 0, "host-0", .executor_pid = 1000, .has_results = 1},
               second = {9, 0, 1, "host-0", .executor_pid = 1000, .has_results = 1};
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 1, .is_feeding = true});
    start_nodes(&place, nodes, 1);
    assert_int_equal(feed_to(&place, first, "worker:0", &feeder), 0);
    report(nodes[0], first, 10, 1);
    tfos__channel_finish(feeder, 0);
    assert_int_equal(feed_to(&place, second, "worker:0", &feeder), 0);
    char *json;
    assert_done(tfos_rendezvous_get_status(place.rendezvous, &json, &err));
    json_t *status = json_loads(json, 0, NULL);
    assert_int_equal(number_of(status, "feed"), 0);
    json_decref(status);
    tfos_free(json);
    tfos__channel_finish(feeder, 0);
    close_members(nodes, 1);
    tfos_rendezvous_close(place.rendezvous);
}

// S12: a trainer that takes nothing fails the cluster, lest Spark run the feeding task again.
static void a_feeder_that_times_out_fails_the_cluster(void **state)
{
    (void)state;
    struct tfos__channel *nodes[1], *feeder;
    struct tfos_error err;
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 1, .is_feeding = true});
    start_nodes(&place, nodes, 1);
    feed_to(&place, (struct ask){1, 0, 0, "host-0", .executor_pid = 1000}, "worker:0", &feeder);
    say(feeder, json_pack("{s:s, s:s}", "type", "timed_out", "message", "nothing taken for 4 s"));
    json_decref(expect(nodes[0], "stop"));
    assert_int_equal(tfos_rendezvous_check(place.rendezvous, &err), TFOS_TIMEOUT);
    assert_says(err.message, "worker:0: nothing taken for 4 s");
    tfos__channel_finish(feeder, 0);
    // The end is waited for in a failed cluster too.
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_ENDED, 0, &err),
                     TFOS_TIMEOUT);
    close_members(nodes, 1);
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    tfos_rendezvous_close(place.rendezvous);
}

static void a_cluster_that_reads_itself_is_not_fed(void **state)
{
    (void)state;
    struct tfos__channel *nodes[1];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    start_nodes(&place, nodes, 1);
    expect_dismissal(open_feeder(&place, (struct ask){1, 0, 0, "host-0", .executor_pid = 1000}),
                     "failed", "InputMode.SPARK");
    close_members(nodes, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(the_nearest_node_is_fed),
    cmocka_unit_test(a_feeder_waits_for_the_start),
    cmocka_unit_test(s21_a_retry_goes_on_where_the_first_came_to),
    cmocka_unit_test(an_open_attempt_is_fenced_first),
    cmocka_unit_test(a_dead_task_is_asked_about),
    cmocka_unit_test(drained_is_when_all_is_taken),
    cmocka_unit_test(s13_feeders_of_a_node_that_wants_no_more_skip),
    cmocka_unit_test(an_executor_with_two_nodes_uses_the_living),
    cmocka_unit_test(epochs_and_the_feed_end),
    cmocka_unit_test(a_failure_reaches_all_feeders),
    cmocka_unit_test(results_are_computed_anew),
    cmocka_unit_test(a_feeder_that_times_out_fails_the_cluster),
    cmocka_unit_test(a_cluster_that_reads_itself_is_not_fed),
};

TEST_MAIN(cases)
