// SPDX-License-Identifier: Apache-2.0
// Invariant: once close() and drain() have returned nobody is inside, and nobody will be.
#include "use_guard.h"

#include <tfos/fork.h>
#include <unistd.h>

#include "error.h"

void tfos__py_guard_init(struct tfos__py_guard *guard, const char *name, bool is_exclusive)
{
    guard->name = name;
    guard->is_exclusive = is_exclusive;
    guard->generation = tfos_fork_generation();
    guard->pid = getpid();
    pthread_mutex_init(&guard->mutex, NULL);
    pthread_cond_init(&guard->left, NULL);
    guard->inside = 0;
    guard->is_closed = false;
}

static int raise_closed(const struct tfos__py_guard *guard)
{
    tfos__py_raise_format(TFOS_CLOSED, "%s: it is closed", guard->name);
    return -1;
}

static bool is_inherited(const struct tfos__py_guard *guard)
{
    return guard->generation != tfos_fork_generation();
}

int tfos__py_guard_enter(struct tfos__py_guard *guard)
{
    bool is_taken = false;

    if (is_inherited(guard)) {
        tfos__py_raise_format(TFOS_INVALID,
                              "%s: process %d was forked from process %d, which opened this, and "
                              "cannot use it: open another in process %d",
                              guard->name, (int)getpid(), guard->pid, (int)getpid());
        return -1;
    }
    pthread_mutex_lock(&guard->mutex);
    is_taken = guard->is_exclusive && guard->inside > 0;
    if (!is_taken && !guard->is_closed)
        guard->inside++;
    pthread_mutex_unlock(&guard->mutex);
    if (is_taken) {
        tfos__py_raise_format(TFOS_INVALID,
                              "%s: another thread is using it, and it belongs to one at a time",
                              guard->name);
        return -1;
    }
    return guard->is_closed ? raise_closed(guard) : 0;
}

void tfos__py_guard_leave(struct tfos__py_guard *guard)
{
    pthread_mutex_lock(&guard->mutex);
    guard->inside--;
    pthread_cond_broadcast(&guard->left);
    pthread_mutex_unlock(&guard->mutex);
}

bool tfos__py_guard_is_used(struct tfos__py_guard *guard)
{
    bool is_taken = false;

    pthread_mutex_lock(&guard->mutex);
    is_taken = guard->inside > 0;
    pthread_mutex_unlock(&guard->mutex);
    return is_taken;
}

int tfos__py_guard_check(struct tfos__py_guard *guard)
{
    if (PyErr_CheckSignals() < 0)
        return -1;
    return guard->is_closed ? raise_closed(guard) : 0;
}

bool tfos__py_guard_is_interrupted(void *context)
{
    struct tfos__py_watch *watch = context;
    PyGILState_STATE state = PyGILState_Ensure();

    watch->is_interrupted = tfos__py_guard_check(watch->guard) < 0;
    PyGILState_Release(state);
    return watch->is_interrupted;
}

bool tfos__py_guard_close(struct tfos__py_guard *guard)
{
    bool was_closed = guard->is_closed || is_inherited(guard);

    guard->is_closed = true;
    return !was_closed;
}

void tfos__py_guard_drain(struct tfos__py_guard *guard)
{
    if (is_inherited(guard))
        return;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&guard->mutex);
    while (guard->inside > 0)
        pthread_cond_wait(&guard->left, &guard->mutex);
    pthread_mutex_unlock(&guard->mutex);
    Py_END_ALLOW_THREADS
}

void tfos__py_guard_clear(struct tfos__py_guard *guard)
{
    if (is_inherited(guard))
        return;
    pthread_cond_destroy(&guard->left);
    pthread_mutex_destroy(&guard->mutex);
}
