// SPDX-License-Identifier: Apache-2.0
// A thread that asks the driver each second. It may stand still within the driver for ever, so the
// struct is freed by whoever leaves last: the thread or close().
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"
#include "gpu/gpu.h"

#define INTERVAL_MS 1000
#define CLOSE_TIMEOUT_MS 1000

struct tfos__gpu_sampler {
    struct tfos__monitor monitor;
    bool is_closed;  ///< guarded by the monitor, as is what follows
    bool has_left;   ///< the thread touches it no more
    bool has_looked; ///< the samples mean something
    size_t count;
    struct tfos__gpu_sample samples[TFOS_GPU_LINK_LIMIT];
    int fds[TFOS_GPU_LINK_LIMIT]; ///< owned by the thread: duplicates; -1: none
};

static void copy_sample(const struct tfos_gpu *gpu, struct tfos__gpu_sample *sample)
{
    memcpy(sample->name, gpu->name, sizeof(sample->name));
    memcpy(sample->fault, gpu->fault, sizeof(sample->fault));
    sample->utilisation = gpu->utilisation;
    sample->memory_total = gpu->memory_total;
    sample->memory_used = gpu->memory_used;
}

/// Looks once. What the list does not have any more keeps its last numbers, and says so.
static void look(struct tfos__gpu_sampler *sampler)
{
    struct tfos_gpu *gpus = NULL;
    size_t count = 0;
    struct tfos_error err;
    enum tfos_status status = tfos_gpu_list(&gpus, &count, &err);
    pthread_mutex_lock(&sampler->monitor.mutex);
    for (size_t i = 0; i < sampler->count; i++) {
        struct tfos__gpu_sample *sample = &sampler->samples[i];
        const struct tfos_gpu *found = NULL;
        for (size_t j = 0; j < count && status == TFOS_OK && !found; j++)
            if (tfos__gpu_is_named(&gpus[j], sample->id, strlen(sample->id)))
                found = &gpus[j];
        if (found)
            copy_sample(found, sample);
        else
            snprintf(sample->fault, sizeof(sample->fault), "the driver does not list it");
        // Programs that clear /tmp take what was not written to for days.
        if (sampler->fds[i] >= 0)
            (void)!futimens(sampler->fds[i], NULL);
    }
    sampler->has_looked = true;
    pthread_mutex_unlock(&sampler->monitor.mutex);
    tfos__free(gpus);
}

static void free_sampler(struct tfos__gpu_sampler *sampler)
{
    for (size_t i = 0; i < sampler->count; i++)
        if (sampler->fds[i] >= 0)
            close(sampler->fds[i]);
    tfos__monitor_clear(&sampler->monitor);
    tfos__free(sampler);
}

static void *run(void *argument)
{
    struct tfos__gpu_sampler *sampler = argument;
    bool is_closed = false;
    while (!is_closed) {
        look(sampler);
        int64_t next = tfos__deadline(INTERVAL_MS);
        pthread_mutex_lock(&sampler->monitor.mutex);
        while (!sampler->is_closed && tfos__monitor_wait(&sampler->monitor, next))
            continue;
        is_closed = sampler->is_closed;
        pthread_mutex_unlock(&sampler->monitor.mutex);
    }
    pthread_mutex_lock(&sampler->monitor.mutex);
    bool is_abandoned = sampler->has_left;
    sampler->has_left = true;
    pthread_cond_broadcast(&sampler->monitor.changed);
    pthread_mutex_unlock(&sampler->monitor.mutex);
    if (is_abandoned)
        free_sampler(sampler);
    return NULL;
}

enum tfos_status tfos__gpu_sampler_open(const struct tfos_gpu_allocation *allocation,
                                        struct tfos__gpu_sampler **out, struct tfos_error *err)
{
    pthread_t thread;
    struct tfos__gpu_sampler *sampler = tfos__alloc(1, sizeof(*sampler));
    if (!sampler)
        return tfos__no_memory(err, "gpu", "the figures of GPUs");
    tfos__monitor_init(&sampler->monitor);
    for (int i = 0; i < tfos__gpu_allocation_count(allocation); i++) {
        const struct tfos_gpu *gpu = tfos__gpu_allocation_gpu(allocation, i);
        if (!gpu || sampler->count == TFOS_GPU_LINK_LIMIT)
            continue;
        int fd = tfos__gpu_allocation_fd(allocation, i);
        memcpy(sampler->samples[sampler->count].id, gpu->id, sizeof(gpu->id));
        sampler->fds[sampler->count++] = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    }
    int fault = tfos__thread_start(&thread, NULL, run, sampler);
    if (fault != 0) {
        free_sampler(sampler);
        return tfos__fail(err, TFOS_IO, "gpu: cannot start a thread: %s", strerror(fault));
    }
    pthread_detach(thread);
    *out = sampler;
    return TFOS_OK;
}

size_t tfos__gpu_sampler_get(struct tfos__gpu_sampler *sampler, struct tfos__gpu_sample *samples,
                             size_t capacity)
{
    pthread_mutex_lock(&sampler->monitor.mutex);
    size_t count = sampler->has_looked ? sampler->count : 0;
    count = count < capacity ? count : capacity;
    memcpy(samples, sampler->samples, count * sizeof(*samples));
    pthread_mutex_unlock(&sampler->monitor.mutex);
    return count;
}

void tfos__gpu_sampler_close(struct tfos__gpu_sampler *sampler)
{
    if (!sampler)
        return;
    int64_t deadline = tfos__deadline(CLOSE_TIMEOUT_MS);
    pthread_mutex_lock(&sampler->monitor.mutex);
    sampler->is_closed = true;
    pthread_cond_broadcast(&sampler->monitor.changed);
    while (!sampler->has_left && tfos__monitor_wait(&sampler->monitor, deadline))
        continue;
    bool has_left = sampler->has_left;
    sampler->has_left = true;
    pthread_mutex_unlock(&sampler->monitor.mutex);
    if (has_left)
        free_sampler(sampler);
}
