// SPDX-License-Identifier: Apache-2.0
/// The rows that have come and are not given out yet, epoch by epoch, in the order of coming.
#ifndef TFOS_DATASET_SUPPLY_H
#define TFOS_DATASET_SUPPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/feed.h>
#include <tfos/status.h>

#include "dataset/piece.h"

struct tfos__supply {
    const struct tfos_dataset_options *options; ///< where the rows come from; borrowed
    struct tfos__piece **pieces;                ///< owned; each held
    size_t begin, end, capacity;                ///< of the pieces
    int64_t position;                           ///< the first row of the first piece that is left
    int64_t row_count;                          ///< rows that are left
    int64_t size;                               ///< bytes of the pieces
    int64_t piece_count;                        ///< pieces that have come
    bool is_ended;                              ///< the epoch has no more than these rows
    bool is_over;                               ///< nothing comes any more
};

/// Runs that make a batch; used again and again.
struct tfos__run_list {
    struct tfos__run *runs; ///< owned
    int64_t count, capacity;
    int64_t row_count;
};

/// Reads one item of the epoch. AGAIN when there is none within `timeout_ms` (negative: no limit);
/// END when the epoch has ended. Failures as from tfos_feed_reader_next().
enum tfos_status tfos__supply_read(struct tfos__supply *supply, int64_t timeout_ms,
                                   struct tfos_error *err);

/// The same until `deadline`; CLOSED when the options' is_interrupted() wants the wait to end,
/// which loses nothing that was read.
enum tfos_status tfos__supply_await(struct tfos__supply *supply, int64_t deadline,
                                    struct tfos_error *err);

/// Moves the next `count` rows, or those that there are, to the list. The rows count as used from
/// then on.
enum tfos_status tfos__supply_take(struct tfos__supply *supply, int64_t count,
                                   struct tfos__run_list *list, struct tfos_error *err);

/// The piece whose rows are next; NULL: there are none.
struct tfos__piece *tfos__supply_first(const struct tfos__supply *supply);

/// Drops the rows that there are.
void tfos__supply_drop(struct tfos__supply *supply);

/// Begins again, as if nothing had come.
void tfos__supply_restart(struct tfos__supply *supply);

/// Goes on to the next epoch, if there is one.
void tfos__supply_begin(struct tfos__supply *supply);

void tfos__supply_clear(struct tfos__supply *supply);

/// Adds a run, whose piece is held once more. Joins it to the last where it follows that.
enum tfos_status tfos__run_list_add(struct tfos__run_list *list, struct tfos__piece *piece,
                                    int64_t first, int64_t count, struct tfos_error *err);

/// Releases the pieces.
void tfos__run_list_drop(struct tfos__run_list *list);

void tfos__run_list_clear(struct tfos__run_list *list);

#endif
