// SPDX-License-Identifier: Apache-2.0
// What making and ending objects of all classes has in common.
#include "classes.h"

#include <string.h>
#include <tfos/memory.h>

PyTypeObject *tfos__py_class_add(PyObject *module, PyType_Spec *spec)
{
    PyObject *class = PyType_FromSpec(spec);

    if (class == NULL)
        return NULL;
    Py_INCREF(class);
    if (PyModule_AddObject(module, strrchr(spec->name, '.') + 1, class) < 0) {
        Py_DECREF(class);
        Py_DECREF(class);
        return NULL;
    }
    return (PyTypeObject *)class;
}

PyObject *tfos__py_class_refuse_new(PyTypeObject *class, PyObject *args, PyObject *kwargs)
{
    (void)class;
    (void)args;
    (void)kwargs;
    PyErr_SetString(PyExc_TypeError,
                    "a FeedReader comes from Trainer.open_feed(), a ResultIterator "
                    "from FeedWriter.results(), an ArrowBatch from result_batches()");
    return NULL;
}

void tfos__py_class_free(PyObject *self)
{
    PyTypeObject *class = Py_TYPE(self);

    PyObject_Free(self);
    Py_DECREF((PyObject *)class);
}

PyObject *tfos__py_class_text(char *text)
{
    PyObject *object = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

    tfos_free(text);
    return object;
}
