// SPDX-License-Identifier: Apache-2.0
/// Refuses a handle to processes that are forked from the one that opened it (<tfos/fork.h>), and
/// reports their attempt there, since their failure is not always seen.
#ifndef TFOS_BASE_FORK_GUARD_H
#define TFOS_BASE_FORK_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/fork.h>
#include <tfos/status.h>

/// What to do instead of reading a feed in a forked process.
#define TFOS__FORK_ADVICE_FEED                                                                     \
    "both would get the same rows. Read the feed in the process that runs the function, in "       \
    "threads if need be (Keras: use_multiprocessing=False; PyTorch: num_workers=0), and hand "     \
    "rows "                                                                                        \
    "on from there"

struct tfos__fork_guard {
    uint32_t generation;
    int pid;                  ///< of the process that opened the handle
    _Atomic int *forked_user; ///< owned; shared with forked processes: the first that used the
                              ///< handle, 0: none
};

enum tfos_status tfos__fork_guard_init(struct tfos__fork_guard *guard, struct tfos_error *err);

/// Frees what init() made; a guard of zeros is accepted.
void tfos__fork_guard_clear(struct tfos__fork_guard *guard);

/// Whether this process was forked from the one that opened the handle.
static inline bool tfos__fork_guard_is_inherited(const struct tfos__fork_guard *guard)
{
    return guard->generation != tfos_fork_generation();
}

/// INVALID in a forked process, of which a note is made, and, once there is a note, in the process
/// that opened the handle. The message ends with `advice`.
enum tfos_status tfos__fork_guard_check(const struct tfos__fork_guard *guard, const char *module,
                                        const char *advice, struct tfos_error *err);

#endif
