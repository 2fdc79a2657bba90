// SPDX-License-Identifier: Apache-2.0
// Rows into columns. Invariant: between calls all columns have row_count values; a row that is
// refused or fails leaves nothing behind.
#include "row_packer.h"

#include <string.h>

#include "error.h"
#include "row_schema.h"
#include "row_type.h"
#include "row_unpacker.h"

#define COLUMN_LIMIT 4096 ///< rows of more columns travel as opaque values

struct tfos__py_row_packer {
    bool has_kind;       ///< the first row was seen
    bool is_whole;       ///< the row is one value, whatever comes
    bool is_established; ///< a batch was taken
    bool wants_columns;
    struct tfos__py_row_type type;
    int64_t column_count;
    struct tfos__py_column_packer *columns; ///< owned
    int64_t row_count;
    size_t size;
    int64_t row;               ///< number of the next row, for messages
    struct ArrowSchema schema; ///< of the batch that was shown last; owned
    struct ArrowArray array;
    struct ArrowArray **children; ///< owned; into the columns
};

struct tfos__py_row_packer *tfos__py_row_packer_open(int64_t first_row, bool wants_columns)
{
    struct tfos__py_row_packer *packer = PyMem_Calloc(1, sizeof(*packer));

    if (!packer)
        PyErr_NoMemory();
    else
        *packer = (struct tfos__py_row_packer){.row = first_row, .wants_columns = wants_columns};
    return packer;
}

static void drop_columns(struct tfos__py_row_packer *packer)
{
    for (int64_t i = 0; i < packer->column_count; i++)
        tfos__py_column_packer_clear(&packer->columns[i]);
    tfos__arrow_schema_release(&packer->schema);
    PyMem_Free(packer->columns);
    PyMem_Free(packer->children);
    packer->columns = NULL;
    packer->children = NULL;
    packer->column_count = 0;
    tfos__py_row_type_clear(&packer->type);
}

static int make_columns(struct tfos__py_row_packer *packer, int64_t count)
{
    size_t room = (size_t)count + 1;

    packer->columns = PyMem_Calloc(room, sizeof(*packer->columns));
    packer->children = PyMem_Calloc(room, sizeof(*packer->children));
    if (!packer->columns || !packer->children) {
        PyErr_NoMemory();
        return -1;
    }
    for (; packer->column_count < count; packer->column_count++) {
        if (tfos__py_column_packer_init(&packer->columns[packer->column_count],
                                        packer->wants_columns) < 0)
            return -1;
    }
    return 0;
}

/// From now on the row is one value.
static int make_whole(struct tfos__py_row_packer *packer)
{
    drop_columns(packer);
    packer->has_kind = true;
    packer->is_whole = true;
    return make_columns(packer, 1);
}

/// From now on the row is one opaque value.
static int make_opaque(struct tfos__py_row_packer *packer)
{
    return make_whole(packer) < 0 ? -1 : tfos__py_column_packer_make_opaque(&packer->columns[0]);
}

/// Takes the kind of row and the columns from the first row.
static int begin(struct tfos__py_row_packer *packer, PyObject *row)
{
    int is_known = 0;

    drop_columns(packer);
    is_known = tfos__py_row_type_init(&packer->type, row, packer->wants_columns);
    if (is_known < 0)
        return -1;
    if (is_known == 0 || packer->type.column_count > COLUMN_LIMIT)
        return make_opaque(packer);
    packer->has_kind = true;
    return make_columns(packer,
                        packer->type.kind == TFOS__ROW_VALUE ? 1 : packer->type.column_count);
}

/// Says which value could not be packed; the cause stays visible beneath.
static void explain(const struct tfos__py_row_packer *packer, int64_t column)
{
    PyObject *class = NULL, *cause = NULL, *trace = NULL, *type = NULL, *error = NULL;
    PyObject *name = NULL;

    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return;
    PyErr_Fetch(&class, &cause, &trace);
    PyErr_NormalizeException(&class, &cause, &trace);
    if (packer->type.names)
        name = PyUnicode_FromFormat("%R", PyTuple_GetItem(packer->type.names, (Py_ssize_t)column));
    else
        name = PyUnicode_FromFormat("%lld", (long long)column);
    if (name)
        PyErr_Format(PyExc_TypeError,
                     "row %lld cannot be fed: its column %U has no column form and cannot be "
                     "pickled: %S",
                     (long long)packer->row, name, cause);
    Py_XDECREF(name);
    PyErr_Fetch(&type, &error, &name);
    PyErr_NormalizeException(&type, &error, &name);
    if (error && cause) {
        Py_INCREF(cause);
        PyException_SetCause(error, cause);
    }
    PyErr_Restore(type, error, name);
    Py_XDECREF(class);
    Py_XDECREF(cause);
    Py_XDECREF(trace);
}

static void take_back(struct tfos__py_row_packer *packer, int64_t column_count)
{
    for (int64_t i = 0; i < column_count; i++)
        tfos__py_column_packer_truncate(&packer->columns[i], packer->row_count);
}

/// Puts the row's values into the columns; REFUSED names the column that refused, or -1 for the
/// whole row.
static enum tfos__py_pack_result put(struct tfos__py_row_packer *packer, PyObject *row,
                                     int64_t *refusing)
{
    size_t size = 0;

    for (int64_t i = 0; i < packer->column_count; i++) {
        enum tfos__py_pack_result result = TFOS__PACK_REFUSED;
        PyObject *value = tfos__py_row_type_value(&packer->type, row, i);
        *refusing = value ? i : -1;
        if (value) {
            result = tfos__py_column_packer_append(&packer->columns[i], value);
            if (result == TFOS__PACK_REFUSED && packer->row_count > 0)
                result = tfos__py_column_packer_convert(&packer->columns[i], value);
            if (result == TFOS__PACK_ERROR)
                explain(packer, i);
            Py_DECREF(value);
        } else if (PyErr_Occurred()) {
            result = TFOS__PACK_ERROR;
        }
        if (result != TFOS__PACK_DONE) {
            take_back(packer, i);
            return result;
        }
        size += tfos__py_column_packer_size(&packer->columns[i]);
    }
    packer->size = size;
    packer->row_count++;
    packer->row++;
    return TFOS__PACK_DONE;
}

/// Whether rows so far and this one can all be lists that are one value, or None: those before
/// were lists and this one has another length or is None, or it is a list behind None. Tuples are
/// that only in columns: elsewhere each has its fields.
static bool is_ragged(const struct tfos__py_row_packer *packer, PyObject *row)
{
    PyTypeObject *class = Py_TYPE(row);
    bool is_list = class == &PyList_Type || (packer->wants_columns && class == &PyTuple_Type);
    enum tfos__py_row_kind kind = class == &PyList_Type ? TFOS__ROW_LIST : TFOS__ROW_TUPLE;

    if (packer->type.kind == TFOS__ROW_VALUE)
        return is_list && packer->columns[0].flat.type.kind == TFOS__VALUE_NULL;
    if (row == Py_None)
        return packer->type.kind == TFOS__ROW_LIST ||
               (packer->wants_columns && packer->type.kind == TFOS__ROW_TUPLE);
    return is_list && kind == packer->type.kind;
}

static int widen_row(struct tfos__py_row_packer *packer, PyObject *row)
{
    if (!is_ragged(packer, row))
        return make_opaque(packer);
    return make_whole(packer) < 0 ? -1 : tfos__py_column_packer_make_nested(&packer->columns[0]);
}

/// Makes the rows of the first batch, which were lists, one value each, for another that has
/// another length. REFUSED, with the packer as it was: that cannot be.
static enum tfos__py_pack_result convert(struct tfos__py_row_packer *packer, PyObject *row)
{
    struct tfos__py_column_packer column = {.wants_columns = packer->wants_columns};
    enum tfos__py_pack_result result = TFOS__PACK_DONE;
    int64_t count = packer->row_count;
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    PyObject *rows = NULL;

    if (packer->is_established || !is_ragged(packer, row))
        return TFOS__PACK_REFUSED;
    if (tfos__py_row_packer_show(packer, &schema, &array) < 0)
        return TFOS__PACK_ERROR;
    rows = tfos__py_unpack_batch(schema, array);
    if (!rows || PyList_Append(rows, row) < 0 || tfos__py_column_packer_make_nested(&column) < 0)
        result = TFOS__PACK_ERROR;
    for (int64_t i = 0; result == TFOS__PACK_DONE && i <= count; i++) {
        PyObject *value = PyList_GetItem(rows, (Py_ssize_t)i);
        result = tfos__py_column_packer_append(&column, value);
        if (result == TFOS__PACK_REFUSED)
            result = tfos__py_column_packer_convert(&column, value);
    }
    Py_XDECREF(rows);
    if (result == TFOS__PACK_DONE && make_whole(packer) < 0)
        result = TFOS__PACK_ERROR;
    if (result != TFOS__PACK_DONE) {
        tfos__py_column_packer_clear(&column);
        return result;
    }
    tfos__py_column_packer_clear(&packer->columns[0]);
    packer->columns[0] = column;
    packer->size = tfos__py_column_packer_size(&column);
    packer->row_count = count + 1;
    packer->row++;
    return TFOS__PACK_DONE;
}

/// Makes the empty packer take the row that it refused.
static int widen(struct tfos__py_row_packer *packer, PyObject *row, int64_t refusing)
{
    PyObject *value = NULL;
    int result = 0;

    if (refusing < 0)
        return widen_row(packer, row);
    value = tfos__py_row_type_value(&packer->type, row, refusing);
    if (!value)
        return PyErr_Occurred() ? -1 : make_opaque(packer);
    result = tfos__py_column_packer_widen(&packer->columns[refusing], value);
    Py_DECREF(value);
    return result;
}

enum tfos__py_pack_result tfos__py_row_packer_append(struct tfos__py_row_packer *packer,
                                                     PyObject *row)
{
    if (!packer->has_kind && begin(packer, row) < 0)
        return TFOS__PACK_ERROR;
    for (;;) {
        enum tfos__py_pack_result result = TFOS__PACK_REFUSED;
        int64_t refusing = -1;
        int is_fit = packer->is_whole ? 1 : tfos__py_row_type_fits(&packer->type, row);
        if (is_fit < 0)
            return TFOS__PACK_ERROR;
        if (is_fit > 0)
            result = put(packer, row, &refusing);
        else if (packer->row_count > 0)
            result = convert(packer, row);
        if (result != TFOS__PACK_REFUSED || packer->row_count > 0)
            return result;
        if (widen(packer, row, refusing) < 0)
            return TFOS__PACK_ERROR;
    }
}

bool tfos__py_row_packer_is_full(const struct tfos__py_row_packer *packer)
{
    return packer->size >= TFOS__BATCH_SIZE || packer->row_count >= TFOS__BATCH_ROWS;
}

int64_t tfos__py_row_packer_row_count(const struct tfos__py_row_packer *packer)
{
    return packer->row_count;
}

int tfos__py_row_packer_show(struct tfos__py_row_packer *packer, const struct ArrowSchema **schema,
                             const struct ArrowArray **array)
{
    static const void *no_buffers[1];

    tfos__arrow_schema_release(&packer->schema);
    if (tfos__py_row_type_write(&packer->type, packer->column_count, &packer->schema) < 0)
        return -1;
    for (int64_t i = 0; i < packer->column_count; i++) {
        packer->children[i] = tfos__py_column_packer_show(&packer->columns[i],
                                                          tfos__py_row_type_name(&packer->type, i),
                                                          packer->schema.children[i]);
        if (!packer->children[i])
            return -1;
    }
    packer->array = (struct ArrowArray){
        .length = packer->row_count,
        .n_buffers = 1,
        .n_children = packer->column_count,
        .buffers = no_buffers,
        .children = packer->children,
    };
    *schema = &packer->schema;
    *array = &packer->array;
    return 0;
}

int tfos__py_row_packer_clear(struct tfos__py_row_packer *packer)
{
    packer->is_established = packer->is_established || packer->row_count > 0;
    packer->row_count = 0;
    packer->size = 0;
    for (int64_t i = 0; i < packer->column_count; i++) {
        if (tfos__py_column_packer_reset(&packer->columns[i]) < 0)
            return -1;
    }
    return 0;
}

/// Has the batch taken, if there is one.
static int flush(struct tfos__py_row_packer *packer, tfos__py_row_packer_taker *take, void *context)
{
    if (packer->row_count == 0)
        return 0;
    if (take(context, packer) < 0)
        return -1;
    return tfos__py_row_packer_clear(packer);
}

int tfos__py_row_packer_append_all(struct tfos__py_row_packer *packer, PyObject *rows,
                                   tfos__py_row_packer_taker *take, void *context)
{
    for (Py_ssize_t i = 0; i < PyList_Size(rows);) {
        enum tfos__py_pack_result result =
            tfos__py_row_packer_append(packer, PyList_GetItem(rows, i));
        if (result == TFOS__PACK_ERROR)
            return -1;
        i += result == TFOS__PACK_DONE;
        if ((result == TFOS__PACK_REFUSED || tfos__py_row_packer_is_full(packer)) &&
            flush(packer, take, context) < 0)
            return -1;
    }
    return flush(packer, take, context);
}

void tfos__py_row_packer_close(struct tfos__py_row_packer *packer)
{
    if (!packer)
        return;
    drop_columns(packer);
    PyMem_Free(packer);
}
