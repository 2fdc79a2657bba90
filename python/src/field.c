// SPDX-License-Identifier: Apache-2.0
// Python values into a column. Invariant: a value is taken only if the reader can make an equal one
// of the same type; so classes are compared exactly, and a subclass of int, str or list is pickled
// like any other object.
#include "field.h"
#include "atom.h"
#include "numpy.h"
#include "pickle.h"

#include <string.h>

#define ARRAY_CONTIGUOUS 0x1
#define CHANCE_COUNT 8 ///< values that may have one length by chance

typedef PyObject *item_getter(PyObject *sequence, Py_ssize_t index); // borrowed reference

static enum tfos__pack_result no_memory(void)
{
    PyErr_NoMemory();
    return TFOS__PACK_ERROR;
}

static item_getter *getter_of(PyObject *sequence)
{
    return Py_TYPE(sequence) == &PyList_Type ? PyList_GetItem : PyTuple_GetItem;
}

static int classify_sequence(PyObject *value, struct tfos__value_type *type)
{
    item_getter *get = getter_of(value);
    Py_ssize_t count = PySequence_Size(value);
    enum tfos__value_kind item = TFOS__VALUE_NULL;

    for (Py_ssize_t i = 0; i < count; i++) {
        enum tfos__value_kind kind = TFOS__VALUE_NULL;
        if (tfos__atom_classify(get(value, i), &kind) < 0)
            return -1;
        if (kind == TFOS__VALUE_OPAQUE || (i > 0 && kind != item)) {
            type->kind = TFOS__VALUE_OPAQUE;
            return 0;
        }
        item = kind;
    }
    type->kind = Py_TYPE(value) == &PyList_Type ? TFOS__VALUE_LIST : TFOS__VALUE_TUPLE;
    type->item = item;
    type->is_fixed = item >= TFOS__VALUE_BOOL && item <= TFOS__VALUE_FLOAT;
    type->dimension_count = type->is_fixed ? 1 : 0;
    type->shape[0] = count;
    return 0;
}

static int classify(PyObject *value, struct tfos__value_type *type)
{
    const struct tfos__numpy *numpy = NULL;

    *type = (struct tfos__value_type){.kind = TFOS__VALUE_NULL};
    if (value == Py_None)
        return 0;
    if (Py_TYPE(value) == &PyList_Type || Py_TYPE(value) == &PyTuple_Type)
        return classify_sequence(value, type);
    if (tfos__atom_classify(value, &type->kind) < 0)
        return -1;
    if (type->kind != TFOS__VALUE_OPAQUE)
        return 0;
    numpy = tfos__numpy_find();
    if (numpy != NULL && tfos__numpy_classify(numpy, value, type))
        return 0;
    return PyErr_Occurred() ? -1 : 0;
}

/// The classes that numpy values are compared with.
static int note_classes(struct tfos__field *field, PyObject *value)
{
    const struct tfos__value_type *type = &field->series.type;

    if (type->kind == TFOS__VALUE_SCALAR) {
        field->scalar = Py_TYPE(value);
    } else if (type->kind == TFOS__VALUE_ARRAY) {
        PyObject *dtype = PyObject_GetAttrString(value, "dtype");
        if (dtype == NULL)
            return -1;
        Py_XDECREF(field->dtype);
        field->dtype = dtype;
    }
    return 0;
}

static int adopt(struct tfos__field *field, PyObject *value, const struct tfos__value_type *type)
{
    if (!tfos__series_adopt(&field->series, type)) {
        no_memory();
        return -1;
    }
    return note_classes(field, value);
}

static enum tfos__pack_result commit(struct tfos__field *field, int64_t count)
{
    return tfos__series_commit(&field->series, count) ? TFOS__PACK_DONE : no_memory();
}

static enum tfos__pack_result write_bytes(struct tfos__field *field, int64_t index, PyObject *bytes)
{
    char *data = NULL;
    Py_ssize_t size = 0;

    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0)
        return TFOS__PACK_ERROR;
    if (!tfos__series_write(&field->series, index, data, (size_t)size))
        return no_memory();
    return TFOS__PACK_DONE;
}

/// Writes and drops a new reference to bytes; NULL is what a failed or refusing maker gave.
static enum tfos__pack_result write_made(struct tfos__field *field, int64_t index, PyObject *bytes)
{
    enum tfos__pack_result result = TFOS__PACK_REFUSED;

    if (bytes == NULL)
        return PyErr_Occurred() ? TFOS__PACK_ERROR : TFOS__PACK_REFUSED;
    result = write_bytes(field, index, bytes);
    Py_DECREF(bytes);
    return result;
}

static enum tfos__pack_result write_bools(void *room, PyObject *value, Py_ssize_t count,
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

static enum tfos__pack_result write_ints(void *room, PyObject *value, Py_ssize_t count,
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
static enum tfos__pack_result write_floats(void *room, PyObject *value, Py_ssize_t count,
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

static enum tfos__pack_result write_numbers(struct tfos__field *field, PyObject *value,
                                            Py_ssize_t count, item_getter *get)
{
    void *room = tfos__series_reserve(&field->series, count);

    if (room == NULL)
        return no_memory();
    switch (field->series.type.item) {
    case TFOS__VALUE_BOOL:
        return write_bools(room, value, count, get);
    case TFOS__VALUE_INT:
        return write_ints(room, value, count, get);
    default:
        return write_floats(room, value, count, get);
    }
}

static enum tfos__pack_result write_texts(struct tfos__field *field, PyObject *value,
                                          Py_ssize_t count, item_getter *get)
{
    bool is_text = field->series.type.item == TFOS__VALUE_TEXT;
    PyTypeObject *class = is_text ? &PyUnicode_Type : &PyBytes_Type;
    enum tfos__pack_result result = TFOS__PACK_DONE;

    for (Py_ssize_t i = 0; i < count && result == TFOS__PACK_DONE; i++) {
        PyObject *item = get(value, i);
        if (Py_TYPE(item) != class)
            return TFOS__PACK_REFUSED;
        if (is_text)
            result = write_made(field, i, tfos__atom_encode(item));
        else
            result = write_bytes(field, i, item);
    }
    return result;
}

/// Whether the column may take a value of another length. One whose lengths differ from the start
/// never had one length; once more values, or a batch, had it, a change is worth a new schema, by
/// which the reader knows the row.
static bool may_vary(const struct tfos__field *field)
{
    return !field->is_established && field->series.length < CHANCE_COUNT &&
           field->series.type.dimension_count == 1;
}

static enum tfos__pack_result append_sequence(struct tfos__field *field, PyObject *value)
{
    const struct tfos__value_type *type = &field->series.type;
    bool is_list = type->kind == TFOS__VALUE_LIST;
    enum tfos__pack_result result = TFOS__PACK_DONE;
    Py_ssize_t count = 0;

    if (Py_TYPE(value) != (is_list ? &PyList_Type : &PyTuple_Type))
        return TFOS__PACK_REFUSED;
    count = PySequence_Size(value);
    if (type->is_fixed && count != type->shape[0]) {
        if (!may_vary(field))
            return TFOS__PACK_REFUSED;
        if (!tfos__series_vary(&field->series))
            return no_memory();
    }
    if (type->item == TFOS__VALUE_NULL && count > 0) {
        struct tfos__value_type found;
        if (classify(value, &found) < 0)
            return TFOS__PACK_ERROR;
        if (found.kind != type->kind)
            return TFOS__PACK_REFUSED;
        found = tfos__value_widen(type, &found);
        if (adopt(field, value, &found) < 0)
            return TFOS__PACK_ERROR;
    }
    if (count > 0 && field->series.width > 0)
        result = write_numbers(field, value, count, getter_of(value));
    else if (count > 0)
        result = write_texts(field, value, count, getter_of(value));
    return result == TFOS__PACK_DONE ? commit(field, count) : result;
}

static bool has_shape(const struct tfos__array_interface *interface,
                      const struct tfos__value_type *type)
{
    if (interface->nd != type->dimension_count)
        return false;
    for (int i = 0; type->is_fixed && i < interface->nd; i++) {
        if (interface->shape[i] != type->shape[i])
            return false;
    }
    return true;
}

static enum tfos__pack_result copy_array(struct tfos__field *field,
                                         const struct tfos__array_interface *interface)
{
    int64_t count = 1;
    void *room = NULL;

    for (int i = 0; i < interface->nd; i++)
        count *= interface->shape[i];
    room = tfos__series_reserve(&field->series, count);
    if (room == NULL)
        return no_memory();
    memcpy(room, interface->data, (size_t)count * (size_t)field->series.width);
    return commit(field, count);
}

static enum tfos__pack_result copy_any_array(struct tfos__field *field, PyObject *array,
                                             const struct tfos__array_interface *interface)
{
    PyObject *copy = NULL, *capsule = NULL;
    enum tfos__pack_result result = TFOS__PACK_ERROR;

    if ((interface->flags & ARRAY_CONTIGUOUS) != 0)
        return copy_array(field, interface);
    copy = PyObject_CallFunctionObjArgs(tfos__numpy_load()->ascontiguousarray, array, NULL);
    interface = copy != NULL ? tfos__numpy_interface(copy, &capsule) : NULL;
    if (interface != NULL)
        result = copy_array(field, interface);
    Py_XDECREF(capsule);
    Py_XDECREF(copy);
    return result;
}

static enum tfos__pack_result append_elements(struct tfos__field *field, PyObject *array)
{
    PyObject *capsule = NULL;
    const struct tfos__array_interface *interface = tfos__numpy_interface(array, &capsule);
    enum tfos__pack_result result = TFOS__PACK_REFUSED;

    if (interface == NULL)
        return TFOS__PACK_ERROR;
    if (has_shape(interface, &field->series.type))
        result = copy_any_array(field, array, interface);
    else if (interface->nd == 1 && may_vary(field))
        result = tfos__series_vary(&field->series) ? copy_any_array(field, array, interface)
                                                   : no_memory();
    Py_DECREF(capsule);
    return result;
}

static enum tfos__pack_result append_array(struct tfos__field *field, PyObject *value)
{
    const struct tfos__numpy *numpy = tfos__numpy_find();
    PyObject *dtype = NULL;
    int is_same = 1;

    if (numpy == NULL || Py_TYPE(value) != numpy->ndarray)
        return PyErr_Occurred() ? TFOS__PACK_ERROR : TFOS__PACK_REFUSED;
    dtype = PyObject_GetAttrString(value, "dtype");
    if (dtype == NULL)
        return TFOS__PACK_ERROR;
    if (dtype != field->dtype)
        is_same = PyObject_RichCompareBool(dtype, field->dtype, Py_EQ);
    Py_DECREF(dtype);
    if (is_same <= 0)
        return is_same == 0 ? TFOS__PACK_REFUSED : TFOS__PACK_ERROR;
    return append_elements(field, value);
}

static enum tfos__pack_result append_scalar(struct tfos__field *field, PyObject *value)
{
    PyObject *bytes = NULL;
    char *data = NULL;
    Py_ssize_t size = 0;
    void *room = NULL;

    if (Py_TYPE(value) != field->scalar)
        return TFOS__PACK_REFUSED;
    bytes = PyObject_CallMethod(value, "tobytes", NULL);
    room = tfos__series_reserve(&field->series, 1);
    if (bytes == NULL || PyBytes_AsStringAndSize(bytes, &data, &size) < 0 ||
        size != field->series.width || room == NULL) {
        Py_XDECREF(bytes);
        return PyErr_Occurred() ? TFOS__PACK_ERROR : no_memory();
    }
    memcpy(room, data, (size_t)size);
    Py_DECREF(bytes);
    return commit(field, 1);
}

/// A value of BOOL, INT or FLOAT is written like a sequence of one.
static PyObject *get_itself(PyObject *value, Py_ssize_t index)
{
    (void)index;
    return value;
}

static enum tfos__pack_result append_number(struct tfos__field *field, PyObject *value)
{
    enum tfos__pack_result result = TFOS__PACK_DONE;
    void *room = tfos__series_reserve(&field->series, 1);

    if (room == NULL)
        return no_memory();
    if (field->series.type.kind == TFOS__VALUE_BOOL)
        result = write_bools(room, value, 1, get_itself);
    else if (field->series.type.kind == TFOS__VALUE_INT)
        result = write_ints(room, value, 1, get_itself);
    else
        result = write_floats(room, value, 1, get_itself);
    return result == TFOS__PACK_DONE ? commit(field, 1) : result;
}

static enum tfos__pack_result append_bytes(struct tfos__field *field, PyObject *value)
{
    enum tfos__pack_result result = TFOS__PACK_REFUSED;

    if (field->series.type.kind == TFOS__VALUE_OPAQUE)
        result = write_made(field, 0, tfos__pickle_dump(value));
    else if (field->series.type.kind == TFOS__VALUE_TEXT && Py_TYPE(value) == &PyUnicode_Type)
        result = write_made(field, 0, tfos__atom_encode(value));
    else if (field->series.type.kind == TFOS__VALUE_BYTES && Py_TYPE(value) == &PyBytes_Type)
        result = write_bytes(field, 0, value);
    return result == TFOS__PACK_DONE ? commit(field, 1) : result;
}

int tfos__field_init(struct tfos__field *field)
{
    struct tfos__value_type unknown = {.kind = TFOS__VALUE_NULL};

    if (tfos__series_init(&field->series, &unknown))
        return 0;
    no_memory();
    return -1;
}

enum tfos__pack_result tfos__field_append(struct tfos__field *field, PyObject *value)
{
    if (field->tree != NULL)
        return tfos__tree_append(field->tree, value);
    if (value == Py_None)
        return tfos__series_commit_null(&field->series) ? TFOS__PACK_DONE : no_memory();
    if (field->series.type.kind == TFOS__VALUE_NULL) {
        struct tfos__value_type type;
        if (classify(value, &type) < 0)
            return TFOS__PACK_ERROR;
        if (type.kind == TFOS__VALUE_OPAQUE && field->takes_trees)
            return TFOS__PACK_REFUSED;
        if (adopt(field, value, &type) < 0)
            return TFOS__PACK_ERROR;
    }
    switch (field->series.type.kind) {
    case TFOS__VALUE_BOOL:
    case TFOS__VALUE_INT:
    case TFOS__VALUE_FLOAT:
        return append_number(field, value);
    case TFOS__VALUE_LIST:
    case TFOS__VALUE_TUPLE:
        return append_sequence(field, value);
    case TFOS__VALUE_ARRAY:
        return append_array(field, value);
    case TFOS__VALUE_SCALAR:
        return append_scalar(field, value);
    default:
        return append_bytes(field, value);
    }
}

/// The last but one resort is a tree, if there may be one.
static int widen_most(struct tfos__field *field)
{
    return field->takes_trees && field->tree == NULL ? tfos__field_make_tree(field)
                                                     : tfos__field_make_opaque(field);
}

int tfos__field_widen(struct tfos__field *field, PyObject *value)
{
    struct tfos__value_type type, wide;

    if (field->tree != NULL)
        return widen_most(field);
    if (classify(value, &type) < 0)
        return -1;
    wide = tfos__value_widen(&field->series.type, &type);
    // A value that was refused though its type is the same (another class, another dtype) has no
    // form here.
    if (wide.kind == TFOS__VALUE_OPAQUE || tfos__value_equals(&wide, &field->series.type))
        return widen_most(field);
    if (tfos__series_init(&field->series, &wide))
        return 0;
    no_memory();
    return -1;
}

int tfos__field_make_tree(struct tfos__field *field)
{
    tfos__field_truncate(field, 0);
    field->tree = tfos__tree_open();
    return field->tree != NULL ? 0 : -1;
}

int tfos__field_make_opaque(struct tfos__field *field)
{
    struct tfos__value_type opaque = {.kind = TFOS__VALUE_OPAQUE};

    tfos__tree_close(field->tree);
    field->tree = NULL;
    field->takes_trees = false;
    if (tfos__series_init(&field->series, &opaque))
        return 0;
    no_memory();
    return -1;
}

void tfos__field_truncate(struct tfos__field *field, int64_t length)
{
    if (field->tree != NULL)
        tfos__tree_truncate(field->tree, length);
    else
        tfos__series_truncate(&field->series, length);
}

size_t tfos__field_size(const struct tfos__field *field)
{
    return field->tree != NULL ? tfos__tree_size(field->tree) : tfos__series_size(&field->series);
}

void tfos__field_show(struct tfos__field *field, const char *name, struct ArrowSchema **schema,
                      struct ArrowArray **array)
{
    struct tfos__series_view *view = NULL;

    if (field->tree != NULL) {
        tfos__tree_show(field->tree, name, schema, array);
        return;
    }
    view = tfos__series_show(&field->series, name);
    *schema = &view->schema;
    *array = &view->array;
}

void tfos__field_reset(struct tfos__field *field)
{
    field->is_established = field->is_established || field->series.length > 0;
    tfos__field_truncate(field, 0);
}

void tfos__field_clear(struct tfos__field *field)
{
    Py_XDECREF(field->dtype);
    tfos__series_clear(&field->series);
    tfos__tree_close(field->tree);
    memset(field, 0, sizeof(*field));
}
