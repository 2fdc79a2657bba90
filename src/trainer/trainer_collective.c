// SPDX-License-Identifier: Apache-2.0
// Groups of trainers: they exchange by agreements, whose names carry the group's and how often this
// trainer has opened one of that name.
#include <stdio.h>
#include <string.h>
#include <tfos/trainer.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/socket.h"
#include "collective/collective.h"
#include "trainer/trainer_channel.h"

#define NAME_LIMIT 128 // bytes

/// What the exchanges of one open need.
struct opening {
    struct tfos_trainer *trainer;
    const char *name;
    int64_t number;
    struct tfos_wait wait;
};

static enum tfos_status exchange(void *context, const char *stage, const char *value_json,
                                 char **values_json, struct tfos_error *err)
{
    const struct opening *opening = context;
    char name[256];
    snprintf(name, sizeof(name), "collective/%s/%lld/%s", opening->name, (long long)opening->number,
             stage);
    return tfos_trainer_agree(opening->trainer, name, value_json, &opening->wait, values_json, err);
}

static struct tfos__trainer_group_name *find_name(const struct tfos_trainer *trainer,
                                                  const char *name)
{
    struct tfos__trainer_group_name *group = trainer->group_names;
    while (group && strcmp(group->name, name) != 0)
        group = group->next;
    return group;
}

/// Counts an open of the name; with the lock held.
static enum tfos_status count_open(struct tfos_trainer *trainer, const char *name, int64_t *number,
                                   struct tfos_error *err)
{
    struct tfos__trainer_group_name *group = find_name(trainer, name);
    if (!group) {
        char *copy = tfos__strdup(name);
        group = copy ? tfos__alloc(1, sizeof(*group)) : NULL;
        if (!group) {
            tfos__free(copy);
            return tfos__no_memory(err, "trainer", "the name of a group");
        }
        group->name = copy;
        group->next = trainer->group_names;
        trainer->group_names = group;
    }
    *number = ++group->open_count;
    return TFOS_OK;
}

/// The ranks are in the order of executor ids, as values of an agreement are.
static enum tfos_status find_rank(struct opening *opening, struct tfos_collective_options *options,
                                  struct tfos_error *err)
{
    int64_t own = tfos__json_int_or(opening->trainer->context, "executor_id", -1);
    char text[32], *answer = NULL;
    snprintf(text, sizeof(text), "%lld", (long long)own);
    TFOS__TRY(exchange(opening, "ranks", text, &answer, err));
    json_t *ids = json_loads(answer, 0, NULL);
    tfos__free(answer);
    size_t size = json_array_size(ids), rank = 0;
    while (rank < size && json_integer_value(json_array_get(ids, rank)) != own)
        rank++;
    json_decref(ids);
    if (rank == size)
        return tfos__fail(err, TFOS_CORRUPT,
                          "trainer: group \"%s\": this node is not among the %zu", opening->name,
                          size);
    if (size > TFOS_COLLECTIVE_MAX_RANKS)
        return tfos__fail(
            err, TFOS_INVALID,
            "trainer: group \"%s\": it has %d ranks at most, and there are %zu chiefs, "
            "masters and workers",
            opening->name, TFOS_COLLECTIVE_MAX_RANKS, size);
    options->rank = (int)rank;
    options->size = (int)size;
    return TFOS_OK;
}

/// The host by which the cluster knows this node; an empty text when the context has none.
static void find_host(const struct tfos_trainer *trainer, char host[TFOS__ADDRESS_SIZE])
{
    const char *job = tfos__json_string_or(trainer->context, "job_name", "");
    int64_t index = tfos__json_int_or(trainer->context, "task_index", 0);
    const json_t *tasks = json_object_get(json_object_get(trainer->context, "cluster_spec"), job);
    const char *address = json_string_value(json_array_get(tasks, (size_t)index));
    const char *end = address ? strrchr(address, ':') : NULL;
    if (end && *address == '[' && end > address + 1) {
        address++;
        end--;
    }
    snprintf(host, TFOS__ADDRESS_SIZE, "%.*s", end ? (int)(end - address) : 0, end ? address : "");
}

/// Lets the channel's thread tell the node of the group's steps from now on.
static void watch(struct tfos_trainer *trainer, const char *name,
                  const struct tfos_collective *collective)
{
    if (tfos__trainer_channel_lock(trainer, NULL) < 0)
        return;
    find_name(trainer, name)->number = tfos_collective_number(collective);
    tfos__trainer_channel_watch_steps(trainer);
    tfos__trainer_channel_unlock(trainer);
}

enum tfos_status tfos_trainer_open_collective(struct tfos_trainer *trainer,
                                              const struct tfos_collective_options *options,
                                              const struct tfos_wait *wait,
                                              struct tfos_collective **out, struct tfos_error *err)
{
    struct tfos_collective_options whole = *options;
    struct opening opening = {.trainer = trainer, .name = options->name};
    char host[TFOS__ADDRESS_SIZE];
    if (!options->name || options->name[0] == '\0' || strlen(options->name) > NAME_LIMIT)
        return tfos__fail(err, TFOS_INVALID, "trainer: the name of a group has from 1 to %d bytes",
                          NAME_LIMIT);
    if (!trainer->has_key)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "trainer: group \"%s\": the node has given no key for groups",
                          options->name);
    TFOS__TRY(tfos__trainer_channel_lock(trainer, err));
    enum tfos_status status = count_open(trainer, options->name, &opening.number, err);
    tfos__trainer_channel_unlock(trainer);
    TFOS__TRY(status);
    if (wait)
        opening.wait = *wait;
    opening.wait.timeout_ms = options->open_timeout_ms;
    find_host(trainer, host);
    if (!whole.host && host[0] != '\0')
        whole.host = host;
    whole.exchange = exchange;
    whole.context = &opening;
    memcpy(whole.key, trainer->key, sizeof(whole.key));
    status = find_rank(&opening, &whole, err);
    if (status == TFOS_OK)
        status = tfos_collective_open(&whole, out, err);
    explicit_bzero(whole.key, sizeof(whole.key));
    if (status == TFOS_OK)
        watch(trainer, options->name, *out);
    return status;
}

/// Adds what the group has done to `sum`.
static void add_figures(int64_t number, struct tfos_collective_figures *sum)
{
    struct tfos_collective *group;
    struct tfos_collective_figures figures;
    if (tfos_collective_acquire(number, &group, NULL) != TFOS_OK)
        return; // it was closed
    tfos__collective_peek_figures(group, &figures);
    tfos_collective_release(group);
    sum->duration_us += figures.duration_us;
    sum->wait_us += figures.wait_us;
    sum->step_count += figures.step_count;
    sum->pushed_steps += figures.pushed_steps;
    sum->push_count += figures.push_count;
    sum->stale_steps += figures.stale_steps;
    sum->staleness = figures.staleness > 0 ? figures.staleness : sum->staleness;
    if (figures.data_us >= 0)
        sum->data_us = figures.data_us + (sum->data_us > 0 ? sum->data_us : 0);
}

json_t *tfos__trainer_collective_steps(const struct tfos_trainer *trainer)
{
    struct tfos_collective_figures sum = {.data_us = -1};
    for (const struct tfos__trainer_group_name *group = trainer->group_names; group;
         group = group->next)
        add_figures(group->number, &sum);
    if (sum.step_count == 0)
        return NULL;
    return json_pack("{s:s, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}}", "type", "steps",
                     "figures", "at_us", (json_int_t)tfos__now_us(), "count",
                     (json_int_t)sum.step_count, "data_us", (json_int_t)sum.data_us, "exchange_us",
                     (json_int_t)(sum.duration_us - sum.wait_us), "wait_us",
                     (json_int_t)sum.wait_us, "pushed_steps", (json_int_t)sum.pushed_steps,
                     "push_count", (json_int_t)sum.push_count, "stale_steps",
                     (json_int_t)sum.stale_steps, "staleness", (json_int_t)sum.staleness);
}
