// SPDX-License-Identifier: Apache-2.0
/// Finding the column that a feature of a record belongs to, by its name.
#ifndef TFOS_RECORD_COLUMN_NAMES_H
#define TFOS_RECORD_COLUMN_NAMES_H

#include "base/memory.h"
#include "record/example_plan.h"
#include "record/name_index.h"

struct tfos__column_names {
    const struct tfos__example_plan *plan; ///< borrowed
    struct tfos__name_index names;         ///< of the columns, then of other features seen
    uint32_t *lookalikes; ///< of each of those others: the column of the same name but for
                          ///< letter case, or UNKNOWN; owned
    uint32_t lookalike_capacity;
    struct tfos__name_index folded; ///< of the columns; its names are owned
    struct tfos__buffer scratch;    ///< a folded name
};

/// Zeroed before; on failure the caller clears it too. INVALID: `ignore_case` with two columns
/// whose names differ in letter case only.
enum tfos_status tfos__column_names_init(struct tfos__column_names *names,
                                         const struct tfos__example_plan *plan, bool ignore_case,
                                         struct tfos_error *err);

/// Starts a record.
void tfos__column_names_restart(struct tfos__column_names *names);

/// The column of a record's feature that is none by its very name, or TFOS__NAME_UNKNOWN: one whose
/// name differs in letter case only. `number` is what tfos__name_index_next() on `names` gave.
enum tfos_status tfos__column_names_find_other(struct tfos__column_names *names,
                                               struct tfos_view name, uint32_t number,
                                               uint32_t *column, struct tfos_error *err);

void tfos__column_names_clear(struct tfos__column_names *names);

#endif
