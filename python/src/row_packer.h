// SPDX-License-Identifier: Apache-2.0
/// Packs Python rows into columns: batches in Arrow's layout whose schema says how the same rows
/// are made again. Rows that do not fit the columns make them wider, and they stay so: a sequence
/// of another length makes the column one of varying length, a value of another type a nested
/// column (nested_column.h) or an opaque one (pickled), lists of other lengths as rows one column
/// of such lists, another kind of row the whole row opaque. What the first batch meets holds for
/// all of its rows. The caller holds the GIL.
#ifndef TFOS_PYTHON_ROW_PACKER_H
#define TFOS_PYTHON_ROW_PACKER_H

#include <Python.h>

#include <stdbool.h>
#include <tfos/arrow.h>

#include "column_packer.h"

#define TFOS__BATCH_SIZE (1 << 20) ///< bytes at which a batch is full
#define TFOS__BATCH_ROWS 4096      ///< rows at which it is

struct tfos__py_row_packer;

/// `first_row` is the number of the first row, for messages. `wants_columns`: the reader wants
/// columns of the same values, not the same objects. NULL with an exception.
struct tfos__py_row_packer *tfos__py_row_packer_open(int64_t first_row, bool wants_columns);

/// REFUSED: it does not fit: take the batch, clear() and append the same row again.
enum tfos__py_pack_result tfos__py_row_packer_append(struct tfos__py_row_packer *packer,
                                                     PyObject *row);

/// Whether the batch should be taken before more rows are appended.
bool tfos__py_row_packer_is_full(const struct tfos__py_row_packer *packer);

/// Rows in the batch.
int64_t tfos__py_row_packer_row_count(const struct tfos__py_row_packer *packer);

/// The batch; both live until the next append() or clear(), and have nothing to be released. -1
/// with an exception.
int tfos__py_row_packer_show(struct tfos__py_row_packer *packer, const struct ArrowSchema **schema,
                             const struct ArrowArray **array);

/// Begins the next batch. -1 with an exception.
int tfos__py_row_packer_clear(struct tfos__py_row_packer *packer);

/// What takes a batch out of the packer; -1 with an exception.
typedef int tfos__py_row_packer_taker(void *context, struct tfos__py_row_packer *packer);

/// Appends all rows of a list and has each batch of them taken, the last too. -1 with an exception.
int tfos__py_row_packer_append_all(struct tfos__py_row_packer *packer, PyObject *rows,
                                   tfos__py_row_packer_taker *take, void *context);

/// NULL is accepted.
void tfos__py_row_packer_close(struct tfos__py_row_packer *packer);

#endif
