// SPDX-License-Identifier: Apache-2.0
/// Streams of bytes: what the record modules read from and write to. Callers may implement their
/// own (a file system, a socket, a Java stream). A stream is a struct that begins with this one;
/// its maker sets the functions that it supports and leaves the others NULL. A stream is read or
/// written, not both. One thread at a time.
#ifndef TFOS_STREAM_H
#define TFOS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/export.h>
#include <tfos/status.h>

/// Bytes that the holder does not own.
struct tfos_view {
    const void *data; ///< may be NULL when size is 0
    size_t size;
};

struct tfos_stream {
    /// Reads from 1 to `size` (at least 1) bytes and says how many in `*count`. END when there are
    /// no more.
    enum tfos_status (*read)(struct tfos_stream *stream, void *data, size_t size, size_t *count,
                             struct tfos_error *err);
    /// The next read() begins `offset` bytes from the stream's beginning; at or behind its end,
    /// read() gives END. NULL where a stream only goes forward.
    enum tfos_status (*seek)(struct tfos_stream *stream, uint64_t offset, struct tfos_error *err);
    /// Writes all `size` bytes.
    enum tfos_status (*write)(struct tfos_stream *stream, const void *data, size_t size,
                              struct tfos_error *err);
    /// Lets others read what was written so far, and, if `to_disk`, waits until no crash of a
    /// machine takes it away. NULL where a stream does not buffer.
    enum tfos_status (*flush)(struct tfos_stream *stream, bool to_disk, struct tfos_error *err);
    /// Ends what was written: when this is OK, others can read it. Once; close() follows.
    enum tfos_status (*finish)(struct tfos_stream *stream, struct tfos_error *err);
    /// Frees the stream. What was written without a finish() is given up, as far as the stream can.
    void (*close)(struct tfos_stream *stream);
};

/// Opens a file for reading: a path, or a URI of what <tfos/file_system.h> knows. NOT_FOUND,
/// DENIED, IO (a folder, and what the system says). The caller owns `*out` and ends it with
/// tfos_stream_close(). It can seek if the file can.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_stream_open_reader(const char *name, struct tfos_stream **out, struct tfos_error *err);

/// Opens a file for writing. A regular file appears at `name`, replacing one that is there, when
/// finish() is OK, and not before: until then it has no name, so that a process that is killed
/// leaves nothing behind, or, where the file system cannot do that, a hidden one in the same
/// folder, which begins with "." and has ".part" and a number behind. A symbolic link stays one:
/// what it leads to is replaced. The new file has mode, access list and group of the one that it
/// replaces, and its owner where this process may give it away; DENIED: that one may not be
/// written, or its group not be kept. A pipe, a device and what a process has open (/dev/stdout)
/// are written to as they are. In Hadoop's file systems the file has such a hidden name until then,
/// or none where the file system shows no file before it is whole (s3a). Hidden files of processes
/// that were killed are deleted from a folder, where it is certain that nobody writes them, with
/// the next file that is written there. The caller owns `*out`.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_stream_open_writer(const char *name, struct tfos_stream **out, struct tfos_error *err);

/// The same for a descriptor, which is borrowed: close() leaves it open.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_stream_open_fd(int fd, struct tfos_stream **out,
                                                              struct tfos_error *err);

/// Ends a stream. NULL is accepted.
TFOS_API void tfos_stream_close(struct tfos_stream *stream);

#endif
