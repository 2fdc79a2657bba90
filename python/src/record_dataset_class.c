// SPDX-License-Identifier: Apache-2.0
// The class RecordDataset: a dataset of files, of which Python asks the structure, the number and
// the counts; passes over it are begun and read by TensorFlow's threads, without Python.
#include "capsule.h"
#include "classes.h"
#include "damage_list.h"
#include "dataset_options.h"
#include "dataset_specs.h"
#include "error.h"
#include "handle.h"
#include "parameter.h"

#include <tfos/record_dataset.h>

static PyTypeObject *class; // set when the module is made, kept until the process ends

static void close_dataset(struct tfos__handle *handle, void *object)
{
    (void)handle;
    Py_BEGIN_ALLOW_THREADS
    tfos_dataset_close(object);
    Py_END_ALLOW_THREADS
}

static const struct tfos__handle_kind kind = {
    .name = "record dataset", .state = "opened", .close = close_dataset};

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    return tfos__handle_new(type, &kind);
}

/// Opens the dataset and finds its structure. What is kept is a pass that has read nothing, and
/// others are made like it.
static enum tfos_status find_structure(const struct tfos_record_dataset_options *options,
                                       struct tfos_dataset **out, struct tfos_error *err)
{
    const struct tfos_tensor_spec *specs = NULL;
    const struct tfos_record_pass pass = {0};
    enum tfos_row_structure structure = TFOS_ROW_TUPLE;
    struct tfos_dataset *first = NULL;
    int64_t count = 0;
    enum tfos_status status = tfos_record_dataset_open(options, &first, err);

    if (status == TFOS_OK)
        status = tfos_dataset_get_specs(first, -1, &specs, &count, &structure, err);
    if (status == TFOS_OK)
        status = tfos_record_dataset_repeat(first, &pass, out, err);
    tfos_dataset_close(first);
    return status;
}

/// -1 with an exception.
static int open_dataset(struct tfos__handle *self, PyObject *schema,
                        struct tfos_record_dataset_options *options)
{
    PyObject *capsule = tfos__capsule_schema(schema);
    struct tfos_dataset *object = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    if (capsule == NULL)
        return -1;
    options->schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    Py_BEGIN_ALLOW_THREADS
    status = find_structure(options, &object, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(capsule);
    return tfos__handle_adopt(self, object, status, &err);
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__handle *self = (struct tfos__handle *)object;
    struct tfos__dataset_options rows = {0};
    struct tfos_record_dataset_options options = {0};
    struct tfos_record_reader_options *record = &options.reading.record;
    PyObject *paths = NULL, *schema = NULL, *columns = NULL;
    int64_t type = 0, compression = 0, mode = 0, max_size = 0;
    const char **names = NULL;
    int result = -1;
    const struct tfos__parameter parameters[] = {
        {"paths", TFOS__ANY, true, 0, 0, &paths},
        {"schema", TFOS__ANY, true, 0, 0, &schema},
        {"batch_size", TFOS__INT, true, 1, INT32_MAX, &rows.library.batch_size},
        {"drop_remainder", TFOS__BOOL, false, 0, 0, &rows.library.drop_remainder},
        {"columns", TFOS__ANY, false, 0, 0, &columns},
        {"null_value", TFOS__OPTIONAL_TEXT, false, 0, 0, &rows.library.null_value},
        {"shuffle_rows", TFOS__INT, false, 0, INT64_MAX, &rows.library.shuffle_rows},
        {"type", TFOS__INT, false, 0, TFOS_RECORD_BYTES, &type},
        {"compression", TFOS__INT, false, 0, TFOS_COMPRESSION_ZLIB, &compression},
        {"mode", TFOS__INT, false, 0, TFOS_RECORD_SKIP_FILE, &mode},
        {"max_record_size", TFOS__INT, false, 0, INT64_MAX, &max_size},
    };

    if (tfos__handle_check_new(self) == 0 &&
        tfos__parameters_read("RecordDataset", parameters, TFOS__PARAMETER_COUNT(parameters), args,
                              kwargs, &rows.kept) == 0 &&
        tfos__dataset_columns_read(&rows, columns) == 0 &&
        tfos__dataset_texts_read(paths, PyUnicode_EncodeFSDefault, rows.kept, &names,
                                 &options.path_count) == 0) {
        record->compression = (enum tfos_compression)compression;
        record->mode = (enum tfos_record_mode)mode;
        record->max_record_size = (uint64_t)max_size;
        options.reading.type = (enum tfos_record_type)type;
        options.rows = rows.library;
        options.paths = names;
        result = open_dataset(self, schema, &options);
    }
    PyMem_Free(names);
    tfos__dataset_options_clear(&rows);
    return result;
}

static PyObject *get_specs(PyObject *object, PyObject *unused)
{
    struct tfos__handle *self = (struct tfos__handle *)object;
    const struct tfos_tensor_spec *specs = NULL;
    enum tfos_row_structure structure = TFOS_ROW_TUPLE;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    int64_t count = 0;
    PyObject *result = NULL;

    (void)unused;
    if (tfos__handle_enter(self) < 0)
        return NULL;
    status = tfos_dataset_get_specs(self->object, 0, &specs, &count, &structure, &err);
    if (status == TFOS_OK)
        result = tfos__dataset_specs_make(specs, count, structure);
    tfos__handle_leave(self);
    return status < 0 ? tfos__raise(status, &err) : result;
}

static PyObject *get_number(PyObject *object, void *closure)
{
    struct tfos__handle *self = (struct tfos__handle *)object;
    int64_t number = 0;

    (void)closure;
    if (tfos__handle_enter(self) < 0)
        return NULL;
    number = tfos_dataset_number(self->object);
    tfos__handle_leave(self);
    return PyLong_FromLongLong(number);
}

static PyObject *get_counts(PyObject *object, void *closure)
{
    struct tfos__handle *self = (struct tfos__handle *)object;
    struct tfos_record_counts counts = {0};
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    (void)closure;
    if (tfos__handle_enter(self) < 0)
        return NULL;
    status = tfos_record_dataset_get_counts(self->object, &counts, &err);
    tfos__handle_leave(self);
    if (status < 0)
        return tfos__raise(status, &err);
    return tfos__record_counts_tuple(&counts);
}

static PyMethodDef methods[] = {
    {"specs", get_specs, METH_NOARGS, "The structure, which is known."},
    {"close", tfos__handle_close, METH_NOARGS, "Begins no more passes."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"number", get_number, NULL, "By which the op TfosBeginPass finds the dataset.", NULL},
    {"counts", get_counts, NULL, "(records, bytes, damages, skipped bytes) of all passes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "TFRecord files as batches of tensors."},
    {Py_tp_new, make},
    {Py_tp_init, init},
    {Py_tp_dealloc, tfos__handle_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.RecordDataset",
    .basicsize = sizeof(struct tfos__handle),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__record_dataset_class_add(PyObject *module)
{
    class = tfos__class_add(module, &spec);
    return class != NULL ? 0 : -1;
}
