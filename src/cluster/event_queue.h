// SPDX-License-Identifier: Apache-2.0
/// The queue of events for the driver's user, JSON texts in order, bounded in number and bytes: a
/// driver that never reads it does not grow. Guarded by the rendezvous' lock.
#ifndef TFOS_CLUSTER_EVENT_QUEUE_H
#define TFOS_CLUSTER_EVENT_QUEUE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#define TFOS__EVENT_LIMIT 10000            ///< most events that wait
#define TFOS__EVENT_SIZE_LIMIT (64u << 20) ///< most bytes of their texts together

struct tfos__cluster_event_queue {
    char **texts;          ///< owned; a ring of TFOS__EVENT_LIMIT places
    size_t first, count;   ///< the oldest one's place, and how many wait
    size_t size;           ///< bytes of all texts
    int64_t dropped_count; ///< lost since the last one was taken
};

enum tfos_status tfos__cluster_event_queue_init(struct tfos__cluster_event_queue *events,
                                                struct tfos_error *err);

/// Appends `event` (taken over; NULL, for want of memory, counts as dropped), dropping the oldest
/// beyond the limits.
void tfos__cluster_event_queue_push(struct tfos__cluster_event_queue *events, json_t *event);

/// The oldest, which the caller frees with tfos__free(); NULL when there is none.
char *tfos__cluster_event_queue_take(struct tfos__cluster_event_queue *events);

void tfos__cluster_event_queue_clear(struct tfos__cluster_event_queue *events);

#endif
