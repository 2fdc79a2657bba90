// SPDX-License-Identifier: Apache-2.0
/// Ranks of groups as processes of this machine, which exchange by a page that they share.
#ifndef TFOS_BENCH_RANK_PROCESSES_H
#define TFOS_BENCH_RANK_PROCESSES_H

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tfos/collective.h>
#include <tfos/memory.h>
#include <unistd.h>

#include "figures.h"

#define RANKS_MAX 16
#define VALUE_SIZE 1024
#define EXCHANGES 8

struct exchange_board {
    _Atomic int given[EXCHANGES];
    char values[EXCHANGES][RANKS_MAX][VALUE_SIZE];
};

struct rank_process {
    struct exchange_board *board;
    int rank, size, exchanges;
};

static inline enum tfos_status exchange_by_board(void *context, const char *name,
                                                 const char *value_json, char **values_json,
                                                 struct tfos_error *err)
{
    struct rank_process *process = context;
    struct exchange_board *board = process->board;
    int number = process->exchanges++;
    static char text[RANKS_MAX * (VALUE_SIZE + 1) + 2];
    size_t size = 0;

    (void)name;
    (void)err;
    snprintf(board->values[number][process->rank], VALUE_SIZE, "%s", value_json);
    atomic_fetch_add(&board->given[number], 1);
    while (atomic_load(&board->given[number]) < process->size)
        poll(NULL, 0, 1);
    for (int rank = 0; rank < process->size; rank++)
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%.*s", rank == 0 ? "[" : ",",
                                 VALUE_SIZE - 1, board->values[number][rank]);
    snprintf(text + size, sizeof(text) - size, "]");
    *values_json = tfos_strdup(text);
    return *values_json ? TFOS_OK : TFOS_NO_MEMORY;
}

static inline struct tfos_collective *open_group(struct rank_process *process, const char *name,
                                                 enum tfos_collective_transport transport,
                                                 bool is_trusted)
{
    struct tfos_collective_options options = {.rank = process->rank,
                                              .size = process->size,
                                              .name = name,
                                              .transport = transport,
                                              .is_trusted_network = is_trusted,
                                              .host = "127.0.0.1",
                                              .exchange = exchange_by_board,
                                              .context = process};
    struct tfos_collective *group = NULL;
    struct tfos_error err;

    check(tfos_collective_open(&options, &group, &err), &err);
    return group;
}

/// Runs `run` in `size` processes, and ends this one if one of them fails.
static inline void run_ranks(int size, void (*run)(struct rank_process *process))
{
    struct exchange_board *board =
        mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool has_failed = board == MAP_FAILED;

    fflush(NULL);
    for (int rank = 0; rank < size && !has_failed; rank++) {
        pid_t pid = fork();
        has_failed = pid < 0;
        if (pid == 0) {
            struct rank_process process = {.board = board, .rank = rank, .size = size};
            run(&process);
            fflush(NULL);
            _exit(0);
        }
    }
    for (int status; wait(&status) > 0;)
        has_failed |= status != 0;
    if (has_failed) {
        fprintf(stderr, "bench: a rank has failed\n");
        exit(1);
    }
    munmap(board, sizeof(*board));
}

#endif
