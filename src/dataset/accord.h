// SPDX-License-Identifier: Apache-2.0
/// The plan that all nodes agree on, told as JSON: a node without rows takes it from the others.
#ifndef TFOS_DATASET_ACCORD_H
#define TFOS_DATASET_ACCORD_H

#include <stdbool.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#include "dataset/plan.h"

/// What a node tells the others: its plan (NULL: it has no rows), and whether its feed is over. The
/// caller frees the text.
enum tfos_status tfos__accord_write(const struct tfos__plan *plan, enum tfos_uneven uneven,
                                    bool is_over, char **out, struct tfos_error *err);

/// Makes the common plan of what all told, an array. Lists of different lengths become ragged where
/// no form was asked for. AGAIN when no node has rows, END when moreover all feeds are over.
/// INVALID names both when two nodes have different structures.
enum tfos_status tfos__accord_read(const char *values, enum tfos_uneven uneven,
                                   struct tfos__plan *plan, struct tfos_error *err);

#endif
