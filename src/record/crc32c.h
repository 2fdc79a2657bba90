// SPDX-License-Identifier: Apache-2.0
/// CRC-32C (Castagnoli), by the fastest implementation that the CPU has.
#ifndef TFOS_RECORD_CRC32C_H
#define TFOS_RECORD_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

/// The masked form in which TFRecord files hold a checksum, so that the checksum of bytes that hold
/// checksums is as good as any.
uint32_t tfos__record_crc32c_mask(uint32_t crc);

/// Whether the 4 bytes at `place`, little-endian, are the masked checksum of `data`.
bool tfos__record_crc32c_is_masked(const uint8_t *place, const void *data, size_t size);

/// Takes and returns the inverted checksum, as the register of a CRC has it.
typedef uint32_t tfos__record_crc32c_update(uint32_t state, const uint8_t *data, size_t size);

/// By tables, eight bytes at a time, on any CPU.
uint32_t tfos__record_crc32c_by_tables(uint32_t state, const uint8_t *data, size_t size);

/// The CPU's own instruction (SSE4.2, ARMv8 CRC), or NULL where it has none.
tfos__record_crc32c_update *tfos__record_crc32c_instruction(void);

#endif
