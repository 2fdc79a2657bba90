// SPDX-License-Identifier: Apache-2.0
// Frames to columns. Records are taken from the frame reader in views, which live until its next
// call, so a decoder that is full keeps those it has not taken yet for the next batch.
#include <tfos/example_file.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/record.h"

#define DEFAULT_BATCH_ROWS 4096
// Bytes. Columns of this size stay in a cache, and malloc() keeps their blocks, which grow to less
// than 32 MiB: larger ones come from the system anew, at a fault for each page.
#define DEFAULT_BATCH_SIZE (4 << 20)
#define VIEW_COUNT 256

struct tfos_example_reader {
    struct tfos_record_reader *frames;    ///< owned
    struct tfos_example_decoder *decoder; ///< owned
    int64_t batch_rows, batch_size;
    struct tfos_view views[VIEW_COUNT]; ///< records of the last call on `frames`
    size_t view_count, view_at;
};

enum tfos_status tfos_example_reader_open(struct tfos_stream *stream,
                                          const struct ArrowSchema *schema,
                                          const struct tfos_example_reader_options *options,
                                          struct tfos_example_reader **out, struct tfos_error *err)
{
    static const struct tfos_example_reader_options defaults;
    struct tfos_example_reader *reader = tfos__alloc(1, sizeof *reader);
    if (!reader)
        return tfos__no_memory(err, "record", "a reader");
    if (!options)
        options = &defaults;
    reader->batch_rows = options->batch_rows > 0 ? options->batch_rows : DEFAULT_BATCH_ROWS;
    reader->batch_size = options->batch_size > 0 ? options->batch_size : DEFAULT_BATCH_SIZE;
    const struct tfos_example_decoder_options decoding = {.type = options->type,
                                                          .ignore_case = options->ignore_case,
                                                          .type_names = options->type_names};
    enum tfos_status status = tfos_example_decoder_open(schema, &decoding, &reader->decoder, err);
    if (status == TFOS_OK)
        status = tfos_record_reader_open(stream, &options->record, &reader->frames, err);
    if (status < 0)
        tfos_example_reader_close(reader);
    else
        *out = reader;
    return status;
}

// How many of the records at hand the batch, which has `*size` bytes of them, still takes; adds
// theirs.
static size_t choose(const struct tfos_example_reader *reader, int64_t *size)
{
    int64_t rows = tfos_example_decoder_row_count(reader->decoder);
    size_t end = reader->view_at;
    for (; end < reader->view_count && rows < reader->batch_rows && *size < reader->batch_size;
         end++, rows++)
        *size += (int64_t)reader->views[end].size;
    return end - reader->view_at;
}

// Adds rows until the batch is full. END: the file has ended.
static enum tfos_status fill(struct tfos_example_reader *reader, struct tfos_error *err)
{
    int64_t size = 0;
    for (;;) {
        if (reader->view_at == reader->view_count) {
            reader->view_at = reader->view_count = 0;
            enum tfos_status status = tfos_record_reader_next_batch(
                reader->frames, reader->views, VIEW_COUNT, &reader->view_count, err);
            if (status != TFOS_OK)
                return status;
        }
        size_t chosen = choose(reader, &size), taken = 0;
        if (chosen == 0)
            return TFOS_OK;
        struct tfos_error cause;
        enum tfos_status status = tfos_example_decoder_append(
            reader->decoder, reader->views + reader->view_at, chosen, &taken, &cause);
        reader->view_at += taken;
        if (status == TFOS_OK && taken < chosen)
            return TFOS_OK;
        if (tfos__record_decoder_size(reader->decoder) >= (uint64_t)reader->batch_size)
            size = reader->batch_size; // full
        if (status == TFOS_CORRUPT || status == TFOS_INVALID)
            status =
                tfos_record_reader_reject(reader->frames, reader->views[reader->view_at++], &cause);
        if (status == TFOS_OK)
            continue;
        // The frame reader goes on giving this; what it gave before is not looked at any more.
        reader->view_at = reader->view_count;
        if (status < 0 && err)
            *err = cause;
        return status;
    }
}

enum tfos_status tfos_example_reader_next(struct tfos_example_reader *reader,
                                          struct ArrowArray *out, struct tfos_error *err)
{
    enum tfos_status status = fill(reader, err);
    // Rows before a fault come first; it is met again by the next call.
    if (tfos_example_decoder_row_count(reader->decoder) > 0)
        return tfos_example_decoder_take(reader->decoder, out, err);
    return status;
}

struct tfos_record_counts tfos_example_reader_get_counts(const struct tfos_example_reader *reader)
{
    struct tfos_record_counts counts = tfos_record_reader_get_counts(reader->frames);
    for (size_t i = reader->view_at; i < reader->view_count; i++) {
        counts.records--;
        counts.bytes -= reader->views[i].size;
    }
    return counts;
}

void tfos_example_reader_close(struct tfos_example_reader *reader)
{
    if (!reader)
        return;
    tfos_record_reader_close(reader->frames);
    tfos_example_decoder_close(reader->decoder);
    tfos__free(reader);
}
