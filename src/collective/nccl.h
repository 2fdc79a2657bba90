// SPDX-License-Identifier: Apache-2.0
/// NVIDIA's collectives, loaded and not linked. Values and layouts are those of nccl.h
/// (https://github.com/NVIDIA/nccl, src/nccl.h.in), where they have been the same since 2.14: new
/// ones are only appended.
#ifndef TFOS_COLLECTIVE_NCCL_H
#define TFOS_COLLECTIVE_NCCL_H

#include <stddef.h>
#include <tfos/collective.h>

#define TFOS__NCCL_VERSION_MIN 21400 ///< 2.14.0, the first with communicators that do not block

enum { TFOS__NCCL_SUCCESS = 0, TFOS__NCCL_REMOTE_ERROR = 6, TFOS__NCCL_IN_PROGRESS = 7 };

#define TFOS__NCCL_UINT8 1          ///< ncclUint8
#define TFOS__NCCL_HOST_IMMEDIATE 1 ///< ncclScalarHostImmediate

/// ncclUniqueId, which is passed by value.
struct tfos__collective_nccl_id {
    char bytes[128];
};

/// ncclConfig_t of 2.14, which later versions take by its size and version.
struct tfos__collective_nccl_config {
    size_t size;
    unsigned int magic, version;
    int blocking;
};

#define TFOS__NCCL_MAGIC 0xcafebeefu

/// Its functions; they return ncclResult_t. `comm`: ncclComm_t, `stream`: cudaStream_t.
struct tfos__collective_nccl {
    int version; ///< 22703: 2.27.3
    int (*get_version)(int *version);
    int (*get_id)(struct tfos__collective_nccl_id *id);
    int (*open)(void **comm, int size, struct tfos__collective_nccl_id id, int rank,
                struct tfos__collective_nccl_config *config);
    int (*finalize)(void *comm);
    int (*destroy)(void *comm);
    int (*abort)(void *comm);
    int (*get_async_error)(void *comm, int *result);
    const char *(*describe)(int result);
    const char *(*get_last_error)(void *comm);
    int (*begin_group)(void);
    int (*end_group)(void);
    int (*all_reduce)(const void *from, void *to, size_t count, int dtype, int reduction,
                      void *comm, void *stream);
    int (*broadcast)(const void *from, void *to, size_t count, int dtype, int root, void *comm,
                     void *stream);
    int (*make_scaled_sum)(int *reduction, void *scalar, int dtype, int residence, void *comm);
    int (*free_reduction)(int reduction, void *comm);
};

/// The library, loaded once. NULL: `*why` says why it cannot be used; it stays valid.
const struct tfos__collective_nccl *tfos__collective_nccl_find(const char **why);

/// ncclDataType_t of a dtype that can be reduced.
int tfos__collective_nccl_dtype(enum tfos_dtype dtype);

/// ncclRedOp_t.
int tfos__collective_nccl_reduction(enum tfos_reduction reduction);

#endif
