// SPDX-License-Identifier: Apache-2.0
// NVIDIA's library on a machine of the test's making. FAKE_GPUS has a letter for each GPU: f, it is free; b, a process computes
// on it; l, it is lost. Without it the driver does not answer.
#include <stdlib.h>
#include <string.h>

#define UNINITIALIZED 1
#define INSUFFICIENT_SIZE 7
#define GPU_IS_LOST 15

int nvmlInit_v2(void)
{
    return getenv("FAKE_GPUS") ? 0 : UNINITIALIZED;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = (unsigned int)strlen(getenv("FAKE_GPUS"));
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    *device = getenv("FAKE_GPUS") + index;
    return *(char *)*device == 'l' ? GPU_IS_LOST : 0;
}

int nvmlDeviceGetName(void *device, char *name, unsigned int size)
{
    static const char text[] = "Fake A100";
    (void)device;
    if (size < sizeof(text))
        return INSUFFICIENT_SIZE;
    memcpy(name, text, sizeof(text));
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, void *processes)
{
    unsigned int found = *(char *)device == 'b' ? 2 : 0;
    (void)processes;
    if (*count < found) {
        *count = found;
        return INSUFFICIENT_SIZE;
    }
    *count = found;
    return 0;
}
