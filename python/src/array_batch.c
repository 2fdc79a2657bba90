// SPDX-License-Identifier: Apache-2.0
// Arrays into columns. Numbers are not copied: a column's elements are borrowed from its array,
// which is kept for as long. What is no number goes through a column packer, value by value.
#include "array_batch.h"

#include <string.h>

#include "column_packer.h"
#include "error.h"
#include "numpy.h"
#include "row_type.h"

struct column {
    PyObject *array;   ///< owned; keeps `interface` and borrowed elements alive
    PyObject *capsule; ///< of the interface; owned
    const struct tfos__py_numpy_interface_struct *interface;
    PyObject *name;                       ///< bytes; NULL where rows have no names; owned
    struct tfos__py_column_packer packer; ///< of numbers its flat column, with borrowed elements
    struct tfos__arrow_builder moments;   ///< dates and times, which are plain Arrow; else of NULL
};

struct tfos__py_array_batch {
    enum tfos__py_row_kind kind;
    bool wants_columns;
    int64_t column_count, row_count;
    struct column *columns;    ///< owned
    struct ArrowSchema schema; ///< owned once shown
    struct ArrowArray array;
    struct ArrowArray **children; ///< owned; into the columns
};

/// What messages call a column.
static PyObject *name_for_message(const struct tfos__py_array_batch *batch, int64_t index)
{
    const struct column *column = &batch->columns[index];

    if (column->name)
        return PyUnicode_FromFormat("column '%s'", PyBytes_AsString(column->name));
    if (batch->kind == TFOS__ROW_VALUE)
        return PyUnicode_FromString("array");
    return PyUnicode_FromFormat("column %lld", (long long)index);
}

/// Raises InvalidError: "results: column 'x': " and `what`, which is taken over.
static int refuse(const struct tfos__py_array_batch *batch, int64_t index, PyObject *what)
{
    PyObject *name = name_for_message(batch, index);

    if (name && what)
        tfos__py_raise_format(TFOS_INVALID, "results: %U: %U", name, what);
    Py_XDECREF(name);
    Py_XDECREF(what);
    return -1;
}

/// Shows numbers where they lie: `type` is that of the array with its rows.
static int borrow_numbers(struct column *column, const struct tfos__py_value_type *type)
{
    struct tfos__py_flat_column *flat = &column->packer.flat;
    struct tfos__arrow_builder *elements = &flat->values;
    struct tfos__py_value_type row = *type;
    int64_t count = type->shape[0];

    row.dimension_count--;
    memmove(row.shape, row.shape + 1, (size_t)row.dimension_count * sizeof(row.shape[0]));
    if (row.dimension_count == 0) {
        row.kind = TFOS__VALUE_SCALAR;
        row.is_fixed = false;
    }
    if (tfos__py_flat_column_reset(flat, &row) < 0)
        return -1;
    if (tfos__py_value_type_is_sequence(&row)) {
        flat->values.length = count;
        elements = &flat->values.children[0];
    }
    elements->length = count * tfos__py_value_type_item_count(&row);
    elements->values.data = column->interface->data; // which is not freed with the column
    return 0;
}

/// Appends a value; one that does not fit makes the column wider and empty. -1 with an exception.
static int append(struct tfos__py_column_packer *packer, PyObject *value, bool *is_done)
{
    enum tfos__py_pack_result result = tfos__py_column_packer_append(packer, value);

    *is_done = result == TFOS__PACK_DONE;
    if (result == TFOS__PACK_REFUSED)
        return tfos__py_column_packer_widen(packer, value);
    return result == TFOS__PACK_ERROR ? -1 : 0;
}

/// Takes each value as an object of its own. `values`, which may be NULL with an exception, is a
/// list of them and taken over.
static int copy_objects(struct column *column, PyObject *values, bool wants_columns)
{
    Py_ssize_t count = values ? PyList_Size(values) : -1;
    int result =
        count < 0 || tfos__py_column_packer_init(&column->packer, wants_columns) < 0 ? -1 : 0;

    for (Py_ssize_t i = 0; result == 0 && i < count;) {
        bool is_done = false;
        result = append(&column->packer, PyList_GetItem(values, i), &is_done);
        i = is_done ? i + 1 : 0;
    }
    Py_XDECREF(values);
    return result;
}

/// Takes moments, of which NaT is a null. Arrow's days have 4 bytes.
static int copy_moments(struct column *column, const struct tfos__py_value_type *type)
{
    struct tfos__arrow_type arrow = tfos__py_value_type_plain_arrow(type);
    struct tfos__arrow_builder *moments = &column->moments;
    const int64_t *from = column->interface->data;
    struct tfos_error err;
    enum tfos_status status = tfos__arrow_builder_adopt(moments, arrow, 0, &err);

    for (intptr_t i = 0; status == TFOS_OK && i < column->interface->shape[0]; i++) {
        if (from[i] == INT64_MIN) {
            status = tfos__arrow_builder_append_null(moments, &err);
            continue;
        }
        status = tfos__arrow_builder_reserve(moments, 1, &err);
        if (status == TFOS_OK) {
            memcpy(tfos__arrow_builder_end(moments), &from[i], (size_t)arrow.width / 8);
            moments->length++;
        }
    }
    return tfos__py_check(status, &err);
}

static int refuse_type(const struct tfos__py_array_batch *batch, int64_t index)
{
    PyObject *dtype = PyObject_GetAttrString(batch->columns[index].array, "dtype");
    int result = -1;

    if (dtype)
        result = refuse(batch, index,
                        PyUnicode_FromFormat("arrays of %S with %d dimensions cannot be sent: "
                                             "give numbers, str, bytes, datetime64 or objects",
                                             dtype, batch->columns[index].interface->nd));
    Py_XDECREF(dtype);
    return result;
}

static int read_values(struct tfos__py_array_batch *batch, int64_t index,
                       const struct tfos__py_numpy *numpy)
{
    struct column *column = &batch->columns[index];
    struct tfos__py_value_type type;
    bool is_classified = tfos__py_numpy_classify(numpy, column->array, &type);

    if (PyErr_Occurred())
        return -1;
    if (is_classified && !tfos__py_value_type_is_moment(&type))
        return borrow_numbers(column, &type);
    if (strchr("OSU", column->interface->typekind))
        return copy_objects(column, PyObject_CallMethod(column->array, "tolist", NULL),
                            batch->wants_columns);
    if (column->interface->typekind == 'M' && column->interface->nd > 1)
        return copy_objects(column, PySequence_List(column->array), // a row is an array of moments
                            batch->wants_columns);
    if (is_classified && type.letter == 'M')
        return copy_moments(column, &type);
    return refuse_type(batch, index);
}

/// The array's elements one behind the other, numbers in the machine's byte order. NULL with an
/// exception.
static PyObject *straighten(const struct tfos__py_numpy *numpy, PyObject *array)
{
    struct tfos__py_value_type type = {.kind = TFOS__VALUE_ARRAY};
    bool is_native = true;
    PyObject *dtype = NULL, *straight = NULL;

    if (tfos__py_numpy_read_elements(numpy, array, &type, &is_native) && !is_native)
        dtype = tfos__py_numpy_dtype(numpy, &type);
    if (!PyErr_Occurred())
        straight = PyObject_CallFunctionObjArgs(numpy->ascontiguousarray, array, dtype, NULL);
    Py_XDECREF(dtype);
    return straight;
}

static int read_column(struct tfos__py_array_batch *batch, int64_t index, PyObject *value)
{
    const struct tfos__py_numpy *numpy = tfos__py_numpy_load();
    struct column *column = &batch->columns[index];

    if (!numpy)
        return -1;
    if (Py_TYPE(value) != numpy->ndarray)
        return refuse(batch, index,
                      PyUnicode_FromFormat("expected a numpy array, not %R", Py_TYPE(value)));
    column->interface = tfos__py_numpy_interface(value, &column->capsule);
    if (!column->interface)
        return -1;
    if (column->interface->nd == 0)
        return refuse(batch, index, PyUnicode_FromString("has no dimension for its rows"));
    Py_CLEAR(column->capsule);
    column->array = straighten(numpy, value);
    if (!column->array)
        return -1;
    column->interface = tfos__py_numpy_interface(column->array, &column->capsule);
    if (!column->interface)
        return -1;
    if (index == 0)
        batch->row_count = column->interface->shape[0];
    if (column->interface->shape[0] != batch->row_count)
        return refuse(batch, index,
                      PyUnicode_FromFormat("has %lld rows, the column before it %lld",
                                           (long long)column->interface->shape[0],
                                           (long long)batch->row_count));
    return read_values(batch, index, numpy);
}

static int read_name(struct tfos__py_array_batch *batch, int64_t index, PyObject *name)
{
    PyObject *bytes = PyUnicode_Check(name) ? PyUnicode_AsUTF8String(name) : NULL;

    if (!bytes || strlen(PyBytes_AsString(bytes)) != (size_t)PyBytes_Size(bytes)) {
        Py_XDECREF(bytes);
        if (!PyErr_Occurred())
            tfos__py_raise_format(TFOS_INVALID, "results: %R cannot be a column's name", name);
        return -1;
    }
    batch->columns[index].name = bytes;
    return 0;
}

static int make_columns(struct tfos__py_array_batch *batch, int64_t count)
{
    size_t room = (size_t)count + 1;

    batch->columns = PyMem_Calloc(room, sizeof(*batch->columns));
    batch->children = PyMem_Calloc(room, sizeof(*batch->children));
    if (!batch->columns || !batch->children) {
        PyErr_NoMemory();
        return -1;
    }
    batch->column_count = count;
    return 0;
}

static int read_tuple(struct tfos__py_array_batch *batch, PyObject *arrays)
{
    batch->kind = TFOS__ROW_TUPLE;
    if (make_columns(batch, PyTuple_Size(arrays)) < 0)
        return -1;
    for (int64_t i = 0; i < batch->column_count; i++) {
        if (read_column(batch, i, PyTuple_GetItem(arrays, (Py_ssize_t)i)) < 0)
            return -1;
    }
    return 0;
}

static int read_dict(struct tfos__py_array_batch *batch, PyObject *arrays)
{
    PyObject *name = NULL, *array = NULL;
    Py_ssize_t place = 0;

    batch->kind = TFOS__ROW_DICT;
    if (make_columns(batch, PyDict_Size(arrays)) < 0)
        return -1;
    for (int64_t i = 0; i < batch->column_count && PyDict_Next(arrays, &place, &name, &array);
         i++) {
        if (read_name(batch, i, name) < 0 || read_column(batch, i, array) < 0)
            return -1;
    }
    return 0;
}

static int read_arrays(struct tfos__py_array_batch *batch, PyObject *arrays)
{
    if (PyDict_Check(arrays))
        return read_dict(batch, arrays);
    if (PyTuple_Check(arrays))
        return read_tuple(batch, arrays);
    batch->kind = TFOS__ROW_VALUE;
    if (make_columns(batch, 1) < 0)
        return -1;
    return read_column(batch, 0, arrays);
}

struct tfos__py_array_batch *tfos__py_array_batch_open(PyObject *arrays, bool wants_columns)
{
    struct tfos__py_array_batch *batch = PyMem_Calloc(1, sizeof(*batch));

    if (!batch) {
        PyErr_NoMemory();
        return NULL;
    }
    batch->wants_columns = wants_columns;
    if (read_arrays(batch, arrays) == 0)
        return batch;
    tfos__py_array_batch_close(batch);
    return NULL;
}

int64_t tfos__py_array_batch_row_count(const struct tfos__py_array_batch *batch)
{
    return batch->row_count;
}

/// As tfos__py_column_packer_show().
static struct ArrowArray *show_moments(struct tfos__arrow_builder *moments, const char *name,
                                       struct ArrowSchema *schema)
{
    struct tfos_error err;
    enum tfos_status status = tfos__arrow_schema_init(schema, moments->type, name, 0, &err);

    if (status == TFOS_OK)
        status = tfos__arrow_builder_show(moments, &err);
    return tfos__py_check(status, &err) == 0 ? &moments->array : NULL;
}

int tfos__py_array_batch_show(struct tfos__py_array_batch *batch, const struct ArrowSchema **schema,
                              const struct ArrowArray **array)
{
    static const void *no_buffers[1];
    const struct tfos__py_row_type type = {.kind = batch->kind};

    if (tfos__py_row_type_write(&type, batch->column_count, &batch->schema) < 0)
        return -1;
    for (int64_t i = 0; i < batch->column_count; i++) {
        struct column *column = &batch->columns[i];
        const char *name = column->name ? PyBytes_AsString(column->name) : "";
        struct ArrowSchema *child = batch->schema.children[i];
        batch->children[i] = column->moments.type.kind != TFOS__ARROW_NULL
                                 ? show_moments(&column->moments, name, child)
                                 : tfos__py_column_packer_show(&column->packer, name, child);
        if (!batch->children[i])
            return -1;
    }
    batch->array = (struct ArrowArray){
        .length = batch->row_count,
        .n_buffers = 1,
        .n_children = batch->column_count,
        .buffers = no_buffers,
        .children = batch->children,
    };
    *schema = &batch->schema;
    *array = &batch->array;
    return 0;
}

void tfos__py_array_batch_close(struct tfos__py_array_batch *batch)
{
    if (!batch)
        return;
    for (int64_t i = 0; i < batch->column_count; i++) {
        struct column *column = &batch->columns[i];
        tfos__py_column_packer_clear(&column->packer);
        tfos__arrow_builder_clear(&column->moments);
        Py_XDECREF(column->capsule);
        Py_XDECREF(column->array);
        Py_XDECREF(column->name);
    }
    tfos__arrow_schema_release(&batch->schema);
    PyMem_Free(batch->columns);
    PyMem_Free(batch->children);
    PyMem_Free(batch);
}
