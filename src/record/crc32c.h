// SPDX-License-Identifier: Apache-2.0
/// The ways to compute CRC-32C; tfos__record_crc32c() takes the fastest one that the CPU has.
#ifndef TFOS_RECORD_CRC32C_H
#define TFOS_RECORD_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

/// The masked form in which TFRecord files hold a checksum, so that one of bytes with checksums in
/// them is as good as any.
uint32_t tfos__record_crc32c_mask(uint32_t crc);

/// Takes and gives the checksum inverted, as the register of a CRC has it.
typedef uint32_t tfos__crc32c_update(uint32_t state, const uint8_t *data, size_t size);

/// Tables of eight bytes at a time, on any CPU.
uint32_t tfos__crc32c_by_tables(uint32_t state, const uint8_t *data, size_t size);

/// The CPU's own instruction (SSE4.2, ARMv8 CRC), or NULL where it has none.
tfos__crc32c_update *tfos__crc32c_instruction(void);

#endif
