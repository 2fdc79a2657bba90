// SPDX-License-Identifier: Apache-2.0
// Channels as memory: what is none of ours, what a hostile writer makes of it, and what is left
// when all are closed.
#include <dirent.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "feed/batch_encoder.h"
#include "feed/feed_channel.h"
#include "feed/local_writer.h"
#include "feed_task.h"

#define RING_SIZE 8192

// A reader with one channel that the case writes to by hand.
struct bare {
    struct tfos_feed_reader *reader;
    struct tfos__feed_control *control;
    struct tfos__feed_channel *channel; ///< as its writer has it
};

static void bare_open(struct bare *bare)
{
    struct tfos_error err;
    int control_fd = -1, channel_fd = -1;

    assert_done(tfos__feed_control_create(&control_fd, &err));
    assert_done(tfos__feed_control_map(control_fd, &bare->control, &err));
    assert_done(tfos__feed_reader_open(control_fd, &bare->reader, &err));
    assert_done(tfos__feed_channel_create(RING_SIZE, 0, &channel_fd, &err));
    assert_done(tfos__feed_channel_map(channel_fd, TFOS__FEED_CHANNEL_WRITER, bare->control,
                                       &bare->channel, &err));
    assert_done(tfos__feed_reader_add_channel(bare->reader, 0, channel_fd, &err));
}

static void bare_close(struct bare *bare)
{
    tfos__feed_reader_close(bare->reader);
    tfos__feed_channel_release(bare->channel);
    tfos__feed_control_release(bare->control);
}

// Writes a record at the head and moves the head by `step`.
static void write_record(struct bare *bare, struct tfos__feed_record record, uint64_t step)
{
    uint64_t head = atomic_load(&bare->channel->page->head);

    memcpy(bare->channel->producer.data + head % RING_SIZE, &record, sizeof(record));
    atomic_store(&bare->channel->page->head, head + step);
}

static void expect_corrupt(struct bare *bare)
{
    struct tfos_feed_item item;
    struct tfos_error err;
    uint8_t *space = NULL;

    assert_int_equal(tfos_feed_reader_next(bare->reader, 0, &item, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "channel 0"));
    // It is not read any more, the others are, and its writer learns why when it looks for space.
    assert_int_equal(tfos_feed_reader_next(bare->reader, 0, &item, &err), TFOS_AGAIN);
    bare->channel->producer.seen_tail = bare->channel->producer.position - RING_SIZE;
    assert_int_equal(tfos__feed_producer_reserve(&bare->channel->producer, 64, &space, &err),
                     TFOS_CORRUPT);
}

static void broken_records_are_refused(void **state)
{
    static const struct {
        struct tfos__feed_record record;
        uint64_t step;
    } broken[] = {
        {{.kind = 0, .size = 64}, 64},
        {{.kind = 9, .size = 64}, 64},
        {{.kind = TFOS__FEED_RECORD_END, .zero = 1, .size = 64}, 64},
        {{.kind = TFOS__FEED_RECORD_END, .size = 0}, 64},
        {{.kind = TFOS__FEED_RECORD_END, .size = 65}, 128},
        {{.kind = TFOS__FEED_RECORD_END, .size = 128}, 64},
        {{.kind = TFOS__FEED_RECORD_END, .size = UINT64_MAX - 63}, 64},
        {{.kind = TFOS__FEED_RECORD_END, .size = 64, .row = -1}, 64},
        {{.kind = TFOS__FEED_RECORD_END, .size = 64, .feed = -1}, 64},
        {{.kind = TFOS__FEED_RECORD_BATCH, .size = 64, .row = INT64_MAX, .rows = 1}, 64},
        {{.kind = TFOS__FEED_RECORD_BATCH, .size = 128, .body_size = 65}, 128},
        {{.kind = TFOS__FEED_RECORD_BATCH, .size = 64}, 64}, // before any schema
        {{.kind = TFOS__FEED_RECORD_SCHEMA, .size = 128, .body_size = 64}, 128},
        {{.kind = TFOS__FEED_RECORD_FILLER, .size = 64}, 64},
        {{.kind = TFOS__FEED_RECORD_FILLER, .size = RING_SIZE}, RING_SIZE},
        {{.kind = TFOS__FEED_RECORD_MESSAGE, .size = 64}, 64},
        {{.kind = TFOS__FEED_RECORD_END, .size = 64}, RING_SIZE + 64},
        {{.kind = TFOS__FEED_RECORD_END, .size = 64}, 66},
        {{.kind = TFOS__FEED_RECORD_END, .size = 64}, (uint64_t)-64},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct bare bare;
        bare_open(&bare);
        write_record(&bare, broken[i].record, broken[i].step);
        expect_corrupt(&bare);
        bare_close(&bare);
    }
}

static void a_broken_tail_ends_the_writer(void **state)
{
    static const uint64_t tails[] = {64, UINT64_MAX - RING_SIZE - 63, 2, RING_SIZE * 2};

    (void)state;
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        struct bare bare;
        struct tfos_error err;
        uint8_t *space = NULL;
        bare_open(&bare);
        atomic_store(&bare.channel->page->tail, tails[i]);
        bare.channel->producer.seen_tail = tails[i];
        assert_int_equal(tfos__feed_producer_reserve(&bare.channel->producer, 64, &space, &err),
                         TFOS_CORRUPT);
        bare_close(&bare);
    }
}

static void foreign_descriptors_are_no_channels(void **state)
{
    struct bare bare;
    struct tfos_error err;
    struct tfos__feed_channel_page page = {.size = RING_SIZE};
    int fds[6];

    (void)state;
    bare_open(&bare);
    memcpy(page.magic, "TFOSCHN1", 8);
    fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
    fds[1] = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fds[1], TFOS__FEED_PAGE_SIZE + RING_SIZE), 0);
    assert_int_equal(pwrite(fds[1], &page, sizeof(page), 0), sizeof(page));
    assert_done(tfos__feed_control_create(&fds[2], &err));
    assert_done(tfos__feed_channel_create(RING_SIZE, 0, &fds[3], &err));
    page.size = RING_SIZE * 2; // more than there is
    assert_int_equal(pwrite(fds[3], &page, sizeof(page), 0), sizeof(page));
    assert_done(tfos__feed_channel_create(RING_SIZE, 0, &fds[4], &err));
    page.size = RING_SIZE;
    atomic_store(&page.head, RING_SIZE * 3); // more than the ring holds
    assert_int_equal(pwrite(fds[4], &page, sizeof(page), 0), sizeof(page));
    assert_done(tfos__feed_channel_create(RING_SIZE, 0, &fds[5], &err));
    page.size = UINT64_MAX - 4095; // a sum that wraps to what is there
    page.result_size = RING_SIZE + 4096;
    assert_int_equal(pwrite(fds[5], &page, sizeof(page), 0), sizeof(page));
    for (int i = 0; i < 6; i++) {
        assert_int_equal(tfos__feed_reader_add_channel(bare.reader, i + 1, fds[i], &err),
                         TFOS_CORRUPT);
        assert_int_equal(fcntl(fds[i], F_GETFD), -1);
    }
    struct tfos_feed_reader *reader = NULL;
    assert_done(tfos__feed_channel_create(RING_SIZE, 0, &fds[0], &err));
    assert_int_equal(tfos__feed_reader_open(fds[0], &reader, &err), TFOS_CORRUPT);
    assert_int_equal(fcntl(fds[0], F_GETFD), -1);
    bare_close(&bare);
}

// A channel cannot be cut under the feet of who has mapped it.
static void channels_cannot_be_cut(void **state)
{
    struct tfos_error err;
    int fd = -1;

    (void)state;
    assert_done(tfos__feed_channel_create(RING_SIZE, 4096, &fd, &err));
    assert_int_not_equal(ftruncate(fd, 100), 0);
    assert_int_not_equal(ftruncate(fd, 1 << 20), 0);
    assert_int_not_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    close(fd);
}

// The fence decides: what is committed before it counts, what comes after does not exist.
static void a_fence_decides(void **state)
{
    struct bare bare;
    struct tfos_error err;
    struct tfos_feed_item item;
    uint8_t *space = NULL;

    (void)state;
    bare_open(&bare);
    struct tfos__feed_record record = {
        .kind = TFOS__FEED_RECORD_END, .size = 64, .feed = 1, .row = 5};
    assert_done(tfos__feed_producer_reserve(&bare.channel->producer, 64, &space, &err));
    memcpy(space, &record, sizeof(record));
    assert_done(tfos__feed_producer_commit(&bare.channel->producer, 64, 5, &err));
    assert_done(tfos__feed_producer_reserve(&bare.channel->producer, 64, &space, &err));
    memcpy(space, &record, sizeof(record));
    atomic_fetch_or(&bare.channel->page->head, TFOS__FEED_HEAD_FENCED);
    assert_int_equal(tfos__feed_producer_commit(&bare.channel->producer, 64, 6, &err), TFOS_BUSY);
    assert_int_equal(tfos__feed_producer_commit(&bare.channel->producer, 64, 6, &err), TFOS_BUSY);
    assert_done(tfos_feed_reader_next(bare.reader, 0, &item, &err));
    assert_int_equal(item.first_row, 5);
    assert_int_equal(tfos_feed_reader_next(bare.reader, 0, &item, &err), TFOS_AGAIN);
    bare_close(&bare);
}

// Rows that went to other nodes count with the record that follows them, or not at all.
static void a_gap_counts_with_its_record(void **state)
{
    struct bare bare;
    struct tfos_error err;
    uint8_t *space = NULL;
    struct tfos__feed_local_writer writer = {0};

    (void)state;
    bare_open(&bare);
    struct tfos__feed_channel *channel = bare.channel;
    bare.channel = NULL;
    assert_done(tfos__feed_local_writer_add(&writer, channel, &err));
    assert_done(tfos__feed_producer_reserve(&channel->producer, 64, &space, &err));
    assert_done(tfos__feed_local_writer_commit(&writer, 64, 30, 10, &err));
    assert_int_equal(tfos__feed_channel_page_rows(channel->page, 0).left_out, 20);
    assert_done(tfos__feed_producer_reserve(&channel->producer, 64, &space, &err));
    atomic_fetch_or(&channel->page->head, TFOS__FEED_HEAD_FENCED);
    assert_int_equal(tfos__feed_local_writer_commit(&writer, 64, 90, 10, &err), TFOS_BUSY);
    struct tfos__feed_rows rows = tfos__feed_channel_page_rows(channel->page, 0);
    assert_int_equal(rows.count, 30);
    assert_int_equal(rows.left_out, 20);
    tfos__feed_local_writer_clear(&writer);
    bare_close(&bare);
}

static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;

    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static int count_channel_maps(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;

    while (fgets(line, sizeof(line), file))
        count += strstr(line, "tfos-channel") != NULL;
    fclose(file);
    return count;
}

static void a_thousand_writers_leave_nothing(void **state)
{
    struct node node;
    struct tfos_feed_item item;
    struct tfos_error err;
    int fd_count = 0, map_count = 0;

    (void)state;
    node_open(&node, 1 << 20);
    node_start(&node);
    for (int i = 0; i < 1000; i++) {
        struct tfos__feed_writer *writer = NULL;
        struct writer_options options = writer_options(&node, i);
        options.feeder.channel_size = 4096 << i % 8;
        if (i % 25 == 0) {
            options.target.socket_name = NULL;
            options.target.address = node.address;
        }
        assert_done(writer_open(&options, &writer, &err));
        assert_done(append_rows(writer, 0, 3, 10, &err));
        assert_done(tfos__feed_writer_finish(writer, &err));
        tfos__feed_writer_close(writer);
        for (int items = 0; items < 2; items++) {
            assert_int_equal(next_item(&node, &item), TFOS_OK);
            release_item(&item);
        }
        node_wait_closed(&node, i + 1);
        if (i == 100) {
            fd_count = count_entries("/proc/self/fd");
            map_count = count_channel_maps();
        }
    }
    assert_in_range(count_entries("/proc/self/fd"), 0, fd_count + 12);
    assert_in_range(count_channel_maps(), 0, map_count + 30);
    node_close(&node);
    assert_int_equal(count_channel_maps(), 0);
}

// S18: a partition of 2M rows of 1 KB and a reader that is slower than its writer: the channel is
// all the memory there is.
static void s18_memory_is_bounded(void **state)
{
    const int64_t rows = 2000000, batch_rows = 500;
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_feed_item item;
    struct tfos_error err;
    struct test_batch batch;

    (void)state;
    node_open(&node, 32 << 20);
    pid_t pid = fork();
    if (pid == 0) {
        struct writer_options options = writer_options(&node, 0);
        options.feeder.channel_size = 0;
        batch_init(&batch, 0, batch_rows, 1000);
        enum tfos_status status = writer_open(&options, &writer, &err);
        for (int64_t row = 0; status == TFOS_OK && row < rows; row += batch_rows)
            status = tfos__feed_writer_append(writer, &batch.schema, &batch.array, &err);
        if (status == TFOS_OK)
            status = tfos__feed_writer_finish(writer, &err);
        _exit(-status);
    }
    node_start(&node);
    for (int64_t row = 0;; row += item.array.length) {
        assert_int_equal(next_item(&node, &item), TFOS_OK);
        assert_int_equal(item.first_row, row);
        if (item.kind == TFOS_FEED_PARTITION_END)
            break;
        if (row % 100000 == 0)
            poll(NULL, 0, 5);
        release_item(&item);
    }
    assert_int_equal(item.first_row, rows);
    assert_int_equal(node.total_size_seen, TFOS__FEED_CHANNEL_SIZE);
    assert_int_equal(node.channel_count, 1);
    node_close(&node);
}

// Each request for memory fails once: an error or nothing comes of it, and nothing leaks.
static void allocations_may_fail(void **state)
{
    (void)state;
    for (long n = 1; n < 120; n++) {
        struct bare bare;
        struct tfos_feed_item item;
        struct tfos_error err;
        struct tfos__feed_batch_encoder encoder = {0};
        struct test_batch batch;
        uint8_t *space = NULL;
        bare_open(&bare);
        batch_init(&batch, 0, 5, 10);
        struct tfos__feed_record head = {.feed = 1};
        tfos__memory_fail_at(n);
        enum tfos_status status =
            tfos__feed_batch_encoder_begin(&encoder, &batch.schema, &batch.array, &err);
        while (status == TFOS_OK && (status = tfos__feed_batch_encoder_plan(
                                         &encoder, &batch.array, RING_SIZE, &err)) == TFOS_OK) {
            assert_done(tfos__feed_producer_reserve(&bare.channel->producer, encoder.next_size,
                                                    &space, &err));
            tfos__feed_batch_encoder_write(&encoder, &head, space);
            int64_t rows = tfos__feed_batch_encoder_advance(&encoder);
            assert_done(tfos__feed_producer_commit(&bare.channel->producer, encoder.next_size,
                                                   (uint64_t)rows, &err));
        }
        if (status == TFOS_END) {
            status = tfos_feed_reader_next(bare.reader, 0, &item, &err);
            if (status == TFOS_OK)
                release_item(&item);
        }
        assert_true(status == TFOS_OK || status == TFOS_NO_MEMORY);
        tfos__memory_fail_at(0);
        tfos__feed_batch_encoder_clear(&encoder);
        batch_clear(&batch);
        bare_close(&bare);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(broken_records_are_refused),
    cmocka_unit_test(a_broken_tail_ends_the_writer),
    cmocka_unit_test(foreign_descriptors_are_no_channels),
    cmocka_unit_test(channels_cannot_be_cut),
    cmocka_unit_test(a_fence_decides),
    cmocka_unit_test(a_gap_counts_with_its_record),
    cmocka_unit_test(a_thousand_writers_leave_nothing),
    cmocka_unit_test(s18_memory_is_bounded),
    cmocka_unit_test(allocations_may_fail),
};

TEST_MAIN(cases)
