// SPDX-License-Identifier: Apache-2.0
// The extension module tensorflowonspark._tfos.
#include <tfos/rendezvous.h>
#include <tfos/version.h>

#include "error.h"
#include "handle.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tensorflowonspark._tfos",
    .m_doc = "Distributed TensorFlow on Apache Spark: the C library.",
    .m_size = -1,
};

static int add_constants(PyObject *module)
{
    static const struct {
        const char *name;
        enum tfos_rendezvous_phase value;
    } phases[] = {
        {"RUNNING", TFOS_PHASE_RUNNING},
        {"DRAINED", TFOS_PHASE_DRAINED},
        {"WORKED", TFOS_PHASE_WORKED},
        {"ENDED", TFOS_PHASE_ENDED},
    };

    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        if (PyModule_AddIntConstant(module, phases[i].name, phases[i].value) < 0)
            return -1;
    }
    return PyModule_AddStringConstant(module, "VERSION", TFOS_VERSION);
}

PyMODINIT_FUNC PyInit__tfos(void);

PyMODINIT_FUNC PyInit__tfos(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (!module)
        return NULL;
    if (tfos__py_errors_add(module) < 0 || add_constants(module) < 0 ||
        tfos__py_classes_add(module) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
