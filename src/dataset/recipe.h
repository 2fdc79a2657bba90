// SPDX-License-Identifier: Apache-2.0
/// What all passes of a dataset of files share.
#ifndef TFOS_DATASET_RECIPE_H
#define TFOS_DATASET_RECIPE_H

#include <pthread.h>
#include <stdatomic.h>
#include <tfos/record_dataset.h>

struct tfos__recipe {
    atomic_int holders;
    struct ArrowSchema schema; ///< owned
    struct tfos_example_reader_options reading;
    char **paths; ///< owned, with the names
    int64_t path_count;
    uint32_t names_checksum;          ///< of the files' names, without their folders
    pthread_mutex_t mutex;            ///< guards the counts
    struct tfos_record_counts counts; ///< of files that are done with
};

/// Copies what it is given; one hold.
enum tfos_status tfos__recipe_open(const struct tfos_record_dataset_options *options,
                                   const struct tfos_example_reader_options *reading,
                                   struct tfos__recipe **out, struct tfos_error *err);
void tfos__recipe_hold(struct tfos__recipe *recipe);
void tfos__recipe_release(struct tfos__recipe *recipe);

/// Adds to the counts.
void tfos__recipe_count(struct tfos__recipe *recipe, struct tfos_record_counts counts);

#endif
