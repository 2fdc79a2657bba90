// SPDX-License-Identifier: Apache-2.0
// Parameters that ranks train asynchronously, in shared memory, over TCP, and both.
#include <signal.h>

#include "collective_ranks.h"

#define SMALL 5      // elements of the first span
#define LARGE 300001 // of the second: several pieces, of which the last is short
#define COUNT (SMALL + LARGE)
#define STALENESS 4

enum { BEGUN, HOLDING, PUSHED }; // marks: steps of rank 0, pulls of rank 1, and its pushes

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

static enum tfos_status pull(struct player *player, int64_t steps)
{
    return note(player, tfos_collective_pull_parameters(player->group, "weights", spans, 2, steps,
                                                        &player->err));
}

static enum tfos_status push(struct player *player, int64_t steps)
{
    return note(player, tfos_collective_push_parameters(player->group, "weights", spans, 2, steps,
                                                        &player->err));
}

static enum tfos_status finish(struct player *player)
{
    return note(player,
                tfos_collective_close_parameters(player->group, "weights", spans, 2, &player->err));
}

static void play(enum way way, int size, void (*act)(struct player *player))
{
    struct scene scene = {.size = size, .play = act, .options.has_parameters = true};
    set_way(&scene, way);
    play_scene(&scene);
}

// ---- values

/// Rank r takes 3 r + 1 steps, of which each adds its number of ranks; two at a time, and one.
static void play_sums(struct player *player)
{
    int total = 0, size = player->scene->size;
    for (int round = 0; round < 2; round++) {
        open_parameters(player);
        for (int left = 3 * player->rank + 1, steps; left > 0; left -= steps) {
            steps = left > 2 ? 2 : left;
            expect_done(player, pull(player, 2));
            change((float)(steps * size));
            expect_done(player, push(player, steps));
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

/// Each rank changes some rows, and all have all of that at the end.
static void play_rows(struct player *player)
{
    enum { ROUNDS = 8, ROWS = 6, WIDTH = 40, STRIDE = 37003 };
    int size = player->scene->size;
    open_parameters(player);
    for (int round = 0; round < ROUNDS; round++) {
        expect_done(player, pull(player, 1));
        for (int row = 0; row < ROWS; row++) {
            int at = ((round * size + player->rank) * ROWS + row) * STRIDE % (COUNT - WIDTH + 1);
            for (int i = 0; i < WIDTH; i++)
                values[at + i] += (float)(size * (row + 1));
        }
        values[COUNT - 1] += (float)size;
        expect_done(player, push(player, 1));
    }
    expect_done(player, finish(player));
    for (int turn = 0; turn < ROUNDS * size; turn++) {
        for (int row = 0; row < ROWS; row++)
            for (int i = 0; i < WIDTH; i++)
                values[(turn * ROWS + row) * STRIDE % (COUNT - WIDTH + 1) + i] -= (float)(row + 1);
        values[COUNT - 1] -= 1;
    }
    expect(player, are(1));
}

static void s46_rows_that_change_are_exchanged(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++)
        play(way, 3, play_rows);
}

// ---- the bound

static void await_exactly(struct player *player, int mark, int value)
{
    await_mark(player, mark, value);
    expect(player, atomic_load(&player->board->marks[mark]) == value);
}

/// Rounds, in which rank 1 pulls, and pushes when rank 0 has begun as many steps as it may; rank 0
/// begins one more, which it may only then.
static void play_bound(struct player *player)
{
    enum { ROUNDS = 6 };
    _Atomic int *marks = player->board->marks;
    open_parameters(player);
    for (int round = 0; round < ROUNDS; round++) {
        int before = round * (STALENESS + 1);
        if (player->rank == 1) {
            await_exactly(player, BEGUN, before); // rank 0 has pushed all of them, or awaits us
            expect_done(player, pull(player, 1));
            atomic_fetch_add(&marks[HOLDING], 1);
            await_exactly(player, BEGUN, before + STALENESS);
            atomic_fetch_add(&marks[PUSHED], 1);
            expect_done(player, push(player, 1));
            await_exactly(player, BEGUN, before + STALENESS + 1);
            continue;
        }
        await_mark(player, HOLDING, round + 1);
        for (int i = 0; i <= STALENESS; i++) {
            expect_done(player, pull(player, 1));
            expect(player, i < STALENESS || atomic_load(&marks[PUSHED]) == round + 1);
            if (i == STALENESS) // pushed before rank 1 sees it, and pulls again
                expect_done(player, push(player, 1));
            atomic_fetch_add(&marks[BEGUN], 1);
            if (i < STALENESS)
                expect_done(player, push(player, 1));
        }
    }
    struct tfos_collective_figures figures;
    tfos_collective_get_figures(player->group, &figures);
    int pushes = player->rank == 0 ? ROUNDS * (STALENESS + 1) : ROUNDS;
    expect(player, figures.push_count == pushes && figures.pushed_steps == pushes);
    // Rank 1 pushed what was as stale as it may be, but for a push under way, and on another host
    // does not know of its last one; rank 0 pushed what was hardly stale.
    expect(player,
           figures.staleness == STALENESS &&
               (player->rank == 0 ? figures.stale_steps <= ROUNDS
                                  : figures.stale_steps <= ROUNDS * STALENESS &&
                                        figures.stale_steps >= (ROUNDS - 1) * (STALENESS - 1)));
    expect(player, figures.duration_us >= figures.wait_us && figures.wait_us >= 0);
    expect_done(player, finish(player));
    tfos_collective_get_figures(player->group, &figures);
    expect(player, figures.staleness == 0 && figures.push_count == 0);
}

static void s46_a_fast_rank_is_ahead_by_the_staleness_and_no_more(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++)
        play(way, 2, play_bound);
}

// ---- failures

/// Pulls and pushes until that fails; no more often than there may be steps.
static enum tfos_status run_ahead(struct player *player)
{
    enum tfos_status status = TFOS_OK;
    for (int i = 0; i <= STALENESS && status == TFOS_OK; i++) {
        status = pull(player, 1);
        atomic_fetch_add(&player->board->marks[BEGUN], 1);
        if (status == TFOS_OK)
            status = push(player, 1);
    }
    return status;
}

/// Rank 1 dies when the others are held back by it, before a step and at the end.
static void play_death(struct player *player)
{
    open_parameters(player);
    if (player->rank == 1) {
        expect_done(player, pull(player, 1));
        atomic_fetch_add(&player->board->marks[HOLDING], 1);
        await_mark(player, BEGUN, STALENESS);
        raise(SIGKILL);
    }
    await_mark(player, HOLDING, 1);
    enum tfos_status status = player->rank == 2 ? finish(player) : run_ahead(player);
    expect(player, status == TFOS_CLOSED);
    expect_text(player, "push-pull \"weights\": rank 1 (127.0.0.1, pid ");
    expect_text(player, "has ended");
    expect(player, reduce(player, "after", 10) == TFOS_CLOSED);
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

/// Rank 1 is in a step for ever: it waits until the others have given up.
static void play_stall(struct player *player)
{
    open_parameters(player);
    if (player->rank == 1) {
        expect_done(player, pull(player, 1));
        atomic_fetch_add(&player->board->marks[HOLDING], 1);
        await_mark(player, PUSHED, player->scene->size - 1);
        return;
    }
    await_mark(player, HOLDING, 1);
    if (player->rank == 2) // rank 0's last push is later than its end
        await_mark(player, BEGUN, STALENESS + 1);
    expect(player,
           note(player, player->rank == 0 ? run_ahead(player) : finish(player)) == TFOS_TIMEOUT);
    expect_text(player, "no step for 1 s by rank ");
    if (player->rank == 0) {
        expect_text(player, "rank 1 (127.0.0.1, pid ");
        expect_text(player, "which is at step 0");
    }
    atomic_fetch_add(&player->board->marks[PUSHED], 1);
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

/// Rank 1 waits for data within a step, and rank 0 continues without it; and waits for it again
/// later.
static void play_starving(struct player *player)
{
    struct tfos_collective_figures figures;
    open_parameters(player);
    if (player->rank == 1) {
        expect_done(player, pull(player, 1));
        expect_done(player, tfos_collective_await_rows(player->group, "rows", true, &player->err));
        atomic_fetch_add(&player->board->marks[HOLDING], 1);
        await_mark(player, BEGUN, 2 * (STALENESS + 1));
        expect_done(player, tfos_collective_await_rows(player->group, "rows", false, &player->err));
        tfos_collective_get_figures(player->group, &figures);
        expect(player, figures.step_count == 1 && figures.data_us > 100000);
        expect_done(player, push(player, 1));
    } else {
        await_mark(player, HOLDING, 1);
        expect_done(player, run_ahead(player));
        expect_done(player, run_ahead(player));
    }
    expect_done(player, finish(player));
}

static void s46_a_rank_without_rows_holds_nobody_back(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++)
        play(way, 2, play_starving);
}

static void play_refusals(struct player *player)
{
    expect_done(player, tfos_collective_await_rows(player->group, "rows", true, &player->err));
    expect(player, pull(player, 1) == TFOS_INVALID);
    expect_text(player, "no parameters are open");
    open_parameters(player);
    expect(player, pull(player, 0) == TFOS_INVALID);
    expect(player, pull(player, STALENESS + 1) == TFOS_INVALID);
    expect_text(player, "there are more steps than the staleness, or too few");
    expect(player, push(player, 1) == TFOS_INVALID);
    expect_text(player, "pulls and pushes come in turns");
    expect_done(player, pull(player, 1));
    expect_done(player, push(player, 0));
    expect(player, tfos_collective_pull_parameters(player->group, "weights", spans, 1, 1,
                                                   &player->err) == TFOS_INVALID);
    expect_text(player, "not as many elements");
    expect(player, tfos_collective_open_parameters(player->group, "weights", spans, 2, STALENESS,
                                                   &player->err) == TFOS_INVALID);
    expect_text(player, "parameters are open");
    expect_done(player, finish(player));
    // Ranks that differ fail, and do not wait for each other.
    expect(player,
           tfos_collective_open_parameters(player->group, "weights", spans, 2 - player->rank,
                                           STALENESS, &player->err) == TFOS_INVALID);
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
    cmocka_unit_test(s46_rows_that_change_are_exchanged),
    cmocka_unit_test(s46_a_fast_rank_is_ahead_by_the_staleness_and_no_more),
    cmocka_unit_test(s46_a_rank_that_dies_between_steps_is_named),
    cmocka_unit_test(s46_a_rank_that_takes_no_step_is_named),
    cmocka_unit_test(s46_a_rank_without_rows_holds_nobody_back),
    cmocka_unit_test(s46_calls_that_do_not_fit_are_refused),
};

TEST_MAIN(cases)
