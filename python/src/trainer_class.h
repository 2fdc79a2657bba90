// SPDX-License-Identifier: Apache-2.0
/// What a FeedReader shares with its Trainer: the gate, and the cursor that the trainer owns.
#ifndef TFOS_PYTHON_TRAINER_CLASS_H
#define TFOS_PYTHON_TRAINER_CLASS_H

#include "cursor.h"
#include "gate.h"

#include <Python.h>
#include <tfos/trainer.h>

struct tfos__trainer_object {
    PyObject_HEAD
    struct tfos__gate gate;
    struct tfos_trainer *handle; ///< owned; NULL before init and after close
    struct tfos__cursor *cursor; ///< in that queue; owned; closed before the handle
};

/// A FeedReader on the trainer's cursor. NULL with an exception.
PyObject *tfos__reader_new(struct tfos__trainer_object *trainer);

#endif
