// SPDX-License-Identifier: Apache-2.0
/// The cluster spec: where each task of each job listens, the same text for everybody.
#ifndef TFOS_CLUSTER_SPEC_H
#define TFOS_CLUSTER_SPEC_H

#include <jansson.h>

#include "cluster/registry.h"

/// {job: ["host:port", ...]}, jobs sorted by name and tasks by index, from entries that have all
/// registered; NULL when out of memory.
json_t *tfos__spec_json(const struct tfos__entry *entries, int count);

#endif
