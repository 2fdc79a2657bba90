// SPDX-License-Identifier: Apache-2.0
// A file is surveyed without the GIL, so that several go side by side; their surveys meet as text.
#include "schema_survey.h"
#include "arrow_batch.h"
#include "classes.h"
#include "error.h"
#include "file_object.h"
#include "parameter.h"

#include <tfos/example_file.h>
#include <tfos/memory.h>

static enum tfos_status survey_file(struct tfos_stream *stream, enum tfos_record_type type,
                                    const struct tfos_record_reader_options *options,
                                    uint64_t limit, char **json, uint64_t *seen,
                                    struct tfos_error *err)
{
    struct tfos_example_survey *survey = NULL;
    enum tfos_status status = tfos_example_survey_open(type, &survey, err);

    if (status == TFOS_OK)
        status = tfos_example_survey_read(survey, stream, options, limit, seen, err);
    if (status == TFOS_OK)
        status = tfos_example_survey_save(survey, json, err);
    tfos_example_survey_close(survey);
    return status;
}

PyObject *tfos__survey_examples(PyObject *module, PyObject *args, PyObject *kwargs)
{
    const char *path = NULL;
    int64_t type = 0, compression = 0, mode = 0, limit = 0, max_size = 0;
    struct tfos_record_reader_options options = {0};
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    PyObject *kept = NULL, *text = NULL, *result = NULL, *file = Py_None, *failure = NULL;
    struct tfos_stream *stream = NULL;
    char *json = NULL;
    uint64_t seen = 0;
    const struct tfos__parameter parameters[] = {
        {"path", TFOS__TEXT, true, 0, 0, &path},
        {"type", TFOS__INT, false, 0, TFOS_RECORD_BYTES, &type},
        {"compression", TFOS__INT, false, 0, TFOS_COMPRESSION_ZLIB, &compression},
        {"mode", TFOS__INT, false, 0, TFOS_RECORD_SKIP_FILE, &mode},
        {"limit", TFOS__INT, false, 0, INT64_MAX, &limit},
        {"max_record_size", TFOS__INT, false, 0, INT64_MAX, &max_size},
        {"file", TFOS__ANY, false, 0, 0, &file},
    };

    (void)module;
    if (tfos__parameters_read("survey_examples", parameters, TFOS__PARAMETER_COUNT(parameters),
                              args, kwargs, &kept) < 0)
        return NULL;
    options.compression = (enum tfos_compression)compression;
    options.mode = (enum tfos_record_mode)mode;
    options.max_record_size = (uint64_t)max_size;
    options.name = path;
    stream = tfos__file_object_open_reader(file, path, &failure);
    if (stream == NULL) {
        Py_DECREF(kept);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = survey_file(stream, (enum tfos_record_type)type, &options, (uint64_t)limit, &json,
                         &seen, &err);
    tfos_stream_close(stream);
    Py_END_ALLOW_THREADS
    Py_DECREF(kept);
    if (status < 0)
        return tfos__file_object_raise(status, &err, &failure);
    text = tfos__class_text(json);
    if (text == NULL)
        return NULL;
    result = Py_BuildValue("(OK)", text, (unsigned long long)seen);
    Py_DECREF(text);
    return result;
}

/// Adds what `text` knows to `*survey`, which it makes when it is NULL.
static enum tfos_status add_survey(const char *text, struct tfos_example_survey **survey,
                                   struct tfos_error *err)
{
    struct tfos_example_survey *other = NULL;
    enum tfos_status status = tfos_example_survey_load(text, &other, err);

    if (status < 0)
        return status;
    if (*survey == NULL) {
        *survey = other;
        return TFOS_OK;
    }
    status = tfos_example_survey_merge(*survey, other, err);
    tfos_example_survey_close(other);
    return status;
}

static PyObject *give_schema(const struct tfos_example_survey *survey)
{
    struct ArrowSchema schema;
    struct tfos_error err = {0};
    enum tfos_status status = tfos_example_survey_schema(survey, &schema, &err);

    return status < 0 ? tfos__raise(status, &err) : tfos__arrow_schema_wrap(&schema);
}

PyObject *tfos__survey_merge(PyObject *module, PyObject *surveys)
{
    struct tfos_example_survey *survey = NULL;
    struct tfos_error err = {0};
    PyObject *result = NULL;

    (void)module;
    if (!PyList_Check(surveys) || PyList_Size(surveys) == 0) {
        PyErr_SetString(PyExc_TypeError, "merge_surveys(): expected a list of one text at least");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(surveys); i++) {
        PyObject *text = PyUnicode_AsUTF8String(PyList_GetItem(surveys, i));
        enum tfos_status status = TFOS_INVALID;
        if (text != NULL)
            status = add_survey(PyBytes_AsString(text), &survey, &err);
        if (status < 0)
            tfos_example_survey_close(survey);
        if (text == NULL)
            return NULL;
        Py_DECREF(text);
        if (status < 0)
            return tfos__raise(status, &err);
    }
    result = give_schema(survey);
    tfos_example_survey_close(survey);
    return result;
}
