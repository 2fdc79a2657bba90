// SPDX-License-Identifier: Apache-2.0
// Batches of 1 MB through the feed between two processes, the consumer summing every byte, against
// one process's memcpy of such batches into a region of the ring's size. Rounds of both alternate;
// the medians are compared. Prints one JSON line. With --memcpy only that rate is measured, in one
// round, and printed in GB/s, for other benches to compare with.
#include <sys/mman.h>

#include "feed_pair.h"

#define ROUND_BATCHES 4000
#define ROUNDS 7
#define GOAL 0.7

// One round: GB/s from the go to the last byte summed.
static double time_ring(struct node *node, int go_fd)
{
    double begin = now_s();

    if (write(go_fd, "g", 1) != 1)
        exit(1);
    consume(node, ROUND_BATCHES);
    return gigabytes_a_second(ROUND_BATCHES, now_s() - begin);
}

static double time_memcpy(char *region, const char *batch)
{
    double begin = now_s();

    for (int i = 0; i < ROUND_BATCHES; i++) {
        memcpy(region + (size_t)i * BATCH_SIZE % TFOS__FEED_CHANNEL_SIZE, batch, BATCH_SIZE);
        // The copies must all happen.
        __asm__ volatile("" ::: "memory");
    }
    return gigabytes_a_second(ROUND_BATCHES, now_s() - begin);
}

// What time_memcpy() copies, and where to.
static void open_memory(char **region, char **batch)
{
    *region = mmap(NULL, TFOS__FEED_CHANNEL_SIZE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    *batch = malloc(BATCH_SIZE);
    if (*region == MAP_FAILED || !*batch) {
        fprintf(stderr, "ring: no memory\n");
        exit(1);
    }
    memset(*batch, 1, BATCH_SIZE);
}

int main(int argc, char **argv)
{
    struct node node = {0};
    char socket_name[64], *region = NULL, *batch = NULL;
    int go[2];

    if (argc == 2 && strcmp(argv[1], "--memcpy") == 0) {
        open_memory(&region, &batch);
        printf("%.3f\n", time_memcpy(region, batch));
        return 0;
    }
    snprintf(socket_name, sizeof(socket_name), "tfos-bench-ring-%d", (int)getpid());
    node_open(&node, socket_name);
    if (pipe2(go, O_CLOEXEC) != 0)
        return 1;
    pid_t producer = fork();
    if (producer == 0) {
        close(go[1]);
        produce(socket_name, NULL, go[0], ROUND_BATCHES);
        _exit(0);
    }
    close(go[0]);
    node_start(&node);
    open_memory(&region, &batch);
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
    node_close(&node);
    const struct figure figure = {"ring", BATCH_CASE, "GB/s", "memcpy", GOAL};
    print_line(&figure, median(ours, ROUNDS), median(anchor, ROUNDS));
    free(batch);
    munmap(region, TFOS__FEED_CHANNEL_SIZE);
    return status == 0 ? 0 : 1;
}
