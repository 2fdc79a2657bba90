// SPDX-License-Identifier: Apache-2.0
/// The plan of a dataset: the features of its batches. It follows from a schema and the user's
/// options; where lengths of lists matter, the first rows decide.
#ifndef TFOS_DATASET_PLAN_H
#define TFOS_DATASET_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/column_options.h"
#include "dataset/dataset_feature.h"

struct tfos__dataset_plan {
    enum tfos_row_structure structure;
    bool is_selective; ///< other columns of the rows are left out
    struct tfos__dataset_feature *features;
    int64_t feature_count;
    const struct tfos__dataset_feature **sorted; ///< by path
};

/// Makes the plan for rows of `schema`. INVALID names a column that the options ask for and that is
/// not there, or whose type cannot have what they ask for, or two columns of one name.
enum tfos_status tfos__dataset_plan_init(struct tfos__dataset_plan *plan,
                                         const struct ArrowSchema *schema,
                                         const struct tfos__dataset_column_options *options,
                                         struct tfos_error *err);

/// Whether the first rows have to decide on a feature.
bool tfos__dataset_plan_is_undecided(const struct tfos__dataset_plan *plan);

/// Whether the first rows have decided, so that those of another node may decide otherwise.
bool tfos__dataset_plan_follows_rows(const struct tfos__dataset_plan *plan);

/// Decides without rows: lists that would be dense have one length in each batch.
void tfos__dataset_plan_leave_open(struct tfos__dataset_plan *plan);

/// Parses the option null_value of each feature. Needed once for a plan that was read.
enum tfos_status
tfos__dataset_plan_set_fill_values(struct tfos__dataset_plan *plan,
                                   const struct tfos__dataset_column_options *options,
                                   struct tfos_error *err);

/// Adds a feature with a copy of the path. NULL: no memory.
struct tfos__dataset_feature *tfos__dataset_plan_add(struct tfos__dataset_plan *plan,
                                                     const char *const *path, int depth);

/// Sorts for find(), once all features are added. INVALID: two have the same path.
enum tfos_status tfos__dataset_plan_sort(struct tfos__dataset_plan *plan, struct tfos_error *err);

/// The number of the feature with that path, or -1.
int64_t tfos__dataset_plan_find(const struct tfos__dataset_plan *plan, const char *const *path,
                                int depth);

/// Lists the tensors of a batch of `rows` rows (-1: varies), with weights if `has_weights`. Paths
/// are the plan's. The caller frees the list.
enum tfos_status tfos__dataset_plan_specs(const struct tfos__dataset_plan *plan, int64_t rows,
                                          bool has_weights, struct tfos_tensor_spec **out,
                                          int64_t *count, struct tfos_error *err);

/// The plan without its fill values, for other nodes and datasets. NULL, with err: a name is not
/// UTF-8, or there is no memory.
json_t *tfos__dataset_plan_write(const struct tfos__dataset_plan *plan, struct tfos_error *err);

/// Reads a written plan; it is sorted. INVALID: it is not one.
enum tfos_status tfos__dataset_plan_read(const json_t *layout, struct tfos__dataset_plan *plan,
                                         struct tfos_error *err);

void tfos__dataset_plan_clear(struct tfos__dataset_plan *plan);

#endif
