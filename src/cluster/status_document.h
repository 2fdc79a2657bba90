// SPDX-License-Identifier: Apache-2.0
/// The status document of a cluster (docs/protocol.md, "Status").
#ifndef TFOS_CLUSTER_STATUS_DOCUMENT_H
#define TFOS_CLUSTER_STATUS_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>

#define TFOS__STATUS_SOCKET_PREFIX                                                                 \
    "tfos-status-" ///< then the cluster's id: the driver's abstract socket

struct tfos__cluster;

/// NULL when out of memory.
json_t *tfos__cluster_status_document(const struct tfos__cluster *cluster);

/// Whether rows are under way, from Spark's first task to the last row in a ring.
bool tfos__cluster_status_is_feeding(const struct tfos__cluster *cluster);

/// Whether there is something to tell: rows are under way, or steps.
bool tfos__cluster_status_has_figures(const struct tfos__cluster *cluster, int64_t now_ms);

/// The message `figures` for a node that shows them; NULL when out of memory.
json_t *tfos__cluster_status_figures(const struct tfos__cluster *cluster);

#endif
