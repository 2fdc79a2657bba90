// SPDX-License-Identifier: Apache-2.0
#include "dataset/file_lane.h"

#include "arrow/arrow.h"
#include "base/fail.h"
#include "record/record.h"

static void close_file(struct tfos__file_lane *lane)
{
    if (lane->reader)
        tfos__recipe_count(lane->order->recipe, tfos_example_reader_get_counts(lane->reader));
    tfos_example_reader_close(lane->reader);
    tfos_stream_close(lane->stream);
    lane->reader = NULL;
    lane->stream = NULL;
}

static enum tfos_status open_file(struct tfos__file_lane *lane, struct tfos_error *err)
{
    const struct tfos__file *file = &lane->order->files[lane->place.file];
    struct tfos_example_reader_options reading = lane->order->recipe->reading;
    reading.record.name = file->path;
    reading.record.start = lane->place.position;
    reading.record.residue = file->residue;
    reading.record.stride = file->stride;
    TFOS__TRY(tfos_stream_open_reader(file->path, &lane->stream, err));
    TFOS__TRY(tfos_example_reader_open(lane->stream, &lane->order->recipe->schema, &reading,
                                       &lane->reader, err));
    return TFOS_OK;
}

enum tfos_status tfos__file_lane_next(struct tfos__file_lane *lane, struct tfos_feed_item *item,
                                      struct tfos_error *err)
{
    struct tfos_feed_item batch = {.kind = TFOS_FEED_BATCH, .feed = 1};
    struct tfos__file_place *place = &lane->place;
    enum tfos_status status = TFOS_END;
    while (status == TFOS_END && place->file < lane->order->file_count) {
        status = lane->reader ? TFOS_OK : open_file(lane, err);
        if (status < 0) {
            close_file(lane);
            return status;
        }
        status = tfos_example_reader_next(lane->reader, &batch.array, err);
        if (status == TFOS_END)
            tfos__file_lane_move(lane, (struct tfos__file_place){.file = place->file + lane->step});
    }
    if (status != TFOS_OK)
        return status;
    status = tfos_arrow_schema_copy(&lane->order->recipe->schema, &batch.schema, err);
    if (status < 0) {
        batch.array.release(&batch.array);
        return status;
    }
    const struct tfos__file *file = &lane->order->files[place->file];
    batch.partition = place->file;
    batch.first_row = file->residue + place->row * file->stride;
    place->row += batch.array.length;
    place->position = tfos__record_example_reader_tell(lane->reader);
    *item = batch;
    return TFOS_OK;
}

void tfos__file_lane_move(struct tfos__file_lane *lane, struct tfos__file_place place)
{
    close_file(lane);
    lane->place = place;
}
