// SPDX-License-Identifier: Apache-2.0
/// Consumers that keep what they get, the partitions that feed them, and a look at where it lies.
#ifndef TFOS_TEST_FEED_HOARD_H
#define TFOS_TEST_FEED_HOARD_H

#include <sys/wait.h>

#include "feed_task.h"

#define RING_SIZE (1 << 20)
#define RINGS 20
#define PAYLOAD 1000
#define BATCH_ROWS 50
#define TOTAL_ROWS ((int64_t)RING_SIZE * RINGS / PAYLOAD / BATCH_ROWS * BATCH_ROWS)

// ---- what the process has mapped

struct mapped {
    uint64_t size; ///< of all mappings but reserved addresses, which malloc() takes at any time
    int channel_count;
};

static inline bool is_channel_line(const char *line)
{
    return strstr(line, "tfos-channel") != NULL;
}

static inline struct mapped count_mapped(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    struct mapped mapped = {0};
    unsigned long begin = 0, end = 0;
    char line[512], access[5];

    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, access) == 3) {
            mapped.size += strcmp(access, "---p") == 0 ? 0 : end - begin;
            mapped.channel_count += is_channel_line(line);
        }
    fclose(file);
    return mapped;
}

/// Whether the batch lies in the memory that its writer shares.
static inline bool is_in_channel(const struct tfos_feed_item *item)
{
    FILE *file = fopen("/proc/self/maps", "r");
    unsigned long place = (unsigned long)item->array.children[0]->buffers[1];
    unsigned long begin = 0, end = 0;
    bool is_found = false, is_in_channel = false;
    char line[512];

    while (!is_found && fgets(line, sizeof(line), file)) {
        is_found = sscanf(line, "%lx-%lx", &begin, &end) == 2 && begin <= place && place < end;
        is_in_channel = is_channel_line(line);
    }
    fclose(file);
    assert_true(is_found);
    return is_in_channel;
}

// ---- writers, and consumers that keep what they get

static inline struct writer_options held_batches_options(const struct node *node, int64_t partition)
{
    struct writer_options options = writer_options(node, partition);

    options.feeder.channel_size = RING_SIZE;
    return options;
}

/// Forks a process that feeds a whole partition and exits with the status, negated.
static inline pid_t fork_task(struct task *task)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    (void)task_main(task);
    _exit(-task->status);
}

static inline void wait_task(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static inline void held_batches_task(struct task *task, struct node *node, int64_t partition)
{
    task_init(task, node, partition, TOTAL_ROWS);
    task->options = held_batches_options(node, partition);
    task->batch_rows = BATCH_ROWS;
    task->payload = PAYLOAD;
}

/// Every byte of a batch.
static inline void check_whole(const struct tfos_feed_item *item)
{
    const struct ArrowArray *bytes = item->array.children[1];
    const int32_t *offsets = bytes->buffers[1];
    const uint8_t *data = bytes->buffers[2];

    check_batch(item, PAYLOAD);
    for (int64_t i = 0; i < item->array.length; i++)
        for (int32_t place = offsets[i]; place < offsets[i + 1]; place++)
            if (data[place] != (uint8_t)(item->first_row + i))
                fail_msg("row %lld, byte %d: %d", (long long)(item->first_row + i),
                         (int)(place - offsets[i]), data[place]);
}

struct held_batches {
    struct tfos_feed_item items[4096];
    int count;
};

/// Keeps all batches of one partition.
static inline int64_t hold_partition(struct node *node, struct held_batches *held)
{
    int64_t rows = 0;

    for (;;) {
        struct tfos_feed_item *item = &held->items[held->count];
        assert_int_equal(next_item(node, item), TFOS_OK);
        if (item->kind == TFOS_FEED_PARTITION_END)
            return rows;
        assert_int_equal(item->first_row, rows);
        rows += item->array.length;
        held->count++;
        assert_in_range(held->count, 1, 4095);
    }
}

static inline void check_held(const struct held_batches *held)
{
    for (int i = 0; i < held->count; i++)
        check_whole(&held->items[i]);
}

static inline void release_held(struct held_batches *held)
{
    for (int i = 0; i < held->count; i++)
        release_item(&held->items[i]);
    held->count = 0;
}

#endif
