// SPDX-License-Identifier: Apache-2.0
/// What the fakes of NVIDIA's driver and of NCCL have in common. Memory of their GPU is the host's,
/// at addresses that the host cannot read: who does so by mistake ends there.
#ifndef TFOS_TEST_FAKE_GPU_H
#define TFOS_TEST_FAKE_GPU_H

#include <stdint.h>

#define FAKE_GPU_OFFSET (UINT64_C(1) << 60)

/// The address on the GPU of memory of the host, and the other way round.
#define FAKE_TO_GPU(pointer) ((void *)((uintptr_t)(pointer) + FAKE_GPU_OFFSET))
#define FAKE_TO_HOST(pointer) ((void *)((uintptr_t)(pointer)-FAKE_GPU_OFFSET))

/// A stream: what it does, which goes on when it is asked. 0: done; 600: not yet.
struct fake_stream {
    int (*progress)(void *job);
    void *job;
};

#endif
