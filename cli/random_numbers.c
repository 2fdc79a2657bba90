// SPDX-License-Identifier: Apache-2.0
#include "random_numbers.h"

static uint64_t rotate(uint64_t number, int bits)
{
    return number << bits | number >> (64 - bits);
}

struct random_numbers random_begin(uint64_t seed)
{
    struct random_numbers numbers;
    for (int i = 0; i < 4; i++) {
        uint64_t mixed = seed += 0x9E3779B97F4A7C15;
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
        numbers.state[i] = mixed ^ mixed >> 31;
    }
    return numbers;
}

static uint64_t next(uint64_t *state)
{
    uint64_t result = rotate(state[1] * 5, 7) * 9, shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate(state[3], 45);
    return result;
}

// Numbers behind the last whole multiple of `limit` would make the first ones likelier.
uint64_t random_below(struct random_numbers *numbers, uint64_t limit)
{
    uint64_t end = UINT64_MAX - UINT64_MAX % limit, number;
    do
        number = next(numbers->state);
    while (number >= end);
    return number % limit;
}
