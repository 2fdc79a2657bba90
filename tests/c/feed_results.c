// SPDX-License-Identifier: Apache-2.0
// Inference: each row gets its result, in order, through the same channel or over TCP, whatever
// sizes meet.
#include "feed_task.h"

#define RESULT_FACTOR 3

// Answers rows [first, first + rows) of a partition with numbers RESULT_FACTOR times theirs.
static enum tfos_status answer_within(struct node *node, const struct tfos_wait *wait, int channel,
                                      int64_t first, int64_t rows, int payload,
                                      struct tfos_error *err)
{
    struct test_batch batch;

    batch_init(&batch, 0, rows, payload);
    for (int64_t i = 0; i < rows; i++)
        batch.numbers[i] = (first + i) * RESULT_FACTOR;
    enum tfos_status status =
        tfos_feed_reader_put_results(node->reader, channel, &batch.schema, &batch.array, wait, err);
    batch_clear(&batch);
    return status;
}

static enum tfos_status answer(struct node *node, int channel, int64_t first, int64_t rows,
                               int payload, struct tfos_error *err)
{
    return answer_within(node, NULL, channel, first, rows, payload, err);
}

// A trainer that answers in groups that have nothing to do with the batches.
struct trainer {
    struct node *node;
    int64_t group;
    int payload;
    int64_t row_count;
    pthread_t thread;
};

static void *trainer_main(void *argument)
{
    struct trainer *trainer = argument;
    struct tfos_feed_item item;
    struct tfos_error err;
    struct {
        int64_t given, answered;
        int channel;
    } partitions[64] = {0};

    while (next_item(trainer->node, &item) == TFOS_OK) {
        if (item.kind == TFOS_FEED_EPOCH_END)
            continue;
        int64_t *given = &partitions[item.partition].given,
                *answered = &partitions[item.partition].answered;
        assert_true(item.has_results);
        if (item.kind == TFOS_FEED_BATCH) {
            assert_int_equal(item.first_row, *given);
            *given += item.array.length;
            partitions[item.partition].channel = item.channel;
            release_item(&item);
        }
        int64_t group = item.kind == TFOS_FEED_PARTITION_END ? 1 : trainer->group;
        while (*given - *answered >= group) {
            int64_t rows =
                *given - *answered < trainer->group ? *given - *answered : trainer->group;
            assert_done(answer(trainer->node, partitions[item.partition].channel, *answered, rows,
                               trainer->payload, &err));
            *answered += rows;
            trainer->row_count += rows;
        }
    }
    return NULL;
}

struct inference {
    struct writer_options options;
    int64_t rows, batch_rows;
    int payload;
    int64_t result_count;
    enum tfos_status status;
    struct tfos_error err;
    pthread_t thread;
};

// Takes results; `timeout_ms` as for next_result().
static enum tfos_status take(struct inference *inference, struct tfos__feed_writer *writer,
                             int64_t timeout_ms)
{
    struct ArrowSchema schema;
    struct ArrowArray array;
    enum tfos_status status =
        tfos__feed_writer_next_result(writer, timeout_ms, &schema, &array, &inference->err);

    if (status != TFOS_OK)
        return status;
    for (int64_t i = 0; i < array.length; i++)
        assert_int_equal(number_at(&array, i), (inference->result_count + i) * RESULT_FACTOR);
    inference->result_count += array.length;
    schema.release(&schema);
    array.release(&array);
    return TFOS_OK;
}

static void *inference_main(void *argument)
{
    struct inference *inference = argument;
    struct tfos__feed_writer *writer = NULL;
    enum tfos_status status = writer_open(&inference->options, &writer, &inference->err);

    for (int64_t row = 0; status == TFOS_OK && row < inference->rows;
         row += inference->batch_rows) {
        int64_t rows = inference->rows - row < inference->batch_rows ? inference->rows - row
                                                                     : inference->batch_rows;
        while ((status = append_rows(writer, row, rows, inference->payload, &inference->err)) ==
               TFOS_AGAIN)
            if ((status = take(inference, writer, 0)) != TFOS_OK)
                break;
        while (status == TFOS_OK)
            status = take(inference, writer, 0);
        status = status == TFOS_AGAIN ? TFOS_OK : status;
    }
    while (status == TFOS_OK &&
           (status = tfos__feed_writer_finish(writer, &inference->err)) == TFOS_AGAIN)
        status = take(inference, writer, 0);
    while (status == TFOS_OK)
        status = take(inference, writer, -1);
    inference->status = status;
    tfos__feed_writer_close(writer);
    return NULL;
}

static void run_inference(bool is_remote, int partition_count, int64_t rows, int64_t batch_rows,
                          int payload, int64_t group, int result_payload)
{
    struct node node;
    struct trainer trainer = {.node = &node, .group = group, .payload = result_payload};
    struct inference tasks[8] = {0};

    node_open(&node, 0);
    node_start(&node);
    assert_int_equal(pthread_create(&trainer.thread, NULL, trainer_main, &trainer), 0);
    for (int i = 0; i < partition_count; i++) {
        tasks[i].options = writer_options(&node, i);
        tasks[i].options.feeder.has_results = true;
        tasks[i].options.feeder.ahead_rows = i % 2 * 40;
        tasks[i].options.feeder.feed = 1 + i % 2; // nobody ends the epoch of an inference
        if (is_remote) {
            tasks[i].options.target.socket_name = NULL;
            tasks[i].options.target.address = node.address;
        }
        tasks[i].rows = rows;
        tasks[i].batch_rows = batch_rows;
        tasks[i].payload = payload;
        assert_int_equal(pthread_create(&tasks[i].thread, NULL, inference_main, &tasks[i]), 0);
    }
    for (int i = 0; i < partition_count; i++) {
        pthread_join(tasks[i].thread, NULL);
        if (tasks[i].status != TFOS_END)
            fail_msg("partition %d: %s: %s", i, tfos_status_name(tasks[i].status),
                     tasks[i].err.message);
        assert_int_equal(tasks[i].result_count, rows);
    }
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    pthread_join(trainer.thread, NULL);
    assert_int_equal(trainer.row_count, rows * partition_count);
    node_close(&node);
}

static void each_row_gets_its_result(void **state)
{
    (void)state;
    for (int is_remote = 0; is_remote < 2; is_remote++) {
        run_inference(is_remote, 1, 0, 5, 0, 5, 0);
        run_inference(is_remote, 1, 1, 5, 0, 5, 0);
        run_inference(is_remote, 1, 1003, 7, 100, 10, 0);
        run_inference(is_remote, 4, 600, 9, 300, 10, 50);
    }
}

// Results that are larger than the rows fill their ring while rows fill theirs: neither side waits
// for the other in vain.
static void rings_full_both_ways(void **state)
{
    (void)state;
    for (int is_remote = 0; is_remote < 2; is_remote++)
        run_inference(is_remote, 2, 3000, 100, 200, 50, 700);
}

// Rows and results beyond the ring: the channel grows while results of the old one are still due.
static void large_rows_and_results(void **state)
{
    (void)state;
    for (int is_remote = 0; is_remote < 2; is_remote++) {
        run_inference(is_remote, 1, 12, 1, 150000, 5, 40000);
        run_inference(is_remote, 1, 500, 500, 1000, 200, 600);
    }
}

// A single result many times as large as the ring goes through it in pieces.
static void results_beyond_their_ring(void **state)
{
    (void)state;
    for (int is_remote = 0; is_remote < 2; is_remote++) {
        run_inference(is_remote, 2, 12, 5, 0, 5, 1000000);
        run_inference(is_remote, 1, 40, 40, 10, 40, 30000);
    }
}

struct fed {
    struct node node;
    struct tfos__feed_writer *writer;
    struct tfos_feed_item item;
};

static void fed_begin(struct fed *fed, int64_t rows)
{
    struct tfos_error err;

    node_open(&fed->node, 0);
    node_start(&fed->node);
    struct writer_options options = writer_options(&fed->node, 6);
    options.feeder.has_results = true;
    options.feeder.wait.timeout_ms = 500;
    assert_done(writer_open(&options, &fed->writer, &err));
    assert_done(append_rows(fed->writer, 0, rows, 0, &err));
    assert_int_equal(next_item(&fed->node, &fed->item), TFOS_OK);
    release_item(&fed->item);
}

static void fed_open(struct fed *fed, int64_t rows)
{
    struct tfos_error err;

    fed_begin(fed, rows);
    assert_done(tfos__feed_writer_finish(fed->writer, &err));
}

static void fed_close(struct fed *fed)
{
    tfos__feed_writer_close(fed->writer);
    node_close(&fed->node);
}

static void too_many_results_are_refused(void **state)
{
    struct fed fed;
    struct tfos_error err;

    (void)state;
    fed_open(&fed, 10);
    assert_done(answer(&fed.node, fed.item.channel, 0, 9, 0, &err));
    assert_int_equal(answer(&fed.node, fed.item.channel, 9, 2, 0, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "partition 6"));
    assert_non_null(strstr(err.message, "11 results"));
    assert_non_null(strstr(err.message, "10 rows"));
    assert_done(answer(&fed.node, fed.item.channel, 9, 1, 0, &err));
    assert_int_equal(answer(&fed.node, fed.item.channel + 1, 9, 1, 0, &err), TFOS_INVALID);
    fed_close(&fed);
}

// S17: one result too few.
static void s17_a_missing_result_is_told(void **state)
{
    struct fed fed;
    struct inference inference = {0};
    struct tfos_error err;

    (void)state;
    fed_open(&fed, 10);
    assert_done(answer(&fed.node, fed.item.channel, 0, 9, 0, &err));
    assert_int_equal(take(&inference, fed.writer, -1), TFOS_OK);
    assert_int_equal(inference.result_count, 9);
    assert_int_equal(take(&inference, fed.writer, 20), TFOS_AGAIN);
    assert_int_equal(take(&inference, fed.writer, -1), TFOS_TIMEOUT);
    assert_non_null(strstr(inference.err.message, "partition 6"));
    assert_non_null(strstr(inference.err.message, "10 rows"));
    assert_non_null(strstr(inference.err.message, "9 results"));
    node_set_state(&fed.node, TFOS__FEED_TERMINATED, NULL);
    assert_int_equal(take(&inference, fed.writer, -1), TFOS_CLOSED);
    assert_non_null(strstr(inference.err.message, "9 results for 10 rows"));
    fed_close(&fed);
}

// It returns with its last answer, before the writer has said that there are no more rows.
static void a_trainer_may_go_when_it_has_answered(void **state)
{
    struct tfos_error err;

    (void)state;
    for (int has_more = 0; has_more < 2; has_more++) {
        struct inference inference = {0};
        struct fed fed;
        fed_begin(&fed, 10);
        assert_done(answer(&fed.node, fed.item.channel, 0, 10, 0, &err));
        node_set_state(&fed.node, TFOS__FEED_TERMINATED, NULL);
        assert_int_equal(take(&inference, fed.writer, -1), TFOS_OK);
        assert_int_equal(take(&inference, fed.writer, -1), TFOS_AGAIN);
        if (has_more) {
            assert_int_equal(append_rows(fed.writer, 10, 1, 0, &err), TFOS_END);
            assert_int_equal(take(&inference, fed.writer, -1), TFOS_CLOSED);
            assert_non_null(strstr(inference.err.message, "10 rows"));
            assert_non_null(strstr(inference.err.message, "has more rows"));
        } else {
            assert_int_equal(tfos__feed_writer_finish(fed.writer, &err), TFOS_END);
            assert_int_equal(take(&inference, fed.writer, -1), TFOS_END);
        }
        assert_int_equal(inference.result_count, 10);
        fed_close(&fed);
    }
}

static bool interrupt(void *context)
{
    return ++*(int *)context == 2;
}

// A task that takes no results holds its trainer up only until something else is wanted of it.
static void a_wait_for_space_can_be_ended(void **state)
{
    struct fed fed;
    struct tfos_error err;
    int asked = 0;
    struct tfos_wait wait = {.is_interrupted = interrupt, .context = &asked};

    (void)state;
    fed_open(&fed, 4000);
    assert_int_equal(answer_within(&fed.node, &wait, fed.item.channel, 0, 4000, 2000, &err),
                     TFOS_CLOSED);
    assert_int_equal(asked, 2);
    assert_string_equal(err.message, "feed: partition 6: the wait was interrupted");
    wait = (struct tfos_wait){.timeout_ms = 60};
    assert_int_equal(answer_within(&fed.node, &wait, fed.item.channel, 0, 100, 2000, &err),
                     TFOS_TIMEOUT);
    assert_string_equal(err.message, "feed: partition 6: the task took no results in time");
    fed_close(&fed);
}

// What was left of a large result whose wait was ended is not taken for the next one's beginning.
static void an_unfinished_piece_is_dropped(void **state)
{
    struct fed fed;
    struct inference inference = {0};
    struct tfos_error err;
    int asked = 0;
    struct tfos_wait wait = {.is_interrupted = interrupt, .context = &asked};

    (void)state;
    fed_open(&fed, 3);
    assert_int_equal(answer_within(&fed.node, &wait, fed.item.channel, 0, 1, 1000000, &err),
                     TFOS_CLOSED);
    assert_int_equal(take(&inference, fed.writer, 20), TFOS_AGAIN);
    assert_done(answer(&fed.node, fed.item.channel, 0, 3, 100, &err));
    assert_int_equal(take(&inference, fed.writer, -1), TFOS_OK);
    assert_int_equal(inference.result_count, 3);
    assert_int_equal(take(&inference, fed.writer, -1), TFOS_END);
    fed_close(&fed);
}

// A task may keep what it took: the trainer's space is free again, and the channel may go to
// others.
static void results_outlive_their_writer(void **state)
{
    struct fed fed;
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct tfos_error err;

    (void)state;
    fed_open(&fed, 100);
    assert_done(answer(&fed.node, fed.item.channel, 0, 100, 100, &err));
    assert_done(tfos__feed_writer_next_result(fed.writer, -1, &schema, &array, &err));
    fed_close(&fed);
    assert_int_equal(array.length, 100);
    for (int64_t i = 0; i < 100; i++)
        assert_int_equal(number_at(&array, i), i * RESULT_FACTOR);
    array.release(&array);
    schema.release(&schema);
}

// Results for a task that has gone fail with that message, and never reach the next task on that
// channel.
static void late_results_reach_nobody(void **state)
{
    struct fed fed;
    struct inference inference = {.rows = 10};
    struct tfos_feed_item item;
    struct tfos_error err;

    (void)state;
    fed_open(&fed, 10);
    assert_done(answer(&fed.node, fed.item.channel, 0, 4, 0, &err));
    assert_int_equal(next_item(&fed.node, &item), TFOS_OK);
    assert_int_equal(item.kind, TFOS_FEED_PARTITION_END);
    tfos__feed_writer_close(fed.writer);
    node_wait_closed(&fed.node, 1);
    assert_int_equal(answer(&fed.node, fed.item.channel, 4, 3, 0, &err), TFOS_CLOSED);
    struct writer_options options = writer_options(&fed.node, 7);
    options.feeder.has_results = true;
    assert_done(writer_open(&options, &fed.writer, &err));
    assert_int_equal(fed.node.channel_count, 1);
    // The reader has not met the new task yet: this goes into its ring, and is thrown away there.
    (void)answer(&fed.node, fed.item.channel, 4, 3, 0, &err);
    assert_done(append_rows(fed.writer, 0, 10, 0, &err));
    assert_done(tfos__feed_writer_finish(fed.writer, &err));
    assert_int_equal(next_item(&fed.node, &item), TFOS_OK);
    release_item(&item);
    assert_int_equal(answer(&fed.node, fed.item.channel, 4, 1, 0, &err), TFOS_CLOSED);
    assert_done(answer(&fed.node, item.channel, 0, 10, 0, &err));
    assert_int_equal(take(&inference, fed.writer, -1), TFOS_OK);
    assert_int_equal(inference.result_count, 10);
    assert_int_equal(take(&inference, fed.writer, -1), TFOS_END);
    fed_close(&fed);
}

static void channels_for_training_take_no_results(void **state)
{
    struct node node;
    struct tfos__feed_writer *writer = NULL;
    struct tfos_feed_item item;
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct tfos_error err;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    struct writer_options options = writer_options(&node, 0);
    assert_done(writer_open(&options, &writer, &err));
    assert_done(append_rows(writer, 0, 1, 0, &err));
    assert_int_equal(next_item(&node, &item), TFOS_OK);
    release_item(&item);
    assert_int_equal(answer(&node, item.channel, 0, 1, 0, &err), TFOS_INVALID);
    assert_int_equal(tfos__feed_writer_next_result(writer, 0, &schema, &array, &err), TFOS_INVALID);
    tfos__feed_writer_close(writer);
    node_close(&node);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(each_row_gets_its_result),
    cmocka_unit_test(rings_full_both_ways),
    cmocka_unit_test(large_rows_and_results),
    cmocka_unit_test(results_beyond_their_ring),
    cmocka_unit_test(an_unfinished_piece_is_dropped),
    cmocka_unit_test(results_outlive_their_writer),
    cmocka_unit_test(too_many_results_are_refused),
    cmocka_unit_test(a_wait_for_space_can_be_ended),
    cmocka_unit_test(s17_a_missing_result_is_told),
    cmocka_unit_test(a_trainer_may_go_when_it_has_answered),
    cmocka_unit_test(late_results_reach_nobody),
    cmocka_unit_test(channels_for_training_take_no_results),
};

TEST_MAIN(cases)
