// SPDX-License-Identifier: Apache-2.0
/// TFRecord files as a dataset (<tfos/dataset.h>): the rows of files as batches of tensors. The
/// files are read one after the other, or several in parallel. Such a dataset has one epoch;
/// another pass over the files is another dataset of the same structure.
///
/// A pass has a position between any two batches. It is a vector of numbers that may be kept, and
/// from which a pass of a dataset that was made in the same way continues, in any process.
#ifndef TFOS_RECORD_DATASET_H
#define TFOS_RECORD_DATASET_H

#include <tfos/dataset.h>
#include <tfos/example_file.h>

/// How the files are read in one pass. Copied.
struct tfos_record_pass {
    int64_t parallel_reads; ///< files that are read in parallel, by as many threads: batches of
                            ///< them in turn, always the same for the same files; 0, 1: one file
                            ///< after the other, by the calling thread
    bool shuffle_files;
    uint64_t seed; ///< of the orders of files and rows, with shuffle_files and shuffle_rows
    /// Reads only the records of this shard of so many. Each record is in one shard. As many as
    /// possible are assigned by whole files; the others are read by all shards: by ranges, where a
    /// plain file has 16 MiB for each of them, else by every n-th record. 0 of 0: all records
    int64_t shard_index, shard_count;
};

/// All borrowed for the call.
struct tfos_record_dataset_options {
    const struct ArrowSchema *schema; ///< the columns
    /// How files are read; `mode` SKIP_RECORD and SKIP_FILE count what they skip. Of `record`,
    /// only `compression`, `mode` and `max_record_size` are used; `batch_rows` and `batch_size` are
    /// not.
    struct tfos_example_reader_options reading;
    /// What becomes of the rows: batch_size, drop_remainder, shuffle_rows, columns, null_value and
    /// selection; the rest is not used, but for passes in step: uneven, agree, is_interrupted,
    /// release, context and name, for all passes of the dataset; `release` is called when the last
    /// of them is freed, not after a failed open. Nodes in step open datasets, and passes over
    /// each, in the same order.
    struct tfos_dataset_options rows;
    const char *const *paths; ///< in the order in which they are read
    int64_t path_count;
    struct tfos_record_pass pass;
};

/// Makes the dataset of a pass. Nothing is opened before its first batch is asked for, or its
/// structure, where lengths of lists decide. A row in messages is counted from 0 in its file, or in
/// the range of it, and is named with that. INVALID: nodes in step have other files. The caller
/// owns `*out` and ends it with tfos_dataset_close().
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_dataset_open(const struct tfos_record_dataset_options *options,
                         struct tfos_dataset **out, struct tfos_error *err);

/// Another pass over the files of `like`, a dataset of files that has been asked for its structure;
/// it is not needed any longer. The caller owns `*out`. Any thread.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_dataset_repeat(const struct tfos_dataset *like, const struct tfos_record_pass *pass,
                           struct tfos_dataset **out, struct tfos_error *err);

/// How many numbers a position of this pass has; 0: it is no dataset of files.
TFOS_API int64_t tfos_record_dataset_position_count(const struct tfos_dataset *dataset);

/// Writes the position behind the batch that was given last: as many numbers as
/// tfos_record_dataset_position_count() says. Any thread.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_dataset_get_position(struct tfos_dataset *dataset, int64_t *position,
                                 struct tfos_error *err);

/// Goes to where the pass of a position was `batch_count` batches behind it, with the seed of that
/// pass; does nothing where it is there. Of plain files only what is needed is read again,
/// compressed ones are decompressed up to there. END: the pass had fewer batches. INVALID: the
/// position is of a dataset of other files, or that was made with other options. Any thread.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_dataset_set_position(struct tfos_dataset *dataset, const int64_t *position,
                                 int64_t count, int64_t batch_count, struct tfos_error *err);

/// What was read in all passes of a dataset so far, files that ended and those that were
/// abandoned. INVALID: it is no dataset of files. Any thread.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_dataset_get_counts(const struct tfos_dataset *dataset,
                               struct tfos_record_counts *counts, struct tfos_error *err);

#endif
