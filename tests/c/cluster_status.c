// SPDX-License-Identifier: Apache-2.0
// What the driver tells of its cluster: the status document, and events.
#include "rendezvous_scene.h"

#include <stdlib.h>

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
    struct tfos_member *members[2];
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

static void lines_and_warnings_become_events(void **state)
{
    (void)state;
    char *json;
    struct tfos_error err;
    struct tfos_member *members[1];
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
    struct tfos_member *members[1];
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
    tfos_member_close(members[0], PATIENCE_MS);
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
    cmocka_unit_test(a_query_finds_every_driver),
    cmocka_unit_test(lines_and_warnings_become_events),
    cmocka_unit_test(the_oldest_events_are_dropped_and_counted),
};

TEST_MAIN(cases)
