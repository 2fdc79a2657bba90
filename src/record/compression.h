// SPDX-License-Identifier: Apache-2.0
/// The compression of files: which one a file has, and streams that decompress and compress.
#ifndef TFOS_RECORD_COMPRESSION_H
#define TFOS_RECORD_COMPRESSION_H

#include <tfos/record.h>

#define TFOS__COMPRESSION_FIRST_SIZE 12 ///< bytes that are examined, if the file has as many

/// Finds the compression of the file `name` that begins with `first`. UNSUPPORTED names another one
/// than gzip and zlib.
enum tfos_status tfos__record_compression_detect(const char *name, struct tfos_view first,
                                                 enum tfos_compression *compression,
                                                 struct tfos_error *err);

/// A stream of what `source`, which stays the caller's, holds compressed by gzip or zlib. `first`
/// is what was read of it before, and is copied. Reading returns CORRUPT, after all that could be
/// read, where the compressed bytes are damaged or end too early.
enum tfos_status tfos__record_inflate_open(struct tfos_stream *source, struct tfos_view first,
                                           enum tfos_compression compression,
                                           struct tfos_stream **out, struct tfos_error *err);

/// A stream that compresses what is written to it into `target`, which stays the caller's. finish()
/// ends the compressed bytes and then `target`.
enum tfos_status tfos__record_deflate_open(struct tfos_stream *target,
                                           enum tfos_compression compression, int level,
                                           struct tfos_stream **out, struct tfos_error *err);

#endif
