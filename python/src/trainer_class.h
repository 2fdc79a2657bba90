// SPDX-License-Identifier: Apache-2.0
/// What a FeedReader and a Dataset share with their Trainer: the handle, and for each queue the
/// iterator that the trainer owns and who reads it.
#ifndef TFOS_PYTHON_TRAINER_CLASS_H
#define TFOS_PYTHON_TRAINER_CLASS_H

#include <Python.h>

#include <stdatomic.h>
#include <tfos/trainer.h>

#include "handle.h"
#include "row_iterator.h"

struct tfos__py_trainer;

/// A queue that was opened. It stays as long as its trainer.
struct tfos__py_trainer_queue {
    struct tfos__py_trainer *trainer; ///< borrowed: the owner
    struct tfos__py_trainer_queue *next;
    char *name;                             ///< owned
    struct tfos__py_row_iterator *iterator; ///< owned; closed before the trainer
    struct tfos__py_guard feed;      ///< who reads the queue: a call of the iterator, or a dataset
    struct tfos__py_handle *dataset; ///< the open one; borrowed: it takes itself out when it closes
    int64_t dataset_count;           ///< opened so far
    atomic_bool is_ending;         ///< a dataset was closed that a thread of TensorFlow still holds
    struct tfos_trainer *agreeing; ///< the handle, for the dataset in the feed, as its timeout
    int64_t agree_timeout_ms;
};

struct tfos__py_trainer {
    struct tfos__py_handle handle;         ///< of a struct tfos_trainer
    struct tfos__py_trainer_queue *queues; ///< owned list
    atomic_bool is_closing;
};

/// The Trainer that `object` is; NULL with a TypeError, which names `function`.
struct tfos__py_trainer *tfos__py_trainer_of(PyObject *object, const char *function);

/// Enters to read a feed. -1 with an exception, as from tfos__py_handle_enter() and
/// tfos_trainer_check().
int tfos__py_trainer_enter(struct tfos__py_trainer *trainer);

/// The queue and its iterator, opened unless they are. The caller has entered the trainer. NULL
/// with an exception.
struct tfos__py_trainer_queue *tfos__py_trainer_open_queue(struct tfos__py_trainer *trainer,
                                                           const char *name);

/// A FeedReader on the queue's iterator. NULL with an exception.
PyObject *tfos__py_feed_reader_new(struct tfos__py_trainer_queue *queue);

#endif
