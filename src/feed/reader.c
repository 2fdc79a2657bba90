// SPDX-License-Identifier: Apache-2.0
// The reader checks all channels for the next item and sleeps on the queue's futex when there is
// none. It needs no thread. Feeds are kept apart: a channel whose next record belongs to a later
// feed waits until the host has declared the present one complete and no channel holds anything of
// it. Channels with results wait for nobody: each of their partitions is answered on its own, and a
// task that waits for results must not depend on a feed that somebody starts later.
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/fork_guard.h"
#include "base/memory.h"
#include "feed/feed.h"
#include "feed/reader_channel.h"

#define SLEEP_MS 200 ///< longest sleep between two checks of everything

struct tfos_feed_reader {
    struct tfos__fork_guard guard;
    struct tfos_feed_reader *next;      ///< of the open ones
    struct tfos__feed_control *control; ///< owned
    struct tfos__feed_futex futex;

    pthread_mutex_t mutex;                       ///< guards what follows
    struct tfos__feed_reader_channel **channels; ///< owned
    size_t channel_count;
    size_t current;          ///< the channel that is being read
    uint64_t channels_added; ///< all that add_channel() was called for
    uint64_t channels_swept; ///< the same, when retired channels were last dropped
    int next_handle;
    int64_t feed;       ///< the feed that is being given out
    int64_t unblock_ms; ///< when channels must be checked again, though nothing comes
    bool has_items;     ///< whether it gave any
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
        for (size_t i = 0; i < reader->channel_count; i++) {
            struct tfos__feed_channel *channel = reader->channels[i]->shared;
            if (tfos__feed_consumer_is_holding(&channel->consumer))
                (void)tfos__feed_channel_detach_batches(channel, NULL);
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

enum tfos_status tfos__feed_reader_open(int control_fd, struct tfos_feed_reader **out,
                                        struct tfos_error *err)
{
    struct tfos_feed_reader *reader = tfos__alloc(1, sizeof(*reader));
    enum tfos_status status = TFOS_OK;

    if (!reader)
        status = tfos__no_memory(err, "feed", "a reader");
    else
        status = tfos__feed_control_map(control_fd, &reader->control, err);
    close(control_fd);
    if (status == TFOS_OK)
        status = tfos__fork_guard_init(&reader->guard, err);
    if (status != TFOS_OK) {
        if (reader)
            tfos__feed_control_release(reader->control);
        tfos__free(reader);
        return status;
    }
    reader->futex = tfos__feed_control_futex(reader->control);
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

static enum tfos_status insert_channel(struct tfos_feed_reader *reader, int number, int fd,
                                       struct tfos_error *err)
{
    void *channels = tfos__array_grow(reader->channels, reader->channel_count, sizeof(void *));
    if (!channels)
        return tfos__no_memory(err, "feed", "a list of channels");
    reader->channels = channels;
    struct tfos__feed_reader_channel *channel = tfos__alloc(1, sizeof(*channel));
    if (!channel)
        return tfos__no_memory(err, "feed", "a channel");
    enum tfos_status status = tfos__feed_channel_map(fd, TFOS__FEED_CHANNEL_READER, reader->control,
                                                     &channel->shared, err);
    if (status != TFOS_OK) {
        tfos__fail_prefix(err, "channel %d", number);
        tfos__free(channel);
        return status;
    }
    channel->number = number;
    channel->handle = -1;
    channel->answers.refuses_pickles = reader->refuses_pickles;
    reader->channels[reader->channel_count++] = channel;
    return TFOS_OK;
}

enum tfos_status tfos__feed_reader_add_channel(struct tfos_feed_reader *reader, int channel, int fd,
                                               struct tfos_error *err)
{
    pthread_mutex_lock(&reader->mutex);
    enum tfos_status status = insert_channel(reader, channel, fd, err);
    // A channel that cannot be read will not come a second time: the end of the feed must not wait
    // for it.
    reader->channels_added++;
    pthread_mutex_unlock(&reader->mutex);
    close(fd);
    tfos__feed_futex_wake(reader->futex);
    return status;
}

// Whether the writer of `channel` filled another channel before, which must be read first.
static bool must_wait_for_predecessor(const struct tfos_feed_reader *reader,
                                      const struct tfos__feed_reader_channel *channel)
{
    uint64_t before =
        atomic_load_explicit(&channel->shared->page->before_channel, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&channel->shared->page->before_head, memory_order_relaxed);

    if (before == 0)
        return false;
    for (size_t i = 0; i < reader->channel_count; i++) {
        const struct tfos__feed_reader_channel *other = reader->channels[i];
        if (other != channel && (uint64_t)other->number + 1 == before)
            return !other->shared->consumer.is_abandoned &&
                   (int64_t)(other->shared->consumer.position - head) < 0;
    }
    return false;
}

// Whether the record at the front of `channel` may be given out now.
static bool is_due(const struct tfos_feed_reader *reader,
                   const struct tfos__feed_reader_channel *channel)
{
    if (channel->shared->result_size == 0 && channel->shared->consumer.record.feed > reader->feed)
        return false;
    return !must_wait_for_predecessor(reader, channel);
}

static void drop_retired_channel(struct tfos_feed_reader *reader, size_t index)
{
    tfos__feed_reader_channel_free(reader->channels[index]);
    reader->channel_count--;
    memmove(&reader->channels[index], &reader->channels[index + 1],
            (reader->channel_count - index) * sizeof(reader->channels[0]));
    if (reader->current > index)
        reader->current--;
}

// The next channel with an item that is due. The reader stays with a channel while it has data, but
// for no more than a ring's size, so that a fast writer does not starve the others. AGAIN when
// there is none.
static enum tfos_status pick(struct tfos_feed_reader *reader,
                             struct tfos__feed_reader_channel **out, struct tfos_error *err)
{
    size_t index = reader->current;

    if (index < reader->channel_count &&
        reader->channels[index]->burst_size >= reader->channels[index]->shared->size)
        index++;
    reader->unblock_ms = TFOS__NEVER;
    for (size_t left = reader->channel_count; left > 0; left--, index++) {
        if (index >= reader->channel_count)
            index = 0;
        struct tfos__feed_reader_channel *channel = reader->channels[index];
        enum tfos_status status = tfos__feed_reader_channel_peek(channel, err);
        if (status < 0)
            return status;
        if (status == TFOS_OK && is_due(reader, channel)) {
            if (index != reader->current || channel->burst_size >= channel->shared->size)
                channel->burst_size = 0;
            reader->current = index;
            *out = channel;
            return TFOS_OK;
        }
        int64_t unblock_ms =
            status == TFOS_AGAIN ? tfos__feed_reader_channel_unblock(channel) : TFOS__NEVER;
        if (unblock_ms < reader->unblock_ms)
            reader->unblock_ms = unblock_ms;
    }
    return TFOS_AGAIN;
}

// The lowest feed of which some channel holds an item that feeds are kept apart for; INT64_MAX when
// there is none.
static int64_t lowest_feed(const struct tfos_feed_reader *reader)
{
    int64_t lowest = INT64_MAX;

    for (size_t i = 0; i < reader->channel_count; i++) {
        const struct tfos__feed_reader_channel *channel = reader->channels[i];
        if (channel->shared->consumer.has_record && channel->shared->result_size == 0 &&
            channel->shared->consumer.record.feed < lowest)
            lowest = channel->shared->consumer.record.feed;
    }
    return lowest;
}

static bool is_any_waiting(const struct tfos_feed_reader *reader)
{
    for (size_t i = 0; i < reader->channel_count; i++)
        if (reader->channels[i]->shared->consumer.has_record)
            return true;
    return false;
}

static enum tfos_status give_epoch_end(struct tfos_feed_reader *reader, struct tfos_feed_item *item)
{
    *item =
        (struct tfos_feed_item){.kind = TFOS_FEED_EPOCH_END, .channel = -1, .feed = reader->feed};
    reader->feed++;
    reader->has_items = false;
    return TFOS_OK;
}

// Whether the reader's feed is a batch of a stream, whose epoch continues when it is complete.
static bool is_in_stream(const struct tfos_feed_reader *reader)
{
    int64_t stream_feed = atomic_load(&reader->control->page->stream_feed);

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

static enum tfos_status give_item(struct tfos_feed_reader *reader,
                                  struct tfos__feed_reader_channel *channel,
                                  struct tfos_feed_item *item, struct tfos_error *err)
{
    enum tfos_status status =
        tfos__feed_reader_channel_take(channel, &reader->next_handle, item, err);

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

// Checks everything once, with the mutex held. The order of the loads matters: what was written
// before a feed was declared complete, or the feed ended, is seen when the channels are checked
// afterwards.
static enum tfos_status find_item(struct tfos_feed_reader *reader, struct tfos_feed_item *item,
                                  struct tfos_error *err)
{
    struct tfos__feed_control_page *page = reader->control->page;
    uint32_t state = atomic_load(&page->state);
    int64_t complete_feed = atomic_load(&page->complete_feed);
    bool has_all_channels = atomic_load(&page->channel_count) <= reader->channels_added;
    struct tfos__feed_reader_channel *channel = NULL;
    enum tfos_status status = check_state(reader, state, err);

    if (status != TFOS_OK)
        return status;
    for (;;) {
        status = pick(reader, &channel, err);
        if (status == TFOS_OK)
            return give_item(reader, channel, item, err);
        if (status < 0 || !has_all_channels)
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

// Channels that the host has retired are unmapped once nothing is left in them.
static void drop_retired_channels(struct tfos_feed_reader *reader)
{
    reader->channels_swept = reader->channels_added;
    for (size_t i = reader->channel_count; i-- > 0;) {
        struct tfos__feed_channel *channel = reader->channels[i]->shared;
        if (atomic_load(&channel->page->is_retired) &&
            tfos__feed_consumer_is_empty(&channel->consumer))
            drop_retired_channel(reader, i);
    }
}

static int sleep_ms(int64_t wake_ms)
{
    int remaining_ms = tfos__remaining_ms(wake_ms);

    return remaining_ms >= 0 && remaining_ms < SLEEP_MS ? remaining_ms : SLEEP_MS;
}

// A sleep is short, so the sum that the host reads is nearly up to date.
static void wait_for_rows(struct tfos_feed_reader *reader, uint32_t value, int timeout_ms)
{
    int64_t begin_us = tfos__now_us();

    tfos__feed_futex_wait(reader->futex, value, timeout_ms);
    atomic_fetch_add_explicit(&reader->control->page->waited_us,
                              (uint64_t)(tfos__now_us() - begin_us), memory_order_relaxed);
}

// Writers wait until it is known how the reader reads.
static void begin_reading(struct tfos_feed_reader *reader)
{
    _Atomic int64_t *step_rows = &reader->control->page->step_rows;
    int64_t unknown = 0;

    if (atomic_load_explicit(step_rows, memory_order_relaxed) == 0)
        (void)atomic_compare_exchange_strong(step_rows, &unknown, -1);
}

enum tfos_status tfos_feed_reader_next(struct tfos_feed_reader *reader, int64_t timeout_ms,
                                       struct tfos_feed_item *item, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    bool is_armed = false;
    uint32_t value = 0;

    TFOS__TRY(tfos_feed_reader_check(reader, err));
    begin_reading(reader);
    for (int checks = 0;; checks++) {
        pthread_mutex_lock(&reader->mutex);
        enum tfos_status status = find_item(reader, item, err);
        // Channels retire to make room for others, so there is none to find before others have
        // come.
        if (reader->channels_swept != reader->channels_added)
            drop_retired_channels(reader);
        int64_t wake_ms = reader->unblock_ms < deadline ? reader->unblock_ms : deadline;
        pthread_mutex_unlock(&reader->mutex);
        int remaining_ms = status == TFOS_AGAIN ? tfos__remaining_ms(deadline) : 0;
        if (is_armed && remaining_ms != 0)
            wait_for_rows(reader, value, sleep_ms(wake_ms));
        if (is_armed)
            tfos__feed_futex_cancel(reader->futex);
        if (status != TFOS_AGAIN || remaining_ms == 0)
            return status;
        is_armed = !is_armed && checks >= TFOS__FEED_SPIN_COUNT;
        if (is_armed)
            value = tfos__feed_futex_prepare(reader->futex);
        else
            tfos__feed_futex_pause();
    }
}

int64_t tfos__feed_reader_feed(struct tfos_feed_reader *reader)
{
    pthread_mutex_lock(&reader->mutex);
    int64_t feed = reader->feed;
    pthread_mutex_unlock(&reader->mutex);
    return feed;
}

// The channel of a handle that next() gave out. CLOSED when its attempt has gone and another uses
// the channel.
static enum tfos_status find_handle(struct tfos_feed_reader *reader, int handle,
                                    struct tfos__feed_reader_channel **out, struct tfos_error *err)
{
    enum tfos_status status = TFOS_CLOSED;

    pthread_mutex_lock(&reader->mutex);
    for (size_t i = 0; i < reader->channel_count && status != TFOS_OK; i++)
        if (handle >= 0 && reader->channels[i]->handle == handle) {
            *out = reader->channels[i];
            status = TFOS_OK;
        }
    if (handle < 0 || handle >= reader->next_handle)
        status =
            tfos__fail(err, TFOS_INVALID, "feed: no batch was given out with channel %d", handle);
    pthread_mutex_unlock(&reader->mutex);
    if (status == TFOS_CLOSED)
        tfos__fail(err, status, "feed: the task that waited for these results has gone");
    return status;
}

static enum tfos_status check_wait(const struct tfos__feed_reader_channel *channel,
                                   struct tfos__wait *wait, struct tfos_error *err)
{
    enum tfos_status status = tfos__wait_check(wait, err);
    if (status == TFOS_OK && tfos__remaining_ms(wait->deadline) == 0)
        status = tfos__fail(err, TFOS_TIMEOUT, "the task took no results in time");
    return tfos__fail_in(err, status, "feed: partition %lld", (long long)channel->partition);
}

// Waits for space in the channel's result ring.
static enum tfos_status wait_for_space(struct tfos_feed_reader *reader,
                                       struct tfos__feed_reader_channel *channel,
                                       struct tfos__wait *wait, struct tfos_error *err)
{
    TFOS__TRY(check_wait(channel, wait, err));
    int slice_ms = tfos__remaining_ms(tfos__wait_slice(wait));
    uint32_t value = tfos__feed_futex_prepare(reader->futex);

    pthread_mutex_lock(&reader->mutex);
    enum tfos_status failure = reader->failure;
    if (failure != TFOS_OK)
        tfos__fail(err, failure, "%s", reader->message);
    pthread_mutex_unlock(&reader->mutex);
    if (failure == TFOS_OK && !tfos__feed_reader_channel_can_answer(channel))
        tfos__feed_futex_wait(reader->futex, value,
                              slice_ms >= 0 && slice_ms < SLEEP_MS ? slice_ms : SLEEP_MS);
    tfos__feed_futex_cancel(reader->futex);
    return failure;
}

enum tfos_status tfos_feed_reader_put_results(struct tfos_feed_reader *reader, int handle,
                                              const struct ArrowSchema *schema,
                                              const struct ArrowArray *array,
                                              const struct tfos_wait *wait, struct tfos_error *err)
{
    struct tfos__feed_reader_channel *channel = NULL;
    struct tfos__wait waiting = tfos__wait_begin(wait, -1);

    TFOS__TRY(tfos_feed_reader_check(reader, err));
    TFOS__TRY(find_handle(reader, handle, &channel, err));
    if (channel->shared->result_size == 0)
        return tfos__fail(err, TFOS_INVALID,
                          "feed: partition %lld is fed for training and takes no results",
                          (long long)channel->partition);
    if (array->length > channel->given_count - channel->answered_count)
        return tfos__fail(
            err, TFOS_INVALID,
            "feed: partition %lld: %lld results for %lld rows: each row has one result",
            (long long)channel->partition, (long long)(channel->answered_count + array->length),
            (long long)channel->given_count);
    TFOS__TRY(tfos__feed_reader_channel_begin_answer(channel, schema, array, err));
    for (;;) {
        enum tfos_status status = tfos__feed_reader_channel_answer(channel, array, err);
        if (status != TFOS_AGAIN)
            return status;
        TFOS__TRY(wait_for_space(reader, channel, &waiting, err));
    }
}

void tfos__feed_reader_set_batch_rows(struct tfos_feed_reader *reader, int64_t row_count)
{
    if (!tfos__fork_guard_is_inherited(&reader->guard))
        atomic_store(&reader->control->page->batch_rows, row_count);
}

void tfos__feed_reader_set_step_rows(struct tfos_feed_reader *reader, int64_t row_count)
{
    if (!tfos__fork_guard_is_inherited(&reader->guard))
        atomic_store(&reader->control->page->step_rows, row_count);
}

void tfos_feed_reader_terminate(struct tfos_feed_reader *reader)
{
    _Atomic uint32_t *state = &reader->control->page->state;
    uint32_t present = atomic_load(state);

    if (tfos__fork_guard_is_inherited(&reader->guard))
        return;
    while (present != TFOS__FEED_FAILED && present != TFOS__FEED_TERMINATED &&
           !atomic_compare_exchange_weak(state, &present, TFOS__FEED_TERMINATED))
        continue;
    pthread_mutex_lock(&reader->mutex);
    reader->is_terminated = true;
    for (size_t i = 0; i < reader->channel_count; i++) {
        tfos__feed_consumer_discard(&reader->channels[i]->shared->consumer);
        tfos__feed_futex_wake(reader->channels[i]->shared->consumer.producer_futex);
    }
    pthread_mutex_unlock(&reader->mutex);
    tfos__feed_futex_wake(reader->futex);
}

void tfos_feed_reader_fail(struct tfos_feed_reader *reader, enum tfos_status status,
                           const char *message)
{
    struct tfos_error failure;

    pthread_mutex_lock(&reader->mutex);
    if (reader->failure == TFOS_OK) {
        reader->failure = tfos__fail(&failure, status, "%s", message);
        memcpy(reader->message, failure.message, sizeof(reader->message));
    }
    pthread_mutex_unlock(&reader->mutex);
    tfos__feed_futex_wake(reader->futex);
}

void tfos__feed_reader_close(struct tfos_feed_reader *reader)
{
    if (!reader || tfos__fork_guard_is_inherited(&reader->guard))
        return;
    unlist_reader(reader);
    for (size_t i = 0; i < reader->channel_count; i++)
        tfos__feed_reader_channel_free(reader->channels[i]);
    tfos__free(reader->channels);
    tfos__feed_control_release(reader->control);
    pthread_mutex_destroy(&reader->mutex);
    tfos__fork_guard_clear(&reader->guard);
    tfos__free(reader);
}
