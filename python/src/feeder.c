// SPDX-License-Identifier: Apache-2.0
// Feeding a partition. Invariant: the packer holds rows that were taken from the iterator and not
// yet appended; a row that did not fit their schema waits in `refused`. While the library waits it
// asks watch(), which takes the GIL for a moment: an exception set there ends the wait.
#include "feeder.h"
#include "document.h"
#include "error.h"
#include "packer.h"
#include "slice.h"
#include "unpacker.h"

#include <string.h>
#include <tfos/feed.h>
#include <tfos/member.h>
#include <tfos/node.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_MS 600000
#define CONNECT_TIMEOUT_MS 30000
#define GOODBYE_MS 1000   ///< for the last words to the driver
#define VERDICT_MS 1000   ///< for the driver to say why a node has gone
#define BATCH_AGE_MS 200  ///< a batch is not held back for longer, however slowly rows come
#define SKIPPED_ROWS 4096 ///< rows skipped between looks at signals

struct tfos__feeder {
    struct tfos__gate *gate;         ///< borrowed
    struct tfos_member *member;      ///< owned
    struct tfos_feed_writer *writer; ///< owned; NULL: the partition is skipped
    struct tfos__packer *packer;     ///< owned
    PyObject *node;                  ///< owned
    PyObject *reason;                ///< why the partition is skipped; owned
    PyObject *refused;               ///< a row that the batch refused; owned
    int64_t partition, first_row;
    int64_t skip_count; ///< rows to skip yet
    int64_t batch_ms;   ///< when the batch's first row came
    int64_t timeout_ms;
    bool has_results;
    bool is_interrupted; ///< watch() has set an exception
    bool is_closing;     ///< nobody is there to take an exception any more
};

static enum tfos__feeder_result fail(enum tfos_status status, const struct tfos_error *err)
{
    tfos__raise(status, err);
    return TFOS__FEEDER_FAILED;
}

/// Raises the driver's "failed".
static void raise_failure(const struct tfos__feeder *feeder, PyObject *message)
{
    tfos__raise_format(TFOS_CLOSED, "feed: partition %lld: %S", (long long)feeder->partition,
                       tfos__document_get(message, "message"));
}

/// Takes up what the driver has said; -1 with an exception when it was that the cluster has failed.
static int hear_driver(struct tfos__feeder *feeder)
{
    struct tfos_error err = {0};
    char *json = NULL;
    enum tfos_status status = tfos_member_step(feeder->member, &err);

    while (status == TFOS_OK && tfos_member_next(feeder->member, &json, &err) == TFOS_OK) {
        PyObject *message = tfos__document_parse(json);
        bool has_failed = message != NULL && tfos__document_is(message, "type", "failed");
        if (has_failed)
            raise_failure(feeder, message);
        Py_XDECREF(message);
        if (message == NULL || has_failed)
            return -1;
    }
    if (status < 0) {
        fail(status, &err);
        return -1;
    }
    return 0;
}

/// Looks after signals, a close() in another thread, and the driver once it is there. -1 with an
/// exception.
static int look_around(struct tfos__feeder *feeder)
{
    if (tfos__gate_check(feeder->gate) < 0)
        return -1;
    return feeder->member != NULL ? hear_driver(feeder) : 0;
}

/// Called by the library during waits, without the GIL.
static bool watch(void *context)
{
    struct tfos__feeder *feeder = context;
    PyGILState_STATE state;

    if (feeder->is_closing)
        return false;
    state = PyGILState_Ensure();
    feeder->is_interrupted = look_around(feeder) < 0;
    PyGILState_Release(state);
    return feeder->is_interrupted;
}

/// Queues a message for the driver, which is taken over and may be NULL. -1 with an exception.
static int say(struct tfos__feeder *feeder, PyObject *message)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    PyObject *text = message != NULL ? tfos__document_write(message) : NULL;

    Py_XDECREF(message);
    if (text == NULL)
        return -1;
    status = tfos_member_send(feeder->member, PyBytes_AsString(text), &err);
    Py_DECREF(text);
    if (status == TFOS_OK)
        return 0;
    fail(status, &err);
    return -1;
}

/// A failed call's exception. When a node has gone, the driver mostly knows why a moment later.
static enum tfos__feeder_result conclude(struct tfos__feeder *feeder, enum tfos_status status,
                                         const struct tfos_error *err)
{
    int64_t deadline = tfos__slice_deadline(VERDICT_MS);

    if (feeder->is_interrupted)
        return TFOS__FEEDER_FAILED;
    if (status == TFOS_TIMEOUT &&
        say(feeder, Py_BuildValue("{s:s,s:s}", "type", "timed_out", "message", err->message)) < 0)
        PyErr_Clear(); // the driver is gone; the timeout is the error to raise
    while (status == TFOS_CLOSED && tfos__slice_next(deadline) > 0) {
        enum tfos_status waited = TFOS_OK;
        char *json = NULL;
        Py_BEGIN_ALLOW_THREADS
        waited = tfos_member_wait(feeder->member, tfos__slice_next(deadline), &json, NULL);
        Py_END_ALLOW_THREADS
        if (waited == TFOS_OK) {
            PyObject *message = tfos__document_parse(json);
            if (message != NULL && tfos__document_is(message, "type", "failed")) {
                raise_failure(feeder, message);
                Py_DECREF(message);
                return TFOS__FEEDER_FAILED;
            }
            Py_XDECREF(message);
            PyErr_Clear();
        } else if (waited != TFOS_TIMEOUT || tfos__gate_check(feeder->gate) < 0) {
            break;
        }
    }
    return PyErr_Occurred() ? TFOS__FEEDER_FAILED : fail(status, err);
}

static int say_hello(struct tfos__feeder *feeder, const struct tfos__feeder_options *options)
{
    PyObject *hello = Py_BuildValue(
        "{s:s,s:s,s:i,s:L,s:L,s:L,s:s,s:L,s:O}", "type", "hello", "kind", "feeder", "version", 1,
        "feed", (long long)options->feed, "partition", (long long)options->partition, "attempt",
        (long long)options->attempt, "host", tfos_member_local_host(feeder->member), "executor_pid",
        (long long)tfos_process_find_executor(getpid()), "results",
        options->has_results ? Py_True : Py_False);

    return say(feeder, hello);
}

/// The driver's answer, a new reference. It comes once the cluster runs.
static PyObject *await_answer(struct tfos__feeder *feeder)
{
    int64_t deadline = tfos__slice_deadline(feeder->timeout_ms);
    struct tfos_error err = {0};

    for (;;) {
        enum tfos_status status = TFOS_OK;
        int64_t slice = tfos__slice_next(deadline);
        char *json = NULL;
        Py_BEGIN_ALLOW_THREADS
        status = tfos_member_wait(feeder->member, slice, &json, &err);
        Py_END_ALLOW_THREADS
        if (status == TFOS_OK)
            return tfos__document_parse(json);
        if (status != TFOS_TIMEOUT)
            return tfos__raise(status, &err);
        if (tfos__gate_check(feeder->gate) < 0)
            return NULL;
        if (tfos__slice_next(deadline) == 0)
            return tfos__raise_format(TFOS_TIMEOUT,
                                      "feed: partition %lld: the driver named no node to feed for "
                                      "%lld s: the cluster does not run yet, or the driver hangs",
                                      (long long)feeder->partition,
                                      (long long)(feeder->timeout_ms / 1000));
    }
}

static int64_t number_of(PyObject *message, const char *name)
{
    PyObject *value = tfos__document_get(message, name);

    return PyLong_Check(value) ? PyLong_AsLongLong(value) : 0;
}

/// Opens the lane by the way that `writer_options` says; END makes the partition one that is
/// skipped.
static enum tfos_status open_lane(struct tfos__feeder *feeder,
                                  const struct tfos_feed_writer_options *writer_options,
                                  struct tfos_error *err)
{
    struct tfos_feed_writer *writer = NULL;
    enum tfos_status status = TFOS_OK;

    Py_BEGIN_ALLOW_THREADS
    status = tfos_feed_writer_open(writer_options, &writer, err);
    Py_END_ALLOW_THREADS
    if (status == TFOS_OK)
        feeder->writer = writer;
    return status;
}

/// Opens a lane to the node that the driver named.
static int open_writer(struct tfos__feeder *feeder, const struct tfos__feeder_options *options,
                       PyObject *socket_name, PyObject *address, int64_t first_row)
{
    struct tfos_feed_writer_options writer_options = {
        .socket_name = socket_name != NULL ? PyBytes_AsString(socket_name) : NULL,
        .address = PyBytes_AsString(address),
        .cluster_id = options->cluster_id,
        .key = options->key,
        .queue = options->queue,
        .feed = options->feed,
        .partition = options->partition,
        .attempt = options->attempt,
        .first_row = first_row,
        .lane_size = options->lane_size,
        .has_results = options->has_results,
        .wait = {.timeout_ms = feeder->timeout_ms, .is_interrupted = watch, .context = feeder},
    };
    struct tfos_error err = {0};
    enum tfos_status status = open_lane(feeder, &writer_options, &err);

    // A node in another container of this host has its own abstract sockets.
    if (status == TFOS_NOT_FOUND && writer_options.socket_name != NULL) {
        writer_options.socket_name = NULL;
        status = open_lane(feeder, &writer_options, &err);
    }
    if (status == TFOS_END) {
        feeder->reason = PyUnicode_FromString("the trainer wants no more rows");
        return feeder->reason != NULL ? 0 : -1;
    }
    return status == TFOS_OK || conclude(feeder, status, &err) != TFOS__FEEDER_FAILED ? 0 : -1;
}

/// Text of a member as bytes, a new reference; NULL with an exception.
static PyObject *bytes_of(PyObject *message, const char *name)
{
    PyObject *value = tfos__document_get(message, name);

    if (PyUnicode_Check(value))
        return PyUnicode_AsUTF8String(value);
    return tfos__raise_format(TFOS_CORRUPT, "feed: the driver's message \"target\" has no %s",
                              name);
}

static int follow_target(struct tfos__feeder *feeder, const struct tfos__feeder_options *options,
                         PyObject *message)
{
    bool is_local = tfos__document_get(message, "local") == Py_True && !options->is_remote;
    PyObject *socket_name = is_local ? bytes_of(message, "socket_name") : NULL;
    PyObject *address = bytes_of(message, "address");
    int result = -1;

    feeder->first_row = number_of(message, "first_row");
    feeder->skip_count = feeder->first_row;
    if (!PyErr_Occurred())
        result = open_writer(feeder, options, socket_name, address, feeder->first_row);
    Py_XDECREF(socket_name);
    Py_XDECREF(address);
    if (result == 0 && feeder->writer != NULL) {
        PyObject *node = tfos__document_get(message, "node");
        Py_INCREF(node);
        Py_DECREF(feeder->node);
        feeder->node = node;
    }
    return result;
}

static int follow_answer(struct tfos__feeder *feeder, const struct tfos__feeder_options *options,
                         PyObject *message)
{
    if (tfos__document_is(message, "type", "target"))
        return follow_target(feeder, options, message);
    if (tfos__document_is(message, "type", "failed")) {
        raise_failure(feeder, message);
        return -1;
    }
    if (tfos__document_is(message, "type", "skip")) {
        feeder->reason = tfos__document_get(message, "reason");
        Py_INCREF(feeder->reason);
        return 0;
    }
    tfos__raise_format(TFOS_CORRUPT, "feed: partition %lld: the driver answered with %S",
                       (long long)feeder->partition, message);
    return -1;
}

static int join(struct tfos__feeder *feeder, const struct tfos__feeder_options *options)
{
    struct tfos_wait wait = {
        .timeout_ms =
            feeder->timeout_ms < CONNECT_TIMEOUT_MS ? feeder->timeout_ms : CONNECT_TIMEOUT_MS,
        .is_interrupted = watch,
        .context = feeder,
    };
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    PyObject *message = NULL;
    int result = 0;

    Py_BEGIN_ALLOW_THREADS
    status = tfos_member_open(options->address, options->cluster_id, options->key, &wait,
                              &feeder->member, &err);
    Py_END_ALLOW_THREADS
    if (feeder->is_interrupted)
        return -1;
    if (status < 0) {
        fail(status, &err);
        return -1;
    }
    if (say_hello(feeder, options) < 0)
        return -1;
    message = await_answer(feeder);
    if (message == NULL)
        return -1;
    result = follow_answer(feeder, options, message);
    Py_DECREF(message);
    return result;
}

struct tfos__feeder *tfos__feeder_open(const struct tfos__feeder_options *options,
                                       struct tfos__gate *gate)
{
    struct tfos__feeder *feeder = PyMem_Calloc(1, sizeof(*feeder));

    if (feeder == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF(Py_None);
    feeder->node = Py_None;
    feeder->gate = gate;
    feeder->partition = options->partition;
    feeder->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_MS;
    feeder->has_results = options->has_results;
    if (join(feeder, options) == 0)
        feeder->packer = tfos__packer_open(feeder->first_row);
    if (feeder->packer != NULL)
        return feeder;
    tfos__feeder_close(feeder);
    return NULL;
}

PyObject *tfos__feeder_node(const struct tfos__feeder *feeder)
{
    return feeder->node;
}

bool tfos__feeder_has_results(const struct tfos__feeder *feeder)
{
    return feeder->has_results;
}

int64_t tfos__feeder_row_count(const struct tfos__feeder *feeder)
{
    return feeder->writer != NULL ? tfos_feed_writer_row_count(feeder->writer) : 0;
}

/// Milliseconds, cheap enough for every row.
static int64_t now_about(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/// The next row that was not delivered by an earlier attempt, a new reference; NULL at the end or
/// with an exception.
static PyObject *next_row(struct tfos__feeder *feeder, PyObject *iterator)
{
    PyObject *row = feeder->refused;

    feeder->refused = NULL;
    if (row != NULL)
        return row;
    row = PyIter_Next(iterator);
    while (row != NULL && feeder->skip_count > 0) {
        Py_DECREF(row);
        feeder->skip_count--;
        if (feeder->skip_count % SKIPPED_ROWS == 0 && look_around(feeder) < 0)
            return NULL;
        row = PyIter_Next(iterator);
    }
    return row;
}

enum tfos__feeder_result tfos__feeder_fill(struct tfos__feeder *feeder, PyObject *iterator)
{
    for (;;) {
        PyObject *row = next_row(feeder, iterator);
        enum tfos__pack_result result = TFOS__PACK_ERROR;
        if (row == NULL && PyErr_Occurred())
            return TFOS__FEEDER_FAILED;
        if (row == NULL)
            break;
        result = tfos__packer_append(feeder->packer, row);
        if (result == TFOS__PACK_REFUSED) {
            feeder->refused = row;
            return TFOS__FEEDER_DONE;
        }
        Py_DECREF(row);
        if (result == TFOS__PACK_ERROR)
            return TFOS__FEEDER_FAILED;
        if (tfos__packer_row_count(feeder->packer) == 1)
            feeder->batch_ms = now_about();
        if (tfos__packer_is_full(feeder->packer) || now_about() - feeder->batch_ms > BATCH_AGE_MS)
            return TFOS__FEEDER_DONE;
    }
    return tfos__packer_row_count(feeder->packer) > 0 ? TFOS__FEEDER_DONE : TFOS__FEEDER_END;
}

static enum tfos__feeder_result result_of(struct tfos__feeder *feeder, enum tfos_status status,
                                          const struct tfos_error *err)
{
    if (status < 0)
        return conclude(feeder, status, err);
    if (status == TFOS_END)
        return TFOS__FEEDER_END;
    return status == TFOS_AGAIN ? TFOS__FEEDER_AGAIN : TFOS__FEEDER_DONE;
}

enum tfos__feeder_result tfos__feeder_append(struct tfos__feeder *feeder)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    if (look_around(feeder) < 0)
        return TFOS__FEEDER_FAILED;
    tfos__packer_show(feeder->packer, &schema, &array);
    Py_BEGIN_ALLOW_THREADS
    status = tfos_feed_writer_append(feeder->writer, schema, array, &err);
    Py_END_ALLOW_THREADS
    if (status == TFOS_OK)
        tfos__packer_clear(feeder->packer);
    return result_of(feeder, status, &err);
}

enum tfos__feeder_result tfos__feeder_append_batch(struct tfos__feeder *feeder,
                                                   const struct ArrowSchema *schema,
                                                   const struct ArrowArray *array)
{
    struct ArrowArray rest = *array; // what no earlier attempt has delivered
    int64_t skipped = feeder->skip_count < array->length ? feeder->skip_count : array->length;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    if (look_around(feeder) < 0)
        return TFOS__FEEDER_FAILED;
    feeder->skip_count -= skipped;
    rest.offset += skipped;
    rest.length -= skipped;
    if (rest.length == 0)
        return TFOS__FEEDER_DONE;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_feed_writer_append(feeder->writer, schema, &rest, &err);
    Py_END_ALLOW_THREADS
    return result_of(feeder, status, &err);
}

enum tfos__feeder_result tfos__feeder_finish(struct tfos__feeder *feeder)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    Py_BEGIN_ALLOW_THREADS
    status = tfos_feed_writer_finish(feeder->writer, &err);
    Py_END_ALLOW_THREADS
    return result_of(feeder, status, &err);
}

static PyObject *unpack_results(const struct ArrowSchema *schema, const struct ArrowArray *array)
{
    struct tfos__layout layout;
    PyObject *rows = NULL;

    if (tfos__layout_init(&layout, schema, array) < 0)
        return NULL;
    rows = PyList_New(0);
    if (rows != NULL && tfos__unpack_rows(&layout, array, 0, array->length, rows) < 0)
        Py_CLEAR(rows);
    tfos__layout_clear(&layout);
    return rows;
}

enum tfos__feeder_result tfos__feeder_take_results(struct tfos__feeder *feeder, bool waiting,
                                                   PyObject **results)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    struct ArrowSchema schema;
    struct ArrowArray array;

    Py_BEGIN_ALLOW_THREADS
    status = tfos_feed_writer_next_result(feeder->writer, waiting ? -1 : 0, &schema, &array, &err);
    Py_END_ALLOW_THREADS
    if (status != TFOS_OK)
        return result_of(feeder, status, &err);
    *results = unpack_results(&schema, &array);
    array.release(&array);
    schema.release(&schema);
    return *results != NULL ? TFOS__FEEDER_DONE : TFOS__FEEDER_FAILED;
}

enum tfos__feeder_result tfos__feeder_refuse_results(const struct tfos__feeder *feeder)
{
    tfos__raise_format(
        TFOS_CLOSED,
        "feed: partition %lld: its rows get no results, because the cluster takes no rows "
        "any more: %S",
        (long long)feeder->partition, feeder->reason);
    return TFOS__FEEDER_FAILED;
}

void tfos__feeder_close(struct tfos__feeder *feeder)
{
    if (feeder == NULL)
        return;
    feeder->is_closing = true;
    Py_BEGIN_ALLOW_THREADS
    tfos_feed_writer_close(feeder->writer);
    tfos_member_close(feeder->member, GOODBYE_MS);
    Py_END_ALLOW_THREADS
    tfos__packer_close(feeder->packer);
    Py_XDECREF(feeder->node);
    Py_XDECREF(feeder->reason);
    Py_XDECREF(feeder->refused);
    PyMem_Free(feeder);
}
