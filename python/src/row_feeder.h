// SPDX-License-Identifier: Apache-2.0
/// One attempt to feed one partition: asks the rendezvous which node to feed, opens a channel to
/// it, and moves rows into it in batches. One thread at a time, with the GIL held; waits release it
/// and look after signals and the driver.
#ifndef TFOS_PYTHON_ROW_FEEDER_H
#define TFOS_PYTHON_ROW_FEEDER_H

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>

#include "use_guard.h"

struct tfos__py_row_feeder;

/// Texts are borrowed for the call.
struct tfos__py_row_feeder_options {
    const char *address; ///< of the rendezvous
    const char *cluster_id;
    const char *key;
    const char *queue, *job;
    int64_t feed, partition, attempt;
    int64_t timeout_ms; ///< 0: 600 s
    int64_t channel_size;
    int64_t ahead_rows; ///< as in struct tfos_feeder_options
    int64_t stage;      ///< Spark's, of a feed that is computed lazily; negative: it is not
    bool has_results;
    bool is_remote; ///< over TCP even to a node of this machine
    bool allows_pickle;
};

// Steps give a status: OK; END: nothing more, of rows to feed, of results, or the reader wants no
// more; AGAIN: a result must be taken first, or there is none yet; negative with an exception.

/// `guard` is the owner's: waits end when it is closed. NULL with an exception.
struct tfos__py_row_feeder *
tfos__py_row_feeder_open(const struct tfos__py_row_feeder_options *options,
                         struct tfos__py_guard *guard);

/// "worker:0", or None when the partition is to be skipped; borrowed.
PyObject *tfos__py_row_feeder_node(const struct tfos__py_row_feeder *feeder);

bool tfos__py_row_feeder_has_results(const struct tfos__py_row_feeder *feeder);

/// Rows appended to the node.
int64_t tfos__py_row_feeder_row_count(const struct tfos__py_row_feeder *feeder);

/// Takes rows of an iterator until a batch is ready. END: there are no more, and no batch.
enum tfos_status tfos__py_row_feeder_fill(struct tfos__py_row_feeder *feeder, PyObject *iterator);

/// Appends the batch. AGAIN: take a result and append again. END: the reader wants no more.
enum tfos_status tfos__py_row_feeder_append(struct tfos__py_row_feeder *feeder);

/// Appends a batch that is columns already, but for the rows that earlier attempts delivered.
/// AGAIN: take a result and append it again. END: the reader wants no more.
enum tfos_status tfos__py_row_feeder_append_batch(struct tfos__py_row_feeder *feeder,
                                                  const struct ArrowSchema *schema,
                                                  const struct ArrowArray *array);

/// Marks the end of the partition. As append().
enum tfos_status tfos__py_row_feeder_finish(struct tfos__py_row_feeder *feeder);

/// Results that have come, as a new list, or `as_columns`, as an object with __arrow_c_array__;
/// those of a partition that is skipped raise. AGAIN: none yet, only when not `waiting`. END: each
/// row has its own, and finish() was called.
enum tfos_status tfos__py_row_feeder_take_results(struct tfos__py_row_feeder *feeder, bool waiting,
                                                  bool as_columns, PyObject **results);

/// NULL is accepted.
void tfos__py_row_feeder_close(struct tfos__py_row_feeder *feeder);

#endif
