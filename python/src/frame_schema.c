// SPDX-License-Identifier: Apache-2.0
// A schema is good when rows of it can be made columns, or columns of results rows of it: what does
// that is opened, and closed.
#include "frame_schema.h"
#include "error.h"

#include <tfos/result_rows.h>
#include <tfos/spark_schema.h>
#include <tfos/unsafe_row.h>

static enum tfos_status check_fed(const struct ArrowSchema *schema, struct tfos_error *err)
{
    struct tfos_row_batch *batch = NULL;
    enum tfos_status status = tfos_row_batch_open(schema, &batch, err);

    if (status == TFOS_OK)
        tfos_row_batch_close(batch);
    return status;
}

static enum tfos_status check_results(const struct ArrowSchema *schema, struct tfos_error *err)
{
    struct tfos_result_rows *rows = NULL;
    enum tfos_status status = tfos_result_rows_open(schema, &rows, err);

    if (status == TFOS_OK)
        tfos_result_rows_close(rows);
    return status;
}

static PyObject *check(PyObject *json,
                       enum tfos_status (*is_good)(const struct ArrowSchema *, struct tfos_error *))
{
    PyObject *bytes = PyUnicode_AsUTF8String(json);
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    struct ArrowSchema schema;

    if (bytes == NULL)
        return NULL;
    status = tfos_spark_schema_parse(PyBytes_AsString(bytes), &schema, &err);
    Py_DECREF(bytes);
    if (status == TFOS_OK) {
        status = is_good(&schema, &err);
        schema.release(&schema);
    }
    if (status != TFOS_OK)
        return tfos__py_raise(status, &err);
    Py_RETURN_NONE;
}

PyObject *tfos__py_frame_schema_check(PyObject *module, PyObject *json)
{
    (void)module;
    return check(json, check_fed);
}

PyObject *tfos__py_frame_schema_check_results(PyObject *module, PyObject *json)
{
    (void)module;
    return check(json, check_results);
}
