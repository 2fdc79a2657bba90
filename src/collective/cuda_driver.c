// SPDX-License-Identifier: Apache-2.0
// The driver stays loaded: what it gives may be in use until the process ends.
#include "collective/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/fail.h"
#include "base/shared_library.h"

#define LIBRARY "libcuda.so.1"

static struct tfos__collective_cuda loaded;
static enum tfos_status load_status;
static struct tfos_error load_error;

static const struct tfos__library_function functions[] = {
    {"cuCtxGetCurrent", offsetof(struct tfos__collective_cuda, get_context)},
    {"cuCtxSetCurrent", offsetof(struct tfos__collective_cuda, set_context)},
    {"cuCtxSynchronize", offsetof(struct tfos__collective_cuda, synchronize)},
    {"cuCtxGetDevice", offsetof(struct tfos__collective_cuda, get_device)},
    {"cuDeviceGetUuid", offsetof(struct tfos__collective_cuda, get_uuid)},
    {"cuStreamCreate", offsetof(struct tfos__collective_cuda, open_stream)},
    {"cuStreamDestroy_v2", offsetof(struct tfos__collective_cuda, close_stream)},
    {"cuStreamQuery", offsetof(struct tfos__collective_cuda, query_stream)},
    {"cuMemsetD8Async", offsetof(struct tfos__collective_cuda, zero)},
    {"cuMemcpyDtoH_v2", offsetof(struct tfos__collective_cuda, copy_to_host)},
    {"cuMemcpyHtoD_v2", offsetof(struct tfos__collective_cuda, copy_to_gpu)},
    {"cuMemAllocHost_v2", offsetof(struct tfos__collective_cuda, alloc_host)},
    {"cuMemFreeHost", offsetof(struct tfos__collective_cuda, free_host)},
    {"cuGetErrorString", offsetof(struct tfos__collective_cuda, describe)},
};

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        load_status = tfos__fail(&load_error, TFOS_UNSUPPORTED,
                                 LIBRARY " cannot be loaded (%s), and tensors are in GPU memory: "
                                         "is NVIDIA's driver installed?",
                                 dlerror());
        return;
    }
    const char *missing =
        tfos__find_functions(library, functions, sizeof(functions) / sizeof(functions[0]), &loaded);
    if (missing)
        load_status = tfos__fail(&load_error, TFOS_UNSUPPORTED,
                                 LIBRARY " has no %s: NVIDIA's driver is too old; that of "
                                         "CUDA 11 or later has it",
                                 missing);
}

enum tfos_status tfos__collective_cuda_find(const struct tfos__collective_cuda **out,
                                            struct tfos_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (load_status != TFOS_OK)
        return tfos__fail(err, load_status, "%s", load_error.message);
    *out = &loaded;
    return TFOS_OK;
}

enum tfos_status tfos__collective_cuda_fail(const struct tfos__collective_cuda *driver, int result,
                                            const char *what, struct tfos_error *err)
{
    const char *text = NULL;
    driver->describe(result, &text);
    return tfos__fail(err, TFOS_IO, "CUDA: %s: %s (error %d)", what,
                      text ? text : "no words for it", result);
}
