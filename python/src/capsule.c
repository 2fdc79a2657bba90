// SPDX-License-Identifier: Apache-2.0
// A capsule releases what it holds in the end, so a view needs no more than a reference to it.
#include "capsule.h"

#include "arrow/arrow.h"
#include "error.h"

int tfos__py_capsule_init(struct tfos__py_capsule *capsule, PyObject *batch)
{
    PyObject *pair = NULL;

    if (!PyObject_HasAttrString(batch, "__arrow_c_array__")) {
        PyErr_Format(PyExc_TypeError,
                     "batch: expected an Arrow batch (anything with __arrow_c_array__), not %R",
                     (PyObject *)Py_TYPE(batch));
        return -1;
    }
    pair = PyObject_CallMethod(batch, "__arrow_c_array__", NULL);
    if (!pair)
        return -1;
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "batch: __arrow_c_array__() gave no pair of capsules");
        goto drop_pair;
    }
    capsule->schema = PyCapsule_GetPointer(PyTuple_GetItem(pair, 0), "arrow_schema");
    if (!capsule->schema)
        goto drop_pair;
    capsule->array = PyCapsule_GetPointer(PyTuple_GetItem(pair, 1), "arrow_array");
    if (!capsule->array)
        goto drop_pair;
    if (!capsule->schema->release || !capsule->array->release ||
        !tfos__arrow_is_struct(capsule->schema)) {
        PyErr_SetString(PyExc_TypeError, "batch: expected a struct of columns");
        goto drop_pair;
    }
    if (tfos__arrow_has_nulls(capsule->array)) {
        tfos__py_raise_format(TFOS_INVALID, "feed: a batch has rows that are null themselves");
        goto drop_pair;
    }
    capsule->pair = pair;
    return 0;

drop_pair:
    Py_DECREF(pair);
    return -1;
}

PyObject *tfos__py_capsule_schema(PyObject *schema, const struct ArrowSchema **view)
{
    PyObject *capsule = NULL;

    if (PyCapsule_IsValid(schema, "arrow_schema")) {
        Py_INCREF(schema);
        capsule = schema;
    } else if (PyObject_HasAttrString(schema, "__arrow_c_schema__")) {
        capsule = PyObject_CallMethod(schema, "__arrow_c_schema__", NULL);
    } else {
        PyErr_Format(PyExc_TypeError,
                     "schema: expected an Arrow schema (anything with __arrow_c_schema__), not %R",
                     (PyObject *)Py_TYPE(schema));
    }
    if (!capsule)
        return NULL;
    *view = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (*view && (*view)->release && tfos__arrow_is_struct(*view))
        return capsule;
    if (*view)
        PyErr_SetString(PyExc_TypeError, "schema: expected a struct of columns");
    Py_DECREF(capsule);
    return NULL;
}

void tfos__py_capsule_clear(struct tfos__py_capsule *capsule)
{
    Py_CLEAR(capsule->pair);
}

// ---- capsules for others

static void release_schema(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");

    tfos__arrow_schema_release(schema);
    PyMem_Free(schema);
}

static void release_array(PyObject *capsule)
{
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");

    tfos__arrow_array_release(array);
    PyMem_Free(array);
}

PyObject *tfos__py_capsule_wrap_schema(struct ArrowSchema *schema)
{
    struct ArrowSchema *moved = PyMem_Malloc(sizeof(*moved));
    PyObject *capsule = moved ? PyCapsule_New(moved, "arrow_schema", release_schema) : NULL;

    if (!capsule) {
        PyMem_Free(moved);
        schema->release(schema);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    *moved = *schema;
    return capsule;
}

PyObject *tfos__py_capsule_wrap_array(struct ArrowArray *array)
{
    struct ArrowArray *moved = PyMem_Malloc(sizeof(*moved));
    PyObject *capsule = moved ? PyCapsule_New(moved, "arrow_array", release_array) : NULL;

    if (!capsule) {
        PyMem_Free(moved);
        array->release(array);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    *moved = *array;
    return capsule;
}
