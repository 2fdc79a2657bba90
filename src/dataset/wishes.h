// SPDX-License-Identifier: Apache-2.0
/// Wishes: what the user asks of columns, kept until the columns are known.
#ifndef TFOS_DATASET_WISHES_H
#define TFOS_DATASET_WISHES_H

#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

struct tfos__wishes {
    struct tfos_dataset_column *columns; ///< owned, with what they point to
    int64_t column_count;
    char **selection; ///< owned, with the names
    int64_t selection_count;
    char *null_value; ///< owned; for columns without one of their own; NULL: none
};

/// Copies them. INVALID: a name is missing, or a number is negative.
enum tfos_status tfos__wishes_init(struct tfos__wishes *wishes,
                                   const struct tfos_dataset_options *options,
                                   struct tfos_error *err);

void tfos__wishes_clear(struct tfos__wishes *wishes);

#endif
