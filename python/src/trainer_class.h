// SPDX-License-Identifier: Apache-2.0
/// What a FeedReader and a Dataset share with their Trainer: the handle, the cursor that the
/// trainer owns, and the turn to read the feed.
#ifndef TFOS_PYTHON_TRAINER_CLASS_H
#define TFOS_PYTHON_TRAINER_CLASS_H

#include "cursor.h"
#include "handle.h"

#include <Python.h>
#include <stdatomic.h>
#include <tfos/trainer.h>

struct tfos__trainer_object {
    struct tfos__handle handle;    ///< of a struct tfos_trainer
    struct tfos__cursor *cursor;   ///< in its queue; owned; closed before the trainer
    struct tfos__gate feed;        ///< who reads the queue: a call of the cursor, or a dataset
    struct tfos__handle *dataset;  ///< the open one; borrowed: it takes itself out when it closes
    int64_t dataset_count;         ///< opened so far
    struct tfos_trainer *agreeing; ///< the handle, for the dataset in the feed, as its timeout
    int64_t agree_timeout_ms;
    atomic_bool is_closing;
};

/// The Trainer that `object` is; NULL with a TypeError, which names `function`.
struct tfos__trainer_object *tfos__trainer_of(PyObject *object, const char *function);

/// Opens the queue and its cursor unless they are open. -1 with an exception.
int tfos__trainer_open_queue(struct tfos__trainer_object *trainer, const char *name);

/// A FeedReader on the trainer's cursor. NULL with an exception.
PyObject *tfos__reader_new(struct tfos__trainer_object *trainer);

#endif
