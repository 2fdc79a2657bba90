// SPDX-License-Identifier: Apache-2.0
// From the first hello to the start, and the end of the driver.
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "rendezvous_scene.h"

#define CROWD 64

/// One of a crowd of nodes, in a thread of its own.
struct recruit {
    const struct place *place;
    int id;
    char *spec;
};

static void *enlist(void *argument)
{
    struct recruit *recruit = argument;
    struct tfos__channel *member = join_as(recruit->place, recruit->id, "10.0.0.1");
    json_t *spec = expect(member, "spec");
    recruit->spec = json_dumps(json_object_get(spec, "cluster_spec"), JSON_COMPACT);
    say(member, json_pack("{s:s, s:i}", "type", "ack", "generation", 1));
    json_decref(spec);
    expect_only(member, "start");
    return member;
}

static void sixty_four_register_at_once(void **state)
{
    (void)state;
    struct tfos_error err;
    struct recruit recruits[CROWD];
    pthread_t threads[CROWD];
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = CROWD, .ps_count = 8});
    for (int id = 0; id < CROWD; id++) {
        recruits[id] = (struct recruit){.place = &place, .id = id};
        assert_int_equal(pthread_create(&threads[id], NULL, enlist, &recruits[id]), 0);
    }
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_RUNNING, PATIENCE_MS, &err));
    void *members[CROWD];
    for (int id = 0; id < CROWD; id++)
        pthread_join(threads[id], &members[id]);
    for (int id = CROWD - 1; id >= 0; id--) {
        assert_string_equal(recruits[id].spec, recruits[0].spec);
        free(recruits[id].spec);
        tfos__channel_finish(members[id], 0);
    }
    tfos_rendezvous_close(place.rendezvous);
}

static void roles_are_given_out(void **state)
{
    (void)state;
    struct tfos_error err;
    char *json, host[TFOS__ADDRESS_SIZE];
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 2, .master_name = "chief"});
    assert_done(tfos_rendezvous_get_roles(place.rendezvous, &json, &err));
    assert_string_equal(json, "{\"chief\":[0],\"worker\":[1]}");
    tfos_free(json);
    struct tfos__channel *member = connect_to(&place);
    assert_done(tfos__address_local_host(tfos__channel_fd(member), host, &err));
    assert_string_equal(host, "127.0.0.1");
    say(member, node_hello(1, "h1", 1));
    json_t *role = expect(member, "role");
    assert_string_equal(text_of(role, "job_name"), "worker");
    assert_int_equal(number_of(role, "task_index"), 0);
    json_decref(role);
    json_t *event = expect_event(&place, "registered");
    assert_string_equal(text_of(event, "node"), "worker:0");
    assert_int_equal(number_of(event, "executor_id"), 1);
    assert_string_equal(text_of(event, "host"), "h1");
    json_decref(event);
    tfos__channel_finish(member, 0);
    tfos_rendezvous_close(place.rendezvous);
}

static void s04_a_taken_port_renews_the_spec(void **state)
{
    (void)state;
    struct tfos_error err;
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 2});
    struct tfos__channel *first = join_as(&place, 0, "h0"), *second = join_as(&place, 1, "h1");
    acknowledge(first);
    expect_only(second, "spec");
    say(second, json_pack("{s:s, s:i, s:i}", "type", "port", "port", 4444, "generation", 1));
    for (int i = 0; i < 2; i++) {
        json_t *spec = expect(i ? second : first, "spec");
        assert_int_equal(number_of(spec, "generation"), 2);
        json_t *workers = json_object_get(json_object_get(spec, "cluster_spec"), "worker");
        assert_string_equal(json_string_value(json_array_get(workers, 1)), "h1:4444");
        json_decref(spec);
    }
    // The old acknowledgement of the first does not count for the new spec.
    say(second, json_pack("{s:s, s:i}", "type", "ack", "generation", 2));
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_RUNNING, 50, &err),
                     TFOS_TIMEOUT);
    assert_says(err.message, "have not acknowledged the cluster spec (generation 2) yet: worker:0");
    say(first, json_pack("{s:s, s:i}", "type", "ack", "generation", 2));
    json_t *start = expect(first, "start");
    assert_int_equal(number_of(start, "generation"), 2);
    json_decref(start);
    expect_only(second, "start");
    assert_done(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_RUNNING, PATIENCE_MS, &err));
    tfos__channel_finish(first, 0);
    tfos__channel_finish(second, 0);
    tfos_rendezvous_close(place.rendezvous);
}

static void s01_a_timeout_names_who_is_missing(void **state)
{
    (void)state;
    struct tfos_error err;
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 3, .ps_count = 1});
    struct tfos__channel *first = join_as(&place, 0, "127.0.0.1");
    struct tfos__channel *second = join_as(&place, 1, "127.0.0.1");
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_RUNNING, 100, &err),
                     TFOS_TIMEOUT);
    assert_says(err.message, "2 of 3 nodes registered within 0.");
    assert_says(err.message, "ps:0 on host 127.0.0.1 (executor e7)");
    assert_says(err.message, "worker:0 on host 127.0.0.1");
    assert_says(err.message, "missing: 1 (executor id 2)");
    assert_says(err.message, "spark.executor.instances");
    assert_says(err.message, tfos_rendezvous_address(place.rendezvous));
    assert_says(err.message, "TFOS_SERVER_HOST");
    tfos__channel_finish(first, 0);
    tfos__channel_finish(second, 0);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_node_gone_before_the_start_may_come_again(void **state)
{
    (void)state;
    struct tfos_error err;
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 2});
    struct tfos__channel *first = join_as(&place, 0, "h0"), *second = join_as(&place, 1, "h1");
    acknowledge(first);
    expect_only(second, "spec");
    tfos__channel_finish(second, 0);
    json_decref(expect_event(&place, "warning"));
    assert_int_equal(tfos_rendezvous_wait(place.rendezvous, TFOS_PHASE_RUNNING, 50, &err),
                     TFOS_TIMEOUT);
    assert_says(err.message, "had registered from h1, but: its connection ended");
    second = join_as(&place, 1, "h2");
    acknowledge(second);
    acknowledge(first);
    expect_only(first, "start");
    expect_only(second, "start");
    tfos__channel_finish(first, 0);
    tfos__channel_finish(second, 0);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_hello_is_refused(void **state)
{
    (void)state;
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    struct tfos__channel *first = join_as(&place, 0, "h0");
    acknowledge(first);
    expect_only(first, "start");
    json_t *other_version = node_hello(0, "h", 2);
    json_object_set_new(other_version, "version", json_integer(7));
    json_t *hellos[] = {node_hello(5, "h", 1), node_hello(-1, "h", 1), node_hello(0, "h", 2),
                        other_version};
    const char *says[] = {"executor id 5 is out of range", "executor id -1 is out of range",
                          "cannot be replaced", "version 7"};
    for (int i = 0; i < 4; i++) {
        struct tfos__channel *member = connect_to(&place);
        say(member, hellos[i]);
        json_t *refused = expect(member, "refused");
        assert_says(text_of(refused, "message"), says[i]);
        json_decref(refused);
        tfos__channel_finish(member, 0);
    }
    tfos__channel_finish(first, 0);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_higher_launch_replaces_a_living_node(void **state)
{
    (void)state;
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 2});
    struct tfos__channel *old = join_as(&place, 0, "h0");
    struct tfos__channel *same = connect_to(&place);
    say(same, node_hello(0, "h0", 1));
    json_t *refused = expect(same, "refused");
    assert_says(text_of(refused, "message"), "running already");
    json_decref(refused);
    struct tfos__channel *new = connect_to(&place);
    say(new, node_hello(0, "h9", 2));
    expect_only(new, "role");
    expect_only(old, "stop");
    tfos__channel_finish(old, 0);
    struct tfos__channel *other = join_as(&place, 1, "h1");
    json_t *spec = expect(new, "spec");
    json_t *workers = json_object_get(json_object_get(spec, "cluster_spec"), "worker");
    assert_string_equal(json_string_value(json_array_get(workers, 0)), "h9:20000");
    json_decref(spec);
    tfos__channel_finish(same, 0);
    tfos__channel_finish(new, 0);
    tfos__channel_finish(other, 0);
    tfos_rendezvous_close(place.rendezvous);
}

static void s03_a_busy_range_names_its_holder(void **state)
{
    (void)state;
    struct tfos_error err;
    char ports[32], pid[32];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    const char *port = strrchr(tfos_rendezvous_address(place.rendezvous), ':') + 1;
    snprintf(ports, sizeof(ports), "%s-%s", port, port);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("TFOS_SERVER_PORT", ports, 1);
    struct tfos_rendezvous *other;
    struct tfos_rendezvous_options options = {
        .cluster_id = "busy", .key = KEY, .node_count = 1, .listen_host = "127.0.0.1"};
    assert_int_equal(tfos_rendezvous_open(&options, &other, &err), TFOS_BUSY);
    assert_says(err.message, port);
    assert_says(err.message, pid);
    assert_says(err.message, "TFOS_SERVER_PORT");
    unsetenv("TFOS_SERVER_PORT");
    tfos_rendezvous_close(place.rendezvous);
}

static void an_open_that_fails_leaves_nothing(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos_rendezvous *rendezvous = NULL;
    struct tfos_rendezvous_options options = {
        .cluster_id = "memory", .key = KEY, .node_count = 3, .listen_host = "127.0.0.1"};
    enum tfos_status status = TFOS_NO_MEMORY;
    int n = 0;
    for (; status != TFOS_OK; n++) {
        tfos__memory_fail_at(n + 1);
        status = tfos_rendezvous_open(&options, &rendezvous, &err);
        tfos__memory_fail_at(0);
        if (status != TFOS_OK)
            assert_int_equal(status, TFOS_NO_MEMORY);
    }
    assert_true(n > 3);
    tfos_rendezvous_close(rendezvous);
}

static void s02_the_host_variable_wins(void **state)
{
    (void)state;
    setenv("TFOS_SERVER_HOST", "driver.example", 1);
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    assert_memory_equal(tfos_rendezvous_address(place.rendezvous), "driver.example:", 15);
    tfos_rendezvous_close(place.rendezvous);
    unsetenv("TFOS_SERVER_HOST");
}

static void *wait_long(void *argument)
{
    struct tfos_error err;
    const struct place *place = argument;
    enum tfos_status status = tfos_rendezvous_wait(place->rendezvous, TFOS_PHASE_RUNNING, -1, &err);
    return (void *)(intptr_t)status;
}

static void *wait_for_event(void *argument)
{
    struct tfos_error err;
    char *json;
    const struct place *place = argument;
    enum tfos_status status = tfos_rendezvous_next_event(place->rendezvous, -1, &json, &err);
    return (void *)(intptr_t)status;
}

static void close_ends_waits_in_other_threads(void **state)
{
    (void)state;
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 1});
    pthread_t threads[2];
    void *results[2];
    assert_int_equal(pthread_create(&threads[0], NULL, wait_long, &place), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, wait_for_event, &place), 0);
    usleep(50000); // both are most likely asleep by then; the test holds either way only if they
                   // have begun
    tfos_rendezvous_close(place.rendezvous);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &results[i]);
        assert_int_equal((int)(intptr_t)results[i], TFOS_CLOSED);
    }
}

static void a_member_sees_the_driver_go(void **state)
{
    (void)state;
    struct tfos_error err;
    json_t *message;
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 2});
    struct tfos__channel *member = join_as(&place, 0, "h0");
    assert_int_equal(tfos__channel_next(member, &message, NULL, NULL, &err), TFOS_AGAIN);
    assert_int_equal(tfos__channel_receive(member, &message, NULL, NULL, tfos__deadline(20), &err),
                     TFOS_TIMEOUT);
    // What was said before the end still arrives.
    tfos_rendezvous_stop(place.rendezvous, 1000);
    tfos_rendezvous_close(place.rendezvous);
    expect_only(member, "stop");
    assert_null(hear(member));
    tfos__channel_finish(member, 100);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(sixty_four_register_at_once),
    cmocka_unit_test(roles_are_given_out),
    cmocka_unit_test(s04_a_taken_port_renews_the_spec),
    cmocka_unit_test(s01_a_timeout_names_who_is_missing),
    cmocka_unit_test(a_node_gone_before_the_start_may_come_again),
    cmocka_unit_test(a_hello_is_refused),
    cmocka_unit_test(a_higher_launch_replaces_a_living_node),
    cmocka_unit_test(s03_a_busy_range_names_its_holder),
    cmocka_unit_test(an_open_that_fails_leaves_nothing),
    cmocka_unit_test(s02_the_host_variable_wins),
    cmocka_unit_test(close_ends_waits_in_other_threads),
    cmocka_unit_test(a_member_sees_the_driver_go),
};

TEST_MAIN(cases)
