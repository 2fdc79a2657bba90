// SPDX-License-Identifier: Apache-2.0
// Parameters that ranks train asynchronously, in shared memory, over TCP, and both.
#include <signal.h>

#include "collective_ranks.h"

#define SMALL 5      // elements of the first span
#define LARGE 300001 // of the second: several pieces, of which the last is short
#define COUNT (SMALL + LARGE)
#define STALENESS 4

enum { AHEAD, LAST, BEHIND }; // marks: steps of rank 0, that all have pushed, steps of rank 1

static float values[COUNT];

static const struct tfos_collective_span spans[] = {{values, SMALL}, {values + SMALL, LARGE}};

static void fill(float value)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = value + (float)(i % 8);
}

static void change(float by)
{
    for (int i = 0; i < COUNT; i++)
        values[i] += by;
}

static bool are(float value)
{
    for (int i = 0; i < COUNT; i++)
        if (values[i] != value + (float)(i % 8))
            return false;
    return true;
}

static void open_parameters(struct player *player)
{
    fill(player->rank == 0 ? 1 : 100);
    expect_done(player, tfos_collective_open_parameters(player->group, "weights", spans, 2,
                                                        STALENESS, &player->err));
    expect(player, are(1)); // rank 0's
}

static enum tfos_status step(struct player *player, int64_t steps)
{
    return note(player, tfos_collective_push_pull(player->group, "weights", spans, 2, steps,
                                                  &player->err));
}

static enum tfos_status finish(struct player *player)
{
    return note(player, tfos_collective_close_parameters(player->group, "weights", spans, 2,
                                                         &player->err));
}

static void play(enum way way, int size, void (*act)(struct player *player))
{
    struct scene scene = {.size = size, .play = act, .options.has_parameters = true};
    set_way(&scene, way);
    play_scene(&scene);
}

// ---- values

/// Rank r takes 3 r + 1 steps, of which each adds its number of ranks.
static void play_sums(struct player *player)
{
    int total = 0, size = player->scene->size;
    for (int round = 0; round < 2; round++) {
        open_parameters(player);
        for (int i = 0; i < 3 * player->rank + 1; i++) {
            change((float)size);
            if (i % 2 == 1) // every second step, and what is left at the end
                expect_done(player, step(player, 2));
        }
        expect_done(player, finish(player));
        total = 0;
        for (int rank = 0; rank < size; rank++)
            total += 3 * rank + 1;
        expect(player, are((float)(1 + total)));
        expect_done(player, reduce(player, "between", 1000));
    }
}

static void s46_parameters_have_the_changes_of_all_ranks(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++)
        play(way, 4, play_sums);
    play(SHARED, 1, play_sums);
}

// ---- the bound

static void await_exactly(struct player *player, int mark, int value)
{
    await_mark(player, mark, value);
    expect(player, atomic_load(&player->board->marks[mark]) == value);
}

/// Rank 0 is as far ahead of rank 1 as it may be, and never further, whenever rank 1 looks; and goes
/// on when rank 1 has ended.
static void play_bound(struct player *player)
{
    enum { SLOW_STEPS = 6, FAST_STEPS = 40 };
    _Atomic int *marks = player->board->marks;
    open_parameters(player);
    if (player->rank == 0) {
        for (int i = 0; i < FAST_STEPS; i++) {
            int ahead = atomic_fetch_add(&marks[AHEAD], 1) + 1 - atomic_load(&marks[BEHIND]);
            expect(player, ahead <= STALENESS || atomic_load(&marks[LAST]) > 0);
            expect_done(player, step(player, 1));
        }
    } else {
        for (int i = 0; i < SLOW_STEPS; i++) {
            await_exactly(player, AHEAD, STALENESS + i);
            atomic_fetch_add(&marks[BEHIND], 1);
            expect_done(player, step(player, 1));
        }
        await_exactly(player, AHEAD, STALENESS + SLOW_STEPS);
        atomic_store(&marks[LAST], 1);
    }
    expect_done(player, finish(player));
    expect(player, atomic_load(&marks[AHEAD]) == FAST_STEPS);
}

static void s46_a_fast_rank_is_ahead_by_the_staleness_and_no_more(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++)
        play(way, 2, play_bound);
}

// ---- failures

/// Rank 1 dies when the others are held back by it, in a push or behind their last one.
static void play_death(struct player *player)
{
    enum tfos_status status = TFOS_OK;
    open_parameters(player);
    if (player->rank == 1) {
        await_mark(player, AHEAD, STALENESS);
        raise(SIGKILL);
    }
    if (player->rank == 2) // its last push is behind it
        status = finish(player);
    for (int i = 0; i < STALENESS + 1 && status == TFOS_OK; i++) {
        atomic_fetch_add(&player->board->marks[AHEAD], 1);
        status = step(player, 1);
    }
    expect(player, status == TFOS_CLOSED);
    expect_text(player, "push-pull \"weights\": rank 1 (127.0.0.1, pid ");
    expect_text(player, "has ended");
    expect(player, step(player, 1) == TFOS_CLOSED);
}

static void s46_a_rank_that_dies_between_steps_is_named(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++) {
        struct scene scene = {.size = 3,
                              .play = play_death,
                              .options.has_parameters = true,
                              .options.silence_timeout_ms = PATIENCE_MS};
        set_way(&scene, way);
        start_ranks(&scene);
        int status = await_rank(&scene, 1);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        end_ranks(&scene);
    }
}

/// Rank 1 takes no step; it waits until the others have given up.
static void play_stall(struct player *player)
{
    open_parameters(player);
    if (player->rank == 1) {
        await_mark(player, LAST, player->scene->size - 1);
        return;
    }
    if (player->rank == 0)
        atomic_store(&player->board->marks[AHEAD], 1);
    else
        await_mark(player, AHEAD, 1);
    enum tfos_status status = player->rank == 0 ? step(player, STALENESS) : finish(player);
    expect(player, note(player, status) == TFOS_TIMEOUT);
    expect_text(player, "no step for 1 s by rank 1 (127.0.0.1, pid ");
    expect_text(player, "which is at step 0");
    atomic_fetch_add(&player->board->marks[LAST], 1);
}

static void s46_a_rank_that_takes_no_step_is_named(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++) {
        struct scene scene = {.size = 3,
                              .play = play_stall,
                              .options.has_parameters = true,
                              .options.stall_timeout_ms = 1000};
        set_way(&scene, way);
        play_scene(&scene);
    }
}

static void play_refusals(struct player *player)
{
    expect(player, step(player, 1) == TFOS_INVALID);
    expect_text(player, "no parameters are open");
    open_parameters(player);
    expect(player, step(player, 0) == TFOS_INVALID);
    expect(player, step(player, STALENESS + 1) == TFOS_INVALID);
    expect_text(player, "the steps are 1 to the staleness");
    expect(player, tfos_collective_push_pull(player->group, "weights", spans, 1, 1,
                                             &player->err) == TFOS_INVALID);
    expect_text(player, "not as many elements");
    expect(player, tfos_collective_open_parameters(player->group, "weights", spans, 2, STALENESS,
                                                   &player->err) == TFOS_INVALID);
    expect_text(player, "parameters are open");
    expect_done(player, finish(player));
    // Ranks that differ fail, and do not wait for each other.
    expect(player, tfos_collective_open_parameters(player->group, "weights", spans,
                                                   2 - player->rank, STALENESS,
                                                   &player->err) == TFOS_INVALID);
    expect_text(player, "the programs of the ranks differ");
}

static void play_without(struct player *player)
{
    expect(player, tfos_collective_open_parameters(player->group, "weights", spans, 2, STALENESS,
                                                   &player->err) == TFOS_INVALID);
    expect_text(player, "the group was opened without parameters");
}

static void s46_calls_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    play(SHARED, 2, play_refusals);
    play(TLS, 2, play_refusals);
    struct scene scene = {.size = 2, .play = play_without};
    play_scene(&scene);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s46_parameters_have_the_changes_of_all_ranks),
    cmocka_unit_test(s46_a_fast_rank_is_ahead_by_the_staleness_and_no_more),
    cmocka_unit_test(s46_a_rank_that_dies_between_steps_is_named),
    cmocka_unit_test(s46_a_rank_that_takes_no_step_is_named),
    cmocka_unit_test(s46_calls_that_do_not_fit_are_refused),
};

TEST_MAIN(cases)
