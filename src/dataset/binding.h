// SPDX-License-Identifier: Apache-2.0
/// Bindings: where the columns of a plan lie in batches of one schema.
#ifndef TFOS_DATASET_BINDING_H
#define TFOS_DATASET_BINDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "dataset/plan.h"
#include "dataset/walk.h"

/// Immutable, shared by pieces in any thread.
struct tfos__binding {
    atomic_int references;
    struct ArrowSchema schema;  ///< owned
    struct tfos__route *routes; ///< owned; one for each feature
    int64_t route_count;
};

/// Takes over `schema`, but not on failure. INVALID names a column that is missing, that the plan
/// does not know, or that has another type than in the plan.
enum tfos_status tfos__binding_open(struct ArrowSchema *schema, const struct tfos__plan *plan,
                                    struct tfos__binding **out, struct tfos_error *err);

/// Whether batches of `schema` can be read by the binding.
bool tfos__binding_fits(const struct tfos__binding *binding, const struct ArrowSchema *schema);

struct tfos__binding *tfos__binding_share(struct tfos__binding *binding);
void tfos__binding_release(struct tfos__binding *binding); ///< NULL is accepted

#endif
