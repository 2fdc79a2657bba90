// SPDX-License-Identifier: Apache-2.0
// Rows stay in the batches that they came in. Whoever is drawn leaves its slot to the last row, and
// its batch as soon as half of that is gone, if it is worth it: then the rest is copied. So each
// row is copied about once.
#include "dataset/shuffle.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/random.h"

#define COPY_SIZE 65536 ///< a smaller batch waits for its last row instead

void tfos__shuffle_begin(struct tfos__shuffle *pool, uint64_t seed, int64_t epoch)
{
    pool->state = tfos__random_begin(seed, epoch);
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

static bool has_entered(const struct tfos__pooled *pooled)
{
    return pooled->entered_count == pooled->piece->array.length;
}

static bool is_worth_copying(const struct tfos__pooled *pooled)
{
    return pooled->piece->size >= COPY_SIZE && pooled->live_count < pooled->piece->array.length / 2;
}

static enum tfos_status draw(struct tfos__shuffle *pool, struct tfos__run_list *list,
                             struct tfos_error *err)
{
    int64_t place = (int64_t)(tfos__random_next(&pool->state) % (uint64_t)pool->count);
    struct tfos__slot drawn = pool->slots[place];
    struct tfos__pooled *pooled = drawn.pooled;
    struct tfos__piece *piece = pooled->piece;

    TFOS__TRY(tfos__run_list_add(list, piece, drawn.row, 1, err));
    struct tfos__slot last = pool->slots[--pool->count];
    pool->slots[place] = last;
    last.pooled->slots[last.row] = place;
    pooled->slots[drawn.row] = -1;
    pooled->live_count--;
    if (!has_entered(pooled)) // more rows of it come
        return TFOS_OK;
    if (pooled->live_count == 0)
        free_pooled(pool, pooled);
    else if (piece->binding && is_worth_copying(pooled))
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

/// A row that is in the pool at the point, and where it is there.
struct resident {
    int64_t row, slot;
};

static int compare_residents(const void *left, const void *right)
{
    int64_t a = ((const struct resident *)left)->row, b = ((const struct resident *)right)->row;
    return (a > b) - (a < b);
}

// Draws again, of numbers of rows; what is left is in `residents`, in the order of the slots.
static void redraw(struct tfos__shuffle *pool, const struct tfos__shuffle_point *point,
                   struct resident *residents)
{
    int64_t count = 0, next = 0;
    for (int64_t i = 0; i < point->drawn; i++) {
        while (count < pool->limit && next < point->entered)
            residents[count++].row = next++;
        int64_t place = (int64_t)(tfos__random_next(&pool->state) % (uint64_t)count);
        residents[place] = residents[--count];
    }
    for (int64_t i = 0; i < count; i++)
        residents[i].slot = i;
}

/// The residents that are still to come, in the order of their rows.
struct arrivals {
    const struct resident *next, *end;
    int64_t row; ///< number of the supply's next row
};

// Enters those rows of a run that are residents. The others have been given out.
static enum tfos_status admit(struct tfos__shuffle *pool, const struct tfos__run *run,
                              struct arrivals *arrivals, struct tfos__pooled **out,
                              struct tfos_error *err)
{
    struct tfos__pooled *pooled = make_pooled(run->piece);
    if (!pooled)
        return no_room(err);
    tfos__lease_hold(&run->piece->lease);
    pooled->entered_count = run->count;
    for (int64_t i = 0; i < run->count; i++, arrivals->row++) {
        if (arrivals->next == arrivals->end || arrivals->next->row != arrivals->row)
            continue;
        int64_t slot = arrivals->next++->slot;
        pooled->slots[run->first + i] = slot;
        pool->slots[slot] = (struct tfos__slot){pooled, run->first + i};
        pooled->live_count++;
    }
    pool->newest = pooled;
    *out = pooled;
    return TFOS_OK;
}

/// What resuming needs besides the pool.
struct resumption {
    struct tfos__supply *supply;
    const struct tfos__plan *plan;
    struct tfos__binding **binding;
    struct arrivals arrivals;
};

static enum tfos_status resume_run(struct tfos__shuffle *pool, struct resumption *resumption,
                                   const struct tfos__run *run, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = resumption->supply->options;
    struct tfos__pooled *pooled = NULL;
    TFOS__TRY(admit(pool, run, &resumption->arrivals, &pooled, err));
    if (options->use && pooled->live_count < run->count)
        options->use(options->context, run->piece->number, run->count - pooled->live_count);
    if (!has_entered(pooled))
        return TFOS_OK;
    if (pooled->live_count == 0)
        free_pooled(pool, pooled);
    else if (is_worth_copying(pooled)) {
        TFOS__TRY(tfos__piece_bind(run->piece, resumption->plan, resumption->binding, err));
        return compact(pool, pooled, err);
    }
    return TFOS_OK;
}

// Reads rows up to number `entered`. END: there are fewer.
static enum tfos_status resume_rows(struct tfos__shuffle *pool, struct resumption *resumption,
                                    int64_t entered, struct tfos_error *err)
{
    struct tfos__supply *supply = resumption->supply;
    struct tfos__run_list list = {0};
    enum tfos_status status = TFOS_OK;
    while (status == TFOS_OK && resumption->arrivals.row < entered) {
        status = supply->row_count > 0
                     ? tfos__supply_take(supply, entered - resumption->arrivals.row, &list, err)
                     : tfos__supply_read(supply, -1, err);
        for (int64_t i = 0; i < list.count && status == TFOS_OK; i++)
            status = resume_run(pool, resumption, &list.runs[i], err);
        tfos__run_list_drop(&list);
    }
    tfos__run_list_clear(&list);
    return status;
}

enum tfos_status tfos__shuffle_resume(struct tfos__shuffle *pool, struct tfos__supply *supply,
                                      const struct tfos__shuffle_point *point,
                                      const struct tfos__plan *plan, struct tfos__binding **binding,
                                      struct tfos_error *err)
{
    int64_t count = point->entered - point->drawn;
    int64_t most = point->entered < pool->limit ? point->entered : pool->limit;
    if (point->drawn < 0 || point->first < 0 || count < 0 || count > most)
        return tfos__fail(
            err, TFOS_INVALID, "dataset: no pool of %lld rows has given %lld of %lld rows",
            (long long)pool->limit, (long long)point->drawn, (long long)point->entered);
    struct resident *residents = tfos__alloc((size_t)most, sizeof *residents);
    enum tfos_status status = residents ? reserve(pool, count, err) : no_room(err);
    if (status == TFOS_OK) {
        redraw(pool, point, residents);
        qsort(residents, (size_t)count, sizeof *residents, compare_residents);
        for (pool->count = 0; pool->count < count; pool->count++)
            pool->slots[pool->count] = (struct tfos__slot){0};
        struct resumption resumption = {
            supply, plan, binding, {residents, residents + count, point->first}};
        status = resume_rows(pool, &resumption, point->entered, err);
    }
    tfos__free(residents);
    return status;
}

void tfos__shuffle_drop(struct tfos__shuffle *pool)
{
    while (pool->count > 0) {
        struct tfos__pooled *pooled = pool->slots[--pool->count].pooled;
        if (!pooled) // it has not been filled
            continue;
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
