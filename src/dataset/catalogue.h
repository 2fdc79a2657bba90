// SPDX-License-Identifier: Apache-2.0
/// The datasets of this process by their numbers, which travel where pointers cannot.
#ifndef TFOS_DATASET_CATALOGUE_H
#define TFOS_DATASET_CATALOGUE_H

#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

/// Where a dataset stands in the catalogue; a member of it.
struct tfos__card {
    struct tfos_dataset *dataset;
    struct tfos__card *next; ///< guarded by the catalogue's lock, as all of this
    int64_t number;
    int64_t hold_count;
};

/// Enters a dataset with one hold and gives it a number.
void tfos__catalogue_add(struct tfos__card *card, struct tfos_dataset *dataset);

/// The dataset of a number, with one hold more; NULL: there is none.
struct tfos_dataset *tfos__catalogue_find(int64_t number);

/// Gives up a hold. True when it was the last: the dataset is no longer in the catalogue.
bool tfos__catalogue_drop(struct tfos__card *card);

#endif
