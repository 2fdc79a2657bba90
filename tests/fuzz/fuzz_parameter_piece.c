// SPDX-License-Identifier: Apache-2.0
// Changes of parameters, of any bytes: what is taken names values that there are, and is written
// again as the same bytes.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collective/parameter_piece.h"

#define COUNT (2 * TFOS__COLLECTIVE_PIECE_SIZE + 100) // values: the last piece is short

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check(const struct tfos__collective_piece *piece)
{
    int64_t begin, count, sum = 0, end = 0;
    for (int64_t i = 0; i < piece->block_count; sum += count) {
        int64_t next = tfos__collective_piece_run(piece, i, &begin, &count);
        require(next > i && begin >= end && count > 0);
        end = begin + count;
        i = next;
    }
    require(end <= piece->value_count);
    require(piece->number * TFOS__COLLECTIVE_PIECE_SIZE + end <= COUNT);
    require(sum == tfos__collective_piece_changed_count(piece));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tfos__collective_piece piece;
    static unsigned char bytes[TFOS__COLLECTIVE_FRAME_CAPACITY],
        again[TFOS__COLLECTIVE_FRAME_CAPACITY];
    struct tfos_error err;
    bool is_end;
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
    if (tfos__collective_piece_decode(&piece, bytes, COUNT, -1, &is_end, &err) != TFOS_OK)
        return 0;
    size_t whole = TFOS__COLLECTIVE_FRAME_SIZE;
    if (!is_end) {
        require(tfos__collective_piece_decode(&piece, bytes, COUNT, piece.number, &is_end, &err) ==
                TFOS_CORRUPT); // it has been there
        whole += tfos__collective_piece_block_size(&piece);
        require(whole <= sizeof(bytes));
        if (tfos__collective_piece_decode_blocks(&piece, bytes + TFOS__COLLECTIVE_FRAME_SIZE,
                                                 &err) != TFOS_OK)
            return 0;
        check(&piece);
    }
    require(tfos__collective_piece_encode(is_end ? NULL : &piece, again) == whole);
    require(memcmp(bytes, again, whole) == 0);
    return 0;
}
