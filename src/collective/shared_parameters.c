// SPDX-License-Identifier: Apache-2.0
// The bound: between a rank's pull and its push no other pushes more steps than the staleness. Who
// is to take s steps waits for each rank that has pulled, and not yet pushed, while that has seen
// less than its own clock and s - staleness. Who waits has pushed, so there is always one that does
// not.
#include "collective/shared_parameters.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#define PAGE ((size_t)4096)
#define LOOK_MS 50      // between two looks at the group's failure
#define STARVING_MS 200 // a rank that has waited longer for data holds nobody back

static size_t head_size(void)
{
    return (sizeof(struct tfos__collective_parameter_head) + PAGE - 1) / PAGE * PAGE;
}

/// Room for whole pieces, so that versions begin at whole blocks.
static size_t count_pieces(const struct tfos__collective_parameters *parameters)
{
    return (size_t)tfos__collective_piece_count(parameters->count);
}

static size_t whole_size(const struct tfos__collective_parameters *parameters)
{
    size_t piece_size = TFOS__COLLECTIVE_PIECE_SIZE * sizeof(float) +
                        (TFOS__COLLECTIVE_PIECE_BLOCKS + 1) * sizeof(uint32_t);
    return head_size() + count_pieces(parameters) * piece_size;
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
    size_t count = count_pieces(parameters);
    parameters->block_versions =
        (uint32_t *)(parameters->values + count * TFOS__COLLECTIVE_PIECE_SIZE);
    parameters->piece_versions = parameters->block_versions + count * TFOS__COLLECTIVE_PIECE_BLOCKS;
    return TFOS_OK;
}

static void set_seen(struct tfos__collective_parameter_head *head, int rank, bool is_at_work)
{
    for (int other = 0; other < TFOS_COLLECTIVE_MAX_RANKS; other++)
        atomic_store(&head->seen[rank][other],
                     is_at_work ? atomic_load(&head->clocks[other]) : INT64_MAX);
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

enum tfos_status tfos__collective_parameters_alloc(struct tfos__collective_parameters *parameters,
                                                   struct tfos_error *err)
{
    parameters->piece = tfos__alloc(1, sizeof(*parameters->piece));
    parameters->marks = tfos__alloc(count_pieces(parameters), sizeof(*parameters->marks));
    if (!parameters->piece || !parameters->marks)
        return tfos__no_memory(err, "collective", "parameters");
    return TFOS_OK;
}

enum tfos_status tfos__collective_parameters_init(struct tfos__collective_parameters *parameters,
                                                  char token[TFOS__COLLECTIVE_TOKEN_SIZE],
                                                  struct tfos_error *err)
{
    parameters->size = whole_size(parameters);
    TFOS__TRY(tfos__collective_memory_make(&parameters->fd, token, err));
    TFOS__TRY(tfos__collective_memory_resize(parameters->fd, parameters->size, err));
    TFOS__TRY(map(parameters, err));
    for (int rank = 0; rank < TFOS_COLLECTIVE_MAX_RANKS; rank++)
        set_seen(parameters->head, rank, false);
    return init_locks(parameters->head, err);
}

enum tfos_status tfos__collective_parameters_map(struct tfos__collective_parameters *parameters,
                                                 int fd, const char *token, struct tfos_error *err)
{
    const struct tfos__collective_member *member = &parameters->roster->members[0];
    struct stat info;
    parameters->size = whole_size(parameters);
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
    tfos__free(parameters->piece);
    tfos__free(parameters->marks);
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

static pthread_mutex_t *mutex_of(const struct tfos__collective_parameters *parameters,
                                 int64_t piece)
{
    return &parameters->head->locks[piece % TFOS__COLLECTIVE_PARAMETER_LOCKS];
}

enum tfos_status tfos__collective_parameters_push(struct tfos__collective_parameters *parameters,
                                                  const struct tfos__collective_piece *piece,
                                                  struct tfos_error *err)
{
    float *values = parameters->values + piece->number * TFOS__COLLECTIVE_PIECE_SIZE;
    uint32_t *versions = parameters->block_versions + piece->number * TFOS__COLLECTIVE_PIECE_BLOCKS;
    const float *from = piece->values;
    int64_t begin, count;
    if (piece->block_count == 0)
        return TFOS_OK;
    TFOS__TRY(lock(parameters, mutex_of(parameters, piece->number), err));
    uint32_t version = ++parameters->piece_versions[piece->number];
    for (int64_t i = 0; i < piece->block_count; from += count) {
        i = tfos__collective_piece_run(piece, i, &begin, &count);
        add(values + begin, from, count);
    }
    bool is_whole = piece->block_count == tfos__collective_piece_block_limit(piece);
    for (int64_t i = 0; i < piece->block_count; i++)
        versions[is_whole ? i : piece->blocks[i]] = version;
    pthread_mutex_unlock(mutex_of(parameters, piece->number));
    return TFOS_OK;
}

/// Notes which blocks are newer than the mark. One that has not changed for 2^31 pushes may seem to
/// be, which costs no more than its way.
static void find_newer(struct tfos__collective_piece *piece, const uint32_t *versions,
                       uint32_t mark)
{
    int64_t limit = tfos__collective_piece_block_limit(piece), found = 0;
    int old = 0;
    for (int64_t block = 0; block < limit; block++)
        old |= (int32_t)(versions[block] - mark) <= 0;
    piece->block_count = limit;
    if (!old)
        return;
    for (int64_t block = 0; block < limit; block++) {
        piece->blocks[found] = (uint16_t)block;
        found += (int32_t)(versions[block] - mark) > 0;
    }
    piece->block_count = found;
}

enum tfos_status tfos__collective_parameters_pull(struct tfos__collective_parameters *parameters,
                                                  struct tfos__collective_piece *piece,
                                                  uint32_t *marks, float *all,
                                                  struct tfos_error *err)
{
    const float *values = parameters->values + piece->number * TFOS__COLLECTIVE_PIECE_SIZE;
    uint32_t *mark = &marks[piece->number];
    float *to = piece->values;
    int64_t begin, count;
    TFOS__TRY(lock(parameters, mutex_of(parameters, piece->number), err));
    uint32_t version = parameters->piece_versions[piece->number];
    if (version != *mark)
        find_newer(piece,
                   parameters->block_versions + piece->number * TFOS__COLLECTIVE_PIECE_BLOCKS,
                   *mark);
    for (int64_t i = 0; i < piece->block_count; to += count) {
        i = tfos__collective_piece_run(piece, i, &begin, &count);
        float *place = all ? all + piece->number * TFOS__COLLECTIVE_PIECE_SIZE + begin : to;
        memcpy(place, values + begin, (size_t)count * sizeof(float));
    }
    *mark = version;
    pthread_mutex_unlock(mutex_of(parameters, piece->number));
    return TFOS_OK;
}

/// The most steps that another has pushed since `rank` pulled.
static int64_t count_stale_steps(const struct tfos__collective_parameters *parameters, int rank)
{
    const struct tfos__collective_parameter_head *head = parameters->head;
    int64_t most = 0;
    for (int other = 0; other < parameters->roster->size; other++) {
        int64_t steps = atomic_load(&head->clocks[other]) - atomic_load(&head->seen[rank][other]);
        most = other != rank && steps > most ? steps : most;
    }
    return most;
}

void tfos__collective_parameters_leave(struct tfos__collective_parameters *parameters, int rank,
                                       int64_t steps)
{
    if (steps > 0)
        atomic_fetch_add(&parameters->head->stale_steps[rank], count_stale_steps(parameters, rank));
    atomic_fetch_add(&parameters->head->clocks[rank], steps);
    set_seen(parameters->head, rank, false);
    tfos__collective_futex_wake(&parameters->head->ticket);
}

static bool is_starving(const struct tfos__collective_parameter_head *head, int rank)
{
    int64_t since_ms = atomic_load(&head->awaits_rows_since_ms[rank]);
    return since_ms != 0 && tfos__now_ms() - since_ms > STARVING_MS;
}

/// A rank because of which `rank` may not take `steps` steps, or, if it has ended, which has not;
/// -1: there is none.
static int find_blocker(const struct tfos__collective_parameters *parameters, int rank,
                        int64_t steps)
{
    const struct tfos__collective_parameter_head *head = parameters->head;
    int64_t least = atomic_load(&head->clocks[rank]) + steps - parameters->staleness;
    bool has_ended = atomic_load(&head->has_ended[rank]);
    for (int other = 0; other < parameters->roster->size; other++) {
        if (has_ended ? !atomic_load(&head->has_ended[other])
                      : other != rank && atomic_load(&head->seen[other][rank]) < least &&
                            !is_starving(head, other))
            return other;
    }
    return -1;
}

static enum tfos_status await(struct tfos__collective_parameters *parameters, int rank,
                              int64_t steps, int *blocker, struct tfos_error *err)
{
    struct tfos__collective_parameter_head *head = parameters->head;
    int64_t deadline = tfos__deadline(parameters->stall_timeout_ms);
    uint32_t last = atomic_load(&head->ticket);
    *blocker = -1;
    for (;;) {
        uint32_t ticket = atomic_load(&head->ticket);
        int other = find_blocker(parameters, rank, steps);
        if (other < 0)
            return TFOS_OK;
        *blocker = other;
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

enum tfos_status tfos__collective_parameters_enter(struct tfos__collective_parameters *parameters,
                                                   int rank, int64_t steps, int *blocker,
                                                   struct tfos_error *err)
{
    TFOS__TRY(await(parameters, rank, steps, blocker, err));
    set_seen(parameters->head, rank, true);
    return TFOS_OK;
}

enum tfos_status tfos__collective_parameters_end(struct tfos__collective_parameters *parameters,
                                                 int rank, int *blocker, struct tfos_error *err)
{
    struct tfos__collective_parameter_head *head = parameters->head;
    set_seen(head, rank, false);
    atomic_store(&head->has_ended[rank], true);
    tfos__collective_futex_wake(&head->ticket);
    return await(parameters, rank, 0, blocker, err);
}

void tfos__collective_parameters_await_rows(struct tfos__collective_parameters *parameters,
                                            int rank, bool is_waiting)
{
    atomic_store(&parameters->head->awaits_rows_since_ms[rank], is_waiting ? tfos__now_ms() : 0);
}
