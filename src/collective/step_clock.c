// SPDX-License-Identifier: Apache-2.0
// From the beginning of a call until its first step has its data, the framework also dispatches the
// step. The least such time is taken to be that, and what another has on top of it to be a wait.
//
// A later step of the call, whose data is asked for while the step before computes, waits from that
// one's last operation on.
#include "collective/step_clock.h"

static int64_t waiting_us(const struct tfos__collective_step_clock *clock, int64_t now_us)
{
    int64_t since_us = now_us - clock->wanted_us - (clock->is_asking ? 0 : clock->least_us);
    return clock->wanted_us > 0 && since_us > 0 ? since_us : 0;
}

static void begin_or_end(struct tfos__collective_step_clock *clock, bool is_running, int64_t now_us)
{
    clock->waited_us += waiting_us(clock, now_us); // for data of which there is no more
    clock->is_running = is_running;
    clock->is_asking = false;
    clock->wanted_us = is_running ? now_us : 0;
    clock->operated_us = 0;
}

static void take_data(struct tfos__collective_step_clock *clock, int64_t now_us)
{
    int64_t since_us =
        clock->wanted_us > clock->operated_us ? clock->wanted_us : clock->operated_us;
    clock->data_count++;
    if (clock->is_asking) {
        begin_or_end(clock, false, now_us);
        return;
    }
    clock->wanted_us = 0;
    if (!clock->is_running || since_us == 0)
        return; // the caller had the data before
    int64_t passed_us = now_us - since_us;
    if (clock->least_us == 0 || passed_us < clock->least_us)
        clock->least_us = passed_us > 0 ? passed_us : 1;
    clock->waited_us += passed_us > clock->least_us ? passed_us - clock->least_us : 0;
}

void tfos__collective_step_clock_mark(struct tfos__collective_step_clock *clock,
                                      enum tfos_collective_mark mark, int64_t now_us)
{
    switch (mark) {
    case TFOS_COLLECTIVE_STEPS_BEGIN:
    case TFOS_COLLECTIVE_STEPS_END:
        begin_or_end(clock, mark == TFOS_COLLECTIVE_STEPS_BEGIN, now_us);
        break;
    case TFOS_COLLECTIVE_STEP_HAS_DATA:
        take_data(clock, now_us);
        break;
    case TFOS_COLLECTIVE_STEP_GRADIENTS:
        clock->reduced_count++;
        break;
    case TFOS_COLLECTIVE_STEP_WANTS_DATA:
        begin_or_end(clock, true, now_us);
        clock->is_asking = true;
        break;
    }
}

int64_t tfos__collective_step_clock_count(const struct tfos__collective_step_clock *clock)
{
    return clock->data_count > 0 ? clock->data_count : clock->reduced_count;
}

int64_t tfos__collective_step_clock_waited_us(const struct tfos__collective_step_clock *clock,
                                              int64_t now_us)
{
    return clock->data_count > 0 ? clock->waited_us + waiting_us(clock, now_us) : -1;
}
