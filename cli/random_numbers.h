// SPDX-License-Identifier: Apache-2.0
/// Random numbers that a seed repeats on every machine: xoshiro256** (Blackman and Vigna), its
/// state filled by splitmix64. Not for secrets.
#ifndef TFOS_CLI_RANDOM_NUMBERS_H
#define TFOS_CLI_RANDOM_NUMBERS_H

#include <stdint.h>

struct random_numbers {
    uint64_t state[4];
};

struct random_numbers random_begin(uint64_t seed);

/// A number below `limit`, which is not 0, each as likely as any other.
uint64_t random_below(struct random_numbers *numbers, uint64_t limit);

#endif
