// SPDX-License-Identifier: Apache-2.0
// Finding NVML's functions. What lists GPUs and their processes must be there; the rest tells more.
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "base/fail.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"
#define PROCESS_SIZE_OLD 16 // a pid and its memory
#define PROCESS_SIZE 24     // and two ids of instances

static bool find(const struct tfos__gpu_nvml *nvml, const char *name, void *function)
{
    void *symbol = dlsym(nvml->library, name);
    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool find_processes(struct tfos__gpu_nvml *nvml)
{
    nvml->process_size = PROCESS_SIZE;
    if (find(nvml, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->get_processes) ||
        find(nvml, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->get_processes))
        return true;
    nvml->process_size = PROCESS_SIZE_OLD;
    return find(nvml, "nvmlDeviceGetComputeRunningProcesses", &nvml->get_processes);
}

static bool find_all(struct tfos__gpu_nvml *nvml)
{
    find(nvml, "nvmlErrorString", &nvml->describe);
    find(nvml, "nvmlDeviceGetUUID", &nvml->get_uuid);
    find(nvml, "nvmlDeviceGetPciInfo_v3", &nvml->get_pci);
    find(nvml, "nvmlDeviceGetMemoryInfo", &nvml->get_memory);
    find(nvml, "nvmlDeviceGetUtilizationRates", &nvml->get_utilisation);
    find(nvml, "nvmlDeviceGetMigMode", &nvml->get_mig_mode);
    find(nvml, "nvmlDeviceGetMaxMigDeviceCount", &nvml->get_mig_count);
    find(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", &nvml->get_mig_handle);
    find(nvml, "nvmlDeviceGetP2PStatus", &nvml->get_p2p);
    find(nvml, "nvmlDeviceGetTopologyCommonAncestor", &nvml->get_common_ancestor);
    return find(nvml, "nvmlInit_v2", &nvml->init) && find(nvml, "nvmlShutdown", &nvml->shutdown) &&
           find(nvml, "nvmlDeviceGetCount_v2", &nvml->get_count) &&
           find(nvml, "nvmlDeviceGetHandleByIndex_v2", &nvml->get_handle) &&
           find(nvml, "nvmlDeviceGetName", &nvml->get_name) && find_processes(nvml);
}

enum tfos_status tfos__gpu_nvml_open(struct tfos__gpu_nvml *nvml, struct tfos_error *err)
{
    enum tfos_status status = TFOS_UNSUPPORTED;
    *nvml = (struct tfos__gpu_nvml){.library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL)};
    if (!nvml->library || !find_all(nvml))
        tfos__fail(err, status,
                   "none: " NVML_LIBRARY " is not on this machine; training uses the CPU");
    else if (nvml->init() != 0)
        tfos__fail(err, status,
                   "none: " NVML_LIBRARY " is there, but the driver does not answer "
                   "(nvidia-smi says why)");
    else
        return TFOS_OK;
    if (nvml->library)
        dlclose(nvml->library);
    *nvml = (struct tfos__gpu_nvml){0};
    return status;
}

void tfos__gpu_nvml_close(struct tfos__gpu_nvml *nvml)
{
    if (!nvml->library)
        return;
    nvml->shutdown();
    dlclose(nvml->library);
    *nvml = (struct tfos__gpu_nvml){0};
}
