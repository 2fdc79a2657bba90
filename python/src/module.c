// SPDX-License-Identifier: Apache-2.0
// The extension module tensorflowonspark._tfos: its functions, constants, exceptions and classes.
#include "error.h"
#include "sample.h"

#include <Python.h>
#include <tfos/version.h>

static PyMethodDef functions[] = {
    {"pack", tfos__sample_pack, METH_O, "The rows, packed into batches and unpacked again."},
    {"pack_arrays", tfos__sample_pack_arrays, METH_O, "The arrays of the rows' batches."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tensorflowonspark._tfos",
    .m_doc = "Distributed TensorFlow on Apache Spark: the C library.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__tfos(void);

PyMODINIT_FUNC PyInit__tfos(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (module == NULL)
        return NULL;
    if (tfos__errors_add(module) < 0 ||
        PyModule_AddStringConstant(module, "VERSION", TFOS_VERSION) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
