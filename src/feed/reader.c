// SPDX-License-Identifier: Apache-2.0
// The reader looks at all lanes for the next item and sleeps on the queue's bell when there is
// none. It needs no thread. Feeds are kept apart: a lane whose next record belongs to a later feed
// waits until the host has declared the present one complete and no lane holds anything of it.
// Lanes with results wait for nobody: each of their partitions is answered on its own, and a task
// that waits for results must not depend on a feed that somebody starts later.
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/fork_guard.h"
#include "base/memory.h"
#include "feed/evacuation.h"
#include "feed/feed.h"
#include "feed/reader_lane.h"

#define SLEEP_MS 200 ///< longest sleep without a look at everything

struct tfos_feed_reader {
    struct tfos__fork_guard guard;
    struct tfos_feed_reader *next; ///< of the open ones
    struct tfos__board *board;     ///< owned
    struct tfos__bell bell;

    pthread_mutex_t mutex;            ///< guards what follows
    struct tfos__reader_lane **lanes; ///< owned
    size_t lane_count, lane_capacity;
    size_t turn;          ///< the lane that is being read
    uint64_t lanes_added; ///< all that add_lane() was called for
    uint64_t lanes_swept; ///< the same, when retired lanes were last looked for
    int next_handle;
    int64_t feed;      ///< the feed that is being given out
    int64_t relief_ms; ///< when a lane must be looked at again, though nothing comes
    bool has_items;    ///< whether it gave any
    bool refuses_pickles;
    bool is_terminated;
    enum tfos_status failure;
    char message[sizeof((struct tfos_error *)0)->message];
};

// ---- fork(): batches that are held move out of the rings, so that the forked process, too, goes
// on seeing what it inherits; and no lock is inherited locked.

static pthread_mutex_t open_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tfos_feed_reader *open_readers; // guarded by the mutex

static void before_fork(void)
{
    pthread_mutex_lock(&open_mutex);
    for (struct tfos_feed_reader *reader = open_readers; reader; reader = reader->next) {
        pthread_mutex_lock(&reader->mutex);
        for (size_t i = 0; i < reader->lane_count; i++) {
            struct tfos__lane *lane = reader->lanes[i]->lane;
            if (tfos__outlet_is_holding(&lane->outlet))
                (void)tfos__lane_evacuate(lane, NULL);
        }
    }
}

static void after_fork(void)
{
    for (struct tfos_feed_reader *reader = open_readers; reader; reader = reader->next)
        pthread_mutex_unlock(&reader->mutex);
    pthread_mutex_unlock(&open_mutex);
}

static void after_fork_in_child(void)
{
    after_fork();
    open_readers = NULL;
}

__attribute__((constructor)) static void handle_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

static void list_reader(struct tfos_feed_reader *reader)
{
    pthread_mutex_lock(&open_mutex);
    reader->next = open_readers;
    open_readers = reader;
    pthread_mutex_unlock(&open_mutex);
}

static void unlist_reader(struct tfos_feed_reader *reader)
{
    pthread_mutex_lock(&open_mutex);
    struct tfos_feed_reader **place = &open_readers;
    while (*place != reader)
        place = &(*place)->next;
    *place = reader->next;
    pthread_mutex_unlock(&open_mutex);
}

enum tfos_status tfos_feed_reader_check(const struct tfos_feed_reader *reader,
                                        struct tfos_error *err)
{
    return tfos__fork_guard_check(&reader->guard, "feed", TFOS__FORK_ADVICE_FEED, err);
}

enum tfos_status tfos__feed_reader_open(int bell_fd, struct tfos_feed_reader **out,
                                        struct tfos_error *err)
{
    struct tfos_feed_reader *reader = tfos__alloc(1, sizeof *reader);
    enum tfos_status status = TFOS_OK;

    if (!reader)
        status = tfos__no_memory(err, "feed", "a reader");
    else
        status = tfos__board_map(bell_fd, &reader->board, err);
    close(bell_fd);
    if (status == TFOS_OK)
        status = tfos__fork_guard_init(&reader->guard, err);
    if (status != TFOS_OK) {
        if (reader)
            tfos__board_release(reader->board);
        tfos__free(reader);
        return status;
    }
    reader->bell = tfos__board_bell(reader->board);
    reader->feed = 1;
    pthread_mutex_init(&reader->mutex, NULL);
    list_reader(reader);
    *out = reader;
    return TFOS_OK;
}

void tfos__feed_reader_refuse_pickles(struct tfos_feed_reader *reader)
{
    reader->refuses_pickles = true;
}

static enum tfos_status insert_lane(struct tfos_feed_reader *reader, int number, int fd,
                                    struct tfos_error *err)
{
    if (reader->lane_count == reader->lane_capacity) {
        size_t capacity = reader->lane_capacity * 2 + 4;
        struct tfos__reader_lane **lanes = tfos__realloc(reader->lanes, capacity, sizeof(void *));
        if (!lanes)
            return tfos__no_memory(err, "feed", "a list of lanes");
        reader->lanes = lanes;
        reader->lane_capacity = capacity;
    }
    struct tfos__reader_lane *lane = tfos__alloc(1, sizeof *lane);
    if (!lane)
        return tfos__no_memory(err, "feed", "a lane");
    enum tfos_status status =
        tfos__lane_map(fd, TFOS__LANE_READER, reader->board, &lane->lane, err);
    if (status != TFOS_OK) {
        tfos__fail_prefix(err, "lane %d", number);
        tfos__free(lane);
        return status;
    }
    lane->number = number;
    lane->handle = -1;
    lane->answers.refuses_pickles = reader->refuses_pickles;
    reader->lanes[reader->lane_count++] = lane;
    return TFOS_OK;
}

enum tfos_status tfos__feed_reader_add_lane(struct tfos_feed_reader *reader, int lane, int fd,
                                            struct tfos_error *err)
{
    pthread_mutex_lock(&reader->mutex);
    enum tfos_status status = insert_lane(reader, lane, fd, err);
    // A lane that cannot be read will not come a second time: the end of the feed must not wait for
    // it.
    reader->lanes_added++;
    pthread_mutex_unlock(&reader->mutex);
    close(fd);
    tfos__bell_ring(reader->bell);
    return status;
}

// Whether the writer of `lane` filled another lane before, which must be read first.
static bool is_held_back(const struct tfos_feed_reader *reader,
                         const struct tfos__reader_lane *lane)
{
    uint64_t before = atomic_load_explicit(&lane->lane->page->before_lane, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&lane->lane->page->before_head, memory_order_relaxed);

    if (before == 0)
        return false;
    for (size_t i = 0; i < reader->lane_count; i++) {
        const struct tfos__reader_lane *other = reader->lanes[i];
        if (other != lane && (uint64_t)other->number + 1 == before)
            return !other->lane->outlet.is_abandoned &&
                   (int64_t)(other->lane->outlet.position - head) < 0;
    }
    return false;
}

// Whether the record at the front of `lane` may be given out now.
static bool is_due(const struct tfos_feed_reader *reader, const struct tfos__reader_lane *lane)
{
    if (lane->lane->result_size == 0 && tfos__reader_lane_record(lane)->feed > reader->feed)
        return false;
    return !is_held_back(reader, lane);
}

static void drop_retired_lane(struct tfos_feed_reader *reader, size_t index)
{
    tfos__reader_lane_free(reader->lanes[index]);
    reader->lane_count--;
    memmove(&reader->lanes[index], &reader->lanes[index + 1],
            (reader->lane_count - index) * sizeof reader->lanes[0]);
    if (reader->turn > index)
        reader->turn--;
}

// The next lane with an item that is due. The reader stays with a lane while it has data, but for
// no more than a ring's size, so that a fast writer does not starve the others. AGAIN when there is
// none.
static enum tfos_status pick(struct tfos_feed_reader *reader, struct tfos__reader_lane **out,
                             struct tfos_error *err)
{
    size_t index = reader->turn;

    if (index < reader->lane_count &&
        reader->lanes[index]->turn_size >= reader->lanes[index]->lane->size)
        index++;
    reader->relief_ms = TFOS__NEVER;
    for (size_t left = reader->lane_count; left > 0; left--, index++) {
        if (index >= reader->lane_count)
            index = 0;
        struct tfos__reader_lane *lane = reader->lanes[index];
        enum tfos_status status = tfos__reader_lane_peek(lane, err);
        if (status < 0)
            return status;
        if (status == TFOS_OK && is_due(reader, lane)) {
            if (index != reader->turn || lane->turn_size >= lane->lane->size)
                lane->turn_size = 0;
            reader->turn = index;
            *out = lane;
            return TFOS_OK;
        }
        int64_t relief_ms = status == TFOS_AGAIN ? tfos__reader_lane_relieve(lane) : TFOS__NEVER;
        if (relief_ms < reader->relief_ms)
            reader->relief_ms = relief_ms;
    }
    return TFOS_AGAIN;
}

// The lowest feed of which some lane holds an item that feeds are kept apart for; INT64_MAX when
// there is none.
static int64_t lowest_feed(const struct tfos_feed_reader *reader)
{
    int64_t lowest = INT64_MAX;

    for (size_t i = 0; i < reader->lane_count; i++) {
        const struct tfos__reader_lane *lane = reader->lanes[i];
        if (lane->lane->outlet.has_record && lane->lane->result_size == 0 &&
            tfos__reader_lane_record(lane)->feed < lowest)
            lowest = tfos__reader_lane_record(lane)->feed;
    }
    return lowest;
}

static bool is_any_waiting(const struct tfos_feed_reader *reader)
{
    for (size_t i = 0; i < reader->lane_count; i++)
        if (reader->lanes[i]->lane->outlet.has_record)
            return true;
    return false;
}

static enum tfos_status give_epoch_end(struct tfos_feed_reader *reader, struct tfos_feed_item *item)
{
    *item = (struct tfos_feed_item){.kind = TFOS_FEED_EPOCH_END, .lane = -1, .feed = reader->feed};
    reader->feed++;
    reader->has_items = false;
    return TFOS_OK;
}

// Whether the reader's feed is a batch of a stream, whose epoch goes on when it is complete.
static bool is_in_stream(const struct tfos_feed_reader *reader)
{
    int64_t stream_feed = atomic_load(&reader->board->page->stream_feed);

    return stream_feed > 0 && reader->feed >= stream_feed;
}

// The reader's feed is complete, and `lowest` is the next of which there is something.
static enum tfos_status leave_feed(struct tfos_feed_reader *reader, int64_t complete_feed,
                                   int64_t lowest, struct tfos_feed_item *item)
{
    if (!is_in_stream(reader))
        return give_epoch_end(reader, item);
    reader->feed = lowest <= complete_feed ? lowest : complete_feed + 1;
    return TFOS_AGAIN;
}

static enum tfos_status give_item(struct tfos_feed_reader *reader, struct tfos__reader_lane *lane,
                                  struct tfos_feed_item *item, struct tfos_error *err)
{
    enum tfos_status status = tfos__reader_lane_take(lane, &reader->next_handle, item, err);

    if (status == TFOS_OK && !item->has_results)
        reader->has_items = true;
    return status;
}

static enum tfos_status check_state(const struct tfos_feed_reader *reader, uint32_t state,
                                    struct tfos_error *err)
{
    if (reader->failure != TFOS_OK)
        return tfos__fail(err, reader->failure, "%s", reader->message);
    if (reader->is_terminated || state == TFOS__FEED_TERMINATED)
        return TFOS_END;
    if (state == TFOS__FEED_FAILED)
        return tfos__fail(err, TFOS_CLOSED, "feed: the node reports that the cluster has failed");
    return TFOS_OK;
}

// One look at everything, with the mutex held. The order of the loads matters: what was written
// before a feed was declared complete, or the feed ended, is seen by the look at the lanes that
// follows.
static enum tfos_status look(struct tfos_feed_reader *reader, struct tfos_feed_item *item,
                             struct tfos_error *err)
{
    struct tfos__bell_page *page = reader->board->page;
    uint32_t state = atomic_load(&page->state);
    int64_t complete_feed = atomic_load(&page->complete_feed);
    bool has_all_lanes = atomic_load(&page->lane_count) <= reader->lanes_added;
    struct tfos__reader_lane *lane = NULL;
    enum tfos_status status = check_state(reader, state, err);

    if (status != TFOS_OK)
        return status;
    for (;;) {
        status = pick(reader, &lane, err);
        if (status == TFOS_OK)
            return give_item(reader, lane, item, err);
        if (status < 0 || !has_all_lanes)
            return status;
        int64_t lowest = lowest_feed(reader);
        if (complete_feed >= reader->feed && lowest > reader->feed) {
            if (leave_feed(reader, complete_feed, lowest, item) == TFOS_OK)
                return TFOS_OK;
            continue;
        }
        if (state != TFOS__FEED_ENDED || lowest <= reader->feed)
            return TFOS_AGAIN;
        if (reader->has_items && (lowest == INT64_MAX || !is_in_stream(reader)))
            return give_epoch_end(reader, item);
        if (lowest == INT64_MAX)
            return is_any_waiting(reader) ? TFOS_AGAIN : TFOS_END;
        reader->feed = lowest;
    }
}

// Lanes that the host has retired are unmapped once nothing is left in them.
static void drop_retired_lanes(struct tfos_feed_reader *reader)
{
    reader->lanes_swept = reader->lanes_added;
    for (size_t i = reader->lane_count; i-- > 0;) {
        struct tfos__lane *lane = reader->lanes[i]->lane;
        if (atomic_load(&lane->page->is_retired) && tfos__outlet_is_empty(&lane->outlet))
            drop_retired_lane(reader, i);
    }
}

static int sleep_ms(int64_t wake_ms)
{
    int remaining_ms = tfos__remaining_ms(wake_ms);

    return remaining_ms >= 0 && remaining_ms < SLEEP_MS ? remaining_ms : SLEEP_MS;
}

// A sleep is short, so the sum that the host looks at is as good as up to date.
static void wait_for_rows(struct tfos_feed_reader *reader, uint32_t value, int timeout_ms)
{
    int64_t begin_us = tfos__now_us();

    tfos__bell_sleep(reader->bell, value, timeout_ms);
    atomic_fetch_add_explicit(&reader->board->page->waited_us,
                              (uint64_t)(tfos__now_us() - begin_us), memory_order_relaxed);
}

enum tfos_status tfos_feed_reader_next(struct tfos_feed_reader *reader, int64_t timeout_ms,
                                       struct tfos_feed_item *item, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    bool is_armed = false;
    uint32_t value = 0;

    TFOS__TRY(tfos_feed_reader_check(reader, err));
    for (int looks = 0;; looks++) {
        pthread_mutex_lock(&reader->mutex);
        enum tfos_status status = look(reader, item, err);
        // Lanes retire to make room for others, so there is none to find before others have come.
        if (reader->lanes_swept != reader->lanes_added)
            drop_retired_lanes(reader);
        int64_t wake_ms = reader->relief_ms < deadline ? reader->relief_ms : deadline;
        pthread_mutex_unlock(&reader->mutex);
        int remaining_ms = status == TFOS_AGAIN ? tfos__remaining_ms(deadline) : 0;
        if (is_armed && remaining_ms != 0)
            wait_for_rows(reader, value, sleep_ms(wake_ms));
        if (is_armed)
            tfos__bell_disarm(reader->bell);
        if (status != TFOS_AGAIN || remaining_ms == 0)
            return status;
        is_armed = !is_armed && looks >= TFOS__SPIN_COUNT;
        if (is_armed)
            value = tfos__bell_arm(reader->bell);
        else
            tfos__bell_pause();
    }
}

int64_t tfos__feed_reader_feed(struct tfos_feed_reader *reader)
{
    pthread_mutex_lock(&reader->mutex);
    int64_t feed = reader->feed;
    pthread_mutex_unlock(&reader->mutex);
    return feed;
}

// The lane of a handle that next() gave out. CLOSED when its attempt has gone and another uses the
// lane.
static enum tfos_status find_handle(struct tfos_feed_reader *reader, int handle,
                                    struct tfos__reader_lane **out, struct tfos_error *err)
{
    enum tfos_status status = TFOS_CLOSED;

    pthread_mutex_lock(&reader->mutex);
    for (size_t i = 0; i < reader->lane_count && status != TFOS_OK; i++)
        if (handle >= 0 && reader->lanes[i]->handle == handle) {
            *out = reader->lanes[i];
            status = TFOS_OK;
        }
    if (handle < 0 || handle >= reader->next_handle)
        status = tfos__fail(err, TFOS_INVALID, "feed: no batch was given out with lane %d", handle);
    pthread_mutex_unlock(&reader->mutex);
    if (status == TFOS_CLOSED)
        tfos__fail(err, status, "feed: the task that waited for these results has gone");
    return status;
}

static enum tfos_status check_wait(const struct tfos__reader_lane *lane, struct tfos__wait *wait,
                                   struct tfos_error *err)
{
    enum tfos_status status = tfos__wait_check(wait, err);
    if (status == TFOS_OK && tfos__remaining_ms(wait->deadline) == 0)
        status = tfos__fail(err, TFOS_TIMEOUT, "the task took no results in time");
    if (status < 0)
        tfos__fail_prefix(err, "feed: partition %lld", (long long)lane->partition);
    return status;
}

// Waits for space in the lane's result ring.
static enum tfos_status wait_for_space(struct tfos_feed_reader *reader,
                                       struct tfos__reader_lane *lane, struct tfos__wait *wait,
                                       struct tfos_error *err)
{
    TFOS__TRY(check_wait(lane, wait, err));
    int slice_ms = tfos__remaining_ms(tfos__wait_slice(wait));
    uint32_t value = tfos__bell_arm(reader->bell);

    pthread_mutex_lock(&reader->mutex);
    enum tfos_status failure = reader->failure;
    if (failure != TFOS_OK)
        tfos__fail(err, failure, "%s", reader->message);
    pthread_mutex_unlock(&reader->mutex);
    if (failure == TFOS_OK && !tfos__reader_lane_can_answer(lane))
        tfos__bell_sleep(reader->bell, value,
                         slice_ms >= 0 && slice_ms < SLEEP_MS ? slice_ms : SLEEP_MS);
    tfos__bell_disarm(reader->bell);
    return failure;
}

enum tfos_status tfos_feed_reader_put_results(struct tfos_feed_reader *reader, int handle,
                                              const struct ArrowSchema *schema,
                                              const struct ArrowArray *array,
                                              const struct tfos_wait *wait, struct tfos_error *err)
{
    struct tfos__reader_lane *lane = NULL;
    struct tfos__wait waiting = tfos__wait_begin(wait, -1);

    TFOS__TRY(tfos_feed_reader_check(reader, err));
    TFOS__TRY(find_handle(reader, handle, &lane, err));
    if (lane->lane->result_size == 0)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: partition %lld is fed for training and takes no results",
                          (long long)lane->partition);
    if (array->length > lane->given_count - lane->answered_count)
        return tfos__fail(
            err, TFOS_INVALID,
            "feed: partition %lld: %lld results for %lld rows: each row has one result",
            (long long)lane->partition, (long long)(lane->answered_count + array->length),
            (long long)lane->given_count);
    TFOS__TRY(tfos__reader_lane_begin_answer(lane, schema, array, err));
    for (int64_t row = 0; row < array->length;) {
        int64_t rows = 0;
        enum tfos_status status = tfos__reader_lane_answer(lane, array, row, &rows, err);
        if (status == TFOS_AGAIN)
            status = wait_for_space(reader, lane, &waiting, err);
        TFOS__TRY(status);
        row += rows;
    }
    return TFOS_OK;
}

void tfos__feed_reader_set_batch_rows(struct tfos_feed_reader *reader, int64_t row_count)
{
    if (!tfos__fork_guard_is_inherited(&reader->guard))
        atomic_store(&reader->board->page->batch_rows, row_count);
}

void tfos_feed_reader_terminate(struct tfos_feed_reader *reader)
{
    _Atomic uint32_t *state = &reader->board->page->state;
    uint32_t present = atomic_load(state);

    if (tfos__fork_guard_is_inherited(&reader->guard))
        return;
    while (present != TFOS__FEED_FAILED && present != TFOS__FEED_TERMINATED &&
           !atomic_compare_exchange_weak(state, &present, TFOS__FEED_TERMINATED))
        continue;
    pthread_mutex_lock(&reader->mutex);
    reader->is_terminated = true;
    for (size_t i = 0; i < reader->lane_count; i++) {
        tfos__outlet_drop(&reader->lanes[i]->lane->outlet);
        tfos__bell_ring(reader->lanes[i]->lane->outlet.producer);
    }
    pthread_mutex_unlock(&reader->mutex);
    tfos__bell_ring(reader->bell);
}

void tfos_feed_reader_fail(struct tfos_feed_reader *reader, enum tfos_status status,
                           const char *message)
{
    struct tfos_error failure;

    pthread_mutex_lock(&reader->mutex);
    if (reader->failure == TFOS_OK) {
        reader->failure = tfos__fail(&failure, status, "%s", message);
        memcpy(reader->message, failure.message, sizeof reader->message);
    }
    pthread_mutex_unlock(&reader->mutex);
    tfos__bell_ring(reader->bell);
}

void tfos__feed_reader_close(struct tfos_feed_reader *reader)
{
    if (!reader || tfos__fork_guard_is_inherited(&reader->guard))
        return;
    unlist_reader(reader);
    for (size_t i = 0; i < reader->lane_count; i++)
        tfos__reader_lane_free(reader->lanes[i]);
    tfos__free(reader->lanes);
    tfos__board_release(reader->board);
    pthread_mutex_destroy(&reader->mutex);
    tfos__fork_guard_clear(&reader->guard);
    tfos__free(reader);
}
