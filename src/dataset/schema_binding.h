// SPDX-License-Identifier: Apache-2.0
/// Where the features of a plan are in batches of one schema.
#ifndef TFOS_DATASET_SCHEMA_BINDING_H
#define TFOS_DATASET_SCHEMA_BINDING_H

#include <stdatomic.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "dataset/leaf_column.h"
#include "dataset/plan.h"

/// Immutable, and shared by batches in any thread.
struct tfos__dataset_schema_binding {
    atomic_int reference_count;
    struct ArrowSchema schema;             ///< owned
    struct tfos__dataset_leaf_path *paths; ///< owned, with their steps; one for each feature
    int64_t path_count;
};

/// Takes over `schema`, but not on failure. INVALID names a column that is missing, that the plan
/// does not have, or that has another type than in the plan.
enum tfos_status tfos__dataset_schema_binding_open(struct ArrowSchema *schema,
                                                   const struct tfos__dataset_plan *plan,
                                                   struct tfos__dataset_schema_binding **out,
                                                   struct tfos_error *err);

/// Returns `binding`.
struct tfos__dataset_schema_binding *
tfos__dataset_schema_binding_hold(struct tfos__dataset_schema_binding *binding);

/// NULL is accepted.
void tfos__dataset_schema_binding_release(struct tfos__dataset_schema_binding *binding);

#endif
