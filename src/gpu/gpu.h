// SPDX-License-Identifier: Apache-2.0
/// GPUs, as the rest of the library uses them.
#ifndef TFOS_GPU_GPU_H
#define TFOS_GPU_GPU_H

#include <stdbool.h>
#include <tfos/gpu.h>

/// Whether `gpu` is the one of this id or UUID.
bool tfos__gpu_is_named(const struct tfos_gpu *gpu, const char *name, size_t name_size);

/// How many GPUs it has.
int tfos__gpu_allocation_count(const struct tfos_gpu_allocation *allocation);

/// Bytes of the memory of the GPU at this place of the ids that are its share, -1 when unknown.
int64_t tfos__gpu_allocation_memory(const struct tfos_gpu_allocation *allocation, int place);

/// The descriptor that keeps it, borrowed and close-on-exec; -1: none, since a resource manager
/// gave the GPUs and others hold them.
int tfos__gpu_allocation_fd(const struct tfos_gpu_allocation *allocation, int place);

/// Says who holds an allocation from now on, for others to read.
void tfos__gpu_allocation_rename(struct tfos_gpu_allocation *allocation, const char *owner);

/// The GPU at a place of the ids, as the list had it when it was taken; NULL for one that is not in
/// the list.
const struct tfos_gpu *tfos__gpu_allocation_gpu(const struct tfos_gpu_allocation *allocation,
                                                int place);

/// A thread that samples the GPUs of an allocation each second: a driver that hangs blocks only
/// this thread.
struct tfos__gpu_sampler;

/// What it saw last of one GPU.
struct tfos__gpu_sample {
    char id[96];
    char name[96];
    char fault[96];                    ///< "" when it answers
    int utilisation;                   ///< per cent; -1: unknown
    int64_t memory_total, memory_used; ///< bytes; -1: unknown
};

/// Begins to look at the GPUs of `allocation`, whose ids are copied. On success the caller owns
/// `*out`.
enum tfos_status tfos__gpu_sampler_open(const struct tfos_gpu_allocation *allocation,
                                        struct tfos__gpu_sampler **out, struct tfos_error *err);

/// Copies the newest samples, `capacity` at most, and returns how many; 0 before the first look.
size_t tfos__gpu_sampler_get(struct tfos__gpu_sampler *sampler, struct tfos__gpu_sample *samples,
                             size_t capacity);

/// NULL is accepted.
void tfos__gpu_sampler_close(struct tfos__gpu_sampler *sampler);

#endif
