// SPDX-License-Identifier: Apache-2.0
/// The files of a dataset, which all passes over them share, and the order in which one pass reads
/// them.
#ifndef TFOS_DATASET_FILE_SET_H
#define TFOS_DATASET_FILE_SET_H

#include <pthread.h>
#include <stdatomic.h>
#include <tfos/record_dataset.h>

struct tfos__dataset_file_set {
    atomic_int reference_count;
    struct ArrowSchema schema; ///< owned
    struct tfos_example_reader_options reading;
    char **paths; ///< owned, with the names
    int64_t path_count;
    uint32_t names_checksum;          ///< of the files' names, without their folders
    pthread_mutex_t mutex;            ///< guards `counts`
    struct tfos_record_counts counts; ///< of files that were closed
};

/// Copies the paths and the schema. The caller has one reference.
enum tfos_status tfos__dataset_file_set_open(const struct tfos_record_dataset_options *options,
                                             const struct tfos_example_reader_options *reading,
                                             struct tfos__dataset_file_set **out,
                                             struct tfos_error *err);

/// Any thread. NULL is accepted.
void tfos__dataset_file_set_release(struct tfos__dataset_file_set *set);

/// Adds to the counts. Any thread.
void tfos__dataset_file_set_count(struct tfos__dataset_file_set *set,
                                  struct tfos_record_counts counts);

/// A file, or those of its records whose number modulo `stride` is `residue`.
struct tfos__dataset_file {
    const char *path; ///< borrowed from the set
    int64_t residue, stride;
};

struct tfos__dataset_file_order {
    struct tfos__dataset_file_set *set; ///< held
    struct tfos_record_pass pass;
    struct tfos__dataset_file *files; ///< owned; capacity for all files of the set
    int64_t file_count;
};

/// INVALID: there is no such shard.
enum tfos_status tfos__dataset_file_order_init(struct tfos__dataset_file_order *order,
                                               struct tfos__dataset_file_set *set,
                                               const struct tfos_record_pass *pass,
                                               struct tfos_error *err);

/// Changes to the order of a pass with another seed.
void tfos__dataset_file_order_set_seed(struct tfos__dataset_file_order *order, uint64_t seed);

void tfos__dataset_file_order_clear(struct tfos__dataset_file_order *order);

#endif
