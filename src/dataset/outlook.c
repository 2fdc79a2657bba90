// SPDX-License-Identifier: Apache-2.0
// A description is told before the rows that it describes, but on another way: the end of an epoch
// without a row may overtake it, and waits for it a while.
#include "dataset/outlook.h"

#include "base/clock.h"
#include "base/fail.h"
#include "dataset/state.h"
#include "dataset/vector.h"
#include "feed/feed.h"

#define SLICE_MS 50        ///< of a wait, after which a description is asked for
#define DESCRIPTION_MS 200 ///< for a description, when the feed has ended without a row

static enum tfos_status make_plan(struct tfos_dataset *dataset, const struct ArrowSchema *schema,
                                  struct tfos_error *err)
{
    struct tfos__plan *plan = &dataset->outlook.plan;

    TFOS__TRY(tfos__plan_init(plan, schema, &dataset->wishes, err));
    enum tfos_status status = tfos__plan_read_fillers(plan, &dataset->wishes, err);
    if (status == TFOS_OK)
        status = tfos__plan_sort(plan, err);
    if (status != TFOS_OK)
        tfos__plan_clear(plan);
    return status;
}

static enum tfos_status describe(struct tfos_dataset *dataset, int64_t timeout_ms,
                                 struct tfos_error *err)
{
    const struct tfos_dataset_options *options = &dataset->options;
    struct tfos__outlook *outlook = &dataset->outlook;
    struct ArrowSchema schema;

    enum tfos_status status =
        options->describe(options->context, outlook->feed, timeout_ms, &schema, err);
    if (status != TFOS_OK)
        return status;
    outlook->is_announced = true;
    if (!schema.release)
        return TFOS_OK;
    status = make_plan(dataset, &schema, err);
    schema.release(&schema);
    return status;
}

// Asks for a description of the rows, unless there was one. What is wrong with it stays wrong.
static enum tfos_status ask(struct tfos_dataset *dataset, int64_t timeout_ms,
                            struct tfos_error *err)
{
    struct tfos_error error;

    if (dataset->outlook.is_announced || !dataset->options.describe)
        return TFOS_OK;
    enum tfos_status status = describe(dataset, timeout_ms, &error);
    if (status >= 0)
        return TFOS_OK;
    if (status != TFOS_CLOSED) {
        dataset->failure = status;
        dataset->failure_error = error;
    }
    return tfos__fail(err, status, "%s", error.message);
}

static bool has_all_or_none(const struct tfos_dataset *dataset)
{
    return dataset->supply.row_count > 0 || dataset->supply.is_ended;
}

static bool is_described(const struct tfos_dataset *dataset)
{
    const struct tfos__plan *plan = &dataset->outlook.plan;

    return plan->feature_count > 0 && !tfos__plan_is_undecided(plan);
}

static enum tfos_status read_for_a_while(struct tfos_dataset *dataset, int64_t deadline,
                                         struct tfos_error *err)
{
    int64_t slice = tfos__deadline(SLICE_MS);
    enum tfos_status status =
        tfos__supply_await(&dataset->supply, slice < deadline ? slice : deadline, err);

    if (status != TFOS_AGAIN)
        return status < 0 ? status : TFOS_OK;
    return tfos__remaining_ms(deadline) == 0 ? TFOS_AGAIN : TFOS_OK;
}

enum tfos_status tfos__outlook_await(struct tfos_dataset *dataset, int64_t deadline,
                                     struct tfos_error *err)
{
    struct tfos__outlook *outlook = &dataset->outlook;
    int64_t patience = TFOS__NEVER;

    if (outlook->feed == 0 && dataset->options.reader)
        outlook->feed = tfos__feed_reader_feed(dataset->options.reader);
    TFOS__TRY(ask(dataset, 0, err));
    while (!has_all_or_none(dataset) && !is_described(dataset)) {
        if (dataset->options.uneven != TFOS_UNEVEN_IGNORE && outlook->is_announced &&
            patience == TFOS__NEVER)
            patience = tfos__dataset_patience(dataset);
        enum tfos_status status =
            read_for_a_while(dataset, patience < deadline ? patience : deadline, err);
        if (status == TFOS_AGAIN && patience < deadline) {
            dataset->is_forsaken = true;
            return TFOS_OK;
        }
        if (status == TFOS_AGAIN)
            return tfos__fail(err, TFOS_TIMEOUT,
                              "dataset: no row came in time, so the structure of the rows is not "
                              "known: feed this node, or wait longer");
        TFOS__TRY(status);
        TFOS__TRY(ask(dataset, 0, err));
    }
    return dataset->supply.row_count == 0 && dataset->supply.is_ended
               ? ask(dataset, DESCRIPTION_MS, err)
               : TFOS_OK;
}

// Decides by the rows of the first batch what the schema leaves open.
static enum tfos_status decide(struct tfos__plan *plan, struct tfos__piece *piece,
                               struct tfos__binding **binding, struct tfos_error *err)
{
    TFOS__TRY(tfos__piece_bind(piece, plan, binding, err));
    for (int64_t i = 0; i < plan->feature_count; i++) {
        struct tfos__feature *feature = &plan->features[i];
        struct tfos__walk walk;
        if (!feature->is_undecided)
            continue;
        tfos__walk_init(&walk, feature);
        walk.route = &piece->binding->routes[i];
        enum tfos_status status =
            feature->is_vector
                ? tfos__vectors_measure(walk.route, &piece->array, walk.shortest, walk.longest, err)
                : tfos__walk_rows(&walk, &piece->array, 0, piece->array.length, err);
        if (status < 0) {
            tfos__piece_locate(piece, err);
            return status;
        }
        TFOS__TRY(tfos__feature_decide(feature, walk.shortest, walk.longest, err));
    }
    return TFOS_OK;
}

enum tfos_status tfos__outlook_look(struct tfos_dataset *dataset, struct tfos_error *err)
{
    struct tfos__plan *plan = &dataset->outlook.plan;
    struct tfos__piece *piece = tfos__supply_first(&dataset->supply);

    if (!piece)
        return TFOS_OK;
    if (plan->feature_count == 0)
        TFOS__TRY(
            make_plan(dataset, piece->binding ? &piece->binding->schema : &piece->schema, err));
    return tfos__plan_is_undecided(plan) ? decide(plan, piece, &dataset->binding, err) : TFOS_OK;
}

void tfos__outlook_clear(struct tfos__outlook *outlook)
{
    tfos__plan_clear(&outlook->plan);
    *outlook = (struct tfos__outlook){0};
}
