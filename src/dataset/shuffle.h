// SPDX-License-Identifier: Apache-2.0
/// A pool of rows that batches are drawn from at random. Its memory is about that of its rows: a
/// batch of which most rows have been drawn is copied.
#ifndef TFOS_DATASET_SHUFFLE_H
#define TFOS_DATASET_SHUFFLE_H

#include <stdint.h>
#include <tfos/status.h>

#include "dataset/piece.h"
#include "dataset/supply.h"

/// The rows of one piece that are in the pool.
struct tfos__pooled {
    struct tfos__piece *piece; ///< held
    int64_t *slots;            ///< owned: of each row, where it is in the pool, or -1
    int64_t entered_count, live_count;
};

struct tfos__slot {
    struct tfos__pooled *pooled;
    int64_t row;
};

struct tfos__shuffle {
    int64_t limit; ///< rows of a full one; 0: rows are not shuffled
    int64_t count;
    int64_t capacity;
    struct tfos__slot *slots;    ///< owned
    struct tfos__pooled *newest; ///< the piece that entered last, while it is here
    uint64_t state;              ///< of the random numbers
};

/// Begins an epoch: its order depends on both numbers, and on that of the rows.
void tfos__shuffle_begin(struct tfos__shuffle *pool, uint64_t seed, int64_t epoch);

/// Draws rows, refilling the pool from the supply before each. Fewer than `count` when there are no
/// more.
enum tfos_status tfos__shuffle_draw(struct tfos__shuffle *pool, struct tfos__supply *supply,
                                    int64_t count, struct tfos__run_list *list,
                                    struct tfos_error *err);

/// Where a pool stood that had given out `drawn` of `entered` rows since its beginning.
struct tfos__shuffle_point {
    int64_t drawn, entered;
    int64_t first; ///< number of the supply's next row among those that entered; none of the rows
                   ///< before it are in the pool
};

/// Brings an empty pool that has begun to where it stood, with rows from the supply. Uses the
/// `plan`, and `binding` as tfos__piece_bind() does. END: the supply has fewer rows.
enum tfos_status tfos__shuffle_resume(struct tfos__shuffle *pool, struct tfos__supply *supply,
                                      const struct tfos__shuffle_point *point,
                                      const struct tfos__plan *plan, struct tfos__binding **binding,
                                      struct tfos_error *err);

/// Drops the rows.
void tfos__shuffle_drop(struct tfos__shuffle *pool);

void tfos__shuffle_clear(struct tfos__shuffle *pool);

#endif
