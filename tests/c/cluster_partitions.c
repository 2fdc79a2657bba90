// SPDX-License-Identifier: Apache-2.0
// What is remembered of partitions, and for how long.
#include "cluster/partition.h"
#include "harness.h"

// 10,000 partitions of an inference, one after the other, leave nothing behind.
static void partitions_with_results_are_forgotten(void **state)
{
    struct tfos__cluster_partitions partitions = {0};
    struct tfos__cluster_node node = {0};

    (void)state;
    for (int64_t number = 0; number < 10000; number++) {
        int64_t feed = INT64_C(7) << 32 | number % 3;
        struct tfos__cluster_partition *partition =
            tfos__cluster_partition_add(&partitions, feed, number);
        assert_non_null(partition);
        partition->has_results = true;
        partition->feeder_count = 1;
        assert_true(tfos__cluster_partition_begin(&partitions, partition, &node, 0));
        tfos__cluster_partition_release(&partitions, partition); // an attempt is under way
        assert_ptr_equal(tfos__cluster_partition_find(&partitions, feed, number), partition);
        tfos__cluster_partition_settle(&partitions, partition, &node, 0);
        tfos__cluster_partition_release(&partitions, partition); // a feeder is there
        assert_ptr_equal(tfos__cluster_partition_find(&partitions, feed, number), partition);
        partition->feeder_count = 0;
        tfos__cluster_partition_release(&partitions, partition);
        assert_null(tfos__cluster_partition_find(&partitions, feed, number));
    }
    assert_int_equal(partitions.table.count, 0);
    assert_int_equal(partitions.unsettled_count, 0);
    assert_true(partitions.table.bucket_count < 1000);
    tfos__cluster_partition_clear(&partitions);
}

// A training's are kept, for a retry to continue where the first came to, until their epoch ends.
static void partitions_of_an_epoch_are_kept_to_its_end(void **state)
{
    struct tfos__cluster_partitions partitions = {0};

    (void)state;
    for (int64_t number = 0; number < 1000; number++) {
        struct tfos__cluster_partition *partition =
            tfos__cluster_partition_add(&partitions, 1 + number % 2, number);
        assert_non_null(partition);
        tfos__cluster_partition_release(&partitions, partition);
    }
    assert_int_equal(partitions.table.count, 1000);
    tfos__cluster_partition_prune(&partitions, 1);
    assert_int_equal(partitions.table.count, 500);
    tfos__cluster_partition_clear(&partitions);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(partitions_with_results_are_forgotten),
    cmocka_unit_test(partitions_of_an_epoch_are_kept_to_its_end),
};

TEST_MAIN(cases)
