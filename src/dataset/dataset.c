// SPDX-License-Identifier: Apache-2.0
// A dataset reads ahead of what it gives out only as far as it can without waiting; in step, that
// is what it may promise the other nodes.
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/state.h"
#include "dataset/tensor.h"
#include "feed/feed.h"

#define FIRST_ROWS_WAIT_MS 5000
#define ROWS_WAIT_MS 200

static enum tfos_status check_options(const struct tfos_dataset_options *options,
                                      struct tfos_error *err)
{
    const char *wrong = NULL;

    if (!options->reader == !options->next)
        wrong = "reader and next: there must be one of them";
    else if (options->batch_size < 1 || options->batch_size > INT32_MAX)
        wrong = "batch_size: it is from 1 to 2,147,483,647";
    else if (options->shuffle_rows < 0 || options->shuffle_rows > INT32_MAX)
        wrong = "shuffle_rows: it is from 0 to 2,147,483,647";
    else if (options->uneven < TFOS_UNEVEN_IGNORE || options->uneven > TFOS_UNEVEN_STOP)
        wrong = "uneven: it is unknown";
    else if (options->first_rows_wait_ms < 0 || options->rows_wait_ms < 0)
        wrong = "first_rows_wait_ms and rows_wait_ms: they are 0 or more";
    else if (options->uneven != TFOS_UNEVEN_IGNORE && (!options->agree || !options->name))
        wrong = "agree and name: nodes that stay in step need them";
    return wrong ? tfos__fail(err, TFOS_INVALID, "dataset: option %s", wrong) : TFOS_OK;
}

static void free_dataset(struct tfos_dataset *dataset)
{
    tfos__run_list_clear(&dataset->batch);
    tfos__shuffle_clear(&dataset->pool);
    tfos__supply_clear(&dataset->supply);
    tfos__binding_release(dataset->binding);
    tfos__plan_clear(&dataset->plan);
    tfos__outlook_clear(&dataset->outlook);
    tfos__wishes_clear(&dataset->wishes);
    pthread_mutex_destroy(&dataset->mutex);
    tfos__fork_guard_clear(&dataset->guard);
    tfos__free(dataset->specs);
    tfos__free(dataset->name);
    tfos__free(dataset);
}

enum tfos_status tfos_dataset_open(const struct tfos_dataset_options *options,
                                   struct tfos_dataset **out, struct tfos_error *err)
{
    TFOS__TRY(check_options(options, err));
    struct tfos_dataset *dataset = tfos__alloc(1, sizeof *dataset);
    if (!dataset)
        return tfos__no_memory(err, "dataset", "a dataset");
    pthread_mutex_init(&dataset->mutex, NULL);
    dataset->options = *options;
    dataset->options.columns = NULL;
    dataset->options.selection = NULL;
    dataset->options.like = NULL;
    dataset->options.null_value = NULL;
    dataset->supply.options = &dataset->options;
    dataset->pool.limit = options->shuffle_rows;
    tfos__shuffle_begin(&dataset->pool, options->seed, 1);
    dataset->cohort = (struct tfos__cohort){.options = &dataset->options, .epoch = 1};
    enum tfos_status status = tfos__fork_guard_init(&dataset->guard, err);
    if (status == TFOS_OK)
        status = tfos__wishes_init(&dataset->wishes, options, err);
    if (status == TFOS_OK && !(dataset->name = tfos__strdup(options->name ? options->name : "")))
        status = tfos__no_memory(err, "dataset", "a dataset");
    if (status == TFOS_OK && options->like)
        status = tfos__dataset_adopt(dataset, options->like, err);
    if (status != TFOS_OK) {
        free_dataset(dataset);
        return status;
    }
    dataset->options.name = dataset->name;
    // Rows that are shuffled are gathered anyway.
    if (options->reader)
        tfos__feed_reader_set_batch_rows(options->reader,
                                         options->shuffle_rows > 0 ? 0 : options->batch_size);
    tfos__catalogue_add(&dataset->card, dataset);
    *out = dataset;
    return TFOS_OK;
}

enum tfos_status tfos__dataset_check_process(const struct tfos_dataset *dataset,
                                             struct tfos_error *err)
{
    if (dataset->options.reader)
        return tfos_feed_reader_check(dataset->options.reader, err);
    if (!tfos__fork_guard_is_inherited(&dataset->guard))
        return TFOS_OK;
    return tfos__fork_guard_check(&dataset->guard, "dataset", "open the files in it anew", err);
}

enum tfos_status tfos_dataset_get_specs(struct tfos_dataset *dataset, int64_t timeout_ms,
                                        const struct tfos_tensor_spec **specs, int64_t *spec_count,
                                        enum tfos_row_structure *structure, struct tfos_error *err)
{
    enum tfos_status status = tfos__dataset_check_process(dataset, err);

    if (status == TFOS_OK && !atomic_load(&dataset->is_ready)) {
        pthread_mutex_lock(&dataset->mutex);
        status = tfos__dataset_prepare(dataset, timeout_ms, err);
        pthread_mutex_unlock(&dataset->mutex);
    }
    if (status != TFOS_OK)
        return status;
    *specs = dataset->specs;
    *spec_count = dataset->spec_count;
    *structure = dataset->plan.structure;
    return TFOS_OK;
}

// Rows that can be given out without waiting: all but those that the pool is to be refilled with.
static int64_t rows_at_hand(const struct tfos_dataset *dataset)
{
    int64_t count = dataset->supply.row_count + dataset->pool.count;
    int64_t kept = dataset->supply.is_ended ? 0 : dataset->pool.limit;

    return count > kept ? count - kept : 0;
}

// Waits for the rows of a batch, or the end of the epoch. AGAIN at the deadline.
static enum tfos_status await_batch(struct tfos_dataset *dataset, int64_t deadline,
                                    struct tfos_error *err)
{
    while (!dataset->supply.is_ended && rows_at_hand(dataset) < dataset->options.batch_size) {
        enum tfos_status status = tfos__supply_await(&dataset->supply, deadline, err);
        if (status < 0 || status == TFOS_AGAIN)
            return status;
    }
    return TFOS_OK;
}

// Reads what is there already. Whether there may be more than it reads.
static enum tfos_status look_ahead(struct tfos_dataset *dataset, bool *is_full,
                                   struct tfos_error *err)
{
    int64_t most = dataset->options.batch_size * TFOS__COHORT_STEPS;
    enum tfos_status status = TFOS_OK;

    while (status == TFOS_OK &&
           (dataset->cohort.is_pressed ||
            (rows_at_hand(dataset) < most && dataset->supply.size < TFOS__AHEAD_SIZE)))
        status = tfos__supply_read(&dataset->supply, 0, err);
    *is_full = status == TFOS_OK;
    return status < 0 ? status : TFOS_OK;
}

int64_t tfos__dataset_patience(const struct tfos_dataset *dataset)
{
    const struct tfos_dataset_options *options = &dataset->options;

    if (dataset->has_begun || dataset->is_forsaken)
        return tfos__deadline(options->rows_wait_ms ? options->rows_wait_ms : ROWS_WAIT_MS);
    return tfos__deadline(options->first_rows_wait_ms ? options->first_rows_wait_ms
                                                      : FIRST_ROWS_WAIT_MS);
}

// Asks the other nodes how many steps to go.
static enum tfos_status agree_on_steps(struct tfos_dataset *dataset, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = &dataset->options;

    bool is_full = false;

    enum tfos_status status = await_batch(dataset, tfos__dataset_patience(dataset), err);
    TFOS__TRY(status);
    TFOS__TRY(look_ahead(dataset, &is_full, err));
    dataset->has_begun |= rows_at_hand(dataset) > 0;
    dataset->is_forsaken =
        rows_at_hand(dataset) == 0 && (dataset->is_forsaken || status == TFOS_AGAIN);
    int64_t batch_count = rows_at_hand(dataset) / options->batch_size;
    if (dataset->supply.is_ended && options->uneven != TFOS_UNEVEN_STOP &&
        rows_at_hand(dataset) % options->batch_size > 0)
        batch_count++;
    struct tfos__standing standing = {batch_count, dataset->supply.is_ended, is_full,
                                      dataset->supply.is_over};
    return tfos__cohort_agree(&dataset->cohort, &standing, err);
}

static bool is_repeat_next(const struct tfos_dataset *dataset)
{
    const struct tfos_dataset_options *options = &dataset->options;

    return options->is_repeat &&
           options->is_repeat(options->context, tfos__feed_reader_feed(options->reader));
}

// Goes on to the next epoch. Rows of this one that nobody wants must not begin it.
static enum tfos_status end_epoch(struct tfos_dataset *dataset, struct tfos_error *err)
{
    do {
        tfos__supply_drop(&dataset->supply);
        tfos__shuffle_drop(&dataset->pool);
        if (!dataset->supply.is_ended)
            TFOS__TRY(tfos__supply_await(&dataset->supply, TFOS__NEVER, err));
    } while (!dataset->supply.is_ended);
    tfos__supply_begin(&dataset->supply);
    dataset->has_begun = false;
    tfos__cohort_begin_epoch(&dataset->cohort, is_repeat_next(dataset));
    tfos__shuffle_begin(&dataset->pool, dataset->options.seed, dataset->cohort.epoch);
    return TFOS_OK;
}

// Whether there is another batch in this epoch: OK, or END.
static enum tfos_status begin_batch(struct tfos_dataset *dataset, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = &dataset->options;
    struct tfos__cohort *cohort = &dataset->cohort;

    if (options->uneven == TFOS_UNEVEN_IGNORE) {
        TFOS__TRY(await_batch(dataset, TFOS__NEVER, err));
        int64_t least = options->drop_remainder ? options->batch_size : 1;
        return rows_at_hand(dataset) >= least ? TFOS_OK : TFOS_END;
    }
    while (cohort->steps == 0 && !cohort->is_last && !cohort->is_over)
        TFOS__TRY(agree_on_steps(dataset, err));
    if (cohort->steps == 0)
        cohort->steps = tfos__cohort_missing_steps(cohort);
    if (cohort->steps == 0)
        return TFOS_END;
    cohort->steps--;
    return TFOS_OK;
}

// As begin_batch(), and goes on to the next epoch at the end of this one. Keras counts the steps of
// its first pass and takes as many of each later one, without a look at what comes then. So a pass
// that begins where an epoch has given its steps goes on behind the end of it: when nothing is
// left, and when the epoch is longer than the first of those that it repeats, and more come.
static enum tfos_status begin_batch_of_pass(struct tfos_dataset *dataset, bool is_first,
                                            struct tfos_error *err)
{
    struct tfos__cohort *cohort = &dataset->cohort;
    bool is_behind = is_first && cohort->step_count > 0, goes_on = false;

    if (is_first)
        dataset->is_rest =
            cohort->first_step_count > 0 && cohort->step_count >= cohort->first_step_count;
    do {
        enum tfos_status status = begin_batch(dataset, err);
        if (status == TFOS_OK)
            cohort->step_count++;
        if (status != TFOS_END)
            return status;
        TFOS__TRY(end_epoch(dataset, err));
        goes_on = is_behind || (dataset->is_rest && cohort->first_step_count > 0);
        is_behind = dataset->is_rest = false;
    } while (goes_on);
    return TFOS_END;
}

static enum tfos_status make_tensors(struct tfos_dataset *dataset, struct tfos_tensor *tensors,
                                     struct tfos_error *err)
{
    const struct tfos__plan *plan = &dataset->plan;
    const struct tfos__run_list *batch = &dataset->batch;
    bool is_padded = dataset->options.uneven == TFOS_UNEVEN_PAD;
    struct tfos__rows rows = {batch->runs, batch->count, batch->row_count,
                              is_padded ? dataset->options.batch_size - batch->row_count : 0};
    int64_t position = 0;
    enum tfos_status status = TFOS_OK;

    for (int64_t i = 0; i < batch->count && status == TFOS_OK; i++)
        status = tfos__piece_bind(batch->runs[i].piece, plan, &dataset->binding, err);
    for (int64_t i = 0; i < plan->feature_count && status == TFOS_OK; i++) {
        status = tfos__tensors_make(plan, i, &rows, &tensors[position], err);
        if (status == TFOS_OK)
            position += tfos__feature_tensor_count(&plan->features[i]);
    }
    if (status == TFOS_OK && is_padded)
        status = tfos__weights_make(&rows, &tensors[position], err);
    while (status != TFOS_OK && position > 0)
        tfos_tensor_release(&tensors[--position]);
    return status;
}

// The rows of the batch are given out, or lost with it.
static void use_batch(struct tfos_dataset *dataset)
{
    const struct tfos_dataset_options *options = &dataset->options;
    const struct tfos__run_list *batch = &dataset->batch;

    for (int64_t i = 0; i < batch->count && options->use; i++)
        options->use(options->context, batch->runs[i].piece->number, batch->runs[i].count);
    dataset->given_count += batch->row_count;
}

// Finds the rows of the next batch.
static enum tfos_status find_batch(struct tfos_dataset *dataset, bool is_first,
                                   struct tfos_error *err)
{
    enum tfos_status status = tfos__dataset_prepare(dataset, -1, err);

    if (status == TFOS_OK)
        status = begin_batch_of_pass(dataset, is_first, err);
    if (status == TFOS_END)
        return TFOS_END;
    dataset->batch_count++;
    if (status != TFOS_OK)
        return status;
    int64_t count = dataset->options.batch_size;
    if (dataset->pool.limit > 0)
        status = tfos__shuffle_draw(&dataset->pool, &dataset->supply, count, &dataset->batch, err);
    else
        status = tfos__supply_take(&dataset->supply, count, &dataset->batch, err);
    use_batch(dataset);
    return status;
}

enum tfos_status tfos__dataset_skip(struct tfos_dataset *dataset, struct tfos_error *err)
{
    enum tfos_status status = find_batch(dataset, false, err);
    tfos__run_list_drop(&dataset->batch);
    return status;
}

static enum tfos_status give_batch(struct tfos_dataset *dataset, bool is_first,
                                   struct tfos_tensor *tensors, struct tfos_error *err)
{
    TFOS__TRY(tfos__dataset_check_process(dataset, err));
    pthread_mutex_lock(&dataset->mutex);
    enum tfos_status status = find_batch(dataset, is_first, err);
    if (status == TFOS_OK)
        status = make_tensors(dataset, tensors, err);
    tfos__run_list_drop(&dataset->batch);
    pthread_mutex_unlock(&dataset->mutex);
    return status;
}

enum tfos_status tfos_dataset_first(struct tfos_dataset *dataset, struct tfos_tensor *tensors,
                                    struct tfos_error *err)
{
    return give_batch(dataset, true, tensors, err);
}

enum tfos_status tfos_dataset_next(struct tfos_dataset *dataset, struct tfos_tensor *tensors,
                                   struct tfos_error *err)
{
    return give_batch(dataset, false, tensors, err);
}

int64_t tfos_dataset_number(const struct tfos_dataset *dataset)
{
    return dataset->card.number;
}

enum tfos_status tfos_dataset_acquire(int64_t number, struct tfos_dataset **out,
                                      struct tfos_error *err)
{
    struct tfos_dataset *dataset = tfos__catalogue_find(number);

    if (!dataset)
        return tfos__fail(err, TFOS_NOT_FOUND,
                          "dataset: this process has no open dataset %lld: it was closed, or is "
                          "another process's",
                          (long long)number);
    *out = dataset;
    return TFOS_OK;
}

void tfos_dataset_close(struct tfos_dataset *dataset)
{
    if (!dataset || tfos__fork_guard_is_inherited(&dataset->guard) ||
        !tfos__catalogue_drop(&dataset->card))
        return;
    void (*release)(void *) = dataset->options.release;
    void *context = dataset->options.context;
    free_dataset(dataset);
    if (release)
        release(context);
}
