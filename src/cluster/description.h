// SPDX-License-Identifier: Apache-2.0
/// Descriptions of feeds: what the driver knows of a queue's rows before the first comes. Nodes
/// that are fed get the newest, also those that register later.
#ifndef TFOS_CLUSTER_DESCRIPTION_H
#define TFOS_CLUSTER_DESCRIPTION_H

#include <tfos/status.h>

struct tfos__cluster;
struct tfos__description;
struct tfos__entry;

/// Keeps a copy of `description` for the queue and tells the nodes. NOT_FOUND lists the queues;
/// INVALID when its numbers are wrong, or the schema is no JSON or too large.
enum tfos_status tfos__description_set(struct tfos__cluster *cluster, const char *queue,
                                       const struct tfos__description *description,
                                       struct tfos_error *err);

/// Tells a node that has just registered all that is known.
void tfos__description_tell(struct tfos__cluster *cluster, struct tfos__entry *entry);

#endif
