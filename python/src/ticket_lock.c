// SPDX-License-Identifier: Apache-2.0
// Turns. Invariant: present <= next, and the two are equal while nobody has the turn.
#include "ticket_lock.h"

#include <Python.h>

void tfos__py_ticket_lock_init(struct tfos__py_ticket_lock *turn)
{
    pthread_mutex_init(&turn->mutex, NULL);
    pthread_cond_init(&turn->passed, NULL);
    turn->next = turn->present = 0;
}

static int64_t get_present(struct tfos__py_ticket_lock *turn)
{
    int64_t present = 0;

    pthread_mutex_lock(&turn->mutex);
    present = turn->present;
    pthread_mutex_unlock(&turn->mutex);
    return present;
}

void tfos__py_ticket_lock_take(struct tfos__py_ticket_lock *turn)
{
    int64_t number = turn->next++;

    if (get_present(turn) == number)
        return;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&turn->mutex);
    while (turn->present != number)
        pthread_cond_wait(&turn->passed, &turn->mutex);
    pthread_mutex_unlock(&turn->mutex);
    Py_END_ALLOW_THREADS
}

void tfos__py_ticket_lock_pass(struct tfos__py_ticket_lock *turn)
{
    pthread_mutex_lock(&turn->mutex);
    turn->present++;
    pthread_cond_broadcast(&turn->passed);
    pthread_mutex_unlock(&turn->mutex);
}

bool tfos__py_ticket_lock_is_taken(struct tfos__py_ticket_lock *turn)
{
    return get_present(turn) != turn->next;
}

bool tfos__py_ticket_lock_is_wanted(struct tfos__py_ticket_lock *turn)
{
    return get_present(turn) + 1 != turn->next;
}

void tfos__py_ticket_lock_clear(struct tfos__py_ticket_lock *turn)
{
    pthread_cond_destroy(&turn->passed);
    pthread_mutex_destroy(&turn->mutex);
}
