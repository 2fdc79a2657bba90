// SPDX-License-Identifier: Apache-2.0
// Values are compared by their bits: whatever has changed a row, an optimizer's momentum too, it is
// found, and no gradient needs to be sparse.
#include "collective/parameter_piece.h"

#include <endian.h>
#include <string.h>

#include "base/fail.h"

#define BLOCK TFOS__COLLECTIVE_BLOCK_SIZE

int64_t tfos__collective_piece_count(int64_t count)
{
    return (count + TFOS__COLLECTIVE_PIECE_SIZE - 1) / TFOS__COLLECTIVE_PIECE_SIZE;
}

void tfos__collective_piece_init(struct tfos__collective_piece *piece, int64_t number,
                                 int64_t count)
{
    int64_t left = count - number * TFOS__COLLECTIVE_PIECE_SIZE;
    piece->number = number;
    piece->value_count = left < TFOS__COLLECTIVE_PIECE_SIZE ? left : TFOS__COLLECTIVE_PIECE_SIZE;
    piece->block_count = 0;
}

int64_t tfos__collective_piece_block_limit(const struct tfos__collective_piece *piece)
{
    return (piece->value_count + BLOCK - 1) / BLOCK;
}

static bool is_whole(const struct tfos__collective_piece *piece)
{
    return piece->block_count == tfos__collective_piece_block_limit(piece);
}

/// Where block `number` ends.
static int64_t end_of(const struct tfos__collective_piece *piece, int64_t number)
{
    int64_t end = (number + 1) * BLOCK;
    return end < piece->value_count ? end : piece->value_count;
}

int64_t tfos__collective_piece_changed_count(const struct tfos__collective_piece *piece)
{
    if (piece->block_count == 0 || is_whole(piece))
        return piece->block_count == 0 ? 0 : piece->value_count;
    int64_t last = piece->blocks[piece->block_count - 1];
    return (piece->block_count - 1) * BLOCK + end_of(piece, last) - last * BLOCK;
}

int64_t tfos__collective_piece_run(const struct tfos__collective_piece *piece, int64_t i,
                                   int64_t *begin, int64_t *count)
{
    int64_t next = i + 1;
    if (is_whole(piece)) {
        *begin = 0;
        *count = piece->value_count;
        return piece->block_count;
    }
    while (next < piece->block_count && piece->blocks[next] == piece->blocks[next - 1] + 1)
        next++;
    *begin = (int64_t)piece->blocks[i] * BLOCK;
    *count = end_of(piece, piece->blocks[next - 1]) - *begin;
    return next;
}

/// Makes `changed` what a block has changed by; false: it has not. `changed` may be `now`. A
/// constant count makes it a few instructions.
static inline bool subtract(float *changed, const float *now, const float *before, int64_t count,
                            float share)
{
    float change[BLOCK];
    uint32_t bits = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t one, other;
        memcpy(&one, now + i, sizeof(one));
        memcpy(&other, before + i, sizeof(other));
        bits |= one ^ other;
        change[i] = (now[i] - before[i]) * share;
    }
    memcpy(changed, change, (size_t)count * sizeof(float));
    return bits != 0;
}

void tfos__collective_piece_subtract(struct tfos__collective_piece *piece,
                                     const struct tfos__collective_vector *vector,
                                     const float *pulled, float share)
{
    int64_t begin = piece->number * TFOS__COLLECTIVE_PIECE_SIZE;
    int64_t limit = tfos__collective_piece_block_limit(piece);
    int64_t size;
    const float *all = (const float *)(const void *)tfos__collective_vector_at(
        vector, begin * (int64_t)sizeof(float), &size);
    if (size < piece->value_count * (int64_t)sizeof(float)) { // it is in several spans
        tfos__collective_vector_read(vector, begin, piece->value_count, piece->values);
        all = piece->values;
    }
    piece->block_count = 0;
    for (int64_t block = 0; block < limit; block++) {
        const float *before = pulled + begin + block * BLOCK, *now = all + block * BLOCK;
        int64_t count = end_of(piece, block) - block * BLOCK;
        float *changed = piece->values + piece->block_count * BLOCK; // never behind `now`
        bool has_changed = count == BLOCK ? subtract(changed, now, before, BLOCK, share)
                                          : subtract(changed, now, before, count, share);
        piece->blocks[piece->block_count] = (uint16_t)block;
        piece->block_count += has_changed ? 1 : 0;
    }
}

void tfos__collective_piece_write(const struct tfos__collective_piece *piece, float *all)
{
    const float *from = piece->values;
    int64_t begin, count;
    all += piece->number * TFOS__COLLECTIVE_PIECE_SIZE;
    for (int64_t i = 0; i < piece->block_count; from += count) {
        i = tfos__collective_piece_run(piece, i, &begin, &count);
        memcpy(all + begin, from, (size_t)count * sizeof(float));
    }
}

// ---- as it travels

size_t tfos__collective_piece_block_size(const struct tfos__collective_piece *piece)
{
    return is_whole(piece) ? 0 : (size_t)piece->block_count * sizeof(piece->blocks[0]);
}

size_t tfos__collective_piece_encode(const struct tfos__collective_piece *piece,
                                     unsigned char bytes[TFOS__COLLECTIVE_FRAME_CAPACITY])
{
    uint32_t numbers[2] = {0, 0};
    if (piece) {
        numbers[0] = htole32((uint32_t)piece->number);
        numbers[1] = htole32((uint32_t)piece->block_count);
    }
    memcpy(bytes, numbers, sizeof(numbers));
    size_t size = piece ? tfos__collective_piece_block_size(piece) : 0;
    for (size_t i = 0; i < size / 2; i++) {
        uint16_t block = htole16(piece->blocks[i]);
        memcpy(bytes + TFOS__COLLECTIVE_FRAME_SIZE + i * 2, &block, sizeof(block));
    }
    return TFOS__COLLECTIVE_FRAME_SIZE + size;
}

enum tfos_status
tfos__collective_piece_decode(struct tfos__collective_piece *piece,
                              const unsigned char bytes[TFOS__COLLECTIVE_FRAME_SIZE], int64_t count,
                              int64_t last, bool *is_end, struct tfos_error *err)
{
    uint32_t numbers[2];
    memcpy(numbers, bytes, sizeof(numbers));
    int64_t number = le32toh(numbers[0]), block_count = le32toh(numbers[1]);
    *is_end = number == 0 && block_count == 0;
    if (*is_end)
        return TFOS_OK;
    if (number <= last || number >= tfos__collective_piece_count(count))
        return tfos__fail(err, TFOS_CORRUPT, "changes of parameters have no valid piece");
    tfos__collective_piece_init(piece, number, count);
    if (block_count < 1 || block_count > tfos__collective_piece_block_limit(piece))
        return tfos__fail(err, TFOS_CORRUPT, "changes of parameters have no valid size");
    piece->block_count = block_count;
    return TFOS_OK;
}

enum tfos_status tfos__collective_piece_decode_blocks(struct tfos__collective_piece *piece,
                                                      const unsigned char *bytes,
                                                      struct tfos_error *err)
{
    int64_t limit = tfos__collective_piece_block_limit(piece), last = -1;
    for (int64_t i = 0; i < piece->block_count && !is_whole(piece); i++) {
        uint16_t block;
        memcpy(&block, bytes + i * 2, sizeof(block));
        block = le16toh(block);
        if (block <= last || block >= limit)
            return tfos__fail(err, TFOS_CORRUPT, "changes of parameters have no valid block");
        piece->blocks[i] = block;
        last = block;
    }
    return TFOS_OK;
}
