// SPDX-License-Identifier: Apache-2.0
// Rows into columns. Invariant: between calls all fields have row_count values; a row that is
// refused or fails leaves nothing behind.
#include "packer.h"
#include "field.h"

#include <string.h>

#define COLUMN_LIMIT 4096 ///< rows of more columns travel as opaque values

const char *const tfos__row_names[5] = {
    [TFOS__ROW_VALUE] = "value", [TFOS__ROW_TUPLE] = "tuple", [TFOS__ROW_LIST] = "list",
    [TFOS__ROW_DICT] = "dict",   [TFOS__ROW_SPARK] = "row",
};

struct tfos__packer {
    bool has_kind; ///< the first row was seen
    bool is_whole; ///< the row is one value, whatever comes
    bool takes_trees;
    enum tfos__row_kind kind;
    int64_t column_count;
    struct tfos__field *fields; ///< owned
    PyObject *names;            ///< DICT, SPARK: tuple of str; owned
    PyObject *encoded_names;    ///< the same as bytes; owned
    PyObject *spark_fields;     ///< SPARK: the __fields__ that were compared last; owned
    int64_t row_count;
    size_t size;
    int64_t row; ///< number of the next row, for messages
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct ArrowSchema **schema_children; ///< owned; into the fields
    struct ArrowArray **array_children;   ///< owned; into the fields
    const void *buffers[1];
    char metadata[64];
};

struct tfos__packer *tfos__packer_open(int64_t first_row, bool takes_trees)
{
    struct tfos__packer *packer = PyMem_Calloc(1, sizeof(*packer));

    if (packer == NULL)
        PyErr_NoMemory();
    else
        *packer = (struct tfos__packer){.row = first_row, .takes_trees = takes_trees};
    return packer;
}

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
    is_row = module != NULL && name != NULL && PyUnicode_Check(module) && PyUnicode_Check(name) &&
             PyUnicode_CompareWithASCIIString(module, "pyspark.sql.types") == 0 &&
             PyUnicode_CompareWithASCIIString(name, "Row") == 0 &&
             PyObject_HasAttrString(row, "__fields__");
    Py_XDECREF(module);
    Py_XDECREF(name);
    PyErr_Clear();
    return is_row;
}

static enum tfos__row_kind kind_of(PyObject *row)
{
    if (Py_TYPE(row) == &PyTuple_Type)
        return TFOS__ROW_TUPLE;
    if (Py_TYPE(row) == &PyList_Type)
        return TFOS__ROW_LIST;
    if (Py_TYPE(row) == &PyDict_Type)
        return TFOS__ROW_DICT;
    return is_spark_row(row) ? TFOS__ROW_SPARK : TFOS__ROW_VALUE;
}

/// A name as bytes, for the schema; NULL without an exception when it cannot be a column's name.
static PyObject *encode_name(PyObject *name)
{
    PyObject *bytes = Py_TYPE(name) == &PyUnicode_Type ? PyUnicode_AsUTF8String(name) : NULL;

    if (bytes == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        PyErr_Clear();
    if (bytes != NULL && strlen(PyBytes_AsString(bytes)) != (size_t)PyBytes_Size(bytes))
        Py_CLEAR(bytes);
    return bytes;
}

/// All names so, or NULL.
static PyObject *encode_names(PyObject *names)
{
    Py_ssize_t count = PyTuple_Size(names);
    PyObject *encoded = PyTuple_New(count);

    if (encoded == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *bytes = encode_name(PyTuple_GetItem(names, i));
        if (bytes == NULL || PyTuple_SetItem(encoded, i, bytes) < 0) {
            Py_DECREF(encoded);
            return NULL;
        }
    }
    return encoded;
}

/// Notes the names of a dict's or Row's columns. 1: done, 0: they cannot be columns' names, -1:
/// failed.
static int note_names(struct tfos__packer *packer, PyObject *row, enum tfos__row_kind kind)
{
    PyObject *fields =
        kind == TFOS__ROW_SPARK ? PyObject_GetAttrString(row, "__fields__") : PyDict_Keys(row);

    if (fields == NULL)
        return -1;
    packer->names = PySequence_Tuple(fields);
    if (kind == TFOS__ROW_SPARK)
        packer->spark_fields = fields;
    else
        Py_DECREF(fields);
    if (packer->names == NULL)
        return -1;
    packer->encoded_names = encode_names(packer->names);
    if (packer->encoded_names == NULL)
        return PyErr_Occurred() ? -1 : 0;
    return PyTuple_Size(packer->names) == PyObject_Size(row) ? 1 : 0;
}

static void drop_columns(struct tfos__packer *packer)
{
    for (int64_t i = 0; i < packer->column_count; i++)
        tfos__field_clear(&packer->fields[i]);
    PyMem_Free(packer->fields);
    PyMem_Free(packer->schema_children);
    PyMem_Free(packer->array_children);
    packer->fields = NULL;
    packer->schema_children = NULL;
    packer->array_children = NULL;
    packer->column_count = 0;
    Py_CLEAR(packer->names);
    Py_CLEAR(packer->encoded_names);
    Py_CLEAR(packer->spark_fields);
}

static int make_columns(struct tfos__packer *packer, int64_t count)
{
    size_t room = (size_t)count + 1;

    packer->fields = PyMem_Calloc(room, sizeof(*packer->fields));
    packer->schema_children = PyMem_Calloc(room, sizeof(*packer->schema_children));
    packer->array_children = PyMem_Calloc(room, sizeof(*packer->array_children));
    if (packer->fields == NULL || packer->schema_children == NULL ||
        packer->array_children == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; packer->column_count < count; packer->column_count++) {
        struct tfos__field *field = &packer->fields[packer->column_count];
        if (tfos__field_init(field) < 0)
            return -1;
        field->takes_trees = packer->takes_trees;
    }
    return 0;
}

/// From now on the row is one value.
static int make_whole(struct tfos__packer *packer)
{
    drop_columns(packer);
    packer->has_kind = true;
    packer->is_whole = true;
    packer->kind = TFOS__ROW_VALUE;
    return make_columns(packer, 1);
}

/// From now on the row is one opaque value.
static int make_opaque(struct tfos__packer *packer)
{
    return make_whole(packer) < 0 ? -1 : tfos__field_make_opaque(&packer->fields[0]);
}

/// Takes the kind of row and the columns from the first row.
static int begin(struct tfos__packer *packer, PyObject *row)
{
    enum tfos__row_kind kind = kind_of(row);
    int64_t count = kind == TFOS__ROW_VALUE ? 1 : (int64_t)PyObject_Size(row);
    int named = 1;

    drop_columns(packer);
    if (kind == TFOS__ROW_DICT || kind == TFOS__ROW_SPARK)
        named = note_names(packer, row, kind);
    if (named < 0)
        return -1;
    if (named == 0 || count > COLUMN_LIMIT)
        return make_opaque(packer);
    if (make_columns(packer, count) < 0)
        return -1;
    packer->kind = kind;
    packer->has_kind = true;
    return 0;
}

/// Whether a Row has the packer's names. -1 with an exception.
static int has_names(struct tfos__packer *packer, PyObject *row)
{
    PyObject *fields = PyObject_GetAttrString(row, "__fields__");
    PyObject *names = NULL;
    int is_same = 0;

    if (fields == NULL)
        return -1;
    if (fields == packer->spark_fields) {
        Py_DECREF(fields);
        return 1;
    }
    names = PySequence_Tuple(fields);
    if (names != NULL)
        is_same = PyObject_RichCompareBool(names, packer->names, Py_EQ);
    Py_XDECREF(names);
    if (is_same == 1) { // rows mostly share the object, which makes the next comparison short
        Py_DECREF(packer->spark_fields);
        packer->spark_fields = fields;
    } else {
        Py_DECREF(fields);
    }
    return names != NULL ? is_same : -1;
}

/// Whether the row is of the packer's kind. -1 with an exception.
static int fits(struct tfos__packer *packer, PyObject *row)
{
    if (packer->is_whole)
        return 1;
    if (kind_of(row) != packer->kind)
        return 0;
    if (packer->kind == TFOS__ROW_VALUE)
        return 1;
    if (PyObject_Size(row) != packer->column_count)
        return 0;
    return packer->kind == TFOS__ROW_SPARK ? has_names(packer, row) : 1;
}

/// The row's value in a column, a new reference. NULL: it has none (a dict with other keys), or an
/// exception.
static PyObject *value_of(const struct tfos__packer *packer, PyObject *row, int64_t column)
{
    PyObject *value = row;

    if (packer->kind == TFOS__ROW_TUPLE || packer->kind == TFOS__ROW_SPARK)
        value = PyTuple_GetItem(row, (Py_ssize_t)column);
    else if (packer->kind == TFOS__ROW_LIST)
        value = PyList_GetItem(row, (Py_ssize_t)column);
    else if (packer->kind == TFOS__ROW_DICT)
        value = PyDict_GetItemWithError(row, PyTuple_GetItem(packer->names, (Py_ssize_t)column));
    Py_XINCREF(value);
    return value;
}

/// Says which value could not be packed; the cause stays visible beneath.
static void explain(const struct tfos__packer *packer, int64_t column)
{
    PyObject *class = NULL, *cause = NULL, *trace = NULL, *type = NULL, *error = NULL;
    PyObject *name = NULL;

    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return;
    PyErr_Fetch(&class, &cause, &trace);
    PyErr_NormalizeException(&class, &cause, &trace);
    if (packer->names != NULL)
        name = PyUnicode_FromFormat("%R", PyTuple_GetItem(packer->names, (Py_ssize_t)column));
    else
        name = PyUnicode_FromFormat("%lld", (long long)column);
    if (name != NULL)
        PyErr_Format(PyExc_TypeError,
                     "row %lld cannot be fed: its column %U has no column form and cannot be "
                     "pickled: %S",
                     (long long)packer->row, name, cause);
    Py_XDECREF(name);
    PyErr_Fetch(&type, &error, &name);
    PyErr_NormalizeException(&type, &error, &name);
    if (error != NULL && cause != NULL) {
        Py_INCREF(cause);
        PyException_SetCause(error, cause);
    }
    PyErr_Restore(type, error, name);
    Py_XDECREF(class);
    Py_XDECREF(cause);
    Py_XDECREF(trace);
}

static void take_back(struct tfos__packer *packer, int64_t column_count)
{
    for (int64_t i = 0; i < column_count; i++)
        tfos__field_truncate(&packer->fields[i], packer->row_count);
}

/// Puts the row's values into the fields; REFUSED names the column that refused, or -1 for the
/// whole row.
static enum tfos__pack_result put(struct tfos__packer *packer, PyObject *row, int64_t *refusing)
{
    size_t size = 0;

    for (int64_t i = 0; i < packer->column_count; i++) {
        enum tfos__pack_result result = TFOS__PACK_REFUSED;
        PyObject *value = value_of(packer, row, i);
        *refusing = value != NULL ? i : -1;
        if (value != NULL) {
            result = tfos__field_append(&packer->fields[i], value);
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
        size += tfos__field_size(&packer->fields[i]);
    }
    packer->size = size;
    packer->row_count++;
    packer->row++;
    return TFOS__PACK_DONE;
}

/// Whether rows so far and this one can all be lists that are one value, or None: those before
/// were lists and this one has another length or is None, or it is a list behind None.
static bool is_ragged(const struct tfos__packer *packer, PyObject *row)
{
    enum tfos__row_kind kind = kind_of(row);

    if (packer->kind == TFOS__ROW_VALUE)
        return (kind == TFOS__ROW_LIST || kind == TFOS__ROW_TUPLE) &&
               packer->fields[0].series.type.kind == TFOS__VALUE_NULL;
    return (packer->kind == TFOS__ROW_LIST || packer->kind == TFOS__ROW_TUPLE) &&
           (kind == packer->kind || row == Py_None);
}

static int widen_row(struct tfos__packer *packer, PyObject *row)
{
    if (!packer->takes_trees || !is_ragged(packer, row))
        return make_opaque(packer);
    return make_whole(packer) < 0 ? -1 : tfos__field_make_tree(&packer->fields[0]);
}

/// Makes the empty packer take the row that it refused.
static int widen(struct tfos__packer *packer, PyObject *row, int64_t refusing)
{
    PyObject *value = NULL;
    int result = 0;

    if (refusing < 0)
        return widen_row(packer, row);
    value = value_of(packer, row, refusing);
    if (value == NULL)
        return PyErr_Occurred() ? -1 : make_opaque(packer);
    result = tfos__field_widen(&packer->fields[refusing], value);
    Py_DECREF(value);
    return result;
}

enum tfos__pack_result tfos__packer_append(struct tfos__packer *packer, PyObject *row)
{
    if (!packer->has_kind && begin(packer, row) < 0)
        return TFOS__PACK_ERROR;
    for (;;) {
        enum tfos__pack_result result = TFOS__PACK_REFUSED;
        int64_t refusing = -1;
        int is_fit = fits(packer, row);
        if (is_fit < 0)
            return TFOS__PACK_ERROR;
        if (is_fit > 0)
            result = put(packer, row, &refusing);
        if (result != TFOS__PACK_REFUSED || packer->row_count > 0)
            return result;
        if (widen(packer, row, refusing) < 0)
            return TFOS__PACK_ERROR;
    }
}

bool tfos__packer_is_full(const struct tfos__packer *packer)
{
    return packer->size >= TFOS__BATCH_SIZE || packer->row_count >= TFOS__BATCH_ROWS;
}

int64_t tfos__packer_row_count(const struct tfos__packer *packer)
{
    return packer->row_count;
}

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

void tfos__packer_show(struct tfos__packer *packer, const struct ArrowSchema **schema,
                       const struct ArrowArray **array)
{
    for (int64_t i = 0; i < packer->column_count; i++) {
        const char *name = "";
        if (packer->encoded_names != NULL)
            name = PyBytes_AsString(PyTuple_GetItem(packer->encoded_names, (Py_ssize_t)i));
        tfos__field_show(&packer->fields[i], name, &packer->schema_children[i],
                         &packer->array_children[i]);
    }
    tfos__metadata_write("tfos.row", tfos__row_names[packer->kind], packer->metadata);
    packer->schema = (struct ArrowSchema){
        .format = "+s",
        .name = "",
        .metadata = packer->metadata,
        .n_children = packer->column_count,
        .children = packer->schema_children,
        .release = release_schema,
    };
    packer->array = (struct ArrowArray){
        .length = packer->row_count,
        .n_buffers = 1,
        .n_children = packer->column_count,
        .buffers = packer->buffers,
        .children = packer->array_children,
        .release = release_array,
    };
    *schema = &packer->schema;
    *array = &packer->array;
}

void tfos__packer_clear(struct tfos__packer *packer)
{
    packer->row_count = 0;
    packer->size = 0;
    for (int64_t i = 0; i < packer->column_count; i++)
        tfos__field_reset(&packer->fields[i]);
}

/// Has the batch taken, if there is one.
static int flush(struct tfos__packer *packer, tfos__packer_taker *take, void *context)
{
    if (packer->row_count == 0)
        return 0;
    if (take(context, packer) < 0)
        return -1;
    tfos__packer_clear(packer);
    return 0;
}

int tfos__packer_append_all(struct tfos__packer *packer, PyObject *rows, tfos__packer_taker *take,
                            void *context)
{
    for (Py_ssize_t i = 0; i < PyList_Size(rows);) {
        enum tfos__pack_result result = tfos__packer_append(packer, PyList_GetItem(rows, i));
        if (result == TFOS__PACK_ERROR)
            return -1;
        i += result == TFOS__PACK_DONE;
        if ((result == TFOS__PACK_REFUSED || tfos__packer_is_full(packer)) &&
            flush(packer, take, context) < 0)
            return -1;
    }
    return flush(packer, take, context);
}

void tfos__packer_close(struct tfos__packer *packer)
{
    if (packer == NULL)
        return;
    drop_columns(packer);
    PyMem_Free(packer);
}
