// SPDX-License-Identifier: Apache-2.0
// How a dataset comes to know what its rows are: it waits for the first of them, and then for what
// the other nodes say.
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/accord.h"
#include "dataset/plan_text.h"
#include "dataset/specs.h"
#include "dataset/state.h"
#include "dataset/vector.h"

#define SLICE_MS 50 ///< of a wait, after which is_interrupted() is asked

// Waits for a row or the end of the epoch.
static enum tfos_status await_rows(struct tfos_dataset *dataset, int64_t deadline,
                                   struct tfos_error *err)
{
    const struct tfos_dataset_options *options = &dataset->options;
    struct tfos__supply *supply = &dataset->supply;

    while (supply->row_count == 0 && !supply->is_ended) {
        int remaining_ms = tfos__remaining_ms(deadline);
        int slice_ms = remaining_ms >= 0 && remaining_ms < SLICE_MS ? remaining_ms : SLICE_MS;
        enum tfos_status status = tfos__supply_read(supply, slice_ms, err);
        TFOS__TRY(status);
        if (status == TFOS_AGAIN && options->is_interrupted &&
            options->is_interrupted(options->context))
            return tfos__fail(err, TFOS_CLOSED,
                              "dataset: the wait for the first rows was interrupted");
        if (status == TFOS_AGAIN && tfos__remaining_ms(deadline) == 0)
            return tfos__fail(err, TFOS_TIMEOUT,
                              "dataset: no row came in time, so the structure of the rows is not "
                              "known: feed this node, or wait longer");
    }
    return TFOS_OK;
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
            tfos__fail_prefix(err, "dataset: partition %lld", (long long)piece->partition);
            return status;
        }
        TFOS__TRY(tfos__feature_decide(feature, walk.shortest, walk.longest, err));
    }
    return TFOS_OK;
}

static enum tfos_status make_own_plan(struct tfos_dataset *dataset, struct tfos__plan *plan,
                                      struct tfos_error *err)
{
    struct tfos__piece *piece = tfos__supply_first(&dataset->supply);
    const struct ArrowSchema *schema = piece->binding ? &piece->binding->schema : &piece->schema;

    TFOS__TRY(tfos__plan_init(plan, schema, &dataset->wishes, err));
    enum tfos_status status = tfos__plan_read_fillers(plan, &dataset->wishes, err);
    if (status == TFOS_OK)
        status = tfos__plan_sort(plan, err);
    if (status == TFOS_OK)
        status = decide(plan, piece, &dataset->binding, err);
    if (status != TFOS_OK)
        tfos__plan_clear(plan);
    return status;
}

// AGAIN: no node has rows in this epoch, so there is another round in the next.
static enum tfos_status find_common_plan(struct tfos_dataset *dataset, struct tfos__plan *plan,
                                         struct tfos_error *err)
{
    struct tfos__plan own = {0};

    if (dataset->supply.row_count > 0)
        TFOS__TRY(make_own_plan(dataset, &own, err));
    struct tfos__accord accord = {
        .options = &dataset->options,
        .epoch = dataset->cohort.epoch,
        .own = own.feature_count > 0 ? &own : NULL,
        .is_over = dataset->supply.is_over,
    };
    enum tfos_status status = tfos__accord_reach(&accord, plan, err);
    if (status == TFOS_OK) {
        status = tfos__plan_read_fillers(plan, &dataset->wishes, err);
        if (status != TFOS_OK)
            tfos__plan_clear(plan);
    }
    tfos__plan_clear(&own);
    return status;
}

// AGAIN: the epoch has no rows, and the next is to be looked at.
static enum tfos_status find_plan(struct tfos_dataset *dataset, struct tfos__plan *plan,
                                  struct tfos_error *err)
{
    if (dataset->options.uneven != TFOS_UNEVEN_IGNORE)
        return find_common_plan(dataset, plan, err);
    if (dataset->supply.row_count > 0)
        return make_own_plan(dataset, plan, err);
    return dataset->supply.is_over ? TFOS_END : TFOS_AGAIN;
}

static enum tfos_status make_ready(struct tfos_dataset *dataset, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = &dataset->options;
    bool is_pad = options->uneven == TFOS_UNEVEN_PAD;
    bool is_static = is_pad || options->uneven == TFOS_UNEVEN_STOP ||
                     (options->uneven == TFOS_UNEVEN_IGNORE && options->drop_remainder);

    TFOS__TRY(tfos__specs_make(&dataset->plan, is_static ? options->batch_size : -1, is_pad,
                               &dataset->specs, &dataset->spec_count, err));
    atomic_store(&dataset->is_ready, true);
    return TFOS_OK;
}

// A plan is copied as other nodes get it: as text.
enum tfos_status tfos__dataset_adopt(struct tfos_dataset *dataset, const struct tfos_dataset *like,
                                     struct tfos_error *err)
{
    if (!atomic_load(&like->is_ready))
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: option like: the structure of that dataset is not known yet");
    json_t *layout = tfos__plan_write(&like->plan, err);
    if (!layout)
        return TFOS_INVALID;
    enum tfos_status status = tfos__plan_read(layout, &dataset->plan, err);
    json_decref(layout);
    if (status == TFOS_OK)
        status = tfos__plan_read_fillers(&dataset->plan, &dataset->wishes, err);
    return status == TFOS_OK ? make_ready(dataset, err) : status;
}

static void keep_failure(struct tfos_dataset *dataset, enum tfos_status status,
                         const struct tfos_error *error, struct tfos_error *err)
{
    dataset->failure = status;
    dataset->failure_error = *error;
    tfos__fail(err, status, "%s", error->message);
}

enum tfos_status tfos__dataset_prepare(struct tfos_dataset *dataset, int64_t timeout_ms,
                                       struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    struct tfos_error error;

    if (dataset->failure != TFOS_OK)
        return dataset->failure < 0
                   ? tfos__fail(err, dataset->failure, "%s", dataset->failure_error.message)
                   : dataset->failure;
    while (!atomic_load(&dataset->is_ready)) {
        TFOS__TRY(await_rows(dataset, deadline, err));
        enum tfos_status status = find_plan(dataset, &dataset->plan, &error);
        if (status == TFOS_OK)
            status = make_ready(dataset, &error);
        if (status == TFOS_AGAIN) {
            tfos__supply_begin(&dataset->supply);
            tfos__cohort_begin_epoch(&dataset->cohort);
        } else if (status < 0) {
            keep_failure(dataset, status, &error, err);
            return status;
        } else if (status == TFOS_END) {
            dataset->failure = TFOS_END;
            return TFOS_END;
        }
    }
    return TFOS_OK;
}
