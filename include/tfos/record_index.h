// SPDX-License-Identifier: Apache-2.0
/// Where the records of a TFRecord file are, and reading them in any order. An index is kept as
/// text, a line "OFFSET SIZE" for each record: of its frame, in bytes, from the file's beginning,
/// checksums included. This is the form of DALI's tfrecord2idx and of the tfrecord package of PyPI.
///
/// Only plain files have one: what a compressed file holds cannot be reached from its middle. An
/// index is whole: its first record begins at 0, each other where the one before ends. A handle
/// belongs to one thread at a time; an index that does not change may be read by any number.
#ifndef TFOS_RECORD_INDEX_H
#define TFOS_RECORD_INDEX_H

#include <stdint.h>
#include <tfos/export.h>
#include <tfos/record.h>
#include <tfos/status.h>
#include <tfos/stream.h>

/// A record's frame.
struct tfos_record_place {
    uint64_t offset; ///< bytes
    uint64_t size;   ///< bytes, 16 more than the record's
};

struct tfos_record_index;

/// Reads a file to its end, every checksum with it, and makes its index. `stream` need not seek.
/// `options` as for a reader, of the mode STRICT and without a range. UNSUPPORTED: the file is
/// compressed. CORRUPT: it is damaged; names file, offset and kind. The caller owns `*out`.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_index_scan(struct tfos_stream *stream, const struct tfos_record_reader_options *options,
                       struct tfos_record_index **out, struct tfos_error *err);

/// Reads an index from its text. `name` is that of the text, for messages; NULL: "the index".
/// CORRUPT names the line that is no place of a record, or does not begin where the one before
/// ends. The caller owns `*out`.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_record_index_load(struct tfos_stream *stream,
                                                                 const char *name,
                                                                 struct tfos_record_index **out,
                                                                 struct tfos_error *err);

/// Writes an index as text. The stream is not finished.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_index_save(const struct tfos_record_index *index, struct tfos_stream *stream,
                       struct tfos_error *err);

/// How many records there are.
TFOS_API uint64_t tfos_record_index_count(const struct tfos_record_index *index);

/// Where record `number` is, from 0 to the count, itself excluded.
TFOS_API struct tfos_record_place tfos_record_index_get(const struct tfos_record_index *index,
                                                        uint64_t number);

/// NULL is accepted.
TFOS_API void tfos_record_index_close(struct tfos_record_index *index);

/// Reads records by their number.
struct tfos_record_picker;

/// `stream` and `index` stay the caller's and must outlive the picker. Of the options `name` and
/// `max_record_size` count. INVALID: the stream cannot seek. CORRUPT: the file does not end where
/// the index does, so that it is another file's or older than the file.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_picker_open(struct tfos_stream *stream, const struct tfos_record_index *index,
                        const struct tfos_record_reader_options *options,
                        struct tfos_record_picker **out, struct tfos_error *err);

/// Record `number`: a view that lives until the next call on the picker. Both checksums are
/// checked. CORRUPT names file, offset and kind of damage, or says that the index is not this
/// file's.
/// INVALID: there is no such record. After a failure the picker can be used as before.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_record_picker_get(struct tfos_record_picker *picker,
                                                                 uint64_t number,
                                                                 struct tfos_view *record,
                                                                 struct tfos_error *err);

/// NULL is accepted. The stream stays open.
TFOS_API void tfos_record_picker_close(struct tfos_record_picker *picker);

#endif
