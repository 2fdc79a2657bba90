// SPDX-License-Identifier: Apache-2.0
// NVIDIA's library on a machine of the test's making. FAKE_GPUS has a letter for each GPU: f, it is
// free; b, a process computes on it; l, it is lost. Or it is the absolute path of a file, which is
// read at each nvmlInit, with a line for each GPU and for each instance (MIG) of the one before it:
//
//   gpu free|busy|lost [memory=MIB] [used=MIB] [load=PERCENT] [pid=N] [nvlink=I,J]
//   mig free|busy [memory=MIB] [used=MIB] [pid=N]
//
// Without it the driver does not answer.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNINITIALIZED 1
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define INSUFFICIENT_SIZE 7
#define GPU_IS_LOST 15
#define LIMIT 64
#define MIB 1048576ULL

struct gpu {
    int index;    // of an instance the GPU's
    int instance; // -1: it is a GPU
    bool is_busy, is_lost;
    unsigned long long memory, used;
    unsigned int load, pid;
    char links[64];
};

static _Thread_local struct gpu gpus[LIMIT]; // a thread looks at its own list
static _Thread_local int count;

static unsigned long long number(const char *line, const char *key, unsigned long long otherwise)
{
    const char *found = strstr(line, key);
    return found ? strtoull(found + strlen(key), NULL, 10) : otherwise;
}

static void add(const char *line)
{
    bool is_instance = strncmp(line, "mig", 3) == 0;
    const char *links = strstr(line, "nvlink=");
    if (count == LIMIT || (!is_instance && strncmp(line, "gpu", 3) != 0))
        return;
    struct gpu *gpu = &gpus[count];
    const struct gpu *last = count > 0 ? gpu - 1 : gpu;
    *gpu = (struct gpu){.index = count > 0 ? last->index + !is_instance : 0,
                        .instance = is_instance ? last->instance + 1 : -1,
                        .is_busy = strstr(line, " busy") != NULL,
                        .is_lost = strstr(line, " lost") != NULL,
                        .memory = number(line, "memory=", 40960) * MIB,
                        .used = number(line, "used=", 0) * MIB,
                        .load = (unsigned int)number(line, "load=", 0),
                        .pid = (unsigned int)number(line, "pid=", 4242)};
    if (links)
        sscanf(links, "nvlink=%63s", gpu->links);
    count++;
}

int nvmlInit_v2(void)
{
    const char *script = getenv("FAKE_GPUS");
    char line[256];
    count = 0;
    if (!script)
        return UNINITIALIZED;
    if (script[0] != '/') {
        for (; *script; script++)
            add(*script == 'f' ? "gpu free" : *script == 'b' ? "gpu busy" : "gpu lost");
        return 0;
    }
    FILE *file = fopen(script, "re");
    if (!file)
        return UNINITIALIZED;
    while (fgets(line, sizeof(line), file))
        add(line);
    fclose(file);
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

const char *nvmlErrorString(int result)
{
    return result == GPU_IS_LOST ? "GPU is lost" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned int *found)
{
    *found = 0;
    for (int i = 0; i < count; i++)
        *found += gpus[i].instance < 0;
    return 0;
}

static struct gpu *find(int index, int instance)
{
    for (int i = 0; i < count; i++)
        if (gpus[i].index == index && gpus[i].instance == instance)
            return &gpus[i];
    return NULL;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    struct gpu *gpu = find((int)index, -1);
    *device = gpu;
    return !gpu ? NOT_FOUND : gpu->is_lost ? GPU_IS_LOST : 0;
}

int nvmlDeviceGetName(void *device, char *name, unsigned int size)
{
    const struct gpu *gpu = device;
    return snprintf(name, size, "Fake A100%s", gpu->instance < 0 ? "" : " MIG 1g.5gb") < (int)size
               ? 0
               : INSUFFICIENT_SIZE;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned int size)
{
    const struct gpu *gpu = device;
    if (gpu->instance < 0)
        snprintf(uuid, size, "GPU-fa4e0000-0000-0000-0000-%012d", gpu->index);
    else
        snprintf(uuid, size, "MIG-fa4e0000-0000-0000-%04d-%012d", gpu->instance, gpu->index);
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long memory[3])
{
    const struct gpu *gpu = device;
    memory[0] = gpu->memory;
    memory[1] = gpu->memory - gpu->used;
    memory[2] = gpu->used;
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned int rates[2])
{
    const struct gpu *gpu = device;
    rates[0] = rates[1] = gpu->load;
    return gpu->instance < 0 ? 0 : NOT_SUPPORTED;
}

int nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending)
{
    *current = *pending = find(((struct gpu *)device)->index, 0) != NULL;
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned int *most)
{
    (void)device;
    *most = 7;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned int index, void **instance)
{
    *instance = find(((struct gpu *)device)->index, (int)index);
    return *instance ? 0 : NOT_FOUND;
}

int nvmlDeviceGetP2PStatus(void *device, void *other, int kind, int *status)
{
    const char *links = ((struct gpu *)device)->links;
    (void)kind;
    *status = 1;
    while (*links) {
        if (strtol(links, NULL, 10) == ((struct gpu *)other)->index)
            *status = 0;
        links += strcspn(links, ",");
        links += *links == ',';
    }
    return 0;
}

int nvmlDeviceGetTopologyCommonAncestor(void *device, void *other, int *level)
{
    (void)device, (void)other;
    *level = 50;
    return 0;
}

struct process {
    unsigned int pid;
    unsigned long long memory;
    unsigned int instance, compute;
};

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *room, struct process *list)
{
    const struct gpu *gpu = device;
    unsigned int found = gpu->is_busy ? 2 : 0;
    bool fits = found <= *room;
    for (unsigned int i = 0; fits && i < found; i++)
        list[i] = (struct process){.pid = gpu->pid + i, .memory = gpu->used / 2};
    *room = found;
    return fits ? 0 : INSUFFICIENT_SIZE;
}
