// SPDX-License-Identifier: Apache-2.0
// What is remembered of partitions, and for how long.
#include "harness.h"

#include "cluster/partitions.h"

// 10,000 partitions of an inference, one after the other, leave nothing behind.
static void partitions_with_results_are_forgotten(void **state)
{
    struct tfos__partition_table table = {0};
    struct tfos__entry entry = {0};

    (void)state;
    for (int64_t number = 0; number < 10000; number++) {
        struct tfos__partition_key key = {0, INT64_C(7) << 32 | number % 3, number};
        struct tfos__partition *partition = tfos__partitions_add(&table, key);
        assert_non_null(partition);
        partition->has_results = true;
        partition->feeder_count = 1;
        assert_true(tfos__partitions_begin(&table, partition, &entry, 0));
        tfos__partitions_release(&table, partition); // an attempt is under way
        assert_ptr_equal(tfos__partitions_find(&table, key), partition);
        tfos__partitions_settle(&table, partition, &entry, 0);
        tfos__partitions_release(&table, partition); // a feeder is there
        assert_ptr_equal(tfos__partitions_find(&table, key), partition);
        partition->feeder_count = 0;
        tfos__partitions_release(&table, partition);
        assert_null(tfos__partitions_find(&table, key));
    }
    assert_int_equal(table.partition_count, 0);
    assert_int_equal(table.unsettled_count, 0);
    assert_true(table.bucket_count < 1000);
    tfos__partitions_clear(&table);
}

// A training's are kept, for a retry to go on where the first came to, until their epoch ends.
static void partitions_of_an_epoch_are_kept_to_its_end(void **state)
{
    struct tfos__partition_table table = {0};

    (void)state;
    for (int64_t number = 0; number < 1000; number++) {
        struct tfos__partition *partition =
            tfos__partitions_add(&table, (struct tfos__partition_key){0, 1 + number % 2, number});
        assert_non_null(partition);
        tfos__partitions_release(&table, partition);
    }
    assert_int_equal(table.partition_count, 1000);
    tfos__partitions_prune(&table, 0, 1);
    assert_int_equal(table.partition_count, 500);
    tfos__partitions_clear(&table);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(partitions_with_results_are_forgotten),
    cmocka_unit_test(partitions_of_an_epoch_are_kept_to_its_end),
};

TEST_MAIN(cases)
