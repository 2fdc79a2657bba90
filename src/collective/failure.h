// SPDX-License-Identifier: Apache-2.0
/// The failure of a group: the first one counts, and stays. Whoever waits in the group is woken by
/// it. Any thread.
#ifndef TFOS_COLLECTIVE_FAILURE_H
#define TFOS_COLLECTIVE_FAILURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

#include "base/thread.h"

#define TFOS__COLLECTIVE_ANY (UINT64_MAX - 1) ///< an operation that any failure fails
#define TFOS__COLLECTIVE_REASON_MS 2000       ///< for the reason of a lost connection to come

struct tfos__collective_failure {
    struct tfos__monitor monitor; ///< guards what is not atomic
    /// Operations from this number on fail; UINT64_MAX: none. A rank that leaves in order has done
    /// its part of those before.
    _Atomic uint64_t first_failed;
    enum tfos_status status;
    struct tfos_error cause;
    uint64_t sent;            ///< `first_failed` as it was sent to the others; UINT64_MAX: never
    int wake_fd;              ///< owned; an eventfd that ends a poll() of the operation under way
    int listener_fd;          ///< borrowed; the eventfd of who tells the others; -1: nobody does
    _Atomic uint32_t *ticket; ///< borrowed; the futex on which this process sleeps; NULL: none
};

enum tfos_status tfos__collective_failure_init(struct tfos__collective_failure *failure,
                                               struct tfos_error *err);
void tfos__collective_failure_clear(struct tfos__collective_failure *failure);

/// Sets the futex to wake; NULL before it is unmapped.
void tfos__collective_failure_set_ticket(struct tfos__collective_failure *failure,
                                         _Atomic uint32_t *ticket);

/// Sets who is woken to tell the others.
void tfos__collective_failure_set_listener(struct tfos__collective_failure *failure, int fd);

/// Operations from `first_failed` on fail with this status and message. False when those failed
/// before.
bool tfos__collective_failure_set(struct tfos__collective_failure *failure, uint64_t first_failed,
                                  enum tfos_status status, const char *message);

/// The failure, if it has not been sent before: true, with its message.
bool tfos__collective_failure_get_unsent(struct tfos__collective_failure *failure, uint64_t *first,
                                         enum tfos_status *status, struct tfos_error *cause);

/// The failure that reaches back to `first` has been sent to the others.
void tfos__collective_failure_set_sent(struct tfos__collective_failure *failure, uint64_t first);

/// Waits until the failure has been sent to the others, so that this process may end; not for ever,
/// and only where a thread sends it.
void tfos__collective_failure_await_sent(struct tfos__collective_failure *failure);

/// Waits for a failure of operation `sequence`, such as the reason why a connection is lost. OK
/// when there is none at the deadline.
enum tfos_status tfos__collective_failure_await(struct tfos__collective_failure *failure,
                                                uint64_t sequence, int64_t deadline,
                                                struct tfos_error *err);

/// OK, or what operation `sequence` fails with.
enum tfos_status tfos__collective_failure_check(struct tfos__collective_failure *failure,
                                                uint64_t sequence, struct tfos_error *err);

#endif
