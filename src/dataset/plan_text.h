// SPDX-License-Identifier: Apache-2.0
/// A plan as text, in which it goes to other nodes and to other datasets.
#ifndef TFOS_DATASET_PLAN_TEXT_H
#define TFOS_DATASET_PLAN_TEXT_H

#include <jansson.h>
#include <tfos/status.h>

#include "dataset/plan.h"

#define TFOS__PLAN_DIGEST_SIZE 65 ///< hexadecimal digits of SHA-256, with NUL

/// The plan but for what fills nulls. NULL, with err: a name is not UTF-8, or there is no memory.
json_t *tfos__plan_write(const struct tfos__plan *plan, struct tfos_error *err);

/// Makes a plan of it, which is sorted; the caller clears it. INVALID: it is none.
enum tfos_status tfos__plan_read(const json_t *layout, struct tfos__plan *plan,
                                 struct tfos_error *err);

/// The same for two plans that write the same.
enum tfos_status tfos__plan_digest(const json_t *layout, char digest[TFOS__PLAN_DIGEST_SIZE],
                                   struct tfos_error *err);

#endif
