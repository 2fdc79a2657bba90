// SPDX-License-Identifier: Apache-2.0
// Lanes give their batches in turn, one each, so that the order does not depend on which thread is
// faster. A lane with a thread reads ahead by a few batches.
#include "dataset/file_source.h"

#include <stdbool.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define AHEAD 3         // batches that a lane holds ready
#define MOST_LANES 1024 // threads

/// A batch, and where its lane stood behind it.
struct ready {
    struct tfos_feed_item item; ///< owned
    struct tfos__file_place behind;
};

/// A lane and what it has read. Guarded by the source's mutex but for the files, which are the
/// thread's.
struct lane {
    struct tfos__file_lane files;
    struct tfos__file_source *source;
    pthread_t thread;
    bool has_thread;
    struct ready ready[AHEAD]; ///< from `first` on
    int first, count;
    enum tfos_status status; ///< what comes behind them, once it is not OK
    struct tfos_error failure;
};

struct tfos__file_source {
    struct tfos__recipe *recipe; ///< held
    struct tfos__file_order order;
    struct tfos__read_log log;
    struct lane *lanes; ///< owned
    int64_t lane_count;
    int64_t turn; ///< the lane that is next
    bool has_begun;
    enum tfos_status failure; ///< what every call gives from now on, unless OK
    struct tfos_error failure_error;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_closing; ///< guarded by the mutex
};

static enum tfos_status make_lanes(struct tfos__file_source *source, int64_t parallel_reads,
                                   struct tfos_error *err)
{
    int64_t files = source->order.file_count;
    int64_t count = parallel_reads < files ? parallel_reads : files;
    count = count < 1 ? 1 : count;
    source->lanes = tfos__alloc((size_t)count, sizeof *source->lanes);
    if (!source->lanes)
        return tfos__no_memory(err, "dataset", "files");
    source->lane_count = count;
    for (int64_t i = 0; i < count; i++) {
        source->lanes[i].source = source;
        source->lanes[i].files =
            (struct tfos__file_lane){.order = &source->order, .place = {.file = i}, .step = count};
    }
    return tfos__read_log_init(&source->log, count, err);
}

enum tfos_status tfos__file_source_open(struct tfos__recipe *recipe,
                                        const struct tfos_record_pass *pass,
                                        struct tfos__file_source **out, struct tfos_error *err)
{
    if (pass->parallel_reads < 0 || pass->parallel_reads > MOST_LANES)
        return tfos__fail(err, TFOS_INVALID, "dataset: option parallel_reads: it is from 0 to %d",
                          MOST_LANES);
    struct tfos__file_source *source = tfos__alloc(1, sizeof *source);
    if (!source)
        return tfos__no_memory(err, "dataset", "files");
    pthread_mutex_init(&source->mutex, NULL);
    pthread_cond_init(&source->changed, NULL);
    tfos__recipe_hold(recipe);
    source->recipe = recipe;
    enum tfos_status status = tfos__file_order_init(&source->order, recipe, pass, err);
    if (status == TFOS_OK)
        status = make_lanes(source, pass->parallel_reads, err);
    if (status < 0)
        tfos__file_source_close(source);
    else
        *out = source;
    return status;
}

const struct tfos__file_order *tfos__file_source_order(const struct tfos__file_source *source)
{
    return &source->order;
}

const struct tfos__read_log *tfos__file_source_log(const struct tfos__file_source *source)
{
    return &source->log;
}

const char *tfos__file_source_name(void *context, int64_t partition, int64_t *row_step)
{
    const struct tfos__file_source *source = context;
    *row_step = source->order.files[partition].stride;
    return source->order.files[partition].path;
}

static void drop_item(struct tfos_feed_item *item)
{
    item->array.release(&item->array);
    item->schema.release(&item->schema);
}

// Waits for room and puts what was read there. False: there is nothing more to do.
static bool put(struct lane *lane, enum tfos_status status, struct tfos_feed_item *item,
                const struct tfos_error *failure)
{
    struct tfos__file_source *source = lane->source;
    pthread_mutex_lock(&source->mutex);
    while (status == TFOS_OK && lane->count == AHEAD && !source->is_closing)
        pthread_cond_wait(&source->changed, &source->mutex);
    bool goes_on = status == TFOS_OK && !source->is_closing;
    if (goes_on)
        lane->ready[(lane->first + lane->count++) % AHEAD] =
            (struct ready){*item, lane->files.place};
    else if (status == TFOS_OK)
        drop_item(item);
    lane->status = status;
    if (status < 0)
        lane->failure = *failure;
    pthread_cond_broadcast(&source->changed);
    pthread_mutex_unlock(&source->mutex);
    return goes_on;
}

static void *run_lane(void *context)
{
    struct lane *lane = context;
    struct tfos_feed_item item = {0};
    struct tfos_error failure;
    enum tfos_status status;
    do
        status = tfos__file_lane_next(&lane->files, &item, &failure);
    while (put(lane, status, &item, &failure));
    return NULL;
}

static enum tfos_status start_lanes(struct tfos__file_source *source, struct tfos_error *err)
{
    source->has_begun = true;
    for (int64_t i = 0; i < source->lane_count && source->lane_count > 1; i++) {
        struct lane *lane = &source->lanes[i];
        int fault = pthread_create(&lane->thread, NULL, run_lane, lane);
        if (fault != 0)
            return tfos__fail(err, TFOS_IO,
                              "dataset: cannot start thread %lld of %lld for files: %s",
                              (long long)i + 1, (long long)source->lane_count, strerror(fault));
        lane->has_thread = true;
    }
    return TFOS_OK;
}

// The next batch of a lane with a thread. END: the lane has no more.
static enum tfos_status take(struct lane *lane, struct ready *taken, struct tfos_error *err)
{
    struct tfos__file_source *source = lane->source;
    pthread_mutex_lock(&source->mutex);
    while (lane->count == 0 && lane->status == TFOS_OK)
        pthread_cond_wait(&source->changed, &source->mutex);
    enum tfos_status status = TFOS_OK;
    if (lane->count > 0) {
        *taken = lane->ready[lane->first];
        lane->first = (lane->first + 1) % AHEAD;
        lane->count--;
        pthread_cond_broadcast(&source->changed);
    } else {
        status = lane->status;
        if (status < 0 && err)
            *err = lane->failure;
    }
    pthread_mutex_unlock(&source->mutex);
    return status;
}

static enum tfos_status read_alone(struct lane *lane, struct ready *taken, struct tfos_error *err)
{
    enum tfos_status status = tfos__file_lane_next(&lane->files, &taken->item, err);
    taken->behind = lane->files.place;
    return status;
}

static enum tfos_status next(struct tfos__file_source *source, struct tfos_feed_item *item,
                             struct tfos_error *err)
{
    if (!source->has_begun)
        TFOS__TRY(start_lanes(source, err));
    for (int64_t tried = 0; tried < source->lane_count; tried++) {
        int64_t turn = source->turn;
        struct lane *lane = &source->lanes[turn];
        struct ready taken;
        source->turn = (turn + 1) % source->lane_count;
        enum tfos_status status =
            lane->has_thread ? take(lane, &taken, err) : read_alone(lane, &taken, err);
        if (status == TFOS_END)
            continue;
        if (status != TFOS_OK)
            return status;
        int64_t row_count = taken.item.array.length;
        struct tfos__read read = {turn, taken.behind, row_count, row_count};
        status = tfos__read_log_add(&source->log, &read, err);
        if (status == TFOS_OK)
            *item = taken.item;
        else
            drop_item(&taken.item);
        return status;
    }
    return TFOS_END;
}

// What has failed stays so: other lanes would go on without the rows of that one.
enum tfos_status tfos__file_source_next(void *context, int64_t timeout_ms,
                                        struct tfos_feed_item *item, struct tfos_error *err)
{
    struct tfos__file_source *source = context;
    (void)timeout_ms; // files are there
    if (source->failure == TFOS_OK) {
        enum tfos_status status = next(source, item, &source->failure_error);
        if (status >= 0)
            return status;
        source->failure = status;
    }
    if (err)
        *err = source->failure_error;
    return source->failure;
}

void tfos__file_source_use(void *context, int64_t number, int64_t count)
{
    struct tfos__file_source *source = context;
    tfos__read_log_use(&source->log, number, count);
}

static void stop_lanes(struct tfos__file_source *source)
{
    pthread_mutex_lock(&source->mutex);
    source->is_closing = true;
    pthread_cond_broadcast(&source->changed);
    pthread_mutex_unlock(&source->mutex);
    for (int64_t i = 0; i < source->lane_count; i++) {
        struct lane *lane = &source->lanes[i];
        if (lane->has_thread)
            pthread_join(lane->thread, NULL);
        lane->has_thread = false;
        for (; lane->count > 0; lane->count--) {
            drop_item(&lane->ready[lane->first].item);
            lane->first = (lane->first + 1) % AHEAD;
        }
        lane->status = TFOS_OK;
    }
    source->is_closing = false;
    source->has_begun = false;
}

void tfos__file_source_resume(struct tfos__file_source *source,
                              const struct tfos__file_resumption *from)
{
    stop_lanes(source);
    source->failure = TFOS_OK;
    source->turn = from->turn;
    tfos__file_order_set_seed(&source->order, from->seed);
    tfos__read_log_restart(&source->log);
    source->log.turn = from->turn;
    source->log.row_count = from->row_count;
    for (int64_t i = 0; i < source->lane_count; i++) {
        source->log.places[i] = from->places[i];
        tfos__file_lane_move(&source->lanes[i].files, from->places[i]);
    }
}

void tfos__file_source_close(void *context)
{
    struct tfos__file_source *source = context;
    if (!source)
        return;
    stop_lanes(source);
    for (int64_t i = 0; i < source->lane_count; i++)
        tfos__file_lane_move(&source->lanes[i].files, (struct tfos__file_place){0});
    tfos__free(source->lanes);
    tfos__read_log_clear(&source->log);
    tfos__file_order_clear(&source->order);
    tfos__recipe_release(source->recipe);
    pthread_cond_destroy(&source->changed);
    pthread_mutex_destroy(&source->mutex);
    tfos__free(source);
}
