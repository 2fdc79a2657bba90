// SPDX-License-Identifier: Apache-2.0
// The class Rendezvous: tfos_rendezvous_*, thread-safe.
#include <string.h>
#include <tfos/rendezvous.h>

#include "error.h"
#include "handle.h"

#define DRAINED_SLICE_MS 20 // such a wait lasts as long as rows are taken, so each call is short
#define GRACE_LIMIT_MS 3600000

static void close_rendezvous(struct tfos__py_handle *handle, void *rendezvous)
{
    (void)handle;
    Py_BEGIN_ALLOW_THREADS
    tfos_rendezvous_close(rendezvous);
    Py_END_ALLOW_THREADS
}

static int init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    struct tfos_rendezvous_options options = {0};
    struct tfos_rendezvous *rendezvous = NULL;
    int64_t node_count = 0, ps_count = 0;
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
        {0},
    };

    if (!tfos__py_call_begin_new(&call, self, "Rendezvous", parameters, args, kwargs))
        return -1;
    options.node_count = (int)node_count;
    options.ps_count = (int)ps_count;
    call.status = tfos_rendezvous_open(&options, &rendezvous, &call.err);
    return tfos__py_call_leave_new(&call, rendezvous);
}

static PyObject *get_address(PyObject *self, void *closure)
{
    struct tfos__py_call call;
    const char *address = NULL;

    (void)closure;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    address = tfos_rendezvous_address(call.object);
    tfos__py_call_resume(&call);
    PyObject *text = PyUnicode_FromString(address);
    tfos__py_call_leave(&call);
    return text;
}

static PyObject *get_roles(PyObject *self, PyObject *unused)
{
    struct tfos__py_call call;
    char *json = NULL;

    (void)unused;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    call.status = tfos_rendezvous_get_roles(call.object, &json, &call.err);
    return tfos__py_call_end_text(&call, json);
}

static PyObject *get_status(PyObject *self, PyObject *unused)
{
    struct tfos__py_call call;
    char *json = NULL;

    (void)unused;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    call.status = tfos_rendezvous_get_status(call.object, &json, &call.err);
    return tfos__py_call_end_text(&call, json);
}

/// Milliseconds of the wait that count towards its timeout: for DRAINED, those since rows were
/// taken.
static int64_t waited_ms(void *rendezvous, enum tfos_rendezvous_phase phase, int64_t begin)
{
    int64_t waited = tfos__py_now_ms() - begin;
    int64_t idle = phase == TFOS_PHASE_DRAINED ? tfos_rendezvous_idle_ms(rendezvous) : waited;

    return idle < waited ? idle : waited;
}

static PyObject *wait_for_phase(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    int64_t number = 0, timeout_ms = 0, waited = 0;
    const struct tfos__py_parameter parameters[] = {
        {"phase", TFOS__INT, true, TFOS_PHASE_RUNNING, TFOS_PHASE_ENDED, &number},
        {"timeout_ms", TFOS__INT, true, INT64_MIN, INT64_MAX, &timeout_ms},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, "Rendezvous.wait", parameters, args, kwargs))
        return NULL;
    enum tfos_rendezvous_phase phase = (enum tfos_rendezvous_phase)number;
    int64_t begin = tfos__py_now_ms();
    int64_t longest = phase == TFOS_PHASE_DRAINED ? DRAINED_SLICE_MS : TFOS__SLICE_MS;
    do {
        int64_t slice =
            timeout_ms < 0 || timeout_ms - waited > longest ? longest : timeout_ms - waited;
        call.status = tfos_rendezvous_wait(call.object, phase, slice, &call.err);
        waited = waited_ms(call.object, phase, begin);
        // A cluster that has failed with TIMEOUT is no slice that has ended.
        enum tfos_status failure =
            phase == TFOS_PHASE_ENDED ? TFOS_OK : tfos_rendezvous_check(call.object, &call.err);
        if (failure < 0)
            call.status = failure;
        else if (call.status == TFOS_TIMEOUT && timeout_ms >= 0 && waited >= timeout_ms)
            call.status = tfos_rendezvous_time_out(call.object, phase, waited, &call.err);
        else if (call.status == TFOS_TIMEOUT)
            call.status = TFOS_AGAIN;
    } while (call.status == TFOS_AGAIN && !tfos__py_guard_is_interrupted(&call.watch));
    return tfos__py_call_end(&call);
}

static PyObject *check(PyObject *self, PyObject *unused)
{
    struct tfos__py_call call;

    (void)unused;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    call.status = tfos_rendezvous_check(call.object, &call.err);
    return tfos__py_call_end(&call);
}

/// A failure's status by its name ("TIMEOUT"); OK where there is none.
static enum tfos_status find_status(const char *name)
{
#define X(label, value, text)                                                                      \
    if (value < 0 && strcmp(name, #label) == 0)                                                    \
        return TFOS_##label;
    TFOS_STATUS_MAP(X)
#undef X
    return TFOS_OK;
}

static PyObject *fail(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    const char *name = NULL, *message = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"status", TFOS__TEXT, true, 0, 0, &name},
        {"message", TFOS__TEXT, true, 0, 0, &message},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, "Rendezvous.fail", parameters, args, kwargs))
        return NULL;
    enum tfos_status status = find_status(name);
    if (status < 0) {
        tfos_rendezvous_fail(call.object, status, message);
        return tfos__py_call_end(&call);
    }
    tfos__py_call_resume(&call);
    PyErr_Format(
        PyExc_ValueError,
        "Rendezvous.fail(): status: expected the name of a failure, such as \"CLOSED\", not "
        "\"%s\"",
        name);
    tfos__py_call_leave(&call);
    return NULL;
}

typedef enum tfos_status end_feed_number(struct tfos_rendezvous *handle, const char *queue,
                                         int64_t feed, struct tfos_error *err);

/// Calls `end` with a queue and the number of a feed.
static PyObject *end_numbered(PyObject *self, const char *name, end_feed_number *end,
                              PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    const char *queue = "input";
    int64_t feed = 0;
    const struct tfos__py_parameter parameters[] = {
        {"feed", TFOS__INT, true, 1, INT64_MAX, &feed},
        {"queue", TFOS__TEXT, false, 0, 0, &queue},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, name, parameters, args, kwargs))
        return NULL;
    call.status = end(call.object, queue, feed, &call.err);
    return tfos__py_call_end(&call);
}

static PyObject *end_epoch(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return end_numbered(self, "Rendezvous.end_epoch", tfos_rendezvous_end_epoch, args, kwargs);
}

static PyObject *end_batch(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return end_numbered(self, "Rendezvous.end_batch", tfos_rendezvous_end_batch, args, kwargs);
}

static PyObject *describe_feed(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    const char *queue = NULL, *schema = NULL;
    int64_t first_feed = 1, last_feed = 0;
    const struct tfos__py_parameter parameters[] = {
        {"queue", TFOS__TEXT, true, 0, 0, &queue},
        {"schema_json", TFOS__TEXT, true, 0, 0, &schema},
        {"first_feed", TFOS__INT, false, 1, INT64_MAX, &first_feed},
        {"last_feed", TFOS__INT, false, 0, INT64_MAX, &last_feed},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, "Rendezvous.describe_feed", parameters, args, kwargs))
        return NULL;
    call.status =
        tfos_rendezvous_describe_feed(call.object, queue, first_feed, last_feed, schema, &call.err);
    return tfos__py_call_end(&call);
}

static PyObject *plan_feed(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    struct tfos_feed_plan plan = {0};
    int64_t feed = 0;
    const struct tfos__py_parameter parameters[] = {
        {"feed", TFOS__INT, true, 1, INT64_MAX, &feed},
        {"epoch", TFOS__INT, true, 1, INT64_MAX, &plan.epoch},
        {"epoch_count", TFOS__INT, true, 1, INT64_MAX, &plan.epoch_count},
        {"partition_count", TFOS__INT, false, 0, INT64_MAX, &plan.partition_count},
        {"queue", TFOS__TEXT, false, 0, 0, &plan.queue},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, "Rendezvous.plan_feed", parameters, args, kwargs))
        return NULL;
    call.status = tfos_rendezvous_plan_feed(call.object, feed, &plan, &call.err);
    return tfos__py_call_end(&call);
}

static PyObject *end_feed(PyObject *self, PyObject *unused)
{
    struct tfos__py_call call;

    (void)unused;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    tfos_rendezvous_end_feed(call.object);
    return tfos__py_call_end(&call);
}

static PyObject *terminate_feed(PyObject *self, PyObject *unused)
{
    struct tfos__py_call call;

    (void)unused;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    tfos_rendezvous_terminate_feed(call.object);
    return tfos__py_call_end(&call);
}

static PyObject *stop(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    int64_t grace_ms = 0;
    const struct tfos__py_parameter parameters[] = {
        {"grace_ms", TFOS__INT, true, 0, GRACE_LIMIT_MS, &grace_ms},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, "Rendezvous.stop", parameters, args, kwargs))
        return NULL;
    tfos_rendezvous_stop(call.object, grace_ms);
    return tfos__py_call_end(&call);
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
     "As end_epoch(), of a batch of a stream: its epoch continues."},
    {"describe_feed", TFOS__KEYWORDS(describe_feed), "What the rows of a queue look like."},
    {"end_feed", end_feed, METH_NOARGS, "Nothing more will be fed."},
    {"terminate_feed", terminate_feed, METH_NOARGS, "Nobody wants rows any more."},
    {"stop", TFOS__KEYWORDS(stop), "Sends the nodes `stop`."},
    {"next_event", TFOS__KEYWORDS(next_event),
     "The next event as JSON text, or None after the timeout."},
    {"status", get_status, METH_NOARGS, "The state of the cluster as JSON text."},
    TFOS__CLOSE_METHODS("Ends the server and its connections."),
    {0},
};

static PyGetSetDef properties[] = {
    {"address", get_address, NULL, "\"host:port\" for nodes and feeders.", NULL},
    {0},
};

struct tfos__py_class tfos__py_rendezvous_class = {
    .name = "tensorflowonspark._tfos.Rendezvous",
    .doc = "The rendezvous server of a cluster, in the driver. Thread-safe.",
    .size = sizeof(struct tfos__py_handle),
    .methods = methods,
    .properties = properties,
    .init = init,
    .label = "rendezvous",
    .close = close_rendezvous,
};

static PyObject *query(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    int64_t timeout_ms = 2000;
    PyObject *kept = NULL;
    char *json = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"timeout_ms", TFOS__INT, false, 0, INT32_MAX, &timeout_ms},
        {0},
    };

    (void)module;
    if (tfos__py_parameters_read("status_query", parameters, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    Py_BEGIN_ALLOW_THREADS
    status = tfos_status_query(timeout_ms, &json, &err);
    Py_END_ALLOW_THREADS
    return status < 0 ? tfos__py_raise(status, &err) : tfos__py_text(json);
}

static PyObject *request_stop(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    int64_t timeout_ms = 10000;
    const char *cluster = NULL;
    PyObject *kept = NULL;
    char *json = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"cluster", TFOS__TEXT, true, 0, 0, &cluster},
        {"timeout_ms", TFOS__INT, false, 0, INT32_MAX, &timeout_ms},
        {0},
    };

    (void)module;
    if (tfos__py_parameters_read("request_stop", parameters, args, kwargs, &kept) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_cluster_request_stop(cluster, timeout_ms, &json, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(kept);
    return status < 0 ? tfos__py_raise(status, &err) : tfos__py_text(json);
}

PyMethodDef tfos__py_rendezvous_functions[] = {
    {"request_stop", TFOS__KEYWORDS(request_stop),
     "Asks the driver of a cluster on this machine to end it in order; its answer, as JSON."},
    {"status_query", TFOS__KEYWORDS(query),
     "The status of all clusters of this user on this machine, as JSON."},
    {0},
};
