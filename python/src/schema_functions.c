// SPDX-License-Identifier: Apache-2.0
// Checks whether rows of a DataFrame's schema can be fed, or made of results; and
// schemas learned from files of records. Files are read some at a time without the GIL, so that
// threads hardly wait for each other; what was learned of them is merged as text.
#include <tfos/example_file.h>
#include <tfos/result_rows.h>
#include <tfos/spark_schema.h>
#include <tfos/unsafe_row.h>

#include "capsule.h"
#include "dataset_options.h"
#include "error.h"
#include "file_object.h"
#include "handle.h"

/// What is to be looked at, and how.
struct task {
    const char **paths;
    int64_t path_count;
    struct tfos_stream *stream; ///< of the only path; NULL: they are opened by their names
    enum tfos_record_type type;
    struct tfos_record_reader_options options;
    uint64_t limit;
};

/// Adds what `other` knows to `*inference`, which it becomes when that is NULL. Takes over `other`.
static enum tfos_status join(struct tfos_schema_inference **inference,
                             struct tfos_schema_inference *other, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    if (!*inference) {
        *inference = other;
        return TFOS_OK;
    }
    status = tfos_schema_inference_merge(*inference, other, err);
    tfos_schema_inference_close(other);
    return status;
}

/// A file has an inference of its own first: none is damaged because another has other features.
static enum tfos_status read_file(const struct task *task, struct tfos_stream *stream,
                                  const char *path, struct tfos_schema_inference **inference,
                                  struct tfos_error *err)
{
    struct tfos_record_reader_options options = task->options;
    struct tfos_schema_inference *own = NULL;
    uint64_t seen = 0;
    enum tfos_status status = tfos_schema_inference_open(task->type, &own, err);

    options.name = path;
    if (status == TFOS_OK)
        status = tfos_schema_inference_read(own, stream, &options, task->limit, &seen, err);
    if (status == TFOS_OK)
        return join(inference, own, err);
    tfos_schema_inference_close(own);
    return status;
}

static enum tfos_status read_files(const struct task *task, char **json, struct tfos_error *err)
{
    struct tfos_schema_inference *inference = NULL;
    enum tfos_status status = TFOS_OK;

    for (int64_t i = 0; i < task->path_count && status == TFOS_OK; i++) {
        struct tfos_stream *own = NULL, *stream = task->stream;
        if (!stream)
            status = tfos_stream_open_reader(task->paths[i], &own, err);
        if (status == TFOS_OK)
            status = read_file(task, own ? own : stream, task->paths[i], &inference, err);
        tfos_stream_close(own);
    }
    if (status == TFOS_OK)
        status = tfos_schema_inference_save(inference, json, err);
    tfos_schema_inference_close(inference);
    return status;
}

/// The inference as text; NULL with an exception.
static PyObject *run_task(struct task *task, PyObject *file)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    PyObject *failure = NULL;
    char *json = NULL;

    if (file != Py_None) {
        task->stream = tfos__py_file_object_open_reader(file, task->paths[0], &failure);
        if (!task->stream)
            return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = read_files(task, &json, &err);
    tfos_stream_close(task->stream);
    Py_END_ALLOW_THREADS
    return status < 0 ? tfos__py_raise_from(status, &err, &failure) : tfos__py_text(json);
}

static PyObject *infer_schema(PyObject *module, PyObject *args, PyObject *kwargs)
{
    int64_t type = 0, compression = 0, mode = 0, limit = 0, max_size = 0;
    struct task task = {0};
    PyObject *kept = NULL, *paths = NULL, *result = NULL, *file = Py_None;
    const struct tfos__py_parameter parameters[] = {
        {"paths", TFOS__ANY, true, 0, 0, &paths},
        {"type", TFOS__INT, false, 0, TFOS_RECORD_BYTES, &type},
        {"compression", TFOS__INT, false, 0, TFOS_COMPRESSION_ZLIB, &compression},
        {"mode", TFOS__INT, false, 0, TFOS_RECORD_SKIP_FILE, &mode},
        {"limit", TFOS__INT, false, 0, INT64_MAX, &limit},
        {"max_record_size", TFOS__INT, false, 0, INT64_MAX, &max_size},
        {"file", TFOS__ANY, false, 0, 0, &file},
        {0},
    };

    (void)module;
    if (tfos__py_parameters_read("infer_schema", parameters, args, kwargs, &kept) < 0)
        return NULL;
    if (!PyList_Check(paths) || PyList_Size(paths) == 0 ||
        (file != Py_None && PyList_Size(paths) > 1)) {
        PyErr_SetString(PyExc_TypeError, "infer_schema(): paths: expected a list of one path at "
                                         "least, and with a file of no more");
    } else if (tfos__py_dataset_texts_read(paths, PyUnicode_EncodeFSDefault, kept, &task.paths,
                                           &task.path_count) == 0) {
        task.type = (enum tfos_record_type)type;
        task.options.compression = (enum tfos_compression)compression;
        task.options.mode = (enum tfos_record_mode)mode;
        task.options.max_record_size = (uint64_t)max_size;
        task.limit = (uint64_t)limit;
        result = run_task(&task, file);
    }
    PyMem_Free(task.paths);
    Py_DECREF(kept);
    return result;
}

/// Adds what `text` knows to `*inference`, which it makes when it is NULL.
static enum tfos_status add_inference(const char *text, struct tfos_schema_inference **inference,
                                      struct tfos_error *err)
{
    struct tfos_schema_inference *other = NULL;
    enum tfos_status status = tfos_schema_inference_load(text, &other, err);

    return status < 0 ? status : join(inference, other, err);
}

static PyObject *give_schema(const struct tfos_schema_inference *inference)
{
    struct ArrowSchema schema;
    struct tfos_error err = {0};
    enum tfos_status status = tfos_schema_inference_schema(inference, &schema, &err);

    return status < 0 ? tfos__py_raise(status, &err) : tfos__py_capsule_wrap_schema(&schema);
}

static PyObject *merge_schema_inferences(PyObject *module, PyObject *inferences)
{
    struct tfos_schema_inference *inference = NULL;
    struct tfos_error err = {0};
    PyObject *result = NULL;

    (void)module;
    if (!PyList_Check(inferences) || PyList_Size(inferences) == 0) {
        PyErr_SetString(PyExc_TypeError,
                        "merge_schema_inferences(): expected a list of one text at least");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(inferences); i++) {
        PyObject *text = PyUnicode_AsUTF8String(PyList_GetItem(inferences, i));
        enum tfos_status status = TFOS_INVALID;
        if (text)
            status = add_inference(PyBytes_AsString(text), &inference, &err);
        if (status < 0)
            tfos_schema_inference_close(inference);
        if (!text)
            return NULL;
        Py_DECREF(text);
        if (status < 0)
            return tfos__py_raise(status, &err);
    }
    result = give_schema(inference);
    tfos_schema_inference_close(inference);
    return result;
}

// ---- DataFrames
//
// A schema is good when what makes rows of it columns, or columns of results its rows, can be
// opened.

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

    if (!bytes)
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

static PyObject *check_spark_schema(PyObject *module, PyObject *json)
{
    (void)module;
    return check(json, check_fed);
}

static PyObject *check_result_schema(PyObject *module, PyObject *json)
{
    (void)module;
    return check(json, check_results);
}

PyMethodDef tfos__py_schema_functions[] = {
    {"check_spark_schema", check_spark_schema, METH_O,
     "Whether rows of this schema, as StructType.json() gives it, can be fed."},
    {"check_result_schema", check_result_schema, METH_O,
     "Whether results can be made rows of this schema in the JVM."},
    {"infer_schema", TFOS__KEYWORDS(infer_schema),
     "What files' records say of their columns, as JSON."},
    {"merge_schema_inferences", merge_schema_inferences, METH_O,
     "The Arrow schema, a capsule, of a list of inferences."},
    {0},
};
