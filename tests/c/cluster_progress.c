// SPDX-License-Identifier: Apache-2.0
// The arithmetic of what a person sees: rates of the last seconds, the slower side, time left.
#include "cluster/feed_progress.h"
#include "harness.h"

/// Two figures that differ by rounding only.
static void assert_near(double value, double expected)
{
    double difference = value - expected;
    if (difference < -1e-6 || difference > 1e-6)
        fail_msg("%.9f is not %.9f", value, expected);
}

static struct tfos__cluster_eta_feed feed_at(int64_t number)
{
    return (struct tfos__cluster_eta_feed){1, number};
}

static struct tfos__cluster_sample sample_at(int64_t at_ms, int64_t row_count)
{
    return (struct tfos__cluster_sample){
        .at_ms = at_ms, .row_count = row_count, .byte_count = row_count * 100, .writer_count = 1};
}

static void nothing_is_known_of_one_moment(void **state)
{
    (void)state;
    struct tfos__cluster_throughput throughput = {0};
    assert_false(tfos__cluster_throughput_rates(&throughput, 1000).is_known);
    struct tfos__cluster_sample sample = sample_at(1000, 50);
    tfos__cluster_throughput_add(&throughput, &sample);
    assert_false(tfos__cluster_throughput_rates(&throughput, 1000).is_known);
    // Too close to the first to tell a rate.
    sample = sample_at(1000 + TFOS__THROUGHPUT_SPACING_MS - 1, 90);
    tfos__cluster_throughput_add(&throughput, &sample);
    assert_false(tfos__cluster_throughput_rates(&throughput, 1500).is_known);
}

static void rates_are_of_the_last_seconds(void **state)
{
    (void)state;
    struct tfos__cluster_throughput throughput = {0};
    int64_t rows = 0;
    for (int64_t second = 0; second <= 60; second++) {
        struct tfos__cluster_sample sample = sample_at(second * 1000, rows);
        tfos__cluster_throughput_add(&throughput, &sample);
        rows += second < 40 ? 1000000 : 30;
    }
    struct tfos__cluster_rates rates = tfos__cluster_throughput_rates(&throughput, 60000);
    assert_true(rates.is_known);
    assert_near(rates.rows_per_second, 30);
    assert_near(rates.bytes_per_second, 3000);
}

static void heartbeats_in_quick_succession_do_not_shorten_the_window(void **state)
{
    (void)state;
    struct tfos__cluster_throughput throughput = {0};
    for (int64_t ms = 0; ms <= 20000; ms += 7) {
        struct tfos__cluster_sample sample = sample_at(ms, ms * 2);
        tfos__cluster_throughput_add(&throughput, &sample);
    }
    struct tfos__cluster_rates rates = tfos__cluster_throughput_rates(&throughput, 20000);
    assert_near(rates.rows_per_second, 2000);
    const struct tfos__cluster_sample *last = &throughput.samples[throughput.count - 1];
    assert_true(last->at_ms - throughput.samples[0].at_ms >= TFOS__THROUGHPUT_WINDOW_MS - 7);
    assert_true(last->at_ms - throughput.samples[0].at_ms <=
                TFOS__THROUGHPUT_WINDOW_MS + 2 * TFOS__THROUGHPUT_SPACING_MS);
}

static void a_node_that_is_silent_has_no_rates(void **state)
{
    (void)state;
    struct tfos__cluster_throughput throughput = {0};
    for (int64_t second = 0; second < 3; second++) {
        struct tfos__cluster_sample sample = sample_at(second * 1000, second);
        tfos__cluster_throughput_add(&throughput, &sample);
    }
    assert_true(
        tfos__cluster_throughput_rates(&throughput, 2000 + TFOS__THROUGHPUT_WINDOW_MS).is_known);
    assert_false(
        tfos__cluster_throughput_rates(&throughput, 2001 + TFOS__THROUGHPUT_WINDOW_MS).is_known);
}

static void a_counter_that_begins_anew_counts_as_nothing(void **state)
{
    (void)state;
    struct tfos__cluster_throughput throughput = {0};
    struct tfos__cluster_sample first = sample_at(0, 1000), second = sample_at(1000, 10);
    tfos__cluster_throughput_add(&throughput, &first);
    tfos__cluster_throughput_add(&throughput, &second);
    assert_near(tfos__cluster_throughput_rates(&throughput, 1000).rows_per_second, 0);
}

static void the_fill_is_a_mean_over_time(void **state)
{
    (void)state;
    struct tfos__cluster_throughput throughput = {0};
    const int64_t times[] = {0, 1000, 4000};
    const double fills[] = {0.9, 0.2, 0.6};
    for (int i = 0; i < 3; i++) {
        struct tfos__cluster_sample sample = sample_at(times[i], 0);
        sample.ring_fill = fills[i];
        tfos__cluster_throughput_add(&throughput, &sample);
    }
    assert_near(tfos__cluster_throughput_rates(&throughput, 4000).ring_fill,
                0.25 * 0.2 + 0.75 * 0.6);
}

static struct tfos__cluster_rates wait_for(int64_t reader_ms, int64_t writer_ms,
                                           int64_t writer_count)
{
    struct tfos__cluster_throughput throughput = {0};
    struct tfos__cluster_sample first = sample_at(0, 0), second = sample_at(1000, 1);
    second.reader_wait_ms = reader_ms;
    second.writer_wait_ms = writer_ms;
    second.writer_count = writer_count;
    tfos__cluster_throughput_add(&throughput, &first);
    tfos__cluster_throughput_add(&throughput, &second);
    return tfos__cluster_throughput_rates(&throughput, 1000);
}

static void the_slower_side_is_the_one_that_is_waited_for(void **state)
{
    (void)state;
    static const struct {
        int64_t reader_ms, writer_ms, writer_count;
        enum tfos__cluster_bottleneck side;
    } table[] = {
        {900, 0, 2, TFOS__BOTTLENECK_SPARK},
        {0, 900, 1, TFOS__BOTTLENECK_TRAINER},
        {200, 200, 1, TFOS__BOTTLENECK_NONE},
        {250, 900, 1, TFOS__BOTTLENECK_SPARK}, // one writer waits for its turn, another has no rows
        {0, 900, 4, TFOS__BOTTLENECK_NONE},    // less than a quarter of each writer's time
        {0, 900, 0, TFOS__BOTTLENECK_TRAINER}, // the last one has just gone
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct tfos__cluster_rates rates =
            wait_for(table[i].reader_ms, table[i].writer_ms, table[i].writer_count);
        assert_int_equal(tfos__cluster_throughput_bottleneck(&rates), table[i].side);
    }
    struct tfos__cluster_rates rates = wait_for(5000, 9000, 2);
    assert_near(rates.reader_wait, 1);
    assert_near(rates.writer_wait, 1);
}

// ---- time left

static struct tfos__cluster_eta plan(int64_t epochs, int64_t partitions)
{
    struct tfos__cluster_eta eta = {0};
    struct tfos_feed_plan plan = {.epoch = 1, .epoch_count = epochs, .partition_count = partitions};
    tfos__cluster_eta_plan(&eta, feed_at(1), &plan, 500);
    return eta;
}

static struct tfos__cluster_progress look(const struct tfos__cluster_eta *eta, int64_t now_ms,
                                          int64_t rows, int64_t feeders)
{
    struct tfos__cluster_eta_moment moment = {
        .now_ms = now_ms, .row_count = 500 + rows, .feeder_count = feeders};
    return tfos__cluster_eta_estimate(eta, &moment);
}

static void without_a_plan_there_is_no_forecast(void **state)
{
    (void)state;
    struct tfos__cluster_eta eta = {0};
    struct tfos__cluster_eta_moment moment = {.now_ms = 9000, .row_count = 70};
    struct tfos__cluster_progress progress = tfos__cluster_eta_estimate(&eta, &moment);
    assert_int_equal(progress.row_count, 70);
    assert_near(progress.fraction, -1);
    assert_near(progress.seconds_left, -1);
    eta = plan(3, 0);
    assert_near(look(&eta, 9000, 70, 2).fraction, -1);
}

static void partitions_tell_before_rows_are_counted(void **state)
{
    (void)state;
    struct tfos__cluster_eta eta = plan(2, 4);
    struct tfos__cluster_progress progress = look(&eta, 1000, 0, 2);
    assert_near(progress.fraction, 0);
    assert_near(progress.seconds_left, -1);
    tfos__cluster_eta_take_rows(&eta, 500, 1000); // none of this training
    tfos__cluster_eta_take_rows(&eta, 510, 2000);
    assert_near(look(&eta, 3000, 60, 2).fraction, 0);
    // One of four has 100 rows, so all have about 400, twice.
    tfos__cluster_eta_complete(&eta, feed_at(1), 100);
    tfos__cluster_eta_complete(&eta, feed_at(7), 100);                            // another feed's
    tfos__cluster_eta_complete(&eta, (struct tfos__cluster_eta_feed){0, 1}, 100); // another queue's
    progress = look(&eta, 12000, 160, 2);
    assert_int_equal(progress.row_count, 160);
    assert_near(progress.fraction, 160.0 / 800);
    assert_near(progress.seconds_left, 40);
    assert_int_equal(progress.passed_epoch_count, 0); // that is not known yet
    // However many rows the two have that are on their way, the last has not begun.
    assert_near(look(&eta, 12000, 390, 2).fraction, 0.75 / 2);
}

static void rows_tell_after_the_first_epoch(void **state)
{
    (void)state;
    struct tfos__cluster_eta eta = plan(4, 2);
    tfos__cluster_eta_take_rows(&eta, 501, 10000);
    tfos__cluster_eta_complete(&eta, feed_at(1), 30);
    tfos__cluster_eta_complete(&eta, feed_at(1), 70);
    tfos__cluster_eta_end_epoch(&eta, feed_at(1));
    assert_near(look(&eta, 20000, 80, 0).fraction, 0.2);
    struct tfos_feed_plan next = {.epoch = 2, .epoch_count = 4};
    tfos__cluster_eta_plan(&eta, feed_at(2), &next, 590);
    struct tfos__cluster_progress progress = look(&eta, 30000, 200, 1);
    assert_int_equal(progress.row_count, 200);
    assert_near(progress.fraction, 0.5);
    assert_near(progress.seconds_left, 20);
    assert_int_equal(progress.passed_epoch_count, 1); // of the second all rows, and none behind it
    assert_int_equal(look(&eta, 30000, 201, 1).passed_epoch_count, 2);
    assert_int_equal(look(&eta, 30000, 401, 1).passed_epoch_count, 3);
    assert_near(look(&eta, 30000, 401, 1).fraction, 1);
    assert_near(look(&eta, 30000, 401, 1).seconds_left, 0);
}

static void more_may_become_known_of_a_feed(void **state)
{
    (void)state;
    struct tfos__cluster_eta eta = plan(1, 0);
    tfos__cluster_eta_complete(&eta, feed_at(1), 10);
    struct tfos_feed_plan more = {.epoch = 1, .epoch_count = 1, .partition_count = 5};
    tfos__cluster_eta_plan(&eta, feed_at(1), &more, 506);
    struct tfos__cluster_progress progress = look(&eta, 1000, 10, 1);
    assert_int_equal(progress.row_count, 10);
    assert_near(progress.fraction, 0.2);
}

static void a_second_training_begins_at_nothing(void **state)
{
    (void)state;
    struct tfos__cluster_eta eta = plan(1, 1);
    tfos__cluster_eta_take_rows(&eta, 600, 1000);
    tfos__cluster_eta_complete(&eta, feed_at(1), 100);
    tfos__cluster_eta_end_epoch(&eta, feed_at(1));
    struct tfos_feed_plan again = {.epoch = 1, .epoch_count = 1, .partition_count = 4};
    tfos__cluster_eta_plan(&eta, feed_at(2), &again, 600);
    struct tfos__cluster_progress progress = look(&eta, 5000, 100, 1);
    assert_int_equal(progress.row_count, 0);
    assert_near(progress.fraction, 0);
    assert_near(progress.seconds_left, -1);
}

static void epochs_without_rows_count(void **state)
{
    (void)state;
    struct tfos__cluster_eta eta = plan(4, 2);
    tfos__cluster_eta_complete(&eta, feed_at(1), 0);
    tfos__cluster_eta_complete(&eta, feed_at(1), 0);
    tfos__cluster_eta_end_epoch(&eta, feed_at(1));
    struct tfos_feed_plan next = {.epoch = 2, .epoch_count = 4, .partition_count = 2};
    tfos__cluster_eta_plan(&eta, feed_at(2), &next, 500);
    tfos__cluster_eta_complete(&eta, feed_at(2), 0);
    assert_near(look(&eta, 9000, 0, 1).fraction, 1.5 / 4);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(nothing_is_known_of_one_moment),
    cmocka_unit_test(rates_are_of_the_last_seconds),
    cmocka_unit_test(heartbeats_in_quick_succession_do_not_shorten_the_window),
    cmocka_unit_test(a_node_that_is_silent_has_no_rates),
    cmocka_unit_test(a_counter_that_begins_anew_counts_as_nothing),
    cmocka_unit_test(the_fill_is_a_mean_over_time),
    cmocka_unit_test(the_slower_side_is_the_one_that_is_waited_for),
    cmocka_unit_test(without_a_plan_there_is_no_forecast),
    cmocka_unit_test(partitions_tell_before_rows_are_counted),
    cmocka_unit_test(rows_tell_after_the_first_epoch),
    cmocka_unit_test(more_may_become_known_of_a_feed),
    cmocka_unit_test(a_second_training_begins_at_nothing),
    cmocka_unit_test(epochs_without_rows_count),
};

TEST_MAIN(cases)
