// SPDX-License-Identifier: Apache-2.0
// Invariant: while a feeder waits for its node or its driver, it reads the driver's messages and
// asks its caller whether to continue. The first of them to end the wait is the reason that the
// call gives.
#include <string.h>
#include <tfos/feeder.h>
#include <tfos/node.h>
#include <time.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/socket.h"
#include "cluster/cluster.h"
#include "feed/feed.h"
#include "node/feeder_channels.h"

#define CLOSE_TIMEOUT_MS 1000 ///< for the last message to the driver
#define JOIN_TIMEOUT_MS 30000
#define REASON_TIMEOUT_MS 1000 ///< for the driver to report why a node has gone
#define SLICE_MS 50
#define PART_SIZE (512 << 10)  ///< bytes for each node in what is assigned at a time, about
#define BLOCK_SIZE (256 << 10) ///< most bytes of a block of rows that is assigned as a whole, about
#define ASSIGNED_ROWS_LIMIT (1 << 20)
#define STAGE_BITS 32  ///< of the number of a feed with results
#define MOMENT_BITS 35 ///< of the number of an attempt at one: milliseconds, a year of them

struct tfos_feeder {
    struct tfos__channel *driver;               ///< owned
    struct tfos__node_feeder_channels channels; ///< none: the partition is skipped
    char *node;                                 ///< owned; NULL: the partition is skipped
    char *reason;                               ///< owned; why it is
    json_t *answer; ///< owned; the driver's newest message; NULL: it is taken
    int64_t partition, first_row;
    int64_t trainer_count;          ///< that take rows of the queue and may read in step
    struct tfos_wait wait;          ///< the caller's
    enum tfos_status driver_status; ///< not OK: the cluster failed, or the driver has gone
    struct tfos_error failure;
    bool is_interrupted; ///< the caller ended its wait
    bool is_closing;     ///< the caller is not asked any more
};

void tfos_feeder_number_lazily(struct tfos_feeder_options *options, int64_t stage)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    int64_t moment = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    options->feed = (options->feed << STAGE_BITS) + stage;
    options->attempt = (options->attempt << MOMENT_BITS) + moment % (INT64_C(1) << MOMENT_BITS);
}

// ---- the driver

static bool is_type(const json_t *message, const char *type)
{
    return strcmp(tfos__json_string_or(message, "type", ""), type) == 0;
}

static enum tfos_status fail_with(const struct tfos_feeder *feeder, const json_t *message,
                                  struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CLOSED, "feed: partition %lld: %s", (long long)feeder->partition,
                      tfos__json_string_or(message, "message", "the cluster has failed"));
}

/// Reads the driver's messages for `timeout_ms`. Whether the cluster failed or the driver has gone,
/// so far; the reason is in `failure`.
static bool poll_driver(struct tfos_feeder *feeder, int64_t timeout_ms)
{
    while (feeder->driver_status == TFOS_OK) {
        json_t *message = NULL;
        enum tfos_status status = tfos__channel_receive(
            feeder->driver, &message, NULL, NULL, tfos__deadline(timeout_ms), &feeder->failure);
        if (status == TFOS_TIMEOUT)
            return false;
        if (status == TFOS_OK && is_type(message, "failed"))
            status = fail_with(feeder, message, &feeder->failure);
        feeder->driver_status = status;
        json_decref(feeder->answer);
        feeder->answer = message;
        timeout_ms = 0;
    }
    return true;
}

static bool check_interrupted(struct tfos_feeder *feeder)
{
    if (!feeder->is_interrupted && feeder->wait.is_interrupted)
        feeder->is_interrupted = feeder->wait.is_interrupted(feeder->wait.context);
    return feeder->is_interrupted;
}

/// Called by the writer while it waits.
static bool watch(void *context)
{
    struct tfos_feeder *feeder = context;

    if (feeder->is_closing)
        return false;
    return poll_driver(feeder, 0) || check_interrupted(feeder);
}

static enum tfos_status fail_as_driver(const struct tfos_feeder *feeder, struct tfos_error *err)
{
    if (err)
        *err = feeder->failure;
    return feeder->driver_status;
}

static void report_timeout(const struct tfos_feeder *feeder, const char *words)
{
    const struct tfos__node_feeder_channels *channels = &feeder->channels;
    json_t *message = json_pack("{s:s, s:s}", "type", "timed_out", "message", words);

    if (message && channels->current < channels->count)
        json_object_set_new(
            message, "executor_id",
            json_integer((json_int_t)channels->channels[channels->current].executor_id));
    (void)!tfos__channel_queue(feeder->driver, message, NULL, 0, NULL);
}

/// The outcome of a call of the writer. When a node has gone, the driver usually reports the reason
/// a moment later. A reader that takes no rows fails the cluster: a task that ran again would wait
/// again.
static enum tfos_status finish_call(struct tfos_feeder *feeder, enum tfos_status status,
                                    struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(REASON_TIMEOUT_MS);

    // If the driver has gone too, the timeout is the error.
    if (status == TFOS_TIMEOUT)
        report_timeout(feeder, err->message);
    if (status != TFOS_CLOSED || feeder->is_interrupted)
        return status;
    while (!poll_driver(feeder, SLICE_MS)) {
        if (tfos__now_ms() >= deadline || check_interrupted(feeder))
            return status;
    }
    return fail_as_driver(feeder, err);
}

// ---- opening

static enum tfos_status send_hello(struct tfos_feeder *feeder,
                                   const struct tfos_feeder_options *options,
                                   struct tfos_error *err)
{
    char host[TFOS__ADDRESS_SIZE];
    TFOS__TRY(tfos__address_local_host(tfos__channel_fd(feeder->driver), host, err));
    return tfos__channel_queue(
        feeder->driver,
        json_pack("{s:s, s:s, s:i, s:s?, s:s?, s:I, s:I, s:I, s:s, s:I, s:b}", "type", "hello",
                  "kind", "feeder", "version", 1, "queue", options->queue, "job", options->job,
                  "feed", (json_int_t)options->feed, "partition", (json_int_t)options->partition,
                  "attempt", (json_int_t)options->attempt, "host", host, "executor_pid",
                  (json_int_t)tfos_process_find_executor(getpid()), "results",
                  (int)options->has_results),
        NULL, 0, err);
}

/// The driver's answer. It comes once the cluster runs.
static enum tfos_status await_answer(struct tfos_feeder *feeder, json_t **answer,
                                     struct tfos_error *err)
{
    struct tfos__wait wait = tfos__wait_begin(&feeder->wait, TFOS__FEED_TIMEOUT_MS);

    for (;;) {
        enum tfos_status status = tfos__channel_receive(feeder->driver, answer, NULL, NULL,
                                                        tfos__deadline(SLICE_MS), err);
        if (status != TFOS_TIMEOUT)
            return status;
        TFOS__TRY(tfos__wait_check(&wait, err));
        if (tfos__now_ms() >= wait.deadline)
            return tfos__fail(err, TFOS_TIMEOUT,
                              "feed: partition %lld: the driver named no node to feed for %lld s: "
                              "the cluster does not run yet, or the driver hangs",
                              (long long)feeder->partition,
                              (long long)(feeder->wait.timeout_ms / 1000));
    }
}

static enum tfos_status set_text(char **out, const char *text, struct tfos_error *err)
{
    *out = tfos__strdup(text);
    return *out ? TFOS_OK : tfos__no_memory(err, "feed", "a feeder");
}

static enum tfos_status follow_target(struct tfos_feeder *feeder,
                                      const struct tfos_feeder_options *options,
                                      const json_t *target, struct tfos_error *err)
{
    struct tfos_wait wait = {feeder->wait.timeout_ms, watch, feeder};

    feeder->first_row = tfos__json_int_or(target, "first_row", 0);
    feeder->trainer_count = options->has_results ? 1 : tfos__json_int_or(target, "trainers", 1);
    enum tfos_status status =
        tfos__node_feeder_channels_open(&feeder->channels, options, &wait, target, err);
    if (status == TFOS_END)
        return set_text(&feeder->reason, "the trainer wants no more rows", err);
    if (status != TFOS_OK)
        return finish_call(feeder, status, err);
    return set_text(&feeder->node, tfos__json_string_or(target, "node", ""), err);
}

static enum tfos_status follow_answer(struct tfos_feeder *feeder,
                                      const struct tfos_feeder_options *options,
                                      const json_t *answer, struct tfos_error *err)
{
    if (is_type(answer, "target"))
        return follow_target(feeder, options, answer, err);
    if (is_type(answer, "failed"))
        return fail_with(feeder, answer, err);
    if (is_type(answer, "skip"))
        return set_text(&feeder->reason, tfos__json_string_or(answer, "reason", "skipped"), err);
    return tfos__fail(err, TFOS_CORRUPT,
                      "feed: partition %lld: the driver answered with \"%s\", which is no answer",
                      (long long)feeder->partition, tfos__json_string_or(answer, "type", ""));
}

static enum tfos_status join(struct tfos_feeder *feeder, const struct tfos_feeder_options *options,
                             struct tfos_error *err)
{
    struct tfos_wait joining = options->wait;
    json_t *answer = NULL;

    // A driver that cannot be reached is found out sooner than a slow reader.
    joining.timeout_ms = feeder->wait.timeout_ms < JOIN_TIMEOUT_MS ? feeder->wait.timeout_ms : 0;
    TFOS__TRY(tfos__cluster_join(options->address, options->cluster_id, options->key, &joining,
                                 &feeder->driver, err));
    TFOS__TRY(send_hello(feeder, options, err));
    TFOS__TRY(await_answer(feeder, &answer, err));
    enum tfos_status status = follow_answer(feeder, options, answer, err);
    json_decref(answer);
    return status;
}

enum tfos_status tfos_feeder_open(const struct tfos_feeder_options *options,
                                  struct tfos_feeder **out, struct tfos_error *err)
{
    struct tfos_feeder *feeder = tfos__alloc(1, sizeof(*feeder));
    if (!feeder)
        return tfos__no_memory(err, "feed", "a feeder");
    feeder->partition = options->partition;
    feeder->wait = options->wait;
    if (feeder->wait.timeout_ms <= 0)
        feeder->wait.timeout_ms = TFOS__FEED_TIMEOUT_MS;
    enum tfos_status status = join(feeder, options, err);
    if (status != TFOS_OK) {
        tfos_feeder_close(feeder);
        return status;
    }
    *out = feeder;
    return TFOS_OK;
}

const char *tfos_feeder_node(const struct tfos_feeder *feeder)
{
    return feeder->node;
}

int64_t tfos_feeder_first_row(const struct tfos_feeder *feeder)
{
    return feeder->first_row;
}

// ---- feeding

enum tfos_status tfos_feeder_check(struct tfos_feeder *feeder, struct tfos_error *err)
{
    if (poll_driver(feeder, 0))
        return fail_as_driver(feeder, err);
    if (check_interrupted(feeder))
        return tfos__fail(err, TFOS_CLOSED, "feed: partition %lld: feeding was interrupted",
                          (long long)feeder->partition);
    return TFOS_OK;
}

static enum tfos_status send_request(struct tfos_feeder *feeder, int64_t rows, int64_t block_rows,
                                     struct tfos_error *err)
{
    json_decref(feeder->answer);
    feeder->answer = NULL;
    return tfos__channel_queue(feeder->driver,
                               json_pack("{s:s, s:I, s:I, s:o}", "type", "assign", "rows",
                                         (json_int_t)rows, "block_rows", (json_int_t)block_rows,
                                         "except",
                                         tfos__node_feeder_channels_over(&feeder->channels)),
                               NULL, 0, err);
}

/// Asks the driver which nodes get the next rows. END: none does. The caller drops `*parts`.
static enum tfos_status assign(struct tfos_feeder *feeder, int64_t rows, int64_t block_rows,
                               json_t **parts, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(feeder->wait.timeout_ms);

    TFOS__TRY(send_request(feeder, rows, block_rows, err));
    while (!feeder->answer && !poll_driver(feeder, SLICE_MS)) {
        TFOS__TRY(tfos_feeder_check(feeder, err));
        if (!feeder->answer && tfos__now_ms() >= deadline)
            return tfos__fail(err, TFOS_TIMEOUT,
                              "feed: partition %lld: the driver has not said for %lld s which "
                              "nodes get the next rows: it hangs, or the network between is down",
                              (long long)feeder->partition,
                              (long long)(feeder->wait.timeout_ms / 1000));
    }
    if (feeder->driver_status != TFOS_OK)
        return fail_as_driver(feeder, err);
    if (is_type(feeder->answer, "skip"))
        return TFOS_END;
    json_t *assigned = json_object_get(feeder->answer, "parts");
    if (json_array_size(assigned) == 0)
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: partition %lld: the driver assigned the next rows to no node",
                          (long long)feeder->partition);
    // Another message may come while the rows are written.
    *parts = json_incref(assigned);
    return TFOS_OK;
}

/// The rows of a step, divided until a block of them fits a channel several times.
static int64_t choose_block(int64_t step_rows, double row_size)
{
    int64_t parts = (int64_t)(row_size * (double)step_rows / BLOCK_SIZE) + 1;

    while (parts < step_rows && step_rows % parts != 0)
        parts++;
    return parts < step_rows ? step_rows / parts : 1;
}

/// Appends rows so that all trainers, which read in step, get equally many.
static enum tfos_status append_balanced(struct tfos_feeder *feeder,
                                        const struct ArrowSchema *schema,
                                        const struct ArrowArray *array, struct tfos_error *err)
{
    struct tfos__feed_writer *own = tfos__node_feeder_channels_own(&feeder->channels);
    struct ArrowArray rest = *array;
    int64_t size = 0, appended = 0;

    TFOS__TRY(tfos__feed_writer_measure(own, schema, array, &size, err));
    double row_size = (double)size / (double)array->length;
    int64_t block_rows = choose_block(tfos__feed_writer_step_rows(own), row_size);
    double most = (double)feeder->trainer_count * PART_SIZE / row_size;
    int64_t limit = most < 1 ? 1 : most > ASSIGNED_ROWS_LIMIT ? ASSIGNED_ROWS_LIMIT : (int64_t)most;
    for (; rest.length > 0; rest.offset += appended, rest.length -= appended) {
        json_t *parts = NULL;
        enum tfos_status status =
            assign(feeder, rest.length < limit ? rest.length : limit, block_rows, &parts, err);
        if (status == TFOS_OK)
            status = finish_call(feeder,
                                 tfos__node_feeder_channels_append(&feeder->channels, schema, &rest,
                                                                   parts, &appended, err),
                                 err);
        json_decref(parts);
        if (status != TFOS_OK)
            return status;
    }
    return TFOS_OK;
}

static enum tfos_status append(struct tfos_feeder *feeder, const struct ArrowSchema *schema,
                               const struct ArrowArray *array, struct tfos_error *err)
{
    struct tfos__feed_writer *own = tfos__node_feeder_channels_own(&feeder->channels);

    if (!own)
        return TFOS_END;
    if (feeder->trainer_count > 1) {
        enum tfos_status status =
            finish_call(feeder, tfos__feed_writer_await_reader(own, err), err);
        if (status != TFOS_OK)
            return status;
    }
    if (feeder->trainer_count > 1 && array->length > 0 && tfos__feed_writer_step_rows(own) > 0)
        return append_balanced(feeder, schema, array, err);
    return finish_call(
        feeder, tfos__node_feeder_channels_append_own(&feeder->channels, schema, array, err), err);
}

enum tfos_status tfos_feeder_append(struct tfos_feeder *feeder, const struct ArrowSchema *schema,
                                    const struct ArrowArray *array, struct tfos_error *err)
{
    struct tfos_error own;

    if (!err)
        err = &own;
    TFOS__TRY(tfos_feeder_check(feeder, err));
    return append(feeder, schema, array, err);
}

enum tfos_status tfos_feeder_finish(struct tfos_feeder *feeder, struct tfos_error *err)
{
    struct tfos_error own;

    if (!err)
        err = &own;
    if (!tfos__node_feeder_channels_own(&feeder->channels))
        return TFOS_END;
    return finish_call(feeder, tfos__node_feeder_channels_finish(&feeder->channels, err), err);
}

enum tfos_status tfos_feeder_next_result(struct tfos_feeder *feeder, int64_t timeout_ms,
                                         struct ArrowSchema *schema, struct ArrowArray *array,
                                         struct tfos_error *err)
{
    struct tfos_error own;

    if (!err)
        err = &own;
    struct tfos__feed_writer *writer = tfos__node_feeder_channels_own(&feeder->channels);
    if (!writer)
        return tfos__fail(err, TFOS_CLOSED,
                          "feed: partition %lld: its rows get no results, because the cluster "
                          "takes no rows any more: %s",
                          (long long)feeder->partition, feeder->reason);
    return finish_call(feeder,
                       tfos__feed_writer_next_result(writer, timeout_ms, schema, array, err), err);
}

int64_t tfos_feeder_row_count(const struct tfos_feeder *feeder)
{
    return tfos__node_feeder_channels_row_count(&feeder->channels);
}

void tfos_feeder_close(struct tfos_feeder *feeder)
{
    if (!feeder)
        return;
    feeder->is_closing = true;
    tfos__node_feeder_channels_clear(&feeder->channels);
    tfos__channel_finish(feeder->driver, CLOSE_TIMEOUT_MS);
    tfos__free(feeder->node);
    tfos__free(feeder->reason);
    json_decref(feeder->answer);
    tfos__free(feeder);
}
