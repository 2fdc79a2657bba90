// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver on a machine without GPU. FAKE_CUDA_GPU is the number of the process's GPU, 0 if
// it is not set; "none": its threads have no context.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fake_gpu.h"

#define NOT_READY 600
#define INVALID_CONTEXT 201

static char contexts[2];
static _Thread_local void *current;
static struct {
    void *to;
    unsigned char data[64];
    size_t size;
} later;

/// Work of another stream: memory that is written when the context is synchronised.
void fake_cuda_write_later(void *to, const void *data, size_t size);
/// The context of another GPU.
void *fake_cuda_other_context(void);

void fake_cuda_write_later(void *to, const void *data, size_t size)
{
    later.to = to;
    later.size = size;
    memcpy(later.data, data, size);
}

void *fake_cuda_other_context(void)
{
    return &contexts[1];
}

static const char *gpu(void)
{
    const char *number = getenv("FAKE_CUDA_GPU");
    return number ? number : "0";
}

int cuCtxGetCurrent(void **context)
{
    *context = current ? current : strcmp(gpu(), "none") == 0 ? NULL : &contexts[0];
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    current = context;
    return 0;
}

int cuCtxSynchronize(void)
{
    if (later.size > 0)
        memcpy(later.to, later.data, later.size);
    later.size = 0;
    return getenv("FAKE_CUDA_FAULT") ? 700 : 0;
}

int cuCtxGetDevice(int *device)
{
    *device = atoi(gpu());
    return 0;
}

int cuDeviceGetUuid(unsigned char uuid[16], int device)
{
    memset(uuid, 7, 16);
    uuid[15] = (unsigned char)device;
    return 0;
}

int cuStreamCreate(void **stream, unsigned int flags)
{
    *stream = calloc(1, sizeof(struct fake_stream));
    return flags == 1 ? 0 : 1;
}

int cuStreamDestroy_v2(void *stream)
{
    free(stream);
    return 0;
}

int cuStreamQuery(void *stream)
{
    struct fake_stream *own = stream;
    int result = own->progress ? own->progress(own->job) : 0;
    if (result != NOT_READY)
        own->progress = NULL;
    return result;
}

int cuMemsetD8Async(uint64_t place, unsigned char value, size_t size, void *stream)
{
    (void)stream;
    memset(FAKE_TO_HOST(place), value, size);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
    memcpy(to, FAKE_TO_HOST(from), size);
    return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
    memcpy(FAKE_TO_HOST(to), from, size);
    return 0;
}

int cuMemAllocHost_v2(void **memory, size_t size)
{
    *memory = malloc(size);
    return *memory ? 0 : 2;
}

int cuMemFreeHost(void *memory)
{
    free(memory);
    return 0;
}

// ---- what a program calls to have memory

int cuInit(unsigned int flags)
{
    return flags == 0 ? 0 : 1;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &contexts[device];
    return 0;
}

int cuMemAlloc_v2(uint64_t *place, size_t size)
{
    *place = (uintptr_t)FAKE_TO_GPU(malloc(size));
    return 0;
}

int cuMemFree_v2(uint64_t place)
{
    free(FAKE_TO_HOST(place));
    return 0;
}

int cuGetErrorString(int result, const char **text)
{
    *text = result == 700 ? "an illegal memory access was encountered" : NULL;
    return 0;
}
