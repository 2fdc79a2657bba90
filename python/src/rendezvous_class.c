// SPDX-License-Identifier: Apache-2.0
// The class Rendezvous: tfos_rendezvous_*, thread-safe. The handle is closed once no call is inside
// it.
#include "classes.h"
#include "error.h"
#include "handle.h"
#include "parameter.h"
#include "slice.h"

#include <string.h>
#include <tfos/rendezvous.h>

#define DRAINED_SLICE_MS                                                                           \
    20 ///< each of these waits goes on as long as rows are taken, so it is short
#define GRACE_LIMIT_MS 3600000

static void close_rendezvous(struct tfos__py_handle *handle, void *rendezvous)
{
    (void)handle;
    Py_BEGIN_ALLOW_THREADS
    tfos_rendezvous_close(rendezvous);
    Py_END_ALLOW_THREADS
}

static const struct tfos__py_handle_kind kind = {
    .name = "rendezvous", .state = "opened", .close = close_rendezvous};

static PyObject *make(PyTypeObject *class, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    return tfos__py_handle_new(class, &kind);
}

static int open_handle(struct tfos__py_handle *self, const struct tfos_rendezvous_options *options)
{
    struct tfos_error err = {0};
    struct tfos_rendezvous *handle = NULL;
    enum tfos_status status = TFOS_OK;

    if (tfos__py_handle_check_new(self) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_rendezvous_open(options, &handle, &err);
    Py_END_ALLOW_THREADS
    return tfos__py_handle_adopt(self, handle, status, &err);
}

static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos_rendezvous_options options = {0};
    int64_t node_count = 0, ps_count = 0;
    PyObject *kept = NULL;
    int result = 0;
    const struct tfos__py_parameter parameters[] = {
        {"cluster_id", TFOS__TEXT, true, 0, 0, &options.cluster_id},
        {"key", TFOS__TEXT, true, 0, 0, &options.key},
        {"node_count", TFOS__INT, true, 1, INT32_MAX, &node_count},
        {"ps_count", TFOS__INT, false, 0, INT32_MAX, &ps_count},
        {"master_name", TFOS__OPTIONAL_TEXT, false, 0, 0, &options.master_name},
        {"has_evaluator", TFOS__BOOL, false, 0, 0, &options.has_evaluator},
        {"is_feeding", TFOS__BOOL, false, 0, 0, &options.is_feeding},
        {"host", TFOS__OPTIONAL_TEXT, false, 0, 0, &options.host},
        {"listen_host", TFOS__OPTIONAL_TEXT, false, 0, 0, &options.listen_host},
        {"ports", TFOS__OPTIONAL_TEXT, false, 0, 0, &options.ports},
        {"heartbeat_timeout_ms", TFOS__INT, false, 0, INT64_MAX, &options.heartbeat_timeout_ms},
        {"queues", TFOS__OPTIONAL_TEXT, false, 0, 0, &options.queues},
    };

    if (tfos__py_parameters_read("Rendezvous", parameters, TFOS__PARAMETER_COUNT(parameters), args,
                              kwargs, &kept) < 0)
        return -1;
    options.node_count = (int)node_count;
    options.ps_count = (int)ps_count;
    result = open_handle((struct tfos__py_handle *)object, &options);
    Py_DECREF(kept);
    return result;
}

static PyObject *get_address(PyObject *object, void *closure)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    PyObject *address = NULL;

    (void)closure;
    if (tfos__py_handle_enter(self) < 0)
        return NULL;
    address = PyUnicode_FromString(tfos_rendezvous_address(self->object));
    tfos__py_handle_leave(self);
    return address;
}

typedef enum tfos_status get_document(struct tfos_rendezvous *handle, char **json,
                                      struct tfos_error *err);

static PyObject *give_document(struct tfos__py_handle *self, get_document *get)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    char *json = NULL;

    if (tfos__py_handle_enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = get(self->object, &json, &err);
    Py_END_ALLOW_THREADS
    return tfos__py_handle_conclude_text(self, json, status, &err);
}

static PyObject *get_roles(PyObject *self, PyObject *unused)
{
    (void)unused;
    return give_document((struct tfos__py_handle *)self, tfos_rendezvous_get_roles);
}

static PyObject *get_status(PyObject *self, PyObject *unused)
{
    (void)unused;
    return give_document((struct tfos__py_handle *)self, tfos_rendezvous_get_status);
}

/// How long the wait has lasted as its timeout counts: for DRAINED since the last progress.
static int64_t waited_ms(struct tfos__py_handle *self, enum tfos_rendezvous_phase phase, int64_t begin)
{
    int64_t waited = tfos__py_slice_now() - begin;
    int64_t idle = phase == TFOS_PHASE_DRAINED ? tfos_rendezvous_idle_ms(self->object) : waited;

    return idle < waited ? idle : waited;
}

static PyObject *wait_in_slices(struct tfos__py_handle *self, enum tfos_rendezvous_phase phase,
                                int64_t timeout_ms)
{
    int64_t begin = tfos__py_slice_now(), waited = 0;
    int64_t longest = phase == TFOS_PHASE_DRAINED ? DRAINED_SLICE_MS : TFOS__SLICE_MS;
    struct tfos_error err = {0};

    for (;;) {
        int64_t slice =
            timeout_ms < 0 || timeout_ms - waited > longest ? longest : timeout_ms - waited;
        enum tfos_status status = TFOS_OK;
        Py_BEGIN_ALLOW_THREADS
        status = tfos_rendezvous_wait(self->object, phase, slice, &err);
        waited = waited_ms(self, phase, begin);
        // A cluster that has failed with TIMEOUT is no slice that has ended.
        enum tfos_status failure =
            phase == TFOS_PHASE_ENDED ? TFOS_OK : tfos_rendezvous_check(self->object, &err);
        if (failure < 0)
            status = failure;
        else if (status == TFOS_TIMEOUT && timeout_ms >= 0 && waited >= timeout_ms)
            status = tfos_rendezvous_time_out(self->object, phase, waited, &err);
        else if (status == TFOS_TIMEOUT)
            status = TFOS_AGAIN;
        Py_END_ALLOW_THREADS
        if (status < 0)
            return tfos__py_raise(status, &err);
        if (status == TFOS_OK)
            Py_RETURN_NONE;
        if (tfos__py_guard_check(&self->gate) < 0)
            return NULL;
    }
}

static PyObject *wait_for_phase(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    int64_t phase = 0, timeout_ms = 0;
    PyObject *kept = NULL, *result = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"phase", TFOS__INT, true, TFOS_PHASE_RUNNING, TFOS_PHASE_ENDED, &phase},
        {"timeout_ms", TFOS__INT, true, INT64_MIN, INT64_MAX, &timeout_ms},
    };

    if (tfos__py_parameters_read("Rendezvous.wait", parameters, 2, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    if (tfos__py_handle_enter(self) < 0)
        return NULL;
    result = wait_in_slices(self, (enum tfos_rendezvous_phase)phase, timeout_ms);
    tfos__py_handle_leave(self);
    return result;
}

static PyObject *check(PyObject *object, PyObject *unused)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    (void)unused;
    if (tfos__py_handle_enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_rendezvous_check(self->object, &err);
    Py_END_ALLOW_THREADS
    return tfos__py_handle_conclude(self, status, &err);
}

/// A failure's status by its name ("TIMEOUT"); OK with an exception.
static enum tfos_status find_status(const char *name)
{
#define X(label, value, text)                                                                      \
    if (value < 0 && strcmp(name, #label) == 0)                                                    \
        return TFOS_##label;
    TFOS_STATUS_MAP(X)
#undef X
    PyErr_Format(
        PyExc_ValueError,
        "Rendezvous.fail(): status: expected the name of a failure, such as \"CLOSED\", not "
        "\"%s\"",
        name);
    return TFOS_OK;
}

static PyObject *fail(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    const char *name = NULL, *message = NULL;
    enum tfos_status status = TFOS_OK;
    PyObject *kept = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"status", TFOS__TEXT, true, 0, 0, &name},
        {"message", TFOS__TEXT, true, 0, 0, &message},
    };

    if (tfos__py_parameters_read("Rendezvous.fail", parameters, 2, args, kwargs, &kept) < 0)
        return NULL;
    status = find_status(name);
    if (status == TFOS_OK || tfos__py_handle_enter(self) < 0) {
        Py_DECREF(kept);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    tfos_rendezvous_fail(self->object, status, message);
    Py_END_ALLOW_THREADS
    tfos__py_handle_leave(self);
    Py_DECREF(kept);
    Py_RETURN_NONE;
}

typedef enum tfos_status end_feed_number(struct tfos_rendezvous *handle, const char *queue,
                                         int64_t feed, struct tfos_error *err);

/// Calls `end` with a queue and the number of a feed.
static PyObject *end_numbered(struct tfos__py_handle *self, const char *name, end_feed_number *end,
                              PyObject *args, PyObject *kwargs)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    const char *queue = "input";
    int64_t feed = 0;
    PyObject *kept = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"feed", TFOS__INT, true, 1, INT64_MAX, &feed},
        {"queue", TFOS__TEXT, false, 0, 0, &queue},
    };

    if (tfos__py_parameters_read(name, parameters, 2, args, kwargs, &kept) < 0)
        return NULL;
    if (tfos__py_handle_enter(self) < 0) {
        Py_DECREF(kept);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = end(self->object, queue, feed, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(kept);
    return tfos__py_handle_conclude(self, status, &err);
}

static PyObject *describe_feed(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    const char *queue = NULL, *schema = NULL;
    int64_t first_feed = 1, last_feed = 0;
    PyObject *kept = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"queue", TFOS__TEXT, true, 0, 0, &queue},
        {"schema_json", TFOS__TEXT, true, 0, 0, &schema},
        {"first_feed", TFOS__INT, false, 1, INT64_MAX, &first_feed},
        {"last_feed", TFOS__INT, false, 0, INT64_MAX, &last_feed},
    };

    if (tfos__py_parameters_read("Rendezvous.describe_feed", parameters, 4, args, kwargs, &kept) < 0)
        return NULL;
    if (tfos__py_handle_enter(self) < 0) {
        Py_DECREF(kept);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status =
        tfos_rendezvous_describe_feed(self->object, queue, first_feed, last_feed, schema, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(kept);
    return tfos__py_handle_conclude(self, status, &err);
}

static PyObject *end_epoch(PyObject *object, PyObject *args, PyObject *kwargs)
{
    return end_numbered((struct tfos__py_handle *)object, "Rendezvous.end_epoch",
                        tfos_rendezvous_end_epoch, args, kwargs);
}

static PyObject *end_batch(PyObject *object, PyObject *args, PyObject *kwargs)
{
    return end_numbered((struct tfos__py_handle *)object, "Rendezvous.end_batch",
                        tfos_rendezvous_end_batch, args, kwargs);
}

static PyObject *plan_feed(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    struct tfos_feed_plan plan = {0};
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    int64_t feed = 0;
    PyObject *kept = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"feed", TFOS__INT, true, 1, INT64_MAX, &feed},
        {"epoch", TFOS__INT, true, 1, INT64_MAX, &plan.epoch},
        {"epoch_count", TFOS__INT, true, 1, INT64_MAX, &plan.epoch_count},
        {"partition_count", TFOS__INT, false, 0, INT64_MAX, &plan.partition_count},
        {"queue", TFOS__TEXT, false, 0, 0, &plan.queue},
    };

    if (tfos__py_parameters_read("Rendezvous.plan_feed", parameters, 5, args, kwargs, &kept) < 0)
        return NULL;
    if (tfos__py_handle_enter(self) < 0) {
        Py_DECREF(kept);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tfos_rendezvous_plan_feed(self->object, feed, &plan, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(kept);
    return tfos__py_handle_conclude(self, status, &err);
}

static PyObject *end_feed(PyObject *object, PyObject *unused)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;

    (void)unused;
    if (tfos__py_handle_enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    tfos_rendezvous_end_feed(self->object);
    Py_END_ALLOW_THREADS
    tfos__py_handle_leave(self);
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_handle *self = (struct tfos__py_handle *)object;
    int64_t grace_ms = 0;
    PyObject *kept = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"grace_ms", TFOS__INT, true, 0, GRACE_LIMIT_MS, &grace_ms},
    };

    if (tfos__py_parameters_read("Rendezvous.stop", parameters, 1, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    if (tfos__py_handle_enter(self) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    tfos_rendezvous_stop(self->object, grace_ms);
    Py_END_ALLOW_THREADS
    tfos__py_handle_leave(self);
    Py_RETURN_NONE;
}

static enum tfos_status wait_event(void *rendezvous, int64_t timeout_ms, char **json,
                                   struct tfos_error *err)
{
    return tfos_rendezvous_next_event(rendezvous, timeout_ms, json, err);
}

static PyObject *next_event(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return tfos__py_handle_wait_text(self, "Rendezvous.next_event", args, kwargs, wait_event);
}

static PyMethodDef methods[] = {
    {"roles", get_roles, METH_NOARGS, "The roles by executor id, as JSON text."},
    {"wait", TFOS__KEYWORDS(wait_for_phase), "Waits until the cluster has come to a phase."},
    {"check", check, METH_NOARGS, "Raises the first failure of the cluster, if there was one."},
    {"fail", TFOS__KEYWORDS(fail), "Makes the cluster fail with a message."},
    {"plan_feed", TFOS__KEYWORDS(plan_feed), "What this feed is of a training."},
    {"end_epoch", TFOS__KEYWORDS(end_epoch), "All partitions of this feed have been fed."},
    {"end_batch", TFOS__KEYWORDS(end_batch),
     "As end_epoch(), of a batch of a stream: its epoch goes on."},
    {"describe_feed", TFOS__KEYWORDS(describe_feed), "What the rows of a queue look like."},
    {"end_feed", end_feed, METH_NOARGS, "Nothing more will be fed."},
    {"stop", TFOS__KEYWORDS(stop), "Tells the nodes to stop."},
    {"next_event", TFOS__KEYWORDS(next_event),
     "The next event as JSON text, or None after the timeout."},
    {"status", get_status, METH_NOARGS, "The state of the cluster as JSON text."},
    {"close", tfos__py_handle_close, METH_NOARGS, "Ends the server and its connections."},
    {"__enter__", tfos__py_handle_enter_context, METH_NOARGS, NULL},
    {"__exit__", tfos__py_handle_close, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"address", get_address, NULL, "\"host:port\" for nodes and feeders.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The rendezvous server of a cluster, in the driver. Thread-safe."},
    {Py_tp_new, make},
    {Py_tp_init, init},
    {Py_tp_dealloc, tfos__py_handle_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.Rendezvous",
    .basicsize = sizeof(struct tfos__py_handle),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__py_rendezvous_class_add(PyObject *module)
{
    return tfos__py_class_add(module, &spec) != NULL ? 0 : -1;
}

PyObject *tfos__py_rendezvous_query(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    int64_t timeout_ms = 2000;
    PyObject *kept = NULL;
    char *json = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"timeout_ms", TFOS__INT, false, 0, INT32_MAX, &timeout_ms},
    };

    (void)module;
    if (tfos__py_parameters_read("status_query", parameters, 1, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    Py_BEGIN_ALLOW_THREADS
    status = tfos_status_query(timeout_ms, &json, &err);
    Py_END_ALLOW_THREADS
    return status < 0 ? tfos__py_raise(status, &err) : tfos__py_class_text(json);
}
