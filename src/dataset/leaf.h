// SPDX-License-Identifier: Apache-2.0
/// Leaves: the values at the ends of a schema's tree, each with the way to it. A dataset gives out
/// a column for each.
#ifndef TFOS_DATASET_LEAF_H
#define TFOS_DATASET_LEAF_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/element.h"

#define TFOS__LEAF_STEPS 66                           ///< more than a schema of the feed has levels
#define TFOS__LEAF_LEVELS (TFOS_DATASET_MAX_RANK - 1) ///< most lists in each other

/// Into a struct's child, or into lists.
struct tfos__step {
    struct tfos__arrow_type type;
    int64_t member; ///< of a struct
};

/// Everything is borrowed from the schema, or lives for the call that is given it.
struct tfos__leaf {
    const char *problem; ///< why it has no tensor form; NULL: it has one
    const char *names[TFOS__LEAF_STEPS];
    int depth; ///< of the names
    struct tfos__step steps[TFOS__LEAF_STEPS];
    int step_count;
    struct tfos__element element;
    bool is_vector;                ///< an MLlib vector: the steps lead to its struct
    struct tfos__arrow_type lists; ///< of a vector: its indices and values
    bool is_map;                   ///< keys or values of one
    bool is_python;                ///< of rows of Python, whose types are those of their values
    bool is_number;                ///< Python's int64 or float64, which are floats together
    int level_count;
    int64_t lengths[TFOS__LEAF_LEVELS]; ///< of lists at each level, outermost first; -1: any
    int rank;                           ///< of a numpy array's shape; 0 for all else
    int64_t shape[TFOS__LEAF_LEVELS];
    char number[24]; ///< the name of a tuple's element
};

/// Tells `take` about each leaf, in the order of the schema. Python's columns are known by their
/// metadata, others by their types. INVALID when the schema's own metadata is unknown.
enum tfos_status tfos__leaf_scan(
    const struct ArrowSchema *schema, enum tfos_row_structure *structure,
    enum tfos_status (*take)(void *context, const struct tfos__leaf *leaf, struct tfos_error *err),
    void *context, struct tfos_error *err);

/// Compares paths, for sorting and searching.
int tfos__path_compare(const char *const *a, int a_depth, const char *const *b, int b_depth);

#endif
