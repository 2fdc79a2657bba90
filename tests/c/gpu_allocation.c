// SPDX-License-Identifier: Apache-2.0
// Who gets which GPU, on machines whose driver is tests/gpu/fake_nvml.c; processes that race for
// them and die are real.
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <tfos/memory.h>

#include "folder.h"
#include "gpu/gpu.h"

#define RACERS 64
#define WAIT_MS 20000
#define UUID_0 "GPU-fa4e0000-0000-0000-0000-000000000000"

struct machine {
    struct folder folder;
    char script[96], locks[96];
};

static void write_script(const struct machine *machine, const char *text)
{
    FILE *file = fopen(machine->script, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/// A machine with the GPUs of the script.
static struct machine enter(const char *script)
{
    struct machine machine = {.folder = enter_folder()};
    snprintf(machine.script, sizeof(machine.script), "%s/gpus", machine.folder.path);
    snprintf(machine.locks, sizeof(machine.locks), "%s/locks", machine.folder.path);
    write_script(&machine, script);
    setenv("FAKE_GPUS", machine.script, 1);
    setenv("TFOS_RUNTIME_DIR", machine.locks, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    return machine;
}

static struct tfos_gpu_allocation *take(struct tfos_gpu_request request)
{
    struct tfos_error err = {0};
    struct tfos_gpu_allocation *allocation = NULL;
    assert_done(tfos_gpu_allocate(&request, NULL, &allocation, &err));
    return allocation;
}

static void assert_refused(struct tfos_gpu_request request, enum tfos_status expected,
                           const char *words)
{
    struct tfos_error err = {0};
    struct tfos_gpu_allocation *allocation = NULL;
    assert_int_equal(tfos_gpu_allocate(&request, NULL, &allocation, &err), expected);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" is not in \"%s\"", words, err.message);
}

static void s31_each_process_gets_a_gpu_of_its_own(void **state)
{
    (void)state;
    struct machine machine = enter("gpu free\ngpu free\ngpu busy pid=77\ngpu free\n");
    struct tfos_gpu_allocation *taken[3];
    for (int i = 0; i < 3; i++)
        taken[i] = take((struct tfos_gpu_request){.count = 1, .owner = "cluster c worker:0"});
    assert_string_equal(tfos_gpu_allocation_ids(taken[0]), "0");
    assert_string_equal(tfos_gpu_allocation_ids(taken[1]), "1");
    assert_string_equal(tfos_gpu_allocation_ids(taken[2]), "3");
    assert_refused((struct tfos_gpu_request){.count = 1}, TFOS_BUSY, "(cluster c worker:0)");
    assert_refused((struct tfos_gpu_request){.count = 1}, TFOS_BUSY, "GPU 2 is used by process 77");
    assert_refused((struct tfos_gpu_request){.count = 5}, TFOS_NOT_FOUND,
                   "5 wanted, this machine has 4");
    tfos_gpu_allocation_close(taken[1]);
    taken[1] = take((struct tfos_gpu_request){.count = 1});
    assert_string_equal(tfos_gpu_allocation_ids(taken[1]), "1");
    for (int i = 0; i < 3; i++)
        tfos_gpu_allocation_close(taken[i]);
    leave_folder(machine.folder);
}

static void fractions_fill_a_gpu_to_the_whole_and_no_further(void **state)
{
    (void)state;
    static const struct {
        double fraction;
        int fit; ///< on one GPU
    } cases[] = {{0.2, 5}, {0.125, 8}, {1.0 / 3, 3}, {0.1, 10}, {0.29, 3}, {0.001, 1000}, {1, 1}};
    struct machine machine = enter("gpu free memory=10000\n");
    struct tfos_gpu_allocation **taken = calloc(1000, sizeof(struct tfos_gpu_allocation *));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (cases[i].fit > 100) // a descriptor each
            continue;
        for (int j = 0; j < cases[i].fit; j++)
            taken[j] = take((struct tfos_gpu_request){.count = 1, .fraction = cases[i].fraction});
        assert_refused((struct tfos_gpu_request){.count = 1, .fraction = cases[i].fraction},
                       TFOS_BUSY, "1 wanted, 0 free");
        assert_refused((struct tfos_gpu_request){.count = 1}, TFOS_BUSY, "1 wanted, 0 free");
        for (int j = 0; j < cases[i].fit; j++)
            tfos_gpu_allocation_close(taken[j]);
    }
    taken[0] = take((struct tfos_gpu_request){.count = 1, .fraction = 0.25});
    assert_true(tfos__gpu_allocation_memory(taken[0], 0) == 2500LL << 20);
    tfos_gpu_allocation_close(taken[0]);
    free(taken);
    leave_folder(machine.folder);
}

static void a_share_may_be_in_pieces(void **state)
{
    (void)state;
    struct machine machine = enter("gpu free\n");
    struct tfos_gpu_allocation *thirds[3];
    struct tfos_gpu_holder holders[4];
    struct tfos_error err = {0};
    size_t count;
    int sum = 0;
    for (int i = 0; i < 3; i++)
        thirds[i] = take((struct tfos_gpu_request){.count = 1, .fraction = 0.3, .owner = "third"});
    tfos_gpu_allocation_close(thirds[1]);
    struct tfos_gpu_allocation *rest =
        take((struct tfos_gpu_request){.count = 1, .fraction = 0.4, .owner = "rest"});
    assert_refused((struct tfos_gpu_request){.count = 1, .fraction = 0.001}, TFOS_BUSY, "0 free");
    assert_done(tfos_gpu_holders(NULL, UUID_0, holders, 4, &count, &err));
    assert_int_equal(count, 2); // one process holds all, by two names
    for (size_t i = 0; i < count; i++)
        sum += holders[i].share * (strcmp(holders[i].owner, "rest") == 0 ? 1 : 10);
    assert_int_equal(sum, 400 + 6000);
    tfos_gpu_allocation_close(thirds[0]);
    tfos_gpu_allocation_close(thirds[2]);
    tfos_gpu_allocation_close(rest);
    leave_folder(machine.folder);
}

static void a_share_goes_where_shares_are_already(void **state)
{
    (void)state;
    struct machine machine = enter("gpu busy used=30000 memory=40000\ngpu free\ngpu free\n");
    struct tfos_gpu_allocation *first =
        take((struct tfos_gpu_request){.count = 1, .preferred = 2, .fraction = 0.5});
    struct tfos_gpu_allocation *second =
        take((struct tfos_gpu_request){.count = 1, .fraction = 0.5});
    assert_string_equal(tfos_gpu_allocation_ids(first), tfos_gpu_allocation_ids(second));
    // What other programs use of the first leaves no half of it, but a fifth.
    struct tfos_gpu_allocation *whole = take((struct tfos_gpu_request){.count = 1});
    assert_refused((struct tfos_gpu_request){.count = 1, .fraction = 0.5}, TFOS_BUSY, "0 free");
    struct tfos_gpu_allocation *fifth =
        take((struct tfos_gpu_request){.count = 1, .fraction = 0.2});
    assert_string_equal(tfos_gpu_allocation_ids(fifth), "0");
    tfos_gpu_allocation_close(first);
    tfos_gpu_allocation_close(second);
    tfos_gpu_allocation_close(whole);
    tfos_gpu_allocation_close(fifth);
    leave_folder(machine.folder);
}

static void several_gpus_are_those_that_are_near_each_other(void **state)
{
    (void)state;
    struct machine machine = enter("gpu free\ngpu free nvlink=3\ngpu free\ngpu free nvlink=1\n");
    struct tfos_gpu_allocation *pair = take((struct tfos_gpu_request){.count = 2});
    assert_string_equal(tfos_gpu_allocation_ids(pair), "1,3");
    assert_int_equal(tfos__gpu_allocation_count(pair), 2);
    tfos_gpu_allocation_close(pair);
    leave_folder(machine.folder);
}

static void instances_are_taken_and_their_gpu_is_not(void **state)
{
    (void)state;
    struct machine machine =
        enter("gpu free\nmig free memory=5000\nmig busy\nmig free memory=5000\ngpu free\n");
    struct tfos_gpu *gpus;
    size_t count;
    struct tfos_error err = {0};
    assert_done(tfos_gpu_list(&gpus, &count, &err));
    assert_int_equal(count, 5);
    assert_true(gpus[0].is_divided && !gpus[0].is_free && !gpus[0].is_instance);
    assert_true(gpus[1].is_instance && gpus[1].index == 0 && gpus[1].is_free);
    assert_string_equal(gpus[1].id, "MIG-fa4e0000-0000-0000-0000-000000000000");
    assert_int_equal(gpus[1].utilisation, -1);
    assert_int_equal(gpus[2].process_count, 2);
    assert_true(gpus[4].index == 1 && gpus[4].links[0] == TFOS_GPU_LINK_SYSTEM);
    tfos_free(gpus);
    struct tfos_gpu_allocation *first = take((struct tfos_gpu_request){.count = 1});
    struct tfos_gpu_allocation *second = take((struct tfos_gpu_request){.count = 1});
    assert_string_equal(tfos_gpu_allocation_ids(first), "MIG-fa4e0000-0000-0000-0000-000000000000");
    assert_string_equal(tfos_gpu_allocation_ids(second),
                        "MIG-fa4e0000-0000-0000-0002-000000000000");
    tfos_gpu_allocation_close(first);
    tfos_gpu_allocation_close(second);
    leave_folder(machine.folder);
}

static void a_lost_gpu_is_not_taken_and_is_told_of(void **state)
{
    (void)state;
    struct machine machine = enter("gpu lost\ngpu free\n");
    struct tfos_gpu_allocation *taken = take((struct tfos_gpu_request){.count = 1});
    assert_string_equal(tfos_gpu_allocation_ids(taken), "1");
    assert_refused((struct tfos_gpu_request){.count = 2}, TFOS_NOT_FOUND,
                   "GPU 0 does not answer: GPU is lost (NVML 15)");
    // It falls off the bus while it is held: the sampler tells, and lets nobody wait.
    struct tfos_error err = {0};
    struct tfos__gpu_sampler *sampler;
    struct tfos__gpu_sample sample;
    assert_done(tfos__gpu_sampler_open(taken, &sampler, &err));
    while (tfos__gpu_sampler_get(sampler, &sample, 1) == 0)
        usleep(1000);
    assert_string_equal(sample.fault, "");
    write_script(&machine, "gpu free\ngpu lost\n");
    while (!sample.fault[0]) {
        assert_int_equal(tfos__gpu_sampler_get(sampler, &sample, 1), 1);
        usleep(1000);
    }
    assert_string_equal(sample.fault, "GPU is lost (NVML 15)");
    write_script(&machine, "gpu free\n");
    while (strcmp(sample.fault, "the driver does not list it") != 0) {
        tfos__gpu_sampler_get(sampler, &sample, 1);
        usleep(1000);
    }
    tfos__gpu_sampler_close(sampler);
    tfos_gpu_allocation_close(taken);
    leave_folder(machine.folder);
}

static void what_spark_assigns_is_taken_whoever_holds_it(void **state)
{
    (void)state;
    struct machine machine = enter("gpu free memory=1000\ngpu busy\n");
    struct tfos_gpu_allocation *held = take((struct tfos_gpu_request){.count = 1});
    struct tfos_gpu_request request = {
        .count = 3, .candidates = "1, 0,7", .is_assigned = true, .fraction = 0.5};
    struct tfos_gpu_allocation *assigned = take(request);
    assert_string_equal(tfos_gpu_allocation_ids(assigned), "1,0,7");
    assert_true(tfos__gpu_allocation_fd(assigned, 0) >= 0);
    assert_true(tfos__gpu_allocation_fd(assigned, 1) < 0); // another holds it
    assert_true(tfos__gpu_allocation_memory(assigned, 2) == -1);
    tfos_gpu_allocation_close(assigned);
    request.count = 4;
    assert_refused(request, TFOS_NOT_FOUND, "4 wanted, but only \"1, 0,7\" was assigned");
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    assert_refused((struct tfos_gpu_request){.count = 2}, TFOS_NOT_FOUND,
                   "CUDA_VISIBLE_DEVICES is \"1\"");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("FAKE_GPUS"); // the driver is silent: Spark's word is enough
    assigned = take((struct tfos_gpu_request){.count = 1, .candidates = "5", .is_assigned = true});
    assert_string_equal(tfos_gpu_allocation_ids(assigned), "5");
    tfos_gpu_allocation_close(assigned);
    tfos_gpu_allocation_close(held);
    leave_folder(machine.folder);
}

// ---- races and deaths

/// A process that takes a share and tells which on the pipe, then waits to be killed.
static pid_t start_racer(struct tfos_gpu_request request, int pipe_fd, int limit_ms)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct tfos_error err = {0};
    struct tfos_gpu_allocation *allocation = NULL;
    struct tfos_wait wait = {.timeout_ms = limit_ms};
    enum tfos_status status = tfos_gpu_allocate(&request, &wait, &allocation, &err);
    char answer = status == TFOS_OK     ? tfos_gpu_allocation_ids(allocation)[0]
                  : status == TFOS_BUSY ? 'x'
                                        : '!';
    if (write(pipe_fd, &answer, 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void end_racer(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/// Lets processes race and counts who got which of four GPUs; the last count is of those who got
/// none.
static void race(struct tfos_gpu_request request, int counts[5])
{
    pid_t pids[RACERS];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    memset(counts, 0, 5 * sizeof(*counts));
    for (int i = 0; i < RACERS; i++)
        pids[i] = start_racer(request, ends[1], 1);
    for (int i = 0; i < RACERS; i++) {
        char answer = '!';
        assert_int_equal(read(ends[0], &answer, 1), 1);
        assert_true(answer != '!');
        counts[answer == 'x' ? 4 : answer - '0']++;
    }
    for (int i = 0; i < RACERS; i++)
        end_racer(pids[i]);
    close(ends[0]);
    close(ends[1]);
}

static void s31_processes_that_race_share_nothing(void **state)
{
    (void)state;
    struct machine machine = enter("gpu free\ngpu free\ngpu free\ngpu free\n");
    int counts[5];
    race((struct tfos_gpu_request){.count = 1}, counts);
    for (int i = 0; i < 4; i++)
        assert_int_equal(counts[i], 1);
    assert_int_equal(counts[4], RACERS - 4);
    race((struct tfos_gpu_request){.count = 1, .fraction = 0.2}, counts); // the first have died
    for (int i = 0; i < 4; i++)
        assert_int_equal(counts[i], 5);
    assert_int_equal(counts[4], RACERS - 20);
    race((struct tfos_gpu_request){.count = 2}, counts);
    assert_int_equal(counts[4], RACERS - 2);
    leave_folder(machine.folder);
}

static void who_waits_gets_what_a_death_leaves(void **state)
{
    (void)state;
    struct machine machine = enter("gpu free\n");
    int ends[2];
    char answer = '!';
    assert_int_equal(pipe(ends), 0);
    pid_t first = start_racer((struct tfos_gpu_request){.count = 1}, ends[1], 1);
    assert_int_equal(read(ends[0], &answer, 1), 1);
    assert_int_equal(answer, '0');
    pid_t second = start_racer((struct tfos_gpu_request){.count = 1}, ends[1], WAIT_MS);
    end_racer(first);
    assert_int_equal(read(ends[0], &answer, 1), 1);
    assert_int_equal(answer, '0');
    end_racer(second);
    leave_folder(machine.folder);
}

/// A child that has the descriptor keeps the GPU when its parent has died.
static void a_gpu_is_kept_until_the_last_of_its_processes_is_gone(void **state)
{
    (void)state;
    struct machine machine = enter("gpu free\n");
    int ends[2];
    pid_t child = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct tfos_gpu_allocation *taken =
            take((struct tfos_gpu_request){.count = 1, .owner = "parent"});
        child = fork();
        if (child == 0)
            for (;;)
                pause();
        if (write(ends[1], &child, sizeof(child)) != sizeof(child))
            _exit(1);
        for (;;)
            pause();
        tfos_gpu_allocation_close(taken);
    }
    assert_int_equal(read(ends[0], &child, sizeof(child)), sizeof(child));
    end_racer(parent);
    assert_refused((struct tfos_gpu_request){.count = 1}, TFOS_BUSY, "(parent)");
    kill(child, SIGKILL);
    struct tfos_gpu_request request = {.count = 1};
    struct tfos_wait wait = {.timeout_ms = WAIT_MS};
    struct tfos_gpu_allocation *taken = NULL;
    struct tfos_error err = {0};
    assert_done(tfos_gpu_allocate(&request, &wait, &taken, &err));
    tfos_gpu_allocation_close(taken);
    leave_folder(machine.folder);
}

/// Processes are killed at whatever point they are; what is left behind is whole.
static void deaths_at_each_point_leave_all_gpus_free(void **state)
{
    (void)state;
    struct machine machine = enter("gpu free\ngpu free\n");
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    for (int i = 0; i < 200; i++) {
        pid_t pid = start_racer((struct tfos_gpu_request){.count = 2, .fraction = 0.9}, ends[1], 1);
        usleep((useconds_t)(i * 50));
        end_racer(pid);
    }
    struct tfos_gpu_allocation *both = take((struct tfos_gpu_request){.count = 2});
    assert_string_equal(tfos_gpu_allocation_ids(both), "0,1");
    tfos_gpu_allocation_close(both);
    leave_folder(machine.folder);
}

static void holders_are_named_and_their_folder_is_guarded(void **state)
{
    (void)state;
    struct machine machine = enter("gpu free\n");
    struct tfos_gpu_allocation *taken = take((struct tfos_gpu_request){.count = 1});
    struct tfos_gpu_holder holder;
    size_t count;
    struct tfos_error err = {0};
    assert_done(tfos_gpu_holders(NULL, UUID_0, &holder, 1, &count, &err));
    assert_int_equal(count, 1);
    assert_int_equal(holder.pid, getpid());
    assert_int_equal(holder.share, 1000);
    tfos__gpu_allocation_rename(taken, "another");
    assert_done(tfos_gpu_holders(NULL, UUID_0, &holder, 1, &count, &err));
    assert_string_equal(holder.owner, "another");
    tfos_gpu_allocation_close(taken);
    assert_int_equal(chmod(machine.locks, 0777), 0);
    assert_refused((struct tfos_gpu_request){.count = 1}, TFOS_DENIED,
                   "only this user can write to");
    leave_folder(machine.folder);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct machine machine = enter("gpu free\n");
    assert_refused((struct tfos_gpu_request){.count = 0}, TFOS_INVALID, "1 or more, not 0");
    assert_refused((struct tfos_gpu_request){.count = 1, .fraction = 1.5}, TFOS_INVALID, "not 1.5");
    assert_refused((struct tfos_gpu_request){.count = 1, .fraction = -0.1}, TFOS_INVALID,
                   "not -0.1");
    unsetenv("FAKE_GPUS");
    assert_refused((struct tfos_gpu_request){.count = 1}, TFOS_UNSUPPORTED,
                   "the driver does not answer");
    leave_folder(machine.folder);
}

// ---- adapters

static void make_file(const char *path, const char *text)
{
    char copy[256];
    snprintf(copy, sizeof(copy), "%s", path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(copy, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void adapters_for_rdma_are_found(void **state)
{
    (void)state;
    struct folder folder = enter_folder();
    struct tfos_rdma_port ports[2];
    size_t count = 9;
    struct tfos_error err = {0};
    assert_done(tfos_rdma_list(folder.path, ports, 2, &count, &err));
    assert_int_equal(count, 0);
    make_file("class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
    make_file("class/infiniband/mlx5_1/ports/1/link_layer", "Ethernet\n");
    make_file("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    make_file("class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
    make_file("class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    assert_done(tfos_rdma_list(folder.path, ports, 2, &count, &err));
    assert_int_equal(count, 2);
    assert_string_equal(ports[0].device, "mlx5_0");
    assert_string_equal(ports[0].rate, "100 Gb/sec (4X EDR)");
    assert_true(ports[0].is_active && !ports[0].is_ethernet && ports[0].port == 1);
    assert_true(!ports[1].is_active && ports[1].is_ethernet);
    assert_done(tfos_rdma_list(folder.path, ports, 1, &count, &err));
    assert_int_equal(count, 2);
    leave_folder(folder);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s31_each_process_gets_a_gpu_of_its_own),
    cmocka_unit_test(fractions_fill_a_gpu_to_the_whole_and_no_further),
    cmocka_unit_test(a_share_may_be_in_pieces),
    cmocka_unit_test(a_share_goes_where_shares_are_already),
    cmocka_unit_test(several_gpus_are_those_that_are_near_each_other),
    cmocka_unit_test(instances_are_taken_and_their_gpu_is_not),
    cmocka_unit_test(a_lost_gpu_is_not_taken_and_is_told_of),
    cmocka_unit_test(what_spark_assigns_is_taken_whoever_holds_it),
    cmocka_unit_test(s31_processes_that_race_share_nothing),
    cmocka_unit_test(who_waits_gets_what_a_death_leaves),
    cmocka_unit_test(a_gpu_is_kept_until_the_last_of_its_processes_is_gone),
    cmocka_unit_test(deaths_at_each_point_leave_all_gpus_free),
    cmocka_unit_test(holders_are_named_and_their_folder_is_guarded),
    cmocka_unit_test(what_cannot_be_is_refused),
    cmocka_unit_test(adapters_for_rdma_are_found),
};

TEST_MAIN(cases)
