// SPDX-License-Identifier: Apache-2.0
// Groups that fail: programs that differ, ranks that die, stop, leave, are late, or hold another
// key.
#include <dirent.h>
#include <pthread.h>
#include <signal.h>

#include "base/socket.h"
#include "collective_ranks.h"

// ---- programs that differ

enum difference { NAME, KIND, DTYPE, REDUCTION, COUNT, ROOT, PARTS, DIFFERENCES };

static const char *const both[DIFFERENCES][2] = {
    {"all-reduce \"a\" (sum of 4 float32, operation 2)", "all-reduce \"b\" (sum of 4 float32"},
    {"all-reduce \"a\"", "barrier \"a\" (operation 2)"},
    {"sum of 4 float32", "sum of 4 int32"},
    {"sum of 4 float32", "max of 4 float32"},
    {"sum of 4 float32", "sum of 3 float32"},
    {"broadcast \"a\" (4 float32, from rank 0, operation 2)", "from rank 1"},
    {"reduce-scatter \"a\" (sum of 6 float32, in parts ", "reduce-scatter"},
};

static enum tfos_status call_differing(struct player *player, enum difference difference,
                                       bool is_other)
{
    float data[8] = {0}, result[8];
    struct tfos_collective_span span = {data, difference == COUNT && is_other ? 3 : 4};
    struct tfos_collective *group = player->group;
    struct tfos_error *err = &player->err;
    const int64_t parts[] = {is_other ? 1 : 2, is_other ? 3 : 2, 2};
    if (difference == KIND && is_other)
        return tfos_collective_barrier(group, "a", err);
    if (difference == ROOT)
        return tfos_collective_broadcast(group, "a", &span, 1, TFOS_DTYPE_FLOAT32, is_other, err);
    if (difference == PARTS)
        return tfos_collective_reduce_scatter(group, "a", data, parts, TFOS_DTYPE_FLOAT32,
                                              TFOS_REDUCE_SUM, result, err);
    return tfos_collective_all_reduce(
        group, difference == NAME && is_other ? "b" : "a", &span, 1,
        difference == DTYPE && is_other ? TFOS_DTYPE_INT32 : TFOS_DTYPE_FLOAT32,
        difference == REDUCTION && is_other ? TFOS_REDUCE_MAX : TFOS_REDUCE_SUM, err);
}

static void play_difference(struct player *player)
{
    enum difference difference = player->scene->argument;
    expect_done(player, reduce(player, "before", 10));
    expect(player,
           note(player, call_differing(player, difference, player->rank == 1)) == TFOS_INVALID);
    expect_text(player, "collective: workers: ");
    expect_text(player, both[difference][0]);
    expect_text(player, both[difference][1]);
    expect_text(player, "rank 1 (127.0.0.1, pid ");
    // A group that has failed stays so.
    expect(player, reduce(player, "after", 10) == TFOS_INVALID);
    expect_text(player, both[difference][1]);
}

static void differ(enum way way)
{
    for (enum difference difference = NAME; difference < DIFFERENCES; difference++) {
        struct scene scene = {.size = 3, .play = play_difference, .argument = (int)difference};
        set_way(&scene, way);
        play_scene(&scene);
    }
}

static void s46_ranks_whose_programs_differ_are_told_both_operations(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++)
        differ(way);
}

// ---- opening

static void play_nothing(struct player *player)
{
    expect_done(player, reduce(player, "numbers", 10));
}

static void give_key(struct player *player, struct tfos_collective_options *options)
{
    if (player->rank == 1)
        options->key[3] ^= 1;
}

static void s46_ranks_with_another_key_are_named(void **state)
{
    (void)state;
    struct scene scene = {
        .size = 3, .play = play_nothing, .prepare = give_key, .may_not_open = true};
    start_ranks(&scene);
    for (int rank = 0; rank < 3; rank++)
        check_rank(&scene, rank, await_rank(&scene, rank));
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(scene.board->status[rank], TFOS_DENIED);
        const char *name = rank == 1 ? "rank 0 (127.0.0.1, pid " : "rank 1 (127.0.0.1, pid ";
        assert_non_null(strstr(scene.board->messages[rank], name));
    }
}

static void give_options(struct player *player, struct tfos_collective_options *options)
{
    if (player->rank == 1)
        options->is_trusted_network = true;
}

static void s46_ranks_with_other_options_are_named(void **state)
{
    (void)state;
    struct scene scene = {
        .size = 2, .play = play_nothing, .prepare = give_options, .may_not_open = true};
    start_ranks(&scene);
    for (int rank = 0; rank < 2; rank++) {
        check_rank(&scene, rank, await_rank(&scene, rank));
        assert_int_equal(scene.board->status[rank], TFOS_INVALID);
        assert_non_null(strstr(scene.board->messages[rank], "option trusted of rank "));
    }
}

/// Stops the rank once it has reported where it is.
static enum tfos_status exchange_and_stop(void *context, const char *name, const char *value_json,
                                          char **values_json, struct tfos_error *err)
{
    enum tfos_status status = exchange_by_board(context, name, value_json, values_json, err);
    raise(SIGSTOP);
    return status;
}

static void make_absent(struct player *player, struct tfos_collective_options *options)
{
    if (player->rank == player->scene->argument)
        options->exchange = exchange_and_stop;
}

static void s46_ranks_that_are_missing_are_named(void **state)
{
    (void)state;
    struct scene scenes[3];
    for (int absent = 0; absent < 3; absent++) {
        scenes[absent] = (struct scene){.size = 3,
                                        .play = play_nothing,
                                        .prepare = make_absent,
                                        .may_not_open = true,
                                        .argument = absent,
                                        .options.open_timeout_ms = 1000};
        set_way(&scenes[absent], TLS);
        start_ranks(&scenes[absent]);
    }
    for (int absent = 0; absent < 3; absent++) {
        struct scene *scene = &scenes[absent];
        char name[64];
        snprintf(name, sizeof(name), "rank %d (127.0.0.1, pid ", absent);
        for (int rank = 0; rank < 3; rank++)
            if (rank != absent) {
                check_rank(scene, rank, await_rank(scene, rank));
                assert_int_equal(scene->board->status[rank], TFOS_TIMEOUT);
                assert_non_null(strstr(scene->board->messages[rank], name));
            }
        kill(scene->pids[absent], SIGKILL);
        await_rank(scene, absent);
    }
}

/// Connects to rank 0 as somebody who knows nothing, and stays.
static enum tfos_status exchange_and_intrude(void *context, const char *name,
                                             const char *value_json, char **values_json,
                                             struct tfos_error *err)
{
    struct player *player = context;
    enum tfos_status status = exchange_by_board(context, name, value_json, values_json, err);
    const char *address = strstr(*values_json, "\"address\":\"");
    if (!address)
        return status;
    char text[64] = "";
    sscanf(address + 11, "%63[^\"]", text);
    for (int i = 0; i < 5; i++) {
        static const char garbage[] = "\0\0\0\x10{\"type\":\"hello\"}GET / HTTP/1.1\r\n\r\n";
        int fd;
        expect_done(player,
                    tfos__socket_connect(text, TFOS__UNTIL(tfos__deadline(PATIENCE_MS)), &fd, err));
        if (i > 0)
            expect(player, write(fd, garbage, sizeof(garbage)) == sizeof(garbage));
    }
    return status;
}

static void make_intruder(struct player *player, struct tfos_collective_options *options)
{
    if (player->rank == 1)
        options->exchange = exchange_and_intrude;
}

static void s46_strangers_do_not_disturb_an_open(void **state)
{
    (void)state;
    for (enum way way = TLS; way <= TRUSTED; way++) {
        struct scene scene = {.size = 3, .play = play_nothing, .prepare = make_intruder};
        set_way(&scene, way);
        play_scene(&scene);
    }
}

// ---- one operation at a time, one process

/// Of two threads that call an operation one is refused, and lets the other rank come.
static void *call_barrier(void *argument)
{
    struct player *player = argument;
    struct tfos_error err;
    enum tfos_status status = tfos_collective_barrier(player->group, "both", &err);
    if (status == TFOS_BUSY && strstr(err.message, "another operation is under way"))
        atomic_fetch_add(&player->board->marks[0], 1);
    else if (status == TFOS_OK)
        atomic_fetch_add(&player->board->marks[1], 1);
    return NULL;
}

static void play_two_threads(struct player *player)
{
    struct tfos_collective_figures figures;
    pthread_t threads[2];
    int count = player->rank == 0 ? 2 : 1;
    if (player->rank == 1)
        await_mark(player, 0, 1);
    for (int i = 0; i < count; i++)
        expect(player, pthread_create(&threads[i], NULL, call_barrier, player) == 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    await_mark(player, 1, 2);
    expect(player, atomic_load(&player->board->marks[0]) == 1);
    tfos_collective_get_figures(player->group, &figures);
    expect(player, figures.operation_count == 1 && figures.last_rank == 1);
    expect(player, figures.duration_us >= figures.wait_us);
    tfos_collective_get_figures(player->group, &figures);
    expect(player, figures.last_rank == -1);
}

static void s46_a_second_operation_is_refused(void **state)
{
    (void)state;
    struct scene scene = {.size = 2, .play = play_two_threads};
    play_scene(&scene);
}

static void play_fork(struct player *player)
{
    int status = -1;
    expect_done(player, reduce(player, "before", 10));
    pid_t pid = fork();
    if (pid == 0) {
        struct tfos_collective *found;
        struct tfos_collective_figures figures;
        if (tfos_collective_barrier(player->group, "child", &player->err) != TFOS_INVALID ||
            !strstr(player->err.message, "was forked from"))
            _exit(1);
        if (tfos_collective_acquire(tfos_collective_number(player->group), &found, &player->err) ==
            TFOS_OK)
            tfos_collective_release(found);
        tfos_collective_get_figures(player->group, &figures);
        tfos_collective_close(player->group);
        _exit(0);
    }
    expect(player, waitpid(pid, &status, 0) == pid && status == 0);
    expect_done(player, reduce(player, "after", 10));
}

static void s46_a_forked_process_is_no_rank(void **state)
{
    (void)state;
    struct scene scene = {.size = 2, .play = play_fork};
    play_scene(&scene);
}

// ---- what is left behind

static int count_entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static bool maps_memfd(void)
{
    char line[512];
    bool is_found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps))
        is_found |= strstr(line, "tfos-collective") != NULL;
    fclose(maps);
    return is_found;
}

static int fd_count_before;

static void count_before(struct player *player, struct tfos_collective_options *options)
{
    (void)player;
    (void)options;
    fd_count_before = count_entries("/proc/self/fd");
}

static void play_leftovers(struct player *player)
{
    struct tfos_collective *found = NULL;
    int64_t number = tfos_collective_number(player->group);
    expect_done(player, reduce(player, "numbers", 100000));
    expect(player, count_entries("/proc/self/task") > 3);
    expect_done(player, tfos_collective_acquire(number, &found, &player->err));
    tfos_collective_close(player->group);
    expect(player, tfos_collective_barrier(found, "late", &player->err) == TFOS_CLOSED);
    expect_text(player, "has closed the group");
    tfos_collective_release(found);
    expect(player, tfos_collective_acquire(number, &found, &player->err) == TFOS_NOT_FOUND);
    expect(player, !maps_memfd());
    expect(player, count_entries("/proc/self/fd") == fd_count_before);
    player->group = NULL;
}

static void s46_nothing_is_left_behind(void **state)
{
    (void)state;
    for (enum way way = SHARED; way < WAYS; way++) {
        struct scene scene = {.size = 3, .play = play_leftovers, .prepare = count_before};
        set_way(&scene, way);
        play_scene(&scene);
    }
}

static void fail_memory(struct player *player, struct tfos_collective_options *options)
{
    (void)options;
    if (player->rank == 1)
        tfos__memory_fail_at(player->scene->argument);
}

static void play_after_memory(struct player *player)
{
    enum tfos_status status = reduce(player, "numbers", 10);
    tfos__memory_fail_at(0);
    // The rank that had no memory for its arguments calls it once more.
    if (status == TFOS_NO_MEMORY && player->rank == 1)
        status = reduce(player, "numbers", 10);
    // A rank may fail when the others have just opened the group.
    expect(player, status == TFOS_OK || (status == TFOS_CLOSED && player->rank == 0));
}

static void fail_each_request(enum way way)
{
    for (int n = 1; n < 32; n++) {
        struct scene scene = {.size = 2,
                              .play = play_after_memory,
                              .prepare = fail_memory,
                              .may_not_open = true,
                              .argument = n,
                              .options.open_timeout_ms = 200};
        set_way(&scene, way);
        start_ranks(&scene);
        for (int rank = 0; rank < 2; rank++)
            check_rank(&scene, rank, await_rank(&scene, rank));
    }
}

static void s46_any_request_for_memory_may_fail(void **state)
{
    (void)state;
    fail_each_request(SHARED);
}

static void s46_any_request_for_memory_may_fail_over_tcp(void **state)
{
    (void)state;
    fail_each_request(TRUSTED);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s46_ranks_whose_programs_differ_are_told_both_operations),
    cmocka_unit_test(s46_ranks_with_another_key_are_named),
    cmocka_unit_test(s46_ranks_with_other_options_are_named),
    cmocka_unit_test(s46_ranks_that_are_missing_are_named),
    cmocka_unit_test(s46_strangers_do_not_disturb_an_open),
    cmocka_unit_test(s46_a_second_operation_is_refused),
    cmocka_unit_test(s46_a_forked_process_is_no_rank),
    cmocka_unit_test(s46_nothing_is_left_behind),
    cmocka_unit_test(s46_any_request_for_memory_may_fail),
    cmocka_unit_test(s46_any_request_for_memory_may_fail_over_tcp),
};

TEST_MAIN(cases)
