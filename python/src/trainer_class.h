// SPDX-License-Identifier: Apache-2.0
/// What a FeedReader shares with its Trainer: the handle, and the cursor that the trainer owns.
#ifndef TFOS_PYTHON_TRAINER_CLASS_H
#define TFOS_PYTHON_TRAINER_CLASS_H

#include "cursor.h"
#include "handle.h"

#include <Python.h>
#include <tfos/trainer.h>

struct tfos__trainer_object {
    struct tfos__handle handle;  ///< of a struct tfos_trainer
    struct tfos__cursor *cursor; ///< in its queue; owned; closed before the trainer
};

/// A FeedReader on the trainer's cursor. NULL with an exception.
PyObject *tfos__reader_new(struct tfos__trainer_object *trainer);

#endif
