// SPDX-License-Identifier: Apache-2.0
/// The interface of record for other modules of the library, beside the public headers.
#ifndef TFOS_RECORD_RECORD_H
#define TFOS_RECORD_RECORD_H

#include <tfos/example_file.h>
#include <tfos/record.h>

#define TFOS__RECORD_HEAD_SIZE 12          ///< bytes of a record's size and its checksum
#define TFOS__RECORD_FRAME_SIZE 16         ///< bytes around a record: that, and its checksum
#define TFOS__RECORD_SIZE_LIMIT (1u << 30) ///< bytes of a record, where no option says otherwise

/// CRC-32C (Castagnoli) of the bytes whose checksum `crc` is, followed by `data`; 0 is that of no
/// bytes.
uint32_t tfos__record_crc32c(uint32_t crc, const void *data, size_t size);

/// The offset of the frame of `record`, which the last call returned.
uint64_t tfos__record_reader_offset(const struct tfos_record_reader *reader,
                                    struct tfos_view record);

/// The position behind the records of the last call, or before them if it failed.
struct tfos_record_position tfos__record_reader_tell(const struct tfos_record_reader *reader);

/// The position behind the batches returned so far. Another reader with this as `record.start`
/// returns the same batches as this one would.
struct tfos_record_position
tfos__record_example_reader_tell(const struct tfos_example_reader *reader);

/// Bytes of the values of the rows so far, in the columns.
uint64_t tfos__record_decoder_size(const struct tfos_example_decoder *decoder);

#endif
