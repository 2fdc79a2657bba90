// SPDX-License-Identifier: Apache-2.0
/// The status document of a cluster (docs/protocol.md, "Status").
#ifndef TFOS_CLUSTER_OVERVIEW_H
#define TFOS_CLUSTER_OVERVIEW_H

#include <jansson.h>

#define TFOS__STATUS_SOCKET_PREFIX                                                                 \
    "tfos-status-" ///< then the cluster's id: the driver's abstract socket

struct tfos__cluster;

/// NULL when out of memory.
json_t *tfos__overview_json(const struct tfos__cluster *cluster);

#endif
