// SPDX-License-Identifier: Apache-2.0
/// Pieces: batches of rows as they came from the reader, held while anybody needs their memory.
#ifndef TFOS_DATASET_PIECE_H
#define TFOS_DATASET_PIECE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/feed.h>
#include <tfos/status.h>

#include "arrow/arrow.h"
#include "dataset/binding.h"
#include "dataset/lease.h"

struct tfos__piece {
    struct tfos__lease lease; ///< first; its end releases the rest
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct tfos__binding *binding; ///< NULL until tfos__piece_bind()
    int64_t partition;
    const char *origin; ///< what that is called; NULL: "partition" and its number; borrowed
    int64_t number;     ///< in the supply, from 0
    int64_t first_row, row_step;
    int64_t *row_numbers; ///< of rows that do not follow each other; NULL: they do
    int64_t size;         ///< bytes, about
    bool is_lent;         ///< its memory is the ring's
};

/// Takes over the batch in `item`, also on failure.
enum tfos_status tfos__piece_open(struct tfos_feed_item *item, struct tfos__piece **out,
                                  struct tfos_error *err);

/// Puts before the message in `err` which rows it is about: of the piece, or with its number `row`.
void tfos__piece_locate(const struct tfos__piece *piece, struct tfos_error *err);
void tfos__piece_locate_row(const struct tfos__piece *piece, int64_t row, struct tfos_error *err);

/// The number of a row in its partition.
int64_t tfos__piece_row_number(const struct tfos__piece *piece, int64_t row);

/// Finds the ways to the plan's columns, unless they are known. `last` is the binding of another
/// piece, which is used when it is for the same schema, and replaced otherwise.
enum tfos_status tfos__piece_bind(struct tfos__piece *piece, const struct tfos__plan *plan,
                                  struct tfos__binding **last, struct tfos_error *err);

/// Makes a piece with copies of those rows of a bound piece that the spans name.
enum tfos_status tfos__piece_extract(const struct tfos__piece *piece,
                                     const struct tfos__arrow_span *spans, int64_t span_count,
                                     struct tfos__piece **out, struct tfos_error *err);

/// Rows of a piece that lie together. A batch is a list of these.
struct tfos__run {
    struct tfos__piece *piece; ///< held
    int64_t first, count;
};

#endif
