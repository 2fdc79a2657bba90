// SPDX-License-Identifier: Apache-2.0
// Waits are on the monotonic clock, as deadlines are.
#include "base/thread.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"

void tfos__monitor_init(struct tfos__monitor *monitor)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&monitor->mutex, NULL);
    pthread_cond_init(&monitor->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool tfos__monitor_wait(struct tfos__monitor *monitor, int64_t deadline)
{
    if (deadline == TFOS__NEVER)
        return pthread_cond_wait(&monitor->changed, &monitor->mutex) == 0;
    struct timespec until = {.tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000};
    return pthread_cond_timedwait(&monitor->changed, &monitor->mutex, &until) == 0 ||
           tfos__remaining_ms(deadline) != 0;
}

void tfos__monitor_clear(struct tfos__monitor *monitor)
{
    pthread_cond_destroy(&monitor->changed);
    pthread_mutex_destroy(&monitor->mutex);
}

int tfos__thread_start(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                       void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int fault = pthread_create(thread, attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return fault;
}
