// SPDX-License-Identifier: Apache-2.0
/// Writers in threads, and reading what they write.
#ifndef TFOS_TEST_FEED_TASK_H
#define TFOS_TEST_FEED_TASK_H

#include "feed_fixture.h"

struct append_call {
    struct tfos__feed_writer *writer;
    int64_t first, rows;
    int payload;
    enum tfos_status status;
    struct tfos_error err;
};

static inline void *append_main(void *argument)
{
    struct append_call *call = argument;

    call->status = append_rows(call->writer, call->first, call->rows, call->payload, &call->err);
    return NULL;
}

struct task {
    struct node *node;
    struct writer_options options;
    int64_t rows, batch_rows;
    int payload;
    enum tfos_status status;
    int64_t row_count;
    struct tfos_error err;
    pthread_t thread;
};

static inline void *task_main(void *argument)
{
    struct task *task = argument;
    struct tfos__feed_writer *writer = NULL;

    task->status = writer_open(&task->options, &writer, &task->err);
    if (task->status != TFOS_OK)
        return NULL;
    int64_t row = task->options.target.first_row;
    while (task->status == TFOS_OK && row < task->rows) {
        int64_t rows = task->rows - row < task->batch_rows ? task->rows - row : task->batch_rows;
        task->status = append_rows(writer, row, rows, task->payload, &task->err);
        row += rows;
    }
    if (task->status == TFOS_OK)
        task->status = tfos__feed_writer_finish(writer, &task->err);
    task->row_count = tfos__feed_writer_row_count(writer);
    tfos__feed_writer_close(writer);
    return NULL;
}

static inline void task_init(struct task *task, struct node *node, int64_t partition, int64_t rows)
{
    memset(task, 0, sizeof(*task));
    task->node = node;
    task->options = writer_options(node, partition);
    task->rows = rows;
    task->batch_rows = 10;
}

static inline void task_run(struct task *task)
{
    assert_int_equal(pthread_create(&task->thread, NULL, task_main, task), 0);
}

static inline void task_join(struct task *task)
{
    pthread_join(task->thread, NULL);
    if (task->status != TFOS_OK)
        fail_msg("partition %d: %s: %s", (int)task->options.feeder.partition,
                 tfos_status_name(task->status), task->err.message);
}

// Reads to the end of one partition, and checks each row.
static inline int64_t read_partition(struct node *node, int payload)
{
    struct tfos_feed_item item;
    int64_t rows = 0;

    for (;;) {
        assert_int_equal(next_item(node, &item), TFOS_OK);
        if (item.kind == TFOS_FEED_PARTITION_END)
            break;
        assert_int_equal(item.kind, TFOS_FEED_BATCH);
        assert_int_equal(item.first_row, rows);
        assert_string_equal(item.schema.children[0]->name, "n");
        check_batch(&item, payload);
        rows += item.array.length;
        release_item(&item);
    }
    assert_int_equal(item.first_row, rows);
    return rows;
}

#endif
