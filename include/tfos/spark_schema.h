// SPDX-License-Identifier: Apache-2.0
/// The schema of a Spark DataFrame as an Arrow schema.
#ifndef TFOS_SPARK_SCHEMA_H
#define TFOS_SPARK_SCHEMA_H

#include <tfos/arrow.h>
#include <tfos/export.h>
#include <tfos/status.h>

/// Reads what StructType.json() gives into those types of <tfos/unsafe_row.h> that the feed
/// carries. A user-defined type (MLlib's vectors) is what it stores, char, varchar and collated
/// text are strings, and a timestamp is microseconds in UTC. Of a field's metadata `tfos.encoding`
/// (<tfos/example.h>) is kept. The caller owns `*out` and releases it. CORRUPT: not the JSON of a
/// schema. UNSUPPORTED names the column, as a path with dots, and its type.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_spark_schema_parse(const char *json, struct ArrowSchema *out, struct tfos_error *err);

#endif
