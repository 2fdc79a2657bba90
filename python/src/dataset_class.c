// SPDX-License-Identifier: Apache-2.0
// The class Dataset: tfos_dataset_*, of which Python asks the structure and the number; batches are
// taken by TensorFlow's threads, without Python.
//
// Such a thread may be inside when the Dataset is closed, and holds the library's dataset until it
// is through: its wait is interrupted. So the trainer's feed becomes free when the library
// says that the dataset is gone, and the trainer is not freed before that.
#include <stdio.h>

#include "dataset_options.h"
#include "error.h"
#include "trainer_class.h"

struct dataset {
    struct tfos__py_handle handle;        ///< of a struct tfos_dataset
    struct tfos__py_trainer_queue *queue; ///< with a reference to its trainer; NULL: not opened
};

/// Set while a thread of Python waits for the structure: what its signals and close() end.
static _Thread_local struct tfos__py_watch *watched;

static bool is_interrupted(void *context)
{
    struct tfos__py_trainer_queue *queue = context;

    return atomic_load(&queue->trainer->is_closing) || atomic_load(&queue->is_ending) ||
           (watched && tfos__py_guard_is_interrupted(watched));
}

static enum tfos_status agree(void *context, const char *name, const char *value_json,
                              char **values_json, struct tfos_error *err)
{
    struct tfos__py_trainer_queue *queue = context;
    struct tfos_wait wait = {queue->agree_timeout_ms, is_interrupted, queue};

    return tfos_trainer_agree(queue->agreeing, name, value_json, &wait, values_json, err);
}

static enum tfos_status describe(void *context, int64_t feed, int64_t timeout_ms,
                                 struct ArrowSchema *schema, struct tfos_error *err)
{
    struct tfos__py_trainer_queue *queue = context;

    return tfos_trainer_get_schema(queue->agreeing, queue->name, feed, timeout_ms, schema, err);
}

static bool is_repeat(void *context, int64_t feed)
{
    struct tfos__py_trainer_queue *queue = context;

    return tfos_trainer_is_repeat(queue->agreeing, queue->name, feed);
}

/// The dataset is gone: the feed is free for the next.
static void release(void *context)
{
    struct tfos__py_trainer_queue *queue = context;

    atomic_store(&queue->is_ending, false);
    tfos__py_guard_leave(&queue->feed);
}

static void close_dataset(struct tfos__py_handle *handle, void *object)
{
    struct dataset *self = (struct dataset *)handle;

    if (self->queue && self->queue->dataset == handle)
        self->queue->dataset = NULL;
    if (self->queue)
        atomic_store(&self->queue->is_ending, true);
    Py_BEGIN_ALLOW_THREADS
    tfos_dataset_close(object);
    Py_END_ALLOW_THREADS
}

/// Reserves the queue; an earlier dataset is closed for it. -1 with an exception.
static int take_feed(struct tfos__py_trainer_queue *queue)
{
    if (queue->dataset)
        Py_DECREF(tfos__py_handle_close((PyObject *)queue->dataset, NULL));
    if (atomic_load(&queue->is_ending))
        tfos__py_guard_drain(&queue->feed);
    if (tfos__py_guard_is_used(&queue->feed)) {
        tfos__py_raise_format(
            TFOS_INVALID, "dataset: the feed is being read by a DataFeed, and it belongs to one at "
                          "a time");
        return -1;
    }
    return tfos__py_guard_enter(&queue->feed);
}

/// Opens the library's dataset on the trainer, which the caller has entered.
static int open_dataset(struct dataset *self, struct tfos__py_trainer *trainer,
                        struct tfos__py_dataset_options *options)
{
    struct tfos__py_trainer_queue *queue = tfos__py_trainer_open_queue(trainer, options->queue);
    struct tfos__py_call call;
    struct tfos_dataset *dataset = NULL;
    char name[280];

    if (!queue || take_feed(queue) < 0)
        return -1;
    queue->agreeing = trainer->handle.object;
    queue->agree_timeout_ms = options->agree_timeout_ms;
    snprintf(name, sizeof(name), "%s/%lld", queue->name, (long long)++queue->dataset_count);
    options->library.reader = tfos__py_row_iterator_reader(queue->iterator);
    options->library.agree = agree;
    options->library.describe = describe;
    options->library.is_repeat = is_repeat;
    options->library.is_interrupted = is_interrupted;
    options->library.release = release;
    options->library.context = queue;
    options->library.name = name;
    if (!tfos__py_call_enter_new(&call, (PyObject *)self)) {
        release(queue);
        return -1;
    }
    call.status = tfos_dataset_open(&options->library, &dataset, &call.err);
    if (call.status < 0)
        release(queue);
    if (tfos__py_call_leave_new(&call, dataset) < 0)
        return -1;
    Py_INCREF((PyObject *)trainer);
    self->queue = queue;
    queue->dataset = &self->handle;
    return 0;
}

/// The same with the structure of another dataset, if one is given.
static int open_like(struct dataset *self, struct tfos__py_trainer *trainer,
                     struct tfos__py_dataset_options *options)
{
    struct tfos__py_handle *like = (struct tfos__py_handle *)options->like;
    int result = -1;

    if (options->like == Py_None)
        return open_dataset(self, trainer, options);
    if (!PyObject_TypeCheck(options->like, tfos__py_dataset_class.type)) {
        PyErr_Format(PyExc_TypeError, "Dataset(): like: expected a Dataset or None, not %R",
                     (PyObject *)Py_TYPE(options->like));
        return -1;
    }
    if (tfos__py_handle_enter(like) < 0)
        return -1;
    options->library.like = like->object;
    result = open_dataset(self, trainer, options);
    tfos__py_handle_leave(like);
    return result;
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct dataset *self = (struct dataset *)object;
    struct tfos__py_trainer *trainer = NULL;
    struct tfos__py_dataset_options options;
    int result = -1;

    if (tfos__py_dataset_options_read(&options, args, kwargs) == 0 &&
        tfos__py_handle_check_new(&self->handle) == 0)
        trainer = tfos__py_trainer_of(options.trainer, "Dataset");
    if (trainer && tfos__py_trainer_enter(trainer) == 0) {
        result = open_like(self, trainer, &options);
        tfos__py_handle_leave(&trainer->handle);
    }
    tfos__py_dataset_options_clear(&options);
    return result;
}

static void dealloc(PyObject *object)
{
    struct dataset *self = (struct dataset *)object;

    Py_XDECREF(tfos__py_handle_close(object, NULL));
    if (self->queue)
        Py_DECREF((PyObject *)self->queue->trainer);
    tfos__py_handle_dealloc(object);
}

static PyObject *get_specs(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    const struct tfos_tensor_spec *specs = NULL;
    enum tfos_row_structure structure = TFOS_ROW_TUPLE;
    int64_t timeout_ms = 0, count = 0;
    PyObject *result = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"timeout_ms", TFOS__INT, true, -1, INT64_MAX, &timeout_ms},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, "Dataset.specs", parameters, args, kwargs))
        return NULL;
    watched = &call.watch;
    call.status =
        tfos_dataset_get_specs(call.object, timeout_ms, &specs, &count, &structure, &call.err);
    watched = NULL;
    tfos__py_call_resume(&call);
    if (call.status == TFOS_OK)
        result = tfos__py_dataset_specs_make(specs, count, structure);
    if (call.status == TFOS_OK || call.watch.is_interrupted) {
        tfos__py_call_leave(&call);
        return result;
    }
    return tfos__py_call_end(&call);
}

static PyMethodDef methods[] = {
    {"specs", TFOS__KEYWORDS(get_specs),
     "Waits for the structure of the rows; None: there are none."},
    TFOS__CLOSE_METHODS("Gives the dataset up."),
    {0},
};

static PyGetSetDef properties[] = {
    {"number", tfos__py_dataset_number, NULL, "By which the op TfosNextBatch finds the dataset.",
     NULL},
    {0},
};

struct tfos__py_class tfos__py_dataset_class = {
    .name = "tensorflowonspark._tfos.Dataset",
    .doc = "The rows of a trainer's feed as batches of tensors, one at a time.",
    .size = sizeof(struct dataset),
    .methods = methods,
    .properties = properties,
    .init = init,
    .dealloc = dealloc,
    .label = "dataset",
    .close = close_dataset,
};
