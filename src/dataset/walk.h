// SPDX-License-Identifier: Apache-2.0
/// A walk over rows of one column, down to its values. A first walk measures; a second one writes
/// tensors of just that size. Both take the same way, so that nothing is decided twice.
#ifndef TFOS_DATASET_WALK_H
#define TFOS_DATASET_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "dataset/leaf.h"
#include "dataset/plan.h"

/// The way to a feature's values in arrays of one schema.
struct tfos__route {
    struct tfos__step *steps; ///< owned
    int step_count;
    struct tfos__element element;
    struct tfos__arrow_type lists; ///< of a vector
};

struct tfos__walk {
    const struct tfos__feature *feature;
    const struct tfos__route *route;    ///< of the rows that come next; NULL: only filling comes
    int64_t targets[TFOS__LEAF_LEVELS]; ///< elements of each list, level by level; -1: any
    bool is_writing;

    // What a measuring walk finds.
    int64_t list_counts[TFOS__LEAF_LEVELS];
    int64_t shortest[TFOS__LEAF_LEVELS], longest[TFOS__LEAF_LEVELS]; ///< lists; longest -1: none
    int64_t value_count;                                             ///< values that are there
    int64_t fill_count;                                              ///< values that are made up
    int64_t text_size;                                               ///< bytes of all strings
    int64_t span_count;              ///< spans of values that lie together
    const struct ArrowArray *values; ///< of the last span
    int64_t first_value;             ///< of the last span
    struct tfos__element element;    ///< of the last span

    // Where a writing walk is, and what it may still write. Nulls are read twice from memory that a
    // faulty peer may change meanwhile.
    uint8_t *out;     ///< the next number
    int64_t *offsets; ///< the end of the last string
    char *text;
    int64_t text_position;
    int64_t *splits[TFOS__LEAF_LEVELS]; ///< the end of the last list
    int64_t value_room, text_room, split_rooms[TFOS__LEAF_LEVELS];
    bool is_overrun; ///< measuring: there are more values than can be counted
    bool is_lent;    ///< the values are not written, only the splits
};

/// Begins a measuring walk with the feature's own lengths as targets.
void tfos__walk_init(struct tfos__walk *walk, const struct tfos__feature *feature);

/// Goes over rows [first, first + count) of a batch. INVALID: a value does not fit; the message
/// names the column and says what is wrong.
enum tfos_status tfos__walk_rows(struct tfos__walk *walk, const struct ArrowArray *batch,
                                 int64_t first, int64_t count, struct tfos_error *err);

/// After a measuring walk: INVALID when no tensor can hold what it found.
enum tfos_status tfos__walk_check(const struct tfos__walk *walk, struct tfos_error *err);

/// Goes on to write what was measured, to places that the caller has set. The first offset and the
/// first splits are there already.
void tfos__walk_write(struct tfos__walk *walk);

/// After the writing walk: CORRUPT when it did not find what was measured.
enum tfos_status tfos__walk_finish(const struct tfos__walk *walk, struct tfos_error *err);

/// Adds `count` rows of zeros, empty strings and empty lists.
void tfos__walk_zeros(struct tfos__walk *walk, int64_t count);

#endif
