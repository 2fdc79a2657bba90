// SPDX-License-Identifier: Apache-2.0
/// The files of one pass, read by the thread that asks or by threads of their own.
#ifndef TFOS_DATASET_FILE_SOURCE_H
#define TFOS_DATASET_FILE_SOURCE_H

#include <tfos/record_dataset.h>

#include "dataset/file_lane.h"

struct tfos__file_source;

/// Copies the paths and holds the recipe.
enum tfos_status tfos__file_source_open(struct tfos__recipe *recipe,
                                        const struct tfos_record_pass *pass,
                                        struct tfos__file_source **out, struct tfos_error *err);

struct tfos__recipe *tfos__file_source_recipe(struct tfos__file_source *source);

/// As `next` and `name_partition` of a dataset's options.
enum tfos_status tfos__file_source_next(void *source, int64_t timeout_ms,
                                        struct tfos_feed_item *item, struct tfos_error *err);
const char *tfos__file_source_name(void *source, int64_t partition);

/// As `release`. NULL is accepted.
void tfos__file_source_close(void *source);

#endif
