// SPDX-License-Identifier: Apache-2.0
/// A trainer for the tests of nodes, through the public interface only. Its first argument says
/// what it does.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tfos.h>
#include <unistd.h>

static struct tfos_trainer *trainer;
static struct tfos_error err;

static void require(enum tfos_status status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", tfos_status_name(status), err.message);
    exit(10 - (int)status);
}

static struct tfos_feed_reader *open_feed(void)
{
    struct tfos_feed_reader *reader;
    require(tfos_trainer_open_feed(trainer, "input", &reader, &err));
    return reader;
}

/// Reads up to `limit` rows of one int64 column and prints how many and their sum.
static int read_rows(long limit)
{
    struct tfos_feed_reader *reader = open_feed();
    long count = 0, sum = 0;
    while (count < limit) {
        struct tfos_feed_item item;
        enum tfos_status status = tfos_feed_reader_next(reader, -1, &item, &err);
        if (status == TFOS_END)
            break;
        require(status);
        if (item.kind != TFOS_FEED_BATCH)
            continue;
        const struct ArrowArray *column = item.array.children[0];
        const int64_t *values = column->buffers[1];
        for (int64_t i = 0; i < item.array.length; i++)
            sum += values[column->offset + i];
        count += item.array.length;
        item.array.release(&item.array);
        item.schema.release(&item.schema);
    }
    printf("read %ld rows, sum %ld\n", count, sum);
    return 0;
}

/// Reads a row of each queue by turns, to the end of both.
static int read_by_turns(void)
{
    const char *const names[] = {"input", "validation"};
    struct tfos_feed_reader *readers[2];
    long counts[2] = {0}, sums[2] = {0};
    int is_over[2] = {0};
    for (int i = 0; i < 2; i++)
        require(tfos_trainer_open_feed(trainer, names[i], &readers[i], &err));
    for (int i = 0; !is_over[0] || !is_over[1]; i = !i) {
        struct tfos_feed_item item = {0};
        if (is_over[i])
            continue;
        enum tfos_status status = tfos_feed_reader_next(readers[i], -1, &item, &err);
        require(status);
        is_over[i] = status == TFOS_END;
        if (status != TFOS_OK || item.kind != TFOS_FEED_BATCH)
            continue;
        counts[i] += item.array.length;
        sums[i] += ((const int64_t *)item.array.children[0]->buffers[1])[0];
        item.array.release(&item.array);
        item.schema.release(&item.schema);
    }
    for (int i = 0; i < 2; i++)
        printf("%s: %ld rows, sum of first ones %ld\n", names[i], counts[i], sums[i]);
    return 0;
}

static int show_description(void)
{
    char *schema;
    struct tfos_wait wait = {.timeout_ms = 100};
    enum tfos_status status =
        tfos_trainer_await_description(trainer, "input", &wait, &schema, &err);
    printf("input: %s\n", status == TFOS_OK ? schema : tfos_status_name(status));
    fflush(stdout);
    wait.timeout_ms = 0;
    require(tfos_trainer_await_description(trainer, "validation", &wait, &schema, &err));
    printf("validation: %s\n", schema);
    tfos_free(schema);
    return 0;
}

static int open_unknown(void)
{
    struct tfos_feed_reader *reader;
    char *schema;
    enum tfos_status status =
        tfos_trainer_await_description(trainer, "output", NULL, &schema, &err);
    printf("%s: %s\n", tfos_status_name(status), err.message);
    require(tfos_trainer_open_feed(trainer, "output", &reader, &err));
    return 0;
}

static int agree(int64_t timeout_ms)
{
    char *values;
    struct tfos_wait wait = {.timeout_ms = timeout_ms};
    require(tfos_trainer_agree(trainer, "step 1", "{\"rows\": 3}", &wait, &values, &err));
    printf("agreed %s\n", values);
    tfos_free(values);
    return 0;
}

/// A group of all trainers, twice: sums their ranks and one.
static int reduce_together(void)
{
    const struct tfos_collective_options options = {.name = "workers"};
    for (int i = 0; i < 2; i++) {
        struct tfos_collective *group;
        require(tfos_trainer_open_collective(trainer, &options, NULL, &group, &err));
        int64_t sum = tfos_collective_rank(group) + 1;
        struct tfos_collective_span span = {&sum, 1};
        require(tfos_collective_all_reduce(group, "ranks", &span, 1, TFOS_DTYPE_INT64,
                                           TFOS_REDUCE_SUM, &err));
        printf("rank %d of %d has %ld\n", tfos_collective_rank(group), tfos_collective_size(group),
               (long)sum);
        require(tfos_collective_barrier(group, "end", &err));
        tfos_collective_close(group);
    }
    return 0;
}

static enum tfos_status agree_in_step(void *context, const char *name, const char *value_json,
                                      char **values_json, struct tfos_error *error)
{
    const struct tfos_wait wait = {.timeout_ms = 20000};

    return tfos_trainer_agree(context, name, value_json, &wait, values_json, error);
}

/// Reads batches of 10 rows in step with the other trainers, and prints of each epoch its steps,
/// its rows and the sum of their values.
static int read_in_step(void)
{
    struct tfos_dataset_options options = {.reader = open_feed(),
                                           .batch_size = 10,
                                           .uneven = TFOS_UNEVEN_PAD,
                                           .agree = agree_in_step,
                                           .context = trainer,
                                           .name = "input"};
    const struct tfos_tensor_spec *specs;
    enum tfos_row_structure structure;
    struct tfos_dataset *dataset;
    int64_t spec_count;
    require(tfos_dataset_open(&options, &dataset, &err));
    require(tfos_dataset_get_specs(dataset, 20000, &specs, &spec_count, &structure, &err));
    long steps = 0, rows = 0, sum = 0;
    for (int epoch = 1, is_over = 0; !is_over;) {
        struct tfos_tensor tensors[2];
        enum tfos_status status = tfos_dataset_next(dataset, tensors, &err);
        require(status);
        if (status == TFOS_END) {
            is_over = steps == 0;
            if (!is_over)
                printf("epoch %d: %ld steps, %ld rows, sum %ld\n", epoch++, steps, rows, sum);
            fflush(stdout);
            steps = rows = sum = 0;
            continue;
        }
        steps++;
        for (int64_t i = 0; i < options.batch_size; i++)
            if (((const float *)tensors[1].data)[i] > 0) {
                rows++;
                sum += ((const int64_t *)tensors[0].data)[i];
            }
        for (int64_t i = 0; i < spec_count; i++)
            tfos_tensor_release(&tensors[i]);
    }
    tfos_dataset_close(dataset);
    return 0;
}

/// What a process has of its own: environment, directory, session, signals, descriptors.
static int show_process(void)
{
    char directory[4096];
    sigset_t blocked;
    int count = 0;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    printf("server %s, config %s, mark %s\n", getenv(TFOS_FORK_SERVER_VARIABLE),
           getenv("TF_CONFIG") ? "set" : "unset", getenv("MARK"));
    printf("in %s, leader %d, SIGCHLD %d, descriptors %d\n", getcwd(directory, sizeof(directory)),
           getsid(0) == getpid(), sigismember(&blocked, SIGCHLD), count);
    return 0;
}

static int fail(void)
{
    require(tfos_trainer_fail(trainer, "ValueError: shapes do not match", &err));
    return 1;
}

static int report(void)
{
    require(tfos_trainer_report(trainer, "{\"step\": 12, \"loss\": 0.5}", &err));
    pause();
    return 0;
}

static int show(void)
{
    char payload[64] = "";
    ssize_t size = pread(tfos_trainer_payload_fd(trainer), payload, sizeof(payload) - 1, 0);
    printf("context %s\npayload %zd %s\n", tfos_trainer_context(trainer), size, payload);
    return 0;
}

/// Leaves a process in a session of its own behind.
static int leave_orphan(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        signal(SIGTERM, SIG_IGN);
        pause();
        _exit(0);
    }
    printf("orphan %d\n", (int)pid);
    return 0;
}

/// Makes this process a daemon, which continues with `verb`.
static _Noreturn void become_daemon(const char *verb)
{
    bool fails_first = strcmp(verb, "fail_first") == 0;
    int fds[2];
    pid_t daemon = 0;
    if (pipe(fds) != 0)
        _exit(1);
    if (fork() != 0) {
        if (fails_first && read(fds[0], &daemon, sizeof(daemon)) == sizeof(daemon))
            while (kill(daemon, 0) == 0) // until the node has reaped it
                usleep(1000);
        _exit(0);
    }
    if (!fails_first)
        usleep(50000); // the node has seen the end by now
    setsid();
    if (fork() != 0)
        _exit(0);
    daemon = getpid();
    if (fails_first)
        _exit(write(fds[1], &daemon, sizeof(daemon)) == sizeof(daemon) ? 5 : 1);
    printf("daemon %d\n", (int)getpid());
    fflush(stdout);
    if (strcmp(verb, "hold") == 0)
        pause();
    usleep(50000);
    printf("has worked\n");
    fflush(stdout);
    _exit(strcmp(verb, "fail") == 0 ? 5 : 0); // a forked process may hang in the search for leaks
}

static void tell_stack(int signal_number)
{
    static const char stack[] = "File \"train.py\", line 12 in step\n";
    (void)signal_number;
    (void)!write(STDERR_FILENO, stack, sizeof(stack) - 1);
}

/// Opens the feed and then reads nothing, as a trainer stuck in its own code.
static _Noreturn void stall(void)
{
    signal(SIGUSR2, tell_stack);
    open_feed();
    printf("stalling\n");
    fflush(stdout);
    for (;;)
        pause();
}

/// Reads some rows, and then wants no more.
static int terminate(void)
{
    read_rows(1);
    require(tfos_trainer_terminate(trainer, &err));
    printf("terminated\n");
    fflush(stdout);
    pause();
    return 0;
}

static int listen_on(int port, int is_sharing)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    int on = 1, off = 0;
    if (is_sharing)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    return bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 8) == 0 ? 0
                                                                                             : -1;
}

/// Binds TensorFlow's port as TensorFlow does, and as a server that does not share ports: before
/// and after release_port().
static int bind_port(void)
{
    const char *config = getenv("TF_CONFIG");
    const char *colon = config ? strrchr(config, ':') : NULL;
    const char *worker = config ? strstr(config, "\"worker\":[\"") : NULL;
    if (!colon || !worker || !(colon = strchr(worker + 11, ':')))
        return 2;
    int port = (int)strtol(colon + 1, NULL, 10);
    printf("alone before %s\n", listen_on(port, 0) == 0 ? "works" : "fails");
    require(tfos_trainer_release_port(trainer, &err));
    printf("alone after %s\n", listen_on(port, 0) == 0 ? "works" : "fails");
    return 0;
}

static int serve(int port)
{
    if (listen_on(port, 0) != 0)
        return 1;
    pause();
    return 0;
}

/// Feeds partition 0 of a cluster, the numbers from 0 on, until it is killed.
static _Noreturn void feed_for_ever(const char *address, const char *cluster_id, const char *key,
                                    bool is_remote)
{
    static int64_t values[37];
    const void *buffers[2] = {NULL, values};
    struct ArrowArray column = {.length = 37, .n_buffers = 2, .buffers = buffers};
    struct ArrowArray *columns[] = {&column};
    struct ArrowArray rows = {
        .length = 37, .n_buffers = 1, .n_children = 1, .buffers = buffers, .children = columns};
    struct ArrowSchema field = {.format = "l", .name = "x"}, *fields[] = {&field};
    struct ArrowSchema schema = {.format = "+s", .name = "", .n_children = 1, .children = fields};
    struct tfos_feeder_options options = {.address = address,
                                          .cluster_id = cluster_id,
                                          .key = key,
                                          .feed = 1,
                                          .attempt = 1,
                                          .is_remote = is_remote};
    struct tfos_feeder *feeder;
    require(tfos_feeder_open(&options, &feeder, &err));
    for (int64_t row = 0;; row += 37) {
        for (int64_t i = 0; i < 37; i++)
            values[i] = row + i;
        require(tfos_feeder_append(feeder, &schema, &rows, &err));
    }
}

static int run(const char *verb, const char *argument)
{
    require(tfos_trainer_open(TFOS_TRAINER_FD, &trainer, &err));
    int result = 2;
    if (strcmp(verb, "rows") == 0)
        result = read_rows(1L << 40);
    else if (strcmp(verb, "some_rows") == 0)
        result = read_rows(10);
    else if (strcmp(verb, "rows_then_fail") == 0)
        result = read_rows(10) + 4;
    else if (strcmp(verb, "in_step") == 0)
        result = read_in_step();
    else if (strcmp(verb, "turns") == 0)
        result = read_by_turns();
    else if (strcmp(verb, "description") == 0)
        result = show_description();
    else if (strcmp(verb, "unknown_queue") == 0)
        result = open_unknown();
    else if (strcmp(verb, "agree") == 0)
        result = agree(10000);
    else if (strcmp(verb, "reduce") == 0)
        result = reduce_together();
    else if (strcmp(verb, "agree_soon") == 0)
        result = agree(300);
    else if (strcmp(verb, "fail") == 0)
        result = fail();
    else if (strcmp(verb, "report") == 0)
        result = report();
    else if (strcmp(verb, "show") == 0)
        result = show();
    else if (strcmp(verb, "process") == 0)
        result = show_process();
    else if (strcmp(verb, "orphan") == 0)
        result = leave_orphan();
    else if (strcmp(verb, "daemon") == 0)
        become_daemon(argument);
    else if (strcmp(verb, "stall") == 0)
        stall();
    else if (strcmp(verb, "terminate") == 0)
        result = terminate();
    else if (strcmp(verb, "bind_port") == 0)
        result = bind_port();
    else if (strcmp(verb, "hold") == 0)
        pause();
    tfos_trainer_close(trainer);
    return result;
}

static pid_t fork_plainly(void *context)
{
    (void)context;
    return fork();
}

static void run_forked(void *context, char *const *environment)
{
    char **argv = context;
    environ = (char **)environment;
    int result = run(argv[1] ? argv[1] : "", argv[1] && argv[2] ? argv[2] : "");
    fflush(stdout);
    _exit(result); // a forked process may hang in the search for leaks
}

/// The life of a fork server.
static int serve_forks(const char *task, char **argv)
{
    const struct tfos_node_forker forker = {
        .fork = fork_plainly, .run = run_forked, .context = argv};
    unsetenv(TFOS_FORK_SERVER_VARIABLE);
    require(tfos_node_serve_forks(TFOS_TRAINER_FD, strtol(task, NULL, 10), &forker, &err));
    return 0;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    const char *task = getenv(TFOS_FORK_SERVER_VARIABLE);
    if (task)
        return serve_forks(task, argv);
    if (strcmp(verb, "feed") == 0) // in the place of a Spark task
        feed_for_ever(argv[2], argv[3], argv[4], strcmp(argv[5], "remote") == 0);
    if (strcmp(verb, "serve") == 0) // in TensorBoard's place, without a link
        return serve(argc > 2 ? atoi(argv[2]) : 0);
    return run(verb, argc > 2 ? argv[2] : "");
}
