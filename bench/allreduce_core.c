// SPDX-License-Identifier: Apache-2.0
// All-reduce of float32, 2 and 4 processes of this machine, over shared memory, over TCP in the
// clear and under TLS, against memcpy() by as many processes at once in the same run. A rate is the
// vector's bytes over the time of one operation, or copy.
#include <stdint.h>

#include "rank_processes.h"

#define ROUNDS 7
#define ROUND_S 0.12
#define GOAL 0.6

static const int64_t sizes[] = {1000000, 10000000, 100000000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

enum way { COPY, SHARED, TCP, TLS, WAYS };
static const char *const ways[WAYS] = {"memcpy", "shared memory", "TCP", "TLS"};

struct memory {
    float *numbers, *copy;
};

static void use(struct tfos_collective *group, struct memory *memory, int64_t size)
{
    struct tfos_collective_span span = {memory->numbers, size / (int64_t)sizeof(float)};
    struct tfos_error err;

    if (!group) {
        memcpy(memory->copy, memory->numbers, (size_t)size);
        __asm__ volatile("" : : "r"(memory->copy) : "memory");
        return;
    }
    check(tfos_collective_all_reduce(group, "bench", &span, 1, TFOS_DTYPE_FLOAT32, TFOS_REDUCE_MEAN,
                                     &err),
          &err);
}

static double reduce_one(struct tfos_collective *group, double number, enum tfos_reduction how)
{
    struct tfos_collective_span span = {&number, 1};
    struct tfos_error err;

    check(tfos_collective_all_reduce(group, "time", &span, 1, TFOS_DTYPE_FLOAT64, how, &err), &err);
    return number;
}

// Seconds of one: from when the first rank begins to when the last one ends.
static double time_one(struct tfos_collective *barrier, struct tfos_collective *group,
                       struct memory *memory, int64_t size, int64_t repeats)
{
    struct tfos_error err;

    check(tfos_collective_barrier(barrier, "begin", &err), &err);
    double begin = now_s();
    for (int64_t i = 0; i < repeats; i++)
        use(group, memory, size);
    double end = reduce_one(barrier, now_s(), TFOS_REDUCE_MAX);
    return (end - reduce_one(barrier, begin, TFOS_REDUCE_MIN)) / (double)repeats;
}

static void tell(const struct rank_process *process, double times[WAYS][ROUNDS], int64_t size)
{
    double rates[WAYS];

    for (enum way way = COPY; way < WAYS; way++)
        rates[way] = (double)size / median(times[way], ROUNDS) / 1e6;
    for (enum way way = SHARED; way < WAYS; way++) {
        char name[64];
        struct figure figure = {"allreduce_core", name, "MB/s", ways[COPY],
                                way == SHARED ? GOAL : 0};
        snprintf(name, sizeof(name), "%d processes, %d MB, %s", process->size,
                 (int)(size / 1000000), ways[way]);
        print_line(&figure, rates[way], rates[COPY]);
    }
}

static void run(struct rank_process *process)
{
    struct tfos_collective *groups[WAYS] = {
        [SHARED] = open_group(process, "shared", TFOS_COLLECTIVE_AUTO, true),
        [TCP] = open_group(process, "tcp", TFOS_COLLECTIVE_TCP, true),
        [TLS] = open_group(process, "tls", TFOS_COLLECTIVE_TCP, false),
    };
    size_t largest = (size_t)sizes[SIZES - 1];
    struct memory memory = {malloc(largest), malloc(largest)};

    if (!memory.numbers || !memory.copy)
        exit(1);
    memset(memory.numbers, 0, largest);
    memset(memory.copy, 0, largest);
    for (int s = 0; s < SIZES; s++) {
        double times[WAYS][ROUNDS];
        int64_t repeats[WAYS];
        for (enum way way = COPY; way < WAYS; way++) {
            double once = time_one(groups[SHARED], groups[way], &memory, sizes[s], 1);
            once = time_one(groups[SHARED], groups[way], &memory, sizes[s], 1);
            repeats[way] = once < ROUND_S ? (int64_t)(ROUND_S / once) : 1;
        }
        for (int round = 0; round < ROUNDS; round++)
            for (enum way way = COPY; way < WAYS; way++)
                times[way][round] =
                    time_one(groups[SHARED], groups[way], &memory, sizes[s], repeats[way]);
        if (process->rank == 0)
            tell(process, times, sizes[s]);
    }
    for (enum way way = SHARED; way < WAYS; way++)
        tfos_collective_close(groups[way]);
    free(memory.numbers);
    free(memory.copy);
}

int main(void)
{
    run_ranks(2, run);
    run_ranks(4, run);
    return 0;
}
