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

#include "base/fail.h"

enum tfos_status tfos__collective_failure_init(struct tfos__collective_failure *failure,
                                               struct tfos_error *err)
{
    *failure = (struct tfos__collective_failure){.first_failed = UINT64_MAX, .listener_fd = -1};
    pthread_mutex_init(&failure->mutex, NULL);
    failure->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (failure->wake_fd >= 0)
        return TFOS_OK;
    return tfos__fail_errno(err, TFOS_IO, "collective: cannot make an eventfd");
}

void tfos__collective_failure_clear(struct tfos__collective_failure *failure)
{
    if (failure->wake_fd >= 0)
        close(failure->wake_fd);
    pthread_mutex_destroy(&failure->mutex);
}

void tfos__collective_failure_set_ticket(struct tfos__collective_failure *failure,
                                         _Atomic uint32_t *ticket)
{
    pthread_mutex_lock(&failure->mutex);
    failure->ticket = ticket;
    pthread_mutex_unlock(&failure->mutex);
}

void tfos__collective_failure_set_listener(struct tfos__collective_failure *failure, int fd)
{
    pthread_mutex_lock(&failure->mutex);
    failure->listener_fd = fd;
    pthread_mutex_unlock(&failure->mutex);
}

bool tfos__collective_failure_set(struct tfos__collective_failure *failure, uint64_t first_failed,
                                  enum tfos_status status, const char *message)
{
    pthread_mutex_lock(&failure->mutex);
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
    }
    pthread_mutex_unlock(&failure->mutex);
    return is_new;
}

enum tfos_status tfos__collective_failure_check(struct tfos__collective_failure *failure,
                                                uint64_t sequence, struct tfos_error *err)
{
    if (sequence < atomic_load_explicit(&failure->first_failed, memory_order_acquire))
        return TFOS_OK;
    pthread_mutex_lock(&failure->mutex);
    if (err)
        *err = failure->cause;
    enum tfos_status status = failure->status;
    pthread_mutex_unlock(&failure->mutex);
    return status;
}
