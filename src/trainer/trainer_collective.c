// SPDX-License-Identifier: Apache-2.0
// Groups of trainers: they exchange by agreements, whose names carry the group's and how often this
// trainer has opened one of that name.
#include <stdio.h>
#include <string.h>
#include <tfos/trainer.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/socket.h"
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

/// Counts an open of the name; with the lock held.
static enum tfos_status count_open(struct tfos_trainer *trainer, const char *name, int64_t *number,
                                   struct tfos_error *err)
{
    struct tfos__trainer_group_name *group = trainer->group_names;
    while (group && strcmp(group->name, name) != 0)
        group = group->next;
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
    return status;
}
