// SPDX-License-Identifier: Apache-2.0
// What a reader tells its writers of the batches that it makes.
#include "feed_task.h"

static void wait_batch_rows(struct node *node, struct tfos__feed_writer *writer, int64_t row,
                            int64_t expected)
{
    int64_t deadline = tfos__deadline(WAIT_MS);
    struct tfos_error err;

    // A remote writer reads it with each batch.
    for (; tfos__feed_writer_batch_rows(writer) != expected; row++) {
        struct tfos_feed_item item;
        assert_true(tfos__now_ms() < deadline);
        assert_done(append_rows(writer, row, 1, 0, &err));
        assert_int_equal(next_item(node, &item), TFOS_OK);
        release_item(&item);
    }
}

static void writers_learn_the_rows_of_batches(void **state)
{
    struct tfos_error err;

    (void)state;
    for (int is_remote = 0; is_remote < 2; is_remote++) {
        struct node node;
        struct tfos__feed_writer *writers[2] = {NULL};
        node_open(&node, 0);
        node_start(&node);
        for (int i = 0; i < 2; i++) {
            struct writer_options options = writer_options(&node, i);
            if (is_remote) {
                options.target.socket_name = NULL;
                options.target.address = node.address;
            }
            assert_done(writer_open(&options, &writers[i], &err));
            // Whoever comes later knows it at once.
            assert_int_equal(tfos__feed_writer_batch_rows(writers[i]), i == 0 ? 0 : 128);
            tfos__feed_reader_set_batch_rows(node.reader, 128);
        }
        wait_batch_rows(&node, writers[0], 0, 128);
        tfos__feed_reader_set_batch_rows(node.reader, INT64_MAX);
        wait_batch_rows(&node, writers[1], 0, INT32_MAX);
        tfos__feed_reader_set_batch_rows(node.reader, INT64_MIN);
        wait_batch_rows(&node, writers[1], tfos__feed_writer_row_count(writers[1]), 0);
        for (int i = 0; i < 2; i++)
            tfos__feed_writer_close(writers[i]);
        node_close(&node);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(writers_learn_the_rows_of_batches),
};

TEST_MAIN(cases)
