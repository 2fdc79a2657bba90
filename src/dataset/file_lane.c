// SPDX-License-Identifier: Apache-2.0
#include "dataset/file_lane.h"

#include "arrow/arrow.h"
#include "base/fail.h"
#include "base/memory.h"

enum tfos_status tfos__recipe_open(const struct ArrowSchema *schema,
                                   const struct tfos_example_reader_options *reading,
                                   struct tfos__recipe **out, struct tfos_error *err)
{
    struct tfos__recipe *recipe = tfos__alloc(1, sizeof *recipe);
    if (!recipe)
        return tfos__no_memory(err, "dataset", "files");
    pthread_mutex_init(&recipe->mutex, NULL);
    atomic_init(&recipe->holders, 1);
    recipe->reading = *reading;
    enum tfos_status status = tfos_arrow_schema_copy(schema, &recipe->schema, err);
    if (status < 0)
        tfos__recipe_release(recipe);
    else
        *out = recipe;
    return status;
}

void tfos__recipe_hold(struct tfos__recipe *recipe)
{
    atomic_fetch_add(&recipe->holders, 1);
}

void tfos__recipe_release(struct tfos__recipe *recipe)
{
    if (!recipe || atomic_fetch_sub(&recipe->holders, 1) > 1)
        return;
    tfos__arrow_schema_release(&recipe->schema);
    pthread_mutex_destroy(&recipe->mutex);
    tfos__free(recipe);
}

static void close_file(struct tfos__file_lane *lane)
{
    struct tfos__recipe *recipe = lane->recipe;
    if (lane->reader) {
        struct tfos_record_counts counts = tfos_example_reader_get_counts(lane->reader);
        pthread_mutex_lock(&recipe->mutex);
        recipe->counts.records += counts.records;
        recipe->counts.bytes += counts.bytes;
        recipe->counts.damages += counts.damages;
        recipe->counts.skipped_bytes += counts.skipped_bytes;
        pthread_mutex_unlock(&recipe->mutex);
    }
    tfos_example_reader_close(lane->reader);
    tfos_stream_close(lane->stream);
    lane->reader = NULL;
    lane->stream = NULL;
}

static enum tfos_status open_file(struct tfos__file_lane *lane, struct tfos_error *err)
{
    struct tfos_example_reader_options reading = lane->recipe->reading;
    reading.record.name = lane->paths[lane->next];
    lane->row_count = 0;
    TFOS__TRY(tfos_stream_open_reader(reading.record.name, &lane->stream, err));
    TFOS__TRY(tfos_example_reader_open(lane->stream, &lane->recipe->schema, &reading, &lane->reader,
                                       err));
    return TFOS_OK;
}

enum tfos_status tfos__file_lane_next(struct tfos__file_lane *lane, struct tfos_feed_item *item,
                                      struct tfos_error *err)
{
    struct tfos_feed_item batch = {.kind = TFOS_FEED_BATCH, .feed = 1};
    enum tfos_status status = TFOS_END;
    while (status == TFOS_END && lane->next < lane->path_count) {
        status = lane->reader ? TFOS_OK : open_file(lane, err);
        if (status < 0) {
            close_file(lane);
            return status;
        }
        status = tfos_example_reader_next(lane->reader, &batch.array, err);
        if (status == TFOS_END) {
            close_file(lane);
            lane->next += lane->step;
        }
    }
    if (status != TFOS_OK)
        return status;
    status = tfos_arrow_schema_copy(&lane->recipe->schema, &batch.schema, err);
    if (status < 0) {
        batch.array.release(&batch.array);
        return status;
    }
    batch.partition = lane->next;
    batch.first_row = lane->row_count;
    lane->row_count += batch.array.length;
    *item = batch;
    return TFOS_OK;
}

void tfos__file_lane_clear(struct tfos__file_lane *lane)
{
    close_file(lane);
}
