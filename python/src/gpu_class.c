// SPDX-License-Identifier: Apache-2.0
// The class GpuAllocation: tfos_gpu_allocate(); and the GPUs and adapters of this machine.
#include <tfos/gpu.h>
#include <tfos/memory.h>

#include "error.h"
#include "handle.h"

#define PORT_LIMIT 64

static void close_allocation(struct tfos__py_handle *handle, void *allocation)
{
    (void)handle;
    tfos_gpu_allocation_close(allocation);
}

static int init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    struct tfos_gpu_allocation *allocation = NULL;
    struct tfos_gpu_request request = {0};
    struct tfos_wait wait = {0};
    int64_t count = 1, preferred = 0, timeout_ms = 1;
    const struct tfos__py_parameter parameters[] = {
        {"count", TFOS__INT, true, INT32_MIN, INT32_MAX, &count},
        {"preferred", TFOS__INT, false, 0, INT32_MAX, &preferred},
        {"timeout_ms", TFOS__INT, false, 1, INT64_MAX, &timeout_ms},
        {"owner", TFOS__TEXT, false, 0, 0, &request.owner},
        {0},
    };

    if (!tfos__py_call_begin_new(&call, self, "GpuAllocation", parameters, args, kwargs))
        return -1;
    request.count = (int)count;
    request.preferred = (int)preferred;
    wait = tfos__py_call_wait(&call, timeout_ms);
    call.status = tfos_gpu_allocate(&request, &wait, &allocation, &call.err);
    return tfos__py_call_leave_new(&call, allocation);
}

static PyObject *get_ids(PyObject *self, PyObject *unused)
{
    struct tfos__py_handle *handle = (struct tfos__py_handle *)self;

    (void)unused;
    if (tfos__py_handle_enter(handle) < 0)
        return NULL;
    PyObject *ids = PyUnicode_FromString(tfos_gpu_allocation_ids(handle->object));
    tfos__py_handle_leave(handle);
    return ids;
}

static PyMethodDef methods[] = {
    {"ids", get_ids, METH_NOARGS, "The ids, divided by commas, for CUDA_VISIBLE_DEVICES."},
    TFOS__CLOSE_METHODS("Gives the GPUs back."),
    {0},
};

struct tfos__py_class tfos__py_gpu_class = {
    .name = "tensorflowonspark._tfos.GpuAllocation",
    .doc = "GPUs that no other process of this user on this machine gets.",
    .size = sizeof(struct tfos__py_handle),
    .methods = methods,
    .init = init,
    .label = "GPUs",
    .close = close_allocation,
};

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
        return tfos__py_raise(status, &err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++)
        if (PyList_Append(list, gpus[i].is_free ? Py_True : Py_False) < 0)
            Py_CLEAR(list);
    tfos_free(gpus);
    return list;
}

static PyObject *list_rdma_ports(PyObject *module, PyObject *args, PyObject *kwargs)
{
    const char *sysfs = NULL;
    PyObject *kept = NULL;
    struct tfos_rdma_port ports[PORT_LIMIT];
    struct tfos_error err = {0};
    size_t count = 0;
    const struct tfos__py_parameter parameters[] = {
        {"sysfs", TFOS__OPTIONAL_TEXT, false, 0, 0, &sysfs},
        {0},
    };

    (void)module;
    if (tfos__py_parameters_read("list_rdma_ports", parameters, args, kwargs, &kept) < 0)
        return NULL;
    enum tfos_status status = tfos_rdma_list(sysfs, ports, PORT_LIMIT, &count, &err);
    Py_DECREF(kept);
    if (status < 0)
        return tfos__py_raise(status, &err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count && i < PORT_LIMIT; i++) {
        PyObject *port = Py_BuildValue("(siOs)", ports[i].device, ports[i].port,
                                       ports[i].is_active ? Py_True : Py_False,
                                       ports[i].is_ethernet ? "RoCE" : "InfiniBand");
        if (!port || PyList_Append(list, port) < 0)
            Py_CLEAR(list);
        Py_XDECREF(port);
    }
    return list;
}

PyMethodDef tfos__py_gpu_functions[] = {
    {"list_gpus", list_gpus, METH_NOARGS,
     "Of each NVIDIA GPU of this machine, whether no process computes on it."},
    {"list_rdma_ports", TFOS__KEYWORDS(list_rdma_ports),
     "The InfiniBand and RoCE ports of this machine."},
    {0},
};
