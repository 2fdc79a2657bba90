// SPDX-License-Identifier: Apache-2.0
// Invariant: the iterator holds at most one batch, and gives it back to the ring as soon as its
// last row was returned; rows that want results are counted in `pending` in the order in which they
// were returned.
#include "row_iterator.h"

#include <string.h>

#include "array_batch.h"
#include "error.h"
#include "handle.h"
#include "pending_rows.h"
#include "row_arrays.h"
#include "row_packer.h"
#include "row_unpacker.h"

/// A look for rows, once several threads use the iterator: the others wait for it.
#define SHARED_SLICE_MS 10

/// A ticket lock: threads that share the iterator use it one at a time, in the order in which they
/// came. Its functions are called with the GIL held, which waits release.
struct ticket_lock {
    pthread_mutex_t mutex;
    pthread_cond_t passed;
    int64_t next;    ///< the number that the next thread draws; guarded by the GIL
    int64_t present; ///< the number that has the lock; guarded by the mutex
};

struct tfos__py_row_iterator {
    struct tfos_feed_reader *reader; ///< borrowed
    struct tfos__py_guard *guard;    ///< borrowed
    struct tfos__py_guard *feed;     ///< borrowed; while `calls` is above 0 it is entered
    struct ticket_lock lock;         ///< of the calls: who has it uses the reader and what follows
    int calls;      ///< that use the reader or have passed the lock on while they wait
    bool is_shared; ///< a call has found another at work
    bool is_terminated;
    bool is_ended;     ///< the reader has given its END
    int64_t epoch_end; ///< ends of epochs that were read and not reported yet
    bool has_batch;
    struct tfos_feed_item batch;       ///< owned while has_batch
    struct tfos__py_row_schema schema; ///< of the batch
    int64_t row;                       ///< next row of the batch
    struct tfos__py_pending_rows pending;
};

/// What rows go into: a list, lists of columns, or arrays.
struct taker {
    PyObject *rows;
    PyObject *columns, *lists; ///< names, and a list for each
    struct tfos__py_row_arrays *arrays;
};

enum outcome { FAILED = -1, ROWS, EPOCH_END, FEED_END };

// ---- the lock. Invariant: present <= next, and the two are equal while nobody has it.

static void lock_init(struct ticket_lock *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->passed, NULL);
    lock->next = lock->present = 0;
}

static int64_t get_present(struct ticket_lock *lock)
{
    int64_t present = 0;

    pthread_mutex_lock(&lock->mutex);
    present = lock->present;
    pthread_mutex_unlock(&lock->mutex);
    return present;
}

/// Waits for those that came before.
static void lock_take(struct ticket_lock *lock)
{
    int64_t number = lock->next++;

    if (get_present(lock) == number)
        return;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&lock->mutex);
    while (lock->present != number)
        pthread_cond_wait(&lock->passed, &lock->mutex);
    pthread_mutex_unlock(&lock->mutex);
    Py_END_ALLOW_THREADS
}

/// Lets the next thread come.
static void lock_pass(struct ticket_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    lock->present++;
    pthread_cond_broadcast(&lock->passed);
    pthread_mutex_unlock(&lock->mutex);
}

/// Whether some thread has the lock or waits for it.
static bool lock_is_taken(struct ticket_lock *lock)
{
    return get_present(lock) != lock->next;
}

/// Whether others wait for the caller to pass it on.
static bool lock_is_wanted(struct ticket_lock *lock)
{
    return get_present(lock) + 1 != lock->next;
}

static void lock_clear(struct ticket_lock *lock)
{
    pthread_cond_destroy(&lock->passed);
    pthread_mutex_destroy(&lock->mutex);
}

// ---- rows

struct tfos__py_row_iterator *tfos__py_row_iterator_open(struct tfos_feed_reader *reader,
                                                         struct tfos__py_guard *guard,
                                                         struct tfos__py_guard *feed)
{
    struct tfos__py_row_iterator *iterator = PyMem_Calloc(1, sizeof(*iterator));

    if (!iterator) {
        PyErr_NoMemory();
        return NULL;
    }
    iterator->reader = reader;
    iterator->guard = guard;
    iterator->feed = feed;
    lock_init(&iterator->lock);
    return iterator;
}

struct tfos_feed_reader *tfos__py_row_iterator_reader(const struct tfos__py_row_iterator *iterator)
{
    return iterator->reader;
}

/// Keeps datasets out, and other threads as long as this one does not give way.
static int take(struct tfos__py_row_iterator *iterator)
{
    int result = 0;

    iterator->is_shared = iterator->is_shared || lock_is_taken(&iterator->lock);
    lock_take(&iterator->lock);
    if (iterator->calls == 0 && tfos__py_guard_is_used(iterator->feed)) {
        tfos__py_raise_format(TFOS_INVALID,
                              "feed: a dataset (ctx.get_dataset) is reading it, and it "
                              "belongs to one at a time");
        result = -1;
    } else if (iterator->calls == 0) {
        result = tfos__py_guard_enter(iterator->feed);
    }
    if (result == 0)
        iterator->calls++;
    else
        lock_pass(&iterator->lock);
    return result;
}

static void leave(struct tfos__py_row_iterator *iterator)
{
    if (--iterator->calls == 0)
        tfos__py_guard_leave(iterator->feed);
    lock_pass(&iterator->lock);
}

/// Between two looks for rows: lets those come in that wait meanwhile, so that one thread can
/// answer rows while another waits for more. What the iterator holds may be another's then.
static void yield_lock(struct tfos__py_row_iterator *iterator)
{
    if (!lock_is_wanted(&iterator->lock))
        return;
    lock_pass(&iterator->lock);
    lock_take(&iterator->lock);
}

/// How long a look for rows may take.
static int64_t next_slice(const struct tfos__py_row_iterator *iterator, int64_t deadline)
{
    int64_t slice = tfos__py_next_slice(deadline);

    return iterator->is_shared && slice > SHARED_SLICE_MS ? SHARED_SLICE_MS : slice;
}

static void drop_batch(struct tfos__py_row_iterator *iterator)
{
    if (!iterator->has_batch)
        return;
    iterator->has_batch = false;
    tfos__py_row_schema_clear(&iterator->schema);
    iterator->batch.array.release(&iterator->batch.array);
    iterator->batch.schema.release(&iterator->batch.schema);
}

static int hold_batch(struct tfos__py_row_iterator *iterator, const struct tfos_feed_item *item)
{
    iterator->batch = *item;
    iterator->row = 0;
    if (tfos__py_row_schema_init(&iterator->schema, &iterator->batch.schema,
                                 &iterator->batch.array) == 0) {
        iterator->has_batch = true;
        return 0;
    }
    iterator->batch.array.release(&iterator->batch.array);
    iterator->batch.schema.release(&iterator->batch.schema);
    return -1;
}

/// Looks for the next thing of the feed: OK (in `item`; a batch is held), END, AGAIN when none
/// comes within `slice` ms; negative with an exception.
static enum tfos_status fetch(struct tfos__py_row_iterator *iterator, int64_t slice,
                              struct tfos_feed_item *item)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    if (iterator->is_terminated || iterator->is_ended) {
        iterator->is_ended = true;
        return TFOS_END;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tfos_feed_reader_next(iterator->reader, slice, item, &err);
    Py_END_ALLOW_THREADS
    if (status < 0)
        tfos__py_raise(status, &err);
    if (status == TFOS_END)
        iterator->is_ended = true;
    if (status == TFOS_OK && item->kind == TFOS_FEED_BATCH && hold_batch(iterator, item) < 0)
        return TFOS_CORRUPT;
    if (status == TFOS_OK && item->kind == TFOS_FEED_EPOCH_END)
        iterator->epoch_end++;
    if (status == TFOS_AGAIN && tfos__py_guard_check(iterator->guard) < 0)
        return TFOS_CLOSED;
    return status;
}

/// Returns rows of the batch, `limit` at most; their number, or -1.
static int64_t give(struct tfos__py_row_iterator *iterator, int64_t limit, struct taker *taker)
{
    const struct ArrowArray *array = &iterator->batch.array;
    struct tfos__py_row_origin origin = {
        .partition = iterator->batch.partition,
        .first_row = iterator->batch.first_row,
    };
    int64_t left = array->length - iterator->row;
    int64_t count = left < limit ? left : limit;
    int result = 0;

    if (taker->rows)
        result = tfos__py_unpack_rows(&iterator->schema, array, iterator->row, count, taker->rows);
    else if (taker->lists)
        result = tfos__py_selection_unpack(taker->columns, &iterator->schema, array, iterator->row,
                                           count, &origin, taker->lists);
    else if (count > 0)
        result = tfos__py_row_arrays_append(taker->arrays, &iterator->schema, array, iterator->row,
                                            count, &origin);
    if (result < 0 ||
        (count > 0 && tfos__py_pending_rows_add(&iterator->pending, &iterator->batch, count) < 0))
        return -1;
    iterator->row += count;
    tfos_feed_batch_use(array, count);
    if (iterator->row == array->length)
        drop_batch(iterator);
    return count;
}

/// Where the rows of a call came from, so that it does not go beyond their partition.
struct origin {
    int64_t feed, partition;
};

static bool is_same(const struct origin *origin, const struct tfos_feed_item *item)
{
    return origin->feed == item->feed && origin->partition == item->partition;
}

static enum outcome time_out(const struct tfos__py_row_iterator_request *request)
{
    tfos__py_raise_format(TFOS_TIMEOUT, "feed: no row came within %lld ms",
                          (long long)request->timeout_ms);
    return FAILED;
}

/// Gives rows to the taker until the request is met.
static enum outcome collect(struct tfos__py_row_iterator *iterator,
                            const struct tfos__py_row_iterator_request *request,
                            struct taker *taker)
{
    int64_t deadline = tfos__py_deadline(request->timeout_ms), taken = 0;
    struct origin origin = {0};
    struct tfos_feed_item item;

    while (taken < request->count) {
        // Results go to one partition a call, so rows that want one come from one partition a call.
        bool is_alone =
            request->stop_at_partition || (iterator->has_batch && iterator->batch.has_results);
        if (iterator->is_terminated)
            drop_batch(iterator);
        if (iterator->epoch_end > 0 && request->stop_at_epoch) {
            if (taken > 0)
                return ROWS;
            iterator->epoch_end--;
            return EPOCH_END;
        }
        iterator->epoch_end = 0;
        if (iterator->has_batch) {
            int64_t count = 0;
            if (taken > 0 && is_alone && !is_same(&origin, &iterator->batch))
                return ROWS;
            origin = (struct origin){iterator->batch.feed, iterator->batch.partition};
            count = give(iterator, request->count - taken, taker);
            if (count < 0)
                return FAILED;
            taken += count;
        } else {
            enum tfos_status status = fetch(iterator, next_slice(iterator, deadline), &item);
            if (status < 0)
                return FAILED;
            if (status == TFOS_END)
                return taken > 0 ? ROWS : FEED_END;
            if (status == TFOS_AGAIN && tfos__py_next_slice(deadline) == 0)
                return taken > 0 ? ROWS : time_out(request);
            if (status == TFOS_AGAIN)
                yield_lock(iterator);
            else if (item.kind == TFOS_FEED_PARTITION_END && request->stop_at_partition &&
                     taken > 0 && is_same(&origin, &item))
                return ROWS;
        }
    }
    return ROWS;
}

static PyObject *none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

/// A tuple of empty lists.
static PyObject *new_lists(Py_ssize_t count)
{
    PyObject *lists = PyTuple_New(count);

    for (Py_ssize_t i = 0; lists && i < count; i++) {
        PyObject *list = PyList_New(0);
        if (!list || PyTuple_SetItem(lists, i, list) < 0)
            Py_CLEAR(lists);
    }
    return lists;
}

PyObject *tfos__py_row_iterator_next_rows(struct tfos__py_row_iterator *iterator,
                                          const struct tfos__py_row_iterator_request *request)
{
    struct taker taker = {.columns = request->columns};
    enum outcome outcome = FAILED;
    PyObject *result = NULL;

    if (taker.columns)
        result = taker.lists = new_lists(PyTuple_Size(taker.columns));
    else
        result = taker.rows = PyList_New(0);
    if (!result)
        return NULL;
    if (take(iterator) == 0) {
        outcome = collect(iterator, request, &taker);
        leave(iterator);
    }
    if (outcome == ROWS || outcome == EPOCH_END)
        return result;
    Py_DECREF(result);
    return outcome == FEED_END ? none() : NULL;
}

PyObject *tfos__py_row_iterator_next_arrays(struct tfos__py_row_iterator *iterator,
                                            const struct tfos__py_row_iterator_request *request)
{
    struct taker taker = {.arrays = tfos__py_row_arrays_open(request->count, request->columns)};
    enum outcome outcome = FAILED;
    PyObject *result = NULL;

    if (!taker.arrays)
        return NULL;
    if (take(iterator) == 0) {
        outcome = collect(iterator, request, &taker);
        leave(iterator);
    }
    if (outcome == ROWS)
        result = tfos__py_row_arrays_finish(taker.arrays);
    else if (outcome == EPOCH_END)
        result = PyTuple_New(0);
    else if (outcome == FEED_END)
        result = none();
    tfos__py_row_arrays_close(taker.arrays);
    return result;
}

/// Sends a batch of results. Those for a task that has gone are dropped: Spark runs it again.
static int send_batch(struct tfos__py_row_iterator *iterator, const struct ArrowSchema *schema,
                      const struct ArrowArray *array)
{
    const struct tfos__py_pending *oldest = tfos__py_pending_rows_oldest(&iterator->pending);
    int channel = oldest ? oldest->channel : -1;
    struct tfos__py_watch watch = {.guard = iterator->guard};
    struct tfos_wait wait = {.is_interrupted = tfos__py_guard_is_interrupted, .context = &watch};
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    Py_BEGIN_ALLOW_THREADS
    status = tfos_feed_reader_put_results(iterator->reader, channel, schema, array, &wait, &err);
    Py_END_ALLOW_THREADS
    if (watch.is_interrupted)
        return -1;
    if (status < 0 && status != TFOS_CLOSED) {
        tfos__py_raise(status, &err);
        return -1;
    }
    tfos__py_pending_rows_remove(&iterator->pending, array->length);
    return tfos__py_guard_check(iterator->guard);
}

/// Sends what is packed.
static int send_packed(void *context, struct tfos__py_row_packer *packer)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;

    if (tfos__py_row_packer_show(packer, &schema, &array) < 0)
        return -1;
    return send_batch(context, schema, array);
}

/// Whether the next results become columns of a DataFrame.
static bool is_for_frame(const struct tfos__py_row_iterator *iterator)
{
    const struct tfos__py_pending *oldest = tfos__py_pending_rows_oldest(&iterator->pending);

    return oldest && oldest->is_frame;
}

int tfos__py_row_iterator_put_results(struct tfos__py_row_iterator *iterator, PyObject *results)
{
    struct tfos__py_row_packer *packer = NULL;
    int result = -1;

    if (PyList_Size(results) == 0)
        return 0;
    if (take(iterator) < 0)
        return -1;
    if (tfos__py_pending_rows_check(&iterator->pending, PyList_Size(results)) == 0) {
        packer = tfos__py_row_packer_open(0, is_for_frame(iterator));
        if (packer)
            result = tfos__py_row_packer_append_all(packer, results, send_packed, iterator);
        tfos__py_row_packer_close(packer);
    }
    leave(iterator);
    return result;
}

/// Sends arrays that have rows.
static int send_arrays(struct tfos__py_row_iterator *iterator, struct tfos__py_array_batch *batch)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    int result = -1;

    if (take(iterator) < 0)
        return -1;
    if (tfos__py_pending_rows_check(&iterator->pending, tfos__py_array_batch_row_count(batch)) ==
        0) {
        result = tfos__py_array_batch_show(batch, &schema, &array) < 0
                     ? -1
                     : send_batch(iterator, schema, array);
    }
    leave(iterator);
    return result;
}

int tfos__py_row_iterator_put_arrays(struct tfos__py_row_iterator *iterator, PyObject *arrays)
{
    struct tfos__py_array_batch *batch = tfos__py_array_batch_open(arrays, is_for_frame(iterator));
    int result = 0;

    if (!batch)
        return -1;
    if (tfos__py_array_batch_row_count(batch) > 0)
        result = send_arrays(iterator, batch);
    tfos__py_array_batch_close(batch);
    return result;
}

int tfos__py_row_iterator_is_at_end(struct tfos__py_row_iterator *iterator)
{
    enum tfos_status status = TFOS_OK;
    struct tfos_feed_item item;

    if (iterator->is_terminated)
        return 1;
    if (iterator->has_batch || lock_is_taken(&iterator->lock) ||
        tfos__py_guard_is_used(iterator->feed))
        return 0;
    if (take(iterator) < 0)
        return -1;
    // A partition's end without rows before it means nothing, and ends of epochs are noted.
    while (status == TFOS_OK && !iterator->has_batch)
        status = fetch(iterator, 0, &item);
    leave(iterator);
    if (status < 0)
        return -1;
    return status == TFOS_END;
}

void tfos__py_row_iterator_terminate(struct tfos__py_row_iterator *iterator)
{
    iterator->is_terminated = true;
    Py_BEGIN_ALLOW_THREADS
    tfos_feed_reader_terminate(iterator->reader);
    Py_END_ALLOW_THREADS
}

void tfos__py_row_iterator_close(struct tfos__py_row_iterator *iterator)
{
    if (!iterator)
        return;
    drop_batch(iterator);
    lock_clear(&iterator->lock);
    tfos__py_pending_rows_clear(&iterator->pending);
    PyMem_Free(iterator);
}
