// SPDX-License-Identifier: Apache-2.0
/// The rows of the files of one pass, as the `next` of a dataset's options. One or several readers
/// read the files, each every n-th file, and their batches are returned in turn, so the order does
/// not depend on which thread is faster.
///
/// The source keeps the places of its readers before the oldest batch of which rows have not been
/// given out. Reading from there on gives those rows again.
#ifndef TFOS_DATASET_FILE_SOURCE_H
#define TFOS_DATASET_FILE_SOURCE_H

#include <stdbool.h>

#include "base/memory.h"
#include "dataset/file_set.h"

/// Where a reader is in its files.
struct tfos__dataset_file_place {
    int64_t file; ///< number in the pass
    struct tfos_record_position position;
    int64_t row; ///< rows that the file has given
};

/// Where a source is.
struct tfos__dataset_file_point {
    int64_t turn;                            ///< number of the reader that gives the next batch
    int64_t row_count;                       ///< rows given
    struct tfos__dataset_file_place *places; ///< one for each reader
};

struct tfos__dataset_file_reader;

struct tfos__dataset_file_source {
    struct tfos__dataset_file_order order;
    struct tfos__dataset_file_reader *readers; ///< owned
    int64_t reader_count;
    int64_t turn;
    struct tfos__dataset_file_point
        oldest;                ///< before the oldest batch with rows left; places owned
    struct tfos__buffer reads; ///< of what was given out, from the oldest that has rows left on
    int64_t first;             ///< number of the oldest one in the pass
    bool has_begun;
    enum tfos_status failure; ///< kept: other readers would continue without this one's rows
    struct tfos_error failure_error;
    pthread_mutex_t mutex; ///< guards what readers with a thread have read
    pthread_cond_t changed;
    bool is_closing; ///< guarded by the mutex
};

/// Begins a pass, and holds the set.
enum tfos_status tfos__dataset_file_source_open(struct tfos__dataset_file_set *set,
                                                const struct tfos_record_pass *pass,
                                                struct tfos__dataset_file_source **out,
                                                struct tfos_error *err);

/// As `next`, `use`, `name_partition` and `release` of a dataset's options. close() accepts NULL.
enum tfos_status tfos__dataset_file_source_next(void *source, int64_t timeout_ms,
                                                struct tfos_feed_item *item,
                                                struct tfos_error *err);
void tfos__dataset_file_source_use(void *source, int64_t number, int64_t count);
const char *tfos__dataset_file_source_name(void *source, int64_t partition, int64_t *row_step);
void tfos__dataset_file_source_close(void *source);

/// Continues as a source of a pass with `seed` would from `point` on. No batch read before is used
/// any more.
void tfos__dataset_file_source_resume(struct tfos__dataset_file_source *source, uint64_t seed,
                                      const struct tfos__dataset_file_point *point);

#endif
