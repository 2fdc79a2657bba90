// SPDX-License-Identifier: Apache-2.0
/// What a FeedReader and a Dataset share with their Trainer: the handle, and for each queue the
/// cursor that the trainer owns and the turn to read.
#ifndef TFOS_PYTHON_TRAINER_CLASS_H
#define TFOS_PYTHON_TRAINER_CLASS_H

#include "cursor.h"
#include "handle.h"

#include <Python.h>
#include <stdatomic.h>
#include <tfos/trainer.h>

struct tfos__trainer_object;

/// A queue that was opened. It stays as long as its trainer.
struct tfos__trainer_queue {
    struct tfos__trainer_object *trainer; ///< borrowed: the owner
    struct tfos__trainer_queue *next;
    char *name;                    ///< owned
    struct tfos__cursor *cursor;   ///< owned; closed before the trainer
    struct tfos__gate feed;        ///< who reads the queue: a call of the cursor, or a dataset
    struct tfos__handle *dataset;  ///< the open one; borrowed: it takes itself out when it closes
    int64_t dataset_count;         ///< opened so far
    atomic_bool is_ending;         ///< a dataset was closed that a thread of TensorFlow still holds
    struct tfos_trainer *agreeing; ///< the handle, for the dataset in the feed, as its timeout
    int64_t agree_timeout_ms;
};

struct tfos__trainer_object {
    struct tfos__handle handle;         ///< of a struct tfos_trainer
    struct tfos__trainer_queue *queues; ///< owned list
    atomic_bool is_closing;
};

/// The Trainer that `object` is; NULL with a TypeError, which names `function`.
struct tfos__trainer_object *tfos__trainer_of(PyObject *object, const char *function);

/// Enters to read a feed. -1 with an exception, as from tfos__handle_enter() and
/// tfos_trainer_check().
int tfos__trainer_enter(struct tfos__trainer_object *trainer);

/// The queue and its cursor, opened unless they are. The caller has entered the trainer. NULL with
/// an exception.
struct tfos__trainer_queue *tfos__trainer_open_queue(struct tfos__trainer_object *trainer,
                                                     const char *name);

/// A FeedReader on the queue's cursor. NULL with an exception.
PyObject *tfos__reader_new(struct tfos__trainer_queue *queue);

#endif
