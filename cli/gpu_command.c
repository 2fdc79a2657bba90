// SPDX-License-Identifier: Apache-2.0
/// tfos gpu: the GPUs of this machine, what computes on them, and which node of which cluster holds
/// what of them.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos.h>

#include "commands.h"
#include "terminal.h"
#include "watch.h"

#define HOLDER_LIMIT 64
#define MIB 1048576.0

static const char *const link_names[] = {"same",      "NVLink", "PCIe switch", "host bridge",
                                         "NUMA node", "system", "unknown"};

static json_t *known(int64_t number)
{
    return number < 0 ? json_null() : json_integer((json_int_t)number);
}

static json_t *describe_processes(const struct tfos_gpu *gpu)
{
    json_t *processes = json_array();
    for (size_t i = 0; i < gpu->process_count; i++)
        json_array_append_new(processes,
                              json_pack("{s:I, s:o}", "pid", (json_int_t)gpu->processes[i].pid,
                                        "memory", known(gpu->processes[i].memory)));
    return processes;
}

static json_t *describe_holders(const struct tfos_gpu *gpu)
{
    struct tfos_gpu_holder holders[HOLDER_LIMIT];
    size_t count = 0;
    json_t *array = json_array();
    if (!gpu->uuid[0] || tfos_gpu_holders(NULL, gpu->uuid, holders, HOLDER_LIMIT, &count, NULL) < 0)
        return array;
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_pack("{s:I, s:f, s:s}", "pid", (json_int_t)holders[i].pid,
                                               "fraction", holders[i].share / 1000.0, "owner",
                                               holders[i].owner));
    return array;
}

/// {"1": "NVLink"}
static json_t *describe_links(const struct tfos_gpu *gpu, size_t count)
{
    json_t *links = json_object();
    for (size_t i = 0; i < count && i < TFOS_GPU_LINK_LIMIT && !gpu->is_instance; i++) {
        char index[16];
        snprintf(index, sizeof(index), "%zu", i);
        if (gpu->links[i] != TFOS_GPU_LINK_UNKNOWN && gpu->links[i] != TFOS_GPU_LINK_SAME)
            json_object_set_new(links, index, json_string(link_names[gpu->links[i]]));
    }
    return links;
}

static json_t *describe(const struct tfos_gpu *gpu, size_t count)
{
    return json_pack(
        "{s:s, s:i, s:b, s:b, s:b, s:s, s:s, s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
        gpu->id, "index", gpu->index, "instance", (int)gpu->is_instance, "divided",
        (int)gpu->is_divided, "free", (int)gpu->is_free, "uuid", gpu->uuid, "name", gpu->name,
        "bus_id", gpu->bus_id, "fault", gpu->fault[0] ? gpu->fault : NULL, "numa_node",
        known(gpu->numa_node), "load", known(gpu->utilisation), "memory_total",
        known(gpu->memory_total), "memory_used", known(gpu->memory_used), "processes",
        describe_processes(gpu), "holders", describe_holders(gpu), "links",
        describe_links(gpu, count));
}

/// An array that the caller owns, or NULL after saying why not.
static json_t *query(void *context)
{
    struct tfos_error err;
    struct tfos_gpu *gpus;
    size_t count;
    (void)context;
    if (tfos_gpu_list(&gpus, &count, &err) < 0) {
        say_error(&err);
        return NULL;
    }
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, describe(&gpus[i], count));
    tfos_free(gpus);
    return array;
}

// ---- the table

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void format_number(const json_t *object, const char *key, double unit, const char *suffix,
                          char *text, size_t size)
{
    const json_t *number = json_object_get(object, key);
    if (json_is_number(number))
        snprintf(text, size, "%.0f%s", json_number_value(number) / unit, suffix);
    else
        snprintf(text, size, "-");
}

static const char *state_of(const json_t *gpu)
{
    if (text_of(gpu, "fault")[0])
        return "fault";
    if (json_is_true(json_object_get(gpu, "divided")))
        return "divided";
    if (json_array_size(json_object_get(gpu, "holders")) > 0)
        return "held";
    return json_is_true(json_object_get(gpu, "free")) ? "free" : "used";
}

static void print_gpu(FILE *out, const json_t *gpu)
{
    char used[32], total[32], load[32], memory[32];
    bool is_instance = json_is_true(json_object_get(gpu, "instance"));
    format_number(gpu, "memory_used", MIB, "", used, sizeof(used));
    format_number(gpu, "memory_total", MIB, "", total, sizeof(total));
    format_number(gpu, "load", 1, "%", load, sizeof(load));
    fprintf(out, "%3s %-32s %-8s %8s %8s %5s  %s\n", is_instance ? "" : text_of(gpu, "id"),
            text_of(gpu, "name"), state_of(gpu), used, total, load, text_of(gpu, "bus_id"));
    if (is_instance)
        fprintf(out, "    %s\n", text_of(gpu, "id"));
    if (text_of(gpu, "fault")[0])
        fprintf(out, "    %s\n", text_of(gpu, "fault"));
    size_t i;
    const json_t *item;
    json_array_foreach(json_object_get(gpu, "holders"), i, item)
    {
        const char *owner = text_of(item, "owner");
        fprintf(out, "    held  %5.1f %% by process %lld%s%s\n",
                json_number_value(json_object_get(item, "fraction")) * 100,
                (long long)json_integer_value(json_object_get(item, "pid")), owner[0] ? ", " : "",
                owner);
    }
    json_array_foreach(json_object_get(gpu, "processes"), i, item)
    {
        format_number(item, "memory", MIB, " MiB", memory, sizeof(memory));
        fprintf(out, "    computes: process %lld with %s\n",
                (long long)json_integer_value(json_object_get(item, "pid")), memory);
    }
}

static void print_gpus(FILE *out, const json_t *gpus)
{
    size_t i;
    const json_t *gpu;
    fprintf(out, "%3s %-32s %-8s %8s %8s %5s  %s\n", "GPU", "NAME", "STATE", "USED", "MIB", "LOAD",
            "BUS");
    json_array_foreach((json_t *)gpus, i, gpu)
    {
        print_gpu(out, gpu);
    }
}

int run_gpu(int argc, char **argv)
{
    struct watch_view view = {.command = "gpu",
                              .query = query,
                              .print = print_gpus,
                              .none = "the driver lists no GPU on this machine"};
    return watch_run(argc, argv, &view);
}
