// SPDX-License-Identifier: Apache-2.0
// The class Collective: tfos_collective_*, on arrays whose memory is used in place.
#include "collective_class.h"

#include <stdio.h>
#include <string.h>
#include <tfos/collective_gpu.h>
#include <tfos/memory.h>

#include "error.h"
#include "handle.h"
#include "numpy.h"

#define IS_CONTIGUOUS 0x0001 // flags of __array_struct__
#define IS_ALIGNED 0x0100
#define IS_WRITEABLE 0x0400

#define KEY_SIZE TFOS_COLLECTIVE_KEY_SIZE

static const struct {
    const char *name;
    enum tfos_dtype dtype;
    int size;
} dtypes[] = {
    {"bool", TFOS_DTYPE_BOOL, 1},         {"int8", TFOS_DTYPE_INT8, 1},
    {"int16", TFOS_DTYPE_INT16, 2},       {"int32", TFOS_DTYPE_INT32, 4},
    {"int64", TFOS_DTYPE_INT64, 8},       {"uint8", TFOS_DTYPE_UINT8, 1},
    {"uint16", TFOS_DTYPE_UINT16, 2},     {"uint32", TFOS_DTYPE_UINT32, 4},
    {"uint64", TFOS_DTYPE_UINT64, 8},     {"float16", TFOS_DTYPE_FLOAT16, 2},
    {"float32", TFOS_DTYPE_FLOAT32, 4},   {"float64", TFOS_DTYPE_FLOAT64, 8},
    {"bfloat16", TFOS_DTYPE_BFLOAT16, 2},
};

static const char *const reductions[] = {
    [TFOS_REDUCE_SUM] = "sum",
    [TFOS_REDUCE_MEAN] = "mean",
    [TFOS_REDUCE_MIN] = "min",
    [TFOS_REDUCE_MAX] = "max",
};

static enum tfos_dtype find_dtype(const char *function, const char *name, int *size)
{
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            *size = dtypes[i].size;
            return dtypes[i].dtype;
        }
    PyErr_Format(PyExc_ValueError, "%s(): dtype: there is no \"%s\"", function, name);
    return 0;
}

static enum tfos_reduction find_reduction(const char *function, const char *name)
{
    for (size_t i = TFOS_REDUCE_SUM; i < sizeof(reductions) / sizeof(reductions[0]); i++)
        if (strcmp(reductions[i], name) == 0)
            return (enum tfos_reduction)i;
    PyErr_Format(PyExc_ValueError,
                 "%s(): reduction: expected \"sum\", \"mean\", \"min\" or \"max\", not \"%s\"",
                 function, name);
    return 0;
}

int tfos__py_collective_read_transport(struct tfos__py_collective_options *options,
                                       const char *function)
{
    options->library.transport = TFOS_COLLECTIVE_AUTO;
    if (!options->transport || strcmp(options->transport, "auto") == 0)
        return 0;
    options->library.transport = TFOS_COLLECTIVE_TCP;
    if (strcmp(options->transport, "tcp") == 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s(): transport: expected \"auto\" or \"tcp\", not \"%s\"",
                 function, options->transport);
    return -1;
}

// ---- opening

/// The exchange of an open, which is a callable.
struct exchange {
    PyObject *callable; ///< borrowed
    PyObject *failure;  ///< owned; its exception
};

static enum tfos_status keep_failure(struct exchange *exchange, const char *stage,
                                     struct tfos_error *err)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;

    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace)
        PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    Py_XDECREF(exchange->failure);
    exchange->failure = value;
    snprintf(err->message, sizeof(err->message), "collective: the exchange of %s has failed",
             stage);
    return TFOS_IO;
}

static enum tfos_status exchange_by_callable(void *context, const char *stage,
                                             const char *value_json, char **values_json,
                                             struct tfos_error *err)
{
    struct exchange *exchange = context;
    enum tfos_status status = TFOS_OK;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *answer = PyObject_CallFunction(exchange->callable, "ss", stage, value_json);
    PyObject *bytes = answer ? PyUnicode_AsUTF8String(answer) : NULL;

    err->os_errno = 0;
    *values_json = bytes ? tfos_strdup(PyBytes_AsString(bytes)) : NULL;
    if (!bytes)
        status = keep_failure(exchange, stage, err);
    else if (!*values_json)
        status = TFOS_NO_MEMORY;
    if (status == TFOS_NO_MEMORY)
        snprintf(err->message, sizeof(err->message), "collective: no memory for %s", stage);
    Py_XDECREF(bytes);
    Py_XDECREF(answer);
    PyGILState_Release(state);
    return status;
}

static int init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    struct tfos__py_collective_options options = {0};
    struct exchange exchange = {0};
    struct tfos_collective *collective = NULL;
    struct tfos_view key = {0};
    int64_t rank = 0, size = 0;
    PyObject *kept = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"rank", TFOS__INT, true, 0, INT32_MAX, &rank},
        {"size", TFOS__INT, true, 0, INT32_MAX, &size},
        {"exchange", TFOS__ANY, true, 0, 0, &exchange.callable},
        {"key", TFOS__BYTES, true, 0, 0, &key},
        TFOS__COLLECTIVE_PARAMETERS(options),
        {0},
    };
    int result = -1;

    if (tfos__py_parameters_read("Collective", parameters, args, kwargs, &kept) < 0)
        return -1;
    if (key.size != KEY_SIZE)
        PyErr_Format(PyExc_ValueError, "Collective(): key: expected %d bytes", KEY_SIZE);
    else if (tfos__py_collective_read_transport(&options, "Collective") == 0 &&
             tfos__py_call_enter_new(&call, self)) {
        options.library.rank = (int)rank;
        options.library.size = (int)size;
        options.library.exchange = exchange_by_callable;
        options.library.context = &exchange;
        memcpy(options.library.key, key.data, KEY_SIZE);
        call.cause = &exchange.failure;
        call.status = tfos_collective_open(&options.library, &collective, &call.err);
        result = tfos__py_call_leave_new(&call, collective);
    }
    Py_XDECREF(exchange.failure);
    Py_DECREF(kept);
    return result;
}

PyObject *tfos__py_collective_new(struct tfos_collective *collective)
{
    PyObject *object = tfos__py_handle_new(&tfos__py_collective_class);

    if (object) {
        ((struct tfos__py_handle *)object)->object = collective;
        return object;
    }
    Py_BEGIN_ALLOW_THREADS
    tfos_collective_close(collective);
    Py_END_ALLOW_THREADS
    return NULL;
}

/// Ends the group, and with it an operation of another thread, which a hold keeps alive.
static void interrupt(struct tfos__py_handle *handle, void *collective)
{
    struct tfos_collective *held = NULL;

    (void)handle;
    Py_BEGIN_ALLOW_THREADS
    if (tfos_collective_acquire(tfos_collective_number(collective), &held, NULL) == TFOS_OK)
        tfos_collective_close(collective);
    Py_END_ALLOW_THREADS
}

static void close_collective(struct tfos__py_handle *handle, void *collective)
{
    (void)handle;
    tfos_collective_release(collective);
}

// ---- arrays

/// Memory of arrays, held while an operation uses it.
struct arrays {
    struct tfos_collective_span *spans;
    PyObject **capsules; ///< owned
    Py_ssize_t count;
};

static void clear_arrays(struct arrays *arrays)
{
    for (Py_ssize_t i = 0; i < arrays->count; i++)
        Py_XDECREF(arrays->capsules[i]);
    PyMem_Free(arrays->capsules);
    PyMem_Free(arrays->spans);
    *arrays = (struct arrays){0};
}

static int read_array(const char *function, PyObject *array, int size, bool is_written,
                      PyObject **capsule, struct tfos_collective_span *span)
{
    int wanted = IS_CONTIGUOUS | IS_ALIGNED | (is_written ? IS_WRITEABLE : 0);
    const struct tfos__py_numpy_interface_struct *memory = tfos__py_numpy_interface(array, capsule);

    if (!memory)
        return -1;
    if ((memory->flags & wanted) != wanted || memory->itemsize != size) {
        PyErr_Format(PyExc_ValueError,
                     "%s(): expected arrays of elements of %d bytes, in one piece of memory%s",
                     function, size, is_written ? " that may be written" : "");
        return -1;
    }
    span->data = memory->data;
    span->count = 1;
    for (int i = 0; i < memory->nd; i++)
        span->count *= memory->shape[i];
    return 0;
}

/// The memory of a list of arrays. -1 with an exception; clear_arrays() in any case.
static int read_arrays(struct arrays *arrays, const char *function, PyObject *list, int size,
                       bool is_written)
{
    Py_ssize_t count = PySequence_Size(list);

    *arrays = (struct arrays){0};
    if (count < 0)
        return -1;
    arrays->spans = PyMem_Calloc((size_t)count + 1, sizeof(*arrays->spans));
    arrays->capsules = PyMem_Calloc((size_t)count + 1, sizeof(PyObject *));
    if (!arrays->spans || !arrays->capsules) {
        PyErr_NoMemory();
        return -1;
    }
    for (arrays->count = 0; arrays->count < count; arrays->count++) {
        Py_ssize_t i = arrays->count;
        PyObject *array = PySequence_GetItem(list, i);
        int result = array ? read_array(function, array, size, is_written, &arrays->capsules[i],
                                        &arrays->spans[i])
                           : -1;
        Py_XDECREF(array); // the list has it, and the capsule
        if (result < 0) {
            arrays->count++;
            return -1;
        }
    }
    return 0;
}

// ---- operations

static PyObject *barrier(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct tfos__py_call call;
    const char *name = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"name", TFOS__TEXT, true, 0, 0, &name},
        {0},
    };

    if (!tfos__py_call_begin(&call, self, "Collective.barrier", parameters, args, kwargs))
        return NULL;
    call.status = tfos_collective_barrier(call.object, name, &call.err);
    return tfos__py_call_end(&call);
}

/// The arguments of an operation on arrays.
struct request {
    const char *function, *name, *dtype_name, *reduction_name;
    PyObject *arrays, *kept;
    int64_t root;
    enum tfos_dtype dtype;
    int size;
};

static int read_request(struct request *request, const struct tfos__py_parameter *parameters,
                        PyObject *args, PyObject *kwargs)
{
    if (tfos__py_parameters_read(request->function, parameters, args, kwargs, &request->kept) < 0)
        return -1;
    request->dtype = find_dtype(request->function, request->dtype_name, &request->size);
    return request->dtype == 0 ? -1 : 0;
}

static PyObject *all_reduce(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct request request = {.function = "Collective.all_reduce", .reduction_name = "sum"};
    struct arrays arrays = {0};
    struct tfos__py_call call;
    enum tfos_reduction reduction = 0;
    PyObject *result = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"name", TFOS__TEXT, true, 0, 0, &request.name},
        {"arrays", TFOS__ANY, true, 0, 0, &request.arrays},
        {"dtype", TFOS__TEXT, true, 0, 0, &request.dtype_name},
        {"reduction", TFOS__TEXT, false, 0, 0, &request.reduction_name},
        {0},
    };

    if (read_request(&request, parameters, args, kwargs) == 0 &&
        (reduction = find_reduction(request.function, request.reduction_name)) != 0 &&
        read_arrays(&arrays, request.function, request.arrays, request.size, true) == 0 &&
        tfos__py_call_enter(&call, self)) {
        call.status = tfos_collective_all_reduce(call.object, request.name, arrays.spans,
                                                 arrays.count, request.dtype, reduction, &call.err);
        result = tfos__py_call_end(&call);
    }
    clear_arrays(&arrays);
    Py_XDECREF(request.kept);
    return result;
}

static PyObject *broadcast(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct request request = {.function = "Collective.broadcast"};
    struct arrays arrays = {0};
    struct tfos__py_call call;
    PyObject *result = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"name", TFOS__TEXT, true, 0, 0, &request.name},
        {"arrays", TFOS__ANY, true, 0, 0, &request.arrays},
        {"dtype", TFOS__TEXT, true, 0, 0, &request.dtype_name},
        {"root", TFOS__INT, false, 0, INT32_MAX, &request.root},
        {0},
    };

    if (read_request(&request, parameters, args, kwargs) == 0 &&
        read_arrays(&arrays, request.function, request.arrays, request.size, true) == 0 &&
        tfos__py_call_enter(&call, self)) {
        call.status =
            tfos_collective_broadcast(call.object, request.name, arrays.spans, arrays.count,
                                      request.dtype, (int)request.root, &call.err);
        result = tfos__py_call_end(&call);
    }
    clear_arrays(&arrays);
    Py_XDECREF(request.kept);
    return result;
}

/// What an all-gather is collected in.
struct gathered {
    PyObject *bytes; ///< owned
    int size;        ///< of an element
    int rank_count;
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS];
};

static void *allocate(void *context, const int64_t *counts, int64_t total)
{
    struct gathered *gathered = context;
    PyGILState_STATE state = PyGILState_Ensure();

    memcpy(gathered->counts, counts, (size_t)gathered->rank_count * sizeof(*counts));
    if (total <= PY_SSIZE_T_MAX / gathered->size)
        gathered->bytes = PyByteArray_FromStringAndSize(NULL, total * gathered->size);
    PyErr_Clear(); // the library says that there is no memory
    void *data = gathered->bytes ? PyByteArray_AsString(gathered->bytes) : NULL;
    PyGILState_Release(state);
    return data;
}

static PyObject *make_counts(const int64_t *counts, int size)
{
    PyObject *list = PyList_New(size);

    for (int i = 0; list && i < size; i++) {
        PyObject *number = PyLong_FromLongLong(counts[i]);
        if (!number || PyList_SetItem(list, i, number) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *all_gather(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct request request = {.function = "Collective.all_gather"};
    struct tfos_collective_span span = {0};
    struct gathered gathered = {0};
    struct tfos__py_call call;
    PyObject *array = NULL, *capsule = NULL, *list = NULL, *result = NULL;
    const struct tfos__py_parameter parameters[] = {
        {"name", TFOS__TEXT, true, 0, 0, &request.name},
        {"array", TFOS__ANY, true, 0, 0, &array},
        {"dtype", TFOS__TEXT, true, 0, 0, &request.dtype_name},
        {0},
    };

    if (read_request(&request, parameters, args, kwargs) == 0 &&
        read_array(request.function, array, request.size, false, &capsule, &span) == 0 &&
        tfos__py_call_enter(&call, self)) {
        gathered.size = request.size;
        gathered.rank_count = tfos_collective_size(call.object);
        call.status = tfos_collective_all_gather(call.object, request.name, span.data, span.count,
                                                 request.dtype, allocate, &gathered, &call.err);
        if (tfos__py_call_leave(&call) == 0)
            list = make_counts(gathered.counts, gathered.rank_count);
        if (list)
            result = PyTuple_Pack(2, gathered.bytes, list);
    }
    Py_XDECREF(list);
    Py_XDECREF(gathered.bytes);
    Py_XDECREF(capsule);
    Py_XDECREF(request.kept);
    return result;
}

static int read_counts(PyObject *list, int64_t counts[TFOS_COLLECTIVE_MAX_RANKS], int size)
{
    if (PySequence_Size(list) != size) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError,
                         "Collective.reduce_scatter(): counts: expected %d, one for each rank",
                         size);
        return -1;
    }
    for (int i = 0; i < size; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        counts[i] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *reduce_scatter(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct request request = {.function = "Collective.reduce_scatter", .reduction_name = "sum"};
    struct tfos_collective_span span = {0};
    struct tfos__py_call call;
    enum tfos_reduction reduction = 0;
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS], total = 0, own = 0;
    PyObject *array = NULL, *list = NULL, *capsule = NULL, *part = NULL;
    struct tfos__py_handle *handle = (struct tfos__py_handle *)self;
    const struct tfos__py_parameter parameters[] = {
        {"name", TFOS__TEXT, true, 0, 0, &request.name},
        {"array", TFOS__ANY, true, 0, 0, &array},
        {"counts", TFOS__ANY, true, 0, 0, &list},
        {"dtype", TFOS__TEXT, true, 0, 0, &request.dtype_name},
        {"reduction", TFOS__TEXT, false, 0, 0, &request.reduction_name},
        {0},
    };

    if (read_request(&request, parameters, args, kwargs) < 0 ||
        (reduction = find_reduction(request.function, request.reduction_name)) == 0 ||
        read_array(request.function, array, request.size, true, &capsule, &span) < 0 ||
        tfos__py_handle_enter(handle) < 0)
        goto end;
    int size = tfos_collective_size(handle->object);
    if (read_counts(list, counts, size) == 0) {
        for (int i = 0; i < size; i++)
            total += counts[i];
        own = counts[tfos_collective_rank(handle->object)];
        if (total != span.count || own < 0)
            PyErr_Format(
                PyExc_ValueError,
                "Collective.reduce_scatter(): counts: their sum is not the %lld of the array",
                (long long)span.count);
        else
            part = PyByteArray_FromStringAndSize(NULL, own * request.size);
    }
    tfos__py_handle_leave(handle);
    if (part && tfos__py_call_enter(&call, self)) {
        call.status = tfos_collective_reduce_scatter(call.object, request.name, span.data, counts,
                                                     request.dtype, reduction,
                                                     PyByteArray_AsString(part), &call.err);
        if (tfos__py_call_leave(&call) < 0)
            Py_CLEAR(part);
    } else {
        Py_CLEAR(part);
    }
end:
    Py_XDECREF(capsule);
    Py_XDECREF(request.kept);
    return part;
}

// ---- figures

static PyObject *get_figures(PyObject *self, PyObject *unused)
{
    struct tfos__py_call call;
    struct tfos_collective_figures figures;

    (void)unused;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    tfos_collective_get_figures(call.object, &figures);
    if (tfos__py_call_leave(&call) < 0)
        return NULL;
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:i,s:L,s:L}", "operations",
                         (long long)figures.operation_count, "bytes", (long long)figures.byte_count,
                         "duration_us", (long long)figures.duration_us, "wait_us",
                         (long long)figures.wait_us, "last_rank", figures.last_rank, "steps",
                         (long long)figures.step_count, "data_us", (long long)figures.data_us);
}

static PyObject *mark_steps(PyObject *self, PyObject *is_begin)
{
    struct tfos__py_call call;

    if (!tfos__py_call_enter(&call, self))
        return NULL;
    tfos_collective_mark_step(call.object, is_begin == Py_True ? TFOS_COLLECTIVE_STEPS_BEGIN
                                                               : TFOS_COLLECTIVE_STEPS_END);
    if (tfos__py_call_leave(&call) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/// The numbers of a group, in the order of the properties.
static PyObject *get_number(PyObject *self, void *closure)
{
    struct tfos__py_call call;

    if (!tfos__py_call_enter(&call, self))
        return NULL;
    const int64_t numbers[] = {tfos_collective_rank(call.object), tfos_collective_size(call.object),
                               tfos_collective_number(call.object)};
    return tfos__py_call_leave(&call) < 0 ? NULL : PyLong_FromLongLong(numbers[(intptr_t)closure]);
}

static PyObject *get_gpu_route(PyObject *self, void *closure)
{
    struct tfos__py_call call;
    char text[2048] = "";

    (void)closure;
    if (!tfos__py_call_enter(&call, self))
        return NULL;
    const char *route = tfos_collective_gpu_route(call.object);
    snprintf(text, sizeof(text), "%s", route ? route : "");
    if (tfos__py_call_leave(&call) < 0)
        return NULL;
    return Py_BuildValue("z", text[0] != '\0' ? text : NULL);
}

static PyMethodDef methods[] = {
    {"barrier", TFOS__KEYWORDS(barrier), "Returns when all ranks have called it."},
    {"all_reduce", TFOS__KEYWORDS(all_reduce),
     "Replaces the elements of the arrays by their reduction over all ranks."},
    {"broadcast", TFOS__KEYWORDS(broadcast),
     "Replaces the elements of the arrays by those of rank root."},
    {"all_gather", TFOS__KEYWORDS(all_gather),
     "The elements of all ranks, as bytes in the order of ranks, and how many each gave."},
    {"reduce_scatter", TFOS__KEYWORDS(reduce_scatter),
     "This rank's part of the reduction over all ranks, as bytes."},
    {"figures", get_figures, METH_NOARGS, "What the group has done since it was opened."},
    {"mark_steps", mark_steps, METH_O, "A call that takes steps begins (True), or has ended."},
    TFOS__CLOSE_METHODS("Leaves the group in order."),
    {0},
};

static PyGetSetDef properties[] = {
    {"rank", get_number, NULL, "Of this process, from 0.", (void *)0},
    {"size", get_number, NULL, "Processes of the group.", (void *)1},
    {"number", get_number, NULL, "By which TensorFlow's ops find the group.", (void *)2},
    {"gpu_route", get_gpu_route, NULL, "How tensors in GPU memory go, in words, or None.", NULL},
    {0},
};

struct tfos__py_class tfos__py_collective_class = {
    .name = "tensorflowonspark._tfos.Collective",
    .doc = "Collective operations among the processes of a group.",
    .size = sizeof(struct tfos__py_handle),
    .methods = methods,
    .properties = properties,
    .init = init,
    .label = "collective",
    .interrupt = interrupt,
    .close = close_collective,
};
