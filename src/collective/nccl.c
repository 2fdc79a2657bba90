// SPDX-License-Identifier: Apache-2.0
// TensorFlow's packages for GPUs bring NCCL as a Python package, and load it from there; a library
// that the process has loaded is found by its name.
#include "collective/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "base/shared_library.h"

#define LIBRARY "libnccl.so.2"

static struct tfos__collective_nccl loaded;
static char fault[512]; // empty: it is loaded

static const struct tfos__library_function functions[] = {
    {"ncclGetVersion", offsetof(struct tfos__collective_nccl, get_version)},
    {"ncclGetUniqueId", offsetof(struct tfos__collective_nccl, get_id)},
    {"ncclCommInitRankConfig", offsetof(struct tfos__collective_nccl, open)},
    {"ncclCommFinalize", offsetof(struct tfos__collective_nccl, finalize)},
    {"ncclCommDestroy", offsetof(struct tfos__collective_nccl, destroy)},
    {"ncclCommAbort", offsetof(struct tfos__collective_nccl, abort)},
    {"ncclCommGetAsyncError", offsetof(struct tfos__collective_nccl, get_async_error)},
    {"ncclGetErrorString", offsetof(struct tfos__collective_nccl, describe)},
    {"ncclGetLastError", offsetof(struct tfos__collective_nccl, get_last_error)},
    {"ncclGroupStart", offsetof(struct tfos__collective_nccl, begin_group)},
    {"ncclGroupEnd", offsetof(struct tfos__collective_nccl, end_group)},
    {"ncclAllReduce", offsetof(struct tfos__collective_nccl, all_reduce)},
    {"ncclBroadcast", offsetof(struct tfos__collective_nccl, broadcast)},
    {"ncclRedOpCreatePreMulSum", offsetof(struct tfos__collective_nccl, make_scaled_sum)},
    {"ncclRedOpDestroy", offsetof(struct tfos__collective_nccl, free_reduction)},
};

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(fault, sizeof(fault),
                 LIBRARY " cannot be loaded (%.300s): install NCCL, such as nvidia-nccl-cu12",
                 dlerror());
        return;
    }
    const char *missing =
        tfos__find_functions(library, functions, sizeof(functions) / sizeof(functions[0]), &loaded);
    if (loaded.get_version)
        loaded.get_version(&loaded.version);
    if (missing || loaded.version < TFOS__NCCL_VERSION_MIN)
        snprintf(fault, sizeof(fault),
                 LIBRARY " is of version %d.%d: install NCCL 2.14 or later, such as "
                         "nvidia-nccl-cu12",
                 loaded.version / 10000, loaded.version / 100 % 100);
}

const struct tfos__collective_nccl *tfos__collective_nccl_find(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    *why = fault;
    return fault[0] == '\0' ? &loaded : NULL;
}

int tfos__collective_nccl_dtype(enum tfos_dtype dtype)
{
    static const int dtypes[] = {
        [TFOS_DTYPE_INT32] = 2,   [TFOS_DTYPE_INT64] = 4,   [TFOS_DTYPE_FLOAT16] = 6,
        [TFOS_DTYPE_FLOAT32] = 7, [TFOS_DTYPE_FLOAT64] = 8, [TFOS_DTYPE_BFLOAT16] = 9};
    return dtypes[dtype];
}

int tfos__collective_nccl_reduction(enum tfos_reduction reduction)
{
    static const int reductions[] = {[TFOS_REDUCE_SUM] = 0,
                                     [TFOS_REDUCE_MAX] = 2,
                                     [TFOS_REDUCE_MIN] = 3,
                                     [TFOS_REDUCE_MEAN] = 4};
    return reductions[reduction];
}
