// SPDX-License-Identifier: Apache-2.0
// Invariant: a value is taken only if the reader can make an equal one of the same type; so classes
// are compared exactly.
#include "flat_column.h"

#include <string.h>

#include "error.h"
#include "numpy.h"
#include "pickle.h"

#define ARRAY_CONTIGUOUS 0x1
#define CHANCE_COUNT 8 // values that may have one length by chance

static enum tfos__py_pack_result conclude(enum tfos_status status, const struct tfos_error *err)
{
    return tfos__py_check(status, err) < 0 ? TFOS__PACK_ERROR : TFOS__PACK_DONE;
}

/// Where the elements of sequences, or the values themselves, are.
static struct tfos__arrow_builder *elements_of(struct tfos__py_flat_column *column)
{
    return tfos__py_value_type_is_sequence(&column->type) ? &column->values.children[0]
                                                          : &column->values;
}

int tfos__py_flat_column_classify(const struct tfos__py_flat_column *column, PyObject *value,
                                  struct tfos__py_value_type *type)
{
    if (tfos__py_value_classify(value, type) < 0)
        return -1;
    if (column->refuses_moments && tfos__py_value_type_is_moment(type))
        *type = (struct tfos__py_value_type){.kind = TFOS__VALUE_OPAQUE};
    return 0;
}

/// What numpy values are compared with.
static int note_classes(struct tfos__py_flat_column *column)
{
    const struct tfos__py_numpy *numpy = NULL;

    if (column->type.letter == 0)
        return 0;
    numpy = tfos__py_numpy_load();
    if (!numpy)
        return -1;
    column->scalar = tfos__py_numpy_scalar_type(numpy, &column->type);
    Py_XDECREF(column->dtype);
    column->dtype = tfos__py_numpy_dtype(numpy, &column->type);
    return column->dtype ? 0 : -1;
}

static enum tfos_status append_null(struct tfos__py_flat_column *column, struct tfos_error *err)
{
    struct tfos__arrow_builder *values = &column->values;
    enum tfos_status status = TFOS_OK;

    if (!tfos__py_value_type_is_sequence(&column->type))
        return tfos__arrow_builder_append_null(values, err);
    status = tfos__arrow_builder_append_zeros(&values->children[0],
                                              tfos__py_value_type_item_count(&column->type), err);
    if (status == TFOS_OK)
        status = tfos__arrow_builder_mark(values, values->length, 1, 1, err);
    return status == TFOS_OK ? tfos__arrow_builder_end_list(values, err) : status;
}

/// Gives a column whose elements have no type yet (only None, only empty sequences) a type that
/// widens its own.
static int adopt(struct tfos__py_flat_column *column, const struct tfos__py_value_type *type)
{
    struct tfos__arrow_builder *values = &column->values;
    bool is_new = !tfos__py_value_type_is_sequence(&column->type);
    int64_t null_count = is_new ? values->length : 0;
    struct tfos_error err;
    enum tfos_status status = TFOS_OK;

    column->type = *type;
    if (is_new)
        tfos__arrow_builder_clear(values);
    if (is_new && tfos__py_value_type_is_sequence(type))
        status = tfos__arrow_builder_adopt(values, tfos__arrow_type_of(TFOS__ARROW_LIST, 64, 0), 1,
                                           &err);
    if (status == TFOS_OK)
        status = tfos__arrow_builder_adopt(elements_of(column),
                                           tfos__py_value_type_item_arrow(type), 0, &err);
    for (int64_t i = 0; status == TFOS_OK && i < null_count; i++)
        status = append_null(column, &err);
    return tfos__py_check(status, &err) < 0 ? -1 : note_classes(column);
}

int tfos__py_flat_column_reset(struct tfos__py_flat_column *column,
                               const struct tfos__py_value_type *type)
{
    tfos__arrow_builder_clear(&column->values);
    column->type = (struct tfos__py_value_type){.kind = TFOS__VALUE_NULL};
    return adopt(column, type);
}

// ---- elements

static enum tfos__py_pack_result write_bytes(struct tfos__arrow_builder *to, PyObject *bytes)
{
    struct tfos_error err;
    char *data = NULL;
    Py_ssize_t size = 0;

    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0)
        return TFOS__PACK_ERROR;
    return conclude(tfos__arrow_builder_append_bytes(to, data, (size_t)size, &err), &err);
}

/// Writes and drops a new reference to bytes; NULL is what a failed or refusing maker gave.
static enum tfos__py_pack_result write_made(struct tfos__arrow_builder *to, PyObject *bytes)
{
    enum tfos__py_pack_result result = TFOS__PACK_REFUSED;

    if (!bytes)
        return PyErr_Occurred() ? TFOS__PACK_ERROR : TFOS__PACK_REFUSED;
    result = write_bytes(to, bytes);
    Py_DECREF(bytes);
    return result;
}

static enum tfos__py_pack_result write_bools(void *room, PyObject *value, Py_ssize_t count,
                                             tfos__py_item_getter *get)
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
                                            tfos__py_item_getter *get)
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

/// The loop that decides how fast lists of floats are fed.
static enum tfos__py_pack_result write_floats(void *room, PyObject *value, Py_ssize_t count,
                                              tfos__py_item_getter *get)
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
static int is_scalar(const struct tfos__py_flat_column *column, PyObject *value)
{
    PyObject *dtype = NULL;
    int is_same = 0;

    if (Py_TYPE(value) != column->scalar)
        return 0;
    if (!tfos__py_value_type_is_moment(&column->type))
        return 1;
    dtype = PyObject_GetAttrString(value, "dtype"); // the class does not say the unit
    is_same = dtype ? PyObject_RichCompareBool(dtype, column->dtype, Py_EQ) : -1;
    Py_XDECREF(dtype);
    return is_same;
}

/// numpy's scalars by way of one array of them.
static enum tfos__py_pack_result write_scalars(struct tfos__py_flat_column *column, void *room,
                                               PyObject *value, Py_ssize_t count,
                                               tfos__py_item_getter *get)
{
    const struct tfos__py_numpy_interface_struct *interface = NULL;
    PyObject *array = NULL, *capsule = NULL;

    for (Py_ssize_t i = 0; i < count; i++) {
        int is = is_scalar(column, get(value, i));
        if (is <= 0)
            return is == 0 ? TFOS__PACK_REFUSED : TFOS__PACK_ERROR;
    }
    array = PyObject_CallFunctionObjArgs(tfos__py_numpy_load()->ascontiguousarray, value,
                                         column->dtype, NULL);
    interface = array ? tfos__py_numpy_interface(array, &capsule) : NULL;
    if (interface)
        memcpy(room, interface->data, (size_t)count * (size_t)column->type.itemsize);
    Py_XDECREF(capsule);
    Py_XDECREF(array);
    return interface ? TFOS__PACK_DONE : TFOS__PACK_ERROR;
}

/// Writes `count` numbers of a kind behind the end; they count once they all fit.
static enum tfos__py_pack_result write_numbers(struct tfos__py_flat_column *column,
                                               enum tfos__py_value_kind kind, PyObject *value,
                                               Py_ssize_t count, tfos__py_item_getter *get)
{
    struct tfos__arrow_builder *elements = elements_of(column);
    enum tfos__py_pack_result result = TFOS__PACK_DONE;
    struct tfos_error err;
    enum tfos_status status = tfos__arrow_builder_reserve(elements, count, &err);

    if (status < 0)
        return conclude(status, &err);
    void *room = tfos__arrow_builder_end(elements);
    if (kind == TFOS__VALUE_BOOL)
        result = write_bools(room, value, count, get);
    else if (kind == TFOS__VALUE_INT)
        result = write_ints(room, value, count, get);
    else if (kind == TFOS__VALUE_FLOAT)
        result = write_floats(room, value, count, get);
    else
        result = write_scalars(column, room, value, count, get);
    if (result == TFOS__PACK_DONE)
        elements->length += count;
    return result;
}

static enum tfos__py_pack_result write_texts(struct tfos__py_flat_column *column, PyObject *value,
                                             Py_ssize_t count, tfos__py_item_getter *get)
{
    struct tfos__arrow_builder *elements = elements_of(column);
    bool is_text = column->type.item == TFOS__VALUE_TEXT;
    PyTypeObject *class = is_text ? &PyUnicode_Type : &PyBytes_Type;
    enum tfos__py_pack_result result = TFOS__PACK_DONE;

    for (Py_ssize_t i = 0; i < count && result == TFOS__PACK_DONE; i++) {
        PyObject *item = get(value, i);
        if (Py_TYPE(item) != class)
            result = TFOS__PACK_REFUSED;
        else if (is_text)
            result = write_made(elements, tfos__py_value_encode(item));
        else
            result = write_bytes(elements, item);
    }
    if (result != TFOS__PACK_DONE)
        tfos__arrow_builder_truncate(&column->values, column->values.length);
    return result;
}

// ---- values

/// Whether the column may take a value of another length. One whose lengths differ from the start
/// never had one length; once more values, or a batch, had it, a change is worth a new schema, by
/// which the reader knows the row.
static bool may_vary(const struct tfos__py_flat_column *column)
{
    return !column->is_established && column->values.length < CHANCE_COUNT &&
           column->type.dimension_count == 1;
}

/// Makes the elements behind those of the last sequence the next one.
static enum tfos__py_pack_result end_sequence(struct tfos__py_flat_column *column)
{
    struct tfos_error err;

    return conclude(tfos__arrow_builder_end_list(&column->values, &err), &err);
}

/// Takes the type of the elements of sequences from the first that has some. REFUSED: it has none.
static enum tfos__py_pack_result adopt_elements(struct tfos__py_flat_column *column,
                                                PyObject *value)
{
    struct tfos__py_value_type found;

    if (tfos__py_flat_column_classify(column, value, &found) < 0)
        return TFOS__PACK_ERROR;
    if (found.kind != column->type.kind)
        return TFOS__PACK_REFUSED;
    found = tfos__py_value_type_widen(&column->type, &found);
    return adopt(column, &found) < 0 ? TFOS__PACK_ERROR : TFOS__PACK_DONE;
}

static enum tfos__py_pack_result append_sequence(struct tfos__py_flat_column *column,
                                                 PyObject *value)
{
    const struct tfos__py_value_type *type = &column->type;
    bool is_list = type->kind == TFOS__VALUE_LIST;
    enum tfos__py_pack_result result = TFOS__PACK_DONE;
    Py_ssize_t count = 0;

    if (Py_TYPE(value) != (is_list ? &PyList_Type : &PyTuple_Type))
        return TFOS__PACK_REFUSED;
    count = PySequence_Size(value);
    if (type->is_fixed && count != type->shape[0]) {
        if (!may_vary(column))
            return TFOS__PACK_REFUSED;
        column->type.is_fixed = false;
    }
    if (type->item == TFOS__VALUE_NULL && count > 0)
        result = adopt_elements(column, value);
    if (result != TFOS__PACK_DONE)
        return result;
    if (count > 0 && elements_of(column)->type.layout == TFOS__ARROW_FIXED)
        result = write_numbers(column, type->item, value, count, tfos__py_value_getter(value));
    else if (count > 0)
        result = write_texts(column, value, count, tfos__py_value_getter(value));
    return result == TFOS__PACK_DONE ? end_sequence(column) : result;
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

static enum tfos__py_pack_result copy_array(struct tfos__py_flat_column *column,
                                            const struct tfos__py_numpy_interface_struct *interface)
{
    struct tfos__arrow_builder *elements = elements_of(column);
    struct tfos_error err;
    int64_t count = 1;

    for (int i = 0; i < interface->nd; i++)
        count *= interface->shape[i];
    enum tfos_status status = tfos__arrow_builder_reserve(elements, count, &err);
    if (status < 0)
        return conclude(status, &err);
    memcpy(tfos__arrow_builder_end(elements), interface->data,
           (size_t)count * (size_t)column->type.itemsize);
    elements->length += count;
    return end_sequence(column);
}

static enum tfos__py_pack_result
copy_any_array(struct tfos__py_flat_column *column, PyObject *array,
               const struct tfos__py_numpy_interface_struct *interface)
{
    PyObject *copy = NULL, *capsule = NULL;
    enum tfos__py_pack_result result = TFOS__PACK_ERROR;

    if ((interface->flags & ARRAY_CONTIGUOUS) != 0)
        return copy_array(column, interface);
    copy = PyObject_CallFunctionObjArgs(tfos__py_numpy_load()->ascontiguousarray, array, NULL);
    interface = copy ? tfos__py_numpy_interface(copy, &capsule) : NULL;
    if (interface)
        result = copy_array(column, interface);
    Py_XDECREF(capsule);
    Py_XDECREF(copy);
    return result;
}

static enum tfos__py_pack_result append_elements(struct tfos__py_flat_column *column,
                                                 PyObject *array)
{
    PyObject *capsule = NULL;
    const struct tfos__py_numpy_interface_struct *interface =
        tfos__py_numpy_interface(array, &capsule);
    enum tfos__py_pack_result result = TFOS__PACK_REFUSED;
    bool fits = false;

    if (!interface)
        return TFOS__PACK_ERROR;
    fits = has_shape(interface, &column->type);
    if (!fits && interface->nd == 1 && may_vary(column)) {
        column->type.is_fixed = false;
        fits = true;
    }
    if (fits)
        result = copy_any_array(column, array, interface);
    Py_DECREF(capsule);
    return result;
}

static enum tfos__py_pack_result append_array(struct tfos__py_flat_column *column, PyObject *value)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_find();
    PyObject *dtype = NULL;
    int is_same = 1;

    if (!numpy || !tfos__py_numpy_is_array(numpy, value))
        return PyErr_Occurred() ? TFOS__PACK_ERROR : TFOS__PACK_REFUSED;
    dtype = PyObject_GetAttrString(value, "dtype");
    if (!dtype)
        return TFOS__PACK_ERROR;
    if (dtype != column->dtype)
        is_same = PyObject_RichCompareBool(dtype, column->dtype, Py_EQ);
    if (is_same <= 0) {
        Py_DECREF(dtype);
        return is_same == 0 ? TFOS__PACK_REFUSED : TFOS__PACK_ERROR;
    }
    // Arrays that came through one pickle share a dtype, which makes the next comparison short.
    Py_DECREF(column->dtype);
    column->dtype = dtype;
    return append_elements(column, value);
}

static enum tfos__py_pack_result append_scalar(struct tfos__py_flat_column *column, PyObject *value)
{
    struct tfos__arrow_builder *values = &column->values;
    struct tfos_error err;
    PyObject *bytes = NULL;
    char *data = NULL;
    Py_ssize_t size = 0;
    enum tfos__py_pack_result result = TFOS__PACK_ERROR;
    int is = is_scalar(column, value);

    if (is <= 0)
        return is == 0 ? TFOS__PACK_REFUSED : TFOS__PACK_ERROR;
    bytes = PyObject_CallMethod(value, "tobytes", NULL);
    if (bytes && PyBytes_AsStringAndSize(bytes, &data, &size) == 0 && size == column->type.itemsize)
        result = conclude(tfos__arrow_builder_reserve(values, 1, &err), &err);
    if (result == TFOS__PACK_DONE) {
        memcpy(tfos__arrow_builder_end(values), data, (size_t)size);
        values->length++;
    }
    Py_XDECREF(bytes);
    return result;
}

/// A value of BOOL, INT or FLOAT is written like a sequence of one.
static PyObject *get_itself(PyObject *value, Py_ssize_t index)
{
    (void)index;
    return value;
}

static enum tfos__py_pack_result append_bytes(struct tfos__py_flat_column *column, PyObject *value)
{
    if (column->type.kind == TFOS__VALUE_OPAQUE)
        return write_made(&column->values, tfos__py_pickle_dump(value));
    if (column->type.kind == TFOS__VALUE_TEXT && Py_TYPE(value) == &PyUnicode_Type)
        return write_made(&column->values, tfos__py_value_encode(value));
    if (column->type.kind == TFOS__VALUE_BYTES && Py_TYPE(value) == &PyBytes_Type)
        return write_bytes(&column->values, value);
    return TFOS__PACK_REFUSED;
}

enum tfos__py_pack_result tfos__py_flat_column_append(struct tfos__py_flat_column *column,
                                                      PyObject *value)
{
    struct tfos_error err;

    if (value == Py_None)
        return conclude(append_null(column, &err), &err);
    if (column->type.kind == TFOS__VALUE_NULL) {
        struct tfos__py_value_type type;
        if (tfos__py_flat_column_classify(column, value, &type) < 0)
            return TFOS__PACK_ERROR;
        if (type.kind == TFOS__VALUE_OPAQUE && !column->takes_any)
            return TFOS__PACK_REFUSED;
        if (adopt(column, &type) < 0)
            return TFOS__PACK_ERROR;
    }
    switch (column->type.kind) {
    case TFOS__VALUE_BOOL:
    case TFOS__VALUE_INT:
    case TFOS__VALUE_FLOAT:
        return write_numbers(column, column->type.kind, value, 1, get_itself);
    case TFOS__VALUE_LIST:
    case TFOS__VALUE_TUPLE:
        return append_sequence(column, value);
    case TFOS__VALUE_ARRAY:
        return append_array(column, value);
    case TFOS__VALUE_SCALAR:
        return append_scalar(column, value);
    default:
        return append_bytes(column, value);
    }
}

static enum tfos_status make_schema(const struct tfos__py_flat_column *column, const char *name,
                                    struct ArrowSchema *schema, struct tfos_error *err)
{
    bool is_sequence = tfos__py_value_type_is_sequence(&column->type);
    char text[TFOS__VALUE_TEXT_SIZE];
    enum tfos_status status = tfos__arrow_schema_init(
        schema, tfos__py_value_type_arrow(&column->type), name, is_sequence, err);

    tfos__py_value_type_write(&column->type, text);
    if (status == TFOS_OK)
        status = tfos__arrow_schema_note(schema, "tfos.value",
                                         (struct tfos_view){text, strlen(text)}, err);
    if (status == TFOS_OK && is_sequence)
        status = tfos__arrow_schema_init(
            schema->children[0], tfos__py_value_type_item_arrow(&column->type), "item", 0, err);
    return status;
}

int tfos__py_flat_column_show(struct tfos__py_flat_column *column, const char *name,
                              struct ArrowSchema *schema)
{
    struct tfos_error err;
    enum tfos_status status = make_schema(column, name, schema, &err);

    if (status == TFOS_OK)
        status = tfos__arrow_builder_show(&column->values, &err);
    if (column->type.is_fixed)
        column->values.array.n_buffers = 1; // the ends of lists of one length are left out
    return tfos__py_check(status, &err);
}

void tfos__py_flat_column_clear(struct tfos__py_flat_column *column)
{
    Py_XDECREF(column->dtype);
    tfos__arrow_builder_clear(&column->values);
    memset(column, 0, sizeof(*column));
}
