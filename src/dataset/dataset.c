// SPDX-License-Identifier: Apache-2.0
// A dataset reads ahead only what it can read without waiting; in step, that is what it reports to
// the other nodes.
#include "dataset/dataset.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/column_tensors.h"
#include "feed/feed.h"

static struct tfos__number_table datasets;

int64_t tfos_dataset_number(const struct tfos_dataset *dataset)
{
    return dataset->entry.number;
}

enum tfos_status tfos_dataset_acquire(int64_t number, struct tfos_dataset **out,
                                      struct tfos_error *err)
{
    struct tfos__number_entry *entry = tfos__number_table_acquire(&datasets, number);

    if (!entry)
        return tfos__fail(err, TFOS_NOT_FOUND,
                          "dataset: this process has no open dataset %lld: it was closed, or is "
                          "another process's",
                          (long long)number);
    *out = (struct tfos_dataset *)entry;
    return TFOS_OK;
}

// ---- opening and closing

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
    tfos__dataset_row_slices_clear(&dataset->batch);
    tfos__dataset_shuffle_buffer_clear(&dataset->shuffle);
    tfos__dataset_batch_queue_clear(&dataset->queue);
    tfos__dataset_schema_binding_release(dataset->binding);
    tfos__dataset_plan_clear(&dataset->plan);
    tfos__dataset_schema_discovery_clear(&dataset->discovery);
    tfos__dataset_column_options_clear(&dataset->column_options);
    pthread_mutex_destroy(&dataset->mutex);
    tfos__fork_guard_clear(&dataset->guard);
    tfos__free(dataset->specs);
    tfos__free(dataset->name);
    tfos__free(dataset);
}

static void init_state(struct tfos_dataset *dataset, const struct tfos_dataset_options *options)
{
    pthread_mutex_init(&dataset->mutex, NULL);
    dataset->options = *options;
    dataset->options.columns = NULL;
    dataset->options.selection = NULL;
    dataset->options.like = NULL;
    dataset->options.null_value = NULL;
    dataset->options.name = NULL;
    dataset->queue.options = &dataset->options;
    dataset->shuffle.limit = options->shuffle_rows;
    tfos__dataset_shuffle_buffer_begin(&dataset->shuffle, options->seed, 1);
    dataset->steps.options = &dataset->options;
    dataset->steps.epoch = 1;
    dataset->discovery.options = &dataset->options;
    dataset->discovery.columns = &dataset->column_options;
    dataset->discovery.queue = &dataset->queue;
    dataset->discovery.steps = &dataset->steps;
    dataset->discovery.binding = &dataset->binding;
}

static enum tfos_status make_ready(struct tfos_dataset *dataset, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = &dataset->options;
    bool is_pad = options->uneven == TFOS_UNEVEN_PAD;
    bool is_static = is_pad || options->uneven == TFOS_UNEVEN_STOP ||
                     (options->uneven == TFOS_UNEVEN_IGNORE && options->drop_remainder);

    TFOS__TRY(tfos__dataset_plan_specs(&dataset->plan, is_static ? options->batch_size : -1, is_pad,
                                       &dataset->specs, &dataset->spec_count, err));
    atomic_store(&dataset->is_ready, true);
    return TFOS_OK;
}

// Takes over the plan of `like`. It is copied as other nodes get it: as JSON.
static enum tfos_status copy_plan(struct tfos_dataset *dataset, const struct tfos_dataset *like,
                                  struct tfos_error *err)
{
    if (!atomic_load(&like->is_ready))
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: option like: the structure of that dataset is not known yet");
    json_t *layout = tfos__dataset_plan_write(&like->plan, err);
    if (!layout)
        return TFOS_INVALID;
    enum tfos_status status = tfos__dataset_plan_read(layout, &dataset->plan, err);
    json_decref(layout);
    if (status == TFOS_OK)
        status = tfos__dataset_plan_set_fill_values(&dataset->plan, &dataset->column_options, err);
    return status == TFOS_OK ? make_ready(dataset, err) : status;
}

static enum tfos_status init_dataset(struct tfos_dataset *dataset,
                                     const struct tfos_dataset_options *options,
                                     struct tfos_error *err)
{
    TFOS__TRY(tfos__fork_guard_init(&dataset->guard, err));
    TFOS__TRY(tfos__dataset_column_options_init(&dataset->column_options, options, err));
    dataset->name = tfos__strdup(options->name ? options->name : "");
    if (!dataset->name)
        return tfos__no_memory(err, "dataset", "a dataset");
    dataset->options.name = dataset->name;
    return options->like ? copy_plan(dataset, options->like, err) : TFOS_OK;
}

enum tfos_status tfos_dataset_open(const struct tfos_dataset_options *options,
                                   struct tfos_dataset **out, struct tfos_error *err)
{
    TFOS__TRY(check_options(options, err));
    struct tfos_dataset *dataset = tfos__alloc(1, sizeof(*dataset));
    if (!dataset)
        return tfos__no_memory(err, "dataset", "a dataset");
    init_state(dataset, options);
    enum tfos_status status = init_dataset(dataset, options, err);
    if (status != TFOS_OK) {
        free_dataset(dataset);
        return status;
    }
    // Rows that are shuffled are copied in any case, so the sizes of batches do not matter.
    if (options->reader) {
        tfos__feed_reader_set_batch_rows(options->reader,
                                         options->shuffle_rows > 0 ? 0 : options->batch_size);
        tfos__feed_reader_set_step_rows(
            options->reader, options->uneven == TFOS_UNEVEN_IGNORE ? -1 : options->batch_size);
    }
    tfos__number_table_add(&datasets, &dataset->entry);
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

// Whether nodes in step know of each reported batch if it is the last one: rows of files can be
// read at any time. So nodes exchange only where another step follows, and none waits in vain for
// one that has ended its pass.
static bool is_known_ahead(const struct tfos_dataset *dataset)
{
    return dataset->options.uneven != TFOS_UNEVEN_IGNORE && !dataset->options.reader;
}

void tfos_dataset_close(struct tfos_dataset *dataset)
{
    if (!dataset || tfos__fork_guard_is_inherited(&dataset->guard) ||
        !tfos__number_table_release(&datasets, &dataset->entry))
        return;
    if (is_known_ahead(dataset))
        tfos__dataset_step_agreement_leave(&dataset->steps);
    void (*release)(void *) = dataset->options.release;
    void *context = dataset->options.context;
    free_dataset(dataset);
    if (release)
        release(context);
}

// ---- the plan

enum tfos_status tfos__dataset_prepare(struct tfos_dataset *dataset, int64_t timeout_ms,
                                       struct tfos_error *err)
{
    if (atomic_load(&dataset->is_ready))
        return TFOS_OK;
    if (dataset->plan.feature_count == 0)
        TFOS__PASS(tfos__dataset_schema_discovery_run(&dataset->discovery, &dataset->plan,
                                                      timeout_ms, err));
    return make_ready(dataset, err);
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

// ---- the rows of a batch

// Rows that can be given out without waiting: all but those that refill the shuffle buffer.
static int64_t ready_row_count(const struct tfos_dataset *dataset)
{
    int64_t count = dataset->queue.row_count + dataset->shuffle.count;
    int64_t kept = dataset->queue.is_ended ? 0 : dataset->shuffle.limit;

    return count > kept ? count - kept : 0;
}

// Waits for the rows of a batch, or the end of the epoch. AGAIN at the deadline.
static enum tfos_status await_batch(struct tfos_dataset *dataset, int64_t deadline,
                                    struct tfos_error *err)
{
    const struct tfos_dataset_options *options = &dataset->options;
    int64_t least = options->batch_size * (is_known_ahead(dataset) ? 2 : 1);

    while (!dataset->queue.is_ended && ready_row_count(dataset) < least) {
        enum tfos_status status = tfos__dataset_batch_queue_await(&dataset->queue, deadline, err);
        if (status < 0 || status == TFOS_AGAIN)
            return status;
    }
    return TFOS_OK;
}

// Reads what has come. `*is_full`: there may be more than it reads.
static enum tfos_status read_ahead(struct tfos_dataset *dataset, bool *is_full,
                                   struct tfos_error *err)
{
    int64_t most = dataset->options.batch_size * TFOS__STEP_LOOKAHEAD;
    enum tfos_status status = TFOS_OK;

    while (status == TFOS_OK &&
           (dataset->steps.must_read_on ||
            (ready_row_count(dataset) < most && dataset->queue.size < TFOS__READ_AHEAD_SIZE)))
        status = tfos__dataset_batch_queue_read(&dataset->queue, 0, err);
    *is_full = status == TFOS_OK;
    return status < 0 ? status : TFOS_OK;
}

static enum tfos_status agree_on_steps(struct tfos_dataset *dataset, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = &dataset->options;
    struct tfos__dataset_batch_queue *queue = &dataset->queue;
    bool is_full = false;
    enum tfos_status status = await_batch(dataset, tfos__dataset_batch_queue_deadline(queue), err);

    TFOS__TRY(status);
    TFOS__TRY(read_ahead(dataset, &is_full, err));
    int64_t row_count = ready_row_count(dataset);
    queue->has_begun |= row_count > 0;
    queue->is_idle = row_count == 0 && (queue->is_idle || status == TFOS_AGAIN);
    int64_t batch_count = row_count / options->batch_size;
    if (queue->is_ended && options->uneven != TFOS_UNEVEN_STOP &&
        row_count % options->batch_size > 0)
        batch_count++;
    if (!queue->is_ended && is_known_ahead(dataset))
        batch_count--;
    struct tfos__dataset_step_report report = {batch_count, queue->is_ended, is_full,
                                               queue->is_over};
    return tfos__dataset_step_agreement_reach(&dataset->steps, &report, err);
}

static bool is_repeat_next(const struct tfos_dataset *dataset)
{
    const struct tfos_dataset_options *options = &dataset->options;

    return options->is_repeat &&
           options->is_repeat(options->context, tfos__feed_reader_feed(options->reader));
}

// Begins the next epoch, without the rows of this one that are left.
static enum tfos_status end_epoch(struct tfos_dataset *dataset, struct tfos_error *err)
{
    if (!dataset->options.reader)
        dataset->queue.is_ended = dataset->queue.is_over = dataset->steps.is_over = true;
    do {
        tfos__dataset_batch_queue_drop(&dataset->queue);
        tfos__dataset_shuffle_buffer_drop(&dataset->shuffle);
        if (!dataset->queue.is_ended)
            TFOS__TRY(tfos__dataset_batch_queue_await(&dataset->queue, TFOS__NEVER, err));
    } while (!dataset->queue.is_ended);
    tfos__dataset_batch_queue_begin_epoch(&dataset->queue);
    tfos__dataset_step_agreement_begin_epoch(&dataset->steps, is_repeat_next(dataset));
    tfos__dataset_shuffle_buffer_begin(&dataset->shuffle, dataset->options.seed,
                                       dataset->steps.epoch);
    return TFOS_OK;
}

// Whether there is another batch in this epoch: OK, or END.
static enum tfos_status begin_batch(struct tfos_dataset *dataset, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = &dataset->options;
    struct tfos__dataset_step_agreement *steps = &dataset->steps;

    if (options->uneven == TFOS_UNEVEN_IGNORE) {
        TFOS__TRY(await_batch(dataset, TFOS__NEVER, err));
        int64_t least = options->drop_remainder ? options->batch_size : 1;
        return ready_row_count(dataset) >= least ? TFOS_OK : TFOS_END;
    }
    while (steps->steps == 0 && !steps->is_last && !steps->is_over)
        TFOS__TRY(agree_on_steps(dataset, err));
    if (steps->steps == 0)
        steps->steps = tfos__dataset_step_agreement_missing_steps(steps);
    if (steps->steps == 0)
        return TFOS_END;
    steps->steps--;
    return TFOS_OK;
}

// As begin_batch(), and begins the next epoch at the end of this one. Keras counts the steps of
// its first pass and takes the same number in each later pass, without asking for the end. So a
// pass that begins after the steps of an epoch continues behind that epoch's end: when nothing is
// left of it, and when it is longer than the first of the epochs that it repeats, and more of them
// come.
static enum tfos_status begin_batch_of_pass(struct tfos_dataset *dataset, bool is_first,
                                            struct tfos_error *err)
{
    struct tfos__dataset_step_agreement *steps = &dataset->steps;
    bool is_behind = is_first && steps->step_count > 0, goes_on = false;

    if (is_first)
        dataset->is_remainder =
            steps->first_step_count > 0 && steps->step_count >= steps->first_step_count;
    do {
        enum tfos_status status = begin_batch(dataset, err);
        if (status == TFOS_OK)
            steps->step_count++;
        if (status != TFOS_END)
            return status;
        TFOS__TRY(end_epoch(dataset, err));
        goes_on = is_behind || (dataset->is_remainder && steps->first_step_count > 0);
        is_behind = dataset->is_remainder = false;
    } while (goes_on);
    return TFOS_END;
}

// ---- batches

static enum tfos_status make_tensors(struct tfos_dataset *dataset, struct tfos_tensor *tensors,
                                     struct tfos_error *err)
{
    const struct tfos__dataset_plan *plan = &dataset->plan;
    struct tfos__dataset_row_slices *rows = &dataset->batch;
    bool is_pad = dataset->options.uneven == TFOS_UNEVEN_PAD;
    int64_t position = 0;
    enum tfos_status status = TFOS_OK;

    rows->zero_count = is_pad ? dataset->options.batch_size - rows->row_count : 0;
    for (int64_t i = 0; i < rows->count && status == TFOS_OK; i++)
        status =
            tfos__dataset_shared_batch_bind(rows->slices[i].batch, plan, &dataset->binding, err);
    for (int64_t i = 0; i < plan->feature_count && status == TFOS_OK; i++) {
        status = tfos__dataset_column_tensors_make(plan, i, rows, &tensors[position], err);
        if (status == TFOS_OK)
            position += tfos__dataset_feature_tensor_count(&plan->features[i]);
    }
    if (status == TFOS_OK && is_pad)
        status = tfos__dataset_weights_make(rows, &tensors[position], err);
    while (status != TFOS_OK && position > 0)
        tfos_tensor_release(&tensors[--position]);
    return status;
}

// Takes the rows of the next batch. They count as given out, also if no tensors can be made of
// them.
static enum tfos_status take_rows(struct tfos_dataset *dataset, bool is_first,
                                  struct tfos_error *err)
{
    const struct tfos_dataset_options *options = &dataset->options;
    struct tfos__dataset_row_slices *rows = &dataset->batch;
    enum tfos_status status = tfos__dataset_prepare(dataset, -1, err);

    if (status == TFOS_OK)
        status = begin_batch_of_pass(dataset, is_first, err);
    if (status == TFOS_END)
        return TFOS_END;
    dataset->batch_count++;
    if (status != TFOS_OK)
        return status;
    if (dataset->shuffle.limit > 0)
        status = tfos__dataset_shuffle_buffer_draw(&dataset->shuffle, &dataset->queue,
                                                   options->batch_size, rows, err);
    else
        status = tfos__dataset_batch_queue_take(&dataset->queue, options->batch_size, rows, err);
    for (int64_t i = 0; i < rows->count && options->use; i++)
        options->use(options->context, rows->slices[i].batch->number, rows->slices[i].count);
    dataset->given_count += rows->row_count;
    return status;
}

enum tfos_status tfos__dataset_skip(struct tfos_dataset *dataset, struct tfos_error *err)
{
    enum tfos_status status = take_rows(dataset, false, err);

    tfos__dataset_row_slices_drop(&dataset->batch);
    return status;
}

static enum tfos_status give_batch(struct tfos_dataset *dataset, bool is_first,
                                   struct tfos_tensor *tensors, struct tfos_error *err)
{
    TFOS__TRY(tfos__dataset_check_process(dataset, err));
    pthread_mutex_lock(&dataset->mutex);
    enum tfos_status status = take_rows(dataset, is_first, err);
    if (status == TFOS_OK)
        status = make_tensors(dataset, tensors, err);
    tfos__dataset_row_slices_drop(&dataset->batch);
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
