// SPDX-License-Identifier: Apache-2.0
// The class RecordDataset: a dataset of files, of which Python asks the structure, the number and
// the counts; passes over it are begun and read by TensorFlow's threads, without Python.
#include <tfos/record_dataset.h>

#include "dataset_options.h"
#include "error.h"
#include "handle.h"
#include "trainer_class.h"

static void close_dataset(struct tfos__py_handle *handle, void *object)
{
    (void)handle;
    Py_BEGIN_ALLOW_THREADS
    tfos_dataset_close(object);
    Py_END_ALLOW_THREADS
}

/// For an open that has failed, after which the library does not call it.
static void release_member(const struct tfos_record_dataset_options *options)
{
    if (options->rows.release)
        options->rows.release(options->rows.context);
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

    if (status < 0)
        release_member(options);
    if (status == TFOS_OK)
        status = tfos_dataset_get_specs(first, -1, &specs, &count, &structure, err);
    if (status == TFOS_OK)
        status = tfos_record_dataset_repeat(first, &pass, out, err);
    tfos_dataset_close(first);
    return status;
}

/// -1 with an exception.
static int open_dataset(PyObject *self, const struct tfos_record_dataset_options *options)
{
    struct tfos__py_call call;
    struct tfos_dataset *dataset = NULL;

    if (!tfos__py_call_enter_new(&call, self)) {
        release_member(options);
        return -1;
    }
    call.status = find_structure(options, &dataset, &call.err);
    return tfos__py_call_leave_new(&call, dataset);
}

/// Lets the dataset's passes agree through the trainer. -1 with an exception.
static int join(struct tfos__py_dataset_options *rows)
{
    struct tfos__py_trainer *trainer = NULL;
    struct tfos_trainer_member *member = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    if (rows->library.uneven == TFOS_UNEVEN_IGNORE)
        return 0;
    trainer = tfos__py_trainer_of(rows->trainer, "RecordDataset");
    if (!trainer || tfos__py_trainer_enter(trainer) < 0)
        return -1;
    status =
        tfos_trainer_member_open(trainer->handle.object, rows->agree_timeout_ms, &member, &err);
    tfos__py_handle_leave(&trainer->handle);
    if (status < 0) {
        tfos__py_raise(status, &err);
        return -1;
    }
    rows->library.agree = tfos_trainer_member_agree;
    rows->library.is_interrupted = tfos_trainer_member_is_interrupted;
    rows->library.release = tfos_trainer_member_close;
    rows->library.context = member;
    rows->library.name = tfos_trainer_member_name(member);
    return 0;
}

static int init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_dataset_options rows = {.trainer = Py_None};
    struct tfos_record_dataset_options options = {0};
    struct tfos_record_reader_options *record = &options.reading.record;
    PyObject *paths = NULL, *columns = NULL;
    int64_t type = 0, compression = 0, mode = 0, max_size = 0;
    const char **names = NULL, *uneven = "ignore";
    int result = -1;
    const struct tfos__py_parameter parameters[] = {
        {"paths", TFOS__ANY, true, 0, 0, &paths},
        {"schema", TFOS__SCHEMA, true, 0, 0, &options.schema},
        {"batch_size", TFOS__INT, true, 1, INT32_MAX, &rows.library.batch_size},
        {"drop_remainder", TFOS__BOOL, false, 0, 0, &rows.library.drop_remainder},
        {"columns", TFOS__ANY, false, 0, 0, &columns},
        {"null_value", TFOS__OPTIONAL_TEXT, false, 0, 0, &rows.library.null_value},
        {"shuffle_rows", TFOS__INT, false, 0, INT64_MAX, &rows.library.shuffle_rows},
        {"type", TFOS__INT, false, 0, TFOS_RECORD_BYTES, &type},
        {"compression", TFOS__INT, false, 0, TFOS_COMPRESSION_ZLIB, &compression},
        {"mode", TFOS__INT, false, 0, TFOS_RECORD_SKIP_FILE, &mode},
        {"max_record_size", TFOS__INT, false, 0, INT64_MAX, &max_size},
        {"trainer", TFOS__ANY, false, 0, 0, &rows.trainer},
        {"uneven", TFOS__TEXT, false, 0, 0, &uneven},
        {"agree_timeout_ms", TFOS__INT, false, 0, INT64_MAX, &rows.agree_timeout_ms},
        {0},
    };

    if (tfos__py_handle_check_new((struct tfos__py_handle *)self) == 0 &&
        tfos__py_parameters_read("RecordDataset", parameters, args, kwargs, &rows.kept) == 0 &&
        tfos__py_dataset_columns_read(&rows, columns) == 0 &&
        tfos__py_dataset_uneven_read(&rows, uneven) == 0 &&
        tfos__py_dataset_texts_read(paths, PyUnicode_EncodeFSDefault, rows.kept, &names,
                                    &options.path_count) == 0 &&
        join(&rows) == 0) {
        record->compression = (enum tfos_compression)compression;
        record->mode = (enum tfos_record_mode)mode;
        record->max_record_size = (uint64_t)max_size;
        options.reading.type = (enum tfos_record_type)type;
        options.rows = rows.library;
        options.paths = names;
        result = open_dataset(self, &options);
    }
    PyMem_Free(names);
    tfos__py_dataset_options_clear(&rows);
    return result;
}

static PyObject *get_specs(PyObject *self, PyObject *unused)
{
    struct tfos__py_call call;
    const struct tfos_tensor_spec *specs = NULL;
    enum tfos_row_structure structure = TFOS_ROW_TUPLE;
    int64_t count = 0;
    PyObject *result = NULL;

    (void)unused;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    call.status = tfos_dataset_get_specs(call.object, 0, &specs, &count, &structure, &call.err);
    tfos__py_call_resume(&call);
    if (call.status == TFOS_OK)
        result = tfos__py_dataset_specs_make(specs, count, structure);
    return tfos__py_call_leave(&call) < 0 ? NULL : result;
}

static PyObject *get_counts(PyObject *self, void *closure)
{
    struct tfos__py_call call;
    struct tfos_record_counts counts = {0};

    (void)closure;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    call.status = tfos_record_dataset_get_counts(call.object, &counts, &call.err);
    return tfos__py_call_leave(&call) < 0 ? NULL : tfos__py_record_counts_tuple(&counts);
}

static PyMethodDef methods[] = {
    {"specs", get_specs, METH_NOARGS, "The structure, which is known."},
    TFOS__CLOSE_METHODS("Begins no more passes."),
    {0},
};

static PyGetSetDef properties[] = {
    {"number", tfos__py_dataset_number, NULL, "By which the op TfosBeginPass finds the dataset.",
     NULL},
    {"counts", get_counts, NULL, "(records, bytes, damages, skipped bytes) of all passes.", NULL},
    {0},
};

struct tfos__py_class tfos__py_record_dataset_class = {
    .name = "tensorflowonspark._tfos.RecordDataset",
    .doc = "TFRecord files as batches of tensors.",
    .size = sizeof(struct tfos__py_handle),
    .methods = methods,
    .properties = properties,
    .init = init,
    .label = "record dataset",
    .close = close_dataset,
};
