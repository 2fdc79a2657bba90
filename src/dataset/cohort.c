// SPDX-License-Identifier: Apache-2.0
// Whoever has not ended has at least one whole batch when it gives its standing. So all can go as
// many steps as the least of these have, and those that have ended fill up; once all have ended, as
// many as the most of them need. With STOP the least of all counts.
#include "dataset/cohort.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

struct tally {
    int64_t least, most, least_running;
    bool all_ended, all_over;
};

static void count_member(struct tally *tally, const json_t *value)
{
    int64_t batches = tfos__json_int_or(value, "batches", 0);
    bool is_ended = tfos__json_bool_or(value, "ended", false);

    batches = batches < 0 ? 0 : batches;
    tally->least = batches < tally->least ? batches : tally->least;
    tally->most = batches > tally->most ? batches : tally->most;
    if (!is_ended && batches < tally->least_running)
        tally->least_running = batches;
    tally->all_ended = tally->all_ended && is_ended;
    tally->all_over = tally->all_over && tfos__json_bool_or(value, "over", false);
}

// Whether a member that has ended has no batch left after `steps`.
static bool is_any_done(const json_t *values, int64_t steps)
{
    size_t index = 0;
    json_t *value = NULL;

    json_array_foreach(values, index,
                       value) if (tfos__json_bool_or(value, "ended", false) &&
                                  tfos__json_int_or(value, "batches", 0) <= steps) return true;
    return false;
}

enum tfos_status tfos__cohort_decide(struct tfos__cohort *cohort, const char *values,
                                     struct tfos_error *err)
{
    struct tally tally = {
        .least = INT64_MAX, .least_running = INT64_MAX, .all_ended = true, .all_over = true};
    json_t *array = json_loads(values, 0, NULL);
    size_t index = 0;
    json_t *value = NULL;

    if (json_array_size(array) == 0) {
        json_decref(array);
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: the exchange of steps gave no list of values: %.200s", values);
    }
    json_array_foreach(array, index, value) count_member(&tally, value);
    if (cohort->options->uneven == TFOS_UNEVEN_STOP) {
        cohort->steps = tally.least;
        cohort->is_last = is_any_done(array, cohort->steps);
    } else {
        cohort->steps = tally.all_ended ? tally.most : tally.least_running;
        cohort->is_last = tally.all_ended;
    }
    cohort->is_over = tally.all_over;
    json_decref(array);
    if (cohort->steps == 0 && !cohort->is_last)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: a node that has not ended its epoch gave no batch: %.200s",
                          values);
    return TFOS_OK;
}

enum tfos_status tfos__cohort_agree(struct tfos__cohort *cohort,
                                    const struct tfos__standing *standing, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = cohort->options;
    char *values = NULL;
    enum tfos_status status = TFOS_OK;

    cohort->exchange_count++;
    char *name = tfos__format("dataset/%s/%lld/%lld", options->name, (long long)cohort->epoch,
                              (long long)cohort->exchange_count);
    char *own = tfos__format(
        "{\"batches\": %lld, \"ended\": %s, \"over\": %s}", (long long)standing->batch_count,
        standing->is_ended ? "true" : "false", standing->is_over ? "true" : "false");
    if (!name || !own)
        status = tfos__no_memory(err, "dataset", "an exchange");
    else
        status = options->agree(options->context, name, own, &values, err);
    if (status == TFOS_OK)
        status = tfos__cohort_decide(cohort, values, err);
    tfos__free(values);
    tfos__free(name);
    tfos__free(own);
    return status;
}

void tfos__cohort_begin_epoch(struct tfos__cohort *cohort)
{
    cohort->epoch++;
    cohort->exchange_count = 0;
    cohort->steps = 0;
    cohort->is_last = false;
}
