// SPDX-License-Identifier: Apache-2.0
// A failure that reaches further back replaces one that an orderly end has set for later
// operations.
#include "collective/failure.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"

#define TELL_MS 1000

enum tfos_status tfos__collective_failure_init(struct tfos__collective_failure *failure,
                                               struct tfos_error *err)
{
    *failure = (struct tfos__collective_failure){
        .first_failed = UINT64_MAX, .listener_fd = -1, .sent = UINT64_MAX};
    tfos__monitor_init(&failure->monitor);
    failure->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (failure->wake_fd >= 0)
        return TFOS_OK;
    return tfos__fail_errno(err, TFOS_IO, "collective: cannot make an eventfd");
}

void tfos__collective_failure_clear(struct tfos__collective_failure *failure)
{
    if (failure->wake_fd >= 0)
        close(failure->wake_fd);
    tfos__monitor_clear(&failure->monitor);
}

void tfos__collective_failure_set_ticket(struct tfos__collective_failure *failure,
                                         _Atomic uint32_t *ticket)
{
    pthread_mutex_lock(&failure->monitor.mutex);
    failure->ticket = ticket;
    pthread_mutex_unlock(&failure->monitor.mutex);
}

void tfos__collective_failure_set_listener(struct tfos__collective_failure *failure, int fd)
{
    pthread_mutex_lock(&failure->monitor.mutex);
    failure->listener_fd = fd;
    pthread_mutex_unlock(&failure->monitor.mutex);
}

bool tfos__collective_failure_set(struct tfos__collective_failure *failure, uint64_t first_failed,
                                  enum tfos_status status, const char *message)
{
    pthread_mutex_lock(&failure->monitor.mutex);
    bool is_new = first_failed < failure->first_failed;
    if (is_new) {
        failure->status = status;
        snprintf(failure->cause.message, sizeof(failure->cause.message), "%s", message);
        failure->first_failed = first_failed;
        (void)eventfd_write(failure->wake_fd, 1);
        if (failure->listener_fd >= 0)
            (void)eventfd_write(failure->listener_fd, 1);
        if (failure->ticket) {
            atomic_fetch_add(failure->ticket, 1);
            syscall(SYS_futex, failure->ticket, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        }
        pthread_cond_broadcast(&failure->monitor.changed);
    }
    pthread_mutex_unlock(&failure->monitor.mutex);
    return is_new;
}

bool tfos__collective_failure_get_unsent(struct tfos__collective_failure *failure, uint64_t *first,
                                         enum tfos_status *status, struct tfos_error *cause)
{
    pthread_mutex_lock(&failure->monitor.mutex);
    bool is_unsent = failure->first_failed < failure->sent;
    *first = failure->first_failed;
    *status = failure->status;
    *cause = failure->cause;
    pthread_mutex_unlock(&failure->monitor.mutex);
    return is_unsent;
}

void tfos__collective_failure_set_sent(struct tfos__collective_failure *failure, uint64_t first)
{
    pthread_mutex_lock(&failure->monitor.mutex);
    failure->sent = first;
    pthread_cond_broadcast(&failure->monitor.changed);
    pthread_mutex_unlock(&failure->monitor.mutex);
}

void tfos__collective_failure_await_sent(struct tfos__collective_failure *failure)
{
    int64_t deadline = tfos__deadline(TELL_MS);
    pthread_mutex_lock(&failure->monitor.mutex);
    while (failure->listener_fd >= 0 && failure->first_failed < failure->sent &&
           tfos__monitor_wait(&failure->monitor, deadline))
        continue;
    pthread_mutex_unlock(&failure->monitor.mutex);
}

enum tfos_status tfos__collective_failure_await(struct tfos__collective_failure *failure,
                                                uint64_t sequence, int64_t deadline,
                                                struct tfos_error *err)
{
    pthread_mutex_lock(&failure->monitor.mutex);
    while (sequence < failure->first_failed && tfos__monitor_wait(&failure->monitor, deadline))
        continue;
    pthread_mutex_unlock(&failure->monitor.mutex);
    return tfos__collective_failure_check(failure, sequence, err);
}

enum tfos_status tfos__collective_failure_check(struct tfos__collective_failure *failure,
                                                uint64_t sequence, struct tfos_error *err)
{
    if (sequence < atomic_load_explicit(&failure->first_failed, memory_order_acquire))
        return TFOS_OK;
    pthread_mutex_lock(&failure->monitor.mutex);
    if (err)
        *err = failure->cause;
    enum tfos_status status = failure->status;
    pthread_mutex_unlock(&failure->monitor.mutex);
    return status;
}
