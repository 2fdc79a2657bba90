// SPDX-License-Identifier: Apache-2.0
// Gates. Invariant: once shut() and drain() have returned nobody is inside, and nobody will be.
#include "use_guard.h"
#include "error.h"

#include <tfos/fork.h>
#include <unistd.h>

void tfos__py_guard_init(struct tfos__py_guard *gate, const char *name, bool is_exclusive)
{
    gate->name = name;
    gate->is_exclusive = is_exclusive;
    gate->generation = tfos_fork_generation();
    gate->pid = getpid();
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->left, NULL);
    gate->inside = 0;
    gate->is_closed = false;
}

static int raise_closed(const struct tfos__py_guard *gate)
{
    tfos__py_raise_format(TFOS_CLOSED, "%s: it is closed", gate->name);
    return -1;
}

static bool is_inherited(const struct tfos__py_guard *gate)
{
    return gate->generation != tfos_fork_generation();
}

int tfos__py_guard_enter(struct tfos__py_guard *gate)
{
    bool is_taken = false;

    if (is_inherited(gate)) {
        tfos__py_raise_format(TFOS_INVALID,
                           "%s: process %d was forked from process %d, which opened this, and "
                           "cannot use it: open another in process %d",
                           gate->name, (int)getpid(), gate->pid, (int)getpid());
        return -1;
    }
    pthread_mutex_lock(&gate->mutex);
    is_taken = gate->is_exclusive && gate->inside > 0;
    if (!is_taken && !gate->is_closed)
        gate->inside++;
    pthread_mutex_unlock(&gate->mutex);
    if (is_taken) {
        tfos__py_raise_format(TFOS_INVALID,
                           "%s: another thread is using it, and it belongs to one at a time",
                           gate->name);
        return -1;
    }
    return gate->is_closed ? raise_closed(gate) : 0;
}

void tfos__py_guard_leave(struct tfos__py_guard *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->inside--;
    pthread_cond_broadcast(&gate->left);
    pthread_mutex_unlock(&gate->mutex);
}

bool tfos__py_guard_is_used(struct tfos__py_guard *gate)
{
    bool is_taken = false;

    pthread_mutex_lock(&gate->mutex);
    is_taken = gate->inside > 0;
    pthread_mutex_unlock(&gate->mutex);
    return is_taken;
}

int tfos__py_guard_check(struct tfos__py_guard *gate)
{
    if (PyErr_CheckSignals() < 0)
        return -1;
    return gate->is_closed ? raise_closed(gate) : 0;
}

bool tfos__py_guard_is_interrupted(void *context)
{
    struct tfos__py_guard_watch *watch = context;
    PyGILState_STATE state = PyGILState_Ensure();

    watch->is_interrupted = tfos__py_guard_check(watch->gate) < 0;
    PyGILState_Release(state);
    return watch->is_interrupted;
}

bool tfos__py_guard_close(struct tfos__py_guard *gate)
{
    bool was_closed = gate->is_closed || is_inherited(gate);

    gate->is_closed = true;
    return !was_closed;
}

void tfos__py_guard_drain(struct tfos__py_guard *gate)
{
    if (is_inherited(gate))
        return;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&gate->mutex);
    while (gate->inside > 0)
        pthread_cond_wait(&gate->left, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
    Py_END_ALLOW_THREADS
}

void tfos__py_guard_clear(struct tfos__py_guard *gate)
{
    if (is_inherited(gate))
        return;
    pthread_cond_destroy(&gate->left);
    pthread_mutex_destroy(&gate->mutex);
}
