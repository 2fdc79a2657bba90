// SPDX-License-Identifier: Apache-2.0
/// A producer and a consumer of batches of 1 MB: what the benches of the feed in C share. The
/// producer is a process forked before any thread, and feeds a round each time it is told to go.
#ifndef TFOS_BENCH_FEED_PAIR_H
#define TFOS_BENCH_FEED_PAIR_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/feed.h"
#include "figures.h"
#include "number_column.h"

#define BATCH_CASE "1MB batches"
#define BATCH_SIZE (1 << 20)
#define BATCH_WORDS (BATCH_SIZE / (int64_t)sizeof(int64_t))
#define PAIR_CLUSTER "bench"
#define PAIR_KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

struct node {
    struct tfos__feed_host *host;
    struct tfos_feed_reader *reader;
    pthread_t thread;
    atomic_bool is_stopping;
};

static double gigabytes_a_second(int batch_count, double seconds)
{
    return (double)batch_count * BATCH_SIZE / seconds / 1e9;
}

static void *run_host(void *argument)
{
    struct node *node = argument;

    while (!atomic_load(&node->is_stopping)) {
        struct pollfd descriptor = {tfos__feed_host_fd(node->host), POLLIN, 0};
        struct tfos__feed_event event;
        struct tfos_error err;
        poll(&descriptor, 1, 100);
        check(tfos__feed_host_step(node->host, &err), &err);
        while (tfos__feed_host_next_event(node->host, &event, &err) == TFOS_OK)
            if (event.kind == TFOS__FEED_CHANNEL_OPENED)
                check(tfos__feed_reader_add_channel(node->reader, event.channel,
                                                    fcntl(event.fd, F_DUPFD_CLOEXEC, 3), &err),
                      &err);
    }
    return NULL;
}

static void node_open(struct node *node, const char *socket_name)
{
    struct tfos__feed_host_options options = {.cluster_id = PAIR_CLUSTER,
                                              .key = PAIR_KEY,
                                              .socket_name = socket_name,
                                              .listen_host = "127.0.0.1"};
    struct tfos_error err;

    check(tfos__feed_host_open(&options, &node->host, &err), &err);
    check(tfos__feed_reader_open(
              fcntl(tfos__feed_host_control_fd(node->host, NULL), F_DUPFD_CLOEXEC, 3),
              &node->reader, &err),
          &err);
}

/// The host's work, in a thread: call it when all producers are forked.
static void node_start(struct node *node)
{
    if (pthread_create(&node->thread, NULL, run_host, node) != 0)
        exit(1);
}

static void node_close(struct node *node)
{
    atomic_store(&node->is_stopping, true);
    pthread_join(node->thread, NULL);
    tfos__feed_reader_close(node->reader);
    tfos__feed_host_close(node->host);
}

/// The producer: one batch, appended `batch_count` times a round. Over shared memory by
/// `socket_name`, over TCP by `address`; the other is NULL.
static void produce(const char *socket_name, const char *address, int go_fd, int batch_count)
{
    static int64_t values[BATCH_WORDS];
    struct number_column numbers;
    struct tfos_feeder_options options = {.cluster_id = PAIR_CLUSTER, .key = PAIR_KEY, .feed = 1};
    struct tfos__feed_target target = {.socket_name = socket_name, .address = address};
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;
    char go;

    for (int64_t i = 0; i < BATCH_WORDS; i++)
        values[i] = i;
    number_column_init(&numbers, values, BATCH_WORDS);
    check(tfos__feed_writer_open(&options, &target, &writer, &err), &err);
    while (read(go_fd, &go, 1) == 1 && go == 'g')
        for (int i = 0; i < batch_count; i++)
            check(tfos__feed_writer_append(writer, &numbers.schema, &numbers.array, &err), &err);
    check(tfos__feed_writer_finish(writer, &err), &err);
    tfos__feed_writer_close(writer);
}

/// The consumer: reads every byte of so many batches, and checks their sums.
static void consume(struct node *node, int batch_count)
{
    const uint64_t expected = BATCH_WORDS * (BATCH_WORDS - 1) / 2;

    for (int i = 0; i < batch_count; i++) {
        struct tfos_feed_item item;
        struct tfos_error err;
        check(tfos_feed_reader_next(node->reader, -1, &item, &err), &err);
        const uint64_t *words = item.array.children[0]->buffers[1];
        uint64_t sum = 0;
        for (int64_t word = 0; word < item.array.length; word++)
            sum += words[word];
        if (item.array.length != BATCH_WORDS || sum != expected) {
            fprintf(stderr, "bench: batch %d is wrong\n", i);
            exit(1);
        }
        item.schema.release(&item.schema);
        item.array.release(&item.array);
    }
}

#endif
