// SPDX-License-Identifier: Apache-2.0
/// A Collective made by a Trainer. The caller holds the GIL.
#ifndef TFOS_PYTHON_COLLECTIVE_CLASS_H
#define TFOS_PYTHON_COLLECTIVE_CLASS_H

#include <Python.h>

#include <tfos/collective.h>

/// The options that Collective() and Trainer.open_collective() share.
struct tfos__py_collective_options {
    struct tfos_collective_options library;
    const char *transport; ///< "auto" or "tcp"
};

#define TFOS__COLLECTIVE_PARAMETERS(options)                                                       \
    {"name", TFOS__TEXT, true, 0, 0, &(options).library.name},                                     \
        {"transport", TFOS__TEXT, false, 0, 0, &(options).transport},                              \
        {"trusted", TFOS__BOOL, false, 0, 0, &(options).library.is_trusted_network},               \
        {"parameters", TFOS__BOOL, false, 0, 0, &(options).library.has_parameters},                \
        {"gpu", TFOS__BOOL, false, 0, 0, &(options).library.has_gpu},                              \
        {"host", TFOS__OPTIONAL_TEXT, false, 0, 0, &(options).library.host},                       \
        {"open_timeout_ms", TFOS__INT, false, 0, INT64_MAX, &(options).library.open_timeout_ms},   \
        {"stall_timeout_ms", TFOS__INT, false, 0, INT64_MAX, &(options).library.stall_timeout_ms}, \
    {                                                                                              \
        "silence_timeout_ms", TFOS__INT, false, 0, INT64_MAX,                                      \
            &(options).library.silence_timeout_ms                                                  \
    }

/// Reads `transport`. -1 with ValueError that names `function`.
int tfos__py_collective_read_transport(struct tfos__py_collective_options *options,
                                       const char *function);

/// A Collective that owns `collective`, which is closed on failure. NULL with an exception.
PyObject *tfos__py_collective_new(struct tfos_collective *collective);

#endif
