// SPDX-License-Identifier: Apache-2.0
// A channel is opened when its node gets rows for the first time, and stays open to the end: the
// driver fences the attempt at each node once.
#include "node/feeder_channels.h"

#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

#define EXTRA_SIZE (1 << 20) ///< bytes of a channel at another node: each task may have one there

static enum tfos_status copy_options(struct tfos__node_feeder_channels *channels,
                                     const struct tfos_feeder_options *options,
                                     const struct tfos_wait *wait, struct tfos_error *err)
{
    struct tfos_feeder_options *copy = &channels->options;

    *copy = *options;
    copy->address = copy->job = NULL;
    copy->wait = *wait;
    copy->cluster_id = tfos__strdup(options->cluster_id ? options->cluster_id : "");
    copy->key = tfos__strdup(options->key ? options->key : "");
    copy->queue = tfos__strdup(options->queue ? options->queue : "input");
    return copy->cluster_id && copy->key && copy->queue ? TFOS_OK
                                                        : tfos__no_memory(err, "feed", "a feeder");
}

// Opens a channel at the node that `place` describes, and makes it the last.
static enum tfos_status open_channel(struct tfos__node_feeder_channels *channels,
                                     const json_t *place, struct tfos_error *err)
{
    struct tfos_feeder_options options = channels->options;
    struct tfos__feed_target target = {.first_row = channels->row, .is_extra = channels->count > 0};
    bool is_local = tfos__json_bool_or(place, "local", false) && !options.is_remote;
    struct tfos__node_feeder_channel opened = {.executor_id =
                                                   tfos__json_int_or(place, "executor_id", -1)};

    if (target.is_extra && (options.channel_size == 0 || options.channel_size > EXTRA_SIZE))
        options.channel_size = EXTRA_SIZE;
    TFOS__TRY(tfos__json_get_string(place, "address", &target.address, err));
    if (is_local)
        TFOS__TRY(tfos__json_get_string(place, "socket_name", &target.socket_name, err));
    void *grown = tfos__array_grow(channels->channels, channels->count, sizeof(opened));
    if (!grown)
        return tfos__no_memory(err, "feed", "a feeder");
    channels->channels = grown;
    enum tfos_status status = tfos__feed_writer_open(&options, &target, &opened.writer, err);
    // A node in another container of this host has its own abstract sockets.
    if (status == TFOS_NOT_FOUND && is_local) {
        target.socket_name = NULL;
        status = tfos__feed_writer_open(&options, &target, &opened.writer, err);
    }
    opened.is_over = status == TFOS_END;
    if (status == TFOS_OK || (status == TFOS_END && target.is_extra))
        channels->channels[channels->count++] = opened;
    return status;
}

enum tfos_status tfos__node_feeder_channels_open(struct tfos__node_feeder_channels *channels,
                                                 const struct tfos_feeder_options *options,
                                                 const struct tfos_wait *wait, const json_t *target,
                                                 struct tfos_error *err)
{
    channels->row = tfos__json_int_or(target, "first_row", 0);
    TFOS__TRY(copy_options(channels, options, wait, err));
    return open_channel(channels, target, err);
}

struct tfos__feed_writer *
tfos__node_feeder_channels_own(const struct tfos__node_feeder_channels *channels)
{
    return channels->count > 0 ? channels->channels[0].writer : NULL;
}

// What the present channel has must be published before another gets what follows. A node that
// wants no more rows has none to publish.
static enum tfos_status leave_current(struct tfos__node_feeder_channels *channels, size_t next,
                                      struct tfos_error *err)
{
    struct tfos__node_feeder_channel *current = &channels->channels[channels->current];

    if (channels->current == next)
        return TFOS_OK;
    enum tfos_status status =
        current->is_over ? TFOS_OK : tfos__feed_writer_confirm(current->writer, err);
    if (status == TFOS_END && channels->current > 0) {
        current->is_over = true;
        status = TFOS_OK;
    }
    if (status == TFOS_OK)
        channels->current = next;
    return status;
}

// Appends the first `row_count` rows to a channel, and takes those that were published off `rows`.
static enum tfos_status append_rows(struct tfos__node_feeder_channels *channels, size_t number,
                                    const struct ArrowSchema *schema, struct ArrowArray *rows,
                                    int64_t row_count, struct tfos_error *err)
{
    struct ArrowArray slice = *rows;

    slice.length = row_count;
    enum tfos_status status = leave_current(channels, number, err);
    if (status != TFOS_OK)
        return status;
    struct tfos__feed_writer *writer = channels->channels[number].writer;
    int64_t before = tfos__feed_writer_row_count(writer);
    tfos__feed_writer_seek(writer, channels->row);
    status = tfos__feed_writer_append(writer, schema, &slice, err);
    int64_t written = tfos__feed_writer_row_count(writer) - before;
    channels->row += written;
    rows->offset += written;
    rows->length -= written;
    return status;
}

// The channel at the part's node. END: the node wants no rows.
static enum tfos_status find_channel(struct tfos__node_feeder_channels *channels,
                                     const json_t *part, size_t *number, struct tfos_error *err)
{
    int64_t executor_id = tfos__json_int_or(part, "executor_id", -1);

    for (*number = 0; *number < channels->count; ++*number)
        if (channels->channels[*number].executor_id == executor_id)
            return channels->channels[*number].is_over ? TFOS_END : TFOS_OK;
    return open_channel(channels, part, err);
}

// Appends one part. The own node gets what another one does not want.
static enum tfos_status append_part(struct tfos__node_feeder_channels *channels,
                                    const struct ArrowSchema *schema, struct ArrowArray *rows,
                                    const json_t *part, struct tfos_error *err)
{
    int64_t row_count = 0;
    size_t number = 0;

    TFOS__TRY(tfos__json_get_int(part, "rows", 1, rows->length, &row_count, err));
    int64_t left = rows->length - row_count;
    enum tfos_status status = find_channel(channels, part, &number, err);
    if (status == TFOS_OK)
        status = append_rows(channels, number, schema, rows, row_count, err);
    if (status != TFOS_END || number == 0)
        return status;
    channels->channels[number].is_over = true;
    return append_rows(channels, 0, schema, rows, rows->length - left, err);
}

enum tfos_status tfos__node_feeder_channels_append(struct tfos__node_feeder_channels *channels,
                                                   const struct ArrowSchema *schema,
                                                   const struct ArrowArray *array,
                                                   const json_t *parts, int64_t *row_count,
                                                   struct tfos_error *err)
{
    struct ArrowArray rows = *array;

    for (size_t i = 0; i < json_array_size(parts); i++) {
        enum tfos_status status =
            append_part(channels, schema, &rows, json_array_get(parts, i), err);
        if (status != TFOS_OK)
            return status;
    }
    *row_count = array->length - rows.length;
    return TFOS_OK;
}

enum tfos_status tfos__node_feeder_channels_append_own(struct tfos__node_feeder_channels *channels,
                                                       const struct ArrowSchema *schema,
                                                       const struct ArrowArray *array,
                                                       struct tfos_error *err)
{
    struct ArrowArray rows = *array;

    return append_rows(channels, 0, schema, &rows, array->length, err);
}

enum tfos_status tfos__node_feeder_channels_finish(struct tfos__node_feeder_channels *channels,
                                                   struct tfos_error *err)
{
    enum tfos_status status = leave_current(channels, 0, err);

    if (status != TFOS_OK)
        return status;
    tfos__feed_writer_seek(channels->channels[0].writer, channels->row);
    return tfos__feed_writer_finish(channels->channels[0].writer, err);
}

json_t *tfos__node_feeder_channels_over(const struct tfos__node_feeder_channels *channels)
{
    json_t *ids = json_array();

    for (size_t i = 0; i < channels->count && ids; i++)
        if (channels->channels[i].is_over &&
            json_array_append_new(ids, json_integer(channels->channels[i].executor_id)) != 0) {
            json_decref(ids);
            ids = NULL;
        }
    return ids;
}

int64_t tfos__node_feeder_channels_row_count(const struct tfos__node_feeder_channels *channels)
{
    int64_t count = 0;

    for (size_t i = 0; i < channels->count; i++)
        if (channels->channels[i].writer)
            count += tfos__feed_writer_row_count(channels->channels[i].writer);
    return count;
}

static void free_text(const char *text)
{
    tfos__free((char *)(uintptr_t)text);
}

void tfos__node_feeder_channels_clear(struct tfos__node_feeder_channels *channels)
{
    struct tfos_feeder_options *options = &channels->options;

    while (channels->count > 0)
        tfos__feed_writer_close(channels->channels[--channels->count].writer);
    tfos__free(channels->channels);
    if (options->key)
        explicit_bzero((char *)(uintptr_t)options->key, strlen(options->key));
    free_text(options->cluster_id);
    free_text(options->key);
    free_text(options->queue);
    *channels = (struct tfos__node_feeder_channels){0};
}
