// SPDX-License-Identifier: Apache-2.0
// Rows through the packer and back. A batch is taken as soon as the feed would take it.
#include "sample.h"
#include "row_arrays.h"
#include "capsule.h"
#include "error.h"
#include "row_packer.h"
#include "row_unpacker.h"

/// What a batch goes into: rows, or arrays.
struct taker {
    PyObject *rows;
    struct tfos__py_row_arrays *arrays;
    int64_t row_count; ///< taken so far
};

static int take(struct taker *taker, const struct ArrowSchema *schema,
                const struct ArrowArray *array)
{
    struct tfos__py_row_origin origin = {.first_row = taker->row_count};
    struct tfos__py_row_schema layout;
    int result = 0;

    if (tfos__py_row_schema_init(&layout, schema, array) < 0)
        return -1;
    if (taker->rows != NULL)
        result = tfos__py_unpack_rows(&layout, array, 0, array->length, taker->rows);
    else
        result = tfos__py_row_arrays_append(taker->arrays, &layout, array, 0, array->length, &origin);
    tfos__py_row_schema_clear(&layout);
    taker->row_count += array->length;
    return result;
}

static int take_batch(void *context, struct tfos__py_row_packer *packer)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;

    tfos__py_row_packer_show(packer, &schema, &array);
    return take(context, schema, array);
}

static int check_rows(PyObject *rows)
{
    if (PyList_Check(rows))
        return 0;
    PyErr_Format(PyExc_TypeError, "rows: expected a list, not %R", (PyObject *)Py_TYPE(rows));
    return -1;
}

/// Packs the rows of a list and unpacks them again.
static PyObject *pack(PyObject *rows, bool takes_trees)
{
    struct taker taker = {0};
    struct tfos__py_row_packer *packer = NULL;

    if (check_rows(rows) < 0)
        return NULL;
    packer = tfos__py_row_packer_open(0, takes_trees);
    if (packer == NULL)
        return NULL;
    taker.rows = PyList_New(0);
    if (taker.rows != NULL && tfos__py_row_packer_append_all(packer, rows, take_batch, &taker) < 0)
        Py_CLEAR(taker.rows);
    tfos__py_row_packer_close(packer);
    return taker.rows;
}

PyObject *tfos__py_sample_pack(PyObject *module, PyObject *rows)
{
    (void)module;
    return pack(rows, false);
}

PyObject *tfos__py_sample_pack_columns(PyObject *module, PyObject *rows)
{
    (void)module;
    return pack(rows, true);
}

PyObject *tfos__py_sample_pack_arrays(PyObject *module, PyObject *rows)
{
    struct taker taker = {0};
    struct tfos__py_row_packer *packer = NULL;
    PyObject *result = NULL;

    (void)module;
    if (check_rows(rows) < 0)
        return NULL;
    if (PyList_Size(rows) == 0)
        return PyTuple_New(0);
    packer = tfos__py_row_packer_open(0, false);
    if (packer == NULL)
        return NULL;
    taker.arrays = tfos__py_row_arrays_open(PyList_Size(rows), NULL);
    if (taker.arrays != NULL && tfos__py_row_packer_append_all(packer, rows, take_batch, &taker) == 0)
        result = tfos__py_row_arrays_finish(taker.arrays);
    tfos__py_row_arrays_close(taker.arrays);
    tfos__py_row_packer_close(packer);
    return result;
}

PyObject *tfos__py_sample_unpack(PyObject *module, PyObject *batch)
{
    struct taker taker = {0};
    struct tfos__py_capsule capsule;

    (void)module;
    if (tfos__py_capsule_init(&capsule, batch) < 0)
        return NULL;
    taker.rows = PyList_New(0);
    if (taker.rows != NULL && take(&taker, capsule.schema, capsule.array) < 0)
        Py_CLEAR(taker.rows);
    tfos__py_capsule_clear(&capsule);
    return taker.rows;
}

PyObject *tfos__py_sample_unpack_arrays(PyObject *module, PyObject *batch)
{
    struct taker taker = {0};
    struct tfos__py_capsule capsule;
    PyObject *result = NULL;

    (void)module;
    if (tfos__py_capsule_init(&capsule, batch) < 0)
        return NULL;
    taker.arrays = tfos__py_row_arrays_open(capsule.array->length, NULL);
    if (taker.arrays != NULL && take(&taker, capsule.schema, capsule.array) == 0)
        result = tfos__py_row_arrays_finish(taker.arrays);
    tfos__py_row_arrays_close(taker.arrays);
    tfos__py_capsule_clear(&capsule);
    return result;
}
