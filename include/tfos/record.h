// SPDX-License-Identifier: Apache-2.0
/// TFRecord files: their checksum and their frames.
#ifndef TFOS_RECORD_H
#define TFOS_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <tfos/export.h>

/// CRC-32C (Castagnoli) of the bytes whose checksum `crc` is, followed by `data`; 0 is that of no
/// bytes.
TFOS_API uint32_t tfos_crc32c(uint32_t crc, const void *data, size_t size);

/// The masked form in which TFRecord files hold a checksum, so that one of bytes with checksums in
/// them is as good as any.
TFOS_API uint32_t tfos_crc32c_mask(uint32_t crc);

/// What stands around a record's bytes in a file: head, bytes, tail.
struct tfos_record_frame {
    uint8_t head[12]; ///< size of the record (8, little-endian) and the masked checksum of that (4)
    uint8_t tail[4];  ///< masked checksum of the bytes
};

/// Makes the frame of a record, which is not copied: all three parts go into one writev().
TFOS_API void tfos_record_frame_init(struct tfos_record_frame *frame, const void *data,
                                     size_t size);

#endif
