// SPDX-License-Identifier: Apache-2.0
/// Compressed bytes through a stream, by zlib: a stream that reads and one that writes.
#ifndef TFOS_RECORD_INFLATE_H
#define TFOS_RECORD_INFLATE_H

#include <tfos/record.h>

/// A stream of what `source`, which stays the caller's, holds compressed by gzip or zlib; `first`
/// is what was read of it before, and is copied. Reading gives CORRUPT, after all that could be
/// read, where the compressed bytes are damaged or end too early.
enum tfos_status tfos__inflate_open(struct tfos_stream *source, struct tfos_view first,
                                    enum tfos_compression compression, struct tfos_stream **out,
                                    struct tfos_error *err);

/// A stream that compresses what is written to it into `target`, which stays the caller's. finish()
/// ends the compressed bytes and then `target`.
enum tfos_status tfos__deflate_open(struct tfos_stream *target, enum tfos_compression compression,
                                    int level, struct tfos_stream **out, struct tfos_error *err);

#endif
