// SPDX-License-Identifier: Apache-2.0
/// Who is inside a handle of the library: a call without the GIL must not find its handle closed by
/// another thread, nor one that was opened by the process that this one was forked from. There the
/// lock may be held and calls be counted by threads that do not exist: a gate refuses whoever
/// enters, and what ends it does nothing. All functions are called with the GIL held, except
/// tfos__gate_is_interrupted() and tfos__gate_leave(), which need not.
#ifndef TFOS_PYTHON_GATE_H
#define TFOS_PYTHON_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tfos__gate {
    const char *name;    ///< of the object, for messages
    bool is_exclusive;   ///< one call at a time
    uint32_t generation; ///< tfos_fork_generation() of the process that opened the object
    int pid;             ///< of that process
    pthread_mutex_t mutex;
    pthread_cond_t left;
    int inside;     ///< calls; guarded by the mutex
    bool is_closed; ///< guarded by the GIL
};

void tfos__gate_init(struct tfos__gate *gate, const char *name, bool is_exclusive);

/// Enters. -1 with ClosedError after shut(), with InvalidError when it is exclusive and another is
/// inside, or in a forked process.
int tfos__gate_enter(struct tfos__gate *gate);
void tfos__gate_leave(struct tfos__gate *gate);

/// Whether somebody is inside.
bool tfos__gate_is_taken(struct tfos__gate *gate);

/// Between slices: -1 with an exception when the gate was shut or a signal's handler raised.
int tfos__gate_check(struct tfos__gate *gate);

/// For waits of the library, which are without the GIL: the same check as `is_interrupted` of a
/// struct tfos_wait whose context is a struct tfos__gate_watch.
struct tfos__gate_watch {
    struct tfos__gate *gate;
    bool is_interrupted; ///< the wait was ended, and there is an exception
};

bool tfos__gate_is_interrupted(void *watch);

/// Lets nobody in any more. false: it was shut before, or is the other process's.
bool tfos__gate_shut(struct tfos__gate *gate);

/// Waits, without the GIL, until all have left.
void tfos__gate_drain(struct tfos__gate *gate);

void tfos__gate_clear(struct tfos__gate *gate);

#endif
