// SPDX-License-Identifier: Apache-2.0
// How a cluster fails and ends, and the messages that its user gets.
#include "rendezvous_scene.h"

static void a_lost_node_fails_the_cluster(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *members[3];
    struct place place = open_place((struct tfos_rendezvous_options){
        .node_count = 3, .ps_count = 1, .feed_stop_grace_ms = 700});
    start_nodes(&place, members, 3);
    assert_done(tfos_rendezvous_check(place.rendezvous, &err));
    tfos__channel_finish(members[2], 0);
    expect_failure(&place, &err);
    assert_says(err.message, "worker:1 (executor id 2, Spark executor e7, host host-2) was lost");
    assert_says(err.message, "its connection ended");
    assert_int_equal(tfos_rendezvous_check(place.rendezvous, &err), TFOS_CLOSED);
    for (int id = 0; id < 2; id++) {
        json_t *stop = expect(members[id], "stop");
        assert_int_equal(number_of(stop, "grace_ms"), 700);
        assert_says(text_of(stop, "reason"), "worker:1");
        json_decref(stop);
    }
    json_t *event = expect_event(&place, "failed");
    assert_says(text_of(event, "message"), "was lost");
    json_decref(event);
    // The others end because the driver stops them: the first failure stays.
    say(members[1], json_pack("{s:s, s:s, s:i, s:b, s:s}", "type", "trainer", "state", "ended",
                              "signal", 15, "killed_by_node", 1, "cause", "stopped"));
    event = expect_event(&place, "ended");
    assert_string_equal(text_of(event, "exit"), "signal 15 (Terminated)");
    assert_true(json_is_true(json_object_get(event, "ok")));
    json_decref(event);
    assert_int_equal(tfos_rendezvous_check(place.rendezvous, &err), TFOS_CLOSED);
    assert_says(err.message, "worker:1");
    close_members(members, 2);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_silent_node_is_lost(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *members[2];
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 2, .heartbeat_timeout_ms = 400});
    start_nodes(&place, members, 2);
    // Only the first speaks on.
    while (tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_WORKED, 50, &err) == TFOS_TIMEOUT)
        say(members[0], json_pack("{s:s, s:i}", "type", "heartbeat", "rows_read", 1));
    assert_says(err.message, "worker:1");
    assert_says(err.message, "it has said nothing for 0.");
    close_members(members, 2);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_failing_trainer_is_quoted(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *members[2];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 2});
    start_nodes(&place, members, 2);
    json_t *lines = json_array();
    for (int i = 0; i < 50; i++)
        json_array_append_new(lines, json_sprintf("line %d of what it wrote to its stderr", i));
    char traceback[6001];
    memset(traceback, 'x', sizeof(traceback) - 1);
    strcpy(traceback + sizeof(traceback) - 25, "\nValueError: no such é!");
    json_array_append_new(lines, json_sprintf("Extension modules: %s", traceback));
    say(members[1],
        json_pack("{s:s, s:s, s:i, s:s, s:s, s:o}", "type", "trainer", "state", "ended",
                  "exit_status", 3, "cause", "trainer", "message", traceback, "last_lines", lines));
    expect_failure(&place, &err);
    assert_says(
        err.message,
        "worker:1 (executor id 1, Spark executor e7, host host-1) failed: its trainer ended "
        "with exit status 3");
    assert_says(err.message, "ValueError: no such é!");
    assert_says(err.message, "line 49 of what");
    assert_null(strstr(err.message, "line 0 of what"));
    assert_says(err.message, "hint: the executor's log");
    json_t *event = expect_event(&place, "ended");
    assert_string_equal(text_of(event, "exit"), "exit status 3");
    assert_true(json_is_false(json_object_get(event, "ok")));
    json_decref(event);
    json_t *stop = expect(members[0], "stop");
    json_decref(stop);
    close_members(members, 2);
    tfos_rendezvous_close(place.rendezvous);
}

/// How often `part` occurs in `text`.
static int occurrences(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

/// A traceback is both the trainer's message and the end of its stderr.
static void a_traceback_is_told_once(void **state)
{
    (void)state;
    static const char traceback[] = "Traceback\n  File \"train.py\"\n\nKeyError: 'size'\n";
    static const struct {
        const char *last; // what the trainer wrote after the traceback, if anything
        int told;
        const char *heading;
    } cases[] = {
        {NULL, 1, "\nlast lines of its stderr before that:\n  reading\nhint"},
        {"Exception ignored", 2, "\nlast lines of its stderr:\n  reading\n  Traceback"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tfos_error err;
        struct tfos__channel *member;
        struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
        start_nodes(&place, &member, 1);
        json_t *lines = json_pack("[s, s, s, s, s]", "reading", "Traceback", "  File \"train.py\"",
                                  "", "KeyError: 'size'");
        if (cases[i].last)
            json_array_append_new(lines, json_string(cases[i].last));
        say(member, json_pack("{s:s, s:s, s:i, s:s, s:o}", "type", "trainer", "state", "ended",
                              "exit_status", 1, "message", traceback, "last_lines", lines));
        expect_failure(&place, &err);
        assert_int_equal(occurrences(err.message, "KeyError: 'size'"), cases[i].told);
        assert_says(err.message, cases[i].heading);
        tfos__channel_finish(member, 0);
        tfos_rendezvous_close(place.rendezvous);
    }
}

static void each_cause_has_its_words(void **state)
{
    (void)state;
    static const struct {
        int exit_status, signal;
        const char *cause, *says, *hint;
    } cases[] = {
        {0, 9, "trainer", "signal 9 (Killed)", "want of memory"},
        {0, 11, "trainer", "signal 11 (Segmentation fault)", "crash in native code"},
        {0, 9, "executor_lost", "its executor was lost", "spark.executor.memory"},
        {0, 15, "task_lost", "Spark task that launched it was lost", "cancelled the task"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tfos_error err;
        struct tfos__channel *member;
        struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
        start_nodes(&place, &member, 1);
        say(member, json_pack("{s:s, s:s, s:i, s:s}", "type", "trainer", "state", "ended", "signal",
                              cases[i].signal, "cause", cases[i].cause));
        expect_failure(&place, &err);
        assert_says(err.message, cases[i].says);
        assert_says(err.message, cases[i].hint);
        tfos__channel_finish(member, 0);
        tfos_rendezvous_close(place.rendezvous);
    }
}

static void a_node_that_cannot_go_on_fails_the_cluster(void **state)
{
    (void)state;
    struct tfos_error err;
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 2});
    struct tfos__channel *member = join_as(&place, 0, "h0");
    say(member, json_pack("{s:s, s:s}", "type", "failed", "message", "no python here"));
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_RUNNING, PATIENCE_MS, &err),
                     TFOS_CLOSED);
    assert_says(err.message, "cannot go on: no python here");
    struct tfos__channel *late = connect_to(&place);
    say(late, node_hello(1, "h1", 1));
    json_t *refused = expect(late, "refused");
    assert_says(text_of(refused, "message"), "no python here");
    json_decref(refused);
    tfos__channel_finish(late, 0);
    tfos__channel_finish(member, 0);
    tfos_rendezvous_close(place.rendezvous);
}

static void the_driver_makes_it_fail(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *members[1];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    start_nodes(&place, members, 1);
    tfos_rendezvous_fail(place.rendezvous, TFOS_IO, "the job failed: \xff");
    tfos_rendezvous_fail(place.rendezvous, TFOS_CORRUPT, "later");
    expect_only(members[0], "stop");
    assert_int_equal(tfos_rendezvous_check(place.rendezvous, &err), TFOS_IO);
    assert_string_equal(err.message, "the job failed: ?");
    close_members(members, 1);
    tfos_rendezvous_close(place.rendezvous);
}

static void workers_end_and_servers_are_stopped(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__channel *members[3];
    struct place place = open_place(
        (struct tfos_rendezvous_options){.node_count = 3, .ps_count = 1, .has_evaluator = true});
    start_nodes(&place, members, 3);
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_WORKED, 20, &err),
                     TFOS_TIMEOUT);
    assert_says(err.message, "have not ended: worker:0 on host host-2 (executor e7; running)");
    say(members[2], trainer_exit(0));
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err));
    tfos__channel_finish(members[2], 100);
    tfos_rendezvous_stop(place.rendezvous, 1234);
    for (int id = 0; id < 2; id++) {
        json_t *stop = expect(members[id], "stop");
        assert_int_equal(number_of(stop, "grace_ms"), 1234);
        json_decref(stop);
        if (id == 0) // one says how it ended, the other only goes: neither is a failure
            say(members[id], trainer_exit(143));
        tfos__channel_finish(members[id], 100);
    }
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    assert_done(tfos_rendezvous_check(place.rendezvous, &err));
    tfos_rendezvous_close(place.rendezvous);
}

static void a_stop_does_not_wait_for_nodes_that_never_came(void **state)
{
    (void)state;
    struct tfos_error err;
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 2});
    struct tfos__channel *member = join_as(&place, 0, "h0");
    tfos_rendezvous_stop(place.rendezvous, 0);
    expect_only(member, "stop");
    tfos__channel_finish(member, 0);
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_ENDED, PATIENCE_MS, &err));
    tfos_rendezvous_close(place.rendezvous);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(a_lost_node_fails_the_cluster),
    cmocka_unit_test(a_silent_node_is_lost),
    cmocka_unit_test(a_failing_trainer_is_quoted),
    cmocka_unit_test(a_traceback_is_told_once),
    cmocka_unit_test(each_cause_has_its_words),
    cmocka_unit_test(a_node_that_cannot_go_on_fails_the_cluster),
    cmocka_unit_test(the_driver_makes_it_fail),
    cmocka_unit_test(workers_end_and_servers_are_stopped),
    cmocka_unit_test(a_stop_does_not_wait_for_nodes_that_never_came),
};

TEST_MAIN(cases)
