// SPDX-License-Identifier: Apache-2.0
// A lane that is freed loses its memory at once by a hole punched into its file, although the
// reader still maps it: its first page, marked as retired, stays until the reader has seen the
// mark. A fenced writer that still lives may write into its lane at any time, so a lane is never
// given to another before its owner has gone.
#include "feed/pool.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "feed/record.h"

#define READ_TRIES 100

static uint64_t whole_size(uint64_t size, uint64_t result_size)
{
    return TFOS__PAGE_SIZE + size + result_size;
}

static uint64_t head_of(const struct tfos__pool_lane *lane)
{
    return atomic_load(&lane->page->head) & ~TFOS__HEAD_FENCED;
}

uint64_t tfos__pool_lane_rows(const struct tfos__pool_lane *lane, bool *is_complete)
{
    uint64_t rows = lane->first_row;

    // A living writer may publish between the looks; a fenced one cannot, and the first try
    // succeeds.
    for (int i = 0; i < READ_TRIES; i++) {
        uint64_t head = head_of(lane);
        const struct tfos__published *slots = lane->page->published;
        bool is_found = false;
        for (int slot = 0; slot < 2 && !is_found; slot++) {
            is_found = atomic_load_explicit(&slots[slot].head, memory_order_acquire) == head;
            if (is_found)
                rows = atomic_load_explicit(&slots[slot].rows, memory_order_acquire);
        }
        if (is_found && head_of(lane) == head)
            break;
    }
    if (is_complete)
        *is_complete = (rows & TFOS__ROWS_COMPLETE) != 0;
    rows &= ~TFOS__ROWS_COMPLETE;
    return rows >= lane->first_row && rows <= INT64_MAX ? rows : lane->first_row;
}

bool tfos__pool_lane_is_drained(const struct tfos__pool_lane *lane)
{
    uint64_t tail = atomic_load(&lane->page->tail);

    return (tail & TFOS__TAIL_ABANDONED) || tail == head_of(lane);
}

bool tfos__pool_lane_is_read(const struct tfos__pool_lane *lane)
{
    uint64_t tail = atomic_load(&lane->page->tail);
    bool is_complete = false;

    if (tfos__pool_lane_is_drained(lane))
        return true;
    tfos__pool_lane_rows(lane, &is_complete);
    return is_complete && head_of(lane) - tail == tfos__record_size(0);
}

// A lane that the reader gave up is never handed out again.
static bool is_abandoned(const struct tfos__pool_lane *lane)
{
    return atomic_load(&lane->page->tail) & TFOS__TAIL_ABANDONED;
}

static bool is_free(const struct tfos__pool_lane *lane)
{
    return !lane->owner && tfos__pool_lane_is_drained(lane);
}

static void free_lane(struct tfos__pool *pool, struct tfos__pool_lane *lane)
{
    pool->total_size -= whole_size(lane->size, lane->result_size);
    tfos__lane_page_unmap(lane->page);
    close(lane->fd);
    tfos__free(lane);
}

static void retire(struct tfos__pool *pool, size_t index)
{
    struct tfos__pool_lane *lane = pool->lanes[index];

    pool->gone_rows_read[lane->queue] += atomic_load(&lane->page->rows_released);
    pool->gone_bytes += head_of(lane);
    pool->gone_waited_us += atomic_load(&lane->page->waited_us);
    atomic_store(&lane->page->is_retired, 1);
    (void)fallocate(lane->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, TFOS__PAGE_SIZE,
                    (off_t)(lane->size + lane->result_size));
    free_lane(pool, lane);
    pool->count--;
    memmove(&pool->lanes[index], &pool->lanes[index + 1],
            (pool->count - index) * sizeof pool->lanes[0]);
}

// Frees unused lanes until `needed` more bytes keep the limit.
static bool make_room(struct tfos__pool *pool, uint64_t needed)
{
    for (size_t i = pool->count; i-- > 0;) {
        bool is_tight =
            pool->total_size + needed > pool->memory_limit || pool->count >= TFOS__LANE_COUNT_LIMIT;
        if (pool->lanes[i]->is_announced && is_free(pool->lanes[i]) &&
            (is_tight || is_abandoned(pool->lanes[i])))
            retire(pool, i);
    }
    return pool->total_size + needed <= pool->memory_limit && pool->count < TFOS__LANE_COUNT_LIMIT;
}

// Whether no lane of the queue is being written to or holds anything unread. Then one may be made
// beyond the limit, or a row larger than that could never come, nor could a row of this queue while
// the reader leaves those of the others.
static bool is_idle(const struct tfos__pool *pool, int queue)
{
    for (size_t i = 0; i < pool->count; i++)
        if (pool->lanes[i]->queue == queue &&
            (pool->lanes[i]->is_written || !tfos__pool_lane_is_drained(pool->lanes[i])))
            return false;
    return true;
}

static enum tfos_status make_lane(struct tfos__pool *pool, const struct tfos__pool_request *request,
                                  struct tfos__pool_lane **out, struct tfos_error *err)
{
    if (pool->count == pool->capacity) {
        size_t capacity = pool->capacity * 2 + 8;
        struct tfos__pool_lane **lanes = tfos__realloc(pool->lanes, capacity, sizeof(void *));
        if (!lanes)
            return tfos__no_memory(err, "feed", "a list of lanes");
        pool->lanes = lanes;
        pool->capacity = capacity;
    }
    struct tfos__pool_lane *lane = tfos__alloc(1, sizeof *lane);
    if (!lane)
        return tfos__no_memory(err, "feed", "a lane");
    enum tfos_status status =
        tfos__lane_create(request->size, request->result_size, &lane->fd, err);
    if (status != TFOS_OK)
        goto free_it;
    status = tfos__lane_page_map(lane->fd, &lane->page, err);
    if (status != TFOS_OK)
        goto close_fd;
    lane->number = pool->next_number++;
    lane->queue = request->queue;
    lane->size = request->size;
    lane->result_size = request->result_size;
    pool->lanes[pool->count++] = lane;
    pool->total_size += whole_size(lane->size, lane->result_size);
    *out = lane;
    return TFOS_OK;
close_fd:
    close(lane->fd);
free_it:
    tfos__free(lane);
    return status;
}

static struct tfos__pool_lane *find_free(const struct tfos__pool *pool,
                                         const struct tfos__pool_request *request)
{
    for (size_t i = 0; i < pool->count; i++) {
        struct tfos__pool_lane *lane = pool->lanes[i];
        if (lane->queue == request->queue && lane->size == request->size &&
            lane->result_size == request->result_size && lane->is_announced && is_free(lane) &&
            !is_abandoned(lane))
            return lane;
    }
    return NULL;
}

// Writes what the new writer finds in the header. It sees this by the message that hands it the
// lane.
static void hand_out(struct tfos__pool_lane *lane, uint64_t first_row, const void *owner)
{
    uint64_t head = head_of(lane);

    for (int slot = 0; slot < 2; slot++) {
        atomic_store(&lane->page->published[slot].head, head);
        atomic_store(&lane->page->published[slot].rows, first_row);
    }
    atomic_store(&lane->page->before_lane, 0);
    atomic_store(&lane->page->before_head, 0);
    atomic_store(&lane->page->writer_sleepers, 0);
    atomic_store(&lane->page->wanted, 0);
    atomic_store(&lane->page->head, head);
    lane->first_row = first_row;
    lane->owner = owner;
    lane->is_written = true;
}

enum tfos_status tfos__pool_take(struct tfos__pool *pool, const struct tfos__pool_request *request,
                                 struct tfos__pool_lane **out, bool *is_new, struct tfos_error *err)
{
    struct tfos__pool_lane *lane = find_free(pool, request);

    *is_new = !lane;
    if (!lane) {
        if (!make_room(pool, whole_size(request->size, request->result_size)) &&
            !is_idle(pool, request->queue))
            return TFOS_AGAIN;
        TFOS__TRY(make_lane(pool, request, &lane, err));
    }
    hand_out(lane, request->first_row, request->owner);
    *out = lane;
    return TFOS_OK;
}

void tfos__pool_leave(struct tfos__pool *pool, struct tfos__pool_lane *lane)
{
    if (lane->is_written)
        pool->gone_rows_written += tfos__pool_lane_rows(lane, NULL) - lane->first_row;
    lane->is_written = false;
}

void tfos__pool_fence(struct tfos__pool *pool, struct tfos__pool_lane *lane)
{
    atomic_fetch_or(&lane->page->head, TFOS__HEAD_FENCED);
    tfos__pool_leave(pool, lane);
}

void tfos__pool_give_back(struct tfos__pool *pool, struct tfos__pool_lane *lane)
{
    tfos__pool_fence(pool, lane);
    lane->owner = NULL;
}

void tfos__pool_trim(struct tfos__pool *pool)
{
    if (pool->total_size > pool->memory_limit)
        (void)make_room(pool, 0);
}

uint64_t tfos__pool_progress(const struct tfos__pool *pool, int queue)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < pool->count; i++)
        if (pool->lanes[i]->queue == queue)
            sum += atomic_load(&pool->lanes[i]->page->tail);
    return sum;
}

void tfos__pool_clear(struct tfos__pool *pool)
{
    for (size_t i = 0; i < pool->count; i++)
        free_lane(pool, pool->lanes[i]);
    tfos__free(pool->lanes);
    *pool = (struct tfos__pool){0};
}
