// SPDX-License-Identifier: Apache-2.0
/// A dataset's structure in Python's objects. The caller holds the GIL.
#ifndef TFOS_PYTHON_DATASET_SPECS_H
#define TFOS_PYTHON_DATASET_SPECS_H

#include <Python.h>
#include <tfos/dataset.h>

/// (structure, [(path, role, dtype, shape)]); None in a shape for what varies. NULL with an
/// exception.
PyObject *tfos__py_dataset_specs_make(const struct tfos_tensor_spec *specs, int64_t count,
                                   enum tfos_row_structure structure);

#endif
