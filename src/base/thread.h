// SPDX-License-Identifier: Apache-2.0
/// Threads of the library, and waiting in them.
#ifndef TFOS_BASE_THREAD_H
#define TFOS_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/// A lock, and the condition that what it guards has changed.
struct tfos__monitor {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

void tfos__monitor_init(struct tfos__monitor *monitor);

/// With the lock held, which is released meanwhile: waits for a change until `deadline`. False once
/// that is past.
bool tfos__monitor_wait(struct tfos__monitor *monitor, int64_t deadline);

void tfos__monitor_clear(struct tfos__monitor *monitor);

/// Starts a thread that gets no signals: these are for the program's own threads (Python runs its
/// handlers on the main one). `attributes` may be NULL. 0, or the errno of a failure.
int tfos__thread_start(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                       void *argument);

#endif
