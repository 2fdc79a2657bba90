// SPDX-License-Identifier: Apache-2.0
// Batches from writer to reader through shared memory: order, sizes, wrap-around, several writers,
// epochs.
#include "feed_fixture.h"

struct task {
    struct node *node;
    struct tfos_feed_writer_options options;
    int64_t rows, batch_rows;
    int payload;
    enum tfos_status status;
    int64_t row_count;
    struct tfos_error err;
    pthread_t thread;
};

static void *run_task(void *argument)
{
    struct task *task = argument;
    struct tfos_feed_writer *writer = NULL;

    task->status = tfos_feed_writer_open(&task->options, &writer, &task->err);
    if (task->status != TFOS_OK)
        return NULL;
    int64_t row = task->options.first_row;
    while (task->status == TFOS_OK && row < task->rows) {
        int64_t rows = task->rows - row < task->batch_rows ? task->rows - row : task->batch_rows;
        task->status = append_rows(writer, row, rows, task->payload, &task->err);
        row += rows;
    }
    if (task->status == TFOS_OK)
        task->status = tfos_feed_writer_finish(writer, &task->err);
    task->row_count = tfos_feed_writer_row_count(writer);
    tfos_feed_writer_close(writer);
    return NULL;
}

static void task_start(struct task *task, struct node *node, int64_t partition, int64_t rows)
{
    memset(task, 0, sizeof *task);
    task->node = node;
    task->options = writer_options(node, partition);
    task->rows = rows;
    task->batch_rows = 10;
}

static void task_run(struct task *task)
{
    assert_int_equal(pthread_create(&task->thread, NULL, run_task, task), 0);
}

static void task_join(struct task *task)
{
    pthread_join(task->thread, NULL);
    if (task->status != TFOS_OK)
        fail_msg("partition %d: %s: %s", (int)task->options.partition,
                 tfos_status_name(task->status), task->err.message);
}

// Reads to the end of one partition, and checks each row.
static int64_t read_partition(struct node *node, int payload)
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

static void rows_arrive_in_order(void **state)
{
    static const struct {
        int64_t rows, batch_rows;
        int payload;
    } sizes[] = {{0, 1, 0},      {1, 1, 0},        {1000, 7, 0},  {5000, 100, 100},
                 {300, 3, 9000}, {200, 200, 3000}, {40, 1, 60000}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct node node;
        struct task task;
        node_open(&node, 0);
        node_start(&node);
        task_start(&task, &node, 3, sizes[i].rows);
        task.batch_rows = sizes[i].batch_rows;
        task.payload = sizes[i].payload;
        task_run(&task);
        assert_int_equal(read_partition(&node, task.payload), sizes[i].rows);
        task_join(&task);
        assert_int_equal(task.row_count, sizes[i].rows);
        struct tfos_feed_event closed = node_wait_closed(&node, 1);
        assert_int_equal(closed.partition, 3);
        assert_int_equal(closed.rows, sizes[i].rows);
        assert_true(closed.complete);
        struct tfos_feed_stats stats = node_stats(&node);
        assert_int_equal(stats.rows_written, sizes[i].rows);
        assert_int_equal(stats.rows_read, sizes[i].rows);
        assert_true(stats.is_drained);
        assert_int_equal(stats.writer_count, 0);
        node_close(&node);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(rows_arrive_in_order),
};

TEST_MAIN(cases)
