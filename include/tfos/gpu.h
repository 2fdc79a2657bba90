// SPDX-License-Identifier: Apache-2.0
/// The NVIDIA GPUs of this machine, as the driver's own library (NVML) lists them, and the shares
/// that processes of this user hold of them.
#ifndef TFOS_GPU_H
#define TFOS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/export.h>
#include <tfos/status.h>
#include <tfos/wait.h>

/// Physical GPUs whose connections are known.
#define TFOS_GPU_LINK_LIMIT 32

/// How two GPUs are connected, the nearest first.
enum tfos_gpu_link {
    TFOS_GPU_LINK_SAME,   ///< they are one
    TFOS_GPU_LINK_NVLINK, ///< NVLink
    TFOS_GPU_LINK_SWITCH, ///< one PCIe switch
    TFOS_GPU_LINK_BRIDGE, ///< one host bridge
    TFOS_GPU_LINK_NODE,   ///< one NUMA node
    TFOS_GPU_LINK_SYSTEM, ///< through the connection between NUMA nodes
    TFOS_GPU_LINK_UNKNOWN
};

/// A process that computes on a GPU.
struct tfos_gpu_process {
    int64_t pid;
    int64_t memory; ///< bytes; -1: unknown
};

/// A GPU, or an instance of one that is divided (MIG). A number that the driver does not
/// report is -1.
struct tfos_gpu {
    int index;        ///< of the GPU, or of the one that the instance is a part of
    bool is_instance; ///< a MIG instance
    bool is_divided;  ///< MIG is on: only its instances, which follow it, can compute
    bool is_free;     ///< it answers, can compute, and no process computes on it
    char id[96];      ///< as CUDA_VISIBLE_DEVICES takes it: "0", or an instance's UUID
    char uuid[96];    ///< "" when it does not answer
    char name[96];    ///< "NVIDIA A100"
    char bus_id[32];  ///< of PCI, "0000:3b:00.0"; "" if unknown
    char fault[96];   ///< why it does not answer; "" when it does
    int numa_node;    ///< -1: unknown, or the machine has one only
    int utilisation;  ///< per cent of the last moment in which it computed
    int64_t memory_total, memory_used;  ///< bytes
    struct tfos_gpu_process *processes; ///< NULL: none; with the list
    size_t process_count;
    enum tfos_gpu_link links[TFOS_GPU_LINK_LIMIT]; ///< to the GPU of each index
};

/// Lists the GPUs in the order of their indices, which CUDA_VISIBLE_DEVICES takes too, where
/// CUDA_DEVICE_ORDER is PCI_BUS_ID. The caller frees `*out` by tfos_free(), and with it all that it
/// points to. UNSUPPORTED: there is no driver, or it does not answer; the message says which.
/// Thread-safe.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_gpu_list(struct tfos_gpu **out, size_t *count,
                                                        struct tfos_error *err);

/// What a process wants. All zero but `count`: so many whole GPUs, any.
struct tfos_gpu_request {
    int count;              ///< 1 or more
    double fraction;        ///< of the memory of each, up to 1; 0: all, and alone
    int preferred;          ///< the search begins at this place of the list
    const char *candidates; ///< ids or UUIDs, divided by commas; NULL: CUDA_VISIBLE_DEVICES, or all
    bool is_assigned;       ///< a resource manager gave the candidates: whoever holds them
    const char *owner;      ///< who wants it, for others to read: "cluster ab12 worker:0"; or NULL
    const char *directory;  ///< of the locks; NULL: TFOS_RUNTIME_DIR, or that of this user
};

struct tfos_gpu_allocation;

/// Takes GPUs so that no other process of this user on this machine gets the same share. They are
/// this process's, and that of children that inherit the descriptors, until all of them
/// have ended or closed it, by whatever cause. BUSY after `wait` (1 ms unless it says otherwise):
/// the message names the holders. UNSUPPORTED: there is no driver. NOT_FOUND: the machine has too
/// few. On success the caller owns `*out`. Thread-safe.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_gpu_allocate(const struct tfos_gpu_request *request,
                                                            const struct tfos_wait *wait,
                                                            struct tfos_gpu_allocation **out,
                                                            struct tfos_error *err);

/// The ids, divided by commas, for CUDA_VISIBLE_DEVICES. Until it is closed.
TFOS_API const char *tfos_gpu_allocation_ids(const struct tfos_gpu_allocation *allocation);

/// Gives the GPUs back. NULL is accepted.
TFOS_API void tfos_gpu_allocation_close(struct tfos_gpu_allocation *allocation);

/// Who holds a part of a GPU.
struct tfos_gpu_holder {
    int64_t pid;
    int share;       ///< thousandths of the GPU
    char owner[112]; ///< as it was requested; "" if it said nothing
};

/// The processes of this user that hold the GPU of this UUID, or a part of it, the first
/// `capacity` of them; `*count` is how many it gave. `directory` as in a request. Thread-safe.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_gpu_holders(const char *directory, const char *uuid,
                                                           struct tfos_gpu_holder *holders,
                                                           size_t capacity, size_t *count,
                                                           struct tfos_error *err);

/// A port of an adapter for RDMA.
struct tfos_rdma_port {
    char device[64]; ///< "mlx5_0"
    int port;        ///< from 1
    bool is_active;
    bool is_ethernet; ///< RoCE; else InfiniBand
    char rate[48];    ///< "100 Gb/sec (4X EDR)"; "" if unknown
};

/// Lists the InfiniBand and RoCE ports of this machine, sorted by name, the first `capacity`;
/// `*count` is how many there are, 0 where there are none. `sysfs` is the root of sysfs; NULL:
/// /sys. Thread-safe.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_rdma_list(const char *sysfs,
                                                         struct tfos_rdma_port *ports,
                                                         size_t capacity, size_t *count,
                                                         struct tfos_error *err);

#endif
