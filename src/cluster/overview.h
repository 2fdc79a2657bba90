// SPDX-License-Identifier: Apache-2.0
/// The status document of a cluster (docs/protocol.md, "Status").
#ifndef TFOS_CLUSTER_OVERVIEW_H
#define TFOS_CLUSTER_OVERVIEW_H

#include <jansson.h>
#include <stdbool.h>

#define TFOS__STATUS_SOCKET_PREFIX                                                                 \
    "tfos-status-" ///< then the cluster's id: the driver's abstract socket

struct tfos__cluster;

/// NULL when out of memory.
json_t *tfos__overview_json(const struct tfos__cluster *cluster);

/// Whether rows are under way, from Spark's first task to the last row in a ring.
bool tfos__overview_is_moving(const struct tfos__cluster *cluster);

/// The message `figures` for a node that shows them; NULL when out of memory.
json_t *tfos__overview_figures(const struct tfos__cluster *cluster);

#endif
