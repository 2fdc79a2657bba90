// SPDX-License-Identifier: Apache-2.0
// From when a step wants its data until it has it, the framework also dispatches the step. This
// takes about the same time whenever data is there. So the least delay is no wait, and what a delay
// has on top of it is.
#include "collective/step_clock.h"

static void add(struct tfos__collective_delay *delay, int64_t since_us)
{
    if (delay->count++ == 0 || since_us < delay->least_us)
        delay->least_us = since_us;
    delay->sum_us += since_us - delay->least_us;
}

/// How long the first step of a call has waited until now.
static int64_t waiting_us(const struct tfos__collective_step_clock *clock, int64_t now_us)
{
    int64_t since_us = now_us - clock->wanted_us - clock->first.least_us;
    return clock->wanted_us > 0 && since_us > 0 ? since_us : 0;
}

static void begin_or_end(struct tfos__collective_step_clock *clock, bool is_running, int64_t now_us)
{
    clock->first.sum_us += waiting_us(clock, now_us); // for data of which there is no more
    clock->is_running = is_running;
    clock->wanted_us = is_running ? now_us : 0;
    clock->operated_us = 0;
}

static void take_data(struct tfos__collective_step_clock *clock, int64_t now_us)
{
    if (clock->wanted_us > 0)
        add(&clock->first, now_us - clock->wanted_us);
    else if (clock->is_running && clock->operated_us > 0)
        add(&clock->others, now_us - clock->operated_us);
    else // the caller had the data before the call
        clock->first.count++;
    clock->wanted_us = 0;
}

void tfos__collective_step_clock_mark(struct tfos__collective_step_clock *clock,
                                      enum tfos_collective_mark mark, int64_t now_us)
{
    switch (mark) {
    case TFOS_COLLECTIVE_STEPS_BEGIN:
    case TFOS_COLLECTIVE_STEPS_END:
        begin_or_end(clock, mark == TFOS_COLLECTIVE_STEPS_BEGIN, now_us);
        break;
    case TFOS_COLLECTIVE_STEP_DATA:
        take_data(clock, now_us);
        break;
    case TFOS_COLLECTIVE_STEP_GRADIENTS:
        clock->reduced_count++;
        break;
    }
}

static int64_t data_count(const struct tfos__collective_step_clock *clock)
{
    return clock->first.count + clock->others.count;
}

int64_t tfos__collective_step_clock_count(const struct tfos__collective_step_clock *clock)
{
    return data_count(clock) > 0 ? data_count(clock) : clock->reduced_count;
}

int64_t tfos__collective_step_clock_waited_us(const struct tfos__collective_step_clock *clock,
                                              int64_t now_us)
{
    if (data_count(clock) == 0)
        return -1;
    return clock->first.sum_us + clock->others.sum_us + waiting_us(clock, now_us);
}
