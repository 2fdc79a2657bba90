// SPDX-License-Identifier: Apache-2.0
// A rank that is about to sleep says so and looks once more; a rank that signals looks for sleepers
// after it has. Both are sequentially consistent, so that one of them sees the other. The memfd is
// sealed before it is mapped: none can shrink it under the others.
#include "collective/shared_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"

#define PAGE ((size_t)4096)
#define SLAB_SIZE ((size_t)512 << 10)
#define SLICE_SIZE ((size_t)16 << 10) // least part of a slab that one of many ranks reduces
#define SPINS 1500

static int make_memfd(void)
{
    int fd = memfd_create("tfos-collective", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, (off_t)PAGE) == 0)
        return fd;
    int os_errno = errno;
    if (fd >= 0)
        close(fd);
    errno = os_errno;
    return -1;
}

enum tfos_status tfos__collective_memory_make(int *fd, char token[TFOS__COLLECTIVE_TOKEN_SIZE],
                                              struct tfos_error *err)
{
    unsigned char bytes[(TFOS__COLLECTIVE_TOKEN_SIZE - 1) / 2];
    *fd = make_memfd();
    if (*fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "collective: cannot make shared memory");
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return tfos__fail_errno(err, TFOS_IO, "collective: cannot get random bytes");
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    if (pwrite(*fd, token, TFOS__COLLECTIVE_TOKEN_SIZE, 0) != TFOS__COLLECTIVE_TOKEN_SIZE)
        return tfos__fail_errno(err, TFOS_IO, "collective: cannot write to shared memory");
    return TFOS_OK;
}

int tfos__collective_memory_reach(pid_t pid, int fd, const char *token)
{
    char path[64], found[TFOS__COLLECTIVE_TOKEN_SIZE] = "";
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
    int opened = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (opened < 0)
        return -1;
    struct stat info;
    if (fstat(opened, &info) != 0 || !S_ISREG(info.st_mode) ||
        pread(opened, found, sizeof(found), 0) != (ssize_t)sizeof(found) ||
        memcmp(found, token, sizeof(found)) != 0) {
        close(opened);
        return -1;
    }
    return opened;
}

enum tfos_status tfos__collective_memory_resize(int fd, size_t size, struct tfos_error *err)
{
    if (ftruncate(fd, (off_t)size) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return TFOS_OK;
    return tfos__fail_errno(err, TFOS_NO_MEMORY, "collective: cannot make %zu bytes shared memory",
                            size);
}

void tfos__collective_futex_wait(_Atomic uint32_t *ticket, uint32_t seen, int64_t deadline)
{
    int left_ms = tfos__remaining_ms(deadline);
    struct timespec timeout = {.tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000};
    syscall(SYS_futex, ticket, FUTEX_WAIT, seen, left_ms < 0 ? NULL : &timeout, NULL, 0);
}

void tfos__collective_futex_wake(_Atomic uint32_t *ticket)
{
    atomic_fetch_add(ticket, 1);
    syscall(SYS_futex, ticket, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

enum tfos_status tfos__collective_segment_init(struct tfos__collective_segment *segment,
                                               char token[TFOS__COLLECTIVE_TOKEN_SIZE],
                                               struct tfos_error *err)
{
    *segment = (struct tfos__collective_segment){.fd = -1};
    return tfos__collective_memory_make(&segment->fd, token, err);
}

bool tfos__collective_segment_reach(struct tfos__collective_segment *segment, pid_t pid, int fd,
                                    const char *token)
{
    int opened = tfos__collective_memory_reach(pid, fd, token);
    if (opened < 0)
        return false;
    close(segment->fd);
    segment->fd = opened;
    return true;
}

void tfos__collective_segment_plan(struct tfos__collective_segment *segment, int slot_count,
                                   int slab_count)
{
    size_t least = SLICE_SIZE * (size_t)slot_count;
    size_t head_size = sizeof(struct tfos__collective_segment_head) +
                       (size_t)slot_count * sizeof(struct tfos__collective_slot);
    segment->slot_count = slot_count;
    segment->slab_count = slab_count;
    segment->slab_size = least > SLAB_SIZE ? least : SLAB_SIZE;
    segment->head_size = (head_size + PAGE - 1) / PAGE * PAGE;
    segment->size =
        segment->head_size + TFOS__COLLECTIVE_BUFFERS * (size_t)slab_count * segment->slab_size;
}

enum tfos_status tfos__collective_segment_resize(const struct tfos__collective_segment *segment,
                                                 struct tfos_error *err)
{
    return tfos__collective_memory_resize(segment->fd, segment->size, err);
}

static int count_cores(void)
{
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

enum tfos_status tfos__collective_segment_map(struct tfos__collective_segment *segment,
                                              int member_count, int index,
                                              struct tfos__collective_failure *failure,
                                              struct tfos_error *err)
{
    struct stat info;
    if (fstat(segment->fd, &info) != 0 || (size_t)info.st_size != segment->size)
        return tfos__fail(err, TFOS_CORRUPT,
                          "collective: the shared memory of this host does not have %zu bytes",
                          segment->size);
    void *data = mmap(NULL, segment->size, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);
    if (data == MAP_FAILED)
        return tfos__fail_errno(err, TFOS_NO_MEMORY, "collective: cannot map %zu bytes",
                                segment->size);
    segment->head = data;
    segment->slabs = (unsigned char *)data + segment->head_size;
    segment->member_count = member_count;
    segment->index = index;
    segment->spin_count = member_count <= count_cores() ? SPINS : 0;
    segment->failure = failure;
    tfos__collective_failure_set_ticket(failure, &segment->head->slots[index].ticket);
    return TFOS_OK;
}

void tfos__collective_segment_clear(struct tfos__collective_segment *segment)
{
    if (segment->head) {
        tfos__collective_failure_set_ticket(segment->failure, NULL);
        munmap(segment->head, segment->size);
    }
    if (segment->fd >= 0)
        close(segment->fd);
    *segment = (struct tfos__collective_segment){.fd = -1};
}

unsigned char *tfos__collective_segment_slab(const struct tfos__collective_segment *segment,
                                             uint64_t step, int place)
{
    size_t number = step % TFOS__COLLECTIVE_BUFFERS * (size_t)segment->slab_count + (size_t)place;
    return segment->slabs + number * segment->slab_size;
}

uint64_t tfos__collective_segment_get(const struct tfos__collective_segment *segment, int member,
                                      enum tfos__collective_signal signal)
{
    return atomic_load(&segment->head->slots[member].signals[signal].value);
}

void tfos__collective_segment_signal(const struct tfos__collective_segment *segment,
                                     enum tfos__collective_signal signal, uint64_t value)
{
    struct tfos__collective_slot *slots = segment->head->slots;
    atomic_store(&slots[segment->index].signals[signal].value, value);
    for (int i = 0; i < segment->member_count; i++) {
        if (i == segment->index || !atomic_load(&slots[i].is_sleeping))
            continue;
        tfos__collective_futex_wake(&slots[i].ticket);
    }
}

static void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

enum tfos_status tfos__collective_segment_wait(const struct tfos__collective_segment *segment,
                                               int member, enum tfos__collective_signal signal,
                                               uint64_t value, uint64_t sequence,
                                               int64_t timeout_ms, struct tfos_error *err)
{
    struct tfos__collective_slot *own = &segment->head->slots[segment->index];
    const _Atomic uint64_t *counter = &segment->head->slots[member].signals[signal].value;
    for (int i = 0; i <= segment->spin_count; i++) {
        if (atomic_load_explicit(counter, memory_order_acquire) >= value)
            return TFOS_OK;
        pause_core();
    }
    int64_t deadline = tfos__deadline(timeout_ms);
    enum tfos_status status = TFOS_OK;
    while (status == TFOS_OK && atomic_load(counter) < value) {
        uint32_t seen = atomic_load(&own->ticket);
        atomic_store(&own->is_sleeping, 1);
        status = tfos__collective_failure_check(segment->failure, sequence, err);
        if (status == TFOS_OK && atomic_load(counter) < value)
            tfos__collective_futex_wait(&own->ticket, seen, deadline);
        if (status == TFOS_OK && tfos__remaining_ms(deadline) == 0 && atomic_load(counter) < value)
            status = TFOS_AGAIN;
    }
    atomic_store(&own->is_sleeping, 0);
    return status;
}
