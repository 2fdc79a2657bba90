// SPDX-License-Identifier: Apache-2.0
// The class Node: tfos_node_launch_*, one thread at a time.
#include <string.h>
#include <tfos/node.h>
#include <unistd.h>

#include "error.h"
#include "handle.h"

static void close_launch(struct tfos__py_handle *handle, void *launch)
{
    (void)handle;
    Py_BEGIN_ALLOW_THREADS
    tfos_node_launch_close(launch);
    Py_END_ALLOW_THREADS
}

static int init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    struct tfos_node_launch *launch = NULL;
    const char *executable = NULL, *config = NULL;
    struct tfos_view payload = {0};
    const struct tfos__py_parameter parameters[] = {
        {"executable", TFOS__TEXT, true, 0, 0, &executable},
        {"config", TFOS__TEXT, true, 0, 0, &config},
        {"payload", TFOS__BYTES, true, 0, 0, &payload},
        {0},
    };

    if (!tfos__py_call_begin_new(&call, self, "Node", parameters, args, kwargs))
        return -1;
    call.status =
        tfos_node_launch(executable, config, payload.data, payload.size, &launch, &call.err);
    return tfos__py_call_leave_new(&call, launch);
}

static enum tfos_status wait_message(void *launch, int64_t timeout_ms, char **json,
                                     struct tfos_error *err)
{
    return tfos_node_launch_next(launch, timeout_ms, json, err);
}

static PyObject *next_message(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return tfos__py_handle_wait_text(self, "Node.next", args, kwargs, wait_message);
}

static PyObject *detach(PyObject *self, PyObject *unused)
{
    struct tfos__py_call call;

    (void)unused;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    call.status = tfos_node_launch_detach(call.object, &call.err);
    return tfos__py_call_end(&call);
}

static PyMethodDef methods[] = {
    {"next", TFOS__KEYWORDS(next_message),
     "The node's next message as JSON text; None after the timeout."},
    {"detach", detach, METH_NOARGS, "Lets the node live on after close()."},
    TFOS__CLOSE_METHODS("Ends the node unless it was detached."),
    {0},
};

struct tfos__py_class tfos__py_node_class = {
    .name = "tensorflowonspark._tfos.Node",
    .doc = "A node process that this process started. One thread at a time.",
    .size = sizeof(struct tfos__py_handle),
    .methods = methods,
    .init = init,
    .label = "node",
    .is_exclusive = true,
    .close = close_launch,
};

static PyObject *find_executor(PyObject *module, PyObject *args, PyObject *kwargs)
{
    int64_t pid = 0, executor = 0;
    PyObject *kept = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"pid", TFOS__INT, true, 1, INT32_MAX, &pid},
        {0},
    };

    (void)module;
    if (tfos__py_parameters_read("find_executor", parameters, args, kwargs, &kept) < 0)
        return NULL;
    Py_DECREF(kept);
    Py_BEGIN_ALLOW_THREADS
    executor = tfos_process_find_executor(pid);
    Py_END_ALLOW_THREADS
    return PyLong_FromLongLong(executor);
}

// The GIL is held in a fork server and in its nodes, which have no other thread of Python.
static pid_t fork_interpreter(void *context)
{
    (void)context;
    PyOS_BeforeFork();
    pid_t pid = fork();
    if (pid == 0)
        PyOS_AfterFork_Child();
    else
        PyOS_AfterFork_Parent();
    return pid;
}

static PyObject *make_environment(char *const *environment)
{
    PyObject *dictionary = PyDict_New();
    for (; dictionary && *environment; environment++) {
        size_t length = strcspn(*environment, "=");
        PyObject *name = PyBytes_FromStringAndSize(*environment, (Py_ssize_t)length);
        PyObject *value = PyBytes_FromString(*environment + length + 1);
        if (!name || !value || PyDict_SetItem(dictionary, name, value) < 0)
            Py_CLEAR(dictionary);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    return dictionary;
}

/// `context` is the callable.
static void run_trainer(void *context, char *const *environment)
{
    PyObject *variables = make_environment(environment);
    PyObject *result = variables ? PyObject_CallFunctionObjArgs(context, variables, NULL) : NULL;
    if (!result)
        PyErr_Print();
}

static PyObject *serve_forks(PyObject *module, PyObject *args, PyObject *kwargs)
{
    int64_t listener_fd = 0, executor_pid = 0;
    PyObject *run = NULL, *kept = NULL;
    struct tfos_error err;
    const struct tfos__py_parameter parameters[] = {
        {"listener_fd", TFOS__INT, true, 0, INT32_MAX, &listener_fd},
        {"executor_pid", TFOS__INT, true, 0, INT32_MAX, &executor_pid},
        {"run", TFOS__ANY, true, 0, 0, &run},
        {0},
    };

    (void)module;
    if (tfos__py_parameters_read("serve_forks", parameters, args, kwargs, &kept) < 0)
        return NULL;
    const struct tfos_node_forker forker = {
        .fork = fork_interpreter, .run = run_trainer, .context = run};
    enum tfos_status status = tfos_node_serve_forks((int)listener_fd, executor_pid, &forker, &err);
    Py_DECREF(kept);
    if (status < 0)
        return tfos__py_raise(status, &err);
    Py_RETURN_NONE;
}

PyMethodDef tfos__py_node_functions[] = {
    {"find_executor", TFOS__KEYWORDS(find_executor),
     "The pid of the executor that a Spark task belongs to."},
    {"serve_forks", TFOS__KEYWORDS(serve_forks),
     "The life of a fork server; run(environment) is called in each trainer and does not return."},
    {0},
};
