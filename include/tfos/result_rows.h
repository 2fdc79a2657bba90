// SPDX-License-Identifier: Apache-2.0
/// Results of an inference as Spark's own rows: batches as tfos_feeder_next_result() gives them,
/// in the forms of docs/protocol.md ("Feed: rows of Python"), become rows of declared types in
/// UnsafeRow format ("Spark's rows").
#ifndef TFOS_RESULT_ROWS_H
#define TFOS_RESULT_ROWS_H

#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

struct tfos_result_rows;

/// Declares the rows' columns: the fields of `schema`, a struct as tfos_spark_schema_parse() gives
/// it, which stays the caller's and is copied. A column may be a boolean (b), a number (c s i l f
/// g), a string (u), binary (z), or an array (+l) of any of these. UNSUPPORTED names a column of
/// another type: results of such types are mostly objects that only Python can read.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_result_rows_open(const struct ArrowSchema *schema,
                                                                struct tfos_result_rows **out,
                                                                struct tfos_error *err);

/// Takes over a batch of results, also when it fails, in place of the one before. Results that are
/// dictionaries or Rows go to columns by name, tuples and lists by place, a value into the one
/// column; a list or tuple also into the one column that is an array. INVALID: a column is missing
/// or one too many, or its type cannot be cast to the declared one. UNSUPPORTED: it was pickled.
/// Both name the column and both types.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_result_rows_take(struct tfos_result_rows *rows,
                                                                struct ArrowSchema *schema,
                                                                struct ArrowArray *array,
                                                                struct tfos_error *err);

/// Writes the batch's next rows, as many as `capacity` bytes at `data` (aligned to 8) have room
/// for, one behind the other: each 4 bytes of size, 4 bytes of zero, the row. `*size` becomes the
/// bytes written. AGAIN: there is room for none, and `*size` is what the next row needs. END: the
/// batch has no more rows, or there is no batch. INVALID names the column: a value cannot be cast
/// without loss, a null where the schema allows none, or a row takes 2 GiB or more.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_result_rows_next(struct tfos_result_rows *rows,
                                                                void *data, int64_t capacity,
                                                                int64_t *size,
                                                                struct tfos_error *err);

/// NULL is accepted.
TFOS_API void tfos_result_rows_close(struct tfos_result_rows *rows);

#endif
