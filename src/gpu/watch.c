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

struct tfos__gpu_watch {
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
static void look(struct tfos__gpu_watch *watch)
{
    struct tfos_gpu *gpus = NULL;
    size_t count = 0;
    struct tfos_error err;
    enum tfos_status status = tfos_gpu_list(&gpus, &count, &err);
    pthread_mutex_lock(&watch->monitor.mutex);
    for (size_t i = 0; i < watch->count; i++) {
        struct tfos__gpu_sample *sample = &watch->samples[i];
        const struct tfos_gpu *found = NULL;
        for (size_t j = 0; j < count && status == TFOS_OK && !found; j++)
            if (tfos__gpu_is_named(&gpus[j], sample->id, strlen(sample->id)))
                found = &gpus[j];
        if (found)
            copy_sample(found, sample);
        else
            snprintf(sample->fault, sizeof(sample->fault), "the driver does not list it");
        // Programs that clear /tmp take what was not written to for days.
        if (watch->fds[i] >= 0)
            (void)!futimens(watch->fds[i], NULL);
    }
    watch->has_looked = true;
    pthread_mutex_unlock(&watch->monitor.mutex);
    tfos__free(gpus);
}

static void free_watch(struct tfos__gpu_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->fds[i] >= 0)
            close(watch->fds[i]);
    tfos__monitor_clear(&watch->monitor);
    tfos__free(watch);
}

static void *run(void *argument)
{
    struct tfos__gpu_watch *watch = argument;
    bool is_closed = false;
    while (!is_closed) {
        look(watch);
        int64_t next = tfos__deadline(INTERVAL_MS);
        pthread_mutex_lock(&watch->monitor.mutex);
        while (!watch->is_closed && tfos__monitor_wait(&watch->monitor, next))
            continue;
        is_closed = watch->is_closed;
        pthread_mutex_unlock(&watch->monitor.mutex);
    }
    pthread_mutex_lock(&watch->monitor.mutex);
    bool is_abandoned = watch->has_left;
    watch->has_left = true;
    pthread_cond_broadcast(&watch->monitor.changed);
    pthread_mutex_unlock(&watch->monitor.mutex);
    if (is_abandoned)
        free_watch(watch);
    return NULL;
}

enum tfos_status tfos__gpu_watch_open(const struct tfos_gpu_allocation *allocation,
                                      struct tfos__gpu_watch **out, struct tfos_error *err)
{
    pthread_t thread;
    struct tfos__gpu_watch *watch = tfos__alloc(1, sizeof(*watch));
    if (!watch)
        return tfos__no_memory(err, "gpu", "the figures of GPUs");
    tfos__monitor_init(&watch->monitor);
    for (int i = 0; i < tfos_gpu_allocation_count(allocation); i++) {
        const struct tfos_gpu *gpu = tfos__gpu_allocation_gpu(allocation, i);
        if (!gpu || watch->count == TFOS_GPU_LINK_LIMIT)
            continue;
        int fd = tfos_gpu_allocation_fd(allocation, i);
        memcpy(watch->samples[watch->count].id, gpu->id, sizeof(gpu->id));
        watch->fds[watch->count++] = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    }
    int fault = tfos__thread_start(&thread, NULL, run, watch);
    if (fault != 0) {
        free_watch(watch);
        return tfos__fail(err, TFOS_IO, "gpu: cannot start a thread: %s", strerror(fault));
    }
    pthread_detach(thread);
    *out = watch;
    return TFOS_OK;
}

size_t tfos__gpu_watch_get(struct tfos__gpu_watch *watch, struct tfos__gpu_sample *samples,
                           size_t capacity)
{
    pthread_mutex_lock(&watch->monitor.mutex);
    size_t count = watch->has_looked ? watch->count : 0;
    count = count < capacity ? count : capacity;
    memcpy(samples, watch->samples, count * sizeof(*samples));
    pthread_mutex_unlock(&watch->monitor.mutex);
    return count;
}

void tfos__gpu_watch_close(struct tfos__gpu_watch *watch)
{
    if (!watch)
        return;
    int64_t deadline = tfos__deadline(CLOSE_TIMEOUT_MS);
    pthread_mutex_lock(&watch->monitor.mutex);
    watch->is_closed = true;
    pthread_cond_broadcast(&watch->monitor.changed);
    while (!watch->has_left && tfos__monitor_wait(&watch->monitor, deadline))
        continue;
    bool has_left = watch->has_left;
    watch->has_left = true;
    pthread_mutex_unlock(&watch->monitor.mutex);
    if (has_left)
        free_watch(watch);
}
