// SPDX-License-Identifier: Apache-2.0
/// Use guard: counts the calls in a handle of the library, so that none without the GIL finds its
/// handle closed by another thread. In a forked process the lock may be held, and calls be counted,
/// by threads that do not exist: enter() fails there, and what ends a guard does nothing. All
/// functions are called with the GIL held, except tfos__py_guard_is_interrupted() and
/// tfos__py_guard_leave(), which need not.
#ifndef TFOS_PYTHON_USE_GUARD_H
#define TFOS_PYTHON_USE_GUARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tfos__py_guard {
    const char *name;    ///< of the object, for messages
    bool is_exclusive;   ///< one call at a time
    uint32_t generation; ///< tfos_fork_generation() of the process that opened the object
    int pid;             ///< of that process
    pthread_mutex_t mutex;
    pthread_cond_t left;
    int inside;     ///< calls; guarded by the mutex
    bool is_closed; ///< guarded by the GIL
};

void tfos__py_guard_init(struct tfos__py_guard *guard, const char *name, bool is_exclusive);

/// Enters. -1 with ClosedError after close(), with InvalidError when it is exclusive and another is
/// inside, or in a forked process.
int tfos__py_guard_enter(struct tfos__py_guard *guard);
void tfos__py_guard_leave(struct tfos__py_guard *guard);

/// Whether somebody is inside.
bool tfos__py_guard_is_used(struct tfos__py_guard *guard);

/// Between slices: -1 with an exception when the guard was closed or a signal's handler raised.
int tfos__py_guard_check(struct tfos__py_guard *guard);

/// For waits of the library, which are without the GIL: the same check as `is_interrupted` of a
/// struct tfos_wait whose context is a struct tfos__py_watch.
struct tfos__py_watch {
    struct tfos__py_guard *guard;
    bool is_interrupted; ///< the wait was ended, and there is an exception
};

bool tfos__py_guard_is_interrupted(void *watch);

/// Lets nobody in any more. false: it was closed before, or is the other process's.
bool tfos__py_guard_close(struct tfos__py_guard *guard);

/// Waits, without the GIL, until all have left.
void tfos__py_guard_drain(struct tfos__py_guard *guard);

void tfos__py_guard_clear(struct tfos__py_guard *guard);

#endif
