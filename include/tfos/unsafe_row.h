// SPDX-License-Identifier: Apache-2.0
/// Spark's own rows to columns: reads rows in UnsafeRow format, as Spark's JVM has them in memory,
/// into one Arrow batch. The format is that of org.apache.spark.sql.catalyst.expressions.UnsafeRow,
/// UnsafeArrayData and UnsafeMapData of Spark 3.4 to 4.x, in the machine's byte order: docs/
/// protocol.md, "Spark's rows".
#ifndef TFOS_UNSAFE_ROW_H
#define TFOS_UNSAFE_ROW_H

#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

struct tfos_row_batch;

/// Makes a batch for rows of this Arrow schema, a struct whose fields are Spark's columns as
/// Spark's own Arrow schema has them (boolean b, byte c, short s, int i, long l, float f, double g,
/// string u or U, binary z or Z, date tdD, timestamp tsu:…, time ttn, decimal d:p,s, intervals
/// tDu, tiM and tin, array +l or +L, struct +s, map +m, null n). `schema` stays the caller's and is
/// copied. UNSUPPORTED names the column and its type: variant, geometry, geography, and what has no
/// type in Spark. INVALID: a schema of the wrong shape.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_row_batch_open(const struct ArrowSchema *schema,
                                                              struct tfos_row_batch **out,
                                                              struct tfos_error *err);

/// Adds `row_count` rows that lie one behind the other at `data`: each 4 bytes of size (the
/// machine's byte order), 4 bytes of zero, then so many bytes of UnsafeRow (a multiple of 8). Every
/// offset and length is checked against the row; CORRUPT names row (its number in the batch, from
/// 0) and column. INVALID: more values or bytes in a column than its 32-bit offsets reach. After
/// any failure the batch holds the rows before.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_row_batch_append(struct tfos_row_batch *batch,
                                                                const void *data, int64_t size,
                                                                int64_t row_count,
                                                                struct tfos_error *err);

/// The rows so far: views that live until the next append() or clear(). Not to be released; their
/// release functions are NULL. There are validity bits only where there are nulls; buffers are
/// aligned to 64 bytes.
TFOS_API void tfos_row_batch_show(struct tfos_row_batch *batch, const struct ArrowSchema **schema,
                                  const struct ArrowArray **array);

/// Forgets the rows and keeps the memory for the next.
TFOS_API void tfos_row_batch_clear(struct tfos_row_batch *batch);

/// NULL is accepted.
TFOS_API void tfos_row_batch_close(struct tfos_row_batch *batch);

#endif
