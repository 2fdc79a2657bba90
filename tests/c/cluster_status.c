// SPDX-License-Identifier: Apache-2.0
// What the driver tells of its cluster: the status document, and events.
#include <poll.h>
#include <stdlib.h>

#include "rendezvous_scene.h"

static json_t *find_cluster(const json_t *documents, const char *cluster_id)
{
    size_t i;
    json_t *document;
    json_array_foreach(documents, i, document) if (!strcmp(text_of(document, "cluster_id"),
                                                           cluster_id)) return document;
    return NULL;
}

static void the_status_shows_nodes_and_figures(void **state)
{
    (void)state;
    char *json;
    struct tfos_error err;
    struct tfos__channel *members[2];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 2});
    start_nodes(&place, members, 2);
    say(members[0], json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:{s:i}}", "type", "heartbeat",
                              "rows_written", 11, "rows_read", 10, "bytes_written", 99, "ring_used",
                              5, "ring_size", 50, "writers", 2, "report", "step", 12));
    say(members[0], json_pack("{s:s, s:s}", "type", "tensorboard", "url", "http://h:6006"));
    json_t *event = expect_event(&place, "tensorboard");
    assert_string_equal(text_of(event, "url"), "http://h:6006");
    json_decref(event);
    assert_done(tfos_rendezvous_get_status(place.rendezvous, &json, &err));
    json_t *status = json_loads(json, 0, NULL);
    tfos_free(json);
    assert_string_equal(text_of(status, "type"), "status");
    assert_string_equal(text_of(status, "state"), "running");
    assert_string_equal(text_of(status, "address"), tfos_rendezvous_address(place.rendezvous));
    assert_int_equal(number_of(status, "pid"), getpid());
    assert_int_equal(number_of(status, "registered"), 2);
    json_t *node = json_array_get(json_object_get(status, "nodes"), 0);
    assert_string_equal(text_of(node, "state"), "running");
    assert_string_equal(text_of(node, "host"), "host-0");
    assert_int_equal(number_of(node, "rows_written"), 11);
    assert_int_equal(number_of(node, "rows_read"), 10);
    assert_int_equal(number_of(node, "ring_used"), 5);
    assert_int_equal(number_of(node, "trainer_pid"), 7000);
    assert_int_equal(number_of(json_object_get(node, "report"), "step"), 12);
    assert_string_equal(text_of(node, "tensorboard"), "http://h:6006");
    assert_true(json_is_null(json_object_get(node, "exit")));
    json_decref(status);
    close_members(members, 2);
    tfos_rendezvous_close(place.rendezvous);
}

/// The status, once `key` in it, found at `progress` or at the first node, is no longer null;
/// meanwhile the node's heart beats.
static json_t *await_figure(const struct place *place, struct tfos__channel *node, const char *key)
{
    for (int i = 0; i < 400; i++) {
        char *json;
        struct tfos_error err;
        say(node, json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:{s:{s:i, s:b}}}", "type",
                            "heartbeat", "rows_written", 100 + 10 * i, "rows_read", 10 * i,
                            "bytes_written", 2000 + 1000 * i, "ring_used", 2000, "ring_size", 8000,
                            "writers", 1, "reader_wait_ms", i * 1000, "queues", "input",
                            "rows_read", 10 * i, "drained", 0));
        assert_done(tfos_rendezvous_get_status(place->rendezvous, &json, &err));
        json_t *status = json_loads(json, 0, NULL);
        tfos_free(json);
        const json_t *first = json_array_get(json_object_get(status, "nodes"), 0);
        if (json_is_number(json_object_get(json_object_get(status, "progress"), key)) &&
            json_is_number(json_object_get(first, key)))
            return status;
        json_decref(status);
        poll(NULL, 0, 50);
    }
    fail_msg("\"%s\" did not come", key);
    return NULL;
}

static double real_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void the_status_tells_how_far_a_training_is(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *node;
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 1, .is_feeding = true});
    start_nodes(&place, &node, 1);
    struct tfos_feed_plan plan = {.epoch = 1, .epoch_count = 2, .partition_count = 4};
    assert_done(tfos_rendezvous_plan_feed(place.rendezvous, 1, &plan, &err));
    struct tfos__channel *feeder = connect_to(&place);
    say(feeder, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:i}", "type", "hello", "kind",
                          "feeder", "version", 1, "feed", 1, "partition", 0, "attempt", 0, "host",
                          "host-0", "executor_pid", 1000));
    expect_only(feeder, "target");
    for (int twice = 0; twice < 2; twice++) // said again, it is still one partition
        say(node, json_pack("{s:s, s:i, s:i, s:i, s:i, s:b}", "type", "partition", "feed", 1,
                            "partition", 0, "attempt", 0, "rows", 100000, "complete", 1));
    json_t *status = await_figure(&place, node, "rows_per_second");
    const json_t *progress = json_object_get(status, "progress");
    const json_t *first = json_array_get(json_object_get(status, "nodes"), 0);
    assert_true(json_is_true(json_object_get(progress, "feeding")));
    assert_int_equal(number_of(progress, "epoch"), 1);
    assert_int_equal(number_of(progress, "epochs"), 2);
    assert_int_equal(number_of(json_object_get(progress, "partitions"), "done"), 1);
    assert_int_equal(number_of(json_object_get(progress, "partitions"), "total"), 4);
    assert_int_equal(number_of(progress, "rows"), number_of(first, "rows_read"));
    assert_true(real_of(progress, "rows_per_second") > 0);
    assert_true(real_of(progress, "bytes_per_second") > real_of(progress, "rows_per_second"));
    assert_true(real_of(progress, "ring_fill") == 0.25);
    assert_true(real_of(progress, "fraction") < 0.125);
    assert_string_equal(text_of(progress, "slower"), "spark");
    assert_string_equal(text_of(first, "slower"), "spark");
    json_decref(status);
    tfos__channel_finish(feeder, 0);
    tfos__channel_finish(node, 0);
    tfos_rendezvous_close(place.rendezvous);
}

static void plans_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct tfos_error err;
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    static const struct tfos_feed_plan plans[] = {
        {0, 1, 1, NULL}, {2, 1, 1, NULL}, {1, 1, -1, NULL}};
    for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
        assert_int_equal(tfos_rendezvous_plan_feed(place.rendezvous, 3, &plans[i], &err),
                         TFOS_INVALID);
        assert_says(err.message, "the plan of feed 3: epoch ");
    }
    tfos_rendezvous_close(place.rendezvous);
}

static double ms_of(const json_t *node, const char *key)
{
    const json_t *number = json_object_get(node, key);
    assert_true(json_is_number(number));
    return json_number_value(number);
}

static void say_steps(struct tfos__channel *node, int second, int wait_us, int data_us)
{
    int pushes = second * (wait_us > 0 ? 5 : 2); // who waits is ahead
    say(node, json_pack("{s:s, s:b, s:{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}}", "type",
                        "heartbeat", "figures", 1, "steps", "at_us", 1 + second * 1000000, "count",
                        10 * second, "data_us", second * data_us, "exchange_us", second * 100000,
                        "wait_us", second * wait_us, "pushed_steps", 2 * pushes, "push_count",
                        pushes, "stale_steps", pushes * 3, "staleness", 64));
}

static void steps_are_split_and_a_straggler_is_named(void **state)
{
    (void)state;
    char *json;
    struct tfos_error err;
    struct tfos__channel *nodes[3];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 3});
    start_nodes(&place, nodes, 3);
    for (int second = 0; second < 3; second++)
        for (int i = 0; i < 3; i++)
            say_steps(nodes[i], second, i == 1 ? 0 : 500000, i == 1 ? 450000 : 0);
    json_decref(expect(nodes[2], "figures")); // though nothing is fed
    assert_done(tfos_rendezvous_get_status(place.rendezvous, &json, &err));
    json_t *status = json_loads(json, 0, NULL);
    tfos_free(json);
    const json_t *all = json_object_get(status, "nodes");
    const json_t *first = json_array_get(all, 0), *late = json_array_get(all, 1);
    assert_true(ms_of(first, "step_ms") == 100 && ms_of(first, "step_wait_ms") == 50);
    assert_true(ms_of(first, "step_exchange_ms") == 10 && ms_of(first, "step_data_ms") == 0);
    assert_true(ms_of(first, "step_compute_ms") == 40 && ms_of(late, "step_data_ms") == 45);
    assert_int_equal(number_of(late, "steps_pushed"), 8);
    assert_int_equal(number_of(late, "steps_behind"), 12);
    assert_int_equal(number_of(first, "steps_behind"), 0);
    assert_true(ms_of(late, "staleness") == 3);
    assert_int_equal(number_of(late, "staleness_limit"), 64);
    const json_t *straggler = json_object_get(json_object_get(status, "progress"), "straggler");
    assert_string_equal(text_of(straggler, "node"), "worker:1");
    assert_string_equal(text_of(straggler, "cause"), "data");
    assert_int_equal(number_of(straggler, "executor_id"), 1);
    assert_true(ms_of(straggler, "wait") == 0.5);
    json_decref(status);
    close_members(nodes, 3);
    tfos_rendezvous_close(place.rendezvous);
}

static void figures_come_to_who_asks_for_them(void **state)
{
    (void)state;
    struct tfos__channel *nodes[2];
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 2, .is_feeding = true});
    start_nodes(&place, nodes, 2);
    // Nothing is fed yet: the answer to this one does not come, or the next would have none.
    say(nodes[1], json_pack("{s:s, s:b}", "type", "heartbeat", "figures", 1));
    say(nodes[1], json_pack("{s:s, s:s}", "type", "warning", "message", "heard"));
    json_decref(expect_event(&place, "warning"));
    struct tfos__channel *feeder = connect_to(&place);
    say(feeder, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:i}", "type", "hello", "kind",
                          "feeder", "version", 1, "feed", 1, "partition", 0, "attempt", 0, "host",
                          "host-0", "executor_pid", 1000));
    expect_only(feeder, "target");
    say(nodes[1],
        json_pack("{s:s, s:b, s:{s:i}}", "type", "heartbeat", "figures", 1, "report", "step", 3));
    json_t *figures = expect(nodes[1], "figures");
    const json_t *progress = json_object_get(figures, "progress");
    assert_true(json_is_true(json_object_get(progress, "feeding")));
    assert_int_equal(number_of(json_object_get(progress, "report"), "step"), 3);
    assert_true(json_is_integer(json_object_get(figures, "uptime_s")));
    assert_int_equal(json_object_size(json_object_get(figures, "nodes")), 2);
    const json_t *first = json_object_get(json_object_get(figures, "nodes"), "worker:0");
    assert_true(json_is_null(json_object_get(first, "rows_per_second")));
    json_decref(figures);
    tfos__channel_finish(feeder, 0);
    close_members(nodes, 2);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_query_finds_every_driver(void **state)
{
    (void)state;
    char *json;
    struct tfos_error err;
    struct place places[2] = {open_place((struct tfos_rendezvous_options){.node_count = 1}),
                              open_place((struct tfos_rendezvous_options){.node_count = 2})};
    assert_done(tfos_status_query(PATIENCE_MS, &json, &err));
    json_t *documents = json_loads(json, 0, NULL);
    tfos_free(json);
    for (int i = 0; i < 2; i++) {
        json_t *document = find_cluster(documents, places[i].cluster_id);
        assert_non_null(document);
        assert_string_equal(text_of(document, "state"), "waiting");
        assert_int_equal(number_of(document, "node_count"), i + 1);
    }
    json_decref(documents);
    for (int i = 0; i < 2; i++)
        tfos_rendezvous_close(places[i].rendezvous);
    assert_done(tfos_status_query(PATIENCE_MS, &json, &err));
    documents = json_loads(json, 0, NULL);
    tfos_free(json);
    assert_null(find_cluster(documents, places[0].cluster_id));
    json_decref(documents);
}

/// Asks `cluster` to stop and gives the answer.
static json_t *request_stop(const char *cluster)
{
    char *json;
    struct tfos_error err;
    assert_done(tfos_cluster_request_stop(cluster, PATIENCE_MS, &json, &err));
    json_t *answer = json_loads(json, 0, NULL);
    tfos_free(json);
    return answer;
}

static void a_fed_cluster_is_asked_to_stop(void **state)
{
    (void)state;
    char *json;
    struct tfos_error err;
    struct tfos__channel *members[1];
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 1, .is_feeding = true});
    start_nodes(&place, members, 1);
    json_t *answer = request_stop(place.cluster_id);
    assert_string_equal(text_of(answer, "cluster_id"), place.cluster_id);
    assert_true(json_is_true(json_object_get(answer, "feeding")));
    json_decref(answer);
    json_t *event = expect_event(&place, "stop_requested");
    assert_int_equal(number_of(event, "pid"), getpid());
    json_decref(event);
    json_decref(request_stop(tfos_rendezvous_address(place.rendezvous)));
    assert_done(tfos_rendezvous_get_status(place.rendezvous, &json, &err));
    json_t *status = json_loads(json, 0, NULL);
    tfos_free(json);
    assert_true(json_is_true(json_object_get(status, "stop_requested")));
    assert_string_equal(text_of(status, "state"), "running");
    json_decref(status);
    tfos_rendezvous_terminate_feed(place.rendezvous);
    expect_only(members[0], "terminate");
    close_members(members, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_cluster_that_is_not_fed_is_stopped(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *members[1];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    start_nodes(&place, members, 1);
    json_decref(request_stop(place.cluster_id));
    json_t *stop = expect(members[0], "stop");
    assert_int_equal(number_of(stop, "grace_ms"), 30000);
    json_decref(stop);
    close_members(members, 1);
    tfos_rendezvous_close(place.rendezvous);

    place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    json_decref(request_stop(place.cluster_id));
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_RUNNING, PATIENCE_MS, &err),
                     TFOS_CLOSED);
    assert_non_null(strstr(err.message, "asked to stop before all its nodes had registered"));
    tfos_rendezvous_close(place.rendezvous);
}

static void who_asks_another_cluster_to_stop_gets_the_names(void **state)
{
    (void)state;
    char *json, prefix[32];
    struct tfos_error err;
    struct place places[2] = {open_place((struct tfos_rendezvous_options){.node_count = 1}),
                              open_place((struct tfos_rendezvous_options){.node_count = 1})};
    assert_int_equal(tfos_cluster_request_stop("no such", PATIENCE_MS, &json, &err),
                     TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, places[0].cluster_id));
    assert_non_null(strstr(err.message, places[1].cluster_id));
    snprintf(prefix, sizeof(prefix), "test-%d", (int)getpid());
    assert_int_equal(tfos_cluster_request_stop(prefix, PATIENCE_MS, &json, &err), TFOS_INVALID);
    assert_int_equal(tfos_cluster_request_stop("", PATIENCE_MS, &json, &err), TFOS_NOT_FOUND);
    for (int i = 0; i < 2; i++)
        tfos_rendezvous_close(places[i].rendezvous);
}

static void lines_and_warnings_become_events(void **state)
{
    (void)state;
    char *json;
    struct tfos_error err;
    struct tfos__channel *members[1];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    start_nodes(&place, members, 1);
    json_t *event = expect_event(&place, "running");
    assert_non_null(json_object_get(json_object_get(event, "cluster_spec"), "worker"));
    json_decref(event);
    say(members[0], json_pack("{s:s, s:[[s,s],[s,s]]}", "type", "lines", "lines", "stdout", "héllo",
                              "stderr", "w"));
    event = expect_event(&place, "line");
    assert_string_equal(text_of(event, "node"), "worker:0");
    assert_string_equal(text_of(event, "stream"), "stdout");
    assert_string_equal(text_of(event, "text"), "héllo");
    json_decref(event);
    event = expect_event(&place, "line");
    assert_string_equal(text_of(event, "stream"), "stderr");
    json_decref(event);
    say(members[0], json_pack("{s:s, s:s}", "type", "warning", "message", "no tensorboard"));
    event = expect_event(&place, "warning");
    assert_string_equal(text_of(event, "message"), "no tensorboard");
    json_decref(event);
    assert_int_equal(tfos_rendezvous_next_event(place.rendezvous, 20, &json, &err), TFOS_AGAIN);
    close_members(members, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void the_oldest_events_are_dropped_and_counted(void **state)
{
    (void)state;
    enum { MESSAGES = 26, LINES = 500 };
    struct tfos_error err;
    struct tfos__channel *members[1];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    start_nodes(&place, members, 1);
    for (int i = 0; i < MESSAGES; i++) {
        json_t *lines = json_array();
        for (int line = 0; line < LINES; line++)
            json_array_append_new(
                lines, json_pack("[s, o]", "stdout", json_sprintf("%d", i * LINES + line)));
        say(members[0], json_pack("{s:s, s:o}", "type", "lines", "lines", lines));
    }
    // The end comes after all lines, so the queue is as it will stay.
    say(members[0], trainer_exit(0));
    tfos__channel_finish(members[0], PATIENCE_MS);
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    char *json;
    assert_done(tfos_rendezvous_next_event(place.rendezvous, 0, &json, &err));
    json_t *event = json_loads(json, 0, NULL);
    tfos_free(json);
    // registered, running, 13,000 lines and ended, less the 10,000 kept.
    assert_string_equal(text_of(event, "event"), "dropped");
    assert_int_equal(number_of(event, "count"), MESSAGES * LINES + 3 - 10000);
    json_decref(event);
    int count = 0;
    while (tfos_rendezvous_next_event(place.rendezvous, 0, &json, &err) == TFOS_OK) {
        event = json_loads(json, 0, NULL);
        tfos_free(json);
        if (count == 0)
            assert_string_equal(text_of(event, "text"), "3001");
        if (count == 9999)
            assert_string_equal(text_of(event, "event"), "ended");
        json_decref(event);
        count++;
    }
    assert_int_equal(count, 10000);
    tfos_rendezvous_close(place.rendezvous);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(the_status_shows_nodes_and_figures),
    cmocka_unit_test(the_status_tells_how_far_a_training_is),
    cmocka_unit_test(plans_that_make_no_sense_are_refused),
    cmocka_unit_test(figures_come_to_who_asks_for_them),
    cmocka_unit_test(steps_are_split_and_a_straggler_is_named),
    cmocka_unit_test(a_query_finds_every_driver),
    cmocka_unit_test(a_fed_cluster_is_asked_to_stop),
    cmocka_unit_test(a_cluster_that_is_not_fed_is_stopped),
    cmocka_unit_test(who_asks_another_cluster_to_stop_gets_the_names),
    cmocka_unit_test(lines_and_warnings_become_events),
    cmocka_unit_test(the_oldest_events_are_dropped_and_counted),
};

TEST_MAIN(cases)
