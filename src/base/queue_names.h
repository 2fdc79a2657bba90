// SPDX-License-Identifier: Apache-2.0
/// The names of a node's queues, in the form in which they travel: divided by commas. Elsewhere a
/// queue is known by its place in the list.
#ifndef TFOS_BASE_QUEUE_NAMES_H
#define TFOS_BASE_QUEUE_NAMES_H

#include <stdint.h>
#include <tfos/status.h>

#define TFOS__QUEUE_LIMIT 16     ///< most queues of a node
#define TFOS__QUEUE_NAME_SIZE 65 ///< room for a name
#define TFOS__QUEUE_DEFAULT "input"

struct tfos__queue_names {
    int count;
    char names[TFOS__QUEUE_LIMIT][TFOS__QUEUE_NAME_SIZE];
    char text[TFOS__QUEUE_LIMIT * (TFOS__QUEUE_NAME_SIZE + 4)]; ///< all of them, for messages
};

/// Reads a list such as "input,validation"; NULL: TFOS__QUEUE_DEFAULT alone. INVALID says which
/// name is wrong and what was expected.
enum tfos_status tfos__queue_names_init(struct tfos__queue_names *queues, const char *list,
                                        struct tfos_error *err);

/// A bit for each queue, by its place.
uint32_t tfos__queue_names_mask(const struct tfos__queue_names *queues);

/// The place of `name` (NULL: TFOS__QUEUE_DEFAULT), or -1.
int tfos__queue_names_find(const struct tfos__queue_names *queues, const char *name);

/// The same, or NOT_FOUND with the names that there are.
enum tfos_status tfos__queue_names_get(const struct tfos__queue_names *queues, const char *name,
                                       int *out, struct tfos_error *err);

#endif
