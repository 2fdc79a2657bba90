// SPDX-License-Identifier: Apache-2.0
// The arithmetic of step times: what a step is spent on, and which node the others wait for.
#include "cluster/step_progress.h"
#include "harness.h"

#define SECOND_US 1000000

/// What a trainer does in each second, in microseconds.
struct habit {
    int64_t steps, data_us, exchange_us, wait_us;
};

static void assert_near(double value, double expected)
{
    if (value - expected < -1e-6 || value - expected > 1e-6)
        fail_msg("%.9f is not %.9f", value, expected);
}

/// Adds the samples of `seconds` more, whose heartbeats come `late_ms` late by turns.
static void live(struct tfos__cluster_step_progress *progress,
                 struct tfos__cluster_step_sample *sample, struct habit habit, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        sample->at_us += SECOND_US;
        sample->count += habit.steps;
        sample->data_us += habit.data_us;
        sample->exchange_us += habit.exchange_us;
        sample->wait_us += habit.wait_us;
        tfos__cluster_step_progress_add(progress, sample, sample->at_us / 1000 + (i % 2 ? 700 : 0));
    }
}

static struct tfos__cluster_step_split split_of(struct habit habit, int seconds)
{
    struct tfos__cluster_step_progress progress = {0};
    struct tfos__cluster_step_sample sample = {.at_us = 77};
    live(&progress, &sample, habit, seconds);
    return tfos__cluster_step_progress_split(&progress, sample.at_us / 1000);
}

static void nothing_is_known_of_one_moment(void **state)
{
    (void)state;
    assert_false(split_of((struct habit){10, 0, 0, 0}, 0).is_known);
    assert_false(split_of((struct habit){10, 0, 0, 0}, 1).is_known);
    assert_true(split_of((struct habit){10, 0, 0, 0}, 2).is_known);
    // Nor of a trainer that takes no steps.
    assert_false(split_of((struct habit){0, 0, 0, 0}, 9).is_stepping);
}

static void a_step_is_split(void **state)
{
    (void)state;
    for (int seconds = 2; seconds < 90; seconds += 11) {
        struct tfos__cluster_step_split split =
            split_of((struct habit){20, 100000, 150000, 250000}, seconds);
        assert_true(split.is_stepping && split.has_data && !split.is_silent);
        assert_near(split.step_ms, 50);
        assert_near(split.data, 0.1);
        assert_near(split.exchange, 0.15);
        assert_near(split.wait, 0.25);
        assert_near(split.compute, 0.5);
    }
}

static void only_the_last_seconds_count(void **state)
{
    (void)state;
    struct tfos__cluster_step_progress progress = {0};
    struct tfos__cluster_step_sample sample = {.at_us = 5};
    live(&progress, &sample, (struct habit){1000, 0, 0, 900000}, 200);
    live(&progress, &sample, (struct habit){2, 500000, 0, 0}, 9);
    struct tfos__cluster_step_split split =
        tfos__cluster_step_progress_split(&progress, sample.at_us / 1000);
    assert_near(split.step_ms, 500);
    assert_near(split.wait, 0);
    assert_near(split.data, 0.5);
}

static void who_has_taken_its_last_step_is_left_out(void **state)
{
    (void)state;
    struct tfos__cluster_step_progress progress = {0};
    struct tfos__cluster_step_sample sample = {.at_us = 5, .staleness = 64};
    for (int second = 0; second < 4; second++) {
        sample.push_count += 5;
        sample.pushed_steps += 20;
        sample.stale_steps += 15;
        live(&progress, &sample, (struct habit){20, 0, 0, 0}, 1);
    }
    struct tfos__cluster_step_split split =
        tfos__cluster_step_progress_split(&progress, sample.at_us / 1000);
    assert_true(split.staleness == 64 && split.pushed_steps == 80);
    assert_near(split.stale_steps, 3);
    sample.staleness = 0; // it waits for the others
    live(&progress, &sample, (struct habit){0, 0, 0, SECOND_US}, 1);
    assert_false(tfos__cluster_step_progress_split(&progress, sample.at_us / 1000).is_known);
}

static void long_steps_are_told_from_some_of_them(void **state)
{
    (void)state;
    struct tfos__cluster_step_progress progress = {0};
    struct tfos__cluster_step_sample sample = {.at_us = 5};
    for (int i = 0; i < 6; i++) {
        live(&progress, &sample, (struct habit){0, 0, 0, 0}, 14);
        live(&progress, &sample, (struct habit){1, 0, 0, SECOND_US}, 1);
    }
    struct tfos__cluster_step_split split =
        tfos__cluster_step_progress_split(&progress, sample.at_us / 1000);
    assert_true(split.step_ms > 12000 && split.step_ms < 18000);
    // One that does not end takes at least as long as it has taken so far.
    live(&progress, &sample, (struct habit){0, SECOND_US, 0, 0}, 300);
    split = tfos__cluster_step_progress_split(&progress, sample.at_us / 1000);
    assert_true(split.step_ms >= 60000);
    assert_near(split.data, 1);
}

static void counters_that_begin_anew_are_another_trainer_s(void **state)
{
    (void)state;
    struct tfos__cluster_step_progress progress = {0};
    struct tfos__cluster_step_sample sample = {.at_us = 5};
    live(&progress, &sample, (struct habit){1000, 0, 0, 900000}, 9);
    sample = (struct tfos__cluster_step_sample){.at_us = 3};
    live(&progress, &sample, (struct habit){10, 0, 0, 0}, 3);
    assert_near(tfos__cluster_step_progress_split(&progress, sample.at_us / 1000).step_ms, 100);
}

static void a_program_may_not_tell_when_it_has_data(void **state)
{
    (void)state;
    struct tfos__cluster_step_progress progress = {0};
    struct tfos__cluster_step_sample sample = {.at_us = 5, .data_us = -1};
    live(&progress, &sample, (struct habit){10, 0, 0, 400000}, 9);
    struct tfos__cluster_step_split split =
        tfos__cluster_step_progress_split(&progress, sample.at_us / 1000);
    assert_false(split.has_data);
    assert_near(split.compute, 0.6);
}

/// Who of three nodes is waited for, whose last one has another habit.
static enum tfos__cluster_delay delay_of(struct habit others, struct habit last, int silent_ms)
{
    struct tfos__cluster_step_tally tally = {0};
    for (int number = 0; number < 3; number++) {
        struct tfos__cluster_step_progress progress = {0};
        struct tfos__cluster_step_sample sample = {.at_us = 9};
        live(&progress, &sample, number == 2 ? last : others, 9);
        struct tfos__cluster_step_split split = tfos__cluster_step_progress_split(
            &progress, sample.at_us / 1000 + (number == 2 ? silent_ms : 0));
        tfos__cluster_step_tally_add(&tally, number, &split);
    }
    enum tfos__cluster_delay delay = tfos__cluster_step_tally_delay(&tally);
    if (delay != TFOS__DELAY_NONE)
        assert_int_equal(tally.last, 2);
    return delay;
}

static void the_one_that_waits_least_is_waited_for(void **state)
{
    (void)state;
    struct habit waiting = {10, 0, 100000, 400000};
    assert_int_equal(delay_of(waiting, (struct habit){10, 390000, 100000, 10000}, 0),
                     TFOS__DELAY_DATA);
    assert_int_equal(delay_of(waiting, (struct habit){10, 0, 100000, 10000}, 0),
                     TFOS__DELAY_COMPUTE);
    // All wait for data, and one computes longer as well.
    struct habit fed_slowly = {10, 300000, 0, 400000};
    assert_int_equal(delay_of(fed_slowly, (struct habit){10, 300000, 0, 0}, 0),
                     TFOS__DELAY_COMPUTE);
    assert_int_equal(delay_of(waiting, waiting, 0), TFOS__DELAY_NONE);
    assert_int_equal(delay_of(waiting, (struct habit){10, 0, 100000, 350000}, 0), TFOS__DELAY_NONE);
    assert_int_equal(delay_of(waiting, waiting, 2 * TFOS__STEP_SILENCE_MS), TFOS__DELAY_SILENT);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(nothing_is_known_of_one_moment),
    cmocka_unit_test(a_step_is_split),
    cmocka_unit_test(only_the_last_seconds_count),
    cmocka_unit_test(who_has_taken_its_last_step_is_left_out),
    cmocka_unit_test(long_steps_are_told_from_some_of_them),
    cmocka_unit_test(counters_that_begin_anew_are_another_trainer_s),
    cmocka_unit_test(a_program_may_not_tell_when_it_has_data),
    cmocka_unit_test(the_one_that_waits_least_is_waited_for),
};

TEST_MAIN(cases)
