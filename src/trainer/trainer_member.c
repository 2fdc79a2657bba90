// SPDX-License-Identifier: Apache-2.0
// What members share with their trainer is a link: it belongs to the one that goes last. Closing
// the trainer ends the calls of its members and waits until none is left; later ones fail.
#include <stdatomic.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/memory.h"
#include "trainer/trainer_channel.h"

#define NAME_SIZE 40

struct tfos__trainer_link {
    atomic_int hold_count;
    atomic_bool is_closing;
    atomic_llong member_count; ///< opened so far
    pthread_mutex_t mutex;     ///< guards what follows
    pthread_cond_t left;
    struct tfos_trainer *trainer; ///< borrowed; NULL once it is closed
    int call_count;               ///< calls of the trainer
};

struct tfos_trainer_member {
    struct tfos__trainer_link *link; ///< held
    int64_t timeout_ms;
    char name[NAME_SIZE];
};

static void release_link(struct tfos__trainer_link *link)
{
    if (atomic_fetch_sub(&link->hold_count, 1) > 1)
        return;
    pthread_cond_destroy(&link->left);
    pthread_mutex_destroy(&link->mutex);
    tfos__free(link);
}

static enum tfos_status get_link(struct tfos_trainer *trainer, struct tfos__trainer_link **out,
                                 struct tfos_error *err)
{
    TFOS__TRY(tfos__trainer_channel_lock(trainer, err));
    struct tfos__trainer_link *link = trainer->link;
    if (!link && (link = tfos__alloc(1, sizeof(*link)))) {
        atomic_init(&link->hold_count, 1);
        pthread_mutex_init(&link->mutex, NULL);
        pthread_cond_init(&link->left, NULL);
        link->trainer = trainer;
        trainer->link = link;
    }
    if (link)
        atomic_fetch_add(&link->hold_count, 1);
    tfos__trainer_channel_unlock(trainer);
    *out = link;
    return link ? TFOS_OK : tfos__no_memory(err, "trainer", "a member");
}

enum tfos_status tfos_trainer_member_open(struct tfos_trainer *trainer, int64_t timeout_ms,
                                          struct tfos_trainer_member **out, struct tfos_error *err)
{
    struct tfos__trainer_link *link;
    TFOS__TRY(get_link(trainer, &link, err));
    struct tfos_trainer_member *member = tfos__alloc(1, sizeof(*member));
    if (!member) {
        release_link(link);
        return tfos__no_memory(err, "trainer", "a member");
    }
    member->link = link;
    member->timeout_ms = timeout_ms;
    snprintf(member->name, sizeof(member->name), "files/%lld",
             (long long)(atomic_fetch_add(&link->member_count, 1) + 1));
    *out = member;
    return TFOS_OK;
}

const char *tfos_trainer_member_name(const struct tfos_trainer_member *member)
{
    return member->name;
}

bool tfos_trainer_member_is_interrupted(void *context)
{
    const struct tfos_trainer_member *member = context;
    return atomic_load(&member->link->is_closing);
}

enum tfos_status tfos_trainer_member_agree(void *context, const char *name, const char *value_json,
                                           char **values_json, struct tfos_error *err)
{
    struct tfos_trainer_member *member = context;
    struct tfos__trainer_link *link = member->link;
    struct tfos_wait wait = {member->timeout_ms, tfos_trainer_member_is_interrupted, member};
    pthread_mutex_lock(&link->mutex);
    struct tfos_trainer *trainer = link->trainer;
    link->call_count += trainer != NULL;
    pthread_mutex_unlock(&link->mutex);
    if (!trainer)
        return tfos__fail(err, TFOS_CLOSED,
                          "trainer: agreement \"%s\": the link to the node was closed", name);
    enum tfos_status status =
        tfos_trainer_agree(trainer, name, value_json, &wait, values_json, err);
    pthread_mutex_lock(&link->mutex);
    link->call_count--;
    pthread_cond_broadcast(&link->left);
    pthread_mutex_unlock(&link->mutex);
    return status;
}

void tfos_trainer_member_close(void *context)
{
    struct tfos_trainer_member *member = context;
    if (!member)
        return;
    release_link(member->link);
    tfos__free(member);
}

void tfos__trainer_member_end_all(struct tfos_trainer *trainer)
{
    struct tfos__trainer_link *link = trainer->link;
    if (!link)
        return;
    atomic_store(&link->is_closing, true);
    pthread_mutex_lock(&link->mutex);
    link->trainer = NULL;
    while (link->call_count > 0)
        pthread_cond_wait(&link->left, &link->mutex);
    pthread_mutex_unlock(&link->mutex);
    trainer->link = NULL;
    release_link(link);
}
