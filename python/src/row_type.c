// SPDX-License-Identifier: Apache-2.0
// Classes are compared exactly. Those of the last rows are kept, so that a row like the one
// before it is known by one comparison.
#include "row_type.h"

#include <string.h>

#include "arrow/arrow.h"
#include "error.h"
#include "pickle.h"

const char *const tfos__py_row_kind_names[TFOS__ROW_KINDS] = {
    [TFOS__ROW_VALUE] = "value", [TFOS__ROW_TUPLE] = "tuple", [TFOS__ROW_LIST] = "list",
    [TFOS__ROW_DICT] = "dict",   [TFOS__ROW_SPARK] = "row",   [TFOS__ROW_NAMED] = "named",
};

// ---- namedtuples and dataclasses
//
// Objects are made as pickle makes those of classes that say nothing of it: without their __init__,
// and with the state put into the new object. Those with a state or a way of pickling of their own
// are not known here.

/// An attribute; NULL: there is none.
static PyObject *find(PyObject *object, const char *name)
{
    PyObject *found = PyObject_GetAttrString(object, name);

    if (!found && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return found;
}

/// Whether a class has a method of its own, and not object's, or one that its decorator made.
static bool has_own(PyObject *class, const char *name)
{
    PyObject *method = find(class, name);
    PyObject *other = method ? find((PyObject *)&PyBaseObject_Type, name) : NULL;
    PyObject *module = method && method != other ? find(method, "__module__") : NULL;
    bool is_own = method && method != other;

    if (module && PyUnicode_Check(module) &&
        PyUnicode_CompareWithASCIIString(module, "dataclasses") == 0)
        is_own = false;
    Py_XDECREF(module);
    Py_XDECREF(other);
    Py_XDECREF(method);
    return is_own;
}

static bool is_pickled_otherwise(PyObject *class)
{
    return has_own(class, "__reduce__") || has_own(class, "__reduce_ex__") ||
           has_own(class, "__getstate__") || has_own(class, "__setstate__");
}

/// A namedtuple's names.
static PyObject *find_tuple_fields(PyObject *class)
{
    PyObject *names = find(class, "_fields");

    if (names && (!PyTuple_Check(names) || is_pickled_otherwise(class)))
        Py_CLEAR(names);
    return names;
}

/// A dataclass's names.
static PyObject *find_class_fields(PyObject *class)
{
    PyObject *module = NULL, *fields = NULL, *names = NULL;
    PyObject *marker = find(class, "__dataclass_fields__");

    if (!marker)
        return NULL;
    Py_DECREF(marker);
    if (has_own(class, "__new__") || has_own(class, "__getnewargs__") ||
        has_own(class, "__getnewargs_ex__") || is_pickled_otherwise(class))
        return NULL;
    module = PyImport_ImportModule("dataclasses");
    fields = module ? PyObject_CallMethod(module, "fields", "O", class) : NULL;
    names = fields ? PyTuple_New(PyTuple_Size(fields)) : NULL;
    for (Py_ssize_t i = 0; names && i < PyTuple_Size(fields); i++) {
        PyObject *name = PyObject_GetAttrString(PyTuple_GetItem(fields, i), "name");
        if (!name || PyTuple_SetItem(names, i, name) < 0)
            Py_CLEAR(names);
    }
    Py_XDECREF(fields);
    Py_XDECREF(module);
    return names;
}

/// The names of a row's fields, a tuple of str and a new reference, or NULL without an exception:
/// its class is of no such kind.
static PyObject *find_fields(PyObject *row)
{
    PyObject *class = (PyObject *)Py_TYPE(row);

    if (PyErr_Occurred())
        return NULL;
    return PyTuple_Check(row) ? find_tuple_fields(class) : find_class_fields(class);
}

/// Whether a row of a class with `names` has its fields and nothing else. -1 with an exception.
static int is_whole(PyObject *row, PyObject *names)
{
    PyObject *state = find(row, "__dict__");
    Py_ssize_t count = PyTuple_Size(names), own_count = PyTuple_Check(row) ? 0 : count;
    int is = !PyErr_Occurred();

    if (state && (!PyDict_Check(state) || PyDict_Size(state) != own_count))
        is = 0;
    if (PyTuple_Check(row) && PyTuple_Size(row) != count)
        is = 0;
    for (Py_ssize_t i = 0; is && i < own_count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        PyObject *value = NULL;
        if (state)
            is = PyDict_GetItemWithError(state, name) != NULL;
        else if (!(value = PyObject_GenericGetAttr(row, name)))
            is = 0;
        Py_XDECREF(value);
    }
    Py_XDECREF(state);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return -1;
    PyErr_Clear();
    return is;
}

/// The value of a field, a new reference. NULL with an exception.
static PyObject *named_value(PyObject *row, PyObject *names, Py_ssize_t index)
{
    PyObject *value = NULL;

    if (!PyTuple_Check(row))
        return PyObject_GenericGetAttr(row, PyTuple_GetItem(names, index));
    value = PyTuple_GetItem(row, index);
    Py_XINCREF(value);
    return value;
}

// ---- types of rows

/// Whether `row` is a pyspark.sql.Row with names. pyspark need not be imported to know.
static bool is_spark_row(PyObject *row)
{
    PyObject *class = (PyObject *)Py_TYPE(row);
    PyObject *module = NULL, *name = NULL;
    bool is_row = false;

    if (!PyTuple_Check(row) || Py_TYPE(row) == &PyTuple_Type)
        return false;
    module = PyObject_GetAttrString(class, "__module__");
    name = PyObject_GetAttrString(class, "__name__");
    is_row = module && name && PyUnicode_Check(module) && PyUnicode_Check(name) &&
             PyUnicode_CompareWithASCIIString(module, "pyspark.sql.types") == 0 &&
             PyUnicode_CompareWithASCIIString(name, "Row") == 0 &&
             PyObject_HasAttrString(row, "__fields__");
    Py_XDECREF(module);
    Py_XDECREF(name);
    PyErr_Clear();
    return is_row;
}

/// What a row is, as far as its class says. `names`, which may be NULL, is set to those of NAMED.
static enum tfos__py_row_kind kind_of(PyObject *row, PyObject **names)
{
    PyObject *found = NULL;

    if (Py_TYPE(row) == &PyTuple_Type)
        return TFOS__ROW_TUPLE;
    if (Py_TYPE(row) == &PyList_Type)
        return TFOS__ROW_LIST;
    if (Py_TYPE(row) == &PyDict_Type)
        return TFOS__ROW_DICT;
    if (is_spark_row(row))
        return TFOS__ROW_SPARK;
    found = find_fields(row);
    if (!found)
        return TFOS__ROW_VALUE;
    if (names)
        *names = found;
    else
        Py_DECREF(found);
    return TFOS__ROW_NAMED;
}

/// A name as bytes, for the schema; NULL without an exception when it cannot be a column's name.
static PyObject *encode_name(PyObject *name)
{
    PyObject *bytes = Py_TYPE(name) == &PyUnicode_Type ? PyUnicode_AsUTF8String(name) : NULL;

    if (!bytes && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        PyErr_Clear();
    if (bytes && strlen(PyBytes_AsString(bytes)) != (size_t)PyBytes_Size(bytes))
        Py_CLEAR(bytes);
    return bytes;
}

/// All names so, or NULL.
static PyObject *encode_names(PyObject *names)
{
    Py_ssize_t count = PyTuple_Size(names);
    PyObject *encoded = PyTuple_New(count);

    if (!encoded)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *bytes = encode_name(PyTuple_GetItem(names, i));
        if (!bytes || PyTuple_SetItem(encoded, i, bytes) < 0) {
            Py_DECREF(encoded);
            return NULL;
        }
    }
    return encoded;
}

/// Notes the names of a dict's or Row's columns.
static int note_names(struct tfos__py_row_type *type, PyObject *row)
{
    bool is_row = type->kind == TFOS__ROW_SPARK;
    PyObject *fields = is_row ? PyObject_GetAttrString(row, "__fields__") : PyDict_Keys(row);

    if (!fields)
        return -1;
    type->names = PySequence_Tuple(fields);
    if (is_row)
        type->spark_fields = fields;
    else
        Py_DECREF(fields);
    if (!type->names)
        return -1;
    return PyTuple_Size(type->names) == PyObject_Size(row) ? 1 : 0;
}

/// Notes the class of a row whose names are noted, for the reader. It need not be one that can be
/// imported.
static int note_class(struct tfos__py_row_type *type, PyObject *row, bool wants_columns)
{
    int is = is_whole(row, type->names);

    if (is <= 0 || wants_columns)
        return is;
    type->pickled_class = tfos__py_pickle_dump((PyObject *)Py_TYPE(row));
    if (type->pickled_class)
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear(); // pickling the row says the same again
    return 0;
}

int tfos__py_row_type_init(struct tfos__py_row_type *type, PyObject *row, bool wants_columns)
{
    int result = 1;

    type->kind = kind_of(row, &type->names);
    if (PyErr_Occurred())
        return -1;
    Py_INCREF((PyObject *)Py_TYPE(row));
    type->class = Py_TYPE(row);
    if (type->kind == TFOS__ROW_DICT || type->kind == TFOS__ROW_SPARK)
        result = note_names(type, row);
    else if (type->kind == TFOS__ROW_NAMED)
        result = note_class(type, row, wants_columns);
    else if (type->kind != TFOS__ROW_VALUE)
        type->column_count = (int64_t)PyObject_Size(row);
    if (result <= 0 || !type->names)
        return result;
    type->column_count = (int64_t)PyTuple_Size(type->names);
    type->encoded_names = encode_names(type->names);
    if (!type->encoded_names)
        return PyErr_Occurred() ? -1 : 0;
    return 1;
}

/// Whether a Row has the type's names. -1 with an exception.
static int has_names(struct tfos__py_row_type *type, PyObject *row)
{
    PyObject *fields = PyObject_GetAttrString(row, "__fields__");
    PyObject *names = NULL;
    int is_same = 0;

    if (!fields && PyErr_ExceptionMatches(PyExc_AttributeError)) { // Row(1, 2)
        PyErr_Clear();
        return 0;
    }
    if (!fields)
        return -1;
    if (fields == type->spark_fields) {
        Py_DECREF(fields);
        return 1;
    }
    names = PySequence_Tuple(fields);
    if (names)
        is_same = PyObject_RichCompareBool(names, type->names, Py_EQ);
    Py_XDECREF(names);
    if (is_same == 1) { // rows mostly share the object, which makes the next comparison short
        Py_DECREF(type->spark_fields);
        type->spark_fields = fields;
    } else {
        Py_DECREF(fields);
    }
    return names ? is_same : -1;
}

/// Whether a row that is one value is no other kind of row. -1 with an exception.
static int is_value(struct tfos__py_row_type *type, PyObject *row)
{
    if (Py_TYPE(row) == type->class)
        return 1;
    if (kind_of(row, NULL) != TFOS__ROW_VALUE)
        return PyErr_Occurred() ? -1 : 0;
    Py_XDECREF((PyObject *)type->class);
    Py_INCREF((PyObject *)Py_TYPE(row));
    type->class = Py_TYPE(row);
    return 1;
}

int tfos__py_row_type_fits(struct tfos__py_row_type *type, PyObject *row)
{
    switch (type->kind) {
    case TFOS__ROW_VALUE:
        return is_value(type, row);
    case TFOS__ROW_TUPLE:
        return Py_TYPE(row) == &PyTuple_Type && PyTuple_Size(row) == type->column_count;
    case TFOS__ROW_LIST:
        return Py_TYPE(row) == &PyList_Type && PyList_Size(row) == type->column_count;
    case TFOS__ROW_DICT:
        return Py_TYPE(row) == &PyDict_Type && PyDict_Size(row) == type->column_count;
    case TFOS__ROW_SPARK:
        return Py_TYPE(row) == type->class && PyTuple_Size(row) == type->column_count
                   ? has_names(type, row)
                   : 0;
    default:
        return Py_TYPE(row) == type->class ? is_whole(row, type->names) : 0;
    }
}

PyObject *tfos__py_row_type_value(const struct tfos__py_row_type *type, PyObject *row,
                                  int64_t column)
{
    PyObject *value = row;

    if (type->kind == TFOS__ROW_NAMED)
        return named_value(row, type->names, (Py_ssize_t)column);
    if (type->kind == TFOS__ROW_TUPLE || type->kind == TFOS__ROW_SPARK)
        value = PyTuple_GetItem(row, (Py_ssize_t)column);
    else if (type->kind == TFOS__ROW_LIST)
        value = PyList_GetItem(row, (Py_ssize_t)column);
    else if (type->kind == TFOS__ROW_DICT)
        value = PyDict_GetItemWithError(row, PyTuple_GetItem(type->names, (Py_ssize_t)column));
    Py_XINCREF(value);
    return value;
}

const char *tfos__py_row_type_name(const struct tfos__py_row_type *type, int64_t column)
{
    return type->encoded_names
               ? PyBytes_AsString(PyTuple_GetItem(type->encoded_names, (Py_ssize_t)column))
               : "";
}

int tfos__py_row_type_write(const struct tfos__py_row_type *type, int64_t column_count,
                            struct ArrowSchema *schema)
{
    PyObject *class = type->pickled_class;
    // Without their class, named rows are dicts as columns.
    bool is_dict = type->kind == TFOS__ROW_NAMED && !class;
    const char *kind = tfos__py_row_kind_names[is_dict ? TFOS__ROW_DICT : type->kind];
    struct tfos_error err;
    enum tfos_status status = tfos__arrow_schema_init_struct(schema, column_count, &err);

    if (status == TFOS_OK)
        status = tfos__arrow_schema_note(schema, "tfos.row", (struct tfos_view){kind, strlen(kind)},
                                         &err);
    if (status == TFOS_OK && class)
        status = tfos__arrow_schema_note(
            schema, "tfos.class",
            (struct tfos_view){PyBytes_AsString(class), (size_t)PyBytes_Size(class)}, &err);
    return tfos__py_check(status, &err);
}

void tfos__py_row_type_clear(struct tfos__py_row_type *type)
{
    Py_XDECREF(type->names);
    Py_XDECREF(type->encoded_names);
    Py_XDECREF(type->spark_fields);
    Py_XDECREF(type->pickled_class);
    Py_XDECREF((PyObject *)type->class);
    memset(type, 0, sizeof(*type));
}

static PyObject *make_tuple(PyObject *class, PyObject *values)
{
    static PyObject *make; // guarded by the GIL

    if (!make)
        make = PyObject_GetAttrString((PyObject *)&PyTuple_Type, "__new__");
    return make ? PyObject_CallFunctionObjArgs(make, class, values, NULL) : NULL;
}

static PyObject *make_object(PyObject *class, PyObject *names, PyObject *values)
{
    PyObject *row = PyObject_CallMethod(class, "__new__", "O", class);

    for (Py_ssize_t i = 0; row && i < PyTuple_Size(names); i++) {
        if (PyObject_GenericSetAttr(row, PyTuple_GetItem(names, i), PyTuple_GetItem(values, i)) < 0)
            Py_CLEAR(row);
    }
    return row;
}

PyObject *tfos__py_named_row_make(PyObject *class, PyObject *names, PyObject *values)
{
    PyObject *row = NULL;

    if (!values)
        return NULL;
    if (!PyType_Check(class))
        PyErr_Format(PyExc_TypeError, "feed: rows have a class that is none: %R", class);
    else if (PyType_IsSubtype((PyTypeObject *)class, &PyTuple_Type))
        row = make_tuple(class, values);
    else
        row = make_object(class, names, values);
    Py_DECREF(values);
    return row;
}
