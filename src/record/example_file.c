// SPDX-License-Identifier: Apache-2.0
// The reader takes records from the frame reader as views, which live until the next call on that.
// What a full batch has no room for waits for the next batch. The writer encodes a batch as a whole
// before it writes any of it.
#include <tfos/example_file.h>

#include "base/fail.h"
#include "base/memory.h"
#include "record/record.h"

#define DEFAULT_BATCH_ROWS 4096
// Bytes. Columns of this size stay in a cache, and malloc() keeps their blocks, which grow to less
// than 32 MiB: larger ones come from the system anew, at a fault for each page.
#define DEFAULT_BATCH_SIZE (4 << 20)
#define VIEW_COUNT 256
// The decoded values are measured whenever such a part of a batch's bytes has been read.
#define PARTS 16

// ---- reading

struct tfos_example_reader {
    struct tfos_record_reader *frames;    ///< owned
    struct tfos_example_decoder *decoder; ///< owned
    int64_t batch_rows, batch_size;
    struct tfos_view views[VIEW_COUNT]; ///< records of the last call on `frames`
    size_t view_count, view_at;
    uint64_t residue;
    bool has_stopped; ///< at a record behind which nothing may be read
    struct tfos_record_position stop;
};

enum tfos_status tfos_example_reader_open(struct tfos_stream *stream,
                                          const struct ArrowSchema *schema,
                                          const struct tfos_example_reader_options *options,
                                          struct tfos_example_reader **out, struct tfos_error *err)
{
    static const struct tfos_example_reader_options defaults;
    struct tfos_example_reader *reader = tfos__alloc(1, sizeof(*reader));
    if (!reader)
        return tfos__no_memory(err, "record", "a reader");
    if (!options)
        options = &defaults;
    reader->batch_rows = options->batch_rows > 0 ? options->batch_rows : DEFAULT_BATCH_ROWS;
    reader->batch_size = options->batch_size > 0 ? options->batch_size : DEFAULT_BATCH_SIZE;
    reader->residue = options->record.residue;
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

// How many of the views the batch, which has `size` bytes of records, takes up to `limit` bytes.
static size_t choose(const struct tfos_example_reader *reader, int64_t size, int64_t limit)
{
    int64_t rows = tfos_example_decoder_row_count(reader->decoder);
    size_t end = reader->view_at;
    for (; end < reader->view_count && rows < reader->batch_rows && size < limit; end++, rows++)
        size += (int64_t)reader->views[end].size;
    return end - reader->view_at;
}

static struct tfos_record_position position_of(const struct tfos_example_reader *reader,
                                               size_t view)
{
    return (struct tfos_record_position){
        tfos__record_reader_offset(reader->frames, reader->views[view]), reader->residue};
}

// Rejects the next record for the reason in `*err`.
static enum tfos_status reject(struct tfos_example_reader *reader, struct tfos_error *err)
{
    size_t view = reader->view_at++;
    enum tfos_status status = tfos_record_reader_reject(reader->frames, reader->views[view], err);
    if (status == TFOS_OK)
        return TFOS_OK;
    // The frame reader returns the same from now on; the views behind this one are not used.
    reader->has_stopped = true;
    reader->stop = position_of(reader, view);
    reader->view_at = reader->view_count;
    return status;
}

// Adds up to `limit` bytes of records to the `*size` bytes that the batch has. AGAIN: it is full.
static enum tfos_status add(struct tfos_example_reader *reader, int64_t *size, int64_t limit,
                            struct tfos_error *err)
{
    size_t chosen = choose(reader, *size, limit), taken = 0;
    if (chosen == 0)
        return TFOS_AGAIN;
    struct tfos_error cause;
    enum tfos_status status = tfos_example_decoder_append(
        reader->decoder, reader->views + reader->view_at, chosen, &taken, &cause);
    for (size_t end = reader->view_at + taken; reader->view_at < end; reader->view_at++)
        *size += (int64_t)reader->views[reader->view_at].size;
    if (status == TFOS_OK)
        return taken < chosen ? TFOS_AGAIN : TFOS_OK;
    if (status == TFOS_CORRUPT || status == TFOS_INVALID)
        status = reject(reader, &cause);
    if (status < 0 && err)
        *err = cause;
    return status;
}

// Adds rows until the batch is full. END: the file has ended. Where a batch ends depends on the
// records alone, not on how they were buffered, so that a reader that starts at the end of one
// makes the same batches from there on.
static enum tfos_status fill(struct tfos_example_reader *reader, struct tfos_error *err)
{
    int64_t part = reader->batch_size / PARTS + 1, size = 0, limit = part;
    enum tfos_status status = TFOS_OK;
    while (status == TFOS_OK && size < reader->batch_size) {
        if (reader->view_at == reader->view_count) {
            reader->view_at = reader->view_count = 0;
            status = tfos_record_reader_next_batch(reader->frames, reader->views, VIEW_COUNT,
                                                   &reader->view_count, err);
            if (status != TFOS_OK)
                return status;
        }
        status = add(reader, &size, limit, err);
        if (status == TFOS_OK && size >= limit) {
            limit = size + part < reader->batch_size ? size + part : reader->batch_size;
            if (tfos__record_decoder_size(reader->decoder) >= (uint64_t)reader->batch_size)
                return TFOS_OK;
        }
    }
    return status == TFOS_AGAIN ? TFOS_OK : status;
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

struct tfos_record_position
tfos__record_example_reader_tell(const struct tfos_example_reader *reader)
{
    if (reader->has_stopped)
        return reader->stop;
    if (reader->view_at < reader->view_count)
        return position_of(reader, reader->view_at);
    return tfos__record_reader_tell(reader->frames);
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

// ---- writing

struct tfos_example_writer {
    struct tfos_example_encoder *encoder; ///< owned
    struct tfos_record_writer *frames;    ///< owned
};

enum tfos_status tfos_example_writer_open(struct tfos_stream *stream,
                                          const struct ArrowSchema *schema,
                                          const struct tfos_example_writer_options *options,
                                          struct tfos_example_writer **out, struct tfos_error *err)
{
    static const struct tfos_example_writer_options defaults;
    struct tfos_example_writer *writer = tfos__alloc(1, sizeof(*writer));
    if (!writer)
        return tfos__no_memory(err, "record", "a writer");
    if (!options)
        options = &defaults;
    enum tfos_status status =
        tfos_example_encoder_open(schema, &options->example, &writer->encoder, err);
    if (status == TFOS_OK)
        status = tfos_record_writer_open(stream, &options->record, &writer->frames, err);
    if (status < 0)
        tfos_example_writer_close(writer);
    else
        *out = writer;
    return status;
}

enum tfos_status tfos_example_writer_append(struct tfos_example_writer *writer,
                                            const struct ArrowArray *batch, struct tfos_error *err)
{
    struct tfos_view frames;
    TFOS__TRY(tfos_example_encoder_encode(writer->encoder, batch, &frames, NULL, err));
    return tfos_record_writer_append_frames(writer->frames, frames, err);
}

enum tfos_status tfos_example_writer_finish(struct tfos_example_writer *writer,
                                            struct tfos_error *err)
{
    return tfos_record_writer_finish(writer->frames, err);
}

const struct tfos_example_loss *tfos_example_writer_losses(const struct tfos_example_writer *writer,
                                                           size_t *count)
{
    return tfos_example_encoder_losses(writer->encoder, count);
}

void tfos_example_writer_close(struct tfos_example_writer *writer)
{
    if (!writer)
        return;
    tfos_record_writer_close(writer->frames);
    tfos_example_encoder_close(writer->encoder);
    tfos__free(writer);
}
