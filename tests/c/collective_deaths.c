// SPDX-License-Identifier: Apache-2.0
// Ranks that die, stop, leave or are late: the others hear of it at once, and who it was.
#include <signal.h>

#include "collective_ranks.h"

// ---- ranks that die

enum moment { BEFORE, WITHIN, BETWEEN, MOMENTS };

static void *die_while_allocating(void *context, const int64_t *counts, int64_t total)
{
    (void)context;
    (void)counts;
    (void)total;
    raise(SIGKILL);
    return NULL;
}

static void *allocate_little(void *context, const int64_t *counts, int64_t total)
{
    (void)counts;
    expect((struct player *)context, total == 3000000);
    return malloc((size_t)total);
}

static void play_death(struct player *player)
{
    static unsigned char data[1000000];
    int victim = player->scene->argument / MOMENTS;
    enum moment moment = player->scene->argument % MOMENTS;
    char name[64];
    bool is_victim = player->rank == victim;
    if (moment == BETWEEN)
        for (int i = 0; i < 3; i++)
            expect_done(player, reduce(player, "before", 100000));
    atomic_fetch_add(&player->board->marks[0], 1);
    await_mark(player, 0, player->scene->size); // none is still in an operation
    if (is_victim && moment != WITHIN)
        raise(SIGKILL);
    enum tfos_status status = tfos_collective_all_gather(
        player->group, "rows", data, sizeof(data), TFOS_DTYPE_UINT8,
        is_victim ? die_while_allocating : allocate_little, player, &player->err);
    // Who reached the others' data before the death has it.
    if (moment == WITHIN && status == TFOS_OK)
        status = reduce(player, "next", 10);
    expect(player, note(player, status) == TFOS_CLOSED);
    snprintf(name, sizeof(name), "rank %d (127.0.0.1, pid ", victim);
    expect_text(player, name);
    expect_text(player, "has ended");
    expect(player, reduce(player, "after", 10) == TFOS_CLOSED);
    expect_text(player, "all-reduce \"after\": ");
    expect_text(player, name);
    _exit(0); // what allocate_little() gave is lost
}

static void let_die(enum way way)
{
    for (int victim = 0; victim < 3; victim++)
        for (enum moment moment = BEFORE; moment < MOMENTS; moment++) {
            struct scene scene = {.size = 3,
                                  .play = play_death,
                                  .argument = victim * MOMENTS + (int)moment,
                                  .options.silence_timeout_ms = PATIENCE_MS};
            set_way(&scene, way);
            start_ranks(&scene);
            int status = await_rank(&scene, victim);
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            end_ranks(&scene);
        }
}

static void s46_the_death_of_any_rank_ends_all_in_shared_memory(void **state)
{
    (void)state;
    let_die(SHARED);
}

static void s46_the_death_of_any_rank_ends_all_over_tls(void **state)
{
    (void)state;
    let_die(TLS);
}

static void s46_the_death_of_any_rank_ends_all_over_tcp(void **state)
{
    (void)state;
    let_die(TRUSTED);
}

static void s46_the_death_of_any_rank_ends_all_on_two_hosts(void **state)
{
    (void)state;
    let_die(TWO_HOSTS);
}

// ---- ranks that stop

static void *give_room(void *context, const int64_t *counts, int64_t total)
{
    static unsigned char room[3 * 1000];
    (void)context;
    (void)counts;
    return total <= (int64_t)sizeof(room) ? room : NULL;
}

static void *stop_while_allocating(void *context, const int64_t *counts, int64_t total)
{
    raise(SIGSTOP);
    return give_room(context, counts, total);
}

static void play_stop(struct player *player)
{
    static const unsigned char data[1000];
    int victim = player->scene->argument / MOMENTS;
    enum moment moment = player->scene->argument % MOMENTS;
    bool is_victim = player->rank == victim;
    char name[64];
    snprintf(name, sizeof(name), "rank %d (127.0.0.1, pid ", victim);
    if (moment == BETWEEN)
        expect_done(player, reduce(player, "before", 1000));
    if (is_victim && moment != WITHIN)
        raise(SIGSTOP);
    // Who was stopped finds that the others have come, and hears later that they have given up.
    enum tfos_status status = tfos_collective_all_gather(
        player->group, "rows", data, sizeof(data), TFOS_DTYPE_UINT8,
        is_victim && moment == WITHIN ? stop_while_allocating : give_room, NULL, &player->err);
    for (int i = 0; i < 2 && status == TFOS_OK; i++)
        status = tfos_collective_barrier(player->group, "stop", &player->err);
    expect(player, note(player, status) == TFOS_CLOSED);
    if (!is_victim) {
        expect_text(player, name);
        expect_text(player, "has not been heard of for ");
    }
}

/// All at the same time, since each takes as long as a rank may be silent.
static void stop_each(enum way way)
{
    struct scene scenes[3 * MOMENTS];
    for (int number = 0; number < 3 * MOMENTS; number++) {
        scenes[number] = (struct scene){
            .size = 3, .play = play_stop, .argument = number, .options.silence_timeout_ms = 3000};
        set_way(&scenes[number], way);
        start_ranks(&scenes[number]);
    }
    for (int number = 0; number < 3 * MOMENTS; number++) {
        struct scene *scene = &scenes[number];
        int victim = number / MOMENTS, status, statuses[3] = {0};
        assert_int_equal(waitpid(scene->pids[victim], &status, WUNTRACED), scene->pids[victim]);
        assert_true(WIFSTOPPED(status));
        for (int rank = 0; rank < 3; rank++)
            if (rank != victim)
                statuses[rank] = await_rank(scene, rank);
        kill(scene->pids[victim], SIGCONT);
        for (int rank = 0; rank < 3; rank++)
            check_rank(scene, rank, statuses[rank]);
        end_ranks(scene);
    }
}

static void s46_any_rank_that_is_stopped_is_named(void **state)
{
    (void)state;
    stop_each(SHARED);
}

static void s46_any_rank_that_is_stopped_is_named_over_tcp(void **state)
{
    (void)state;
    stop_each(TRUSTED);
}

// ---- ranks that leave, or are late

static void play_leave(struct player *player)
{
    for (int i = 0; i < 5; i++)
        expect_done(player, reduce(player, "last", 100001));
    if (player->rank == player->scene->argument)
        return;
    char name[64];
    snprintf(name, sizeof(name), "rank %d (127.0.0.1, pid ", player->scene->argument);
    expect(player, reduce(player, "more", 10) == TFOS_CLOSED);
    expect_text(player, name);
    expect_text(player, "has closed the group");
}

static void s46_who_closes_fails_only_later_operations(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++)
        for (int rank = 0; rank < 3; rank++) {
            struct scene scene = {.size = 3, .play = play_leave, .argument = rank};
            set_way(&scene, way);
            play_scene(&scene);
        }
}

static void play_late(struct player *player)
{
    expect_done(player, reduce(player, "before", 10));
    if (player->rank == player->scene->argument)
        await_mark(player, 0, player->scene->size - 1);
    // The late one finds that the others had come, and hears later that they have given up.
    enum tfos_status status = TFOS_OK;
    for (int i = 0; i < 2 && status == TFOS_OK; i++)
        status = tfos_collective_barrier(player->group, "late", &player->err);
    expect(player, note(player, status) == TFOS_TIMEOUT);
    char name[64];
    snprintf(name, sizeof(name), "rank %d (127.0.0.1, pid ", player->scene->argument);
    expect_text(player, name);
    atomic_fetch_add(&player->board->marks[0], 1);
}

static void s46_a_rank_that_lives_but_does_not_come_is_named(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++) {
        struct scene scenes[3];
        for (int late = 0; late < 3; late++) {
            scenes[late] = (struct scene){.size = 3,
                                          .play = play_late,
                                          .argument = late,
                                          .options.stall_timeout_ms = 700,
                                          .options.silence_timeout_ms = PATIENCE_MS};
            set_way(&scenes[late], way);
            start_ranks(&scenes[late]);
        }
        for (int late = 0; late < 3; late++)
            end_ranks(&scenes[late]);
    }
}

/// Each step takes one rank longer than the others.
static void play_straggler(struct player *player)
{
    struct tfos_collective_figures figures;
    int64_t deadline = tfos__deadline(PATIENCE_MS);
    for (bool is_over = false; !is_over;) {
        if (player->rank == player->scene->argument)
            poll(NULL, 0, 20);
        tfos_collective_get_figures(player->group, &figures);
        int64_t told = figures.last_rank == player->scene->argument && player->rank == 0;
        struct tfos_collective_span span = {&told, 1};
        expect_done(player,
                    tfos_collective_all_reduce(player->group, "step", &span, 1, TFOS_DTYPE_INT64,
                                               TFOS_REDUCE_MAX, &player->err));
        is_over = told > 0;
        expect(player, tfos__remaining_ms(deadline) > 0);
    }
}

static void s46_a_straggler_is_named(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++) {
        struct scene scene = {
            .size = 3, .play = play_straggler, .argument = 2, .options.silence_timeout_ms = 3000};
        set_way(&scene, way);
        play_scene(&scene);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s46_the_death_of_any_rank_ends_all_in_shared_memory),
    cmocka_unit_test(s46_the_death_of_any_rank_ends_all_over_tls),
    cmocka_unit_test(s46_the_death_of_any_rank_ends_all_over_tcp),
    cmocka_unit_test(s46_the_death_of_any_rank_ends_all_on_two_hosts),
    cmocka_unit_test(s46_any_rank_that_is_stopped_is_named),
    cmocka_unit_test(s46_any_rank_that_is_stopped_is_named_over_tcp),
    cmocka_unit_test(s46_who_closes_fails_only_later_operations),
    cmocka_unit_test(s46_a_rank_that_lives_but_does_not_come_is_named),
    cmocka_unit_test(s46_a_straggler_is_named),
};

TEST_MAIN(cases)
