// SPDX-License-Identifier: Apache-2.0
// NVML is loaded, not linked: most machines have none. Its types are an opaque pointer and ints, so
// its header is not needed (https://docs.nvidia.com/deploy/nvml-api/).
#include <dlfcn.h>
#include <string.h>
#include <tfos/gpu.h>

#include "base/fail.h"
#include "base/memory.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"
#define NVML_INSUFFICIENT_SIZE 7

struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*get_count)(unsigned int *count);
    int (*get_handle)(unsigned int index, void **device);
    int (*get_name)(void *device, char *name, unsigned int size);
    /// INSUFFICIENT_SIZE: there are more processes than `*count`, which is 0 here.
    int (*get_processes)(void *device, unsigned int *count, void *processes);
};

static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool find_all(void *library, struct nvml *nvml)
{
    return find(library, "nvmlInit_v2", &nvml->init) &&
           find(library, "nvmlShutdown", &nvml->shutdown) &&
           find(library, "nvmlDeviceGetCount_v2", &nvml->get_count) &&
           find(library, "nvmlDeviceGetHandleByIndex_v2", &nvml->get_handle) &&
           find(library, "nvmlDeviceGetName", &nvml->get_name) &&
           (find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->get_processes) ||
            find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->get_processes) ||
            find(library, "nvmlDeviceGetComputeRunningProcesses", &nvml->get_processes));
}

static void describe(const struct nvml *nvml, unsigned int index, struct tfos_gpu *gpu)
{
    void *device = NULL;
    unsigned int process_count = 0;

    memcpy(gpu->name, "unknown", sizeof("unknown"));
    if (nvml->get_handle(index, &device) != 0)
        return;
    if (nvml->get_name(device, gpu->name, sizeof(gpu->name)) != 0)
        memcpy(gpu->name, "unknown", sizeof("unknown"));
    gpu->is_free = nvml->get_processes(device, &process_count, NULL) != NVML_INSUFFICIENT_SIZE;
}

static enum tfos_status list(const struct nvml *nvml, struct tfos_gpu **out, size_t *count,
                             struct tfos_error *err)
{
    unsigned int found = 0;

    if (nvml->get_count(&found) != 0)
        found = 0;
    struct tfos_gpu *gpus = tfos__alloc(found, sizeof(*gpus));
    if (!gpus)
        return tfos__no_memory(err, "gpu", "the list of GPUs");
    for (unsigned int i = 0; i < found; i++)
        describe(nvml, i, &gpus[i]);
    *out = gpus;
    *count = found;
    return TFOS_OK;
}

enum tfos_status tfos_gpu_list(struct tfos_gpu **out, size_t *count, struct tfos_error *err)
{
    struct nvml nvml = {0};
    void *library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    enum tfos_status status = TFOS_UNSUPPORTED;

    if (!library || !find_all(library, &nvml)) {
        tfos__fail(err, status,
                   "none: " NVML_LIBRARY " is not on this machine; training uses the "
                   "CPU");
    } else if (nvml.init() != 0) {
        tfos__fail(err, status,
                   "none: " NVML_LIBRARY " is there, but the driver does not answer "
                   "(nvidia-smi says why)");
    } else {
        status = list(&nvml, out, count, err);
        nvml.shutdown();
    }
    if (library)
        dlclose(library);
    return status;
}
