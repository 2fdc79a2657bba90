// SPDX-License-Identifier: Apache-2.0
/// The batches that lanes have given, from the oldest on of which rows are still to be given out,
/// and the place from which reading must begin to see those rows again.
#ifndef TFOS_DATASET_READ_LOG_H
#define TFOS_DATASET_READ_LOG_H

#include "dataset/file_lane.h"

struct tfos__read {
    int64_t lane;
    struct tfos__file_place behind; ///< of the lane
    int64_t row_count, left;        ///< `left`: rows not yet given out
};

struct tfos__read_log {
    int64_t lane_count;
    struct tfos__file_place *places; ///< owned: where each lane stood before the oldest read
    int64_t turn;                    ///< the lane whose turn it was
    int64_t row_count;               ///< rows of the reads before
    struct tfos__read *reads;        ///< owned
    size_t begin, end, capacity;     ///< of the reads
    int64_t first;                   ///< number of the oldest read in the pass
};

/// Lanes 0, 1, ... begin with file 0, 1, ...
enum tfos_status tfos__read_log_init(struct tfos__read_log *log, int64_t lane_count,
                                     struct tfos_error *err);

/// Forgets all reads. The places, the turn and the count of rows are the caller's to set.
void tfos__read_log_restart(struct tfos__read_log *log);

enum tfos_status tfos__read_log_add(struct tfos__read_log *log, const struct tfos__read *read,
                                    struct tfos_error *err);

/// `count` rows of read `number` have been given out.
void tfos__read_log_use(struct tfos__read_log *log, int64_t number, int64_t count);

void tfos__read_log_clear(struct tfos__read_log *log);

#endif
