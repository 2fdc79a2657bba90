// SPDX-License-Identifier: Apache-2.0
/// What has changed in a piece of the parameters: the blocks of values that are not as they were,
/// in memory and as they travel (docs/protocol.md, "Collectives: parameters"). Of an embedding a
/// few rows change at a time.
#ifndef TFOS_COLLECTIVE_PARAMETER_PIECE_H
#define TFOS_COLLECTIVE_PARAMETER_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "collective/span_vector.h"

#define TFOS__COLLECTIVE_PIECE_SIZE (INT64_C(1) << 16) ///< values; the last piece may have fewer
#define TFOS__COLLECTIVE_BLOCK_SIZE 16                 ///< values; the last block likewise
#define TFOS__COLLECTIVE_PIECE_BLOCKS (TFOS__COLLECTIVE_PIECE_SIZE / TFOS__COLLECTIVE_BLOCK_SIZE)
#define TFOS__COLLECTIVE_FRAME_SIZE 8 ///< bytes before the numbers of blocks
#define TFOS__COLLECTIVE_FRAME_CAPACITY                                                            \
    (TFOS__COLLECTIVE_FRAME_SIZE + 2 * TFOS__COLLECTIVE_PIECE_BLOCKS) ///< bytes, with the numbers

struct tfos__collective_piece {
    int64_t number;                                 ///< of the piece, from 0
    int64_t value_count;                            ///< that the whole piece has
    int64_t block_count;                            ///< that have changed
    uint16_t blocks[TFOS__COLLECTIVE_PIECE_BLOCKS]; ///< their numbers, rising; unset where all have
    float values[TFOS__COLLECTIVE_PIECE_SIZE];      ///< theirs, without gaps
};

/// How many pieces `count` values have.
int64_t tfos__collective_piece_count(int64_t count);

/// Makes it piece `number` of `count` values, without changes.
void tfos__collective_piece_init(struct tfos__collective_piece *piece, int64_t number,
                                 int64_t count);

/// How many blocks the whole piece has, and how many values those have that have changed.
int64_t tfos__collective_piece_block_limit(const struct tfos__collective_piece *piece);
int64_t tfos__collective_piece_changed_count(const struct tfos__collective_piece *piece);

/// The values from index `i` of `blocks` on that lie side by side: where they begin in the piece,
/// and how many there are. Returns the index of the next run.
int64_t tfos__collective_piece_run(const struct tfos__collective_piece *piece, int64_t i,
                                   int64_t *begin, int64_t *count);

/// Fills an initialized piece with what the vector's values have changed by since they were
/// `pulled`, times `share`.
void tfos__collective_piece_subtract(struct tfos__collective_piece *piece,
                                     const struct tfos__collective_vector *vector,
                                     const float *pulled, float share);

/// Copies the values to where they belong among all.
void tfos__collective_piece_write(const struct tfos__collective_piece *piece, float *all);

/// Writes what travels before the values; returns its size. NULL: the end of the changes.
size_t tfos__collective_piece_encode(const struct tfos__collective_piece *piece,
                                     unsigned char bytes[TFOS__COLLECTIVE_FRAME_CAPACITY]);

/// Reads the first bytes of a frame, behind one of piece `last`, -1: the first, among `count`
/// values; CORRUPT for what cannot be. `is_end`: there are no more changes. Then come
/// block_size() bytes for decode_blocks(), and the values.
enum tfos_status
tfos__collective_piece_decode(struct tfos__collective_piece *piece,
                              const unsigned char bytes[TFOS__COLLECTIVE_FRAME_SIZE], int64_t count,
                              int64_t last, bool *is_end, struct tfos_error *err);
size_t tfos__collective_piece_block_size(const struct tfos__collective_piece *piece);
enum tfos_status tfos__collective_piece_decode_blocks(struct tfos__collective_piece *piece,
                                                      const unsigned char *bytes,
                                                      struct tfos_error *err);

#endif
