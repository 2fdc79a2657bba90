// SPDX-License-Identifier: Apache-2.0
// Operations on GPU memory, with a driver and an NCCL of the test's making (tests/gpu), which a
// rank's process loads: what is loaded is found by its name.
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <tfos/collective_gpu.h>

#include "../gpu/fake_gpu.h"
#include "collective_ranks.h"

#define COUNT 37 // elements of a vector

/// What a scene's ranks have; the argument of a scene is a sum of these.
enum {
    NO_NCCL = 1, ///< on rank 1
    NO_GPU = 2,  ///< on rank 1
    SAME_GPU = 4,
    FAULT = 8 ///< faults[argument >> FAULT_SHIFT], on rank 1
};
#define FAULT_SHIFT 4

static const char *const faults[][2] = {
    {"FAKE_NCCL", "init"},          {"FAKE_NCCL", "init in silence"},
    {"FAKE_NCCL_VERSION", "21304"}, {"TFOS_NCCL", "0"},
    {"FAKE_NCCL", "launch"},        {"FAKE_NCCL", "async"},
    {"FAKE_NCCL", "stuck"},         {"FAKE_NCCL", "die"},
    {"FAKE_NCCL", "die at once"},   {"FAKE_CUDA_FAULT", "1"},
};
enum fault { INIT, SILENT_INIT, OLD, SWITCHED, LAUNCH, ASYNC, STUCK, DIE, DIE_AT_ONCE, CUDA_FAULT };

static void *driver;

static void load(struct player *player, struct tfos_collective_options *options)
{
    int argument = player->scene->argument;
    bool is_first = player->rank == 1;
    char gpu[16];
    snprintf(gpu, sizeof(gpu), "%d", argument & SAME_GPU ? 3 : player->rank);
    setenv("FAKE_CUDA_GPU", gpu, 1);
    if (argument & FAULT && is_first)
        setenv(faults[argument >> FAULT_SHIFT][0], faults[argument >> FAULT_SHIFT][1], 1);
    options->has_gpu = !(argument & NO_GPU && is_first);
    driver = dlopen(FAKE_CUDA, RTLD_NOW);
    expect(player, driver != NULL);
    if (!(argument & NO_NCCL && is_first))
        expect(player, dlopen(FAKE_NCCL, RTLD_NOW) != NULL);
}

static void play_with(void (*play)(struct player *player), enum way way, int size, int argument)
{
    struct scene scene = {.size = size, .play = play, .prepare = load, .argument = argument};
    set_way(&scene, way);
    play_scene(&scene);
}

// ---- what operations give

static double read_element(const void *data, enum tfos_dtype dtype, int i)
{
    uint16_t half = ((const uint16_t *)data)[i];
    uint32_t bits = (uint32_t)half << 16;
    float value;
    switch (dtype) {
    case TFOS_DTYPE_INT32:
        return ((const int32_t *)data)[i];
    case TFOS_DTYPE_INT64:
        return (double)((const int64_t *)data)[i];
    case TFOS_DTYPE_FLOAT32:
        return ((const float *)data)[i];
    case TFOS_DTYPE_FLOAT64:
        return ((const double *)data)[i];
    case TFOS_DTYPE_FLOAT16:
        if (half != 0)
            bits = (uint32_t)(half & 0x8000) << 16 |
                   (((uint32_t)(half & 0x7FFF) << 13) + (UINT32_C(112) << 23));
        break;
    default:
        break;
    }
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void write_element(void *data, enum tfos_dtype dtype, int i, int value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    uint32_t rest = bits & 0x7FFFFFFF;
    switch (dtype) {
    case TFOS_DTYPE_INT32:
        ((int32_t *)data)[i] = value;
        break;
    case TFOS_DTYPE_INT64:
        ((int64_t *)data)[i] = value;
        break;
    case TFOS_DTYPE_FLOAT32:
        ((float *)data)[i] = single;
        break;
    case TFOS_DTYPE_FLOAT64:
        ((double *)data)[i] = value;
        break;
    case TFOS_DTYPE_FLOAT16:
        ((uint16_t *)data)[i] =
            (uint16_t)((bits >> 16 & 0x8000) | (rest ? (rest - (UINT32_C(112) << 23)) >> 13 : 0));
        break;
    default:
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
    }
}

/// Element i of a rank: whole numbers whose sums and means over 3 ranks are whole, too.
static int given(int rank, int i)
{
    return (i % 5 - 2) * 3 * (rank + 1);
}

static double expected(enum tfos_reduction reduction, int i)
{
    double sum = given(0, i) * 6.0, first = given(0, i), last = given(2, i);
    switch (reduction) {
    case TFOS_REDUCE_SUM:
        return sum;
    case TFOS_REDUCE_MEAN:
        return sum / 3;
    case TFOS_REDUCE_MIN:
        return first < last ? first : last;
    default:
        return first < last ? last : first;
    }
}

static const enum tfos_dtype reducible[] = {TFOS_DTYPE_INT32,   TFOS_DTYPE_INT64,
                                            TFOS_DTYPE_FLOAT16, TFOS_DTYPE_BFLOAT16,
                                            TFOS_DTYPE_FLOAT32, TFOS_DTYPE_FLOAT64};

/// One span is reduced in place, one is not, and one is empty.
static void reduce_one(struct player *player, enum tfos_dtype dtype, enum tfos_reduction reduction)
{
    static _Alignas(16) unsigned char in_place[8 * COUNT], from[8 * COUNT], to[8 * COUNT];
    const struct tfos_collective_gpu_span spans[] = {
        {FAKE_TO_GPU(in_place), FAKE_TO_GPU(in_place), COUNT},
        {NULL, NULL, 0},
        {FAKE_TO_GPU(to), FAKE_TO_GPU(from), COUNT - 1}};
    for (int i = 0; i < COUNT; i++) {
        write_element(in_place, dtype, i, given(player->rank, i));
        write_element(from, dtype, i, given(player->rank, i + 1));
    }
    expect_done(player, tfos_collective_gpu_all_reduce(player->group, "numbers", spans, 3, dtype,
                                                       reduction, NULL, &player->err));
    for (int i = 0; i < COUNT; i++) {
        expect(player, read_element(in_place, dtype, i) == expected(reduction, i));
        expect(player, i == COUNT - 1 || read_element(to, dtype, i) == expected(reduction, i + 1));
        expect(player, read_element(from, dtype, i) == given(player->rank, i + 1));
    }
}

static void scale_one(struct player *player, enum tfos_dtype dtype)
{
    static const double factors[] = {0.5, 0.25, 0};
    static double data[COUNT];
    double factor = factors[player->rank];
    const struct tfos_collective_gpu_span span = {FAKE_TO_GPU(data), FAKE_TO_GPU(data), COUNT};
    for (int i = 0; i < COUNT; i++)
        write_element(data, dtype, i, given(player->rank, i));
    if (factor == 0 && dtype == TFOS_DTYPE_FLOAT32)
        ((float *)data)[4] = NAN;
    expect_done(player, tfos_collective_gpu_all_reduce(player->group, "mean", &span, 1, dtype,
                                                       TFOS_REDUCE_SUM, &factor, &player->err));
    for (int i = 0; i < COUNT; i++)
        expect(player, read_element(data, dtype, i) == given(0, i) * 0.5 + given(1, i) * 0.25);
}

static void *give_gpu_room(void *context, const int64_t *counts, int64_t total)
{
    static unsigned char room[64];
    expect((struct player *)context, counts[0] == 2 && counts[1] == 0 && counts[2] == 3);
    memset(room, 9, sizeof(room));
    return total == 5 ? FAKE_TO_GPU(room) : NULL;
}

static void *gathered;

static void *keep_room(void *context, const int64_t *counts, int64_t total)
{
    gathered = give_gpu_room(context, counts, total);
    return gathered;
}

static void move_all(struct player *player)
{
    static const int64_t counts[] = {2, 0, 3};
    struct tfos_collective *group = player->group;
    int64_t count = counts[player->rank];
    uint16_t own[3], sent[4], got[4] = {0};
    for (int i = 0; i < 4; i++) {
        sent[i] = (uint16_t)(player->rank * 10 + i);
        own[i % 3] = (uint16_t)(player->rank * 10 + i % 3);
    }
    const struct tfos_collective_gpu_span span = {FAKE_TO_GPU(got), FAKE_TO_GPU(sent), 4};
    expect_done(player, tfos_collective_gpu_broadcast(group, "weights", &span, 1, TFOS_DTYPE_UINT16,
                                                      1, &player->err));
    for (int i = 0; i < 4; i++)
        expect(player, got[i] == 10 + i);
    expect_done(player, tfos_collective_gpu_all_gather(
                            group, "rows", count > 0 ? FAKE_TO_GPU(own) : NULL, count,
                            TFOS_DTYPE_UINT16, keep_room, player, &player->err));
    static const uint16_t all[] = {0, 1, 20, 21, 22, 0x0909};
    expect(player, memcmp(FAKE_TO_HOST(gathered), all, sizeof(all)) == 0);
}

/// What stands in the words for how the data goes.
static const char *const words[] = {
    [0] = "collective: workers: tensors in GPU memory go by NCCL 2.21.5",
    [NO_NCCL] = "through the host: rank 1 (127.0.0.1, pid ",
    [NO_GPU] = " has no GPU",
    [SAME_GPU] = "has the same GPU, and NCCL wants one for each, as rank 0 (127.0.0.1, pid "};

static void expect_route(struct player *player, const char *text)
{
    const char *route = tfos_collective_gpu_route(player->group);
    expect(player, route != NULL);
    snprintf(player->err.message, sizeof(player->err.message), "%.1000s", route);
    expect_text(player, text);
}

static void play_all(struct player *player)
{
    expect(player, tfos_collective_gpu_route(player->group) == NULL);
    for (size_t i = 0; i < sizeof(reducible) / sizeof(reducible[0]); i++)
        for (int reduction = TFOS_REDUCE_SUM; reduction <= TFOS_REDUCE_MAX; reduction++)
            reduce_one(player, reducible[i], (enum tfos_reduction)reduction);
    scale_one(player, TFOS_DTYPE_FLOAT32);
    scale_one(player, TFOS_DTYPE_FLOAT64);
    move_all(player);
    expect_done(player, reduce(player, "on the host", 100));
    expect_route(player, words[player->scene->argument]);
    if (player->scene->argument == NO_NCCL)
        expect_text(player, "libnccl.so.2 cannot be loaded");
}

static void operations_on_gpus_go_by_nccl(void **state)
{
    (void)state;
    play_with(play_all, SHARED, 3, 0);
    play_with(play_all, TRUSTED, 3, 0);
    struct scene scene = {.size = 3, .play = play_all, .prepare = load};
    set_way(&scene, TWO_HOSTS);
    scene.options.is_trusted_network = true;
    play_scene(&scene);
}

static void play_untrusted(struct player *player)
{
    reduce_one(player, TFOS_DTYPE_FLOAT32, TFOS_REDUCE_SUM);
    expect_route(player, "through the host: rank 2 (127.0.0.1, pid ");
    expect_text(player, "is on another host than others, and NCCL does not encrypt");
}

static void nccl_needs_a_trusted_network_between_hosts(void **state)
{
    (void)state;
    play_with(play_untrusted, TLS, 3, 0);
    play_with(play_untrusted, TWO_HOSTS, 3, 0);
}

static void where_nccl_cannot_be_used_they_go_through_the_host(void **state)
{
    (void)state;
    play_with(play_all, SHARED, 3, NO_NCCL);
    play_with(play_all, TRUSTED, 3, NO_GPU);
    play_with(play_all, SHARED, 3, SAME_GPU);
}

static void play_fallback(struct player *player)
{
    static const char *const reasons[] = {
        [INIT] = "NCCL: unhandled system error: Call to connect failed; NCCL_DEBUG=WARN",
        [SILENT_INIT] = "NCCL: unhandled system error: Call to connect failed; NCCL_DEBUG=WARN",
        [OLD] = "libnccl.so.2 is of version 2.13: install NCCL 2.14 or later",
        [SWITCHED] = "TFOS_NCCL is 0"};
    reduce_one(player, TFOS_DTYPE_FLOAT32, TFOS_REDUCE_SUM);
    expect_route(player, "through the host: rank 1 (127.0.0.1, pid ");
    expect_text(player, reasons[player->scene->argument >> FAULT_SHIFT]);
}

static void a_rank_that_cannot_join_keeps_the_group_from_nccl(void **state)
{
    (void)state;
    for (int fault = INIT; fault <= SWITCHED; fault++)
        play_with(play_fallback, SHARED, 3, FAULT | fault << FAULT_SHIFT);
}

static void play_late_work(struct player *player)
{
    void (*write_later)(void *to, const void *data, size_t size);
    static float data[4];
    const float late[4] = {1, 2, 3, (float)player->rank};
    const struct tfos_collective_gpu_span span = {FAKE_TO_GPU(data), FAKE_TO_GPU(data), 4};
    void *symbol = dlsym(driver, "fake_cuda_write_later");
    memcpy(&write_later, &symbol, sizeof(symbol));
    for (int i = 0; i < 2; i++) {
        write_later(data, late, sizeof(late));
        expect_done(player, tfos_collective_gpu_all_reduce(player->group, "late", &span, 1,
                                                           TFOS_DTYPE_FLOAT32, TFOS_REDUCE_SUM,
                                                           NULL, &player->err));
        expect(player, data[0] == 3 && data[2] == 9 && data[3] == 3);
    }
}

static void an_operation_waits_for_what_the_gpu_has_begun(void **state)
{
    (void)state;
    play_with(play_late_work, SHARED, 3, 0);
    play_with(play_late_work, SHARED, 3, NO_NCCL);
}

// ---- what goes wrong

static enum tfos_status reduce_on_gpu(struct player *player, const char *name)
{
    static float data[4];
    const struct tfos_collective_gpu_span span = {FAKE_TO_GPU(data), FAKE_TO_GPU(data), 4};
    return note(player,
                tfos_collective_gpu_all_reduce(player->group, name, &span, 1, TFOS_DTYPE_FLOAT32,
                                               TFOS_REDUCE_SUM, NULL, &player->err));
}

static void play_failure(struct player *player)
{
    static const struct {
        enum tfos_status status;
        const char *text;
    } outcomes[] = {
        [LAUNCH] = {TFOS_IO, "\": NCCL: internal error: Call to connect failed; NCCL_DEBUG=WARN in "
                             "the executors' environment tells more"},
        [ASYNC] = {TFOS_CLOSED, "NCCL: remote process exited or there was a network error"},
        [STUCK] = {TFOS_TIMEOUT, "nothing has moved between their hosts for 4 s"},
        [DIE] = {TFOS_CLOSED, "rank 1 (127.0.0.1, pid "},
        [DIE_AT_ONCE] = {TFOS_CLOSED, "rank 1 (127.0.0.1, pid "},
        [CUDA_FAULT] = {TFOS_IO,
                        "CUDA: what the GPU did before has failed: an illegal memory access "
                        "was encountered (error 700)"},
    };
    int fault = player->scene->argument >> FAULT_SHIFT;
    expect(player, reduce_on_gpu(player, "numbers") == outcomes[fault].status);
    expect_text(player, outcomes[fault].text);
    expect(player, reduce_on_gpu(player, "after") == outcomes[fault].status);
    expect_text(player, outcomes[fault].text);
    expect(player, reduce(player, "on the host", 10) == outcomes[fault].status);
}

static void a_failure_of_one_rank_ends_the_operation_on_all(void **state)
{
    (void)state;
    for (int fault = LAUNCH; fault <= CUDA_FAULT; fault++) {
        struct scene scene = {.size = 3,
                              .play = play_failure,
                              .prepare = load,
                              .argument = FAULT | fault << FAULT_SHIFT,
                              .options.stall_timeout_ms = fault == STUCK ? 4000 : 0,
                              .options.silence_timeout_ms = PATIENCE_MS};
        start_ranks(&scene);
        if (fault == DIE || fault == DIE_AT_ONCE) {
            int status = await_rank(&scene, 1);
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        end_ranks(&scene);
    }
}

static void play_mixed(struct player *player)
{
    expect_done(player, reduce_on_gpu(player, "before"));
    enum tfos_status status =
        player->rank == 1 ? reduce(player, "numbers", 4) : reduce_on_gpu(player, "numbers");
    expect(player, status == TFOS_INVALID);
    expect_text(player, "the programs of the ranks differ: ");
    expect_text(player, "calls all-reduce \"numbers\" (sum of 4 float32 in GPU memory, operation ");
    expect_text(player, "calls all-reduce \"numbers\" (sum of 4 float32, operation ");
}

static void tensors_in_gpu_memory_on_some_ranks_only_are_refused(void **state)
{
    (void)state;
    play_with(play_mixed, SHARED, 2, 0);
    play_with(play_mixed, TRUSTED, 2, 0);
}

static void *call_within(void *context, const int64_t *counts, int64_t total)
{
    struct player *player = context;
    static unsigned char room[3];
    (void)counts;
    (void)total;
    expect(player, reduce_on_gpu(player, "second") == TFOS_BUSY);
    expect_text(player, "\"second\": another operation on GPU memory is under way");
    return FAKE_TO_GPU(room);
}

static void play_refusals(struct player *player)
{
    struct tfos_collective *group = player->group;
    struct tfos_error *err = &player->err;
    void *(*other_context)(void);
    int (*set_context)(void *context);
    void *symbol = dlsym(driver, "fake_cuda_other_context");
    const struct tfos_collective_gpu_span without = {NULL, NULL, 1};
    unsigned char byte = 7;
    double factor = 2;
    memcpy(&other_context, &symbol, sizeof(symbol));
    symbol = dlsym(driver, "cuCtxSetCurrent");
    memcpy(&set_context, &symbol, sizeof(symbol));
    // Arguments are this rank's own affair.
    expect(player, tfos_collective_gpu_all_reduce(group, "a", &without, 1, TFOS_DTYPE_FLOAT32,
                                                  TFOS_REDUCE_SUM, NULL, err) == TFOS_INVALID);
    expect_text(player, "\"a\": there is no memory for this count");
    expect(player, tfos_collective_gpu_all_reduce(group, "a", NULL, 0, TFOS_DTYPE_INT32,
                                                  TFOS_REDUCE_SUM, &factor, err) == TFOS_INVALID);
    expect_text(player, "a factor is for sums of float32 and float64");
    expect(player, tfos_collective_gpu_broadcast(group, "a", NULL, 0, TFOS_DTYPE_INT32, 2, err) ==
                       TFOS_INVALID);
    expect_text(player, "no such root");
    expect_done(player, tfos_collective_gpu_all_gather(group, "first", FAKE_TO_GPU(&byte), 1,
                                                       TFOS_DTYPE_UINT8, call_within, player, err));
    set_context(other_context());
    expect(player, reduce_on_gpu(player, "elsewhere") == TFOS_INVALID);
    expect_text(player, "the tensors are on another GPU than those before");
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    play_with(play_refusals, SHARED, 2, 0);
}

static void drop_context(struct player *player, struct tfos_collective_options *options)
{
    load(player, options);
    setenv("FAKE_CUDA_GPU", "none", 1);
}

static void play_without_context(struct player *player)
{
    expect(player, reduce_on_gpu(player, "numbers") == TFOS_INVALID);
    expect_text(player, "the calling thread has no CUDA context");
}

static void a_thread_without_context_is_refused(void **state)
{
    (void)state;
    struct scene scene = {.size = 2, .play = play_without_context, .prepare = drop_context};
    play_scene(&scene);
}

static void play_without_driver(struct player *player)
{
    enum tfos_status status = reduce_on_gpu(player, "numbers");
    expect(player, status == TFOS_UNSUPPORTED || status == TFOS_INVALID); // a machine may have one
    expect_text(player, status == TFOS_INVALID ? "no CUDA context" : "libcuda.so.1");
}

static void a_machine_without_driver_is_told(void **state)
{
    (void)state;
    struct scene scene = {.size = 2, .play = play_without_driver};
    play_scene(&scene);
}

static void play_alone(struct player *player)
{
    static float data[4] = {1, 2, 3, 4}, to[4];
    double factor = 2;
    const struct tfos_collective_gpu_span span = {FAKE_TO_GPU(to), FAKE_TO_GPU(data), 4};
    struct tfos_collective_figures figures;
    expect_done(player, reduce_on_gpu(player, "in place")); // which loads nothing
    expect(player, player->group != NULL && dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD) == NULL);
    tfos_collective_get_figures(player->group, &figures);
    expect(player, figures.operation_count == 1);
    load(player, &(struct tfos_collective_options){0});
    expect_done(player,
                tfos_collective_gpu_all_reduce(player->group, "twice", &span, 1, TFOS_DTYPE_FLOAT32,
                                               TFOS_REDUCE_SUM, &factor, &player->err));
    expect(player, to[0] == 2 && to[3] == 8);
    expect_done(player, tfos_collective_gpu_broadcast(player->group, "copied", &span, 1,
                                                      TFOS_DTYPE_FLOAT32, 0, &player->err));
    expect(player, to[0] == 1 && to[3] == 4);
    expect_route(player, "by NCCL 2.21.5");
}

static void a_rank_that_is_alone_needs_nothing_in_place(void **state)
{
    (void)state;
    struct scene scene = {.size = 1, .play = play_alone};
    play_scene(&scene);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(operations_on_gpus_go_by_nccl),
    cmocka_unit_test(nccl_needs_a_trusted_network_between_hosts),
    cmocka_unit_test(where_nccl_cannot_be_used_they_go_through_the_host),
    cmocka_unit_test(a_rank_that_cannot_join_keeps_the_group_from_nccl),
    cmocka_unit_test(an_operation_waits_for_what_the_gpu_has_begun),
    cmocka_unit_test(a_failure_of_one_rank_ends_the_operation_on_all),
    cmocka_unit_test(tensors_in_gpu_memory_on_some_ranks_only_are_refused),
    cmocka_unit_test(what_cannot_be_is_refused),
    cmocka_unit_test(a_thread_without_context_is_refused),
    cmocka_unit_test(a_machine_without_driver_is_told),
    cmocka_unit_test(a_rank_that_is_alone_needs_nothing_in_place),
};

TEST_MAIN(cases)
