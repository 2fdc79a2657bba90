// SPDX-License-Identifier: Apache-2.0
#include "trainer_link.h"

#include <Python.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "use_guard.h"

#define NAME_SIZE 40

struct tfos__py_trainer_link {
    atomic_int hold_count;
    struct tfos__py_guard guard;  ///< of calls of the trainer
    struct tfos_trainer *trainer; ///< borrowed while the guard is open
    atomic_bool is_closing;
    int64_t member_count; ///< opened so far; guarded by the GIL
};

struct tfos__py_trainer_member {
    struct tfos__py_trainer_link *link; ///< held
    int64_t timeout_ms;
    char name[NAME_SIZE];
};

struct tfos__py_trainer_link *tfos__py_trainer_link_open(struct tfos_trainer *trainer)
{
    struct tfos__py_trainer_link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    atomic_init(&link->hold_count, 1);
    tfos__py_guard_init(&link->guard, "trainer", false);
    link->trainer = trainer;
    return link;
}

void tfos__py_trainer_link_interrupt(struct tfos__py_trainer_link *link)
{
    atomic_store(&link->is_closing, true);
}

void tfos__py_trainer_link_close(struct tfos__py_trainer_link *link)
{
    tfos__py_trainer_link_interrupt(link);
    tfos__py_guard_close(&link->guard);
    tfos__py_guard_drain(&link->guard);
}

void tfos__py_trainer_link_release(struct tfos__py_trainer_link *link)
{
    if (!link || atomic_fetch_sub(&link->hold_count, 1) > 1)
        return;
    tfos__py_guard_clear(&link->guard);
    free(link);
}

// ---- members

struct tfos__py_trainer_member *tfos__py_trainer_member_open(struct tfos__py_trainer_link *link,
                                                             int64_t timeout_ms)
{
    struct tfos__py_trainer_member *member = calloc(1, sizeof(*member));

    if (!member)
        return NULL;
    atomic_fetch_add(&link->hold_count, 1);
    member->link = link;
    member->timeout_ms = timeout_ms;
    snprintf(member->name, sizeof(member->name), "files/%lld", (long long)++link->member_count);
    return member;
}

const char *tfos__py_trainer_member_name(const struct tfos__py_trainer_member *member)
{
    return member->name;
}

enum tfos_status tfos__py_trainer_member_agree(void *context, const char *name,
                                               const char *value_json, char **values_json,
                                               struct tfos_error *err)
{
    struct tfos__py_trainer_member *member = context;
    struct tfos_wait wait = {member->timeout_ms, tfos__py_trainer_member_is_interrupted, member};

    if (!tfos__py_guard_try_enter(&member->link->guard)) {
        snprintf(err->message, sizeof(err->message),
                 "dataset: the link to the node, by which nodes stay in step, was closed");
        return TFOS_CLOSED;
    }
    enum tfos_status status =
        tfos_trainer_agree(member->link->trainer, name, value_json, &wait, values_json, err);
    tfos__py_guard_leave(&member->link->guard);
    return status;
}

bool tfos__py_trainer_member_is_interrupted(void *context)
{
    const struct tfos__py_trainer_member *member = context;

    return atomic_load(&member->link->is_closing);
}

void tfos__py_trainer_member_release(void *context)
{
    struct tfos__py_trainer_member *member = context;

    tfos__py_trainer_link_release(member->link);
    free(member);
}
