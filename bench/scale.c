// SPDX-License-Identifier: Apache-2.0
// What an all-reduce over the ring of TCP takes with 2 to 16 ranks, told beforehand from a latency
// and a bandwidth: that of a hop, by two ranks that reduce 4 bytes, and that from rank to rank, by
// as many ranks as the ring has, since they share this machine's cores: pairs of them, all at once,
// reduce such vectors in pieces whose halves are as long as the ring's blocks. Where there are more
// ranks than cores, a hop is one between two ranks of one core: none of an idle core's wakes up.
//
//     time(n) = (2 (n - 1) turns + 1 header) hops + 2 (n - 1) / n of the vector / bandwidth
//
// On standard error, what the numbers of two ranks, each with a core, say of up to 1,024 hosts.
#include <math.h>
#include <sched.h>
#include <stdint.h>

#include "rank_processes.h"

#define ROUNDS 9
#define SMALL_REPEATS 30
#define GOAL 0.8 // of the larger of both: within 20 %

static const int64_t sizes[] = {4, 1000000, 16000000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), TINY = 0 };
static const int rank_counts[] = {2, 4, 8, 16};
enum { COUNTS = sizeof(rank_counts) / sizeof(rank_counts[0]) };

/// Medians in seconds, and the boards by which pairs open their groups; shared with the ranks.
struct shared {
    double ring[COUNTS][SIZES], pairs[COUNTS][SIZES];
    double one_core; ///< two ranks that share a core, of 4 bytes
    struct exchange_board boards[COUNTS][RANKS_MAX / 2];
};

static struct shared *shared;
static int count_index;

static double reduce_time(struct tfos_collective *group, double seconds)
{
    struct tfos_collective_span span = {&seconds, 1};
    struct tfos_error err;

    check(tfos_collective_all_reduce(group, "slowest", &span, 1, TFOS_DTYPE_FLOAT64,
                                     TFOS_REDUCE_MAX, &err),
          &err);
    return seconds;
}

// Seconds of the all-reduce of a vector in `group`, in so many pieces one after the other, of the
// slowest rank in `all`.
static double time_one(struct tfos_collective *all, struct tfos_collective *group, float *numbers,
                       int64_t size, int pieces)
{
    int64_t count = size / (int64_t)sizeof(float) / pieces;
    int repeats = size == sizes[TINY] ? SMALL_REPEATS : 1;
    struct tfos_error err;

    check(tfos_collective_barrier(all, "begin", &err), &err);
    double begin = now_s();
    for (int i = 0; i < repeats * pieces; i++) {
        struct tfos_collective_span span = {numbers + i % pieces * count, count};
        check(tfos_collective_all_reduce(group, "bench", &span, 1, TFOS_DTYPE_FLOAT32,
                                         TFOS_REDUCE_SUM, &err),
              &err);
    }
    return reduce_time(all, (now_s() - begin) / repeats);
}

static void run(struct rank_process *process)
{
    struct rank_process half = {&shared->boards[count_index][process->rank / 2], process->rank % 2,
                                2, 0};
    struct tfos_collective *ring = open_group(process, "ring", TFOS_COLLECTIVE_TCP, true);
    struct tfos_collective *pair = open_group(&half, "pair", TFOS_COLLECTIVE_TCP, true);
    float *numbers = calloc(1, (size_t)sizes[SIZES - 1]);

    if (!numbers)
        exit(1);
    for (int s = 0; s < SIZES; s++) {
        double ring_times[ROUNDS], pair_times[ROUNDS];
        int pieces = s == TINY ? 1 : process->size / 2;
        (void)time_one(ring, ring, numbers, sizes[s], 1);
        for (int round = 0; round < ROUNDS; round++) {
            ring_times[round] = time_one(ring, ring, numbers, sizes[s], 1);
            pair_times[round] = time_one(ring, pair, numbers, sizes[s], pieces);
        }
        if (process->rank == 0) {
            shared->ring[count_index][s] = median(ring_times, ROUNDS);
            shared->pairs[count_index][s] = median(pair_times, ROUNDS);
        }
    }
    tfos_collective_close(pair);
    tfos_collective_close(ring);
    free(numbers);
}

static void run_on_one_core(struct rank_process *process)
{
    cpu_set_t core;
    double times[ROUNDS];
    float number = 0;

    CPU_ZERO(&core);
    CPU_SET(0, &core);
    if (sched_setaffinity(0, sizeof(core), &core) != 0)
        exit(1);
    struct tfos_collective *pair = open_group(process, "pair", TFOS_COLLECTIVE_TCP, true);
    (void)time_one(pair, pair, &number, sizes[TINY], 1);
    for (int round = 0; round < ROUNDS; round++)
        times[round] = time_one(pair, pair, &number, sizes[TINY], 1);
    if (process->rank == 0)
        shared->one_core = median(times, ROUNDS);
    tfos_collective_close(pair);
}

struct model {
    double hop_s, bytes_per_s;
};

// With what rank_counts[count] ranks have: a hop's time, three of which a pair takes, and, in
// pairs, the bandwidth for vectors of this size.
static struct model make_model(int count, int size)
{
    const double *pairs = shared->pairs[count];

    bool has_own_cores = rank_counts[count] <= sysconf(_SC_NPROCESSORS_ONLN);

    return (struct model){(has_own_cores ? shared->pairs[0][TINY] : shared->one_core) / 3,
                          (double)sizes[size] /
                              (pairs[size] - rank_counts[count] / 2 * pairs[TINY])};
}

static double tell(const struct model *model, int ranks, int64_t size)
{
    double turns = 2.0 * (ranks - 1);

    return (turns + 1) * model->hop_s + turns / ranks * (double)size / model->bytes_per_s;
}

static void compare_ring(int count, int s)
{
    const struct model model = make_model(count, s);
    char name[64];
    struct figure figure = {"scale", name, "ms, the longer", "the shorter", GOAL};
    double told = s == TINY ? (2.0 * rank_counts[count] - 1) * model.hop_s
                            : tell(&model, rank_counts[count], sizes[s]);
    double found = shared->ring[count][s];

    snprintf(name, sizeof(name), "%d ranks, %lld bytes", rank_counts[count], (long long)sizes[s]);
    fprintf(stderr, "%s: told %.3f ms, measured %.3f ms\n", name, told * 1e3, found * 1e3);
    print_line(&figure, fmax(told, found) * 1e3, fmin(told, found) * 1e3);
}

int main(void)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (count_index = 0; count_index < COUNTS; count_index++)
        run_ranks(rank_counts[count_index], run);
    run_ranks(2, run_on_one_core);
    for (int count = 0; count < COUNTS; count++)
        for (int s = 0; s < SIZES; s++)
            compare_ring(count, s);
    const struct model model = make_model(0, SIZES - 1);
    fprintf(stderr, "a hop: %.1f us; %.0f MB/s from rank to rank\n", model.hop_s * 1e6,
            model.bytes_per_s / 1e6);
    for (int ranks = 2; ranks <= 1024; ranks *= 2)
        fprintf(stderr, "%4d hosts of their own: 1 MB %.2f ms, 16 MB %.2f ms, 100 MB %.1f ms\n",
                ranks, tell(&model, ranks, 1000000) * 1e3, tell(&model, ranks, 16000000) * 1e3,
                tell(&model, ranks, 100000000) * 1e3);
    return 0;
}
