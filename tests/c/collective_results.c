// SPDX-License-Identifier: Apache-2.0
// What the operations compute: every dtype and reduction, any number of ranks, over shared memory,
// over TCP, and over both.
#include <math.h>

#include "collective_ranks.h"

#define COUNT_MAX 300007

static const enum tfos_dtype dtypes[] = {TFOS_DTYPE_FLOAT16, TFOS_DTYPE_BFLOAT16,
                                         TFOS_DTYPE_FLOAT32, TFOS_DTYPE_FLOAT64,
                                         TFOS_DTYPE_INT32,   TFOS_DTYPE_INT64};

static const char *const two_hosts[RANKS_MAX] = {"a", "b", "a", "b", "b", "a", "a", "b"};
static const char *const three_hosts[RANKS_MAX] = {"a", "b", "c", "c", "b", "c", "a", "b"};

// ---- elements of small whole numbers, which all dtypes hold

static size_t size_of(enum tfos_dtype dtype)
{
    switch ((int)dtype) {
    case TFOS_DTYPE_FLOAT16:
    case TFOS_DTYPE_BFLOAT16:
        return 2;
    case TFOS_DTYPE_FLOAT32:
    case TFOS_DTYPE_INT32:
        return 4;
    default:
        return 8;
    }
}

static uint16_t half_of(double number, bool is_brain)
{
    float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    if (is_brain || number == 0)
        return (uint16_t)(bits >> 16);
    uint32_t exponent = (bits >> 23 & 0xFF) - 112;
    return (uint16_t)((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3FF));
}

static void put(void *data, int64_t i, enum tfos_dtype dtype, double number)
{
    switch ((int)dtype) {
    case TFOS_DTYPE_FLOAT16:
    case TFOS_DTYPE_BFLOAT16:
        ((uint16_t *)data)[i] = half_of(number, dtype == TFOS_DTYPE_BFLOAT16);
        break;
    case TFOS_DTYPE_FLOAT32:
        ((float *)data)[i] = (float)number;
        break;
    case TFOS_DTYPE_FLOAT64:
        ((double *)data)[i] = number;
        break;
    case TFOS_DTYPE_INT32:
        ((int32_t *)data)[i] = (int32_t)number;
        break;
    default:
        ((int64_t *)data)[i] = (int64_t)number;
    }
}

/// Of rank `rank` at place `i`: -8 to 8, in quarters' multiples so that means are exact too.
static double number_of(int rank, int64_t i, int size)
{
    return (double)size * (double)((i * 7 + rank * 5 + i / 1000) % 17 - 8);
}

static double expected_of(int64_t i, int size, enum tfos_reduction reduction)
{
    double result = number_of(0, i, size);
    for (int rank = 1; rank < size; rank++) {
        double number = number_of(rank, i, size);
        if (reduction == TFOS_REDUCE_MIN)
            result = number < result ? number : result;
        else if (reduction == TFOS_REDUCE_MAX)
            result = number > result ? number : result;
        else
            result += number;
    }
    return reduction == TFOS_REDUCE_MEAN ? result / size : result;
}

static void check_equal(struct player *player, const void *data, int64_t begin, int64_t count,
                        enum tfos_dtype dtype, enum tfos_reduction reduction)
{
    double cell = 0;
    for (int64_t i = 0; i < count; i++) {
        put(&cell, 0, dtype, expected_of(begin + i, player->scene->size, reduction));
        expect(player,
               memcmp((const char *)data + (size_t)i * size_of(dtype), &cell, size_of(dtype)) == 0);
    }
}

// ---- the operations

/// With the largest count the ring has several rounds.
static void all_reduce_counts(struct player *player, enum tfos_dtype dtype,
                              enum tfos_reduction reduction)
{
    const int64_t counts[] = {0, 1, 3, 64, 1000, reduction == TFOS_REDUCE_SUM ? COUNT_MAX : 65537};
    void *data = malloc(COUNT_MAX * 8);
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        struct tfos_collective_span span = {data, counts[c]};
        for (int64_t i = 0; i < counts[c]; i++)
            put(data, i, dtype, number_of(player->rank, i, player->scene->size));
        expect_done(player, tfos_collective_all_reduce(player->group, "numbers", &span, 1, dtype,
                                                       reduction, &player->err));
        check_equal(player, data, 0, counts[c], dtype, reduction);
    }
    free(data);
}

static void play_all_reduce(struct player *player)
{
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++)
        for (enum tfos_reduction r = TFOS_REDUCE_SUM; r <= TFOS_REDUCE_MAX; r++)
            all_reduce_counts(player, dtypes[d], r);
}

/// A vector in spans, empty ones among them, of which none begins where a slice or block does.
static void play_spans(struct player *player)
{
    static const int64_t counts[] = {0, 1, 70001, 0, 13, 200000, 2, 0};
    enum { SPANS = sizeof(counts) / sizeof(counts[0]) };
    struct tfos_collective_span spans[SPANS];
    for (int round = 0; round < 3; round++) {
        int64_t begin = 0;
        for (int s = 0; s < SPANS; s++) {
            float *data = malloc((size_t)(counts[s] + 1) * sizeof(*data));
            for (int64_t i = 0; i < counts[s]; i++)
                data[i] = (float)number_of(player->rank, begin + i, player->scene->size);
            spans[s] = (struct tfos_collective_span){data, counts[s]};
            begin += counts[s];
        }
        expect_done(player,
                    tfos_collective_all_reduce(player->group, "spans", spans, SPANS,
                                               TFOS_DTYPE_FLOAT32, TFOS_REDUCE_MEAN, &player->err));
        begin = 0;
        for (int s = 0; s < SPANS; s++) {
            check_equal(player, spans[s].data, begin, counts[s], TFOS_DTYPE_FLOAT32,
                        TFOS_REDUCE_MEAN);
            begin += counts[s];
            free(spans[s].data);
        }
    }
}

static void play_broadcast(struct player *player)
{
    static const int64_t counts[] = {0, 1, 5, 1000, COUNT_MAX};
    int64_t *data = malloc(COUNT_MAX * sizeof(*data));
    for (int root = 0; root < player->scene->size; root++)
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
            struct tfos_collective_span spans[] = {
                {data, counts[c] / 3}, {data + counts[c] / 3, counts[c] - counts[c] / 3}};
            for (int64_t i = 0; i < counts[c]; i++)
                data[i] = player->rank == root ? i * 3 + root : -1;
            expect_done(player, tfos_collective_broadcast(player->group, "weights", spans, 2,
                                                          TFOS_DTYPE_INT64, root, &player->err));
            for (int64_t i = 0; i < counts[c]; i++)
                expect(player, data[i] == i * 3 + root);
        }
    free(data);
}

struct gathered {
    uint16_t *numbers;
    int64_t counts[RANKS_MAX];
    int size;
};

static void *allocate(void *context, const int64_t *counts, int64_t total)
{
    struct gathered *gathered = context;
    memcpy(gathered->counts, counts, (size_t)gathered->size * sizeof(*counts));
    return gathered->numbers = malloc((size_t)total * 2 + 1);
}

static int64_t gather_count(int rank, int round)
{
    static const int64_t counts[] = {0, 1, 70000, 0, 300001, 17, 5, 131072};
    return counts[(rank + round * 3) % 8];
}

static void play_all_gather(struct player *player)
{
    int size = player->scene->size;
    for (int round = 0; round < 5; round++) {
        int64_t own = gather_count(player->rank, round);
        uint16_t *data = malloc((size_t)own * 2 + 1);
        struct gathered gathered = {.size = size};
        for (int64_t i = 0; i < own; i++)
            data[i] = (uint16_t)(i * 5 + player->rank * 1000 + round);
        expect_done(player,
                    tfos_collective_all_gather(player->group, "rows", data, own, TFOS_DTYPE_UINT16,
                                               allocate, &gathered, &player->err));
        const uint16_t *at = gathered.numbers;
        for (int rank = 0; rank < size; rank++) {
            expect(player, gathered.counts[rank] == gather_count(rank, round));
            for (int64_t i = 0; i < gathered.counts[rank]; i++)
                expect(player, at[i] == (uint16_t)(i * 5 + rank * 1000 + round));
            at += gathered.counts[rank];
        }
        free(data);
        free(gathered.numbers);
    }
}

static void play_reduce_scatter(struct player *player)
{
    int size = player->scene->size;
    for (int round = 0; round < 4; round++) {
        int64_t counts[RANKS_MAX], total = 0, before = 0;
        for (int rank = 0; rank < size; rank++) {
            counts[rank] = gather_count(rank, round);
            before += rank < player->rank ? counts[rank] : 0;
            total += counts[rank];
        }
        double *data = malloc((size_t)(total + 1) * sizeof(*data));
        double *result = malloc((size_t)(counts[player->rank] + 1) * sizeof(*result));
        for (int64_t i = 0; i < total; i++)
            data[i] = number_of(player->rank, i, size);
        expect_done(player, tfos_collective_reduce_scatter(player->group, "parts", data, counts,
                                                           TFOS_DTYPE_FLOAT64, TFOS_REDUCE_MEAN,
                                                           result, &player->err));
        check_equal(player, result, before, counts[player->rank], TFOS_DTYPE_FLOAT64,
                    TFOS_REDUCE_MEAN);
        free(data);
        free(result);
    }
}

static void play_all(struct player *player)
{
    play_spans(player);
    play_broadcast(player);
    play_all_gather(player);
    for (int i = 0; i < 20; i++)
        expect_done(player, tfos_collective_barrier(player->group, "here", &player->err));
    play_reduce_scatter(player);
    all_reduce_counts(player, TFOS_DTYPE_FLOAT32, TFOS_REDUCE_SUM);
}

/// With each size from `least`, and then every `stride`-th, to `most`.
static void play_sizes(void (*play)(struct player *), int least, int most, int stride,
                       enum tfos_collective_transport transport, bool is_trusted,
                       const char *const *host_labels)
{
    for (int size = least; size <= most; size += stride) {
        struct scene scene = {.size = size,
                              .play = play,
                              .host_labels = host_labels,
                              .options.transport = transport,
                              .options.is_trusted_network = is_trusted};
        play_scene(&scene);
    }
}

static void s46_all_dtypes_and_reductions_by_shared_memory(void **state)
{
    (void)state;
    play_sizes(play_all_reduce, 1, 3, 1, TFOS_COLLECTIVE_AUTO, false, NULL);
}

static void s46_all_dtypes_and_reductions_by_tcp(void **state)
{
    (void)state;
    play_sizes(play_all_reduce, 1, 3, 1, TFOS_COLLECTIVE_TCP, true, NULL);
}

static void s46_all_operations_by_shared_memory(void **state)
{
    (void)state;
    play_sizes(play_all, 1, 5, 1, TFOS_COLLECTIVE_AUTO, false, NULL);
}

static void s46_all_operations_by_tls(void **state)
{
    (void)state;
    play_sizes(play_all, 2, 4, 1, TFOS_COLLECTIVE_TCP, false, NULL);
}

static void s46_all_operations_by_trusted_tcp(void **state)
{
    (void)state;
    play_sizes(play_all, 2, 5, 1, TFOS_COLLECTIVE_TCP, true, NULL);
}

static void s46_all_operations_on_two_hosts(void **state)
{
    (void)state;
    play_sizes(play_all, 2, 5, 1, TFOS_COLLECTIVE_AUTO, false, two_hosts);
}

static void s46_all_operations_on_three_hosts(void **state)
{
    (void)state;
    play_sizes(play_all, 3, 8, 5, TFOS_COLLECTIVE_AUTO, true, three_hosts);
}

// ---- bits

/// Sums whose bits depend on the order of the addends.
static void play_bits(struct player *player)
{
    enum { COUNT = 200003 };
    struct board *board = player->board;
    float *data = malloc(COUNT * sizeof(*data));
    uint32_t state = (uint32_t)player->rank * 7919u + 1;
    uint64_t digest = 0;
    for (int i = 0; i < COUNT; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (float)(int32_t)state * (float)(1 << (state >> 8 & 15));
    }
    struct tfos_collective_span span = {data, COUNT};
    expect_done(player,
                tfos_collective_all_reduce(player->group, "bits", &span, 1, TFOS_DTYPE_FLOAT32,
                                           TFOS_REDUCE_SUM, &player->err));
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits;
        memcpy(&bits, &data[i], sizeof(bits));
        digest = (digest ^ bits) * 0x100000001B3u;
    }
    board->duration_ms[player->rank] = (int64_t)digest;
    free(data);
}

static int64_t digest_of_run(enum tfos_collective_transport transport,
                             const char *const *host_labels)
{
    struct scene scene = {.size = 5,
                          .play = play_bits,
                          .host_labels = host_labels,
                          .options.transport = transport,
                          .options.is_trusted_network = true};
    start_ranks(&scene);
    for (int rank = 0; rank < scene.size; rank++)
        check_rank(&scene, rank, await_rank(&scene, rank));
    for (int rank = 1; rank < scene.size; rank++)
        assert_true(scene.board->duration_ms[rank] == scene.board->duration_ms[0]);
    return scene.board->duration_ms[0];
}

static void s46_results_are_the_same_bits_on_all_ranks_and_in_each_run(void **state)
{
    (void)state;
    int64_t digests[3];
    for (int run = 0; run < 3; run++) {
        const int64_t again[] = {digest_of_run(TFOS_COLLECTIVE_AUTO, NULL),
                                 digest_of_run(TFOS_COLLECTIVE_TCP, NULL),
                                 digest_of_run(TFOS_COLLECTIVE_AUTO, two_hosts)};
        if (run > 0)
            assert_memory_equal(again, digests, sizeof(again));
        memcpy(digests, again, sizeof(again));
    }
}

// ---- numbers that are none

static void check_special(struct player *player, enum tfos_reduction reduction, const float *given,
                          const float *expected, int count)
{
    float data[16];
    memcpy(data, given, (size_t)count * sizeof(*data));
    struct tfos_collective_span span = {data, count};
    expect_done(player, tfos_collective_all_reduce(player->group, "special", &span, 1,
                                                   TFOS_DTYPE_FLOAT32, reduction, &player->err));
    for (int i = 0; i < count; i++)
        expect(player, isnan(expected[i]) ? isnan(data[i]) : data[i] == expected[i]);
}

/// NaN of any rank comes through; infinities are numbers.
static void play_special(struct player *player)
{
    const float given[3][4] = {{NAN, 1, INFINITY, 2}, {1, NAN, -INFINITY, 1}, {0, 3, 5, NAN}};
    const float sums[] = {NAN, NAN, NAN, NAN}, least[] = {NAN, NAN, -INFINITY, NAN},
                most[] = {NAN, NAN, INFINITY, NAN};
    const float *own = given[player->rank];
    check_special(player, TFOS_REDUCE_SUM, own, sums, 4);
    check_special(player, TFOS_REDUCE_MIN, own, least, 4);
    check_special(player, TFOS_REDUCE_MAX, own, most, 4);
    int32_t numbers[] = {INT32_MAX, -7, 7};
    struct tfos_collective_span span = {numbers, 3};
    expect_done(player,
                tfos_collective_all_reduce(player->group, "wrap", &span, 1, TFOS_DTYPE_INT32,
                                           TFOS_REDUCE_MEAN, &player->err));
    // 3 * INT32_MAX wraps to INT32_MAX - 2; means are rounded toward zero.
    expect(player, numbers[0] == (INT32_MAX - 2) / 3 && numbers[1] == -7 && numbers[2] == 7);
    int64_t signs[] = {player->rank == 0 ? -2 : -1, player->rank == 0 ? 2 : 1};
    span = (struct tfos_collective_span){signs, 2};
    expect_done(player,
                tfos_collective_all_reduce(player->group, "signs", &span, 1, TFOS_DTYPE_INT64,
                                           TFOS_REDUCE_MEAN, &player->err));
    expect(player, signs[0] == -1 && signs[1] == 1);
}

static void s46_nan_comes_through_and_integers_wrap(void **state)
{
    (void)state;
    play_sizes(play_special, 3, 3, 1, TFOS_COLLECTIVE_AUTO, false, NULL);
    play_sizes(play_special, 3, 3, 1, TFOS_COLLECTIVE_TCP, true, NULL);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s46_all_dtypes_and_reductions_by_shared_memory),
    cmocka_unit_test(s46_all_dtypes_and_reductions_by_tcp),
    cmocka_unit_test(s46_all_operations_by_shared_memory),
    cmocka_unit_test(s46_all_operations_by_tls),
    cmocka_unit_test(s46_all_operations_by_trusted_tcp),
    cmocka_unit_test(s46_all_operations_on_two_hosts),
    cmocka_unit_test(s46_all_operations_on_three_hosts),
    cmocka_unit_test(s46_results_are_the_same_bits_on_all_ranks_and_in_each_run),
    cmocka_unit_test(s46_nan_comes_through_and_integers_wrap),
};

TEST_MAIN(cases)
