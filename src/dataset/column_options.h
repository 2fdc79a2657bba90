// SPDX-License-Identifier: Apache-2.0
/// The options of columns, kept until the columns are known.
#ifndef TFOS_DATASET_COLUMN_OPTIONS_H
#define TFOS_DATASET_COLUMN_OPTIONS_H

#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

struct tfos__dataset_column_options {
    struct tfos_dataset_column *columns; ///< owned, with what they point to
    int64_t column_count;
    char **selection; ///< owned, with the names
    int64_t selection_count;
    char *null_value; ///< owned; for columns without one of their own; NULL: none
};

/// Copies them from a dataset's options. INVALID: a name is missing, or a number is negative.
enum tfos_status tfos__dataset_column_options_init(struct tfos__dataset_column_options *columns,
                                                   const struct tfos_dataset_options *options,
                                                   struct tfos_error *err);

/// The options of the column of that name; NULL: it has none.
const struct tfos_dataset_column *
tfos__dataset_column_options_find(const struct tfos__dataset_column_options *columns,
                                  const char *name);

/// The number of the first selected name that is the column's, or as "person" of "person.age" that
/// of a field that contains it. -1: the column is not selected. 0 when all columns are.
int64_t tfos__dataset_column_options_select(const struct tfos__dataset_column_options *columns,
                                            const char *name);

void tfos__dataset_column_options_clear(struct tfos__dataset_column_options *columns);

#endif
