// SPDX-License-Identifier: Apache-2.0
// Cursors. Invariant: the cursor holds at most one batch, and gives it back to the ring as soon as
// its last row was given out; rows with results are counted in `waiting` in the order in which they
// were given out.
#include "row_iterator.h"
#include "array_batch.h"
#include "row_arrays.h"
#include "error.h"
#include "row_packer.h"
#include "slice.h"
#include "ticket_lock.h"
#include "row_unpacker.h"

#include <string.h>

/// A look for rows, once several threads use the cursor: the others wait for it.
#define SHARED_SLICE_MS 10

/// Rows of one partition that were given out and have no result yet.
struct unanswered {
    int lane;
    int64_t partition;
    int64_t count;
    bool is_frame; ///< they came from a DataFrame, and their results go to one
};

struct tfos__py_row_iterator {
    struct tfos_feed_reader *reader; ///< borrowed
    struct tfos__py_guard *gate;         ///< borrowed
    struct tfos__py_guard *feed;         ///< borrowed; while `calls` is above 0 it is entered
    struct tfos__py_ticket_lock turn;          ///< of the calls: who has it uses the reader and what follows
    int calls;                       ///< that use the reader or have given way to another
    bool is_shared;                  ///< a call has found another at work
    bool is_terminated;
    bool is_ended;     ///< the reader has given its END
    int64_t epoch_end; ///< ends of epochs that came and were not told yet
    bool has_batch;
    struct tfos_feed_item batch; ///< owned while has_batch
    struct tfos__py_row_schema layout;  ///< of the batch
    int64_t row;                 ///< next row of the batch
    struct unanswered *waiting;  ///< owned; oldest first
    size_t waiting_count, waiting_capacity;
};

/// What rows go into: a list, lists of columns, or arrays.
struct taker {
    PyObject *rows;
    PyObject *columns, *lists; ///< names, and a list for each
    struct tfos__py_row_arrays *arrays;
};

enum outcome { FAILED = -1, ROWS, EPOCH_END, FEED_END };

struct tfos__py_row_iterator *tfos__py_row_iterator_open(struct tfos_feed_reader *reader, struct tfos__py_guard *gate,
                                       struct tfos__py_guard *feed)
{
    struct tfos__py_row_iterator *cursor = PyMem_Calloc(1, sizeof(*cursor));

    if (cursor == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    cursor->reader = reader;
    cursor->gate = gate;
    cursor->feed = feed;
    tfos__py_ticket_lock_init(&cursor->turn);
    return cursor;
}

struct tfos_feed_reader *tfos__py_row_iterator_reader(const struct tfos__py_row_iterator *cursor)
{
    return cursor->reader;
}

/// Keeps datasets out, and other threads as long as this one does not give way.
static int take(struct tfos__py_row_iterator *cursor)
{
    int result = 0;

    cursor->is_shared = cursor->is_shared || tfos__py_ticket_lock_is_taken(&cursor->turn);
    tfos__py_ticket_lock_take(&cursor->turn);
    if (cursor->calls == 0 && tfos__py_guard_is_used(cursor->feed)) {
        tfos__py_raise_format(TFOS_INVALID, "feed: a dataset (ctx.get_dataset) is reading it, and it "
                                         "belongs to one at a time");
        result = -1;
    } else if (cursor->calls == 0) {
        result = tfos__py_guard_enter(cursor->feed);
    }
    if (result == 0)
        cursor->calls++;
    else
        tfos__py_ticket_lock_pass(&cursor->turn);
    return result;
}

static void leave(struct tfos__py_row_iterator *cursor)
{
    if (--cursor->calls == 0)
        tfos__py_guard_leave(cursor->feed);
    tfos__py_ticket_lock_pass(&cursor->turn);
}

/// Between two looks for rows: lets those come in that wait meanwhile, so that one thread can
/// answer rows while another waits for more. What the cursor holds may be another's then.
static void give_way(struct tfos__py_row_iterator *cursor)
{
    if (!tfos__py_ticket_lock_is_wanted(&cursor->turn))
        return;
    tfos__py_ticket_lock_pass(&cursor->turn);
    tfos__py_ticket_lock_take(&cursor->turn);
}

/// How long a look for rows may take.
static int64_t next_slice(const struct tfos__py_row_iterator *cursor, int64_t deadline)
{
    int64_t slice = tfos__py_slice_next(deadline);

    return cursor->is_shared && slice > SHARED_SLICE_MS ? SHARED_SLICE_MS : slice;
}

static void drop_batch(struct tfos__py_row_iterator *cursor)
{
    if (!cursor->has_batch)
        return;
    cursor->has_batch = false;
    tfos__py_row_schema_clear(&cursor->layout);
    cursor->batch.array.release(&cursor->batch.array);
    cursor->batch.schema.release(&cursor->batch.schema);
}

static int hold_batch(struct tfos__py_row_iterator *cursor, const struct tfos_feed_item *item)
{
    cursor->batch = *item;
    cursor->row = 0;
    if (tfos__py_row_schema_init(&cursor->layout, &cursor->batch.schema, &cursor->batch.array) == 0) {
        cursor->has_batch = true;
        return 0;
    }
    cursor->batch.array.release(&cursor->batch.array);
    cursor->batch.schema.release(&cursor->batch.schema);
    return -1;
}

/// Looks for the next thing of the feed: OK (in `item`; a batch is held), END, AGAIN when none
/// comes within `slice` ms; negative with an exception.
static enum tfos_status fetch(struct tfos__py_row_iterator *cursor, int64_t slice,
                              struct tfos_feed_item *item)
{
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    if (cursor->is_terminated || cursor->is_ended) {
        cursor->is_ended = true;
        return TFOS_END;
    }
    Py_BEGIN_ALLOW_THREADS
    status = tfos_feed_reader_next(cursor->reader, slice, item, &err);
    Py_END_ALLOW_THREADS
    if (status < 0)
        tfos__py_raise(status, &err);
    if (status == TFOS_END)
        cursor->is_ended = true;
    if (status == TFOS_OK && item->kind == TFOS_FEED_BATCH && hold_batch(cursor, item) < 0)
        return TFOS_CORRUPT;
    if (status == TFOS_OK && item->kind == TFOS_FEED_EPOCH_END)
        cursor->epoch_end++;
    if (status == TFOS_AGAIN && tfos__py_guard_check(cursor->gate) < 0)
        return TFOS_CLOSED;
    return status;
}

/// Notes that `count` rows of the batch wait for results.
static int note_unanswered(struct tfos__py_row_iterator *cursor, int64_t count)
{
    struct unanswered *last = NULL;
    char kind[16];

    if (!cursor->batch.has_results)
        return 0;
    if (cursor->waiting_count > 0)
        last = &cursor->waiting[cursor->waiting_count - 1];
    if (last != NULL && last->lane == cursor->batch.lane) {
        last->count += count;
        return 0;
    }
    if (cursor->waiting_count == cursor->waiting_capacity) {
        size_t capacity = cursor->waiting_capacity * 2 + 8;
        struct unanswered *waiting =
            PyMem_Realloc(cursor->waiting, capacity * sizeof(*cursor->waiting));
        if (waiting == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        cursor->waiting = waiting;
        cursor->waiting_capacity = capacity;
    }
    cursor->waiting[cursor->waiting_count++] = (struct unanswered){
        .lane = cursor->batch.lane,
        .partition = cursor->batch.partition,
        .count = count,
        .is_frame =
            !tfos_arrow_metadata_find(cursor->batch.schema.metadata, "tfos.row", kind, sizeof kind),
    };
    return 0;
}

/// Gives out rows of the batch, `limit` at most; their number, or -1.
static int64_t give(struct tfos__py_row_iterator *cursor, int64_t limit, struct taker *taker)
{
    const struct ArrowArray *array = &cursor->batch.array;
    struct tfos__py_row_origin origin = {
        .partition = cursor->batch.partition,
        .first_row = cursor->batch.first_row,
    };
    int64_t left = array->length - cursor->row;
    int64_t count = left < limit ? left : limit;
    int result = 0;

    if (taker->rows != NULL)
        result = tfos__py_unpack_rows(&cursor->layout, array, cursor->row, count, taker->rows);
    else if (taker->lists != NULL)
        result = tfos__py_selection_unpack(taker->columns, &cursor->layout, array, cursor->row, count,
                                        &origin, taker->lists);
    else if (count > 0)
        result =
            tfos__py_row_arrays_append(taker->arrays, &cursor->layout, array, cursor->row, count, &origin);
    if (result < 0 || (count > 0 && note_unanswered(cursor, count) < 0))
        return -1;
    cursor->row += count;
    tfos_feed_batch_use(array, count);
    if (cursor->row == array->length)
        drop_batch(cursor);
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
static enum outcome gather(struct tfos__py_row_iterator *cursor, const struct tfos__py_row_iterator_request *request,
                           struct taker *taker)
{
    int64_t deadline = tfos__py_slice_deadline(request->timeout_ms), taken = 0;
    struct origin origin = {0};
    struct tfos_feed_item item;

    while (taken < request->count) {
        // Results go to one partition a call, so rows that want one come from one partition a call.
        bool is_alone =
            request->stop_at_partition || (cursor->has_batch && cursor->batch.has_results);
        if (cursor->is_terminated)
            drop_batch(cursor);
        if (cursor->epoch_end > 0 && request->stop_at_epoch) {
            if (taken > 0)
                return ROWS;
            cursor->epoch_end--;
            return EPOCH_END;
        }
        cursor->epoch_end = 0;
        if (cursor->has_batch) {
            int64_t count = 0;
            if (taken > 0 && is_alone && !is_same(&origin, &cursor->batch))
                return ROWS;
            origin = (struct origin){cursor->batch.feed, cursor->batch.partition};
            count = give(cursor, request->count - taken, taker);
            if (count < 0)
                return FAILED;
            taken += count;
        } else {
            enum tfos_status status = fetch(cursor, next_slice(cursor, deadline), &item);
            if (status < 0)
                return FAILED;
            if (status == TFOS_END)
                return taken > 0 ? ROWS : FEED_END;
            if (status == TFOS_AGAIN && tfos__py_slice_next(deadline) == 0)
                return taken > 0 ? ROWS : time_out(request);
            if (status == TFOS_AGAIN)
                give_way(cursor);
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

    for (Py_ssize_t i = 0; lists != NULL && i < count; i++) {
        PyObject *list = PyList_New(0);
        if (list == NULL || PyTuple_SetItem(lists, i, list) < 0)
            Py_CLEAR(lists);
    }
    return lists;
}

PyObject *tfos__py_row_iterator_next_rows(struct tfos__py_row_iterator *cursor,
                                 const struct tfos__py_row_iterator_request *request)
{
    struct taker taker = {.columns = request->columns};
    enum outcome outcome = FAILED;
    PyObject *result = NULL;

    if (taker.columns != NULL)
        result = taker.lists = new_lists(PyTuple_Size(taker.columns));
    else
        result = taker.rows = PyList_New(0);
    if (result == NULL)
        return NULL;
    if (take(cursor) == 0) {
        outcome = gather(cursor, request, &taker);
        leave(cursor);
    }
    if (outcome == ROWS || outcome == EPOCH_END)
        return result;
    Py_DECREF(result);
    return outcome == FEED_END ? none() : NULL;
}

PyObject *tfos__py_row_iterator_next_arrays(struct tfos__py_row_iterator *cursor,
                                   const struct tfos__py_row_iterator_request *request)
{
    struct taker taker = {.arrays = tfos__py_row_arrays_open(request->count, request->columns)};
    enum outcome outcome = FAILED;
    PyObject *result = NULL;

    if (taker.arrays == NULL)
        return NULL;
    if (take(cursor) == 0) {
        outcome = gather(cursor, request, &taker);
        leave(cursor);
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

static void note_answered(struct tfos__py_row_iterator *cursor, int64_t count)
{
    struct unanswered *oldest = &cursor->waiting[0];

    oldest->count -= count;
    if (oldest->count > 0)
        return;
    cursor->waiting_count--;
    memmove(oldest, oldest + 1, cursor->waiting_count * sizeof(*oldest));
}

/// Sends a batch of results. Those for a task that has gone are dropped: Spark runs it again.
static int send_batch(struct tfos__py_row_iterator *cursor, const struct ArrowSchema *schema,
                      const struct ArrowArray *array)
{
    int lane = cursor->waiting_count > 0 ? cursor->waiting[0].lane : -1;
    struct tfos__py_guard_watch watch = {.gate = cursor->gate};
    struct tfos_wait wait = {.is_interrupted = tfos__py_guard_is_interrupted, .context = &watch};
    struct tfos_error err = {0};
    enum tfos_status status = TFOS_OK;

    Py_BEGIN_ALLOW_THREADS
    status = tfos_feed_reader_put_results(cursor->reader, lane, schema, array, &wait, &err);
    Py_END_ALLOW_THREADS
    if (watch.is_interrupted)
        return -1;
    if (status < 0 && status != TFOS_CLOSED) {
        tfos__py_raise(status, &err);
        return -1;
    }
    note_answered(cursor, array->length);
    return tfos__py_guard_check(cursor->gate);
}

/// Sends what is packed.
static int send_packed(void *context, struct tfos__py_row_packer *packer)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;

    tfos__py_row_packer_show(packer, &schema, &array);
    return send_batch(context, schema, array);
}

/// Whether the next results become columns of a DataFrame.
static bool is_for_frame(const struct tfos__py_row_iterator *cursor)
{
    return cursor->waiting_count > 0 && cursor->waiting[0].is_frame;
}

static int check_results(const struct tfos__py_row_iterator *cursor, int64_t count)
{
    const struct unanswered *oldest = &cursor->waiting[0];

    if (cursor->waiting_count == 0) {
        tfos__py_raise_format(
            TFOS_INVALID,
            "feed: %lld results, but no row waits for one: all have theirs, or they were "
            "fed for training",
            (long long)count);
        return -1;
    }
    if (count > oldest->count) {
        tfos__py_raise_format(
            TFOS_INVALID,
            "feed: partition %lld: %lld results for the %lld rows that have none yet: give "
            "one result for each row, before the next partition's",
            (long long)oldest->partition, (long long)count, (long long)oldest->count);
        return -1;
    }
    return 0;
}

int tfos__py_row_iterator_put_results(struct tfos__py_row_iterator *cursor, PyObject *results)
{
    struct tfos__py_row_packer *packer = NULL;
    int result = -1;

    if (PyList_Size(results) == 0)
        return 0;
    if (take(cursor) < 0)
        return -1;
    if (check_results(cursor, PyList_Size(results)) == 0) {
        packer = tfos__py_row_packer_open(0, is_for_frame(cursor));
        if (packer != NULL)
            result = tfos__py_row_packer_append_all(packer, results, send_packed, cursor);
        tfos__py_row_packer_close(packer);
    }
    leave(cursor);
    return result;
}

/// Sends arrays that have rows.
static int send_arrays(struct tfos__py_row_iterator *cursor, struct tfos__py_array_batch *batch)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;
    int result = -1;

    if (take(cursor) < 0)
        return -1;
    if (check_results(cursor, tfos__py_array_batch_row_count(batch)) == 0) {
        tfos__py_array_batch_show(batch, &schema, &array);
        result = send_batch(cursor, schema, array);
    }
    leave(cursor);
    return result;
}

int tfos__py_row_iterator_put_arrays(struct tfos__py_row_iterator *cursor, PyObject *arrays)
{
    struct tfos__py_array_batch *batch = tfos__py_array_batch_open(arrays, is_for_frame(cursor));
    int result = 0;

    if (batch == NULL)
        return -1;
    if (tfos__py_array_batch_row_count(batch) > 0)
        result = send_arrays(cursor, batch);
    tfos__py_array_batch_close(batch);
    return result;
}

int tfos__py_row_iterator_is_at_end(struct tfos__py_row_iterator *cursor)
{
    enum tfos_status status = TFOS_OK;
    struct tfos_feed_item item;

    if (cursor->is_terminated)
        return 1;
    if (cursor->has_batch || tfos__py_ticket_lock_is_taken(&cursor->turn) ||
        tfos__py_guard_is_used(cursor->feed))
        return 0;
    if (take(cursor) < 0)
        return -1;
    // A partition's end without rows before it means nothing, and ends of epochs are noted.
    while (status == TFOS_OK && !cursor->has_batch)
        status = fetch(cursor, 0, &item);
    leave(cursor);
    if (status < 0)
        return -1;
    return status == TFOS_END;
}

void tfos__py_row_iterator_terminate(struct tfos__py_row_iterator *cursor)
{
    cursor->is_terminated = true;
    Py_BEGIN_ALLOW_THREADS
    tfos_feed_reader_terminate(cursor->reader);
    Py_END_ALLOW_THREADS
}

void tfos__py_row_iterator_close(struct tfos__py_row_iterator *cursor)
{
    if (cursor == NULL)
        return;
    drop_batch(cursor);
    tfos__py_ticket_lock_clear(&cursor->turn);
    PyMem_Free(cursor->waiting);
    PyMem_Free(cursor);
}
