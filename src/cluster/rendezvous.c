// SPDX-License-Identifier: Apache-2.0
// The public interface of the server: each call takes the lock, does one thing to the cluster, and
// lets go.
#include <tfos/rendezvous.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "cluster/failure_text.h"
#include "cluster/rendezvous_thread.h"
#include "cluster/status_document.h"

enum tfos_status tfos_rendezvous_open(const struct tfos_rendezvous_options *options,
                                      struct tfos_rendezvous **out, struct tfos_error *err)
{
    return tfos__cluster_thread_start(options, out, err);
}

const char *tfos_rendezvous_address(const struct tfos_rendezvous *rendezvous)
{
    return rendezvous->cluster.address;
}

/// Gives out `value`, taken over, as text.
static enum tfos_status give_text(json_t *value, char **json, struct tfos_error *err)
{
    char *text = value ? tfos__json_text(value) : NULL;
    json_decref(value);
    if (!text)
        return tfos__no_memory(err, "rendezvous", "a document");
    *json = text;
    return TFOS_OK;
}

enum tfos_status tfos_rendezvous_get_roles(struct tfos_rendezvous *rendezvous, char **json,
                                           struct tfos_error *err)
{
    return give_text(tfos__cluster_roles_json(&rendezvous->cluster.roles), json, err);
}

static enum tfos_status fail_closed(struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CLOSED, "rendezvous: it has been closed");
}

static enum tfos_status check(const struct tfos__cluster *cluster, struct tfos_error *err)
{
    if (cluster->state == TFOS__CLUSTER_FAILED)
        return tfos__fail(err, cluster->failure, "%s", cluster->failure_message);
    return TFOS_OK;
}

/// With the lock held.
static enum tfos_status wait_for_phase(struct tfos_rendezvous *rendezvous,
                                       enum tfos_rendezvous_phase phase, int64_t timeout_ms,
                                       struct tfos_error *err)
{
    const struct tfos__cluster *cluster = &rendezvous->cluster;
    int64_t begin_ms = tfos__now_ms();
    for (;;) {
        if (rendezvous->is_closing)
            return fail_closed(err);
        if (phase != TFOS_PHASE_ENDED)
            TFOS__TRY(check(cluster, err));
        if (tfos__cluster_has_reached(cluster, phase))
            return TFOS_OK;
        if (phase == TFOS_PHASE_DRAINED && begin_ms < cluster->scheduler.progress_ms)
            begin_ms = cluster->scheduler.progress_ms;
        int64_t waited_ms = tfos__now_ms() - begin_ms;
        if (timeout_ms >= 0 && waited_ms >= timeout_ms)
            return tfos__cluster_failure_text_of_timeout(&cluster->scheduler, phase, waited_ms,
                                                         err);
        tfos__cluster_thread_wait(
            rendezvous, timeout_ms < 0 ? TFOS__NEVER : tfos__deadline(timeout_ms - waited_ms));
    }
}

/// A wait's end: close() may be waiting for it.
static void leave(struct tfos_rendezvous *rendezvous)
{
    rendezvous->waiter_count--;
    if (rendezvous->is_closing)
        rendezvous->cluster.has_changed = true;
    tfos__cluster_thread_unlock(rendezvous);
}

enum tfos_status tfos_rendezvous_wait(struct tfos_rendezvous *rendezvous,
                                      enum tfos_rendezvous_phase phase, int64_t timeout_ms,
                                      struct tfos_error *err)
{
    if (phase < TFOS_PHASE_RUNNING || phase > TFOS_PHASE_ENDED)
        return tfos__fail(err, TFOS_INVALID, "rendezvous: phase is %d: expected %d to %d",
                          (int)phase, TFOS_PHASE_RUNNING, TFOS_PHASE_ENDED);
    tfos__cluster_thread_lock(rendezvous);
    rendezvous->waiter_count++;
    enum tfos_status status = wait_for_phase(rendezvous, phase, timeout_ms, err);
    leave(rendezvous);
    return status;
}

int64_t tfos_rendezvous_idle_ms(struct tfos_rendezvous *rendezvous)
{
    tfos__cluster_thread_lock(rendezvous);
    int64_t idle_ms = tfos__now_ms() - rendezvous->cluster.scheduler.progress_ms;
    tfos__cluster_thread_unlock(rendezvous);
    return idle_ms;
}

enum tfos_status tfos_rendezvous_time_out(struct tfos_rendezvous *rendezvous,
                                          enum tfos_rendezvous_phase phase, int64_t waited_ms,
                                          struct tfos_error *err)
{
    tfos__cluster_thread_lock(rendezvous);
    enum tfos_status status = tfos__cluster_failure_text_of_timeout(&rendezvous->cluster.scheduler,
                                                                    phase, waited_ms, err);
    tfos__cluster_thread_unlock(rendezvous);
    return status;
}

enum tfos_status tfos_rendezvous_check(struct tfos_rendezvous *rendezvous, struct tfos_error *err)
{
    tfos__cluster_thread_lock(rendezvous);
    enum tfos_status status = check(&rendezvous->cluster, err);
    tfos__cluster_thread_unlock(rendezvous);
    return status;
}

void tfos_rendezvous_fail(struct tfos_rendezvous *rendezvous, enum tfos_status status,
                          const char *message)
{
    tfos__cluster_thread_lock(rendezvous);
    tfos__cluster_fail(&rendezvous->cluster, status < 0 ? status : TFOS_CLOSED,
                       message ? message : tfos_status_text(status));
    tfos__cluster_thread_unlock(rendezvous);
}

static enum tfos_status find_queue(const struct tfos_rendezvous *rendezvous, const char *name,
                                   int *queue, struct tfos_error *err)
{
    enum tfos_status status = tfos__queue_names_get(&rendezvous->cluster.queues, name, queue, err);
    if (status < 0)
        tfos__fail_prefix(err, "rendezvous");
    return status;
}

enum tfos_status tfos_rendezvous_plan_feed(struct tfos_rendezvous *rendezvous, int64_t feed,
                                           const struct tfos_feed_plan *plan,
                                           struct tfos_error *err)
{
    if (feed < 1 || plan->epoch < 1 || plan->epoch_count < plan->epoch || plan->partition_count < 0)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: the plan of feed %lld: epoch %lld of %lld with %lld "
                          "partitions: numbers begin with 1, counts are not negative",
                          (long long)feed, (long long)plan->epoch, (long long)plan->epoch_count,
                          (long long)plan->partition_count);
    int queue;
    TFOS__TRY(find_queue(rendezvous, plan->queue, &queue, err));
    tfos__cluster_thread_lock(rendezvous);
    tfos__cluster_plan_feed(&rendezvous->cluster, queue, feed, plan);
    tfos__cluster_thread_unlock(rendezvous);
    return TFOS_OK;
}

typedef void end_feed_number(struct tfos__cluster *cluster, int queue, int64_t feed);

static enum tfos_status end_numbered(struct tfos_rendezvous *rendezvous, const char *queue,
                                     int64_t feed, end_feed_number *end, struct tfos_error *err)
{
    int number;
    TFOS__TRY(find_queue(rendezvous, queue, &number, err));
    tfos__cluster_thread_lock(rendezvous);
    end(&rendezvous->cluster, number, feed);
    tfos__cluster_thread_unlock(rendezvous);
    return TFOS_OK;
}

enum tfos_status tfos_rendezvous_end_epoch(struct tfos_rendezvous *rendezvous, const char *queue,
                                           int64_t feed, struct tfos_error *err)
{
    return end_numbered(rendezvous, queue, feed, tfos__cluster_end_epoch, err);
}

enum tfos_status tfos_rendezvous_end_batch(struct tfos_rendezvous *rendezvous, const char *queue,
                                           int64_t feed, struct tfos_error *err)
{
    return end_numbered(rendezvous, queue, feed, tfos__cluster_end_batch, err);
}

enum tfos_status tfos_rendezvous_describe_feed(struct tfos_rendezvous *rendezvous,
                                               const char *queue, int64_t first_feed,
                                               int64_t last_feed, const char *schema_json,
                                               struct tfos_error *err)
{
    const struct tfos__cluster_feed_description description = {(char *)schema_json, first_feed,
                                                               last_feed};

    tfos__cluster_thread_lock(rendezvous);
    enum tfos_status status =
        tfos__cluster_scheduler_describe(&rendezvous->cluster.scheduler, queue, &description, err);
    tfos__cluster_thread_unlock(rendezvous);
    return status;
}

void tfos_rendezvous_end_feed(struct tfos_rendezvous *rendezvous)
{
    tfos__cluster_thread_lock(rendezvous);
    tfos__cluster_end_feed(&rendezvous->cluster);
    tfos__cluster_thread_unlock(rendezvous);
}

void tfos_rendezvous_stop(struct tfos_rendezvous *rendezvous, int64_t grace_ms)
{
    tfos__cluster_thread_lock(rendezvous);
    tfos__cluster_stop(&rendezvous->cluster, grace_ms < 0 ? 0 : grace_ms);
    tfos__cluster_thread_unlock(rendezvous);
}

enum tfos_status tfos_rendezvous_next_event(struct tfos_rendezvous *rendezvous, int64_t timeout_ms,
                                            char **json, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    enum tfos_status status = TFOS_OK;
    char *text = NULL;
    tfos__cluster_thread_lock(rendezvous);
    rendezvous->waiter_count++;
    for (;;) {
        if (rendezvous->is_closing)
            status = fail_closed(err);
        else if ((text = tfos__cluster_event_queue_take(&rendezvous->cluster.events)) == NULL &&
                 tfos__remaining_ms(deadline) == 0)
            status = TFOS_AGAIN;
        if (text || status != TFOS_OK)
            break;
        tfos__cluster_thread_wait(rendezvous, deadline);
    }
    leave(rendezvous);
    if (status == TFOS_OK)
        *json = text;
    return status;
}

enum tfos_status tfos_rendezvous_get_status(struct tfos_rendezvous *rendezvous, char **json,
                                            struct tfos_error *err)
{
    tfos__cluster_thread_lock(rendezvous);
    json_t *document = tfos__cluster_status_document(&rendezvous->cluster);
    // The reports in it are shared with the cluster, so it is made text, and let go of, under the
    // lock.
    enum tfos_status status = give_text(document, json, err);
    tfos__cluster_thread_unlock(rendezvous);
    return status;
}

void tfos_rendezvous_close(struct tfos_rendezvous *rendezvous)
{
    if (!rendezvous)
        return;
    tfos__cluster_thread_stop(rendezvous);
}
