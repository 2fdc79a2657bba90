// SPDX-License-Identifier: Apache-2.0
// How a dataset comes to know what its rows are: of a description, or of the first of them, and in
// step of what the other nodes say. Then nodes ask each other until all have rows to decide by, or
// need none. Whoever has to wait for rows while another node is full goes by the rows of that:
// Spark may give out no others before the full one reads on.
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/accord.h"
#include "dataset/plan_text.h"
#include "dataset/specs.h"
#include "dataset/state.h"

// Looks at what more there is, so that other nodes hear when Spark may have to wait for this one.
static enum tfos_status read_ahead(struct tfos_dataset *dataset, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    while (status == TFOS_OK && dataset->supply.size < TFOS__AHEAD_SIZE)
        status = tfos__supply_read(&dataset->supply, 0, err);
    return status < 0 ? status : TFOS_OK;
}

static enum tfos__arrival arrival_of(const struct tfos__supply *supply)
{
    if (supply->row_count > 0)
        return supply->size >= TFOS__AHEAD_SIZE ? TFOS__ARRIVAL_FULL : TFOS__ARRIVAL_ROWS;
    return supply->is_ended ? TFOS__ARRIVAL_NONE : TFOS__ARRIVAL_AWAITED;
}

static enum tfos_status find_common_plan(struct tfos_dataset *dataset, struct tfos__plan *plan,
                                         bool *has_epoch_ended, struct tfos_error *err)
{
    struct tfos__plan *own = &dataset->outlook.plan;
    enum tfos__accord_next next = TFOS__ACCORD_WAIT;

    TFOS__TRY(read_ahead(dataset, err));
    struct tfos__accord accord = {
        .options = &dataset->options,
        .round = ++dataset->layout_count,
        .own = own->feature_count > 0 ? own : NULL,
        .arrival = arrival_of(&dataset->supply),
        .is_over = dataset->supply.is_over,
    };
    enum tfos_status status = tfos__accord_reach(&accord, plan, &next, err);
    if (status == TFOS_AGAIN && next == TFOS__ACCORD_OPEN)
        tfos__plan_leave_open(own);
    *has_epoch_ended = next == TFOS__ACCORD_EPOCH;
    if (status != TFOS_OK)
        return status;
    status = tfos__plan_read_fillers(plan, &dataset->wishes, err);
    if (status != TFOS_OK)
        tfos__plan_clear(plan);
    return status;
}

// AGAIN: the rows of this epoch, or if that has ended those of the next, are to be looked at.
static enum tfos_status find_plan(struct tfos_dataset *dataset, struct tfos__plan *plan,
                                  bool *has_epoch_ended, struct tfos_error *err)
{
    struct tfos__plan *own = &dataset->outlook.plan;

    TFOS__TRY(tfos__outlook_look(dataset, err));
    if (dataset->options.uneven != TFOS_UNEVEN_IGNORE)
        return find_common_plan(dataset, plan, has_epoch_ended, err);
    *has_epoch_ended = dataset->supply.is_ended;
    if (own->feature_count == 0)
        return dataset->supply.is_over ? TFOS_END : TFOS_AGAIN;
    tfos__plan_leave_open(own);
    *plan = *own;
    *own = (struct tfos__plan){0};
    return TFOS_OK;
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
        bool has_epoch_ended = false;
        TFOS__TRY(tfos__outlook_await(dataset, deadline, err));
        enum tfos_status status = find_plan(dataset, &dataset->plan, &has_epoch_ended, &error);
        if (status == TFOS_OK)
            status = make_ready(dataset, &error);
        if (status == TFOS_AGAIN && has_epoch_ended) {
            tfos__outlook_clear(&dataset->outlook);
            tfos__supply_begin(&dataset->supply);
            tfos__cohort_begin_epoch(&dataset->cohort, false);
        } else if (status < 0) {
            keep_failure(dataset, status, &error, err);
            return status;
        } else if (status == TFOS_END) {
            dataset->failure = TFOS_END;
            return TFOS_END;
        }
    }
    tfos__outlook_clear(&dataset->outlook);
    return TFOS_OK;
}
