// SPDX-License-Identifier: Apache-2.0
/// NVML is loaded, not linked: most machines have none. Its types are an opaque pointer and ints,
/// so its header is not needed (https://docs.nvidia.com/deploy/nvml-api/).
#include "gpus.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NVML_LIBRARY "libnvidia-ml.so.1"
#define NAME_SIZE 96 // NVML_DEVICE_NAME_V2_BUFFER_SIZE

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*get_count)(unsigned int *count);
    int (*get_handle)(unsigned int index, void **device);
    int (*get_name)(void *device, char *name, unsigned int size);
};

static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load(struct nvml *nvml)
{
    nvml->library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    return nvml->library && find(nvml->library, "nvmlInit_v2", &nvml->init) &&
           find(nvml->library, "nvmlShutdown", &nvml->shutdown) &&
           find(nvml->library, "nvmlDeviceGetCount_v2", &nvml->get_count) &&
           find(nvml->library, "nvmlDeviceGetHandleByIndex_v2", &nvml->get_handle) &&
           find(nvml->library, "nvmlDeviceGetName", &nvml->get_name);
}

static void list(const struct nvml *nvml, unsigned int count, char *text, size_t capacity)
{
    size_t size = (size_t)snprintf(text, capacity, "%u", count);
    for (unsigned int i = 0; i < count && size < capacity; i++) {
        void *device;
        char name[NAME_SIZE] = "unknown";
        if (nvml->get_handle(i, &device) == 0)
            (void)nvml->get_name(device, name, sizeof name);
        size += (size_t)snprintf(text + size, capacity - size, "%s%s", i ? ", " : ": ", name);
    }
}

int describe_gpus(char *text, size_t capacity)
{
    struct nvml nvml = {0};
    unsigned int count = 0;
    if (!load(&nvml)) {
        snprintf(text, capacity, "none: %s is not on this machine; training uses the CPU",
                 NVML_LIBRARY);
    } else if (nvml.init() != 0) {
        snprintf(text, capacity,
                 "none: %s is there, but the driver does not answer (nvidia-smi says why)",
                 NVML_LIBRARY);
    } else {
        if (nvml.get_count(&count) != 0)
            count = 0;
        list(&nvml, count, text, capacity);
        nvml.shutdown();
    }
    if (nvml.library)
        dlclose(nvml.library);
    return (int)count;
}
