// SPDX-License-Identifier: Apache-2.0
/// Clusters as people read them: lines of 80 columns from status documents (docs/protocol.md,
/// "Status").
#ifndef TFOS_CLI_TABLE_H
#define TFOS_CLI_TABLE_H

#include <jansson.h>
#include <stdio.h>

/// Writes all clusters of the array.
void print_clusters(FILE *out, const json_t *clusters);

#endif
