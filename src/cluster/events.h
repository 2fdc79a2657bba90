// SPDX-License-Identifier: Apache-2.0
/// What the driver's user is told, in order: a queue of JSON texts that is bounded in number and
/// bytes, so that a driver that never looks does not grow. Not locked: the rendezvous' lock guards
/// it.
#ifndef TFOS_CLUSTER_EVENTS_H
#define TFOS_CLUSTER_EVENTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#define TFOS__EVENT_LIMIT 10000            ///< most events that wait
#define TFOS__EVENT_SIZE_LIMIT (64u << 20) ///< most bytes of their texts together

struct tfos__events {
    char **texts;          ///< owned; a ring of TFOS__EVENT_LIMIT places
    size_t first, count;   ///< the oldest one's place, and how many wait
    size_t size;           ///< bytes of all texts
    int64_t dropped_count; ///< lost since the last one was taken
};

enum tfos_status tfos__events_init(struct tfos__events *events, struct tfos_error *err);

/// Appends `event` (taken over; NULL, for want of memory, counts as dropped), dropping the oldest
/// beyond the limits.
void tfos__events_push(struct tfos__events *events, json_t *event);

/// The oldest, which the caller frees with tfos__free(); NULL when there is none.
char *tfos__events_take(struct tfos__events *events);

void tfos__events_clear(struct tfos__events *events);

#endif
