// SPDX-License-Identifier: Apache-2.0
// What a node remembers of partitions that were fed to it, and for how long.
#include "feed/attempt_table.h"
#include "harness.h"

static struct tfos__feed_attempt *get(struct tfos__partition_table *table, int64_t feed,
                                      int64_t partition)
{
    struct tfos__feed_attempt *entry = NULL;
    struct tfos_error err;

    assert_done(tfos__feed_attempt_table_get(table, feed, partition, &entry, &err));
    return entry;
}

// An inference has no end, so its partitions go when there is no room; others stay.
static void closed_attempts_with_results_make_room(void **state)
{
    struct tfos__partition_table table = {0};
    struct tfos__feed_connection *const connection =
        (struct tfos__feed_connection *)&table; // any but NULL

    (void)state;
    get(&table, 1, 0)->rows = 77;
    get(&table, 5, 1)->has_results = true;
    get(&table, 5, 1)->connection = connection; // alive
    for (int64_t partition = 2; partition < 10000; partition++)
        get(&table, 5, partition)->has_results = true;
    assert_true(table.bucket_count <= 128);
    assert_int_equal(tfos__feed_attempt_table_find(&table, 1, 0)->rows, 77);
    assert_ptr_equal(tfos__feed_attempt_table_find(&table, 5, 1)->connection, connection);
    assert_null(tfos__feed_attempt_table_find(&table, 5, 2));
    tfos__partition_table_clear(&table);
}

// Attempt 2 was granted this node and is still on its way when the rendezvous settles it by a fence
// for attempt 3, which comes and ends. Nothing but the entry says that attempt 2 is too late.
static void fenced_attempts_with_results_stay_superseded(void **state)
{
    struct tfos__partition_table table = {0};

    (void)state;
    struct tfos__feed_attempt *entry = get(&table, 5, 0);
    entry->has_results = true;
    entry->attempt = entry->superseded = 1;
    tfos__feed_attempt_fence(entry, 3);
    entry->attempt = entry->superseded = 3;
    tfos__feed_attempt_fence(get(&table, 5, 1), 7); // none of this partition has come yet
    get(&table, 5, 1)->has_results = true;
    for (int64_t partition = 2; partition < 10000; partition++) {
        get(&table, 5, partition)->has_results = true;
        get(&table, 5, partition)->attempt = 4;
        // The attempt that ended last is asked for: nothing is on its way.
        tfos__feed_attempt_fence(get(&table, 5, partition), 5);
    }
    assert_true(table.bucket_count <= 128);
    assert_int_equal(tfos__feed_attempt_table_find(&table, 5, 0)->superseded, 3);
    assert_int_equal(tfos__feed_attempt_table_find(&table, 5, 1)->superseded, 7);
    tfos__feed_attempt_table_forget(&table, 5);
    assert_int_equal(table.count, 0);
    tfos__partition_table_clear(&table);
}

static void those_of_an_epoch_stay_to_its_end(void **state)
{
    struct tfos__partition_table table = {0};

    (void)state;
    for (int64_t partition = 0; partition < 1000; partition++)
        get(&table, 1 + partition % 2, partition)->rows = partition;
    for (int64_t partition = 0; partition < 1000; partition++)
        assert_int_equal(tfos__feed_attempt_table_find(&table, 1 + partition % 2, partition)->rows,
                         partition);
    tfos__feed_attempt_table_forget(&table, 1);
    assert_int_equal(table.count, 500);
    tfos__partition_table_clear(&table);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(closed_attempts_with_results_make_room),
    cmocka_unit_test(fenced_attempts_with_results_stay_superseded),
    cmocka_unit_test(those_of_an_epoch_stay_to_its_end),
};

TEST_MAIN(cases)
