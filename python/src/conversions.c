// SPDX-License-Identifier: Apache-2.0
// Rows to Arrow batches and back, as a feed does it.
#include "arrow/arrow.h"
#include "arrow_batch.h"
#include "capsule.h"
#include "error.h"
#include "handle.h"
#include "parameter.h"
#include "row_arrays.h"
#include "row_packer.h"
#include "row_unpacker.h"

/// Appends a copy of the packer's batch to a list, as an ArrowBatch.
static int copy_batch(void *batches, struct tfos__py_row_packer *packer)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    struct ArrowSchema own_schema;
    struct ArrowArray own_array;
    struct tfos_error err = {0};
    PyObject *batch = NULL;
    int result = -1;

    if (tfos__py_row_packer_show(packer, &schema, &array) < 0)
        return -1;
    const struct tfos__arrow_span all = {0, array->length};
    enum tfos_status status = tfos__arrow_array_extract(schema, array, &all, 1, &own_array, &err);
    if (status == TFOS_OK) {
        status = tfos_arrow_schema_copy(schema, &own_schema, &err);
        if (status < 0)
            tfos__arrow_array_release(&own_array);
    }
    if (status < 0) {
        tfos__py_raise(status, &err);
        return -1;
    }
    batch = tfos__py_arrow_batch_new(&own_schema, &own_array);
    if (batch)
        result = PyList_Append(batches, batch);
    Py_XDECREF(batch);
    return result;
}

static PyObject *pack(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_row_packer *packer = NULL;
    PyObject *rows = NULL, *kept = NULL, *batches = NULL;
    bool wants_columns = false;
    const struct tfos__py_parameter parameters[] = {
        {"rows", TFOS__ANY, true, 0, 0, &rows},
        {"columns", TFOS__BOOL, false, 0, 0, &wants_columns},
        {0},
    };

    (void)module;
    if (tfos__py_parameters_read("pack", parameters, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    if (!PyList_Check(rows))
        return PyErr_Format(PyExc_TypeError, "rows: expected a list, not %R",
                            (PyObject *)Py_TYPE(rows));
    packer = tfos__py_row_packer_open(0, wants_columns);
    batches = packer ? PyList_New(0) : NULL;
    if (batches && tfos__py_row_packer_append_all(packer, rows, copy_batch, batches) < 0)
        Py_CLEAR(batches);
    tfos__py_row_packer_close(packer);
    return batches;
}

static PyObject *unpack(PyObject *module, PyObject *batch)
{
    struct tfos__py_capsule capsule;
    PyObject *rows = NULL;

    (void)module;
    if (tfos__py_capsule_init(&capsule, batch) < 0)
        return NULL;
    rows = tfos__py_unpack_batch(capsule.schema, capsule.array);
    tfos__py_capsule_clear(&capsule);
    return rows;
}

static int append_arrays(struct tfos__py_row_arrays *arrays, const struct tfos__py_capsule *batch,
                         int64_t first_row)
{
    struct tfos__py_row_origin origin = {.first_row = first_row};
    struct tfos__py_row_schema schema;
    int result = 0;

    if (tfos__py_row_schema_init(&schema, batch->schema, batch->array) < 0)
        return -1;
    result =
        tfos__py_row_arrays_append(arrays, &schema, batch->array, 0, batch->array->length, &origin);
    tfos__py_row_schema_clear(&schema);
    return result;
}

/// Asks each of the batches for its capsule, and counts the rows. -1 with an exception.
static int64_t open_batches(PyObject *batches, struct tfos__py_capsule *capsules)
{
    int64_t row_count = 0;

    for (Py_ssize_t i = 0; i < PyList_Size(batches); i++) {
        if (tfos__py_capsule_init(&capsules[i], PyList_GetItem(batches, i)) < 0)
            return -1;
        row_count += capsules[i].array->length;
    }
    return row_count;
}

static PyObject *unpack_list(PyObject *batches)
{
    Py_ssize_t count = PyList_Size(batches);
    struct tfos__py_capsule *capsules = PyMem_Calloc((size_t)count + 1, sizeof(*capsules));
    int64_t limit = capsules ? open_batches(batches, capsules) : -1, first_row = 0;
    struct tfos__py_row_arrays *arrays = limit >= 0 ? tfos__py_row_arrays_open(limit, NULL) : NULL;
    PyObject *result = NULL;
    bool is_done = arrays != NULL;

    if (!capsules)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; is_done && i < count; i++) {
        is_done = append_arrays(arrays, &capsules[i], first_row) == 0;
        first_row += capsules[i].array->length;
    }
    if (is_done)
        result = count > 0 ? tfos__py_row_arrays_finish(arrays) : PyTuple_New(0);
    tfos__py_row_arrays_close(arrays);
    for (Py_ssize_t i = 0; i < count; i++)
        tfos__py_capsule_clear(&capsules[i]);
    PyMem_Free(capsules);
    return result;
}

static PyObject *unpack_arrays(PyObject *module, PyObject *batches)
{
    PyObject *list = NULL, *result = NULL;

    (void)module;
    if (PyList_Check(batches))
        return unpack_list(batches);
    list = Py_BuildValue("[O]", batches);
    if (list)
        result = unpack_list(list);
    Py_XDECREF(list);
    return result;
}

PyMethodDef tfos__py_conversion_functions[] = {
    {"pack", TFOS__KEYWORDS(pack), "The rows of a list as Arrow batches."},
    {"unpack", unpack, METH_O, "The rows of an Arrow batch."},
    {"unpack_arrays", unpack_arrays, METH_O, "The arrays of an Arrow batch, or of a list of them."},
    {0},
};
