// SPDX-License-Identifier: Apache-2.0
// What is needed of numpy. Invariant: only arrays and scalars of exactly numpy's own types and
// native byte order are given a type, so that the other side can make equal ones. A dtype that came
// through pickle is another object than the one of its name, so dtypes are compared by value.
#include "numpy.h"

#include <string.h>

static const struct {
    const char *name;
    char letter;
    int itemsize;
} scalars[TFOS__NUMPY_SCALAR_COUNT] = {
    {"bool_", 'b', 1},     {"int8", 'i', 1},        {"int16", 'i', 2},      {"int32", 'i', 4},
    {"int64", 'i', 8},     {"uint8", 'u', 1},       {"uint16", 'u', 2},     {"uint32", 'u', 4},
    {"uint64", 'u', 8},    {"float16", 'f', 2},     {"float32", 'f', 4},    {"float64", 'f', 8},
    {"complex64", 'c', 8}, {"complex128", 'c', 16}, {"datetime64", 'M', 8}, {"timedelta64", 'm', 8},
};

static struct tfos__py_numpy loaded; // guarded by the GIL; complete once ndarray is set

const struct tfos__py_numpy *tfos__py_numpy_load(void)
{
    struct tfos__py_numpy numpy = {0};
    PyObject *module = NULL;

    if (loaded.ndarray)
        return &loaded;
    module = PyImport_ImportModule("numpy");
    if (!module)
        return NULL;
    numpy.no_check = Py_BuildValue("{s:O}", "refcheck", Py_False);
    numpy.dtype = PyObject_GetAttrString(module, "dtype");
    numpy.empty = PyObject_GetAttrString(module, "empty");
    numpy.ascontiguousarray = PyObject_GetAttrString(module, "ascontiguousarray");
    for (int i = 0; i < TFOS__NUMPY_SCALAR_COUNT; i++)
        numpy.scalars[i] = (PyTypeObject *)PyObject_GetAttrString(module, scalars[i].name);
    numpy.memmap = (PyTypeObject *)PyObject_GetAttrString(module, "memmap");
    numpy.ndarray = (PyTypeObject *)PyObject_GetAttrString(module, "ndarray");
    Py_DECREF(module);
    if (PyErr_Occurred())
        return NULL; // a numpy without these names: the few references do not matter
    loaded = numpy;
    return &loaded;
}

const struct tfos__py_numpy *tfos__py_numpy_find(void)
{
    PyObject *name = NULL, *module = NULL;

    if (loaded.ndarray)
        return &loaded;
    name = PyUnicode_FromString("numpy");
    if (!name)
        return NULL;
    module = PyImport_GetModule(name);
    Py_DECREF(name);
    if (!module)
        return NULL;
    Py_DECREF(module);
    return tfos__py_numpy_load();
}

const struct tfos__py_numpy_interface_struct *tfos__py_numpy_interface(PyObject *array,
                                                                       PyObject **capsule)
{
    PyObject *found = PyObject_GetAttrString(array, "__array_struct__");
    const struct tfos__py_numpy_interface_struct *interface = NULL;

    if (!found)
        return NULL;
    interface = PyCapsule_GetPointer(found, NULL);
    if (!interface || interface->two != 2) {
        if (interface)
            PyErr_SetString(PyExc_TypeError, "numpy: __array_struct__ is of another version");
        Py_DECREF(found);
        return NULL;
    }
    *capsule = found;
    return interface;
}

PyObject *tfos__py_numpy_dtype(const struct tfos__py_numpy *numpy,
                               const struct tfos__py_value_type *type)
{
    char text[8];

    tfos__py_value_type_dtype(type, text);
    return PyObject_CallFunction(numpy->dtype, "s", text);
}

// A dtype's code is not enough: types that other packages define (bfloat16, say) may have that of a
// number. It begins with the byte order.
bool tfos__py_numpy_read_elements(const struct tfos__py_numpy *numpy, PyObject *value,
                                  struct tfos__py_value_type *type, bool *is_native)
{
    PyObject *dtype = PyObject_GetAttrString(value, "dtype"), *own = NULL;
    PyObject *code = dtype ? PyObject_GetAttrString(dtype, "str") : NULL;
    PyObject *bytes = code ? PyUnicode_AsUTF8String(code) : NULL;
    int is_own = 0;

    if (bytes && tfos__py_value_type_read_dtype(PyBytes_AsString(bytes) + 1, type)) {
        *is_native = *PyBytes_AsString(bytes) != '>';
        own = PyObject_CallFunctionObjArgs(numpy->dtype, code, NULL);
        is_own = own ? PyObject_RichCompareBool(dtype, own, Py_EQ) : -1;
    }
    Py_XDECREF(own);
    Py_XDECREF(bytes);
    Py_XDECREF(code);
    Py_XDECREF(dtype);
    return is_own > 0;
}

static bool classify_array(const struct tfos__py_numpy *numpy, PyObject *value,
                           struct tfos__py_value_type *type)
{
    PyObject *capsule = NULL;
    const struct tfos__py_numpy_interface_struct *interface = NULL;
    bool is_native = false;

    *type = (struct tfos__py_value_type){.kind = TFOS__VALUE_ARRAY, .is_fixed = true};
    if (!tfos__py_numpy_read_elements(numpy, value, type, &is_native) || !is_native)
        return false;
    interface = tfos__py_numpy_interface(value, &capsule);
    if (!interface)
        return false;
    type->dimension_count = interface->nd;
    for (int i = 0; i < interface->nd && i < TFOS__MAX_DIMENSIONS; i++)
        type->shape[i] = interface->shape[i];
    Py_DECREF(capsule);
    return type->dimension_count <= TFOS__MAX_DIMENSIONS;
}

bool tfos__py_numpy_classify(const struct tfos__py_numpy *numpy, PyObject *value,
                             struct tfos__py_value_type *type)
{
    bool is_native = true; // as scalars always are

    if (tfos__py_numpy_is_array(numpy, value))
        return classify_array(numpy, value, type);
    for (int i = 0; i < TFOS__NUMPY_SCALAR_COUNT; i++) {
        if (Py_TYPE(value) == numpy->scalars[i]) {
            *type = (struct tfos__py_value_type){
                .kind = TFOS__VALUE_SCALAR,
                .letter = scalars[i].letter,
                .itemsize = scalars[i].itemsize,
            };
            return !tfos__py_value_type_is_moment(type) ||
                   tfos__py_numpy_read_elements(numpy, value, type, &is_native);
        }
    }
    return false;
}

PyTypeObject *tfos__py_numpy_scalar_type(const struct tfos__py_numpy *numpy,
                                         const struct tfos__py_value_type *type)
{
    for (int i = 0; i < TFOS__NUMPY_SCALAR_COUNT; i++) {
        if (scalars[i].letter == type->letter && scalars[i].itemsize == type->itemsize)
            return numpy->scalars[i];
    }
    return NULL;
}

PyObject *tfos__py_numpy_new_array(const struct tfos__py_numpy *numpy,
                                   const struct tfos__py_value_type *type, PyObject *dtype,
                                   int64_t count, void **data)
{
    int row = count < 0 ? 0 : 1;
    PyObject *shape = PyTuple_New(row + type->dimension_count);
    PyObject *array = NULL, *capsule = NULL;
    const struct tfos__py_numpy_interface_struct *interface = NULL;

    if (!shape)
        return NULL;
    for (int i = 0; i < row + type->dimension_count; i++) {
        PyObject *size = PyLong_FromLongLong(i < row ? count : type->shape[i - row]);
        if (!size || PyTuple_SetItem(shape, i, size) < 0) {
            Py_DECREF(shape);
            return NULL;
        }
    }
    array = PyObject_CallFunctionObjArgs(numpy->empty, shape, dtype, NULL);
    Py_DECREF(shape);
    if (!array)
        return NULL;
    interface = tfos__py_numpy_interface(array, &capsule);
    if (!interface) {
        Py_DECREF(array);
        return NULL;
    }
    *data = interface->data;
    Py_DECREF(capsule);
    return array;
}

PyObject *tfos__py_numpy_new_objects(const struct tfos__py_numpy *numpy, Py_ssize_t count)
{
    return PyObject_CallFunction(numpy->empty, "nO", count, (PyObject *)&PyBaseObject_Type);
}

PyObject *tfos__py_numpy_object_array(PyObject *objects)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    Py_ssize_t count = PyList_Size(objects);
    PyObject *array = numpy ? tfos__py_numpy_new_objects(numpy, count) : NULL;

    for (Py_ssize_t i = 0; array && i < count; i++) {
        if (PySequence_SetItem(array, i, PyList_GetItem(objects, i)) < 0)
            Py_CLEAR(array);
    }
    return array;
}
