// SPDX-License-Identifier: Apache-2.0
/// A SavedModel that is loaded: a session, which any number of threads may run.
#ifndef TFOS_MODEL_SAVED_MODEL_H
#define TFOS_MODEL_SAVED_MODEL_H

#include <tfos/model.h>

#include "model/tensorflow.h"

struct tfos_model {
    const struct tfos__model_tensorflow *tf;
    struct TF_Graph *graph;     ///< owned
    struct TF_Session *session; ///< owned
    char *path;                 ///< owned; in messages
};

#endif
