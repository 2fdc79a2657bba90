// SPDX-License-Identifier: Apache-2.0
// All nodes do as many steps as the least of those that have not ended their epoch can, and those
// that have ended it pad. When all have ended it, they do as many as the one with most batches
// needs. With STOP the least of all counts.
//
// A node that has had no whole batch for a while reports that instead of waiting on: Spark may feed
// it only after it has fed another node, which is full and waits for the step. If a node is full,
// all do as many steps as make room there, and those with too few rows pad. With STOP it reads on.
#include "dataset/dataset_step_agreement.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

enum tfos_status tfos__dataset_exchange(const struct tfos_dataset_options *options, char *name,
                                        json_t *value, json_t **out, struct tfos_error *err)
{
    char *text = value ? tfos__json_text(value) : NULL, *values = NULL;
    json_t *array = NULL;

    json_decref(value);
    enum tfos_status status =
        text && name ? options->agree(options->context, name, text, out ? &values : NULL, err)
                     : tfos__no_memory(err, "dataset", "an exchange");
    if (status == TFOS_OK && out) {
        array = json_loads(values, 0, NULL);
        if (json_array_size(array) > 0)
            *out = array;
        else
            status =
                tfos__fail(err, TFOS_INVALID,
                           "dataset: the exchange %s gave no list of values: %.200s", name, values);
        if (status < 0)
            json_decref(array);
    }
    tfos__free(values);
    tfos__free(name);
    tfos__free(text);
    return status;
}

struct tally {
    int64_t least, most, least_running;
    bool all_ended, all_over, is_any_full;
};

static void count_node(struct tally *tally, const json_t *value)
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

// Whether a node that has ended its epoch has no batch left after `steps`.
static bool is_any_done(const json_t *values, int64_t steps)
{
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *value = json_array_get(values, i);
        if (tfos__json_bool_or(value, "ended", false) &&
            tfos__json_int_or(value, "batches", 0) <= steps)
            return true;
    }
    return false;
}

static void decide(struct tfos__dataset_step_agreement *agreement, const json_t *values)
{
    struct tally tally = {
        .least = INT64_MAX, .least_running = INT64_MAX, .all_ended = true, .all_over = true};

    for (size_t i = 0; i < json_array_size(values); i++)
        count_node(&tally, json_array_get(values, i));
    bool needs_rows = !tally.all_ended && tally.least_running == 0;
    bool is_stop = agreement->options->uneven == TFOS_UNEVEN_STOP;
    agreement->must_read_on = is_stop && needs_rows && tally.is_any_full;
    if (is_stop)
        agreement->steps = tally.least;
    else if (needs_rows)
        agreement->steps = tally.is_any_full ? (tally.most + 1) / 2 : 0;
    else
        agreement->steps = tally.all_ended ? tally.most : tally.least_running;
    agreement->is_last = is_stop ? is_any_done(values, agreement->steps) : tally.all_ended;
    agreement->is_over = tally.all_over;
}

static char *next_name(struct tfos__dataset_step_agreement *agreement)
{
    agreement->exchange_count++;
    return tfos__format("dataset/%s/%lld/%lld", agreement->options->name,
                        (long long)agreement->epoch, (long long)agreement->exchange_count);
}

void tfos__dataset_step_agreement_leave(struct tfos__dataset_step_agreement *agreement)
{
    struct tfos_error err;

    if (agreement->exchange_count == 0 || agreement->is_last || agreement->is_over ||
        agreement->is_abandoned)
        return;
    // If it cannot be sent, the cluster has ended.
    (void)tfos__dataset_exchange(agreement->options, next_name(agreement),
                                 json_pack("{s:b}", "left", 1), NULL, &err);
}

static bool has_any_left(const json_t *values)
{
    for (size_t i = 0; i < json_array_size(values); i++)
        if (tfos__json_bool_or(json_array_get(values, i), "left", false))
            return true;
    return false;
}

static enum tfos_status exchange_reports(struct tfos__dataset_step_agreement *agreement,
                                         const struct tfos__dataset_step_report *report,
                                         struct tfos_error *err)
{
    json_t *values = NULL;
    enum tfos_status status = TFOS_OK;
    json_t *value = json_pack(
        "{s:I, s:b, s:b, s:b}", "batches", (json_int_t)report->ready_batch_count, "ended",
        (int)report->is_epoch_end, "over", (int)report->is_feed_end, "full", (int)report->is_full);
    TFOS__TRY(
        tfos__dataset_exchange(agreement->options, next_name(agreement), value, &values, err));
    agreement->is_abandoned = has_any_left(values);
    if (agreement->is_abandoned)
        status = tfos__fail(err, TFOS_INVALID,
                            "dataset: another node takes no more batches of its pass over the "
                            "files, and this one does: all must take equally many");
    else
        decide(agreement, values);
    json_decref(values);
    return status;
}

enum tfos_status tfos__dataset_step_agreement_reach(struct tfos__dataset_step_agreement *agreement,
                                                    const struct tfos__dataset_step_report *report,
                                                    struct tfos_error *err)
{
    // tf.data's prefetching asks again after a failure, and nobody would answer.
    if (agreement->failure == TFOS_OK)
        agreement->failure = exchange_reports(agreement, report, &agreement->cause);
    if (agreement->failure < 0 && err)
        *err = agreement->cause;
    return agreement->failure;
}

int64_t
tfos__dataset_step_agreement_missing_steps(const struct tfos__dataset_step_agreement *agreement)
{
    int64_t missing = agreement->first_step_count - agreement->step_count;
    bool is_padded = agreement->options->uneven == TFOS_UNEVEN_PAD && agreement->step_count > 0;

    return is_padded && missing > 0 ? missing : 0;
}

void tfos__dataset_step_agreement_begin_epoch(struct tfos__dataset_step_agreement *agreement,
                                              bool is_repeat)
{
    if (!is_repeat)
        agreement->first_step_count = 0;
    else if (agreement->first_step_count == 0)
        agreement->first_step_count = agreement->step_count;
    agreement->epoch++;
    agreement->exchange_count = 0;
    agreement->steps = 0;
    agreement->step_count = 0;
    agreement->is_last = false;
}
