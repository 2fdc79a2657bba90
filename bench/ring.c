// SPDX-License-Identifier: Apache-2.0
// Batches of 1 MB through the feed between two processes, the consumer summing every byte, against
// one process's memcpy of such batches into a region of the ring's size. Rounds of both alternate;
// the medians are compared. Prints one JSON line.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tfos/feed.h>
#include <time.h>
#include <unistd.h>

#define BATCH_SIZE (1 << 20)
#define ROUND_BATCHES 4000
#define ROUNDS 7
#define GOAL 0.7
#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

struct node {
    struct tfos_feed_host *host;
    struct tfos_feed_reader *reader;
    atomic_bool is_stopping;
};

static void check(enum tfos_status status, const struct tfos_error *err)
{
    if (status < 0) {
        fprintf(stderr, "ring: %s: %s\n", tfos_status_name(status), err->message);
        exit(1);
    }
}

static double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *run_host(void *argument)
{
    struct node *node = argument;

    while (!atomic_load(&node->is_stopping)) {
        struct pollfd descriptor = {tfos_feed_host_fd(node->host), POLLIN, 0};
        struct tfos_feed_event event;
        struct tfos_error err;
        poll(&descriptor, 1, 100);
        check(tfos_feed_host_step(node->host, &err), &err);
        while (tfos_feed_host_next_event(node->host, &event, &err) == TFOS_OK)
            if (event.kind == TFOS_FEED_LANE_OPENED)
                check(tfos_feed_reader_add_lane(node->reader, event.lane,
                                                fcntl(event.fd, F_DUPFD_CLOEXEC, 3), &err),
                      &err);
    }
    return NULL;
}

// The producer: one batch, appended again and again, a round each time the parent says so.
static void feed(const char *socket_name, int go_fd)
{
    static int64_t values[BATCH_SIZE / sizeof(int64_t)];
    const void *column_buffers[2] = {NULL, values}, *root_buffers[1] = {NULL};
    struct ArrowSchema column_schema = {.format = "l", .name = "n"},
                       *schema_children[] = {&column_schema};
    struct ArrowSchema schema = {
        .format = "+s", .name = "", .n_children = 1, .children = schema_children};
    const int64_t rows = BATCH_SIZE / sizeof(int64_t);
    struct ArrowArray column = {.length = rows, .n_buffers = 2, .buffers = column_buffers};
    struct ArrowArray *array_children[] = {&column};
    struct ArrowArray array = {.length = rows,
                               .n_buffers = 1,
                               .buffers = root_buffers,
                               .n_children = 1,
                               .children = array_children};
    struct tfos_feed_writer_options options = {
        .socket_name = socket_name, .cluster_id = "bench", .key = KEY, .feed = 1};
    struct tfos_feed_writer *writer = NULL;
    struct tfos_error err;
    char go;

    for (int64_t i = 0; i < rows; i++)
        values[i] = i;
    check(tfos_feed_writer_open(&options, &writer, &err), &err);
    while (read(go_fd, &go, 1) == 1)
        for (int i = 0; i < ROUND_BATCHES; i++)
            check(tfos_feed_writer_append(writer, &schema, &array, &err), &err);
    check(tfos_feed_writer_finish(writer, &err), &err);
    tfos_feed_writer_close(writer);
}

// One round: GB/s from the go to the last byte summed.
static double time_ring(struct node *node, int go_fd)
{
    const uint64_t rows = BATCH_SIZE / sizeof(int64_t);
    const uint64_t expected = rows * (rows - 1) / 2;
    double begin = now_s();

    if (write(go_fd, "g", 1) != 1)
        exit(1);
    for (int i = 0; i < ROUND_BATCHES; i++) {
        struct tfos_feed_item item;
        struct tfos_error err;
        check(tfos_feed_reader_next(node->reader, -1, &item, &err), &err);
        const uint64_t *words = item.array.children[0]->buffers[1];
        uint64_t sum = 0;
        for (uint64_t word = 0; word < rows; word++)
            sum += words[word];
        if (item.array.length != (int64_t)rows || sum != expected) {
            fprintf(stderr, "ring: batch %d is wrong\n", i);
            exit(1);
        }
        item.schema.release(&item.schema);
        item.array.release(&item.array);
    }
    return (double)ROUND_BATCHES * BATCH_SIZE / (now_s() - begin) / 1e9;
}

static double time_memcpy(char *region, const char *batch)
{
    double begin = now_s();

    for (int i = 0; i < ROUND_BATCHES; i++) {
        memcpy(region + (size_t)i * BATCH_SIZE % TFOS_FEED_LANE_SIZE, batch, BATCH_SIZE);
        // The copies must all happen.
        __asm__ volatile("" ::: "memory");
    }
    return (double)ROUND_BATCHES * BATCH_SIZE / (now_s() - begin) / 1e9;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static void open_node(struct node *node, const char *socket_name)
{
    struct tfos_feed_host_options options = {
        .cluster_id = "bench", .key = KEY, .socket_name = socket_name, .listen_host = "127.0.0.1"};
    struct tfos_error err;

    check(tfos_feed_host_open(&options, &node->host, &err), &err);
    check(tfos_feed_reader_open(fcntl(tfos_feed_host_bell_fd(node->host, NULL), F_DUPFD_CLOEXEC, 3),
                                &node->reader, &err),
          &err);
}

int main(void)
{
    struct node node = {0};
    char socket_name[64];
    int go[2];
    pthread_t thread;

    snprintf(socket_name, sizeof socket_name, "tfos-bench-ring-%d", (int)getpid());
    open_node(&node, socket_name);
    if (pipe2(go, O_CLOEXEC) != 0)
        return 1;
    pid_t producer = fork();
    if (producer == 0) {
        close(go[1]);
        feed(socket_name, go[0]);
        _exit(0);
    }
    close(go[0]);
    pthread_create(&thread, NULL, run_host, &node);
    char *region = mmap(NULL, TFOS_FEED_LANE_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    char *batch = malloc(BATCH_SIZE);
    memset(batch, 1, BATCH_SIZE);
    double ours[ROUNDS], anchor[ROUNDS];
    // One round of each to warm up.
    for (int i = -1; i < ROUNDS; i++) {
        double ring_rate = time_ring(&node, go[1]);
        double memcpy_rate = time_memcpy(region, batch);
        fprintf(stderr, "ring: %.2f GB/s, memcpy: %.2f GB/s\n", ring_rate, memcpy_rate);
        if (i >= 0) {
            ours[i] = ring_rate;
            anchor[i] = memcpy_rate;
        }
    }
    close(go[1]);
    int status = 0;
    waitpid(producer, &status, 0);
    atomic_store(&node.is_stopping, true);
    pthread_join(thread, NULL);
    tfos_feed_reader_close(node.reader);
    tfos_feed_host_close(node.host);
    double our_rate = median(ours), anchor_rate = median(anchor);
    double ratio = our_rate / anchor_rate;
    printf("{\"bench\": \"ring\", \"case\": \"1MB batches\", \"unit\": \"GB/s\", \"ours\": %.2f, "
           "\"anchor\": %.2f, "
           "\"anchor_name\": \"memcpy\", \"ratio\": %.3f, \"goal\": %.1f, \"met\": %s}\n",
           our_rate, anchor_rate, ratio, GOAL, ratio >= GOAL ? "true" : "false");
    free(batch);
    munmap(region, TFOS_FEED_LANE_SIZE);
    return status == 0 ? 0 : 1;
}
