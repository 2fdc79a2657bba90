// SPDX-License-Identifier: Apache-2.0
// When batches that are held are moved out of a lane, and when not.
#include "feed_arrow.h"
#include "feed_hoard.h"

#include "base/memory.h"
#include "feed/lane.h"
#include "feed/sender.h"

static struct hoard hoard;

// A consumer that holds batches which keep nobody waiting gets no copies, however long it waits.
static void only_what_is_in_the_way_is_moved(void **state)
{
    struct node node;
    struct tfos_feed_item first, item;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct tfos__feed_writer_options options = lending_options(&node, 0);
    assert_done(tfos__feed_writer_open(&options, &writer, &err));
    assert_done(append_rows(writer, 0, 400, PAYLOAD, &err));
    assert_done(append_rows(writer, 400, 400, PAYLOAD, &err));
    assert_int_equal(next_item(&node, &first), TFOS_OK);
    assert_int_equal(next_item(&node, &item), TFOS_OK);
    // The ring is full to more than three quarters, but nobody waits for space.
    assert_int_equal(tfos_feed_reader_next(node.reader, 300, &hoard.items[0], &err), TFOS_AGAIN);
    assert_true(is_in_lane(&first));
    // Now somebody does.
    struct append_call call = {.writer = writer, .first = 800, .rows = 400, .payload = PAYLOAD};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, append_main, &call), 0);
    assert_int_equal(next_item(&node, &hoard.items[0]), TFOS_OK);
    pthread_join(thread, NULL);
    assert_done(call.status);
    assert_false(is_in_lane(&first));
    assert_false(is_in_lane(&item));
    assert_true(is_in_lane(&hoard.items[0]));
    hoard.count = 1;
    check_hoard(&hoard);
    check_whole(&first);
    check_whole(&item);
    release_item(&item);
    release_item(&first);
    release_hoard(&hoard);
    tfos__feed_writer_close(writer);
    node_close(&node);
}

// A lane whose writer has gone serves the next one, though all that it brought is still held.
static void lanes_come_free_from_under_batches(void **state)
{
    const int partition_count = 6;
    struct node node;
    struct task tasks[6];

    (void)state;
    node_open(&node, RING_SIZE + 4096); // for one lane
    node_start(&node);
    for (int i = 0; i < partition_count; i++) {
        lending_task(&tasks[i], &node, i);
        tasks[i].rows = 200;
        task_run(&tasks[i]);
    }
    for (int i = 0; i < partition_count; i++)
        assert_int_equal(hoard_partition(&node, &hoard), 200);
    for (int i = 0; i < partition_count; i++)
        task_join(&tasks[i]);
    assert_int_equal(node.lane_count, 1);
    check_hoard(&hoard);
    // The last lane comes free as well, when somebody waits for what does not come.
    struct tfos_feed_item item;
    struct tfos_error err;
    int64_t deadline = tfos__deadline(WAIT_MS);
    while (!node_stats(&node).is_drained) {
        assert_true(tfos__now_ms() < deadline);
        assert_int_equal(tfos_feed_reader_next(node.reader, 50, &item, &err), TFOS_AGAIN);
    }
    check_hoard(&hoard);
    release_hoard(&hoard);
    node_close(&node);
}

// Batches stay when their lane is exchanged for a larger one, and its memory is freed.
static void lanes_grow_under_batches(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;
    struct tfos_feed_item *large = &hoard.items[0];

    (void)state;
    node_open(&node, 4 * RING_SIZE);
    node_start(&node);
    struct tfos__feed_writer_options options = lending_options(&node, 0);
    options.lane_size = 64 << 10;
    assert_done(tfos__feed_writer_open(&options, &writer, &err));
    assert_done(append_rows(writer, 0, 20, PAYLOAD, &err));
    struct tfos_feed_item first;
    assert_int_equal(next_item(&node, &first), TFOS_OK);
    struct append_call call = {.writer = writer, .first = 20, .rows = 1, .payload = 2 * RING_SIZE};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, append_main, &call), 0);
    assert_int_equal(next_item(&node, large), TFOS_OK);
    pthread_join(thread, NULL);
    assert_done(call.status);
    check_batch(large, 2 * RING_SIZE);
    // The old lane had to make room for the new one: its memory is gone.
    assert_false(is_in_lane(&first));
    check_whole(&first);
    release_item(large);
    tfos__feed_writer_close(writer);
    node_close(&node);
    check_whole(&first);
    release_item(&first);
}

// A lane that is blocked is helped even while another always has something to give.
static void a_busy_lane_does_not_hide_a_blocked_one(void **state)
{
    struct node node;
    struct task tasks[2];
    struct tfos_feed_item first = {0};
    int64_t rows[2] = {0};
    int ended_count = 0;

    (void)state;
    node_open(&node, 0);
    for (int i = 0; i < 2; i++)
        lending_task(&tasks[i], &node, i);
    pid_t pids[2] = {fork_task(&tasks[0]), fork_task(&tasks[1])};
    node_start(&node);
    while (ended_count < 2) {
        struct tfos_feed_item item;
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        if (item.kind == TFOS_FEED_PARTITION_END) {
            ended_count++;
            continue;
        }
        assert_int_equal(item.first_row, rows[item.partition]);
        check_whole(&item);
        rows[item.partition] += item.array.length;
        if (!first.array.release)
            first = item;
        else
            release_item(&item);
    }
    for (int i = 0; i < 2; i++) {
        wait_task(pids[i]);
        assert_int_equal(rows[i], TOTAL_ROWS);
    }
    check_whole(&first);
    release_item(&first);
    node_close(&node);
}

// ---- a lane that the case writes to by hand

#define SMALL_RING 8192

struct bare {
    struct tfos_feed_reader *reader;
    struct tfos__board *board;
    struct tfos__lane *lane; ///< as its writer has it
    struct tfos__sender sender;
    int64_t row;
};

static void bare_open(struct bare *bare)
{
    struct tfos_error err;
    int bell_fd = -1, lane_fd = -1;

    memset(bare, 0, sizeof *bare);
    assert_done(tfos__board_create(&bell_fd, &err));
    assert_done(tfos__board_map(bell_fd, &bare->board, &err));
    assert_done(tfos__feed_reader_open(bell_fd, &bare->reader, &err));
    assert_done(tfos__lane_create(SMALL_RING, 0, &lane_fd, &err));
    assert_done(tfos__lane_map(lane_fd, TFOS__LANE_WRITER, bare->board, &bare->lane, &err));
    assert_done(tfos__feed_reader_add_lane(bare->reader, 0, lane_fd, &err));
}

static void bare_close(struct bare *bare)
{
    tfos__sender_clear(&bare->sender);
    tfos__feed_reader_close(bare->reader);
    tfos__lane_release(bare->lane);
    tfos__board_release(bare->board);
}

// Writes one row. AGAIN: there is no space.
static enum tfos_status bare_put(struct bare *bare)
{
    struct tfos__inlet *inlet = &bare->lane->inlet;
    struct tfos__record head = {.feed = 1, .row = bare->row};
    struct test_batch batch;
    struct tfos_error err;
    uint8_t *space = NULL;

    batch_init(&batch, bare->row, 1, PAYLOAD);
    assert_done(tfos__sender_begin(&bare->sender, &batch.schema, &batch.array, &err));
    if (!bare->sender.is_sent) {
        uint64_t size = tfos__sender_schema_size(&bare->sender);
        assert_done(tfos__inlet_reserve(inlet, size, &space, &err));
        tfos__sender_put_schema(&bare->sender, &head, space);
        assert_done(tfos__inlet_commit(inlet, size, 0, &err));
        bare->sender.is_sent = true;
    }
    assert_done(tfos__batch_fit(&bare->sender.plan, &bare->sender.schema, &batch.array, 0,
                                SMALL_RING, &head.rows, &err));
    uint64_t size = tfos__sender_batch_size(&bare->sender);
    enum tfos_status status = tfos__inlet_reserve(inlet, size, &space, &err);
    assert_true(status == TFOS_OK || status == TFOS_AGAIN);
    if (status == TFOS_OK) {
        tfos__sender_put_batch(&bare->sender, &head, space);
        assert_done(tfos__inlet_commit(inlet, size, (uint64_t)++bare->row, &err));
    }
    batch_clear(&batch);
    return status;
}

// Fills the ring and keeps all that is in it.
static void bare_fill(struct bare *bare)
{
    struct tfos_feed_item *item = NULL;
    struct tfos_error err;

    while (bare_put(bare) == TFOS_OK) {
        item = &hoard.items[hoard.count++];
        assert_done(tfos_feed_reader_next(bare->reader, 0, item, &err));
    }
}

// Without memory the batches stay where they are; they are moved when there is some.
static void an_evacuation_that_failed_is_tried_again(void **state)
{
    struct bare bare;
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    bare_open(&bare);
    bare_fill(&bare);
    assert_in_range(hoard.count, 3, 8);
    tfos__memory_fail_at(1);
    assert_int_equal(tfos_feed_reader_next(bare.reader, 100, &item, &err), TFOS_AGAIN);
    assert_true(is_in_lane(&hoard.items[0]));
    assert_int_equal(bare_put(&bare), TFOS_AGAIN);
    tfos__memory_fail_at(0);
    int64_t deadline = tfos__deadline(WAIT_MS);
    while (bare_put(&bare) == TFOS_AGAIN) {
        assert_true(tfos__now_ms() < deadline);
        assert_int_equal(tfos_feed_reader_next(bare.reader, 50, &item, &err), TFOS_AGAIN);
    }
    assert_false(is_in_lane(&hoard.items[0]));
    check_hoard(&hoard);
    release_hoard(&hoard);
    bare_close(&bare);
}

// Batches that share pages with others, with unread ones and with the end of the ring, given back
// in any order, before and after they are moved.
static void neighbours_do_not_disturb_each_other(void **state)
{
    struct bare bare;
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    bare_open(&bare);
    random_state = 7;
    for (int round = 0; round < 200; round++) {
        bare_fill(&bare);
        while (hoard.count > 0 && random_below(4) > 0) {
            int victim = (int)random_below((uint64_t)hoard.count);
            check_whole(&hoard.items[victim]);
            release_item(&hoard.items[victim]);
            hoard.items[victim] = hoard.items[--hoard.count];
        }
        // What is left in the way is moved.
        while (bare_put(&bare) == TFOS_AGAIN)
            assert_int_equal(tfos_feed_reader_next(bare.reader, 5, &item, &err), TFOS_AGAIN);
        assert_done(tfos_feed_reader_next(bare.reader, 0, &hoard.items[hoard.count++], &err));
        check_hoard(&hoard);
    }
    release_hoard(&hoard);
    assert_int_equal(atomic_load(&bare.lane->page->rows_released), bare.row);
    assert_int_equal(atomic_load(&bare.lane->page->tail), atomic_load(&bare.lane->page->head));
    bare_close(&bare);
    assert_int_equal(count_mapped().lane_count, 0);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(only_what_is_in_the_way_is_moved),
    cmocka_unit_test(lanes_come_free_from_under_batches),
    cmocka_unit_test(lanes_grow_under_batches),
    cmocka_unit_test(a_busy_lane_does_not_hide_a_blocked_one),
    cmocka_unit_test(an_evacuation_that_failed_is_tried_again),
    cmocka_unit_test(neighbours_do_not_disturb_each_other),
};

TEST_MAIN(cases)
