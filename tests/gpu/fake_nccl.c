// SPDX-License-Identifier: Apache-2.0
// NCCL among processes of a host, by a file that they map. FAKE_NCCL says what goes wrong in a
// process: "init", it cannot join; "init in silence", and the others do not notice; "launch", a
// call is refused; "async", one fails later; "stuck", one does not end; "die", the process ends
// within one; "die at once", before it has joined. FAKE_NCCL_VERSION is another version.
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake_gpu.h"

enum { SUCCESS, CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE };
enum { REMOTE_ERROR = 6, IN_PROGRESS = 7, NOT_READY = 600 };
enum { SUM, PRODUCT, MAX, MIN, MEAN, SCALED };
enum { ALL_REDUCE, BROADCAST };

#define RANKS 8
#define CALLS 32
#define ROOM (1 << 20)

struct id {
    char path[128];
};

struct config {
    size_t size;
    unsigned int magic, version;
    int blocking;
};

/// What the ranks share.
struct table {
    _Atomic int joined, left;
    _Atomic int is_aborted;
    char path[128];
    struct {
        _Atomic uint64_t arrived, done;
        uint64_t signature;
        unsigned char data[ROOM];
    } seats[RANKS];
};

struct call {
    int kind, dtype, reduction, root;
    const unsigned char *from;
    unsigned char *to;
    size_t count;
};

struct comm {
    struct table *table;
    int rank, size, failed;
    bool is_finalizing, has_written;
    uint64_t sequence;
    double scalar; // of the only reduction that can be made
    bool has_scalar;
    struct call calls[CALLS];
    int call_count;
};

static _Thread_local struct comm *grouped;
static _Thread_local struct fake_stream *grouped_stream;
static _Thread_local bool is_in_group;

static bool is_asked(const char *fault)
{
    const char *script = getenv("FAKE_NCCL");
    return script && strcmp(script, fault) == 0;
}

// ---- elements

static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

static float widen(uint16_t bits) // of float16, normal numbers and 0
{
    uint32_t wide = (uint32_t)(bits & 0x8000) << 16;
    float value;
    if (bits & 0x7FFF)
        wide |= ((uint32_t)(bits & 0x7FFF) << 13) + (UINT32_C(112) << 23);
    memcpy(&value, &wide, sizeof(value));
    return value;
}

static uint16_t narrow(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t rest = bits & 0x7FFFFFFF;
    return (uint16_t)((bits >> 16 & 0x8000) | (rest ? (rest - (UINT32_C(112) << 23)) >> 13 : 0));
}

static double get(const unsigned char *data, int dtype, size_t i)
{
    uint32_t bits;
    uint16_t half;
    float value;
    switch (dtype) {
    case 2:
        return ((const int32_t *)data)[i];
    case 4:
        return (double)((const int64_t *)data)[i];
    case 6:
        memcpy(&half, data + 2 * i, sizeof(half));
        return widen(half);
    case 7:
        return ((const float *)data)[i];
    case 8:
        return ((const double *)data)[i];
    case 9:
        memcpy(&half, data + 2 * i, sizeof(half));
        bits = (uint32_t)half << 16;
        memcpy(&value, &bits, sizeof(value));
        return value;
    default:
        return data[i];
    }
}

static void put(unsigned char *data, int dtype, size_t i, double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    switch (dtype) {
    case 2:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    case 4:
        ((int64_t *)data)[i] = (int64_t)value;
        break;
    case 6:
        ((uint16_t *)data)[i] = narrow(single);
        break;
    case 7:
        ((float *)data)[i] = single;
        break;
    case 8:
        ((double *)data)[i] = value;
        break;
    case 9:
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        break;
    default:
        data[i] = (unsigned char)value;
    }
}

// ---- what a stream does

static bool have_all(const struct comm *comm, bool is_done, uint64_t sequence)
{
    for (int rank = 0; rank < comm->size; rank++)
        if (atomic_load(is_done ? &comm->table->seats[rank].done
                                : &comm->table->seats[rank].arrived) < sequence)
            return false;
    return true;
}

static void write_inputs(struct comm *comm)
{
    unsigned char *data = comm->table->seats[comm->rank].data;
    uint64_t signature = (uint64_t)comm->call_count;
    for (int i = 0; i < comm->call_count; i++) {
        const struct call *call = &comm->calls[i];
        size_t size = call->count * sizes[call->dtype];
        if (call->kind != BROADCAST || call->root == comm->rank)
            memcpy(data, FAKE_TO_HOST(call->from), size);
        for (size_t j = 0; call->reduction == SCALED && j < call->count; j++)
            put(data, call->dtype, j, get(data, call->dtype, j) * comm->scalar);
        data += size;
        signature = signature * 31 +
                    (uint64_t)(call->kind + 4 * call->dtype + 64 * call->reduction) +
                    1024 * (uint64_t)call->root + 65536 * call->count;
    }
    comm->table->seats[comm->rank].signature = signature;
    atomic_store(&comm->table->seats[comm->rank].arrived, comm->sequence);
}

static void compute(const struct comm *comm, const struct call *call, size_t offset)
{
    unsigned char *to = FAKE_TO_HOST(call->to);
    for (size_t i = 0; i < call->count; i++) {
        double result = get(comm->table->seats[0].data + offset, call->dtype, i);
        for (int rank = 1; rank < comm->size; rank++) {
            double value = get(comm->table->seats[rank].data + offset, call->dtype, i);
            if (call->reduction == MAX || call->reduction == MIN)
                result = (value > result) == (call->reduction == MAX) ? value : result;
            else
                result += value;
        }
        put(to, call->dtype, i, call->reduction == MEAN ? result / comm->size : result);
    }
}

static void read_results(struct comm *comm)
{
    size_t offset = 0;
    for (int i = 0; i < comm->call_count; i++) {
        const struct call *call = &comm->calls[i];
        size_t size = call->count * sizes[call->dtype];
        if (call->kind == BROADCAST)
            memcpy(FAKE_TO_HOST(call->to), comm->table->seats[call->root].data + offset, size);
        else
            compute(comm, call, offset);
        offset += size;
    }
    for (int rank = 0; rank < comm->size; rank++)
        if (comm->table->seats[rank].signature != comm->table->seats[comm->rank].signature)
            comm->failed = INVALID_USAGE;
}

static int progress(void *job)
{
    struct comm *comm = job;
    if (is_asked("stuck"))
        return NOT_READY;
    if (!comm->has_written && have_all(comm, true, comm->sequence - 1)) {
        write_inputs(comm);
        comm->has_written = true;
    }
    if (!comm->has_written || !have_all(comm, false, comm->sequence))
        return NOT_READY;
    read_results(comm);
    comm->call_count = 0;
    atomic_store(&comm->table->seats[comm->rank].done, comm->sequence);
    return 0;
}

// ---- the library

int ncclGetVersion(int *version)
{
    const char *other = getenv("FAKE_NCCL_VERSION");
    *version = other ? atoi(other) : 22105;
    return SUCCESS;
}

int ncclGetUniqueId(struct id *id)
{
    const char *folder = getenv("TMPDIR");
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(id->path, sizeof(id->path), "%s/fake_nccl.%d.%ld.%ld", folder ? folder : "/tmp",
             (int)getpid(), (long)now.tv_sec, now.tv_nsec);
    return SUCCESS;
}

int ncclCommInitRankConfig(struct comm **out, int size, struct id id, int rank,
                           struct config *config)
{
    if (is_asked("die at once"))
        raise(SIGKILL);
    if (config->size != 24 || config->magic != 0xcafebeef || config->version != 21400 ||
        config->blocking != 0 || size > RANKS)
        return INVALID_ARGUMENT;
    int fd = open(id.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct table *table =
        fd < 0 || ftruncate(fd, sizeof(*table)) != 0
            ? MAP_FAILED
            : mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (table == MAP_FAILED)
        return SYSTEM_ERROR;
    struct comm *comm = *out = calloc(1, sizeof(*comm));
    *comm = (struct comm){.table = table, .rank = rank, .size = size};
    memcpy(table->path, id.path, sizeof(id.path));
    comm->failed = is_asked("init") || is_asked("init in silence") ? SYSTEM_ERROR : SUCCESS;
    if (atomic_fetch_add(&table->joined, 1) == size - 1)
        unlink(id.path);
    return IN_PROGRESS;
}

int ncclCommGetAsyncError(struct comm *comm, int *result)
{
    if (comm->failed != SUCCESS)
        *result = comm->failed;
    else if (atomic_load(&comm->table->is_aborted))
        *result = REMOTE_ERROR;
    else if (atomic_load(&comm->table->joined) < comm->size ||
             (comm->is_finalizing && atomic_load(&comm->table->left) < comm->size))
        *result = IN_PROGRESS;
    else
        *result = SUCCESS;
    return SUCCESS;
}

int ncclCommFinalize(struct comm *comm)
{
    comm->is_finalizing = true;
    atomic_fetch_add(&comm->table->left, 1);
    return IN_PROGRESS;
}

int ncclCommDestroy(struct comm *comm)
{
    munmap(comm->table, sizeof(*comm->table));
    free(comm);
    return SUCCESS;
}

int ncclCommAbort(struct comm *comm)
{
    if (!is_asked("init in silence"))
        atomic_store(&comm->table->is_aborted, 1);
    if (comm->failed == SUCCESS)
        unlink(comm->table->path); // a rank that never joined cannot
    return ncclCommDestroy(comm);
}

const char *ncclGetErrorString(int result)
{
    return result == REMOTE_ERROR   ? "remote process exited or there was a network error"
           : result == SYSTEM_ERROR ? "unhandled system error"
                                    : "internal error";
}

const char *ncclGetLastError(struct comm *comm)
{
    return comm ? "Call to connect failed" : "";
}

int ncclGroupStart(void)
{
    is_in_group = true;
    grouped = NULL;
    return SUCCESS;
}

int ncclGroupEnd(void)
{
    is_in_group = false;
    if (!grouped)
        return SUCCESS;
    if (is_asked("die"))
        raise(SIGKILL);
    if (is_asked("async"))
        grouped->failed = REMOTE_ERROR;
    grouped->sequence++;
    grouped->has_written = false;
    grouped_stream->job = grouped;
    grouped_stream->progress = progress;
    return IN_PROGRESS;
}

static int add(struct comm *comm, struct fake_stream *stream, struct call call)
{
    if (is_asked("launch"))
        return CUDA_ERROR;
    if (!is_in_group || comm->call_count == CALLS ||
        (call.reduction == SCALED && !comm->has_scalar))
        return INVALID_USAGE;
    grouped = comm;
    grouped_stream = stream;
    comm->calls[comm->call_count++] = call;
    return SUCCESS;
}

int ncclAllReduce(const void *from, void *to, size_t count, int dtype, int reduction,
                  struct comm *comm, struct fake_stream *stream)
{
    return add(comm, stream, (struct call){ALL_REDUCE, dtype, reduction, 0, from, to, count});
}

int ncclBroadcast(const void *from, void *to, size_t count, int dtype, int root, struct comm *comm,
                  struct fake_stream *stream)
{
    return add(comm, stream, (struct call){BROADCAST, dtype, 0, root, from, to, count});
}

int ncclRedOpCreatePreMulSum(int *reduction, void *scalar, int dtype, int residence,
                             struct comm *comm)
{
    if (residence != 1 || comm->has_scalar)
        return INVALID_ARGUMENT;
    comm->scalar = get(scalar, dtype, 0);
    comm->has_scalar = true;
    *reduction = SCALED;
    return SUCCESS;
}

int ncclRedOpDestroy(int reduction, struct comm *comm)
{
    comm->has_scalar = false;
    return reduction == SCALED ? SUCCESS : INVALID_ARGUMENT;
}
