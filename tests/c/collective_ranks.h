// SPDX-License-Identifier: Apache-2.0
/// Ranks of a group as processes that are forked before they open it. They exchange by a page that
/// they share, on which they also say how they fared.
#ifndef TFOS_TEST_COLLECTIVE_RANKS_H
#define TFOS_TEST_COLLECTIVE_RANKS_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tfos/collective.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "collective/collective.h"
#include "harness.h"

#define RANKS_MAX 16
#define STAGES 4
#define TEXT_SIZE 2048
#define PATIENCE_MS 30000
#define MARKS 8
#define GIVEN_UP (MARKS - 1) ///< a rank could not open: others need not wait for what it exchanges

struct board {
    _Atomic int given[STAGES];
    char values[STAGES][RANKS_MAX][TEXT_SIZE];
    _Atomic int marks[MARKS]; ///< a test's own
    int status[RANKS_MAX];    ///< what the rank's last call gave
    int64_t duration_ms[RANKS_MAX];
    char messages[RANKS_MAX][TEXT_SIZE];
    int fault_lines[RANKS_MAX]; ///< where an expectation of a rank failed; 0: nowhere
    char faults[RANKS_MAX][TEXT_SIZE];
};

struct scene;

/// A rank.
struct player {
    struct scene *scene;
    struct board *board;
    int rank, stage;
    struct tfos_collective *group;
    struct tfos_error err;
};

struct scene {
    int size;
    struct tfos_collective_options options; ///< what all ranks have in common
    const char *const *host_labels;         ///< by rank; NULL: none
    void (*play)(struct player *player);    ///< in each rank's process, with the group open
    void (*prepare)(struct player *player, struct tfos_collective_options *options);
    bool may_not_open; ///< play() is called with whatever open() gave in board->status
    struct board *board;
    pid_t pids[RANKS_MAX];
    int argument; ///< a test's own
};

/// For a rank's process: notes the first expectation that failed, and ends it.
#define expect(player, condition)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (player)->board->fault_lines[(player)->rank] = __LINE__;                               \
            snprintf((player)->board->faults[(player)->rank], TEXT_SIZE, "%s (%.1000s)",           \
                     #condition, (player)->err.message);                                           \
            _exit(3);                                                                              \
        }                                                                                          \
    } while (0)

#define expect_done(player, call) expect(player, (call) == TFOS_OK)

static inline enum tfos_status exchange_by_board(void *context, const char *name,
                                                 const char *value_json, char **values_json,
                                                 struct tfos_error *err)
{
    struct player *player = context;
    struct board *board = player->board;
    int stage = player->stage++, size = player->scene->size;
    int64_t deadline = tfos__deadline(PATIENCE_MS);
    char *text = calloc(RANKS_MAX + 1, TEXT_SIZE);

    (void)name;
    snprintf(board->values[stage][player->rank], TEXT_SIZE, "%s", value_json);
    atomic_fetch_add(&board->given[stage], 1);
    while (atomic_load(&board->given[stage]) < size) {
        bool is_given_up = atomic_load(&board->marks[GIVEN_UP]) > 0;
        if (atomic_load(&board->given[stage]) < size &&
            (is_given_up || tfos__remaining_ms(deadline) == 0)) {
            snprintf(err->message, sizeof(err->message), "not all have exchanged");
            free(text);
            return TFOS_TIMEOUT;
        }
        poll(NULL, 0, 1);
    }
    for (int rank = 0; rank < size; rank++)
        snprintf(text + strlen(text), TEXT_SIZE + 8, "%s%s", rank == 0 ? "[" : ",",
                 board->values[stage][rank]);
    snprintf(text + strlen(text), 2, "]");
    *values_json = text;
    return TFOS_OK;
}

/// Notes the outcome of a call.
static inline enum tfos_status note(struct player *player, enum tfos_status status)
{
    player->board->status[player->rank] = status;
    snprintf(player->board->messages[player->rank], TEXT_SIZE, "%.2000s",
             status < 0 ? player->err.message : "");
    return status;
}

static inline void await_mark(struct player *player, int mark, int value)
{
    int64_t deadline = tfos__deadline(PATIENCE_MS);
    while (atomic_load(&player->board->marks[mark]) < value) {
        expect(player, tfos__remaining_ms(deadline) > 0);
        poll(NULL, 0, 1);
    }
}

static inline void run_rank(struct scene *scene, int rank)
{
    struct player player = {.scene = scene, .board = scene->board, .rank = rank};
    struct tfos_collective_options options = scene->options;
    options.rank = rank;
    options.size = scene->size;
    options.exchange = exchange_by_board;
    options.context = &player;
    if (!options.name)
        options.name = "workers";
    if (!options.host)
        options.host = "127.0.0.1";
    if (scene->prepare)
        scene->prepare(&player, &options);
    enum tfos_status status = tfos__collective_open(
        &options, scene->host_labels ? scene->host_labels[rank] : NULL, &player.group, &player.err);
    note(&player, status);
    if (status != TFOS_OK)
        atomic_store(&player.board->marks[GIVEN_UP], 1);
    if (scene->may_not_open && status != TFOS_OK)
        _exit(0);
    expect(&player, status == TFOS_OK);
    scene->play(&player);
    tfos_collective_close(player.group);
    exit(0); // the leak checker looks
}

static inline void start_ranks(struct scene *scene)
{
    scene->board = mmap(NULL, sizeof(*scene->board), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(scene->board != MAP_FAILED);
    fflush(NULL);
    for (int rank = 0; rank < scene->size; rank++) {
        scene->pids[rank] = fork();
        assert_true(scene->pids[rank] >= 0);
        if (scene->pids[rank] == 0)
            run_rank(scene, rank);
    }
}

/// Waits for a rank's end; its wait status.
static inline int await_rank(struct scene *scene, int rank)
{
    int status = -1;
    assert_int_equal(waitpid(scene->pids[rank], &status, 0), scene->pids[rank]);
    scene->pids[rank] = 0;
    return status;
}

static inline void check_rank(const struct scene *scene, int rank, int status)
{
    if (scene->board->fault_lines[rank] != 0)
        fail_msg("rank %d: line %d: %s", rank, scene->board->fault_lines[rank],
                 scene->board->faults[rank]);
    if (status != 0)
        fail_msg("rank %d ended with wait status %d: %s", rank, status,
                 scene->board->messages[rank]);
}

/// Waits for all that have not been waited for; each must have met its expectations.
static inline void end_ranks(struct scene *scene)
{
    int statuses[RANKS_MAX] = {0};
    for (int rank = 0; rank < scene->size; rank++)
        if (scene->pids[rank] != 0)
            statuses[rank] = await_rank(scene, rank);
    for (int rank = 0; rank < scene->size; rank++)
        check_rank(scene, rank, statuses[rank]);
    munmap(scene->board, sizeof(*scene->board));
}

static inline void play_scene(struct scene *scene)
{
    start_ranks(scene);
    end_ranks(scene);
}

// ---- by which the ranks reach each other

enum way { SHARED, TLS, TRUSTED, TWO_HOSTS, WAYS };

static const char *const two_host_labels[RANKS_MAX] = {"a", "b", "a", "b"};

static inline void set_way(struct scene *scene, enum way way)
{
    scene->options.transport =
        way == TLS || way == TRUSTED ? TFOS_COLLECTIVE_TCP : TFOS_COLLECTIVE_AUTO;
    scene->options.is_trusted_network = way == TRUSTED;
    scene->host_labels = way == TWO_HOSTS ? two_host_labels : NULL;
}

static inline enum tfos_status reduce(struct player *player, const char *name, int64_t count)
{
    static float numbers[400000];
    struct tfos_collective_span span = {numbers, count};
    return note(player,
                tfos_collective_all_reduce(player->group, name, &span, 1, TFOS_DTYPE_FLOAT32,
                                           TFOS_REDUCE_SUM, &player->err));
}

static inline void expect_text(struct player *player, const char *text)
{
    expect(player, strstr(player->err.message, text) != NULL);
}

#endif
