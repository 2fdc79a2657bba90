// SPDX-License-Identifier: Apache-2.0
// Rows stay in the batches that they came in. Whoever is drawn leaves its slot to the last row, and
// its batch as soon as half of that is gone, if it is worth it: then the rest is copied. So each
// row is copied about once.
#include "dataset/shuffle.h"

#include "base/fail.h"
#include "base/memory.h"

#define COPY_SIZE 65536 ///< a smaller batch waits for its last row instead

void tfos__shuffle_begin(struct tfos__shuffle *pool, uint64_t seed, int64_t epoch)
{
    pool->state = seed ^ ((uint64_t)epoch * UINT64_C(0xd1342543de82ef95));
}

// SplitMix64.
static uint64_t next_random(struct tfos__shuffle *pool)
{
    uint64_t word = pool->state += UINT64_C(0x9e3779b97f4a7c15);

    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

static void free_pooled(struct tfos__shuffle *pool, struct tfos__pooled *pooled)
{
    if (pool->newest == pooled)
        pool->newest = NULL;
    tfos__lease_release(&pooled->piece->lease);
    tfos__free(pooled->slots);
    tfos__free(pooled);
}

// The record of a piece that has rows in the pool.
static struct tfos__pooled *make_pooled(struct tfos__piece *piece)
{
    struct tfos__pooled *pooled = tfos__alloc(1, sizeof *pooled);
    int64_t *slots = tfos__alloc((size_t)piece->array.length, sizeof *slots);

    if (!pooled || !slots) {
        tfos__free(pooled);
        tfos__free(slots);
        return NULL;
    }
    for (int64_t i = 0; i < piece->array.length; i++)
        slots[i] = -1;
    pooled->piece = piece;
    pooled->slots = slots;
    return pooled;
}

static enum tfos_status no_room(struct tfos_error *err)
{
    return tfos__no_memory(err, "dataset", "rows to shuffle");
}

static enum tfos_status reserve(struct tfos__shuffle *pool, int64_t count, struct tfos_error *err)
{
    if (pool->count + count <= pool->capacity)
        return TFOS_OK;
    int64_t capacity =
        pool->capacity * 2 > pool->count + count ? pool->capacity * 2 : pool->count + count;
    struct tfos__slot *slots = tfos__realloc(pool->slots, (size_t)capacity, sizeof *slots);
    if (!slots)
        return no_room(err);
    pool->slots = slots;
    pool->capacity = capacity;
    return TFOS_OK;
}

static enum tfos_status enter(struct tfos__shuffle *pool, const struct tfos__run *run,
                              struct tfos_error *err)
{
    struct tfos__pooled *pooled = pool->newest;

    TFOS__TRY(reserve(pool, run->count, err));
    if (!pooled || pooled->piece != run->piece) {
        pooled = make_pooled(run->piece);
        if (!pooled)
            return no_room(err);
        tfos__lease_hold(&run->piece->lease);
        pool->newest = pooled;
    }
    for (int64_t row = run->first; row < run->first + run->count; row++) {
        pooled->slots[row] = pool->count;
        pool->slots[pool->count++] = (struct tfos__slot){pooled, row};
    }
    pooled->live_count += run->count;
    pooled->entered_count += run->count;
    return TFOS_OK;
}

static enum tfos_status refill(struct tfos__shuffle *pool, struct tfos__supply *supply,
                               struct tfos_error *err)
{
    struct tfos__run_list list = {0};
    enum tfos_status status = TFOS_OK;

    if (pool->count >= pool->limit || supply->row_count == 0)
        return TFOS_OK;
    status = tfos__supply_take(supply, pool->limit - pool->count, &list, err);
    for (int64_t i = 0; i < list.count && status == TFOS_OK; i++)
        status = enter(pool, &list.runs[i], err);
    tfos__run_list_clear(&list);
    return status;
}

static enum tfos_status copy_rows(const struct tfos__pooled *pooled, struct tfos__arrow_span *spans,
                                  struct tfos__piece **out, struct tfos_error *err)
{
    int64_t count = 0;

    for (int64_t row = 0; row < pooled->piece->array.length; row++)
        if (pooled->slots[row] >= 0)
            spans[count++] = (struct tfos__arrow_span){row, 1};
    return tfos__piece_extract(pooled->piece, spans, count, out, err);
}

// Moves what is left of a piece to a copy of just that.
static enum tfos_status compact(struct tfos__shuffle *pool, struct tfos__pooled *pooled,
                                struct tfos_error *err)
{
    struct tfos__piece *piece = NULL;
    struct tfos__arrow_span *spans = tfos__alloc((size_t)pooled->live_count, sizeof *spans);
    enum tfos_status status = spans ? copy_rows(pooled, spans, &piece, err) : no_room(err);

    if (status != TFOS_OK)
        goto free_spans;
    struct tfos__pooled *copy = make_pooled(piece);
    if (!copy) {
        tfos__lease_release(&piece->lease);
        status = no_room(err);
        goto free_spans;
    }
    copy->entered_count = copy->live_count = pooled->live_count;
    for (int64_t row = 0; row < copy->live_count; row++) {
        copy->slots[row] = pooled->slots[spans[row].first];
        pool->slots[copy->slots[row]] = (struct tfos__slot){copy, row};
    }
    free_pooled(pool, pooled);
free_spans:
    tfos__free(spans);
    return status;
}

static enum tfos_status draw(struct tfos__shuffle *pool, struct tfos__run_list *list,
                             struct tfos_error *err)
{
    int64_t place = (int64_t)(next_random(pool) % (uint64_t)pool->count);
    struct tfos__slot drawn = pool->slots[place];
    struct tfos__pooled *pooled = drawn.pooled;
    struct tfos__piece *piece = pooled->piece;

    TFOS__TRY(tfos__run_list_add(list, piece, drawn.row, 1, err));
    struct tfos__slot last = pool->slots[--pool->count];
    pool->slots[place] = last;
    last.pooled->slots[last.row] = place;
    pooled->slots[drawn.row] = -1;
    pooled->live_count--;
    bool has_entered = pooled->entered_count == piece->array.length;
    if (!has_entered) // more rows of it come
        return TFOS_OK;
    if (pooled->live_count == 0)
        free_pooled(pool, pooled);
    else if (piece->binding && piece->size >= COPY_SIZE &&
             pooled->live_count < piece->array.length / 2)
        return compact(pool, pooled, err);
    return TFOS_OK;
}

enum tfos_status tfos__shuffle_draw(struct tfos__shuffle *pool, struct tfos__supply *supply,
                                    int64_t count, struct tfos__run_list *list,
                                    struct tfos_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        TFOS__TRY(refill(pool, supply, err));
        if (pool->count == 0)
            break;
        TFOS__TRY(draw(pool, list, err));
    }
    return TFOS_OK;
}

void tfos__shuffle_drop(struct tfos__shuffle *pool)
{
    while (pool->count > 0) {
        struct tfos__pooled *pooled = pool->slots[--pool->count].pooled;
        if (--pooled->live_count == 0)
            free_pooled(pool, pooled);
    }
    if (pool->newest)
        free_pooled(pool, pool->newest);
}

void tfos__shuffle_clear(struct tfos__shuffle *pool)
{
    tfos__shuffle_drop(pool);
    tfos__free(pool->slots);
    *pool = (struct tfos__shuffle){0};
}
