// SPDX-License-Identifier: Apache-2.0
// The generation is counted by a handler of fork(). The note lies in a page of its own, which
// fork() does not copy.
#include "base/fork_guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fail.h"

static _Atomic uint32_t generation;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

__attribute__((constructor)) static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

uint32_t tfos_fork_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

enum tfos_status tfos__fork_guard_init(struct tfos__fork_guard *guard, struct tfos_error *err)
{
    void *note = mmap(NULL, sizeof(*guard->forked_user), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (note == MAP_FAILED)
        return tfos__fail_errno(err, TFOS_NO_MEMORY, "process: cannot map a page");
    *guard = (struct tfos__fork_guard){tfos_fork_generation(), getpid(), note};
    return TFOS_OK;
}

void tfos__fork_guard_clear(struct tfos__fork_guard *guard)
{
    if (guard->forked_user)
        munmap((void *)guard->forked_user, sizeof(*guard->forked_user));
    guard->forked_user = NULL;
}

enum tfos_status tfos__fork_guard_check(const struct tfos__fork_guard *guard, const char *module,
                                        const char *advice, struct tfos_error *err)
{
    int user = 0;

    if (tfos__fork_guard_is_inherited(guard)) {
        atomic_compare_exchange_strong(guard->forked_user, &user, getpid());
        return tfos__fail(err, TFOS_INVALID,
                          "%s: process %d, which was forked from process %d, cannot read on: %s",
                          module, (int)getpid(), guard->pid, advice);
    }
    user = atomic_load_explicit(guard->forked_user, memory_order_relaxed);
    if (user == 0)
        return TFOS_OK;
    return tfos__fail(err, TFOS_INVALID,
                      "%s: process %d, which was forked from this one, has tried to read on: %s",
                      module, user, advice);
}
