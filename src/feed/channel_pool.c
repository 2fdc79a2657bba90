// SPDX-License-Identifier: Apache-2.0
// A channel that is freed loses its memory at once by a hole punched into its file, although the
// reader still maps it: its first page, marked as retired, stays until the reader has seen the
// mark. A fenced writer that still lives may write into its channel at any time, so a channel is
// never given to another before its owner has gone.
#include "feed/channel_pool.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "feed/record.h"

static uint64_t whole_size(uint64_t size, uint64_t result_size)
{
    return TFOS__FEED_PAGE_SIZE + size + result_size;
}

static uint64_t head_of(const struct tfos__feed_pool_channel *channel)
{
    return atomic_load(&channel->page->head) & ~TFOS__FEED_HEAD_FENCED;
}

struct tfos__feed_rows tfos__feed_pool_channel_rows(const struct tfos__feed_pool_channel *channel)
{
    struct tfos__feed_rows rows = tfos__feed_channel_page_rows(channel->page, channel->first_row);

    if (rows.count < channel->first_row || rows.count > INT64_MAX)
        rows.count = channel->first_row;
    return rows;
}

uint64_t tfos__feed_pool_channel_written(const struct tfos__feed_pool_channel *channel)
{
    struct tfos__feed_rows rows = tfos__feed_pool_channel_rows(channel);
    uint64_t count = rows.count - channel->first_row;

    return rows.left_out <= count ? count - rows.left_out : 0;
}

bool tfos__feed_pool_channel_is_drained(const struct tfos__feed_pool_channel *channel)
{
    uint64_t tail = atomic_load(&channel->page->tail);

    return (tail & TFOS__FEED_TAIL_ABANDONED) || tail == head_of(channel);
}

bool tfos__feed_pool_channel_is_read(const struct tfos__feed_pool_channel *channel)
{
    uint64_t tail = atomic_load(&channel->page->tail);

    if (tfos__feed_pool_channel_is_drained(channel))
        return true;
    return tfos__feed_pool_channel_rows(channel).is_complete &&
           head_of(channel) - tail == tfos__feed_record_size(0);
}

// A channel that the reader gave up is never handed out again.
static bool is_abandoned(const struct tfos__feed_pool_channel *channel)
{
    return atomic_load(&channel->page->tail) & TFOS__FEED_TAIL_ABANDONED;
}

static bool is_free(const struct tfos__feed_pool_channel *channel)
{
    return !channel->owner && tfos__feed_pool_channel_is_drained(channel);
}

static uint64_t *account(struct tfos__feed_channel_pool *pool, bool is_extra)
{
    return is_extra ? &pool->extra_size : &pool->total_size;
}

static void free_channel(struct tfos__feed_channel_pool *pool,
                         struct tfos__feed_pool_channel *channel)
{
    *account(pool, channel->is_extra) -= whole_size(channel->size, channel->result_size);
    tfos__feed_channel_page_unmap(channel->page);
    close(channel->fd);
    tfos__free(channel);
}

static void retire(struct tfos__feed_channel_pool *pool, size_t index)
{
    struct tfos__feed_pool_channel *channel = pool->channels[index];

    pool->gone_rows_read[channel->queue] += atomic_load(&channel->page->rows_released);
    pool->gone_bytes += head_of(channel);
    pool->gone_waited_us += atomic_load(&channel->page->waited_us);
    atomic_store(&channel->page->is_retired, 1);
    (void)fallocate(channel->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, TFOS__FEED_PAGE_SIZE,
                    (off_t)(channel->size + channel->result_size));
    free_channel(pool, channel);
    pool->count--;
    memmove(&pool->channels[index], &pool->channels[index + 1],
            (pool->count - index) * sizeof(pool->channels[0]));
}

// Frees unused channels until `needed` more bytes keep the limit, which holds for the extra ones
// and for the others.
static bool make_room(struct tfos__feed_channel_pool *pool, bool is_extra, uint64_t needed)
{
    const uint64_t *size = account(pool, is_extra);

    for (size_t i = pool->count; i-- > 0;) {
        struct tfos__feed_pool_channel *channel = pool->channels[i];
        bool is_tight = (*size + needed > pool->memory_limit && channel->is_extra == is_extra) ||
                        pool->count >= TFOS__FEED_CHANNEL_COUNT_LIMIT;
        if (channel->is_announced && is_free(channel) && (is_tight || is_abandoned(channel)))
            retire(pool, i);
    }
    return *size + needed <= pool->memory_limit && pool->count < TFOS__FEED_CHANNEL_COUNT_LIMIT;
}

// Whether no channel of the queue is being written to or holds anything unread. Then one may be
// made beyond the limit, or a row larger than that could never come, nor could a row of this queue
// while the reader leaves those of the others.
static bool is_idle(const struct tfos__feed_channel_pool *pool, int queue)
{
    for (size_t i = 0; i < pool->count; i++)
        if (pool->channels[i]->queue == queue &&
            (pool->channels[i]->is_written ||
             !tfos__feed_pool_channel_is_drained(pool->channels[i])))
            return false;
    return true;
}

static enum tfos_status make_channel(struct tfos__feed_channel_pool *pool,
                                     const struct tfos__feed_channel_request *request,
                                     struct tfos__feed_pool_channel **out, struct tfos_error *err)
{
    void *channels = tfos__array_grow(pool->channels, pool->count, sizeof(void *));
    if (!channels)
        return tfos__no_memory(err, "feed", "a list of channels");
    pool->channels = channels;
    struct tfos__feed_pool_channel *channel = tfos__alloc(1, sizeof(*channel));
    if (!channel)
        return tfos__no_memory(err, "feed", "a channel");
    enum tfos_status status =
        tfos__feed_channel_create(request->size, request->result_size, &channel->fd, err);
    if (status != TFOS_OK)
        goto free_it;
    status = tfos__feed_channel_page_map(channel->fd, &channel->page, err);
    if (status != TFOS_OK)
        goto close_fd;
    channel->number = pool->next_number++;
    channel->queue = request->queue;
    channel->size = request->size;
    channel->result_size = request->result_size;
    channel->is_extra = request->is_extra;
    pool->channels[pool->count++] = channel;
    *account(pool, channel->is_extra) += whole_size(channel->size, channel->result_size);
    *out = channel;
    return TFOS_OK;
close_fd:
    close(channel->fd);
free_it:
    tfos__free(channel);
    return status;
}

static struct tfos__feed_pool_channel *find_free(const struct tfos__feed_channel_pool *pool,
                                                 const struct tfos__feed_channel_request *request)
{
    for (size_t i = 0; i < pool->count; i++) {
        struct tfos__feed_pool_channel *channel = pool->channels[i];
        if (channel->queue == request->queue && channel->size == request->size &&
            channel->result_size == request->result_size &&
            channel->is_extra == request->is_extra && channel->is_announced && is_free(channel) &&
            !is_abandoned(channel))
            return channel;
    }
    return NULL;
}

// Prepares the header for the new writer, which sees it once the message with the channel has come.
static void hand_out(struct tfos__feed_pool_channel *channel, uint64_t first_row, const void *owner)
{
    uint64_t head = head_of(channel);

    for (int slot = 0; slot < 2; slot++) {
        atomic_store(&channel->page->published[slot].head, head);
        atomic_store(&channel->page->published[slot].rows, first_row);
        atomic_store(&channel->page->published[slot].left_out, 0);
    }
    atomic_store(&channel->page->before_channel, 0);
    atomic_store(&channel->page->before_head, 0);
    atomic_store(&channel->page->writer_waiters, 0);
    atomic_store(&channel->page->wanted, 0);
    atomic_store(&channel->page->head, head);
    channel->first_row = first_row;
    channel->owner = owner;
    channel->is_written = true;
}

enum tfos_status tfos__feed_channel_pool_take(struct tfos__feed_channel_pool *pool,
                                              const struct tfos__feed_channel_request *request,
                                              struct tfos__feed_pool_channel **out, bool *is_new,
                                              struct tfos_error *err)
{
    struct tfos__feed_pool_channel *channel = find_free(pool, request);

    *is_new = !channel;
    if (!channel) {
        bool has_room =
            make_room(pool, request->is_extra, whole_size(request->size, request->result_size));
        if (!has_room && !request->is_extra && !is_idle(pool, request->queue))
            return TFOS_AGAIN;
        TFOS__TRY(make_channel(pool, request, &channel, err));
    }
    hand_out(channel, request->first_row, request->owner);
    *out = channel;
    return TFOS_OK;
}

void tfos__feed_channel_pool_leave(struct tfos__feed_channel_pool *pool,
                                   struct tfos__feed_pool_channel *channel)
{
    if (channel->is_written)
        pool->gone_rows_written += tfos__feed_pool_channel_written(channel);
    channel->is_written = false;
}

void tfos__feed_channel_pool_fence(struct tfos__feed_channel_pool *pool,
                                   struct tfos__feed_pool_channel *channel)
{
    atomic_fetch_or(&channel->page->head, TFOS__FEED_HEAD_FENCED);
    tfos__feed_channel_pool_leave(pool, channel);
}

void tfos__feed_channel_pool_give_back(struct tfos__feed_channel_pool *pool,
                                       struct tfos__feed_pool_channel *channel)
{
    tfos__feed_channel_pool_fence(pool, channel);
    channel->owner = NULL;
}

void tfos__feed_channel_pool_trim(struct tfos__feed_channel_pool *pool)
{
    if (pool->total_size > pool->memory_limit)
        (void)make_room(pool, false, 0);
    if (pool->extra_size > pool->memory_limit)
        (void)make_room(pool, true, 0);
}

uint64_t tfos__feed_channel_pool_progress(const struct tfos__feed_channel_pool *pool, int queue)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < pool->count; i++)
        if (pool->channels[i]->queue == queue)
            sum += atomic_load(&pool->channels[i]->page->tail);
    return sum;
}

void tfos__feed_channel_pool_clear(struct tfos__feed_channel_pool *pool)
{
    for (size_t i = 0; i < pool->count; i++)
        free_channel(pool, pool->channels[i]);
    tfos__free(pool->channels);
    *pool = (struct tfos__feed_channel_pool){0};
}
