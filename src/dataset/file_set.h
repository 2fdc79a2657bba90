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
    uint32_t names_checksum; ///< of the files' names, without their folders
    /// What keeps the passes of several nodes in step: uneven, agree, is_interrupted, release,
    /// context and name, which is owned. The rest is not used.
    struct tfos_dataset_options steps;
    atomic_llong pass_count;          ///< passes opened
    pthread_mutex_t mutex;            ///< guards `counts`
    struct tfos_record_counts counts; ///< of files that were closed
};

/// Copies the paths and the schema. The caller has one reference. Where passes are in step,
/// compares the files with those of the other nodes. `release` is not called if it fails.
enum tfos_status tfos__dataset_file_set_open(const struct tfos_record_dataset_options *options,
                                             const struct tfos_example_reader_options *reading,
                                             struct tfos__dataset_file_set **out,
                                             struct tfos_error *err);

/// Any thread. NULL is accepted.
void tfos__dataset_file_set_release(struct tfos__dataset_file_set *set);

/// Adds to the counts. Any thread.
void tfos__dataset_file_set_count(struct tfos__dataset_file_set *set,
                                  struct tfos_record_counts counts);

/// A file, or a shard's part of it: the records whose number modulo `stride` is `residue`, or those
/// that begin in a range of its bytes.
struct tfos__dataset_file {
    const char *path; ///< borrowed from the set
    int64_t residue, stride;
    uint64_t begin, end; ///< the range; 0, 0: none
    char *range_name;    ///< owned; of a range behind the file's beginning, for messages; else NULL
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

/// Makes a range of a file of which a shard has every n-th record, if the file is large: its other
/// parts need not be read then. All shards decide by the file's size. NO_MEMORY.
enum tfos_status tfos__dataset_file_order_set_range(const struct tfos__dataset_file_order *order,
                                                    struct tfos__dataset_file *file,
                                                    struct tfos_error *err);

/// Takes back what set_range() has done: every n-th record again.
void tfos__dataset_file_order_clear_range(const struct tfos__dataset_file_order *order,
                                          struct tfos__dataset_file *file);

/// Changes to the order of a pass with another seed.
void tfos__dataset_file_order_set_seed(struct tfos__dataset_file_order *order, uint64_t seed);

void tfos__dataset_file_order_clear(struct tfos__dataset_file_order *order);

#endif
