// SPDX-License-Identifier: Apache-2.0
/// Files that are read one behind the other, as batches of Arrow.
#ifndef TFOS_DATASET_FILE_LANE_H
#define TFOS_DATASET_FILE_LANE_H

#include <tfos/example_file.h>
#include <tfos/feed.h>

#include "dataset/file_order.h"

/// How far a lane has come.
struct tfos__file_place {
    int64_t file; ///< in the pass
    struct tfos_record_position position;
    int64_t row; ///< number of rows that the file has given
};

/// Every `step`-th file of a pass.
struct tfos__file_lane {
    const struct tfos__file_order *order; ///< borrowed
    int64_t step;
    struct tfos__file_place place; ///< of what comes next
    struct tfos_stream *stream;    ///< owned, as is the reader; NULL: no file is open
    struct tfos_example_reader *reader;
};

/// The next batch: its partition is the file's number in the pass. END behind the last file.
enum tfos_status tfos__file_lane_next(struct tfos__file_lane *lane, struct tfos_feed_item *item,
                                      struct tfos_error *err);

/// Closes what is open; the next batch is read from `place` on.
void tfos__file_lane_move(struct tfos__file_lane *lane, struct tfos__file_place place);

#endif
