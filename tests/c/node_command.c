// SPDX-License-Identifier: Apache-2.0
/// What `tfos status` shows of a cluster, and `tfos channels` of the channels of a process.
#include "feed/feed_channel.h"
#include "nodes.h"

/// Runs the command and gives what it printed; it must exit with `status`.
static char *run_command(const char *arguments, int status)
{
    char command[1024];
    snprintf(command, sizeof(command), "%s %s", TFOS_COMMAND, arguments);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    char *text = NULL;
    size_t capacity = 0;
    FILE *copy = open_memstream(&text, &capacity);
    char part[4096];
    size_t size;
    while ((size = fread(part, 1, sizeof(part), output)) > 0)
        fwrite(part, 1, size, copy);
    fclose(copy);
    int wait_status = pclose(output);
    assert_true(WIFEXITED(wait_status));
    assert_int_equal(WEXITSTATUS(wait_status), status);
    return text;
}

static void status_shows_nodes(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 2, false);
    launch_shell(&cluster, 0, "exec sleep 60");
    launch_shell(&cluster, 1, "exec sleep 60");
    await_running(&cluster, 2);
    char *text = run_command("status", 0);
    const char *table = strstr(text, cluster.id);
    if (!table || !strstr(table, "running") || !strstr(table, "worker:0") ||
        !strstr(table, "worker:1") || !strstr(table, "2 of 2 nodes registered"))
        fail_msg("tfos status printed: %s", text);
    free(text);
    cluster_close(&cluster);
}

static void status_shows_nodes_as_json(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1, false);
    launch_shell(&cluster, 0, "exec sleep 60");
    await_running(&cluster, 1);
    char *text = run_command("status --json", 0);
    json_t *clusters = json_loads(text, 0, NULL);
    assert_true(json_is_array(clusters));
    size_t i;
    const json_t *item, *own = NULL;
    json_array_foreach(clusters, i, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "cluster_id")), cluster.id) == 0)
            own = item;
    }
    assert_non_null(own);
    const json_t *node = json_array_get(json_object_get(own, "nodes"), 0);
    assert_string_equal(json_string_value(json_object_get(node, "job_name")), "worker");
    json_decref(clusters);
    free(text);
    cluster_close(&cluster);
}

static void channels_show_what_they_hold(void **state)
{
    (void)state;
    struct tfos__feed_control *control;
    struct tfos__feed_channel *channel;
    struct tfos_error err;
    char arguments[64];
    int control_fd, fd;
    uint8_t *space;
    assert_int_equal(tfos__feed_control_create(&control_fd, &err), TFOS_OK);
    assert_int_equal(tfos__feed_control_map(control_fd, &control, &err), TFOS_OK);
    assert_int_equal(tfos__feed_channel_create(8192, 4096, &fd, &err), TFOS_OK);
    assert_int_equal(tfos__feed_channel_map(fd, TFOS__FEED_CHANNEL_WRITER, control, &channel, &err),
                     TFOS_OK);
    assert_int_equal(tfos__feed_producer_reserve(&channel->producer, 128, &space, &err), TFOS_OK);
    assert_int_equal(tfos__feed_producer_commit(&channel->producer, 128, 7, &err), TFOS_OK);

    snprintf(arguments, sizeof(arguments), "channels --json %d", (int)getpid());
    char *text = run_command(arguments, 0);
    json_t *channels = json_loads(text, 0, NULL);
    const json_t *shown = json_array_get(channels, 0);
    assert_int_equal(json_array_size(channels), 1);
    assert_int_equal(json_integer_value(json_object_get(shown, "fd")), fd);
    assert_int_equal(json_integer_value(json_object_get(shown, "size")), 8192);
    assert_int_equal(json_integer_value(json_object_get(shown, "used")), 128);
    assert_int_equal(json_integer_value(json_object_get(shown, "result_size")), 4096);
    assert_int_equal(json_integer_value(json_object_get(shown, "rows_published")), 7);
    assert_string_equal(json_string_value(json_object_get(shown, "state")), "written to");
    json_decref(channels);
    free(text);

    atomic_fetch_or(&channel->page->head, TFOS__FEED_HEAD_FENCED);
    snprintf(arguments, sizeof(arguments), "channels %d", (int)getpid());
    text = run_command(arguments, 0);
    if (!strstr(text, "fenced, being read"))
        fail_msg("tfos channels printed: %s", text);
    free(text);
    close(fd);
    free(run_command(arguments, 1)); // the process has none
    tfos__feed_channel_release(channel);
    tfos__feed_control_release(control);
    close(control_fd);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(status_shows_nodes),
    cmocka_unit_test(status_shows_nodes_as_json),
    cmocka_unit_test(channels_show_what_they_hold),
};

TEST_MAIN(cases)
