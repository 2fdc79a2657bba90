// SPDX-License-Identifier: Apache-2.0
/// How many training steps a group's process has begun, and for how long they waited for their
/// data.
#ifndef TFOS_COLLECTIVE_STEP_CLOCK_H
#define TFOS_COLLECTIVE_STEP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/collective.h>

/// All zero: no step has begun. The group's mutex guards it.
struct tfos__collective_step_clock {
    bool is_running;       ///< a call that takes steps is under way
    bool is_asking;        ///< `wanted_us` is when a step asked for data, without any dispatch
    int64_t wanted_us;     ///< since when a step wants data; 0: it has it
    int64_t operated_us;   ///< when the last operation of the call ended; 0: there was none
    int64_t data_count;    ///< steps that have had their data
    int64_t least_us;      ///< the least time from when data was wanted until it was there
    int64_t waited_us;     ///< sum of such times, of what came on top of the least
    int64_t reduced_count; ///< operations that gave a step its gradients
};

void tfos__collective_step_clock_mark(struct tfos__collective_step_clock *clock,
                                      enum tfos_collective_mark mark, int64_t now_us);

/// How many steps there were. A program that marks no data is counted by its gradients.
int64_t tfos__collective_step_clock_count(const struct tfos__collective_step_clock *clock);

/// For how long steps have waited for data until now; -1: the program marks no data.
int64_t tfos__collective_step_clock_waited_us(const struct tfos__collective_step_clock *clock,
                                              int64_t now_us);

#endif
