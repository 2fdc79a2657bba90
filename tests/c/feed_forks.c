// SPDX-License-Identifier: Apache-2.0
// A process that is forked from the reader's inherits its rings, and batches that it holds.
#include "base/memory.h"
#include "feed_held_batches.h"

/// A child that waits for word() and exits with 0 if `check` holds then.
struct child {
    pid_t pid;
    int fd;
};

static struct child fork_child(bool (*check)(struct node *node, struct tfos_feed_item *item),
                               struct node *node, struct tfos_feed_item *item)
{
    int fds[2];
    char byte;

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) {
        close(fds[0]);
        return (struct child){pid, fds[1]};
    }
    close(fds[1]);
    bool has_word = read(fds[0], &byte, 1) == 1;
    _exit(has_word && check(node, item) ? 0 : 1);
}

static void give_word(struct child child)
{
    assert_int_equal(write(child.fd, "", 1), 1);
    close(child.fd);
    wait_task(child.pid);
}

/// Reads to the end of the partition, from row `rows` on; how many it has.
static int64_t read_rest(struct node *node, int64_t rows)
{
    struct tfos_feed_item item;

    for (;;) {
        assert_int_equal(next_item(node, &item), TFOS_OK);
        if (item.kind == TFOS_FEED_PARTITION_END)
            return rows;
        assert_int_equal(item.first_row, rows);
        check_whole(&item);
        rows += item.array.length;
        release_item(&item);
    }
}

static bool is_refused(enum tfos_status status, const struct tfos_error *err)
{
    return status == TFOS_INVALID && strstr(err->message, "forked from");
}

static bool reads_nothing(struct node *node, struct tfos_feed_item *item)
{
    struct tfos_error err;
    bool is_right =
        is_refused(tfos_feed_reader_next(node->reader, 0, item, &err), &err) &&
        is_refused(tfos_feed_reader_check(node->reader, &err), &err) &&
        is_refused(tfos_feed_reader_put_results(node->reader, item->channel, &item->schema,
                                                &item->array, NULL, &err),
                   &err);

    tfos__feed_reader_set_batch_rows(node->reader, 7);
    tfos_feed_reader_terminate(node->reader);
    tfos_feed_reader_fail(node->reader, TFOS_CLOSED, "never");
    tfos__feed_reader_close(node->reader);
    return is_right;
}

/// The child gets no row and disturbs none; the reader continues until it looks.
static void s73_a_forked_process_reads_nothing(void **state)
{
    struct node node;
    struct task task;
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    task_init(&task, &node, 0, 200);
    task_run(&task);
    task_join(&task);
    assert_int_equal(next_item(&node, &item), TFOS_OK);
    give_word(fork_child(reads_nothing, &node, &item));
    check_batch(&item, 0);
    release_item(&item);
    assert_false(node_stats(&node).is_terminated);
    enum tfos_status status = tfos_feed_reader_next(node.reader, 0, &item, &err);
    assert_int_equal(status, TFOS_INVALID);
    assert_non_null(strstr(err.message, "forked from this one, has tried to read"));
    node_close(&node);
}

static bool exits(struct node *node, struct tfos_feed_item *item)
{
    tfos_feed_batch_use(&item->array, 1);
    release_item(item);
    tfos__feed_reader_close(node->reader);
    return true;
}

/// Children that only end, and free what they inherit, take nothing away.
static void s73_a_forked_process_gives_nothing_back(void **state)
{
    struct node node;
    struct task task;
    struct tfos_feed_item first;

    (void)state;
    node_open(&node, 0);
    held_batches_task(&task, &node, 0);
    node_start(&node);
    task_run(&task);
    assert_int_equal(next_item(&node, &first), TFOS_OK);
    int64_t read_before = node_stats(&node).rows_read;
    tfos__memory_fail_at(1); // nothing moves out of the ring
    struct child child = fork_child(exits, &node, &first);
    tfos__memory_fail_at(0);
    assert_true(is_in_channel(&first));
    give_word(child);
    assert_int_equal(node_stats(&node).rows_read, read_before);
    assert_int_equal(read_rest(&node, first.array.length), TOTAL_ROWS);
    task_join(&task);
    check_whole(&first);
    release_item(&first);
    node_close(&node);
}

static bool still_holds(struct node *node, struct tfos_feed_item *item)
{
    (void)node;
    check_whole(item);
    release_item(item);
    return true;
}

/// The ring goes round many times; the child sees what it inherited.
static void s73_what_is_held_stays_in_a_forked_process(void **state)
{
    struct node node;
    struct task task;
    struct tfos_feed_item item;

    (void)state;
    node_open(&node, 0);
    held_batches_task(&task, &node, 0);
    node_start(&node);
    task_run(&task);
    assert_int_equal(next_item(&node, &item), TFOS_OK);
    int64_t rows = item.array.length;
    struct child child = fork_child(still_holds, &node, &item);
    check_whole(&item);
    release_item(&item);
    assert_int_equal(read_rest(&node, rows), TOTAL_ROWS);
    task_join(&task);
    give_word(child);
    node_close(&node);
}

static bool opens_its_own(struct node *node, struct tfos_feed_item *item)
{
    struct node own;
    struct task task;

    (void)node;
    (void)item;
    node_open(&own, 0);
    node_start(&own);
    task_init(&task, &own, 0, 200);
    task_run(&task);
    bool is_right = read_partition(&own, 0) == 200;
    task_join(&task);
    node_close(&own);
    return is_right;
}

static void s73_a_forked_process_has_readers_of_its_own(void **state)
{
    struct node node;
    struct tfos_feed_item item;

    (void)state;
    node_open(&node, 0); // without its thread: TSan lets a child of many threads start none
    give_word(fork_child(opens_its_own, &node, &item));
    node_start(&node);
    node_close(&node);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s73_a_forked_process_reads_nothing),
    cmocka_unit_test(s73_a_forked_process_gives_nothing_back),
    cmocka_unit_test(s73_what_is_held_stays_in_a_forked_process),
    cmocka_unit_test(s73_a_forked_process_has_readers_of_its_own),
};

TEST_MAIN(cases)
