// SPDX-License-Identifier: Apache-2.0
/// A traversal of rows of one column, down to its values. A first traversal measures; a second one
/// writes tensors of the measured sizes. Both run the same code, so they cannot differ.
#ifndef TFOS_DATASET_COLUMN_VISITOR_H
#define TFOS_DATASET_COLUMN_VISITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "dataset/dataset_feature.h"
#include "dataset/leaf_column.h"

struct tfos__dataset_column_visitor {
    const struct tfos__dataset_feature *feature;
    const struct tfos__dataset_leaf_path *path; ///< in the rows that are visited next
    int64_t targets[TFOS__LIST_LEVELS];         ///< length of the lists at each level; -1: any
    bool is_writing;

    // What a measuring traversal finds.
    int64_t list_counts[TFOS__LIST_LEVELS];
    int64_t shortest[TFOS__LIST_LEVELS], longest[TFOS__LIST_LEVELS]; ///< longest -1: no list
    int64_t value_count;                                             ///< values of the rows
    int64_t fill_count;                                              ///< fill values
    int64_t text_size;                                               ///< bytes of all strings
    int64_t span_count;                                              ///< spans of contiguous values
    const struct ArrowArray *values;                                 ///< of the last span
    int64_t first_value;                                             ///< of the last span
    struct tfos__dataset_element element;                            ///< of the last span
    bool is_overrun; ///< there are more values than can be counted, or than were measured

    // Where a writing traversal writes next, and how much it may still write: another process can
    // change the memory between the traversals.
    uint8_t *out;     ///< the next number
    int64_t *offsets; ///< the end of the last string
    char *text;
    int64_t text_position;
    int64_t *splits[TFOS__LIST_LEVELS]; ///< the end of the last list
    int64_t value_room, text_room, split_rooms[TFOS__LIST_LEVELS];
    bool is_borrowed; ///< the tensor refers to the values, so that only the splits are written
};

/// Begins a measuring traversal, with the feature's lengths as targets.
void tfos__dataset_column_visitor_init(struct tfos__dataset_column_visitor *visitor,
                                       const struct tfos__dataset_feature *feature);

/// Visits rows [first, first + count) of a batch. INVALID: a value does not fit the feature; the
/// message names the column.
enum tfos_status tfos__dataset_column_visitor_rows(struct tfos__dataset_column_visitor *visitor,
                                                   const struct ArrowArray *batch, int64_t first,
                                                   int64_t count, struct tfos_error *err);

/// Adds `count` rows of zeros, empty strings and empty lists.
void tfos__dataset_column_visitor_zeros(struct tfos__dataset_column_visitor *visitor,
                                        int64_t count);

/// Ends a measuring traversal. INVALID: no tensor can hold what it found.
enum tfos_status
tfos__dataset_column_visitor_check(const struct tfos__dataset_column_visitor *visitor,
                                   struct tfos_error *err);

/// Begins a writing traversal after a measuring one. The caller has set where it writes, the first
/// offset and the first splits.
void tfos__dataset_column_visitor_write(struct tfos__dataset_column_visitor *visitor);

/// Ends a writing traversal. CORRUPT: it did not find what was measured.
enum tfos_status
tfos__dataset_column_visitor_finish(const struct tfos__dataset_column_visitor *visitor,
                                    struct tfos_error *err);

#endif
