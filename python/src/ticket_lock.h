// SPDX-License-Identifier: Apache-2.0
/// Turns of threads that share an object: one at a time, in the order in which they came. All
/// functions are called with the GIL held, which waits release.
#ifndef TFOS_PYTHON_TURN_H
#define TFOS_PYTHON_TURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tfos__py_ticket_lock {
    pthread_mutex_t mutex;
    pthread_cond_t passed;
    int64_t next;    ///< the number that the next thread draws; guarded by the GIL
    int64_t present; ///< the number whose turn it is; guarded by the mutex
};

void tfos__py_ticket_lock_init(struct tfos__py_ticket_lock *turn);

/// Waits for those that came before.
void tfos__py_ticket_lock_take(struct tfos__py_ticket_lock *turn);
void tfos__py_ticket_lock_pass(struct tfos__py_ticket_lock *turn);

/// Whether some thread has its turn or waits for it.
bool tfos__py_ticket_lock_is_taken(struct tfos__py_ticket_lock *turn);

/// Whether others wait for the caller to pass its turn.
bool tfos__py_ticket_lock_is_wanted(struct tfos__py_ticket_lock *turn);

void tfos__py_ticket_lock_clear(struct tfos__py_ticket_lock *turn);

#endif
