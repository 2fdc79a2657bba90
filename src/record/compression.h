// SPDX-License-Identifier: Apache-2.0
/// How a file is compressed, by its first bytes and its name.
#ifndef TFOS_RECORD_COMPRESSION_H
#define TFOS_RECORD_COMPRESSION_H

#include <tfos/record.h>

#define TFOS__COMPRESSION_FIRST_SIZE 12 // bytes that are looked at, if there are as many

/// Finds what the file `name` that begins with `first` is. UNSUPPORTED, which says what: it is
/// compressed by something else than gzip or zlib.
enum tfos_status tfos__compression_detect(const char *name, struct tfos_view first,
                                          enum tfos_compression *compression,
                                          struct tfos_error *err);

#endif
