// SPDX-License-Identifier: Apache-2.0
// Rows through the packer and back. A batch is taken as soon as the feed would take it.
#include "sample.h"
#include "arrays.h"
#include "error.h"
#include "packer.h"
#include "unpacker.h"

/// What a batch goes into: rows, or arrays.
struct taker {
    PyObject *rows;
    struct tfos__arrays *arrays;
    int64_t row_count; ///< taken so far
};

static int take_batch(struct taker *taker, struct tfos__packer *packer)
{
    struct tfos__arrays_source source = {.first_row = taker->row_count};
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    struct tfos__layout layout;
    int result = 0;

    if (tfos__packer_row_count(packer) == 0)
        return 0;
    tfos__packer_show(packer, &schema, &array);
    if (tfos__layout_init(&layout, schema) < 0)
        return -1;
    result = tfos__layout_check(&layout, array);
    if (result == 0 && taker->rows != NULL)
        result = tfos__unpack_rows(&layout, array, 0, array->length, taker->rows);
    else if (result == 0)
        result = tfos__arrays_append(taker->arrays, &layout, array, 0, array->length, &source);
    tfos__layout_clear(&layout);
    taker->row_count += tfos__packer_row_count(packer);
    tfos__packer_clear(packer);
    return result;
}

static int pack_all(struct taker *taker, struct tfos__packer *packer, PyObject *rows)
{
    for (Py_ssize_t i = 0; i < PyList_Size(rows);) {
        enum tfos__pack_result result = tfos__packer_append(packer, PyList_GetItem(rows, i));
        if (result == TFOS__PACK_ERROR)
            return -1;
        i += result == TFOS__PACK_DONE;
        if ((result == TFOS__PACK_REFUSED || tfos__packer_is_full(packer)) &&
            take_batch(taker, packer) < 0)
            return -1;
    }
    return take_batch(taker, packer);
}

static int check_rows(PyObject *rows)
{
    if (PyList_Check(rows))
        return 0;
    PyErr_Format(PyExc_TypeError, "rows: expected a list, not %R", (PyObject *)Py_TYPE(rows));
    return -1;
}

PyObject *tfos__sample_pack(PyObject *module, PyObject *rows)
{
    struct taker taker = {0};
    struct tfos__packer *packer = NULL;

    (void)module;
    if (check_rows(rows) < 0)
        return NULL;
    packer = tfos__packer_open(0);
    if (packer == NULL)
        return NULL;
    taker.rows = PyList_New(0);
    if (taker.rows != NULL && pack_all(&taker, packer, rows) < 0)
        Py_CLEAR(taker.rows);
    tfos__packer_close(packer);
    return taker.rows;
}

PyObject *tfos__sample_pack_arrays(PyObject *module, PyObject *rows)
{
    struct taker taker = {0};
    struct tfos__packer *packer = NULL;
    PyObject *result = NULL;

    (void)module;
    if (check_rows(rows) < 0)
        return NULL;
    if (PyList_Size(rows) == 0)
        return PyTuple_New(0);
    packer = tfos__packer_open(0);
    if (packer == NULL)
        return NULL;
    taker.arrays = tfos__arrays_open(PyList_Size(rows));
    if (taker.arrays != NULL && pack_all(&taker, packer, rows) == 0)
        result = tfos__arrays_finish(taker.arrays);
    tfos__arrays_close(taker.arrays);
    tfos__packer_close(packer);
    return result;
}
