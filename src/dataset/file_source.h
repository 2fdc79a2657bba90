// SPDX-License-Identifier: Apache-2.0
/// The files of one pass, read by the thread that asks or by threads of their own.
#ifndef TFOS_DATASET_FILE_SOURCE_H
#define TFOS_DATASET_FILE_SOURCE_H

#include "dataset/file_order.h"
#include "dataset/read_log.h"

struct tfos__file_source;

/// Begins a pass, and holds the recipe.
enum tfos_status tfos__file_source_open(struct tfos__recipe *recipe,
                                        const struct tfos_record_pass *pass,
                                        struct tfos__file_source **out, struct tfos_error *err);

const struct tfos__file_order *tfos__file_source_order(const struct tfos__file_source *source);

/// What has been read and is not used yet.
const struct tfos__read_log *tfos__file_source_log(const struct tfos__file_source *source);

/// As `next`, `use` and `name_partition` of a dataset's options.
enum tfos_status tfos__file_source_next(void *source, int64_t timeout_ms,
                                        struct tfos_feed_item *item, struct tfos_error *err);
void tfos__file_source_use(void *source, int64_t number, int64_t count);
const char *tfos__file_source_name(void *source, int64_t partition, int64_t *row_step);

/// Where another source stood.
struct tfos__file_resumption {
    uint64_t seed;
    int64_t turn, row_count;
    const struct tfos__file_place *places; ///< one a lane
};

/// Goes on where the other source stood. Nothing of what was read before is used any more.
void tfos__file_source_resume(struct tfos__file_source *source,
                              const struct tfos__file_resumption *from);

/// The source of a dataset of files; NULL: it is none of files.
struct tfos__file_source *tfos__record_dataset_source(const struct tfos_dataset *dataset);

/// As `release`. NULL is accepted.
void tfos__file_source_close(void *source);

#endif
