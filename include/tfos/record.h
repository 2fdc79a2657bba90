// SPDX-License-Identifier: Apache-2.0
/// TFRecord files: frames with checksums, read and written through a stream, plain or compressed.
/// The format is that of TensorFlow's tensorflow/core/lib/io/record_writer.h: for each record its
/// size (8 bytes, little-endian), the masked CRC-32C of those 8 bytes (4), its bytes, their masked
/// CRC-32C (4). Compressed is the whole file, by gzip (RFC 1952, of one or several members) or zlib
/// (RFC 1950).
///
/// A handle belongs to one thread at a time. Offsets are bytes from the beginning of the file, of a
/// compressed one from the beginning of what it holds.
#ifndef TFOS_RECORD_H
#define TFOS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/export.h>
#include <tfos/status.h>
#include <tfos/stream.h>

/// The parts of a record in a file around its bytes: head, bytes, tail.
struct tfos_record_frame {
    uint8_t head[12]; ///< size of the record (8, little-endian) and the masked checksum of that (4)
    uint8_t tail[4];  ///< masked checksum of the bytes
};

/// Makes the frame of a record, which is not copied: all three parts go into one writev().
TFOS_API void tfos_record_frame_init(struct tfos_record_frame *frame, const void *data,
                                     size_t size);

enum tfos_compression {
    TFOS_COMPRESSION_AUTO, ///< reading: as the file's first bytes say; writing: none
    TFOS_COMPRESSION_NONE,
    TFOS_COMPRESSION_GZIP,
    TFOS_COMPRESSION_ZLIB
};

/// The compression in which a file of this name is written by default: gzip if it ends in ".gz",
/// else none. UNSUPPORTED: the name is that of bzip2, zstd, xz, lz4, snappy or lzo.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_compression_of_name(const char *name, enum tfos_compression *compression,
                                struct tfos_error *err);

/// Whether a file whose name belongs to one of Hadoop's codecs is to be read through that codec.
/// `first` is its first 12 bytes, or all that it has. False for what a reader reads by itself, and
/// for what is known to be of another format, which a reader's error names.
TFOS_API bool tfos_record_is_for_codec(const char *name, struct tfos_view first);

/// What is wrong with a file.
enum tfos_record_damage_kind {
    TFOS_RECORD_BAD_SIZE_CHECKSUM, ///< a frame's size and its checksum do not match
    TFOS_RECORD_BAD_CHECKSUM,      ///< a record's bytes and their checksum do not match
    TFOS_RECORD_TOO_LARGE,         ///< a size with a good checksum, over `max_record_size`
    TFOS_RECORD_CUT,               ///< the file ends within a frame
    TFOS_RECORD_BAD_COMPRESSION,   ///< what gzip or zlib cannot read, or a compressed file that is
                                   ///< cut
    TFOS_RECORD_BAD_EXAMPLE        ///< a record that is no message of the kind asked for
};

/// "the checksum of a record's size is wrong" and so on; static storage.
TFOS_API const char *tfos_record_damage_text(enum tfos_record_damage_kind kind);

struct tfos_record_damage {
    enum tfos_record_damage_kind kind;
    uint64_t offset; ///< of the damaged frame
    uint64_t size;   ///< bytes skipped because of it; 0 when reading ends there
    const char *message;
};

/// What a reader does about damage.
enum tfos_record_mode {
    TFOS_RECORD_STRICT,      ///< the call fails with CORRUPT, and every call after it
    TFOS_RECORD_SKIP_RECORD, ///< reading continues at the next frame with right checksums
    TFOS_RECORD_SKIP_FILE    ///< it is taken for the file's end
};

/// A place between two records of a file. All zero: its beginning.
struct tfos_record_position {
    uint64_t offset; ///< where the next frame begins
    uint64_t phase;  ///< number of the next record in the file, modulo the reader's `stride`
};

struct tfos_record_reader_options {
    enum tfos_compression compression;
    enum tfos_record_mode mode;
    uint64_t max_record_size; ///< bytes; 0: 1 GiB
    const char *name;         ///< of the file, for messages; NULL: "the file"; copied
    /// Reads only the records whose frames begin in [begin, end); 0 as `end`: to the file's end. A
    /// `begin` other than 0 need not be a frame's; the first whole frame from there on is found by
    /// its checksums. The stream must be able to seek, and not be compressed.
    uint64_t begin, end;
    /// Where reading begins: behind a record of the same file, as read with the same
    /// `stride`. A compressed file is decompressed up to there.
    struct tfos_record_position start;
    /// Returns only the records whose number in the file, from 0, modulo `stride` is `residue`;
    /// `stride` 0: all. The frames of the others are checked too.
    uint64_t residue, stride;
    /// Called for each damage that a mode skips; may be NULL.
    void (*on_damage)(void *context, const struct tfos_record_damage *damage);
    void *context;
};

/// What a reader has seen so far.
struct tfos_record_counts {
    uint64_t records;
    uint64_t bytes;         ///< of the records, without their frames
    uint64_t damages;       ///< places where something was skipped
    uint64_t skipped_bytes; ///< frames included
};

struct tfos_record_reader;

/// Starts to read from `stream`, which stays the caller's and must outlive the reader. Reads its
/// first bytes. INVALID: options that do not go together, or the file ends before `start`. CORRUPT:
/// it is not what `compression` says, in a mode that is strict. UNSUPPORTED: by its first bytes or
/// its name it is compressed by something else than gzip or zlib.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_reader_open(struct tfos_stream *stream,
                        const struct tfos_record_reader_options *options,
                        struct tfos_record_reader **out, struct tfos_error *err);

/// The next record: a view that lives until the next call on the reader. END at the end. CORRUPT
/// names file, offset and kind of damage.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_record_reader_next(struct tfos_record_reader *reader,
                                                                  struct tfos_view *record,
                                                                  struct tfos_error *err);

/// The next records, as many as are in memory, at least one and at most
/// `capacity`: views that live until the next call on the reader.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_reader_next_batch(struct tfos_record_reader *reader, struct tfos_view *records,
                              size_t capacity, size_t *count, struct tfos_error *err);

TFOS_API struct tfos_record_counts
tfos_record_reader_get_counts(const struct tfos_record_reader *reader);

/// Rejects a record of the last call for the reason in `*err`, whose message gets the file and the
/// offset before it. By the reader's mode: OK, the record is reported and counted as damage, and
/// the records behind it can be used; END, it is reported, and the file ends before it; CORRUPT,
/// the reader has failed. After the last two every call returns the same.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_reader_reject(struct tfos_record_reader *reader, struct tfos_view record,
                          struct tfos_error *err);

/// NULL is accepted. The stream stays open.
TFOS_API void tfos_record_reader_close(struct tfos_record_reader *reader);

struct tfos_record_writer_options {
    enum tfos_compression compression;
    int level; ///< of compression, 1 to 9; 0: 6
};

struct tfos_record_writer;

/// Starts to write to `stream`, which stays the caller's and must outlive the writer. An empty file
/// holds no record.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_writer_open(struct tfos_stream *stream,
                        const struct tfos_record_writer_options *options,
                        struct tfos_record_writer **out, struct tfos_error *err);

/// Appends `count` records. After a failure only close() is of use.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_writer_append(struct tfos_record_writer *writer, const struct tfos_view *records,
                          size_t count, struct tfos_error *err);

/// Appends whole frames, as tfos_example_encoder_encode() returns them.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_writer_append_frames(struct tfos_record_writer *writer, struct tfos_view frames,
                                 struct tfos_error *err);

/// Writes what is still buffered and finishes the stream.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_writer_finish(struct tfos_record_writer *writer, struct tfos_error *err);

/// NULL is accepted. Without a finish() before, what was written is not whole.
TFOS_API void tfos_record_writer_close(struct tfos_record_writer *writer);

#endif
