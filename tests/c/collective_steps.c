// SPDX-License-Identifier: Apache-2.0
// What a group tells of training steps: how many there were, for how long they waited for data, and
// for the other ranks, also while they wait.
#include <pthread.h>

#include "collective/step_clock.h"
#include "collective_ranks.h"

#define MS 1000

/// A clock and the time.
struct scale {
    struct tfos__collective_step_clock clock;
    int64_t now_us;
};

static void mark_after(struct scale *scale, int64_t passed_us, enum tfos_collective_mark mark)
{
    scale->now_us += passed_us;
    tfos__collective_step_clock_mark(&scale->clock, mark, scale->now_us);
}

static int64_t waited(const struct scale *scale)
{
    return tfos__collective_step_clock_waited_us(&scale->clock, scale->now_us);
}

static void dispatch_is_no_wait(void **state)
{
    (void)state;
    struct scale scale = {.now_us = 5};
    assert_int_equal(waited(&scale), -1);
    for (int step = 0; step < 100; step++) {
        mark_after(&scale, 3 * MS, TFOS_COLLECTIVE_STEPS_BEGIN);
        // The first one is compiled, which is no wait either.
        mark_after(&scale, step == 0 ? 900 * MS : 200, TFOS_COLLECTIVE_STEP_HAS_DATA);
        mark_after(&scale, 8 * MS, TFOS_COLLECTIVE_STEP_GRADIENTS);
        mark_after(&scale, 1 * MS, TFOS_COLLECTIVE_STEPS_END);
    }
    assert_int_equal(tfos__collective_step_clock_count(&scale.clock), 100);
    assert_int_equal(waited(&scale), 0);
}

static void waits_for_data_add_up(void **state)
{
    (void)state;
    struct scale scale = {.now_us = 5};
    for (int step = 0; step < 11; step++) {
        mark_after(&scale, 3 * MS, TFOS_COLLECTIVE_STEPS_BEGIN);
        mark_after(&scale, step == 0 ? 200 : 5200, TFOS_COLLECTIVE_STEP_HAS_DATA);
        mark_after(&scale, 8 * MS, TFOS_COLLECTIVE_STEPS_END);
    }
    assert_int_equal(waited(&scale), 50 * MS);
    // One that continues counts until now, and until its end, if no data comes.
    mark_after(&scale, 0, TFOS_COLLECTIVE_STEPS_BEGIN);
    scale.now_us += 10200;
    assert_int_equal(waited(&scale), 60 * MS);
    mark_after(&scale, 10 * MS, TFOS_COLLECTIVE_STEPS_END);
    assert_int_equal(waited(&scale), 70 * MS);
    scale.now_us += 1000 * MS;
    assert_int_equal(waited(&scale), 70 * MS);
}

static void what_a_step_asks_for_is_waited_for_from_then_on(void **state)
{
    (void)state;
    struct scale scale = {.now_us = 5};
    for (int step = 0; step < 10; step++) { // also the least such time is a wait
        mark_after(&scale, 8 * MS, TFOS_COLLECTIVE_STEP_WANTS_DATA);
        mark_after(&scale, 5 * MS, TFOS_COLLECTIVE_STEP_HAS_DATA);
    }
    assert_int_equal(tfos__collective_step_clock_count(&scale.clock), 10);
    assert_int_equal(waited(&scale), 50 * MS);
    mark_after(&scale, 8 * MS, TFOS_COLLECTIVE_STEP_WANTS_DATA);
    scale.now_us += 2 * MS;
    assert_int_equal(waited(&scale), 52 * MS);
    mark_after(&scale, 1 * MS, TFOS_COLLECTIVE_STEPS_END); // there is no more
    scale.now_us += 1000 * MS;
    assert_int_equal(waited(&scale), 53 * MS);
}

static void steps_of_one_call_wait_from_the_exchange_on(void **state)
{
    (void)state;
    struct scale scale = {.now_us = 5};
    for (int call = 0; call < 4; call++) {
        mark_after(&scale, 1 * MS, TFOS_COLLECTIVE_STEPS_BEGIN);
        for (int step = 0; step < 5; step++) {
            mark_after(&scale, call == 3 && step == 2 ? 7100 : 100, TFOS_COLLECTIVE_STEP_HAS_DATA);
            scale.now_us += 20 * MS;
            scale.clock.operated_us = scale.now_us;
        }
        mark_after(&scale, 100, TFOS_COLLECTIVE_STEPS_END);
    }
    assert_int_equal(tfos__collective_step_clock_count(&scale.clock), 20);
    assert_int_equal(waited(&scale), 7 * MS);
}

static void programs_without_marks_are_counted_by_gradients(void **state)
{
    (void)state;
    struct scale scale = {.now_us = 5};
    for (int step = 0; step < 7; step++)
        mark_after(&scale, 3 * MS, TFOS_COLLECTIVE_STEP_GRADIENTS);
    assert_int_equal(tfos__collective_step_clock_count(&scale.clock), 7);
    assert_int_equal(waited(&scale), -1);
    // With data in hand there is nothing to wait for.
    mark_after(&scale, 1000 * MS, TFOS_COLLECTIVE_STEP_HAS_DATA);
    assert_int_equal(tfos__collective_step_clock_count(&scale.clock), 1);
    assert_int_equal(waited(&scale), 0);
}

static void *call_barrier(void *argument)
{
    struct player *player = argument;
    expect_done(player, tfos_collective_barrier(player->group, "step", &player->err));
    return NULL;
}

/// Rank 1 comes once rank 0 has seen that it waits.
static void play_wait(struct player *player)
{
    struct tfos_collective_figures figures = {0}, after;
    pthread_t thread;
    int64_t deadline = tfos__deadline(PATIENCE_MS);
    bool is_late = player->rank == 1;
    while (is_late && atomic_load(&player->board->marks[0]) == 0 &&
           tfos__remaining_ms(deadline) > 0)
        poll(NULL, 0, 1);
    tfos_collective_mark_step(player->group, TFOS_COLLECTIVE_STEPS_BEGIN);
    tfos_collective_mark_step(player->group, TFOS_COLLECTIVE_STEP_HAS_DATA);
    expect(player, pthread_create(&thread, NULL, call_barrier, player) == 0);
    while (!is_late && figures.wait_us < 20 * MS && tfos__remaining_ms(deadline) > 0)
        tfos_collective_get_figures(player->group, &figures);
    expect(player, is_late || (figures.wait_us >= 20 * MS && figures.operation_count == 0 &&
                               figures.duration_us == figures.wait_us));
    atomic_store(&player->board->marks[0], 1);
    pthread_join(thread, NULL);
    tfos_collective_mark_step(player->group, TFOS_COLLECTIVE_STEPS_END);
    tfos_collective_get_figures(player->group, &after);
    expect(player, after.operation_count == 1 && after.wait_us >= figures.wait_us &&
                       after.duration_us >= after.wait_us);
    expect(player, after.step_count == 1 && after.data_us == 0);
}

static void s46_waits_are_told_while_they_last(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++) {
        struct scene scene = {.size = 2, .play = play_wait, .options.silence_timeout_ms = 3000};
        set_way(&scene, way);
        play_scene(&scene);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(dispatch_is_no_wait),
    cmocka_unit_test(waits_for_data_add_up),
    cmocka_unit_test(what_a_step_asks_for_is_waited_for_from_then_on),
    cmocka_unit_test(steps_of_one_call_wait_from_the_exchange_on),
    cmocka_unit_test(programs_without_marks_are_counted_by_gradients),
    cmocka_unit_test(s46_waits_are_told_while_they_last),
};

TEST_MAIN(cases)
