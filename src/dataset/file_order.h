// SPDX-License-Identifier: Apache-2.0
/// Which files a pass reads, in which order, and how.
#ifndef TFOS_DATASET_FILE_ORDER_H
#define TFOS_DATASET_FILE_ORDER_H

#include "dataset/recipe.h"

/// A file, or those of its records whose number modulo `stride` is `residue`.
struct tfos__file {
    const char *path; ///< borrowed from the recipe
    int64_t residue, stride;
};

struct tfos__file_order {
    struct tfos__recipe *recipe; ///< borrowed
    struct tfos_record_pass pass;
    struct tfos__file *files; ///< owned; room for all files of the recipe
    int64_t file_count;
};

enum tfos_status tfos__file_order_init(struct tfos__file_order *order, struct tfos__recipe *recipe,
                                       const struct tfos_record_pass *pass, struct tfos_error *err);

/// Makes it the order of a pass with another seed.
void tfos__file_order_set_seed(struct tfos__file_order *order, uint64_t seed);

void tfos__file_order_clear(struct tfos__file_order *order);

#endif
