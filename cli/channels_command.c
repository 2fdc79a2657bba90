// SPDX-License-Identifier: Apache-2.0
/// tfos channels: what the channels of a node hold at this moment, to find out which side of a feed
/// waits for which.
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos.h>

#include "commands.h"
#include "terminal.h"

#define MIB 1048576.0

static const char *state_of(const struct tfos_feed_channel_state *state)
{
    if (state->is_abandoned)
        return "corrupt";
    if (state->is_retired)
        return "freed";
    if (state->is_fenced)
        return state->used > 0 ? "fenced, being read" : "free";
    if (state->space_wanted > 0)
        return "writer waits for space";
    return state->is_partition_published ? "partition ended" : "written to";
}

static void print_channel(void *context, const struct tfos_feed_channel_state *state)
{
    (void)context;
    printf("%5d %9.1f %9.1f %12lld %12lld %11.1f s  %s\n", state->fd, (double)state->size / MIB,
           (double)state->used / MIB, (long long)state->rows_published,
           (long long)state->rows_released, (double)state->writer_wait_us / 1e6, state_of(state));
}

static void add_channel(void *context, const struct tfos_feed_channel_state *state)
{
    json_array_append_new(
        context,
        json_pack("{sI sI sI sI sI sI sI sI sf sb sb sb sb ss}", "fd", (json_int_t)state->fd,
                  "size", (json_int_t)state->size, "used", (json_int_t)state->used, "result_size",
                  (json_int_t)state->result_size, "result_used", (json_int_t)state->result_used,
                  "rows_published", (json_int_t)state->rows_published, "rows_released",
                  (json_int_t)state->rows_released, "space_wanted", (json_int_t)state->space_wanted,
                  "writer_wait_s", (double)state->writer_wait_us / 1e6, "partition_published",
                  state->is_partition_published, "fenced", state->is_fenced, "corrupt",
                  state->is_abandoned, "freed", state->is_retired, "state", state_of(state)));
}

static int show_table(long long pid)
{
    struct tfos_error err;
    printf("%5s %9s %9s %12s %12s %13s  %s\n", "FD", "MIB", "USED", "PUBLISHED", "RELEASED",
           "WAITED", "STATE");
    return tfos_feed_inspect(pid, print_channel, NULL, &err) < 0 ? say_error(&err) : 0;
}

static int show_json(long long pid)
{
    struct tfos_error err;
    json_t *channels = json_array();
    enum tfos_status status = tfos_feed_inspect(pid, add_channel, channels, &err);
    if (status == TFOS_OK) {
        json_dumpf(channels, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(channels);
    return status < 0 ? say_error(&err) : 0;
}

int run_channels(int argc, char **argv)
{
    const char *pid = NULL;
    bool is_json = false;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else if (argv[i][0] == '-' || pid)
            return refuse_usage("channels does not know \"%s\"", argv[i]);
        else
            pid = argv[i];
    }
    char *end = NULL;
    errno = 0;
    long long number = pid ? strtoll(pid, &end, 10) : 0;
    if (!pid)
        return refuse_usage("channels needs the pid of a node");
    if (errno || end == pid || *end || number < 1)
        return refuse_usage("channels needs the pid of a node, not \"%s\"", pid);
    return is_json ? show_json(number) : show_table(number);
}
