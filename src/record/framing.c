// SPDX-License-Identifier: Apache-2.0
// A record in a TFRecord file: size (8), masked checksum of the size (4), bytes, masked checksum of
// the bytes (4); all numbers little-endian.
#include <endian.h>
#include <string.h>
#include <tfos/record.h>

#include "record/crc32c.h"

#define SIZE_BYTES 8

static void put_checksum(uint8_t *place, const void *data, size_t size)
{
    uint32_t masked = htole32(tfos__record_crc32c_mask(tfos__record_crc32c(0, data, size)));
    memcpy(place, &masked, sizeof masked);
}

void tfos_record_frame_init(struct tfos_record_frame *frame, const void *data, size_t size)
{
    uint64_t width = htole64(size);
    memcpy(frame->head, &width, SIZE_BYTES);
    put_checksum(frame->head + SIZE_BYTES, frame->head, SIZE_BYTES);
    put_checksum(frame->tail, data, size);
}
