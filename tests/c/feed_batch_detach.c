// SPDX-License-Identifier: Apache-2.0
// When batches that are held are moved out of a channel, and when not.
#include "base/memory.h"
#include "feed/batch_encoder.h"
#include "feed/feed_channel.h"
#include "feed_arrow.h"
#include "feed_held_batches.h"

static struct held_batches held;

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
    struct writer_options options = held_batches_options(&node, 0);
    assert_done(writer_open(&options, &writer, &err));
    assert_done(append_rows(writer, 0, 400, PAYLOAD, &err));
    assert_done(append_rows(writer, 400, 400, PAYLOAD, &err));
    assert_int_equal(next_item(&node, &first), TFOS_OK);
    assert_int_equal(next_item(&node, &item), TFOS_OK);
    // The ring is full to more than three quarters, but nobody waits for space.
    assert_int_equal(tfos_feed_reader_next(node.reader, 300, &held.items[0], &err), TFOS_AGAIN);
    assert_true(is_in_channel(&first));
    // Now somebody does.
    struct append_call call = {.writer = writer, .first = 800, .rows = 400, .payload = PAYLOAD};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, append_main, &call), 0);
    assert_int_equal(next_item(&node, &held.items[0]), TFOS_OK);
    pthread_join(thread, NULL);
    assert_done(call.status);
    assert_false(is_in_channel(&first));
    assert_false(is_in_channel(&item));
    assert_true(is_in_channel(&held.items[0]));
    held.count = 1;
    check_held(&held);
    check_whole(&first);
    check_whole(&item);
    release_item(&item);
    release_item(&first);
    release_held(&held);
    tfos__feed_writer_close(writer);
    node_close(&node);
}

// A channel whose writer has gone serves the next one, though all that it brought is still held.
static void channels_come_free_from_under_batches(void **state)
{
    const int partition_count = 6;
    struct node node;
    struct task tasks[6];

    (void)state;
    node_open(&node, RING_SIZE + 4096); // for one channel
    node_start(&node);
    for (int i = 0; i < partition_count; i++) {
        held_batches_task(&tasks[i], &node, i);
        tasks[i].rows = 200;
        task_run(&tasks[i]);
    }
    for (int i = 0; i < partition_count; i++)
        assert_int_equal(hold_partition(&node, &held), 200);
    for (int i = 0; i < partition_count; i++)
        task_join(&tasks[i]);
    assert_int_equal(node.channel_count, 1);
    check_held(&held);
    // The last channel comes free as well, when somebody waits for what does not come.
    struct tfos_feed_item item;
    struct tfos_error err;
    int64_t deadline = tfos__deadline(WAIT_MS);
    while (!node_stats(&node).is_drained) {
        assert_true(tfos__now_ms() < deadline);
        assert_int_equal(tfos_feed_reader_next(node.reader, 50, &item, &err), TFOS_AGAIN);
    }
    check_held(&held);
    release_held(&held);
    node_close(&node);
}

// Batches stay when their channel is exchanged for a larger one, and its memory is freed.
static void channels_grow_under_batches(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;
    struct tfos_feed_item *large = &held.items[0];

    (void)state;
    node_open(&node, 4 * RING_SIZE);
    node_start(&node);
    struct writer_options options = held_batches_options(&node, 0);
    options.feeder.channel_size = 64 << 10;
    assert_done(writer_open(&options, &writer, &err));
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
    // The old channel had to make room for the new one: its memory is gone.
    assert_false(is_in_channel(&first));
    check_whole(&first);
    release_item(large);
    tfos__feed_writer_close(writer);
    node_close(&node);
    check_whole(&first);
    release_item(&first);
}

// A channel that is blocked is helped even while another always has something to give.
static void a_busy_channel_does_not_hide_a_blocked_one(void **state)
{
    struct node node;
    struct task tasks[2];
    struct tfos_feed_item first = {0};
    int64_t rows[2] = {0};
    int ended_count = 0;

    (void)state;
    node_open(&node, 0);
    for (int i = 0; i < 2; i++)
        held_batches_task(&tasks[i], &node, i);
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

// ---- a channel that the case writes to by hand

#define SMALL_RING 8192

struct bare {
    struct tfos_feed_reader *reader;
    struct tfos__feed_control *control;
    struct tfos__feed_channel *channel; ///< as its writer has it
    struct tfos__feed_batch_encoder encoder;
    int64_t row;
};

static void bare_open(struct bare *bare)
{
    struct tfos_error err;
    int control_fd = -1, channel_fd = -1;

    memset(bare, 0, sizeof(*bare));
    assert_done(tfos__feed_control_create(&control_fd, &err));
    assert_done(tfos__feed_control_map(control_fd, &bare->control, &err));
    assert_done(tfos__feed_reader_open(control_fd, &bare->reader, &err));
    assert_done(tfos__feed_channel_create(SMALL_RING, 0, &channel_fd, &err));
    assert_done(tfos__feed_channel_map(channel_fd, TFOS__FEED_CHANNEL_WRITER, bare->control,
                                       &bare->channel, &err));
    assert_done(tfos__feed_reader_add_channel(bare->reader, 0, channel_fd, &err));
}

static void bare_close(struct bare *bare)
{
    tfos__feed_batch_encoder_clear(&bare->encoder);
    tfos__feed_reader_close(bare->reader);
    tfos__feed_channel_release(bare->channel);
    tfos__feed_control_release(bare->control);
}

// Writes one row. AGAIN: there is no space.
static enum tfos_status bare_put(struct bare *bare)
{
    struct tfos__feed_producer *producer = &bare->channel->producer;
    struct tfos__feed_record head = {.feed = 1, .row = bare->row};
    struct tfos__feed_batch_encoder *encoder = &bare->encoder;
    struct test_batch batch;
    struct tfos_error err;

    batch_init(&batch, bare->row, 1, PAYLOAD);
    assert_done(tfos__feed_batch_encoder_begin(encoder, &batch.schema, &batch.array, &err));
    enum tfos_status status = TFOS_OK;
    while (status == TFOS_OK) {
        uint8_t *space = NULL;
        status = tfos__feed_batch_encoder_plan(encoder, &batch.array, SMALL_RING, &err);
        if (status == TFOS_OK)
            status = tfos__feed_producer_reserve(producer, encoder->next_size, &space, &err);
        assert_true(status >= 0);
        if (status != TFOS_OK)
            continue;
        tfos__feed_batch_encoder_write(encoder, &head, space);
        bool is_batch = encoder->next_kind == TFOS__FEED_RECORD_BATCH;
        assert_done(tfos__feed_producer_commit(producer, encoder->next_size,
                                               (uint64_t)(bare->row + is_batch), &err));
        bare->row += tfos__feed_batch_encoder_advance(encoder);
    }
    tfos__feed_batch_encoder_reset(encoder);
    batch_clear(&batch);
    return status == TFOS_END ? TFOS_OK : status;
}

// Fills the ring and keeps all that is in it.
static void bare_fill(struct bare *bare)
{
    struct tfos_feed_item *item = NULL;
    struct tfos_error err;

    while (bare_put(bare) == TFOS_OK) {
        item = &held.items[held.count++];
        assert_done(tfos_feed_reader_next(bare->reader, 0, item, &err));
    }
}

// Without memory the batches stay where they are; they are moved when there is some.
static void an_detachment_that_failed_is_tried_again(void **state)
{
    struct bare bare;
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    bare_open(&bare);
    bare_fill(&bare);
    assert_in_range(held.count, 3, 8);
    tfos__memory_fail_at(1);
    assert_int_equal(tfos_feed_reader_next(bare.reader, 100, &item, &err), TFOS_AGAIN);
    assert_true(is_in_channel(&held.items[0]));
    assert_int_equal(bare_put(&bare), TFOS_AGAIN);
    tfos__memory_fail_at(0);
    int64_t deadline = tfos__deadline(WAIT_MS);
    while (bare_put(&bare) == TFOS_AGAIN) {
        assert_true(tfos__now_ms() < deadline);
        assert_int_equal(tfos_feed_reader_next(bare.reader, 50, &item, &err), TFOS_AGAIN);
    }
    assert_false(is_in_channel(&held.items[0]));
    check_held(&held);
    release_held(&held);
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
        while (held.count > 0 && random_below(4) > 0) {
            int victim = (int)random_below((uint64_t)held.count);
            check_whole(&held.items[victim]);
            release_item(&held.items[victim]);
            held.items[victim] = held.items[--held.count];
        }
        // What is left in the way is moved.
        while (bare_put(&bare) == TFOS_AGAIN)
            assert_int_equal(tfos_feed_reader_next(bare.reader, 5, &item, &err), TFOS_AGAIN);
        assert_done(tfos_feed_reader_next(bare.reader, 0, &held.items[held.count++], &err));
        check_held(&held);
    }
    release_held(&held);
    assert_int_equal(atomic_load(&bare.channel->page->rows_released), bare.row);
    assert_int_equal(atomic_load(&bare.channel->page->tail),
                     atomic_load(&bare.channel->page->head));
    bare_close(&bare);
    assert_int_equal(count_mapped().channel_count, 0);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(only_what_is_in_the_way_is_moved),
    cmocka_unit_test(channels_come_free_from_under_batches),
    cmocka_unit_test(channels_grow_under_batches),
    cmocka_unit_test(a_busy_channel_does_not_hide_a_blocked_one),
    cmocka_unit_test(an_detachment_that_failed_is_tried_again),
    cmocka_unit_test(neighbours_do_not_disturb_each_other),
};

TEST_MAIN(cases)
