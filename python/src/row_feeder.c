// SPDX-License-Identifier: Apache-2.0
// Feeding a partition. Invariant: the packer holds rows that were taken from the iterator and not
// yet appended; a row that did not fit their schema waits in `refused`. While the library waits it
// asks the guard, which takes the GIL for a moment: an exception set there ends the wait.
#include "row_feeder.h"

#include <tfos/feeder.h>
#include <time.h>

#include "arrow_batch.h"
#include "error.h"
#include "row_packer.h"
#include "row_unpacker.h"

#define BATCH_AGE_MS 200  ///< a batch is not held back for longer, however slowly rows come
#define SKIPPED_ROWS 4096 ///< rows skipped between checks for signals

struct tfos__py_row_feeder {
    struct tfos__py_watch watch;        ///< its guard is borrowed
    struct tfos_feeder *feeder;         ///< owned
    struct tfos__py_row_packer *packer; ///< owned
    PyObject *node;                     ///< owned
    PyObject *refused;                  ///< a row that the batch refused; owned
    int64_t skip_count;                 ///< rows to skip yet
    int64_t batch_ms;                   ///< when the batch's first row came
    bool has_results;
};

/// Raises a failed call's exception, unless the one that ended its wait is there already.
static enum tfos_status conclude(const struct tfos__py_row_feeder *self, enum tfos_status status,
                                 const struct tfos_error *err)
{
    if (status < 0 && !self->watch.is_interrupted)
        tfos__py_raise(status, err);
    return status;
}

static int join(struct tfos__py_row_feeder *self, const struct tfos__py_row_feeder_options *options)
{
    struct tfos_feeder_options wanted = {
        .address = options->address,
        .cluster_id = options->cluster_id,
        .key = options->key,
        .queue = options->queue,
        .job = options->job,
        .feed = options->feed,
        .partition = options->partition,
        .attempt = options->attempt,
        .channel_size = options->channel_size,
        .has_results = options->has_results,
        .is_remote = options->is_remote,
        .wait = {options->timeout_ms, tfos__py_guard_is_interrupted, &self->watch},
        .ahead_rows = options->ahead_rows,
        .refuses_pickles = !options->allows_pickle,
    };
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    const char *node = NULL;

    if (options->stage >= 0)
        tfos_feeder_number_lazily(&wanted, options->stage);
    Py_BEGIN_ALLOW_THREADS
    status = tfos_feeder_open(&wanted, &self->feeder, &err);
    Py_END_ALLOW_THREADS
    if (conclude(self, status, &err) < 0)
        return -1;
    node = tfos_feeder_node(self->feeder);
    self->node = Py_BuildValue("z", node);
    self->skip_count = tfos_feeder_first_row(self->feeder);
    self->packer = tfos__py_row_packer_open(self->skip_count, false);
    return self->node && self->packer ? 0 : -1;
}

struct tfos__py_row_feeder *
tfos__py_row_feeder_open(const struct tfos__py_row_feeder_options *options,
                         struct tfos__py_guard *guard)
{
    struct tfos__py_row_feeder *self = PyMem_Calloc(1, sizeof(*self));

    if (!self) {
        PyErr_NoMemory();
        return NULL;
    }
    self->watch.guard = guard;
    self->has_results = options->has_results;
    if (join(self, options) == 0)
        return self;
    tfos__py_row_feeder_close(self);
    return NULL;
}

PyObject *tfos__py_row_feeder_node(const struct tfos__py_row_feeder *self)
{
    return self->node;
}

bool tfos__py_row_feeder_has_results(const struct tfos__py_row_feeder *self)
{
    return self->has_results;
}

int64_t tfos__py_row_feeder_row_count(const struct tfos__py_row_feeder *self)
{
    return tfos_feeder_row_count(self->feeder);
}

/// Looks after signals, a close() in another thread, and the driver. -1 with an exception.
static int check_interrupts(struct tfos__py_row_feeder *self)
{
    struct tfos_error err = {0};

    return conclude(self, tfos_feeder_check(self->feeder, &err), &err) == TFOS_OK ? 0 : -1;
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
static PyObject *next_row(struct tfos__py_row_feeder *self, PyObject *iterator)
{
    PyObject *row = self->refused;

    self->refused = NULL;
    if (row)
        return row;
    row = PyIter_Next(iterator);
    while (row && self->skip_count > 0) {
        Py_DECREF(row);
        self->skip_count--;
        if (self->skip_count % SKIPPED_ROWS == 0 && check_interrupts(self) < 0)
            return NULL;
        row = PyIter_Next(iterator);
    }
    return row;
}

enum tfos_status tfos__py_row_feeder_fill(struct tfos__py_row_feeder *self, PyObject *iterator)
{
    for (;;) {
        PyObject *row = next_row(self, iterator);
        enum tfos__py_pack_result result = TFOS__PACK_ERROR;
        if (!row && PyErr_Occurred())
            return TFOS_INVALID;
        if (!row)
            break;
        result = tfos__py_row_packer_append(self->packer, row);
        if (result == TFOS__PACK_REFUSED) {
            self->refused = row;
            return TFOS_OK;
        }
        Py_DECREF(row);
        if (result == TFOS__PACK_ERROR)
            return TFOS_INVALID;
        if (tfos__py_row_packer_row_count(self->packer) == 1)
            self->batch_ms = now_about();
        if (tfos__py_row_packer_is_full(self->packer) ||
            now_about() - self->batch_ms > BATCH_AGE_MS)
            return TFOS_OK;
    }
    return tfos__py_row_packer_row_count(self->packer) > 0 ? TFOS_OK : TFOS_END;
}

enum tfos_status tfos__py_row_feeder_append(struct tfos__py_row_feeder *self)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    if (tfos__py_row_packer_show(self->packer, &schema, &array) < 0)
        return TFOS_INVALID;
    Py_BEGIN_ALLOW_THREADS
    status = tfos_feeder_append(self->feeder, schema, array, &err);
    Py_END_ALLOW_THREADS
    if (status == TFOS_OK && tfos__py_row_packer_clear(self->packer) < 0)
        return TFOS_INVALID;
    return conclude(self, status, &err);
}

enum tfos_status tfos__py_row_feeder_append_batch(struct tfos__py_row_feeder *self,
                                                  const struct ArrowSchema *schema,
                                                  const struct ArrowArray *array)
{
    struct ArrowArray rest = *array; // what no earlier attempt has delivered
    int64_t skipped = self->skip_count < array->length ? self->skip_count : array->length;
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    rest.offset += skipped;
    rest.length -= skipped;
    if (rest.length == 0) {
        self->skip_count -= skipped;
        return TFOS_OK;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tfos_feeder_append(self->feeder, schema, &rest, &err);
    Py_END_ALLOW_THREADS
    if (status == TFOS_OK)
        self->skip_count -= skipped;
    return conclude(self, status, &err);
}

enum tfos_status tfos__py_row_feeder_finish(struct tfos__py_row_feeder *self)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    Py_BEGIN_ALLOW_THREADS
    status = tfos_feeder_finish(self->feeder, &err);
    Py_END_ALLOW_THREADS
    return conclude(self, status, &err);
}

enum tfos_status tfos__py_row_feeder_take_results(struct tfos__py_row_feeder *self, bool waiting,
                                                  bool as_columns, PyObject **results)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;
    struct ArrowSchema schema;
    struct ArrowArray array;

    Py_BEGIN_ALLOW_THREADS
    status = tfos_feeder_next_result(self->feeder, waiting ? -1 : 0, &schema, &array, &err);
    Py_END_ALLOW_THREADS
    if (status != TFOS_OK)
        return conclude(self, status, &err);
    if (as_columns) {
        *results = tfos__py_arrow_batch_new(&schema, &array);
    } else {
        *results = tfos__py_unpack_batch(&schema, &array);
        array.release(&array);
        schema.release(&schema);
    }
    return *results ? TFOS_OK : TFOS_INVALID;
}

void tfos__py_row_feeder_close(struct tfos__py_row_feeder *self)
{
    if (!self)
        return;
    Py_BEGIN_ALLOW_THREADS
    tfos_feeder_close(self->feeder);
    Py_END_ALLOW_THREADS
    tfos__py_row_packer_close(self->packer);
    Py_XDECREF(self->node);
    Py_XDECREF(self->refused);
    PyMem_Free(self);
}
