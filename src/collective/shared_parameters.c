// SPDX-License-Identifier: Apache-2.0
// The bound is that of stale synchronous parallel training: who has taken c steps, and is to take s
// more before it pushes again, waits until all others have pushed c + s - staleness. The slowest
// never waits, since s is at most the staleness.
#include "collective/shared_parameters.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"

#define PAGE ((size_t)4096)
#define PIECE (INT64_C(1) << 16) // elements under one lock
#define LOOK_MS 50               // between two looks at the group's failure

static size_t head_size(void)
{
    return (sizeof(struct tfos__collective_parameter_head) + PAGE - 1) / PAGE * PAGE;
}

/// Maps the memory of `parameters->fd`, which has its size.
static enum tfos_status map(struct tfos__collective_parameters *parameters, struct tfos_error *err)
{
    void *data =
        mmap(NULL, parameters->size, PROT_READ | PROT_WRITE, MAP_SHARED, parameters->fd, 0);
    if (data == MAP_FAILED)
        return tfos__fail_errno(err, TFOS_NO_MEMORY, "collective: cannot map %zu bytes",
                                parameters->size);
    parameters->head = data;
    parameters->values = (float *)((unsigned char *)data + head_size());
    return TFOS_OK;
}

static enum tfos_status init_locks(struct tfos__collective_parameter_head *head,
                                   struct tfos_error *err)
{
    pthread_mutexattr_t attributes;
    int fault = pthread_mutexattr_init(&attributes);
    if (fault == 0)
        fault = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    for (int i = 0; i < TFOS__COLLECTIVE_PARAMETER_LOCKS && fault == 0; i++)
        fault = pthread_mutex_init(&head->locks[i], &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    return fault == 0
               ? TFOS_OK
               : tfos__fail(err, TFOS_IO, "collective: cannot make a lock: %s", strerror(fault));
}

enum tfos_status tfos__collective_parameters_init(struct tfos__collective_parameters *parameters,
                                                  char token[TFOS__COLLECTIVE_TOKEN_SIZE],
                                                  struct tfos_error *err)
{
    parameters->size = head_size() + (size_t)parameters->count * sizeof(float);
    TFOS__TRY(tfos__collective_memory_make(&parameters->fd, token, err));
    TFOS__TRY(tfos__collective_memory_resize(parameters->fd, parameters->size, err));
    TFOS__TRY(map(parameters, err));
    return init_locks(parameters->head, err);
}

enum tfos_status tfos__collective_parameters_map(struct tfos__collective_parameters *parameters,
                                                 int fd, const char *token, struct tfos_error *err)
{
    const struct tfos__collective_member *member = &parameters->roster->members[0];
    struct stat info;
    parameters->size = head_size() + (size_t)parameters->count * sizeof(float);
    parameters->fd = tfos__collective_memory_reach(member->pid, fd, token);
    if (parameters->fd < 0 || fstat(parameters->fd, &info) != 0 ||
        (size_t)info.st_size != parameters->size)
        return tfos__fail(err, TFOS_IO, "cannot reach the parameters of %s", member->label);
    return map(parameters, err);
}

void tfos__collective_parameters_clear(struct tfos__collective_parameters *parameters)
{
    if (parameters->head)
        munmap(parameters->head, parameters->size);
    if (parameters->fd >= 0)
        close(parameters->fd);
    *parameters = (struct tfos__collective_parameters){.fd = -1};
}

/// The holder may have ended, which others notice; then the lock is never free again.
static enum tfos_status lock(struct tfos__collective_parameters *parameters, pthread_mutex_t *mutex,
                             struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(parameters->stall_timeout_ms);
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_MS * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_mutex_timedlock(mutex, &until) == 0)
            return TFOS_OK;
        TFOS__TRY(tfos__collective_failure_check(parameters->failure, TFOS__COLLECTIVE_ANY, err));
        if (tfos__remaining_ms(deadline) == 0)
            return tfos__fail(err, TFOS_TIMEOUT,
                              "a rank has held a part of the parameters for %.10g s",
                              (double)parameters->stall_timeout_ms / 1000.0);
    }
}

static void add(float *restrict values, const float *restrict data, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        values[i] += data[i];
}

/// Either adds `pushed` or fills `pulled`.
static enum tfos_status move(struct tfos__collective_parameters *parameters, int64_t begin,
                             const float *pushed, float *pulled, int64_t count,
                             struct tfos_error *err)
{
    int64_t size;
    for (int64_t done = 0; done < count; done += size) {
        int64_t at = begin + done;
        pthread_mutex_t *mutex =
            &parameters->head->locks[at / PIECE % TFOS__COLLECTIVE_PARAMETER_LOCKS];
        size = PIECE - at % PIECE;
        size = size < count - done ? size : count - done;
        TFOS__TRY(lock(parameters, mutex, err));
        if (pushed)
            add(parameters->values + at, pushed + done, size);
        else
            memcpy(pulled + done, parameters->values + at, (size_t)size * sizeof(float));
        pthread_mutex_unlock(mutex);
    }
    return TFOS_OK;
}

enum tfos_status tfos__collective_parameters_push(struct tfos__collective_parameters *parameters,
                                                  int64_t begin, const float *data, int64_t count,
                                                  struct tfos_error *err)
{
    return move(parameters, begin, data, NULL, count, err);
}

enum tfos_status tfos__collective_parameters_pull(struct tfos__collective_parameters *parameters,
                                                  int64_t begin, float *data, int64_t count,
                                                  struct tfos_error *err)
{
    return move(parameters, begin, NULL, data, count, err);
}

void tfos__collective_parameters_advance(struct tfos__collective_parameters *parameters, int rank,
                                         int64_t steps)
{
    struct tfos__collective_parameter_head *head = parameters->head;
    if (steps == TFOS__COLLECTIVE_NO_MORE_STEPS)
        atomic_store(&head->clocks[rank], steps);
    else
        atomic_fetch_add(&head->clocks[rank], steps);
    tfos__collective_futex_wake(&head->ticket);
}

/// The rank that has pushed fewest steps, but for `rank`; -1: there is no other.
static int find_slowest(const struct tfos__collective_parameters *parameters, int rank)
{
    int slowest = -1;
    for (int other = 0; other < parameters->roster->size; other++)
        if (other != rank && (slowest < 0 || atomic_load(&parameters->head->clocks[other]) <
                                                 atomic_load(&parameters->head->clocks[slowest])))
            slowest = other;
    return slowest;
}

enum tfos_status tfos__collective_parameters_await(struct tfos__collective_parameters *parameters,
                                                   int rank, int64_t steps, int *slowest,
                                                   struct tfos_error *err)
{
    struct tfos__collective_parameter_head *head = parameters->head;
    int64_t own = atomic_load(&head->clocks[rank]);
    int64_t least =
        own == TFOS__COLLECTIVE_NO_MORE_STEPS ? own : own + steps - parameters->staleness;
    int64_t deadline = tfos__deadline(parameters->stall_timeout_ms);
    uint32_t last = atomic_load(&head->ticket);
    *slowest = -1;
    for (;;) {
        uint32_t ticket = atomic_load(&head->ticket);
        int other = find_slowest(parameters, rank);
        if (other < 0 || atomic_load(&head->clocks[other]) >= least)
            return TFOS_OK;
        *slowest = other;
        TFOS__TRY(tfos__collective_failure_check(parameters->failure, TFOS__COLLECTIVE_ANY, err));
        if (ticket != last)
            deadline = tfos__deadline(parameters->stall_timeout_ms);
        else if (tfos__remaining_ms(deadline) == 0)
            return tfos__fail(err, TFOS_TIMEOUT, "no step for %.10g s by %s, which is at step %lld",
                              (double)parameters->stall_timeout_ms / 1000.0,
                              parameters->roster->members[other].label,
                              (long long)atomic_load(&head->clocks[other]));
        last = ticket;
        tfos__collective_futex_wait(&head->ticket, ticket, tfos__deadline(LOOK_MS));
    }
}
