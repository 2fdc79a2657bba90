// SPDX-License-Identifier: Apache-2.0
/// A feature: a column as the dataset gives it out, in one or more tensors of each batch.
#ifndef TFOS_DATASET_FEATURE_H
#define TFOS_DATASET_FEATURE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/element.h"
#include "dataset/leaf_column.h"

struct tfos__dataset_feature {
    const char **path; ///< owned, in one block with the names and `name`
    const char *name;  ///< the path as "person.age"
    int depth;
    int64_t number; ///< among the features of the schema
    int64_t order;  ///< of the selected name that selects it
    enum tfos_dtype dtype;
    enum tfos_column_form form; ///< AUTO only until it is decided
    bool is_vector;             ///< MLlib vectors
    bool is_number;             ///< int64 or float64 of Python, which become float64 when mixed
    bool is_flexible;           ///< becomes ragged where another node's lists have other lengths
    bool is_undecided;          ///< the first rows have to decide on the lengths
    bool is_measured;           ///< the first rows have decided on the lengths
    bool is_product;            ///< lists of one level become several dimensions
    int level_count;
    int64_t lengths[TFOS__LIST_LEVELS]; ///< of lists at each level; -1: any
    int rank;
    int64_t shape[TFOS__LIST_LEVELS]; ///< of one row's tensor, for DENSE and PADDED
    bool fills_nulls;
    struct tfos__dataset_fill_value fill_value;
};

/// Sets the dtype, the form and the shape of a leaf column. `options` are the column's; NULL: none.
/// INVALID, with the column's name: its type cannot have what the options ask for.
enum tfos_status tfos__dataset_feature_init(struct tfos__dataset_feature *feature,
                                            const struct tfos__dataset_leaf_column *leaf,
                                            const struct tfos_dataset_column *options,
                                            struct tfos_error *err);

/// Decides an undecided feature whose lists are from `shortest` to `longest` long at each level
/// (longest below 0: there was no list).
enum tfos_status tfos__dataset_feature_decide(struct tfos__dataset_feature *feature,
                                              const int64_t *shortest, const int64_t *longest,
                                              struct tfos_error *err);

/// Makes the lists ragged, whatever their lengths.
void tfos__dataset_feature_make_ragged(struct tfos__dataset_feature *feature);

/// The number of its tensors.
int tfos__dataset_feature_tensor_count(const struct tfos__dataset_feature *feature);

/// Writes the specs of its tensors in batches of `rows` rows (-1: varies). Returns their number.
int tfos__dataset_feature_specs(const struct tfos__dataset_feature *feature, int64_t rows,
                                struct tfos_tensor_spec *specs);

#endif
