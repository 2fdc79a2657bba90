// SPDX-License-Identifier: Apache-2.0
// All can go as many steps as the least of those have that have not ended, and those that have fill
// up; once all have ended, as many as the most of them need. With STOP the least of all counts.
//
// Who has no whole batch for a while says so instead of waiting on: its rows, or the epoch's end,
// may have to wait for Spark, which waits for another node that reads no further, which waits for
// the step. Where a node is full, all go as many steps as make room there, and who has too few rows
// fills up; with STOP it reads on.
#include "dataset/cohort.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

struct tally {
    int64_t least, most, least_running;
    bool all_ended, all_over, is_any_full;
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
    tally->is_any_full = tally->is_any_full || tfos__json_bool_or(value, "full", false);
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
    bool is_starved = !tally.all_ended && tally.least_running == 0;
    bool is_stop = cohort->options->uneven == TFOS_UNEVEN_STOP;
    cohort->is_pressed = is_stop && is_starved && tally.is_any_full;
    if (is_stop)
        cohort->steps = tally.least;
    else if (is_starved)
        cohort->steps = tally.is_any_full ? (tally.most + 1) / 2 : 0;
    else
        cohort->steps = tally.all_ended ? tally.most : tally.least_running;
    cohort->is_last = is_stop ? is_any_done(array, cohort->steps) : tally.all_ended;
    cohort->is_over = tally.all_over;
    json_decref(array);
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
    char *own =
        tfos__format("{\"batches\": %lld, \"ended\": %s, \"over\": %s, \"full\": %s}",
                     (long long)standing->batch_count, standing->is_ended ? "true" : "false",
                     standing->is_over ? "true" : "false", standing->is_full ? "true" : "false");
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

int64_t tfos__cohort_missing_steps(const struct tfos__cohort *cohort)
{
    int64_t missing = cohort->first_step_count - cohort->step_count;
    bool is_padded = cohort->options->uneven == TFOS_UNEVEN_PAD && cohort->step_count > 0;

    return is_padded && missing > 0 ? missing : 0;
}

void tfos__cohort_begin_epoch(struct tfos__cohort *cohort, bool is_repeat)
{
    if (!is_repeat)
        cohort->first_step_count = 0;
    else if (cohort->first_step_count == 0)
        cohort->first_step_count = cohort->step_count;
    cohort->epoch++;
    cohort->exchange_count = 0;
    cohort->steps = 0;
    cohort->step_count = 0;
    cohort->is_last = false;
}
