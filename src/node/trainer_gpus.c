// SPDX-License-Identifier: Apache-2.0
// The GPUs of a trainer. The node takes them before it joins, so that whoever gets none fails
// before the others wait for it, and holds them until the trainer has ended.
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "node/node.h"

#define BUSY_TIMEOUT_MS 180000 // for the processes of a cluster that has just ended, and others
#define OWNER_SIZE 112

static const char *name_owner(const struct tfos__node *node, char text[OWNER_SIZE])
{
    snprintf(text, OWNER_SIZE, "cluster %.32s %.64s", node->config.cluster_id, node->name);
    return text;
}

static struct tfos_gpu_request make_request(const struct tfos__node *node, char owner[OWNER_SIZE])
{
    const struct tfos__node_config *config = &node->config;
    return (struct tfos_gpu_request){.count = (int)config->gpu_count,
                                     .fraction = config->gpu_fraction,
                                     .candidates = config->gpu_addresses,
                                     .is_assigned = config->gpu_addresses != NULL,
                                     .owner = name_owner(node, owner)};
}

enum tfos_status tfos__node_gpus_take(struct tfos__node *node, const struct tfos_wait *wait,
                                      struct tfos_error *err)
{
    char owner[OWNER_SIZE];
    struct tfos_wait limited = *wait;
    struct tfos_gpu_request request = make_request(node, owner);
    if (request.count == 0)
        return TFOS_OK;
    // The driver waits for this node no longer than join_timeout_ms.
    limited.timeout_ms = BUSY_TIMEOUT_MS;
    if (wait->timeout_ms > 0 && wait->timeout_ms / 2 < BUSY_TIMEOUT_MS)
        limited.timeout_ms = wait->timeout_ms / 2;
    enum tfos_status status = tfos_gpu_allocate(&request, &limited, &node->gpus, err);
    bool is_absent = status == TFOS_UNSUPPORTED || status == TFOS_NOT_FOUND;
    if (node->config.is_gpu_required || !is_absent)
        return tfos__fail_in(err, status, "node: %s", node->name);
    if (status == TFOS_NOT_FOUND)
        node->gpu_warning = tfos__format("it trains on the CPU: %s", err->message);
    return TFOS_OK;
}

/// Whether another program has begun to use a GPU that was found free, or it has gone.
static bool is_spoiled(const struct tfos__node *node)
{
    struct tfos_gpu *gpus;
    size_t count;
    bool is_spoiled = false;
    if (node->config.gpu_addresses || node->config.gpu_fraction > 0 ||
        tfos_gpu_list(&gpus, &count, NULL) < 0)
        return false;
    for (int i = 0; i < tfos__gpu_allocation_count(node->gpus); i++) {
        const struct tfos_gpu *held = tfos__gpu_allocation_gpu(node->gpus, i);
        bool is_good = false;
        for (size_t j = 0; held && j < count; j++)
            is_good |= gpus[j].is_free && strcmp(gpus[j].id, held->id) == 0;
        is_spoiled |= !is_good;
    }
    tfos__free(gpus);
    return is_spoiled;
}

enum tfos_status tfos__node_gpus_start(struct tfos__node *node, struct tfos_error *err)
{
    char owner[OWNER_SIZE];
    if (!node->gpus)
        return TFOS_OK;
    if (is_spoiled(node)) {
        struct tfos_gpu_request request = make_request(node, owner);
        tfos_gpu_allocation_close(node->gpus);
        node->gpus = NULL;
        TFOS__TRY(tfos_gpu_allocate(&request, NULL, &node->gpus, err));
    }
    tfos__gpu_allocation_rename(node->gpus, name_owner(node, owner));
    return tfos__gpu_sampler_open(node->gpus, &node->gpu_sampler, err);
}

enum tfos_status tfos__node_gpus_set_environment(const struct tfos__node *node,
                                                 struct tfos__node_strings *environment,
                                                 struct tfos_error *err)
{
    const char *ids = node->gpus ? tfos_gpu_allocation_ids(node->gpus) : "";
    TFOS__TRY(tfos__node_environment_set(environment, "CUDA_VISIBLE_DEVICES", ids, err));
    // The order of NVML's and nvidia-smi's indices. CUDA's own begins with the fastest.
    TFOS__TRY(tfos__node_environment_set(environment, "CUDA_DEVICE_ORDER", "PCI_BUS_ID", err));
    return tfos__node_environment_set(environment, "TFOS_GPUS", ids, err);
}

json_t *tfos__node_gpus_context(const struct tfos__node *node)
{
    json_t *gpus = json_array();
    for (int i = 0; node->gpus && i < tfos__gpu_allocation_count(node->gpus); i++)
        json_array_append_new(
            gpus, json_pack("{s:f, s:I}", "fraction", node->config.gpu_fraction, "memory",
                            (json_int_t)tfos__gpu_allocation_memory(node->gpus, i)));
    return gpus;
}

/// Null for a negative number.
static json_t *known(int64_t number)
{
    return number < 0 ? json_null() : json_integer((json_int_t)number);
}

json_t *tfos__node_gpus_figures(const struct tfos__node *node)
{
    struct tfos__gpu_sample samples[TFOS_GPU_LINK_LIMIT];
    json_t *gpus = json_array();
    size_t count = node->gpu_sampler
                       ? tfos__gpu_sampler_get(node->gpu_sampler, samples, TFOS_GPU_LINK_LIMIT)
                       : 0;
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            gpus, json_pack("{s:s, s:s, s:f, s:o, s:o, s:o, s:s?}", "id", samples[i].id, "name",
                            samples[i].name, "fraction",
                            node->config.gpu_fraction > 0 ? node->config.gpu_fraction : 1.0,
                            "memory_used", known(samples[i].memory_used), "memory_total",
                            known(samples[i].memory_total), "load", known(samples[i].utilisation),
                            "fault", samples[i].fault[0] ? samples[i].fault : NULL));
    return gpus;
}

int tfos__node_gpus_descriptors(const struct tfos__node *node, int *fds, int capacity)
{
    int count = 0;
    for (int i = 0; node->gpus && i < tfos__gpu_allocation_count(node->gpus); i++) {
        int fd = tfos__gpu_allocation_fd(node->gpus, i);
        if (fd >= 0 && count < capacity)
            fds[count++] = fd;
    }
    return count;
}

void tfos__node_gpus_close(struct tfos__node *node)
{
    tfos__gpu_sampler_close(node->gpu_sampler);
    tfos_gpu_allocation_close(node->gpus);
    tfos__free(node->gpu_warning);
    node->gpu_sampler = NULL;
    node->gpus = NULL;
    node->gpu_warning = NULL;
}
