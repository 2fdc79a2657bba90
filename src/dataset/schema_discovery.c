// SPDX-License-Identifier: Apache-2.0
// Nodes in step exchange what they know until all have rows to decide by, or need none. A node that
// waits for rows while another is full uses the plan of that one: Spark may feed it only after the
// full one has read on.
//
// A description comes before the rows that it describes, but by another connection. The end of an
// epoch without a row may come first, so a description gets some time then.
#include "dataset/schema_discovery.h"

#include "base/clock.h"
#include "base/fail.h"
#include "dataset/column_tensors.h"
#include "dataset/plan_agreement.h"
#include "feed/feed.h"

#define SLICE_MS 50        // of a wait for rows, after which a description is asked for
#define DESCRIPTION_MS 200 // to wait for a description, when the epoch has ended without a row

static void forget_epoch(struct tfos__dataset_schema_discovery *discovery)
{
    tfos__dataset_plan_clear(&discovery->plan);
    discovery->feed = 0;
    discovery->is_announced = false;
}

static enum tfos_status keep_failure(struct tfos__dataset_schema_discovery *discovery,
                                     enum tfos_status status, const struct tfos_error *error)
{
    discovery->failure = status;
    if (status < 0)
        discovery->failure_error = *error;
    return status;
}

// ---- what this node knows

static enum tfos_status describe(struct tfos__dataset_schema_discovery *discovery,
                                 int64_t timeout_ms, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = discovery->options;
    struct ArrowSchema schema;
    enum tfos_status status =
        options->describe(options->context, discovery->feed, timeout_ms, &schema, err);

    if (status != TFOS_OK)
        return status;
    discovery->is_announced = true;
    if (!schema.release)
        return TFOS_OK;
    status = tfos__dataset_plan_init(&discovery->plan, &schema, discovery->columns, err);
    schema.release(&schema);
    return status;
}

// Asks for a description of the rows, unless there is one. What is wrong with it stays wrong.
static enum tfos_status ask(struct tfos__dataset_schema_discovery *discovery, int64_t timeout_ms,
                            struct tfos_error *err)
{
    struct tfos_error error;

    if (discovery->is_announced || !discovery->options->describe)
        return TFOS_OK;
    enum tfos_status status = describe(discovery, timeout_ms, &error);
    if (status >= 0)
        return TFOS_OK;
    if (status != TFOS_CLOSED)
        keep_failure(discovery, status, &error);
    return tfos__fail(err, status, "%s", error.message);
}

static bool is_described(const struct tfos__dataset_schema_discovery *discovery)
{
    const struct tfos__dataset_plan *plan = &discovery->plan;

    return plan->feature_count > 0 && !tfos__dataset_plan_is_undecided(plan);
}

static enum tfos_status read_slice(struct tfos__dataset_schema_discovery *discovery,
                                   int64_t deadline, struct tfos_error *err)
{
    int64_t slice = tfos__deadline(SLICE_MS);
    enum tfos_status status =
        tfos__dataset_batch_queue_await(discovery->queue, slice < deadline ? slice : deadline, err);

    if (status != TFOS_AGAIN)
        return status < 0 ? status : TFOS_OK;
    return tfos__remaining_ms(deadline) == 0 ? TFOS_AGAIN : TFOS_OK;
}

// Waits for rows, the end of the epoch, or a description that is enough. In step the wait is short
// once rows are announced: other nodes may know more. TIMEOUT at the deadline.
static enum tfos_status await_knowledge(struct tfos__dataset_schema_discovery *discovery,
                                        int64_t deadline, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = discovery->options;
    struct tfos__dataset_batch_queue *queue = discovery->queue;
    int64_t step_deadline = TFOS__NEVER;

    if (discovery->feed == 0 && options->reader)
        discovery->feed = tfos__feed_reader_feed(options->reader);
    TFOS__TRY(ask(discovery, 0, err));
    while (queue->row_count == 0 && !queue->is_ended && !is_described(discovery)) {
        if (options->uneven != TFOS_UNEVEN_IGNORE && discovery->is_announced &&
            step_deadline == TFOS__NEVER)
            step_deadline = tfos__dataset_batch_queue_deadline(queue);
        enum tfos_status status =
            read_slice(discovery, step_deadline < deadline ? step_deadline : deadline, err);
        if (status == TFOS_AGAIN && step_deadline < deadline) {
            queue->is_idle = true;
            return TFOS_OK;
        }
        if (status == TFOS_AGAIN)
            return tfos__fail(err, TFOS_TIMEOUT,
                              "dataset: no row came in time, so the structure of the rows is not "
                              "known: feed this node, or wait longer");
        TFOS__TRY(status);
        TFOS__TRY(ask(discovery, 0, err));
    }
    return queue->row_count == 0 && queue->is_ended ? ask(discovery, DESCRIPTION_MS, err) : TFOS_OK;
}

// Decides by the rows of the first batch what the schema leaves open.
static enum tfos_status decide(struct tfos__dataset_schema_discovery *discovery,
                               struct tfos__dataset_shared_batch *batch, struct tfos_error *err)
{
    struct tfos__dataset_plan *plan = &discovery->plan;
    int64_t shortest[TFOS__LIST_LEVELS], longest[TFOS__LIST_LEVELS];

    TFOS__TRY(tfos__dataset_shared_batch_bind(batch, plan, discovery->binding, err));
    for (int64_t i = 0; i < plan->feature_count; i++) {
        struct tfos__dataset_feature *feature = &plan->features[i];
        if (!feature->is_undecided)
            continue;
        enum tfos_status status = tfos__dataset_column_measure(
            feature, &batch->binding->paths[i], &batch->array, shortest, longest, err);
        if (status < 0) {
            tfos__dataset_shared_batch_locate(batch, -1, err);
            return status;
        }
        TFOS__TRY(tfos__dataset_feature_decide(feature, shortest, longest, err));
    }
    return TFOS_OK;
}

// Makes or completes this node's plan, if there are rows.
static enum tfos_status inspect_rows(struct tfos__dataset_schema_discovery *discovery,
                                     struct tfos_error *err)
{
    struct tfos__dataset_plan *plan = &discovery->plan;
    struct tfos__dataset_shared_batch *batch = tfos__dataset_batch_queue_first(discovery->queue);

    if (!batch)
        return TFOS_OK;
    const struct ArrowSchema *schema = batch->binding ? &batch->binding->schema : &batch->schema;
    if (plan->feature_count == 0)
        TFOS__TRY(tfos__dataset_plan_init(plan, schema, discovery->columns, err));
    return tfos__dataset_plan_is_undecided(plan) ? decide(discovery, batch, err) : TFOS_OK;
}

// ---- what the nodes know together

// Reads what has come, so that the other nodes learn when Spark may wait for this one.
static enum tfos_status read_ahead(struct tfos__dataset_batch_queue *queue, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    while (status == TFOS_OK && queue->size < TFOS__READ_AHEAD_SIZE)
        status = tfos__dataset_batch_queue_read(queue, 0, err);
    return status < 0 ? status : TFOS_OK;
}

static enum tfos__dataset_row_state row_state_of(const struct tfos__dataset_batch_queue *queue)
{
    if (queue->row_count > 0)
        return queue->size >= TFOS__READ_AHEAD_SIZE ? TFOS__ROWS_FULL : TFOS__ROWS_READY;
    return queue->is_ended ? TFOS__ROWS_NONE : TFOS__ROWS_AWAITED;
}

static enum tfos_status find_common_plan(struct tfos__dataset_schema_discovery *discovery,
                                         struct tfos__dataset_plan *plan, bool *has_epoch_ended,
                                         struct tfos_error *err)
{
    struct tfos__dataset_plan *own = &discovery->plan;
    enum tfos__dataset_plan_agreement_next next = TFOS__PLAN_WAIT;

    TFOS__TRY(read_ahead(discovery->queue, err));
    struct tfos__dataset_plan_agreement agreement = {
        .options = discovery->options,
        .round = ++discovery->round_count,
        .own = own->feature_count > 0 ? own : NULL,
        .rows = row_state_of(discovery->queue),
        .is_over = discovery->queue->is_over,
    };
    enum tfos_status status = tfos__dataset_plan_agreement_reach(&agreement, plan, &next, err);
    if (status == TFOS_AGAIN && next == TFOS__PLAN_LEAVE_OPEN)
        tfos__dataset_plan_leave_open(own);
    *has_epoch_ended = next == TFOS__PLAN_NEXT_EPOCH;
    if (status != TFOS_OK)
        return status;
    status = tfos__dataset_plan_set_fill_values(plan, discovery->columns, err);
    if (status != TFOS_OK)
        tfos__dataset_plan_clear(plan);
    return status;
}

// AGAIN: more rows are needed, of this epoch, or if that has ended of the next.
static enum tfos_status find_plan(struct tfos__dataset_schema_discovery *discovery,
                                  struct tfos__dataset_plan *plan, bool *has_epoch_ended,
                                  struct tfos_error *err)
{
    struct tfos__dataset_plan *own = &discovery->plan;

    TFOS__TRY(inspect_rows(discovery, err));
    // The rows of files are all nodes' together, so all find the same plan.
    if (discovery->options->uneven != TFOS_UNEVEN_IGNORE && discovery->options->reader)
        return find_common_plan(discovery, plan, has_epoch_ended, err);
    *has_epoch_ended = discovery->queue->is_ended;
    if (own->feature_count == 0)
        return discovery->queue->is_over ? TFOS_END : TFOS_AGAIN;
    tfos__dataset_plan_leave_open(own);
    *plan = *own;
    *own = (struct tfos__dataset_plan){0};
    return TFOS_OK;
}

enum tfos_status
tfos__dataset_schema_discovery_run(struct tfos__dataset_schema_discovery *discovery,
                                   struct tfos__dataset_plan *plan, int64_t timeout_ms,
                                   struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    enum tfos_status status = discovery->failure != TFOS_OK ? discovery->failure : TFOS_AGAIN;
    struct tfos_error error;

    while (status == TFOS_AGAIN) {
        bool has_epoch_ended = false;
        TFOS__TRY(await_knowledge(discovery, deadline, err));
        status = find_plan(discovery, plan, &has_epoch_ended, &error);
        if (status < 0 || status == TFOS_END)
            keep_failure(discovery, status, &error);
        if (status == TFOS_AGAIN && has_epoch_ended) {
            forget_epoch(discovery);
            tfos__dataset_batch_queue_begin_epoch(discovery->queue);
            tfos__dataset_step_agreement_begin_epoch(discovery->steps, false);
        }
    }
    if (status < 0)
        return tfos__fail(err, status, "%s", discovery->failure_error.message);
    if (status == TFOS_OK)
        forget_epoch(discovery);
    return status;
}

void tfos__dataset_schema_discovery_clear(struct tfos__dataset_schema_discovery *discovery)
{
    forget_epoch(discovery);
}
