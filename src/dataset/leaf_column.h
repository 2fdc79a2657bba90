// SPDX-License-Identifier: Apache-2.0
/// The leaf columns of a schema: the values at the ends of its tree, of which the dataset makes
/// tensors, and the path to each.
#ifndef TFOS_DATASET_LEAF_COLUMN_H
#define TFOS_DATASET_LEAF_COLUMN_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/element.h"

#define TFOS__PATH_LIMIT 66                           ///< more than the levels of a feed's schema
#define TFOS__LIST_LEVELS (TFOS_DATASET_MAX_RANK - 1) ///< most lists within each other

/// From a struct to its member, or from lists to their elements.
struct tfos__dataset_path_step {
    struct tfos__arrow_type type;
    int64_t member; ///< of a struct
};

/// Where a leaf column is in arrays of a schema.
struct tfos__dataset_leaf_path {
    struct tfos__dataset_path_step *steps;
    int step_count;
    struct tfos__dataset_element element;
    struct tfos__arrow_type lists; ///< of an MLlib vector: its indices and values
};

/// Everything is borrowed from the schema, or valid for the call that gets it.
struct tfos__dataset_leaf_column {
    const char *problem; ///< why it has no tensor form; NULL: it has one
    const char *names[TFOS__PATH_LIMIT];
    int depth; ///< of the names
    struct tfos__dataset_leaf_path path;
    bool is_vector; ///< an MLlib vector: the path leads to its struct
    bool is_map;    ///< keys or values of a map
    bool is_python; ///< rows of Python, whose types are those of their values
    bool is_number; ///< Python's int64 or float64, which may be mixed as float64
    int level_count;
    int64_t lengths[TFOS__LIST_LEVELS]; ///< of lists at each level, outermost first; -1: any
    int rank;                           ///< of a numpy array's shape; else 0
    int64_t shape[TFOS__LIST_LEVELS];
};

/// Calls `visit` with each leaf column, in the order of the schema, once `*structure` is set.
/// Columns of Python are recognized by their metadata, others by their types. INVALID: the schema's
/// own metadata is unknown.
enum tfos_status tfos__dataset_leaf_columns_visit(
    const struct ArrowSchema *schema, enum tfos_row_structure *structure,
    enum tfos_status (*visit)(void *context, const struct tfos__dataset_leaf_column *leaf,
                              struct tfos_error *err),
    void *context, struct tfos_error *err);

#endif
