// SPDX-License-Identifier: Apache-2.0
// Invariant: a value is taken only if the reader can make an equal one of the same type; so classes
// are compared exactly.
#include "typed.h"
#include "atom.h"
#include "numpy.h"
#include "pickle.h"

#include <string.h>

#define ARRAY_CONTIGUOUS 0x1
#define CHANCE_COUNT 8 ///< values that may have one length by chance

typedef PyObject *item_getter(PyObject *sequence, Py_ssize_t index); // borrowed reference

static enum tfos__py_pack_result no_memory(void)
{
    PyErr_NoMemory();
    return TFOS__PACK_ERROR;
}

static item_getter *getter_of(PyObject *sequence)
{
    return Py_TYPE(sequence) == &PyList_Type ? PyList_GetItem : PyTuple_GetItem;
}

/// Classifies a value that is neither None nor a sequence of Python's.
static int classify_single(PyObject *value, struct tfos__py_value_type *type)
{
    const struct tfos__py_numpy *numpy = NULL;

    if (tfos__py_atom_classify(value, &type->kind) < 0)
        return -1;
    if (type->kind != TFOS__VALUE_OPAQUE)
        return 0;
    numpy = tfos__py_numpy_find();
    if (numpy == NULL || !tfos__py_numpy_classify(numpy, value, type))
        *type = (struct tfos__py_value_type){.kind = TFOS__VALUE_OPAQUE};
    return PyErr_Occurred() ? -1 : 0;
}

static int classify_sequence(PyObject *value, struct tfos__py_value_type *type)
{
    item_getter *get = getter_of(value);
    Py_ssize_t count = PySequence_Size(value);
    struct tfos__py_value_type item = {.kind = TFOS__VALUE_NULL};

    for (Py_ssize_t i = 0; i < count; i++) {
        struct tfos__py_value_type next = {.kind = TFOS__VALUE_NULL};
        if (classify_single(get(value, i), &next) < 0)
            return -1;
        if ((next.kind >= TFOS__VALUE_OPAQUE && next.kind != TFOS__VALUE_SCALAR) ||
            (i > 0 && !tfos__py_value_type_equals(&next, &item))) {
            type->kind = TFOS__VALUE_OPAQUE;
            return 0;
        }
        item = next;
    }
    *type = item; // the letter, itemsize and unit
    type->kind = Py_TYPE(value) == &PyList_Type ? TFOS__VALUE_LIST : TFOS__VALUE_TUPLE;
    type->item = item.kind;
    type->is_fixed = tfos__py_value_type_width(type) > 0 && item.kind != TFOS__VALUE_NULL;
    type->dimension_count = type->is_fixed ? 1 : 0;
    type->shape[0] = count;
    return 0;
}

int tfos__py_typed_classify(const struct tfos__py_typed *typed, PyObject *value,
                         struct tfos__py_value_type *type)
{
    bool is_sequence = Py_TYPE(value) == &PyList_Type || Py_TYPE(value) == &PyTuple_Type;
    int result = 0;

    *type = (struct tfos__py_value_type){.kind = TFOS__VALUE_NULL};
    if (value != Py_None)
        result = is_sequence ? classify_sequence(value, type) : classify_single(value, type);
    if (typed->refuses_moments && tfos__py_value_type_is_moment(type))
        *type = (struct tfos__py_value_type){.kind = TFOS__VALUE_OPAQUE};
    return result;
}

/// What numpy values are compared with.
static int note_classes(struct tfos__py_typed *typed)
{
    const struct tfos__py_value_type *type = &typed->series.type;
    const struct tfos__py_numpy *numpy = NULL;

    if (type->letter == 0)
        return 0;
    numpy = tfos__py_numpy_load();
    if (numpy == NULL)
        return -1;
    typed->scalar = tfos__py_numpy_scalar_type(numpy, type);
    Py_XDECREF(typed->dtype);
    typed->dtype = tfos__py_numpy_dtype(numpy, type);
    return typed->dtype != NULL ? 0 : -1;
}

static int adopt(struct tfos__py_typed *typed, const struct tfos__py_value_type *type)
{
    if (!tfos__py_series_adopt(&typed->series, type)) {
        no_memory();
        return -1;
    }
    return note_classes(typed);
}

static enum tfos__py_pack_result commit(struct tfos__py_typed *typed, int64_t count)
{
    return tfos__py_series_commit(&typed->series, count) ? TFOS__PACK_DONE : no_memory();
}

static enum tfos__py_pack_result write_bytes(struct tfos__py_typed *typed, int64_t index, PyObject *bytes)
{
    char *data = NULL;
    Py_ssize_t size = 0;

    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0)
        return TFOS__PACK_ERROR;
    if (!tfos__py_series_write(&typed->series, index, data, (size_t)size))
        return no_memory();
    return TFOS__PACK_DONE;
}

/// Writes and drops a new reference to bytes; NULL is what a failed or refusing maker gave.
static enum tfos__py_pack_result write_made(struct tfos__py_typed *typed, int64_t index, PyObject *bytes)
{
    enum tfos__py_pack_result result = TFOS__PACK_REFUSED;

    if (bytes == NULL)
        return PyErr_Occurred() ? TFOS__PACK_ERROR : TFOS__PACK_REFUSED;
    result = write_bytes(typed, index, bytes);
    Py_DECREF(bytes);
    return result;
}

static enum tfos__py_pack_result write_bools(void *room, PyObject *value, Py_ssize_t count,
                                          item_getter *get)
{
    unsigned char *to = room;

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = get(value, i);
        if (item != Py_True && item != Py_False)
            return TFOS__PACK_REFUSED;
        to[i] = item == Py_True;
    }
    return TFOS__PACK_DONE;
}

static enum tfos__py_pack_result write_ints(void *room, PyObject *value, Py_ssize_t count,
                                         item_getter *get)
{
    PyTypeObject *class = &PyLong_Type;
    int64_t *to = room;

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = get(value, i);
        int overflow = 0;
        if (Py_TYPE(item) != class)
            return TFOS__PACK_REFUSED;
        to[i] = PyLong_AsLongLongAndOverflow(item, &overflow);
        if (overflow != 0)
            return TFOS__PACK_REFUSED;
    }
    return TFOS__PACK_DONE;
}

/// The loop that feeding lists of floats lives by.
static enum tfos__py_pack_result write_floats(void *room, PyObject *value, Py_ssize_t count,
                                           item_getter *get)
{
    PyTypeObject *class = &PyFloat_Type;
    double *to = room;

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = get(value, i);
        if (Py_TYPE(item) != class)
            return TFOS__PACK_REFUSED;
        to[i] = PyFloat_AsDouble(item);
    }
    return TFOS__PACK_DONE;
}

/// Whether a value is a scalar of the column's dtype. -1 with an exception.
static int is_scalar(const struct tfos__py_typed *typed, PyObject *value)
{
    PyObject *dtype = NULL;
    int is_same = 0;

    if (Py_TYPE(value) != typed->scalar)
        return 0;
    if (!tfos__py_value_type_is_moment(&typed->series.type))
        return 1;
    dtype = PyObject_GetAttrString(value, "dtype"); // the class does not say the unit
    is_same = dtype != NULL ? PyObject_RichCompareBool(dtype, typed->dtype, Py_EQ) : -1;
    Py_XDECREF(dtype);
    return is_same;
}

/// numpy's scalars by way of one array of them.
static enum tfos__py_pack_result write_scalars(struct tfos__py_typed *typed, void *room, PyObject *value,
                                            Py_ssize_t count, item_getter *get)
{
    const struct tfos__py_numpy_interface_struct *interface = NULL;
    PyObject *array = NULL, *capsule = NULL;

    for (Py_ssize_t i = 0; i < count; i++) {
        int is = is_scalar(typed, get(value, i));
        if (is <= 0)
            return is == 0 ? TFOS__PACK_REFUSED : TFOS__PACK_ERROR;
    }
    array = PyObject_CallFunctionObjArgs(tfos__py_numpy_load()->ascontiguousarray, value, typed->dtype,
                                         NULL);
    interface = array != NULL ? tfos__py_numpy_interface(array, &capsule) : NULL;
    if (interface != NULL)
        memcpy(room, interface->data, (size_t)count * (size_t)typed->series.width);
    Py_XDECREF(capsule);
    Py_XDECREF(array);
    return interface != NULL ? TFOS__PACK_DONE : TFOS__PACK_ERROR;
}

static enum tfos__py_pack_result write_numbers(struct tfos__py_typed *typed, PyObject *value,
                                            Py_ssize_t count, item_getter *get)
{
    void *room = tfos__py_series_reserve(&typed->series, count);

    if (room == NULL)
        return no_memory();
    switch (typed->series.type.item) {
    case TFOS__VALUE_BOOL:
        return write_bools(room, value, count, get);
    case TFOS__VALUE_INT:
        return write_ints(room, value, count, get);
    case TFOS__VALUE_FLOAT:
        return write_floats(room, value, count, get);
    default:
        return write_scalars(typed, room, value, count, get);
    }
}

static enum tfos__py_pack_result write_texts(struct tfos__py_typed *typed, PyObject *value,
                                          Py_ssize_t count, item_getter *get)
{
    bool is_text = typed->series.type.item == TFOS__VALUE_TEXT;
    PyTypeObject *class = is_text ? &PyUnicode_Type : &PyBytes_Type;
    enum tfos__py_pack_result result = TFOS__PACK_DONE;

    for (Py_ssize_t i = 0; i < count && result == TFOS__PACK_DONE; i++) {
        PyObject *item = get(value, i);
        if (Py_TYPE(item) != class)
            return TFOS__PACK_REFUSED;
        if (is_text)
            result = write_made(typed, i, tfos__py_atom_encode(item));
        else
            result = write_bytes(typed, i, item);
    }
    return result;
}

/// Whether the column may take a value of another length. One whose lengths differ from the start
/// never had one length; once more values, or a batch, had it, a change is worth a new schema, by
/// which the reader knows the row.
static bool may_vary(const struct tfos__py_typed *typed)
{
    return !typed->is_established && typed->series.length < CHANCE_COUNT &&
           typed->series.type.dimension_count == 1;
}

static enum tfos__py_pack_result append_sequence(struct tfos__py_typed *typed, PyObject *value)
{
    const struct tfos__py_value_type *type = &typed->series.type;
    bool is_list = type->kind == TFOS__VALUE_LIST;
    enum tfos__py_pack_result result = TFOS__PACK_DONE;
    Py_ssize_t count = 0;

    if (Py_TYPE(value) != (is_list ? &PyList_Type : &PyTuple_Type))
        return TFOS__PACK_REFUSED;
    count = PySequence_Size(value);
    if (type->is_fixed && count != type->shape[0]) {
        if (!may_vary(typed))
            return TFOS__PACK_REFUSED;
        if (!tfos__py_series_vary(&typed->series))
            return no_memory();
    }
    if (type->item == TFOS__VALUE_NULL && count > 0) {
        struct tfos__py_value_type found;
        if (tfos__py_typed_classify(typed, value, &found) < 0)
            return TFOS__PACK_ERROR;
        if (found.kind != type->kind)
            return TFOS__PACK_REFUSED;
        found = tfos__py_value_type_widen(type, &found);
        if (adopt(typed, &found) < 0)
            return TFOS__PACK_ERROR;
    }
    if (count > 0 && typed->series.width > 0)
        result = write_numbers(typed, value, count, getter_of(value));
    else if (count > 0)
        result = write_texts(typed, value, count, getter_of(value));
    return result == TFOS__PACK_DONE ? commit(typed, count) : result;
}

static bool has_shape(const struct tfos__py_numpy_interface_struct *interface,
                      const struct tfos__py_value_type *type)
{
    if (interface->nd != type->dimension_count)
        return false;
    for (int i = 0; type->is_fixed && i < interface->nd; i++) {
        if (interface->shape[i] != type->shape[i])
            return false;
    }
    return true;
}

static enum tfos__py_pack_result copy_array(struct tfos__py_typed *typed,
                                         const struct tfos__py_numpy_interface_struct *interface)
{
    int64_t count = 1;
    void *room = NULL;

    for (int i = 0; i < interface->nd; i++)
        count *= interface->shape[i];
    room = tfos__py_series_reserve(&typed->series, count);
    if (room == NULL)
        return no_memory();
    memcpy(room, interface->data, (size_t)count * (size_t)typed->series.width);
    return commit(typed, count);
}

static enum tfos__py_pack_result copy_any_array(struct tfos__py_typed *typed, PyObject *array,
                                             const struct tfos__py_numpy_interface_struct *interface)
{
    PyObject *copy = NULL, *capsule = NULL;
    enum tfos__py_pack_result result = TFOS__PACK_ERROR;

    if ((interface->flags & ARRAY_CONTIGUOUS) != 0)
        return copy_array(typed, interface);
    copy = PyObject_CallFunctionObjArgs(tfos__py_numpy_load()->ascontiguousarray, array, NULL);
    interface = copy != NULL ? tfos__py_numpy_interface(copy, &capsule) : NULL;
    if (interface != NULL)
        result = copy_array(typed, interface);
    Py_XDECREF(capsule);
    Py_XDECREF(copy);
    return result;
}

static enum tfos__py_pack_result append_elements(struct tfos__py_typed *typed, PyObject *array)
{
    PyObject *capsule = NULL;
    const struct tfos__py_numpy_interface_struct *interface = tfos__py_numpy_interface(array, &capsule);
    enum tfos__py_pack_result result = TFOS__PACK_REFUSED;

    if (interface == NULL)
        return TFOS__PACK_ERROR;
    if (has_shape(interface, &typed->series.type))
        result = copy_any_array(typed, array, interface);
    else if (interface->nd == 1 && may_vary(typed))
        result = tfos__py_series_vary(&typed->series) ? copy_any_array(typed, array, interface)
                                                   : no_memory();
    Py_DECREF(capsule);
    return result;
}

static enum tfos__py_pack_result append_array(struct tfos__py_typed *typed, PyObject *value)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_find();
    PyObject *dtype = NULL;
    int is_same = 1;

    if (numpy == NULL || !tfos__py_numpy_is_array(numpy, value))
        return PyErr_Occurred() ? TFOS__PACK_ERROR : TFOS__PACK_REFUSED;
    dtype = PyObject_GetAttrString(value, "dtype");
    if (dtype == NULL)
        return TFOS__PACK_ERROR;
    if (dtype != typed->dtype)
        is_same = PyObject_RichCompareBool(dtype, typed->dtype, Py_EQ);
    if (is_same <= 0) {
        Py_DECREF(dtype);
        return is_same == 0 ? TFOS__PACK_REFUSED : TFOS__PACK_ERROR;
    }
    // Arrays that came through one pickle share a dtype, which makes the next comparison short.
    Py_DECREF(typed->dtype);
    typed->dtype = dtype;
    return append_elements(typed, value);
}

static enum tfos__py_pack_result append_scalar(struct tfos__py_typed *typed, PyObject *value)
{
    PyObject *bytes = NULL;
    char *data = NULL;
    Py_ssize_t size = 0;
    void *room = NULL;
    int is = is_scalar(typed, value);

    if (is <= 0)
        return is == 0 ? TFOS__PACK_REFUSED : TFOS__PACK_ERROR;
    bytes = PyObject_CallMethod(value, "tobytes", NULL);
    room = tfos__py_series_reserve(&typed->series, 1);
    if (bytes == NULL || PyBytes_AsStringAndSize(bytes, &data, &size) < 0 ||
        size != typed->series.width || room == NULL) {
        Py_XDECREF(bytes);
        return PyErr_Occurred() ? TFOS__PACK_ERROR : no_memory();
    }
    memcpy(room, data, (size_t)size);
    Py_DECREF(bytes);
    return commit(typed, 1);
}

/// A value of BOOL, INT or FLOAT is written like a sequence of one.
static PyObject *get_itself(PyObject *value, Py_ssize_t index)
{
    (void)index;
    return value;
}

static enum tfos__py_pack_result append_number(struct tfos__py_typed *typed, PyObject *value)
{
    enum tfos__py_pack_result result = TFOS__PACK_DONE;
    void *room = tfos__py_series_reserve(&typed->series, 1);

    if (room == NULL)
        return no_memory();
    if (typed->series.type.kind == TFOS__VALUE_BOOL)
        result = write_bools(room, value, 1, get_itself);
    else if (typed->series.type.kind == TFOS__VALUE_INT)
        result = write_ints(room, value, 1, get_itself);
    else
        result = write_floats(room, value, 1, get_itself);
    return result == TFOS__PACK_DONE ? commit(typed, 1) : result;
}

static enum tfos__py_pack_result append_bytes(struct tfos__py_typed *typed, PyObject *value)
{
    enum tfos__py_pack_result result = TFOS__PACK_REFUSED;

    if (typed->series.type.kind == TFOS__VALUE_OPAQUE)
        result = write_made(typed, 0, tfos__py_pickle_dump(value));
    else if (typed->series.type.kind == TFOS__VALUE_TEXT && Py_TYPE(value) == &PyUnicode_Type)
        result = write_made(typed, 0, tfos__py_atom_encode(value));
    else if (typed->series.type.kind == TFOS__VALUE_BYTES && Py_TYPE(value) == &PyBytes_Type)
        result = write_bytes(typed, 0, value);
    return result == TFOS__PACK_DONE ? commit(typed, 1) : result;
}

int tfos__py_typed_init(struct tfos__py_typed *typed)
{
    struct tfos__py_value_type unknown = {.kind = TFOS__VALUE_NULL};

    if (tfos__py_series_init(&typed->series, &unknown))
        return 0;
    no_memory();
    return -1;
}

enum tfos__py_pack_result tfos__py_typed_append(struct tfos__py_typed *typed, PyObject *value)
{
    if (value == Py_None)
        return tfos__py_series_commit_null(&typed->series) ? TFOS__PACK_DONE : no_memory();
    if (typed->series.type.kind == TFOS__VALUE_NULL) {
        struct tfos__py_value_type type;
        if (tfos__py_typed_classify(typed, value, &type) < 0)
            return TFOS__PACK_ERROR;
        if (type.kind == TFOS__VALUE_OPAQUE && !typed->takes_any)
            return TFOS__PACK_REFUSED;
        if (adopt(typed, &type) < 0)
            return TFOS__PACK_ERROR;
    }
    switch (typed->series.type.kind) {
    case TFOS__VALUE_BOOL:
    case TFOS__VALUE_INT:
    case TFOS__VALUE_FLOAT:
        return append_number(typed, value);
    case TFOS__VALUE_LIST:
    case TFOS__VALUE_TUPLE:
        return append_sequence(typed, value);
    case TFOS__VALUE_ARRAY:
        return append_array(typed, value);
    case TFOS__VALUE_SCALAR:
        return append_scalar(typed, value);
    default:
        return append_bytes(typed, value);
    }
}

int tfos__py_typed_reset(struct tfos__py_typed *typed, const struct tfos__py_value_type *type)
{
    if (tfos__py_series_init(&typed->series, type))
        return note_classes(typed);
    no_memory();
    return -1;
}

void tfos__py_typed_clear(struct tfos__py_typed *typed)
{
    Py_XDECREF(typed->dtype);
    tfos__py_series_clear(&typed->series);
    memset(typed, 0, sizeof(*typed));
}
