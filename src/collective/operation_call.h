// SPDX-License-Identifier: Apache-2.0
/// What the operations of a group have in common: their beginning and their end.
#ifndef TFOS_COLLECTIVE_OPERATION_CALL_H
#define TFOS_COLLECTIVE_OPERATION_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/collective.h>

#include "collective/group.h"

/// The call of an operation.
struct tfos__collective_call {
    struct tfos_collective *group;
    struct tfos__collective_operation operation;
    int64_t begin_us;
};

/// Fails a call of the operation `name` that has not begun.
enum tfos_status tfos__collective_call_refuse(const struct tfos_collective *group,
                                              enum tfos_status status, const char *name,
                                              const char *why, struct tfos_error *err);

/// What all operations ask of their arguments.
enum tfos_status tfos__collective_call_check(const struct tfos_collective *group, const char *name,
                                             enum tfos_dtype dtype, bool is_reduced,
                                             enum tfos_reduction reduction, struct tfos_error *err);

/// The descriptor of an operation, without its number.
struct tfos__collective_descriptor tfos__collective_call_describe(const char *name,
                                                                  enum tfos__collective_kind kind,
                                                                  enum tfos_dtype dtype,
                                                                  int64_t element_count);

/// Takes the group for an operation, whose descriptor lacks only its number.
enum tfos_status tfos__collective_call_begin(struct tfos__collective_call *call,
                                             struct tfos_collective *group,
                                             const struct tfos__collective_descriptor *descriptor,
                                             struct tfos_error *err);

/// Waits until the ranks have come to the operation, and compares. `counts`: NULL, or room for each
/// rank's, and then it returns when all have come.
enum tfos_status tfos__collective_call_meet(struct tfos__collective_call *call, int64_t *counts,
                                            struct tfos_error *err);

/// Ends the operation: a failure becomes the group's, unless that has another. Then its message is
/// this one's.
enum tfos_status tfos__collective_call_end(struct tfos__collective_call *call,
                                           enum tfos_status status, const struct tfos_error *cause,
                                           struct tfos_error *err);

#endif
