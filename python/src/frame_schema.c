// SPDX-License-Identifier: Apache-2.0
// A schema is good when rows of it can be made columns: a batch for them is opened, and closed.
#include "frame_schema.h"
#include "error.h"

#include <tfos/spark_schema.h>
#include <tfos/unsafe_row.h>

static enum tfos_status check(const char *json, struct tfos_error *err)
{
    struct tfos_row_batch *batch = NULL;
    struct ArrowSchema schema;
    enum tfos_status status = tfos_spark_schema_parse(json, &schema, err);

    if (status != TFOS_OK)
        return status;
    status = tfos_row_batch_open(&schema, &batch, err);
    schema.release(&schema);
    if (status == TFOS_OK)
        tfos_row_batch_close(batch);
    return status;
}

PyObject *tfos__frame_schema_check(PyObject *module, PyObject *json)
{
    PyObject *bytes = PyUnicode_AsUTF8String(json);
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    (void)module;

    if (bytes == NULL)
        return NULL;
    status = check(PyBytes_AsString(bytes), &err);
    Py_DECREF(bytes);
    if (status != TFOS_OK)
        return tfos__raise(status, &err);
    Py_RETURN_NONE;
}
