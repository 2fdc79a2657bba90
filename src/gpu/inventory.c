// SPDX-License-Identifier: Apache-2.0
// The list of GPUs. It is one block: the GPUs, and behind them their processes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/memory.h"
#include "gpu/gpu.h"
#include "gpu/nvml.h"

#define P2P_NVLINK 2
#define MEMORY_MAX (1ULL << 60) // more is the driver's word for "unknown"
#define MORE_PROCESSES 16       // room for those that start between two calls

/// The list while it is made.
struct inventory {
    const struct tfos__gpu_nvml *nvml;
    struct tfos_gpu *gpus; ///< owned, and so are their processes
    size_t count, process_count;
};

static void set_fault(const struct tfos__gpu_nvml *nvml, int result, struct tfos_gpu *gpu)
{
    const char *words = nvml->describe ? nvml->describe(result) : NULL;
    snprintf(gpu->fault, sizeof(gpu->fault), "%s (NVML %d)", words ? words : "it does not answer",
             result);
}

/// "00000000:3B:00.0" of NVML as "0000:3b:00.0" of sysfs, and the NUMA node that sysfs has there.
static void describe_place(const struct tfos__gpu_nvml *nvml, void *device, struct tfos_gpu *gpu)
{
    struct tfos__gpu_nvml_pci pci = {0};
    char path[128];
    if (!nvml->get_pci || nvml->get_pci(device, &pci) != 0)
        return;
    snprintf(gpu->bus_id, sizeof(gpu->bus_id), "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", gpu->bus_id);
    FILE *file = fopen(path, "re");
    char text[16];
    if (file && fgets(text, sizeof(text), file))
        gpu->numa_node = (int)strtol(text, NULL, 10);
    if (file)
        fclose(file);
}

static void describe_use(const struct tfos__gpu_nvml *nvml, void *device, struct tfos_gpu *gpu)
{
    struct tfos__gpu_nvml_memory memory = {0};
    struct tfos__gpu_nvml_utilisation utilisation = {0};
    if (nvml->get_memory && nvml->get_memory(device, &memory) == 0) {
        gpu->memory_total = (int64_t)memory.total;
        gpu->memory_used = (int64_t)memory.used;
    }
    if (nvml->get_utilisation && nvml->get_utilisation(device, &utilisation) == 0)
        gpu->utilisation = (int)utilisation.gpu;
}

static enum tfos_status list_processes(struct inventory *list, void *device, struct tfos_gpu *gpu,
                                       struct tfos_error *err)
{
    const struct tfos__gpu_nvml *nvml = list->nvml;
    unsigned int count = 0;
    int result = nvml->get_processes(device, &count, NULL);
    gpu->is_free = result != TFOS__NVML_INSUFFICIENT_SIZE;
    if (gpu->is_free)
        return TFOS_OK;
    count += MORE_PROCESSES;
    unsigned char *raw = tfos__alloc(count, nvml->process_size);
    gpu->processes = tfos__alloc(count, sizeof(*gpu->processes));
    if (!raw || !gpu->processes) {
        tfos__free(raw);
        return tfos__no_memory(err, "gpu", "the list of processes");
    }
    if (nvml->get_processes(device, &count, raw) != 0)
        count = 0;
    for (unsigned int i = 0; i < count; i++) {
        unsigned int pid;
        unsigned long long memory;
        memcpy(&pid, raw + i * nvml->process_size, sizeof(pid));
        memcpy(&memory, raw + i * nvml->process_size + 8, sizeof(memory));
        gpu->processes[i] = (struct tfos_gpu_process){
            .pid = pid, .memory = memory < MEMORY_MAX ? (int64_t)memory : -1};
    }
    gpu->process_count = count;
    list->process_count += count;
    tfos__free(raw);
    return TFOS_OK;
}

/// What a GPU and an instance have in common.
static enum tfos_status describe(struct inventory *list, void *device, struct tfos_gpu *gpu,
                                 struct tfos_error *err)
{
    const struct tfos__gpu_nvml *nvml = list->nvml;
    if (nvml->get_name(device, gpu->name, sizeof(gpu->name)) != 0)
        snprintf(gpu->name, sizeof(gpu->name), "unknown");
    if (nvml->get_uuid && nvml->get_uuid(device, gpu->uuid, sizeof(gpu->uuid)) != 0)
        gpu->uuid[0] = '\0';
    describe_place(nvml, device, gpu);
    describe_use(nvml, device, gpu);
    return list_processes(list, device, gpu, err);
}

static struct tfos_gpu *add(struct inventory *list, int index)
{
    struct tfos_gpu *gpus = tfos__array_grow(list->gpus, list->count, sizeof(*gpus));
    if (!gpus)
        return NULL;
    list->gpus = gpus;
    struct tfos_gpu *gpu = &gpus[list->count++];
    *gpu = (struct tfos_gpu){.index = index,
                             .name = "unknown",
                             .numa_node = -1,
                             .utilisation = -1,
                             .memory_total = -1,
                             .memory_used = -1};
    snprintf(gpu->id, sizeof(gpu->id), "%d", index);
    for (int i = 0; i < TFOS_GPU_LINK_LIMIT; i++)
        gpu->links[i] = i == index ? TFOS_GPU_LINK_SAME : TFOS_GPU_LINK_UNKNOWN;
    return gpu;
}

static bool is_divided(const struct tfos__gpu_nvml *nvml, void *device)
{
    unsigned int current = 0, pending = 0;
    return nvml->get_mig_mode && nvml->get_mig_count && nvml->get_mig_handle &&
           nvml->get_mig_mode(device, &current, &pending) == 0 && current == 1;
}

static enum tfos_status add_instances(struct inventory *list, void *device, int index,
                                      struct tfos_error *err)
{
    unsigned int count = 0;
    if (list->nvml->get_mig_count(device, &count) != 0)
        return TFOS_OK;
    for (unsigned int i = 0; i < count; i++) {
        void *instance = NULL;
        if (list->nvml->get_mig_handle(device, i, &instance) != 0)
            continue; // there are fewer than there may be
        struct tfos_gpu *gpu = add(list, index);
        if (!gpu)
            return tfos__no_memory(err, "gpu", "the list of GPUs");
        gpu->is_instance = true;
        TFOS__TRY(describe(list, instance, gpu, err));
        memcpy(gpu->id, gpu->uuid, sizeof(gpu->id));
    }
    return TFOS_OK;
}

static enum tfos_status add_all(struct inventory *list, struct tfos_error *err)
{
    unsigned int count = 0;
    if (list->nvml->get_count(&count) != 0)
        count = 0;
    for (unsigned int i = 0; i < count; i++) {
        void *device = NULL;
        struct tfos_gpu *gpu = add(list, (int)i);
        if (!gpu)
            return tfos__no_memory(err, "gpu", "the list of GPUs");
        int result = list->nvml->get_handle(i, &device);
        if (result != 0) {
            set_fault(list->nvml, result, gpu);
            continue;
        }
        TFOS__TRY(describe(list, device, gpu, err));
        gpu->is_divided = is_divided(list->nvml, device);
        if (gpu->is_divided) {
            gpu->is_free = false;
            TFOS__TRY(add_instances(list, device, (int)i, err));
        }
    }
    return TFOS_OK;
}

static enum tfos_gpu_link find_link(const struct tfos__gpu_nvml *nvml, void *one, void *other)
{
    int result = -1, level = 0;
    if (nvml->get_p2p && nvml->get_p2p(one, other, P2P_NVLINK, &result) == 0 && result == 0)
        return TFOS_GPU_LINK_NVLINK;
    if (!nvml->get_common_ancestor || nvml->get_common_ancestor(one, other, &level) != 0)
        return TFOS_GPU_LINK_UNKNOWN;
    if (level <= 20) // one board, one switch, several switches
        return TFOS_GPU_LINK_SWITCH;
    return level <= 30   ? TFOS_GPU_LINK_BRIDGE
           : level <= 40 ? TFOS_GPU_LINK_NODE
                         : TFOS_GPU_LINK_SYSTEM;
}

static void connect_all(struct inventory *list)
{
    for (size_t i = 0; i < list->count; i++) {
        void *device = NULL;
        struct tfos_gpu *gpu = &list->gpus[i];
        if (gpu->fault[0] || list->nvml->get_handle((unsigned int)gpu->index, &device) != 0)
            continue;
        for (size_t j = 0; j < list->count; j++) {
            void *other = NULL;
            int index = list->gpus[j].index;
            if (index < TFOS_GPU_LINK_LIMIT && index != gpu->index && !list->gpus[j].fault[0] &&
                !list->gpus[j].is_instance &&
                list->nvml->get_handle((unsigned int)index, &other) == 0)
                gpu->links[index] = find_link(list->nvml, device, other);
        }
    }
}

/// The list as one block.
static struct tfos_gpu *pack(const struct inventory *list)
{
    size_t head = list->count * sizeof(*list->gpus);
    unsigned char *block =
        tfos__alloc(1, head + list->process_count * sizeof(struct tfos_gpu_process));
    if (!block)
        return NULL;
    struct tfos_gpu *gpus = (struct tfos_gpu *)(void *)block;
    struct tfos_gpu_process *processes = (struct tfos_gpu_process *)(void *)(block + head);
    for (size_t i = 0; i < list->count; i++) {
        gpus[i] = list->gpus[i];
        gpus[i].processes = gpus[i].process_count ? processes : NULL;
        for (size_t j = 0; j < gpus[i].process_count; j++)
            *processes++ = list->gpus[i].processes[j];
    }
    return gpus;
}

static void clear(struct inventory *list)
{
    for (size_t i = 0; i < list->count; i++)
        tfos__free(list->gpus[i].processes);
    tfos__free(list->gpus);
}

enum tfos_status tfos_gpu_list(struct tfos_gpu **out, size_t *count, struct tfos_error *err)
{
    struct tfos__gpu_nvml nvml;
    TFOS__TRY(tfos__gpu_nvml_open(&nvml, err));
    struct inventory list = {.nvml = &nvml};
    enum tfos_status status = add_all(&list, err);
    if (status == TFOS_OK) {
        connect_all(&list);
        struct tfos_gpu *gpus = pack(&list);
        if (gpus) {
            *out = gpus;
            *count = list.count;
        } else {
            status = tfos__no_memory(err, "gpu", "the list of GPUs");
        }
    }
    clear(&list);
    tfos__gpu_nvml_close(&nvml);
    return status;
}

bool tfos__gpu_is_named(const struct tfos_gpu *gpu, const char *name, size_t name_size)
{
    // CUDA takes the beginning of a UUID, too.
    bool is_uuid = name_size >= 8 && strncasecmp(gpu->uuid, name, name_size) == 0;
    return is_uuid || (strlen(gpu->id) == name_size && strncmp(gpu->id, name, name_size) == 0);
}
