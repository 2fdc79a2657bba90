// SPDX-License-Identifier: Apache-2.0
/// A position in a feed: takes batches from a reader and returns their rows in the numbers asked
/// for; keeps the partition of each row that waits for a result. With the GIL held, which waits
/// release. One thread at a time; one that waits for rows lets others enter.
#ifndef TFOS_PYTHON_ROW_ITERATOR_H
#define TFOS_PYTHON_ROW_ITERATOR_H

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <tfos/feed.h>

#include "use_guard.h"

struct tfos__py_row_iterator;

/// What a call asks for.
struct tfos__py_row_iterator_request {
    int64_t count;
    bool stop_at_partition, stop_at_epoch;
    int64_t timeout_ms; ///< negative: no limit
    PyObject *columns;  ///< names of those to give, a tuple; NULL: the rows as they are; borrowed
};

/// `reader` is borrowed and must outlive the iterator. `guard` is that of its owner; waits end when
/// it is closed. `feed`, exclusive, is entered while calls use the reader. NULL with an exception.
struct tfos__py_row_iterator *tfos__py_row_iterator_open(struct tfos_feed_reader *reader,
                                                         struct tfos__py_guard *guard,
                                                         struct tfos__py_guard *feed);

struct tfos_feed_reader *tfos__py_row_iterator_reader(const struct tfos__py_row_iterator *iterator);

/// A list of rows, or a tuple of the columns' lists, without rows at an epoch's end, or None. NULL
/// with an exception.
PyObject *tfos__py_row_iterator_next_rows(struct tfos__py_row_iterator *iterator,
                                          const struct tfos__py_row_iterator_request *request);

/// Arrays of rows, () at an epoch's end, or None. NULL with an exception.
PyObject *tfos__py_row_iterator_next_arrays(struct tfos__py_row_iterator *iterator,
                                            const struct tfos__py_row_iterator_request *request);

/// Sends results (a list) for the oldest rows without one. -1 with an exception.
int tfos__py_row_iterator_put_results(struct tfos__py_row_iterator *iterator, PyObject *results);

/// The same with numpy arrays: one, a tuple or a dict of them (array_batch.h).
int tfos__py_row_iterator_put_arrays(struct tfos__py_row_iterator *iterator, PyObject *arrays);

/// 1: the feed has ended and all rows were given out, 0: not so, as far as is known without
/// waiting, -1: an exception.
int tfos__py_row_iterator_is_at_end(struct tfos__py_row_iterator *iterator);

/// From any thread: rows that were not given out yet never will be.
void tfos__py_row_iterator_terminate(struct tfos__py_row_iterator *iterator);

/// NULL is accepted.
void tfos__py_row_iterator_close(struct tfos__py_row_iterator *iterator);

#endif
