// SPDX-License-Identifier: Apache-2.0
// The extension module tensorflowonspark._tfos: its functions, constants, exceptions and classes.
#include "classes.h"
#include "error.h"
#include "file_finder.h"
#include "frame_schema.h"
#include "sample.h"
#include "schema_survey.h"

#include <Python.h>
#include <tfos/gpu.h>
#include <tfos/memory.h>
#include <tfos/rendezvous.h>
#include <tfos/version.h>

static PyObject *list_gpus(PyObject *module, PyObject *unused)
{
    struct tfos_gpu *gpus = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    size_t count = 0;

    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_gpu_list(&gpus, &count, &err);
    Py_END_ALLOW_THREADS
    if (status < 0)
        return tfos__raise(status, &err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++)
        if (PyList_Append(list, gpus[i].is_free ? Py_True : Py_False) < 0)
            Py_CLEAR(list);
    tfos_free(gpus);
    return list;
}

static PyMethodDef functions[] = {
    {"status_query", TFOS__KEYWORDS(tfos__rendezvous_query),
     "The status of all clusters of this user on this machine, as JSON."},
    {"find_executor", TFOS__KEYWORDS(tfos__node_find_executor),
     "The pid of the executor that a Spark task belongs to."},
    {"list_gpus", list_gpus, METH_NOARGS,
     "Of each NVIDIA GPU of this machine, whether no process computes on it."},
    {"check_spark_schema", tfos__frame_schema_check, METH_O,
     "Whether rows of this schema, as StructType.json() gives it, can be fed."},
    {"check_result_schema", tfos__frame_schema_check_results, METH_O,
     "Whether results can be made rows of this schema in the JVM."},
    {"find_files", TFOS__KEYWORDS(tfos__find_files), "The files that a name stands for."},
    {"new_file", tfos__new_file, METH_O, "The path of a file that is to be written."},
    {"compression_of_name", tfos__compression_of_name, METH_O,
     "How a file of this name is to be written."},
    {"split_names", tfos__split_names, METH_O, "The names that commas divide."},
    {"split_uri", tfos__split_uri, METH_O, "Scheme and host of a URI, and its path."},
    {"survey_examples", TFOS__KEYWORDS(tfos__survey_examples),
     "What files' records say of their columns, as JSON."},
    {"merge_surveys", tfos__survey_merge, METH_O,
     "The Arrow schema, a capsule, of a list of surveys."},
    {"pack", tfos__sample_pack, METH_O, "The rows, packed into batches and unpacked again."},
    {"pack_columns", tfos__sample_pack_columns, METH_O,
     "The same, packed as the results for a DataFrame."},
    {"pack_arrays", tfos__sample_pack_arrays, METH_O, "The arrays of the rows' batches."},
    {"unpack", tfos__sample_unpack, METH_O, "The rows of an Arrow batch."},
    {"unpack_arrays", tfos__sample_unpack_arrays, METH_O, "The arrays of an Arrow batch."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tensorflowonspark._tfos",
    .m_doc = "Distributed TensorFlow on Apache Spark: the C library.",
    .m_size = -1,
    .m_methods = functions,
};

static int add_constants(PyObject *module)
{
    static const struct {
        const char *name;
        enum tfos_rendezvous_phase value;
    } phases[] = {
        {"RUNNING", TFOS_PHASE_RUNNING},
        {"DRAINED", TFOS_PHASE_DRAINED},
        {"WORKED", TFOS_PHASE_WORKED},
        {"ENDED", TFOS_PHASE_ENDED},
    };

    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        if (PyModule_AddIntConstant(module, phases[i].name, phases[i].value) < 0)
            return -1;
    }
    return PyModule_AddStringConstant(module, "VERSION", TFOS_VERSION);
}

static int add_classes(PyObject *module)
{
    if (tfos__rendezvous_class_add(module) < 0 || tfos__node_class_add(module) < 0 ||
        tfos__writer_class_add(module) < 0 || tfos__results_class_add(module) < 0 ||
        tfos__arrow_batch_class_add(module) < 0 || tfos__trainer_class_add(module) < 0)
        return -1;
    if (tfos__reader_class_add(module) < 0 || tfos__dataset_class_add(module) < 0)
        return -1;
    if (tfos__example_reader_class_add(module) < 0 || tfos__example_writer_class_add(module) < 0)
        return -1;
    return tfos__record_dataset_class_add(module) < 0 ? -1 : tfos__file_writer_class_add(module);
}

PyMODINIT_FUNC PyInit__tfos(void);

PyMODINIT_FUNC PyInit__tfos(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (module == NULL)
        return NULL;
    if (tfos__errors_add(module) < 0 || add_constants(module) < 0 || add_classes(module) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
