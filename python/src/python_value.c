// SPDX-License-Identifier: Apache-2.0
#include "python_value.h"

#include "numpy.h"

PyObject *tfos__py_value_encode(PyObject *text)
{
    PyObject *bytes = PyUnicode_AsUTF8String(text);

    if (!bytes && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        PyErr_Clear();
    return bytes;
}

int tfos__py_value_kind_of(PyObject *value, enum tfos__py_value_kind *kind)
{
    *kind = TFOS__VALUE_OPAQUE;
    if (value == Py_True || value == Py_False) {
        *kind = TFOS__VALUE_BOOL;
    } else if (Py_TYPE(value) == &PyFloat_Type) {
        *kind = TFOS__VALUE_FLOAT;
    } else if (Py_TYPE(value) == &PyLong_Type) {
        int overflow = 0;
        PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow == 0)
            *kind = TFOS__VALUE_INT;
    } else if (Py_TYPE(value) == &PyUnicode_Type) {
        PyObject *bytes = tfos__py_value_encode(value);
        if (!bytes)
            return PyErr_Occurred() ? -1 : 0;
        Py_DECREF(bytes);
        *kind = TFOS__VALUE_TEXT;
    } else if (Py_TYPE(value) == &PyBytes_Type) {
        *kind = TFOS__VALUE_BYTES;
    }
    return 0;
}

/// Classifies a value that is neither None nor a sequence of Python's.
static int classify_single(PyObject *value, struct tfos__py_value_type *type)
{
    const struct tfos__py_numpy *numpy = NULL;

    if (tfos__py_value_kind_of(value, &type->kind) < 0)
        return -1;
    if (type->kind != TFOS__VALUE_OPAQUE)
        return 0;
    numpy = tfos__py_numpy_find();
    if (!numpy || !tfos__py_numpy_classify(numpy, value, type))
        *type = (struct tfos__py_value_type){.kind = TFOS__VALUE_OPAQUE};
    return PyErr_Occurred() ? -1 : 0;
}

static int classify_list(PyObject *list, struct tfos__py_value_type *type)
{
    tfos__py_item_getter *get = tfos__py_value_getter(list);
    Py_ssize_t count = PySequence_Size(list);
    struct tfos__py_value_type item = {.kind = TFOS__VALUE_NULL};

    for (Py_ssize_t i = 0; i < count; i++) {
        struct tfos__py_value_type next = {.kind = TFOS__VALUE_NULL};
        if (classify_single(get(list, i), &next) < 0)
            return -1;
        if ((next.kind >= TFOS__VALUE_OPAQUE && next.kind != TFOS__VALUE_SCALAR) ||
            (i > 0 && !tfos__py_value_type_equals(&next, &item))) {
            type->kind = TFOS__VALUE_OPAQUE;
            return 0;
        }
        item = next;
    }
    *type = item; // the letter, itemsize and unit
    type->kind = Py_TYPE(list) == &PyList_Type ? TFOS__VALUE_LIST : TFOS__VALUE_TUPLE;
    type->item = item.kind;
    type->is_fixed = tfos__py_value_type_width(type) > 0 && item.kind != TFOS__VALUE_NULL;
    type->dimension_count = type->is_fixed ? 1 : 0;
    type->shape[0] = count;
    return 0;
}

int tfos__py_value_classify(PyObject *value, struct tfos__py_value_type *type)
{
    *type = (struct tfos__py_value_type){.kind = TFOS__VALUE_NULL};
    if (value == Py_None)
        return 0;
    return tfos__py_value_is_list(value) ? classify_list(value, type)
                                         : classify_single(value, type);
}

// ---- plain values

struct tfos__py_value_type tfos__py_value_leaf(const struct tfos__py_value_type *elements)
{
    struct tfos__py_value_type leaf = *elements;

    leaf.kind = leaf.letter == 'b'                         ? TFOS__VALUE_BOOL
                : leaf.letter == 'i' || leaf.letter == 'u' ? TFOS__VALUE_INT
                : leaf.letter == 'f' && leaf.itemsize <= 8 ? TFOS__VALUE_FLOAT
                                                           : TFOS__VALUE_OPAQUE;
    if (leaf.kind == TFOS__VALUE_FLOAT && leaf.itemsize == 2)
        leaf.itemsize = 4; // Python cannot write halves
    return leaf;
}

static bool is_of_subclass(PyObject *value, PyTypeObject *class)
{
    return Py_TYPE(value) != class && PyType_IsSubtype(Py_TYPE(value), class);
}

/// The int, float, str or bytes that a value of a subclass of these is, anything else as it is: a
/// new reference. NULL with an exception.
static PyObject *make_base(PyObject *value)
{
    int overflow = 0;

    if (is_of_subclass(value, &PyUnicode_Type))
        return PyUnicode_FromObject(value);
    if (is_of_subclass(value, &PyBytes_Type))
        return PyBytes_FromStringAndSize(PyBytes_AsString(value), PyBytes_Size(value));
    if (is_of_subclass(value, &PyFloat_Type))
        return PyFloat_FromDouble(PyFloat_AsDouble(value));
    if (is_of_subclass(value, &PyLong_Type) && Py_TYPE(value) != &PyBool_Type) {
        int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow == 0)
            return PyLong_FromLongLong(number);
    }
    Py_INCREF(value);
    return value;
}

/// Whether it is an array of numpy's, of whichever class, or one of its scalars.
static int is_numpy(const struct tfos__py_numpy *numpy, PyObject *value)
{
    struct tfos__py_value_type type;

    if (PyType_IsSubtype(Py_TYPE(value), numpy->ndarray) ||
        tfos__py_numpy_classify(numpy, value, &type))
        return 1;
    return PyErr_Occurred() ? -1 : 0;
}

/// Whether an array has no numbers, but texts, bytes or objects.
static int has_objects(PyObject *array)
{
    PyObject *dtype = PyObject_GetAttrString(array, "dtype");
    PyObject *kind = dtype ? PyObject_GetAttrString(dtype, "kind") : NULL;
    int result = -1;

    if (kind)
        result = PyUnicode_CompareWithASCIIString(kind, "O") == 0 ||
                 PyUnicode_CompareWithASCIIString(kind, "S") == 0 ||
                 PyUnicode_CompareWithASCIIString(kind, "U") == 0;
    Py_XDECREF(kind);
    Py_XDECREF(dtype);
    return result;
}

/// The same for numpy's values.
static PyObject *make_list(const struct tfos__py_numpy *numpy, PyObject *value,
                           struct tfos__py_value_type *leaf)
{
    struct tfos__py_value_type elements = {.kind = TFOS__VALUE_SCALAR};
    bool is_native = false;
    int has_list = 0;

    if (tfos__py_numpy_read_elements(numpy, value, &elements, &is_native)) {
        elements = tfos__py_value_leaf(&elements);
        has_list = elements.kind != TFOS__VALUE_OPAQUE;
        if (has_list && leaf)
            *leaf = elements;
    } else if (!PyErr_Occurred()) {
        has_list = has_objects(value);
    }
    if (has_list < 0 || PyErr_Occurred())
        return NULL;
    if (has_list > 0)
        return PyObject_CallMethod(value, "tolist", NULL);
    Py_INCREF(value);
    return value;
}

PyObject *tfos__py_value_plain(PyObject *value, struct tfos__py_value_type *leaf)
{
    const struct tfos__py_numpy *numpy = NULL;
    int is = 0;

    if (tfos__py_value_is_plain(value)) {
        Py_INCREF(value);
        return value;
    }
    numpy = tfos__py_numpy_find();
    is = numpy ? is_numpy(numpy, value) : 0;
    if (is < 0 || PyErr_Occurred())
        return NULL;
    return is > 0 ? make_list(numpy, value, leaf) : make_base(value);
}
