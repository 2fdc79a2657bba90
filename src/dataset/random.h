// SPDX-License-Identifier: Apache-2.0
/// Random numbers by SplitMix64.
#ifndef TFOS_DATASET_RANDOM_H
#define TFOS_DATASET_RANDOM_H

#include <stdint.h>

/// The state of the numbers of one pass or epoch.
static inline uint64_t tfos__random_begin(uint64_t seed, int64_t epoch)
{
    return seed ^ ((uint64_t)epoch * UINT64_C(0xd1342543de82ef95));
}

static inline uint64_t tfos__random_next(uint64_t *state)
{
    uint64_t word = *state += UINT64_C(0x9e3779b97f4a7c15);

    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

#endif
