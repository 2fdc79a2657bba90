// SPDX-License-Identifier: Apache-2.0
// What is needed of numpy. Invariant: only arrays and scalars of exactly numpy's own types and
// native byte order are given a type, so that the other side can make equal ones.
#include "numpy.h"

#include <string.h>

#define ARRAY_CONTIGUOUS 0x1
#define ARRAY_NATIVE 0x200

static const struct {
    const char *name;
    char letter;
    int itemsize;
} scalars[TFOS__NUMPY_SCALAR_COUNT] = {
    {"bool_", 'b', 1},     {"int8", 'i', 1},        {"int16", 'i', 2},   {"int32", 'i', 4},
    {"int64", 'i', 8},     {"uint8", 'u', 1},       {"uint16", 'u', 2},  {"uint32", 'u', 4},
    {"uint64", 'u', 8},    {"float16", 'f', 2},     {"float32", 'f', 4}, {"float64", 'f', 8},
    {"complex64", 'c', 8}, {"complex128", 'c', 16},
};

static struct tfos__numpy loaded; // guarded by the GIL; complete once ndarray is set

const struct tfos__numpy *tfos__numpy_load(void)
{
    struct tfos__numpy numpy = {0};
    PyObject *module = NULL;

    if (loaded.ndarray != NULL)
        return &loaded;
    module = PyImport_ImportModule("numpy");
    if (module == NULL)
        return NULL;
    numpy.no_check = Py_BuildValue("{s:O}", "refcheck", Py_False);
    numpy.dtype = PyObject_GetAttrString(module, "dtype");
    numpy.empty = PyObject_GetAttrString(module, "empty");
    numpy.ascontiguousarray = PyObject_GetAttrString(module, "ascontiguousarray");
    for (int i = 0; i < TFOS__NUMPY_SCALAR_COUNT; i++)
        numpy.scalars[i] = (PyTypeObject *)PyObject_GetAttrString(module, scalars[i].name);
    numpy.ndarray = (PyTypeObject *)PyObject_GetAttrString(module, "ndarray");
    Py_DECREF(module);
    if (PyErr_Occurred())
        return NULL; // a numpy without these names: the few references do not matter
    loaded = numpy;
    return &loaded;
}

const struct tfos__numpy *tfos__numpy_find(void)
{
    PyObject *name = NULL, *module = NULL;

    if (loaded.ndarray != NULL)
        return &loaded;
    name = PyUnicode_FromString("numpy");
    if (name == NULL)
        return NULL;
    module = PyImport_GetModule(name);
    Py_DECREF(name);
    if (module == NULL)
        return NULL;
    Py_DECREF(module);
    return tfos__numpy_load();
}

const struct tfos__array_interface *tfos__numpy_interface(PyObject *array, PyObject **capsule)
{
    PyObject *found = PyObject_GetAttrString(array, "__array_struct__");
    const struct tfos__array_interface *interface = NULL;

    if (found == NULL)
        return NULL;
    interface = PyCapsule_GetPointer(found, NULL);
    if (interface == NULL || interface->two != 2) {
        if (interface != NULL)
            PyErr_SetString(PyExc_TypeError, "numpy: __array_struct__ is of another version");
        Py_DECREF(found);
        return NULL;
    }
    *capsule = found;
    return interface;
}

/// Whether the array's dtype is one that numpy itself defines (bfloat16, say, also has the kind of
/// a number).
static bool is_builtin(PyObject *array)
{
    PyObject *dtype = PyObject_GetAttrString(array, "dtype");
    PyObject *builtin = dtype != NULL ? PyObject_GetAttrString(dtype, "isbuiltin") : NULL;
    bool is = builtin != NULL && PyLong_AsLong(builtin) == 1;

    Py_XDECREF(builtin);
    Py_XDECREF(dtype);
    return is && !PyErr_Occurred();
}

static bool classify_array(PyObject *value, struct tfos__value_type *type)
{
    PyObject *capsule = NULL;
    const struct tfos__array_interface *interface = NULL;
    bool has_form = false;

    if (!is_builtin(value))
        return false;
    interface = tfos__numpy_interface(value, &capsule);
    if (interface == NULL)
        return false;
    if (strchr("biufc", interface->typekind) != NULL && (interface->flags & ARRAY_NATIVE) != 0 &&
        interface->nd <= TFOS__MAX_DIMENSIONS) {
        *type = (struct tfos__value_type){
            .kind = TFOS__VALUE_ARRAY,
            .letter = interface->typekind,
            .itemsize = interface->itemsize,
            .is_fixed = true,
            .dimension_count = interface->nd,
        };
        for (int i = 0; i < interface->nd; i++)
            type->shape[i] = interface->shape[i];
        has_form = true;
    }
    Py_DECREF(capsule);
    return has_form;
}

bool tfos__numpy_classify(const struct tfos__numpy *numpy, PyObject *value,
                          struct tfos__value_type *type)
{
    if (Py_TYPE(value) == numpy->ndarray)
        return classify_array(value, type);
    for (int i = 0; i < TFOS__NUMPY_SCALAR_COUNT; i++) {
        if (Py_TYPE(value) == numpy->scalars[i]) {
            *type = (struct tfos__value_type){
                .kind = TFOS__VALUE_SCALAR,
                .letter = scalars[i].letter,
                .itemsize = scalars[i].itemsize,
            };
            return true;
        }
    }
    return false;
}

PyTypeObject *tfos__numpy_scalar_type(const struct tfos__numpy *numpy, char letter, int itemsize)
{
    for (int i = 0; i < TFOS__NUMPY_SCALAR_COUNT; i++) {
        if (scalars[i].letter == letter && scalars[i].itemsize == itemsize)
            return numpy->scalars[i];
    }
    return NULL;
}

PyObject *tfos__numpy_new_array(const struct tfos__numpy *numpy,
                                const struct tfos__value_type *type, PyObject *dtype, int64_t count,
                                void **data)
{
    int row = count < 0 ? 0 : 1;
    PyObject *shape = PyTuple_New(row + type->dimension_count);
    PyObject *array = NULL, *capsule = NULL;
    const struct tfos__array_interface *interface = NULL;

    if (shape == NULL)
        return NULL;
    for (int i = 0; i < row + type->dimension_count; i++) {
        PyObject *size = PyLong_FromLongLong(i < row ? count : type->shape[i - row]);
        if (size == NULL || PyTuple_SetItem(shape, i, size) < 0) {
            Py_DECREF(shape);
            return NULL;
        }
    }
    array = PyObject_CallFunctionObjArgs(numpy->empty, shape, dtype, NULL);
    Py_DECREF(shape);
    if (array == NULL)
        return NULL;
    interface = tfos__numpy_interface(array, &capsule);
    if (interface == NULL) {
        Py_DECREF(array);
        return NULL;
    }
    *data = interface->data;
    Py_DECREF(capsule);
    return array;
}

PyObject *tfos__numpy_new_objects(const struct tfos__numpy *numpy, Py_ssize_t count)
{
    return PyObject_CallFunction(numpy->empty, "nO", count, (PyObject *)&PyBaseObject_Type);
}

PyObject *tfos__numpy_object_array(PyObject *objects)
{
    const struct tfos__numpy *numpy = tfos__numpy_load();
    Py_ssize_t count = PyList_Size(objects);
    PyObject *array = numpy != NULL ? tfos__numpy_new_objects(numpy, count) : NULL;

    for (Py_ssize_t i = 0; array != NULL && i < count; i++) {
        if (PySequence_SetItem(array, i, PyList_GetItem(objects, i)) < 0)
            Py_CLEAR(array);
    }
    return array;
}
