// SPDX-License-Identifier: Apache-2.0
/// TFRecord files as a dataset (<tfos/dataset.h>): the rows of files as batches of tensors, one
/// file behind the other or several side by side. Such a dataset has one epoch; another pass over
/// files is another dataset of the same structure.
#ifndef TFOS_RECORD_DATASET_H
#define TFOS_RECORD_DATASET_H

#include <tfos/dataset.h>
#include <tfos/example_file.h>

/// One pass. Copied.
struct tfos_record_pass {
    const char *const *paths; ///< in the order in which they are read
    int64_t path_count;
    int64_t parallel_reads; ///< files that are read side by side, by as many threads: batches of
                            ///< them in turn, always the same for the same files; 0, 1: one file
                            ///< behind the other, by the thread that asks
    uint64_t seed;          ///< of the draws, with shuffle_rows
};

/// All borrowed for the call.
struct tfos_record_dataset_options {
    const struct ArrowSchema *schema; ///< the columns
    /// How files are read; `mode` SKIP_RECORD and SKIP_FILE count what they pass over. Of `record`,
    /// `name`, range, on_damage and context are not used; nor are `batch_rows` and `batch_size`.
    struct tfos_example_reader_options reading;
    /// What becomes of the rows: batch_size, drop_remainder, shuffle_rows, columns, null_value and
    /// selection; the rest is not used.
    struct tfos_dataset_options rows;
    struct tfos_record_pass pass;
};

/// Makes the dataset of a pass. Nothing is opened before its first batch is asked for, or its
/// structure, where lengths of lists decide. A row in messages is counted from 0 in its file, and
/// is named with that. The caller owns `*out` and ends it with tfos_dataset_close().
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_dataset_open(const struct tfos_record_dataset_options *options,
                         struct tfos_dataset **out, struct tfos_error *err);

/// Another pass, with the options and the structure of `like`, a dataset of files that has been
/// asked for its structure; it is not needed any longer. The caller owns `*out`. Any thread.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_dataset_repeat(const struct tfos_dataset *like, const struct tfos_record_pass *pass,
                           struct tfos_dataset **out, struct tfos_error *err);

/// What was read in all passes of a dataset so far, files at their ends and those that are given
/// up. INVALID: it is no dataset of files. Any thread.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_record_dataset_get_counts(const struct tfos_dataset *dataset,
                               struct tfos_record_counts *counts, struct tfos_error *err);

#endif
