// SPDX-License-Identifier: Apache-2.0
/// What `tfos status` shows of a cluster that is fed, by nodes that the test plays.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "rendezvous_scene.h"

#define OUTPUT_LIMIT 65536

struct scene {
    struct place place;
    struct tfos__channel *nodes[2];
    struct tfos__channel *feeder;
};

/// Two nodes, fed for the first of three epochs: one of four partitions is through.
static void scene_open(struct scene *scene)
{
    struct tfos_error err;
    struct tfos_feed_plan plan = {.epoch = 1, .epoch_count = 3, .partition_count = 4};
    scene->place =
        open_place((struct tfos_rendezvous_options){.node_count = 2, .is_feeding = true});
    start_nodes(&scene->place, scene->nodes, 2);
    assert_done(tfos_rendezvous_plan_feed(scene->place.rendezvous, 1, &plan, &err));
    scene->feeder = connect_to(&scene->place);
    say(scene->feeder, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:i}", "type", "hello",
                                 "kind", "feeder", "version", 1, "feed", 1, "partition", 0,
                                 "attempt", 0, "host", "host-0", "executor_pid", 1000));
    expect_only(scene->feeder, "target");
    say(scene->nodes[0], json_pack("{s:s, s:i, s:i, s:i, s:i, s:b}", "type", "partition", "feed", 1,
                                   "partition", 0, "attempt", 0, "rows", 250000000, "complete", 1));
}

static void scene_close(struct scene *scene)
{
    tfos__channel_finish(scene->feeder, 0);
    close_members(scene->nodes, 2);
    tfos_rendezvous_close(scene->place.rendezvous);
}

/// Lets hearts beat until the driver knows how fast rows go: the first node's reader waits, the
/// second one's writers do.
static void await_rates(struct scene *scene)
{
    for (int i = 1; i < 400; i++) {
        char *json;
        struct tfos_error err;
        for (int id = 0; id < 2; id++)
            say(scene->nodes[id],
                json_pack(
                    "{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:{s:{s:i, s:b}}, s:{s:i, s:f}}",
                    "type", "heartbeat", "rows_read", i * 1234567, "bytes_written", i * 5000000,
                    "ring_used", 93, "ring_size", 100, "writers", 1, "reader_wait_ms",
                    id == 0 ? i * 1000 : 0, "writer_wait_ms", id == 0 ? 0 : i * 1000, "queues",
                    "input", "rows_read", i * 1234567, "drained", 0, "report", "step", 12 + i,
                    "loss", 0.25));
        assert_done(tfos_rendezvous_get_status(scene->place.rendezvous, &json, &err));
        json_t *status = json_loads(json, 0, NULL);
        tfos_free(json);
        const json_t *nodes = json_object_get(status, "nodes");
        bool is_known = json_is_string(json_object_get(json_array_get(nodes, 0), "slower")) &&
                        json_is_string(json_object_get(json_array_get(nodes, 1), "slower"));
        json_decref(status);
        if (is_known)
            return;
        poll(NULL, 0, 50);
    }
    fail_msg("the driver knows no rates");
}

/// Runs a command, which must end with status 0, and gives what it printed.
static void run(const char *command, char *output)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t size = fread(output, 1, OUTPUT_LIMIT - 1, pipe);
    output[size] = '\0';
    int status = pclose(pipe);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s: status %x, and printed: %s", command, (unsigned)status, output);
}

/// The part of the output that is about our cluster: others may run beside it.
static char *find_own(const struct scene *scene, char *output)
{
    char *own = strstr(output, scene->place.cluster_id);
    if (!own)
        fail_msg("no %s in: %s", scene->place.cluster_id, output);
    char *end = strstr(own, "\n\n");
    if (end)
        *end = '\0';
    return own;
}

static void assert_narrow(const char *text)
{
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        if (strcspn(text, "\n") > 80)
            fail_msg("wider than 80 columns: %.*s", (int)strcspn(text, "\n"), text);
}

static void a_table_of_figures_fits_80_columns(void **state)
{
    (void)state;
    static char output[OUTPUT_LIMIT];
    struct scene scene;
    scene_open(&scene);
    await_rates(&scene);
    run(TFOS_COMMAND " status", output);
    const char *text = find_own(&scene, output);
    assert_narrow(text);
    assert_says(text, "running  2 of 2 nodes registered");
    assert_says(text, "epoch 1 of 3  1/4 partitions");
    assert_says(text, "  [");
    assert_says(text, " left\n");
    assert_says(text, " rows/s  ");
    assert_says(text, " MB/s  ring 93%  waiting for Spark\n");
    assert_says(text, "  loss 0.25");
    assert_says(text, " 93% Spark  ");
    assert_says(text, " 93% trainer  ");
    scene_close(&scene);
}

/// Watches until something was shown, presses Ctrl-C, and gives what was printed.
#define WATCH_AND_INTERRUPT(arguments)                                                             \
    "out=$(mktemp); " TFOS_COMMAND " status --watch " arguments " >\"$out\" & pid=$!; "            \
    "tries=0; until [ -s \"$out\" ] || [ $tries -gt 400 ]; do sleep 0.05; tries=$((tries+1)); "    \
    "done; "                                                                                       \
    "kill -INT $pid; wait $pid; code=$?; cat \"$out\"; rm \"$out\"; exit $code"

static void watching_ends_cleanly_by_ctrl_c(void **state)
{
    (void)state;
    static char output[OUTPUT_LIMIT];
    struct scene scene;
    scene_open(&scene);
    await_rates(&scene);
    run(WATCH_AND_INTERRUPT(""), output);
    assert_int_equal(output[strlen(output) - 1], '\n');
    assert_says(output, scene.place.cluster_id);
    run(WATCH_AND_INTERRUPT("--json"), output);
    output[strcspn(output, "\n")] = '\0';
    json_t *clusters = json_loads(output, 0, NULL);
    assert_true(json_is_array(clusters)); // a line is a whole document
    json_decref(clusters);
    scene_close(&scene);
}

static void a_cluster_that_is_not_fed_has_no_figures(void **state)
{
    (void)state;
    static char output[OUTPUT_LIMIT];
    struct scene scene;
    scene.place = open_place((struct tfos_rendezvous_options){.node_count = 2});
    run(TFOS_COMMAND " status", output);
    const char *text = find_own(&scene, output);
    assert_says(text, "waiting  0 of 2 nodes registered");
    assert_null(strstr(text, "rows/s"));
    assert_null(strstr(text, "waiting for"));
    tfos_rendezvous_close(scene.place.rendezvous);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(a_table_of_figures_fits_80_columns),
    cmocka_unit_test(watching_ends_cleanly_by_ctrl_c),
    cmocka_unit_test(a_cluster_that_is_not_fed_has_no_figures),
};

TEST_MAIN(cases)
