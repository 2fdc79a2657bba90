// SPDX-License-Identifier: Apache-2.0
/// Files of Examples as batches of columns: <tfos/record.h> and <tfos/example.h> together, with one
/// rule for damage of either kind. A handle belongs to one thread at a time.
#ifndef TFOS_EXAMPLE_FILE_H
#define TFOS_EXAMPLE_FILE_H

#include <tfos/example.h>
#include <tfos/record.h>

struct tfos_example_reader_options {
    /// How frames are read; `mode` is for records that are not what the schema asks for too: they
    /// are damage of kind TFOS_RECORD_BAD_EXAMPLE.
    struct tfos_record_reader_options record;
    enum tfos_record_type type;
    int64_t batch_rows; ///< rows of a batch at most; 0: 4,096
    int64_t batch_size; ///< bytes of records in a batch, or of the values made of them, whichever
                        ///< are more, about; 0: 4 MiB
    bool ignore_case;   ///< as in struct tfos_example_decoder_options, and the next
    enum tfos_type_names type_names;
};

struct tfos_example_reader;

/// Starts to read columns of `schema` from `stream`, which stays the caller's and must outlive the
/// reader. `schema` stays the caller's and is copied.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_example_reader_open(struct tfos_stream *stream, const struct ArrowSchema *schema,
                         const struct tfos_example_reader_options *options,
                         struct tfos_example_reader **out, struct tfos_error *err);

/// The next batch, of one row at least, as a struct array that the caller owns. END at the end.
/// CORRUPT names file, offset, and column or kind of damage; every call after it gives the same.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_example_reader_next(struct tfos_example_reader *reader, struct ArrowArray *out,
                         struct tfos_error *err);

/// What was read so far; skipped records do not count as records.
TFOS_API struct tfos_record_counts
tfos_example_reader_get_counts(const struct tfos_example_reader *reader);

/// NULL is accepted. The stream stays open.
TFOS_API void tfos_example_reader_close(struct tfos_example_reader *reader);

/// Adds the stream's first `limit` records, or all (limit 0); `*seen` is their number. Modes as
/// above.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_schema_inference_read(struct tfos_schema_inference *inference, struct tfos_stream *stream,
                           const struct tfos_record_reader_options *options, uint64_t limit,
                           uint64_t *seen, struct tfos_error *err);

struct tfos_example_writer_options {
    struct tfos_record_writer_options record;
    struct tfos_example_encoder_options example;
};

struct tfos_example_writer;

/// Starts to write batches of `schema` to `stream`, which stays the caller's and must outlive the
/// writer.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_example_writer_open(struct tfos_stream *stream, const struct ArrowSchema *schema,
                         const struct tfos_example_writer_options *options,
                         struct tfos_example_writer **out, struct tfos_error *err);

/// Appends a record for each row. INVALID names the column, and the row by its number in the file,
/// from 0; nothing of the batch is written then. After another failure only close() is of use.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_example_writer_append(struct tfos_example_writer *writer, const struct ArrowArray *batch,
                           struct tfos_error *err);

/// Writes what is still buffered and finishes the stream.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_example_writer_finish(struct tfos_example_writer *writer, struct tfos_error *err);

/// As tfos_example_encoder_losses(), until the next call on the writer.
TFOS_API const struct tfos_example_loss *
tfos_example_writer_losses(const struct tfos_example_writer *writer, size_t *count);

/// NULL is accepted. Without a finish() before, what was written is not whole.
TFOS_API void tfos_example_writer_close(struct tfos_example_writer *writer);

#endif
