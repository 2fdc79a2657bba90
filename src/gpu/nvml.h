// SPDX-License-Identifier: Apache-2.0
/// NVIDIA's library, loaded and not linked: most machines have none. Its types are an opaque
/// pointer, numbers and a few structs of them, so its header is not needed
/// (https://docs.nvidia.com/deploy/nvml-api/).
#ifndef TFOS_GPU_NVML_H
#define TFOS_GPU_NVML_H

#include <stddef.h>
#include <tfos/status.h>

#define TFOS__NVML_INSUFFICIENT_SIZE 7

struct tfos__gpu_nvml_memory {
    unsigned long long total, free, used;
};

struct tfos__gpu_nvml_utilisation {
    unsigned int gpu, memory;
};

struct tfos__gpu_nvml_pci {
    char old_bus_id[16];
    unsigned int domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

/// Its functions; 0 is success. Those behind `get_processes` are NULL where the driver is too old.
struct tfos__gpu_nvml {
    void *library; ///< owned
    int (*init)(void);
    int (*shutdown)(void);
    int (*get_count)(unsigned int *count);
    int (*get_handle)(unsigned int index, void **device);
    int (*get_name)(void *device, char *name, unsigned int size);
    /// INSUFFICIENT_SIZE: there are more processes than `*count`, which is then how many.
    int (*get_processes)(void *device, unsigned int *count, void *processes);
    size_t process_size; ///< of an element of `processes`: a pid and, 8 bytes behind, its memory
    const char *(*describe)(int result);
    int (*get_uuid)(void *device, char *uuid, unsigned int size);
    int (*get_pci)(void *device, struct tfos__gpu_nvml_pci *pci);
    int (*get_memory)(void *device, struct tfos__gpu_nvml_memory *memory);
    int (*get_utilisation)(void *device, struct tfos__gpu_nvml_utilisation *utilisation);
    int (*get_mig_mode)(void *device, unsigned int *current, unsigned int *pending);
    int (*get_mig_count)(void *device, unsigned int *count);
    int (*get_mig_handle)(void *device, unsigned int index, void **instance);
    int (*get_p2p)(void *device, void *other, int kind, int *result);
    int (*get_common_ancestor)(void *device, void *other, int *level);
};

/// Loads and initialises it. UNSUPPORTED says what to tell of the machine. The caller ends it with
/// tfos__gpu_nvml_close().
enum tfos_status tfos__gpu_nvml_open(struct tfos__gpu_nvml *nvml, struct tfos_error *err);

void tfos__gpu_nvml_close(struct tfos__gpu_nvml *nvml);

#endif
