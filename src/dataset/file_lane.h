// SPDX-License-Identifier: Apache-2.0
/// Files that are read one behind the other, as batches of Arrow.
#ifndef TFOS_DATASET_FILE_LANE_H
#define TFOS_DATASET_FILE_LANE_H

#include <pthread.h>
#include <stdatomic.h>
#include <tfos/example_file.h>
#include <tfos/feed.h>

/// What all passes of a dataset share.
struct tfos__recipe {
    atomic_int holders;
    struct ArrowSchema schema; ///< owned
    struct tfos_example_reader_options reading;
    pthread_mutex_t mutex;            ///< guards the counts
    struct tfos_record_counts counts; ///< of files that are done with
};

/// Copies the schema; one hold.
enum tfos_status tfos__recipe_open(const struct ArrowSchema *schema,
                                   const struct tfos_example_reader_options *reading,
                                   struct tfos__recipe **out, struct tfos_error *err);
void tfos__recipe_hold(struct tfos__recipe *recipe);
void tfos__recipe_release(struct tfos__recipe *recipe);

/// Every `step`-th file from a first one on.
struct tfos__file_lane {
    struct tfos__recipe *recipe; ///< borrowed
    char *const *paths;          ///< borrowed
    int64_t path_count;
    int64_t next, step;         ///< the file to be opened next
    struct tfos_stream *stream; ///< owned, as is the reader; NULL: no file is open
    struct tfos_example_reader *reader;
    int64_t row_count; ///< of the open file, so far
};

/// The next batch: its partition is the file's number. END behind the last file.
enum tfos_status tfos__file_lane_next(struct tfos__file_lane *lane, struct tfos_feed_item *item,
                                      struct tfos_error *err);

void tfos__file_lane_clear(struct tfos__file_lane *lane);

#endif
