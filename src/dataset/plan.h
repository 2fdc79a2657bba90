// SPDX-License-Identifier: Apache-2.0
/// The plan of a dataset: which columns it gives out and in which form. Made of the first schema
/// and of what the user asks for; where lengths of lists matter, the first rows decide.
#ifndef TFOS_DATASET_PLAN_H
#define TFOS_DATASET_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/element.h"
#include "dataset/leaf.h"
#include "dataset/wishes.h"

/// A column of the dataset: one or more tensors of each batch.
struct tfos__feature {
    const char **path; ///< owned, in one block with the names and `name`
    const char *name;  ///< the path as "person.age"
    int depth;
    int64_t number; ///< among the features of the schema
    int64_t order;  ///< of the selected name that leads to it
    enum tfos_dtype dtype;
    enum tfos_column_form form; ///< AUTO only until it is decided
    bool is_vector;
    bool is_number;    ///< int64 or float64 of Python: floats, where another node has such
    bool is_flexible;  ///< becomes ragged where another node's lists have other lengths
    bool is_undecided; ///< the first rows decide
    bool is_measured;  ///< the first rows have decided
    bool is_product;   ///< lists of one level are given out in several dimensions
    int level_count;
    int64_t lengths[TFOS__LEAF_LEVELS]; ///< of lists at each level; -1: any
    int rank;
    int64_t shape[TFOS__LEAF_LEVELS]; ///< of one row as given out, for DENSE and PADDED
    bool fills_nulls;
    struct tfos__filler filler;
};

struct tfos__plan {
    enum tfos_row_structure structure;
    bool is_selective; ///< columns that are not in it are left out
    struct tfos__feature *features;
    int64_t feature_count;
    const struct tfos__feature **sorted; ///< by path
};

/// Makes the plan for rows of `schema`. INVALID names a column that is asked for and is not there,
/// or that cannot be what is asked.
enum tfos_status tfos__plan_init(struct tfos__plan *plan, const struct ArrowSchema *schema,
                                 const struct tfos__wishes *wishes, struct tfos_error *err);

/// Whether the first rows must be seen.
bool tfos__plan_is_undecided(const struct tfos__plan *plan);

/// Whether first rows have decided, so that those of another node may say otherwise.
bool tfos__plan_follows_rows(const struct tfos__plan *plan);

/// Decides without rows: lists that would be dense have one length in each batch.
void tfos__plan_leave_open(struct tfos__plan *plan);

/// Decides an undecided feature whose lists are from `shortest` to `longest` long, level by level
/// (longest below 0: there was none).
enum tfos_status tfos__feature_decide(struct tfos__feature *feature, const int64_t *shortest,
                                      const int64_t *longest, struct tfos_error *err);

/// Reads null_value of each feature for which it is given. Needed once for each plan.
enum tfos_status tfos__plan_read_fillers(struct tfos__plan *plan, const struct tfos__wishes *wishes,
                                         struct tfos_error *err);

/// Sorts for find(), once all features are there. INVALID when two have one path.
enum tfos_status tfos__plan_sort(struct tfos__plan *plan, struct tfos_error *err);

/// The number of the feature with a path, or -1.
int64_t tfos__plan_find(const struct tfos__plan *plan, const char *const *path, int depth);

/// Adds a feature with a copy of the path. NULL: no memory.
struct tfos__feature *tfos__plan_add(struct tfos__plan *plan, const char *const *path, int depth);

/// Makes the lists of a feature ragged, whatever their lengths.
void tfos__feature_make_ragged(struct tfos__feature *feature);

void tfos__plan_clear(struct tfos__plan *plan);

#endif
