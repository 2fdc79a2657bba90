// SPDX-License-Identifier: Apache-2.0
// A group's life. An operation under way holds it, so that a close() by another thread frees
// nothing under it.
#include "collective/group.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/listener.h"
#include "base/memory.h"
#include "collective/collective.h"

#define NAME_LIMIT 128
#define OPEN_TIMEOUT_MS 600000
#define STALL_TIMEOUT_MS 600000
#define SILENCE_TIMEOUT_MS 10000

static struct tfos__number_table groups;

static int64_t or_default(int64_t timeout_ms, int64_t fallback)
{
    return timeout_ms > 0 ? timeout_ms : fallback;
}

static enum tfos_status check_options(const struct tfos_collective_options *options,
                                      struct tfos_error *err)
{
    const char *wrong = NULL;
    if (options->size < 1 || options->size > TFOS_COLLECTIVE_MAX_RANKS)
        wrong = "size: a group has from 1 to 64 ranks";
    else if (options->rank < 0 || options->rank >= options->size)
        wrong = "rank: it is from 0 to below the size";
    else if (!options->name || options->name[0] == '\0' || strlen(options->name) > NAME_LIMIT)
        wrong = "name: it has from 1 to 128 bytes";
    else if (options->transport != TFOS_COLLECTIVE_AUTO &&
             options->transport != TFOS_COLLECTIVE_TCP)
        wrong = "transport: it is unknown";
    else if (options->open_timeout_ms < 0 || options->stall_timeout_ms < 0 ||
             options->silence_timeout_ms < 0)
        wrong = "open_timeout_ms, stall_timeout_ms and silence_timeout_ms: they are 0 or more";
    else if (options->size > 1 && !options->exchange)
        wrong = "exchange: a group of several ranks needs it";
    return wrong ? tfos__fail(err, TFOS_INVALID, "collective: option %s", wrong) : TFOS_OK;
}

static void free_group(struct tfos_collective *group)
{
    bool is_orderly =
        tfos__collective_failure_check(&group->failure, group->sequence, NULL) == TFOS_OK;
    tfos__collective_gpu_clear(&group->gpu, is_orderly);
    tfos__collective_parameters_clear(&group->parameters);
    tfos__free(group->pulled);
    tfos__collective_ring_clear(&group->ring);
    tfos__collective_links_clear(&group->links);
    tfos__collective_segment_clear(&group->segment);
    tfos__collective_roster_clear(&group->roster);
    tfos__collective_failure_clear(&group->failure);
    tfos__fork_guard_clear(&group->guard);
    pthread_mutex_destroy(&group->mutex);
    tfos__free(group->name);
    tfos__free(group);
}

/// Connects the ranks, whose addresses are known.
static enum tfos_status connect_ranks(struct tfos_collective *group,
                                      const struct tfos_collective_options *options, int listener,
                                      int64_t deadline, struct tfos_error *err)
{
    struct tfos__collective_credentials credentials = {
        .identity.cluster_id = group->name,
        .session = group->roster.members[0].token,
        .rank = group->rank,
        .size = group->size,
        .is_trusted_network = options->is_trusted_network,
    };
    memcpy(credentials.identity.key, options->key, sizeof(credentials.identity.key));
    enum tfos_status status = tfos__collective_links_open(&group->links, listener, &group->roster,
                                                          &credentials, deadline, err);
    explicit_bzero(&credentials, sizeof(credentials));
    if (status == TFOS_OK && group->links.next.channel)
        status = tfos__collective_ring_init(&group->ring, &group->links, &group->roster, err);
    return status;
}

static enum tfos_status join(struct tfos_collective *group,
                             const struct tfos_collective_options *options, const char *host_label,
                             int listener, int port, struct tfos_error *err)
{
    const struct tfos__collective_roster *roster = &group->roster;
    int64_t deadline = tfos__deadline(or_default(options->open_timeout_ms, OPEN_TIMEOUT_MS));
    TFOS__TRY(tfos__collective_roster_exchange(&group->roster, options, host_label, port,
                                               &group->segment, err));
    const struct tfos__collective_member *member = &roster->members[roster->rank];
    bool is_flat = roster->host_count == roster->size;
    enum tfos_status status = TFOS_OK;
    struct tfos_error cause;
    if (!is_flat)
        status = tfos__collective_segment_map(&group->segment, roster->counts[member->host],
                                              member->index, &group->failure, &cause);
    // Who cannot map it still connects, so that the others hear of it at once.
    enum tfos_status linked = connect_ranks(group, options, listener, deadline, err);
    if (status < 0)
        return tfos__fail(err, status, "%s", cause.message);
    TFOS__TRY(linked);
    group->liveness = (struct tfos__collective_liveness){
        .roster = roster,
        .links = &group->links,
        .failure = &group->failure,
        .segment = &group->segment,
        .silence_timeout_ms = or_default(options->silence_timeout_ms, SILENCE_TIMEOUT_MS),
        .stall_timeout_ms = group->stall_timeout_ms};
    return tfos__collective_liveness_start(&group->liveness, err);
}

static enum tfos_status join_others(struct tfos_collective *group,
                                    const struct tfos_collective_options *options,
                                    const char *host_label, struct tfos_error *err)
{
    int listener, port;
    TFOS__TRY(tfos__listener_open(NULL, "0", &listener, &port, err));
    enum tfos_status status = join(group, options, host_label, listener, port, err);
    close(listener);
    return status;
}

enum tfos_status tfos__collective_open(const struct tfos_collective_options *options,
                                       const char *host_label, struct tfos_collective **out,
                                       struct tfos_error *err)
{
    TFOS__TRY(check_options(options, err));
    struct tfos_collective *group = tfos__alloc(1, sizeof(*group));
    if (!group)
        return tfos__no_memory(err, "collective", "a group");
    pthread_mutex_init(&group->mutex, NULL);
    pthread_mutex_init(&group->gpu.mutex, NULL);
    group->segment.fd = group->failure.wake_fd = group->parameters.fd = -1;
    group->roster.has_parameters = options->has_parameters;
    group->rank = options->rank;
    group->size = options->size;
    group->is_trusted_network = options->is_trusted_network;
    group->stall_timeout_ms = or_default(options->stall_timeout_ms, STALL_TIMEOUT_MS);
    enum tfos_status status = tfos__collective_failure_init(&group->failure, err);
    if (status == TFOS_OK)
        status = tfos__fork_guard_init(&group->guard, err);
    if (status == TFOS_OK) {
        group->name = tfos__strdup(options->name);
        if (!group->name)
            status = tfos__no_memory(err, "collective", "a group's name");
    }
    if (status == TFOS_OK && group->size > 1)
        status = join_others(group, options, host_label, err);
    if (status != TFOS_OK) {
        tfos__collective_liveness_stop(&group->liveness, 1);
        free_group(group);
        return status;
    }
    group->figures.last_rank = -1;
    tfos__number_table_add(&groups, &group->entry);
    *out = group;
    return TFOS_OK;
}

enum tfos_status tfos_collective_open(const struct tfos_collective_options *options,
                                      struct tfos_collective **out, struct tfos_error *err)
{
    return tfos__collective_open(options, NULL, out, err);
}

int tfos_collective_rank(const struct tfos_collective *group)
{
    return group->rank;
}

int tfos_collective_size(const struct tfos_collective *group)
{
    return group->size;
}

int64_t tfos_collective_number(const struct tfos_collective *group)
{
    return group->entry.number;
}

enum tfos_status tfos_collective_acquire(int64_t number, struct tfos_collective **out,
                                         struct tfos_error *err)
{
    struct tfos__number_entry *entry = tfos__number_table_acquire(&groups, number);
    if (!entry)
        return tfos__fail(err, TFOS_NOT_FOUND,
                          "collective: this process has no open group %lld: it was closed, or is "
                          "another process's",
                          (long long)number);
    *out = (struct tfos_collective *)entry;
    return TFOS_OK;
}

void tfos_collective_release(struct tfos_collective *group)
{
    if (!group || tfos__fork_guard_is_inherited(&group->guard) ||
        !tfos__number_table_release(&groups, &group->entry))
        return;
    free_group(group);
}

// All but who came last; with the mutex held.
static void read_figures(struct tfos_collective *group, struct tfos_collective_figures *figures)
{
    int64_t now_us = tfos__now_us();
    *figures = group->figures;
    figures->last_rank = -1;
    figures->step_count = tfos__collective_step_clock_count(&group->steps);
    figures->data_us = tfos__collective_step_clock_waited_us(&group->steps, now_us);
    if (!group->is_used)
        return;
    int64_t met_us = atomic_load(&group->met_us);
    figures->duration_us += now_us - group->begin_us;
    figures->wait_us += (met_us > 0 ? met_us : now_us) - group->begin_us;
}

void tfos__collective_peek_figures(struct tfos_collective *group,
                                   struct tfos_collective_figures *figures)
{
    pthread_mutex_lock(&group->mutex);
    read_figures(group, figures);
    pthread_mutex_unlock(&group->mutex);
}

void tfos_collective_get_figures(struct tfos_collective *group,
                                 struct tfos_collective_figures *figures)
{
    if (tfos__fork_guard_is_inherited(&group->guard)) {
        *figures = (struct tfos_collective_figures){.last_rank = -1};
        return;
    }
    pthread_mutex_lock(&group->mutex);
    read_figures(group, figures);
    for (int rank = 0; rank < group->size; rank++)
        group->last_counts[rank] += atomic_exchange(&group->liveness.awaited[rank], 0);
    for (int rank = 0; rank < group->size; rank++)
        if (group->last_counts[rank] > 0 &&
            (figures->last_rank < 0 ||
             group->last_counts[rank] > group->last_counts[figures->last_rank]))
            figures->last_rank = rank;
    memset(group->last_counts, 0, sizeof(group->last_counts));
    pthread_mutex_unlock(&group->mutex);
}

void tfos_collective_mark_step(struct tfos_collective *group, enum tfos_collective_mark mark)
{
    if (tfos__fork_guard_is_inherited(&group->guard))
        return;
    pthread_mutex_lock(&group->mutex);
    tfos__collective_step_clock_mark(&group->steps, mark, tfos__now_us());
    pthread_mutex_unlock(&group->mutex);
}

void tfos_collective_close(struct tfos_collective *group)
{
    if (!group || tfos__fork_guard_is_inherited(&group->guard))
        return;
    pthread_mutex_lock(&group->mutex);
    group->is_closed = true;
    // An operation under way cannot be ended by this rank, so it ends on all.
    uint64_t first = group->is_used ? group->sequence : group->sequence + 1;
    pthread_mutex_unlock(&group->mutex);
    char text[32 + TFOS__COLLECTIVE_TEXT_SIZE];
    snprintf(text, sizeof(text), "%.512s has closed the group",
             group->size > 1 ? group->roster.members[group->rank].label : "this process");
    tfos__collective_failure_set(&group->failure, first, TFOS_CLOSED, text);
    if (group->segment.head)
        tfos__collective_segment_signal(&group->segment, TFOS__COLLECTIVE_LEFT, first);
    tfos__number_table_remove(&groups, &group->entry);
    tfos__collective_liveness_stop(&group->liveness, first);
    tfos__collective_parameter_server_stop(&group->server, true);
    tfos_collective_release(group);
}
