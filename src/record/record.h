// SPDX-License-Identifier: Apache-2.0
/// What the library calls of record beyond its public headers.
#ifndef TFOS_RECORD_RECORD_H
#define TFOS_RECORD_RECORD_H

#include <tfos/example_file.h>
#include <tfos/record.h>

/// CRC-32C (Castagnoli) of the bytes whose checksum `crc` is, followed by `data`; 0 is that of no
/// bytes.
uint32_t tfos__record_crc32c(uint32_t crc, const void *data, size_t size);

/// Where the frame of a record of the last call begins. `record` is one that it gave out.
uint64_t tfos__record_reader_offset(const struct tfos_record_reader *reader,
                                    struct tfos_view record);

/// The place behind the records of the last call, or before them, if it failed.
struct tfos_record_position tfos__record_reader_tell(const struct tfos_record_reader *reader);

/// The place behind the batches that were given out: for `record.start` of another reader, which
/// then gives the same batches as this one would.
struct tfos_record_position
tfos__record_example_reader_tell(const struct tfos_example_reader *reader);

/// Bytes of the values of the rows so far, as they stand in the columns.
uint64_t tfos__record_decoder_size(const struct tfos_example_decoder *decoder);

#endif
