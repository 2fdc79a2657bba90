// SPDX-License-Identifier: Apache-2.0
// Datasets in step: every row, equal steps, and nobody waits for ever.
#include <math.h>

#include "dataset_members.h"

// Steps that all must have gone in an epoch.
static int64_t expected_steps(const struct member *members, int count, int epoch)
{
    int64_t batch_size = members[0].options.batch_size, least = INT64_MAX, most = 0;

    for (int i = 0; i < count; i++) {
        int64_t rows = members[i].rows[epoch];
        least = rows / batch_size < least ? rows / batch_size : least;
        int64_t needed = (rows + batch_size - 1) / batch_size;
        most = needed > most ? needed : most;
    }
    return members[0].options.uneven == TFOS_UNEVEN_STOP ? least : most;
}

static void check_members(const struct member *members, int count)
{
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int64_t steps = expected_steps(members, count, epoch);
        for (int i = 0; i < count; i++) {
            const struct member *member = &members[i];
            bool is_stop = member->options.uneven == TFOS_UNEVEN_STOP;
            assert_int_equal(member->steps[epoch], steps);
            assert_int_equal(member->used[epoch],
                             is_stop ? steps * member->options.batch_size : member->rows[epoch]);
            for (int64_t row = 0; row < member->rows[epoch]; row++)
                assert_true(member->seen[epoch][row] == 1 ||
                            (is_stop && member->seen[epoch][row] == 0));
        }
    }
}

static void run_members(int count, enum tfos_uneven uneven, int64_t shuffle_rows)
{
    struct forum *forum = forum_open(count);
    struct member *members = members_open(forum, uneven);
    int64_t batch_size = 1 + (int64_t)random_below(20);

    for (int i = 0; i < count; i++) {
        members[i].options.batch_size = batch_size;
        members[i].options.shuffle_rows = shuffle_rows;
        for (int epoch = 0; epoch < EPOCHS; epoch++)
            members[i].rows[epoch] =
                random_below(3) == 0 ? 0 : (int64_t)random_below(1 + random_below(ROWS));
    }
    // An epoch in which nobody has rows would be passed over before the structure is known.
    members[random_below((uint64_t)count)].rows[0] = 1 + (int64_t)random_below(ROWS);
    members_run(members, count);
    feed_members(members, count, 1 + (int64_t)random_below(60));
    members_join(members, count);
    for (int i = 0; i < count; i++)
        assert_int_equal(members[i].status, TFOS_OK);
    check_members(members, count);
    members_close(members, count);
    forum_close(forum);
}

static void run_all(enum tfos_uneven uneven)
{
    for (int count = 1; count <= MEMBERS; count++)
        run_members(count, uneven, 0);
    for (int round = 0; round < 4; round++)
        run_members(2, uneven, (int64_t)random_below(50));
}

static void padded_members_use_every_row(void **state)
{
    (void)state;
    random_state = 11;
    run_all(TFOS_UNEVEN_PAD);
}

static void joining_members_use_every_row(void **state)
{
    (void)state;
    random_state = 12;
    run_all(TFOS_UNEVEN_JOIN);
}

static void stopping_members_end_together(void **state)
{
    (void)state;
    random_state = 13;
    run_all(TFOS_UNEVEN_STOP);
}

// Rows that wait already are agreed on many at a time.
static void exchanges_cover_several_steps(void **state)
{
    struct forum *forum = forum_open(2);
    struct member *members = members_open(forum, TFOS_UNEVEN_PAD);

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int epoch = 0; epoch < EPOCHS; epoch++)
            members[i].rows[epoch] = ROWS;
    feed_members(members, 2, 50);
    members_run(members, 2);
    members_join(members, 2);
    check_members(members, 2);
    assert_int_equal(members[0].steps[0], ROWS / 10);
    // The layout; 40 steps of 10 rows, 16 or so at a time, with the epoch's end; the feed's end.
    assert_true(forum->round_count <= 1 + EPOCHS * 4 + 1);
    members_close(members, 2);
    forum_close(forum);
}

// One member's rows fill its channel, the other has too few for a batch, and Spark ends the epoch
// only when all rows are in their channels.
static void run_starved(enum tfos_uneven uneven, int64_t shuffle_rows)
{
    static const char *const selection[] = {"n"};
    enum { LARGE = 60000, SHORT = 3 };
    struct forum *forum = forum_open(2);
    struct member *members = members_open(forum, uneven);

    members[0].rows[0] = ROWS;
    members[1].rows[0] = SHORT;
    for (int i = 0; i < 2; i++) {
        members[i].options.selection = selection;
        members[i].options.selection_count = 1;
        members[i].options.shuffle_rows = shuffle_rows;
        members[i].options.first_rows_wait_ms = 100;
        members[i].options.rows_wait_ms = 20;
    }
    members_run(members, 2);
    feed_numbers(&members[1].node, 1, 1, row_name(&members[1], 0, 0), SHORT, SHORT, LARGE);
    feed_numbers(&members[0].node, 1, 0, row_name(&members[0], 0, 0), ROWS, 7, LARGE);
    for (int i = 0; i < 2; i++) {
        node_end_epoch(&members[i].node, EPOCHS);
        node_set_state(&members[i].node, TFOS__FEED_ENDED, NULL);
    }
    members_join(members, 2);
    assert_int_equal(members[0].steps[0], members[1].steps[0]);
    for (int i = 0; i < 2 && uneven != TFOS_UNEVEN_STOP; i++)
        assert_int_equal(members[i].used[0], members[i].rows[0]);
    if (uneven == TFOS_UNEVEN_STOP)
        assert_int_equal(members[0].steps[0], 0);
    members_close(members, 2);
    forum_close(forum);
}

static void s14_who_waits_for_rows_holds_up_nobody(void **state)
{
    (void)state;
    run_starved(TFOS_UNEVEN_PAD, 0);
    run_starved(TFOS_UNEVEN_PAD, 50);
    run_starved(TFOS_UNEVEN_JOIN, 0);
    run_starved(TFOS_UNEVEN_STOP, 0);
}

// Feeds rows of 8,000 bytes, more than a channel has room for.
static void feed_long_lists(struct member *member)
{
    enum { LENGTH = 1000, BATCH_ROWS = 50, BATCHES = 60 };
    static int32_t offsets[BATCH_ROWS + 1];
    static double values[LENGTH * BATCH_ROWS];
    struct tfos__feed_writer *writer = feed_open(&member->node, 1, 0);
    struct made_column batch, list, items;

    for (int i = 0; i <= BATCH_ROWS; i++)
        offsets[i] = LENGTH * i;
    make_column(&items, "item", "g", LENGTH * BATCH_ROWS, values, NULL);
    make_column(&list, "x", "+l", BATCH_ROWS, offsets, NULL);
    add_child(&list, &items);
    make_batch(&batch, BATCH_ROWS);
    add_child(&batch, &list);
    for (int i = 0; i < BATCHES; i++)
        feed_append(writer, &batch.schema, &batch.array);
    feed_finish(writer);
}

static void *read_specs(void *argument)
{
    struct member *member = argument;
    struct tfos_dataset *dataset = dataset_of(&member->node, &member->options);
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct specs specs = specs_of(dataset);

    assert_int_equal(specs.count, 2); // with the weights
    assert_int_equal(specs.list[0].shape[1], 1000);
    while (next_batch(dataset, tensors)) {
        member->steps[0]++;
        for (int i = 0; i < 10; i++) {
            float weight = ((const float *)tensors[1].data)[i];
            assert_true(weight == 1 || (weight == 0 && signbit(weight)));
            member->used[0] += weight == 1;
        }
        release_tensors(tensors, specs.count);
    }
    tfos_dataset_close(dataset);
    return NULL;
}

// The epoch of the member without rows ends when all those of the other, which wait for it to read,
// are in their channel.
static void s14_who_gets_no_row_holds_up_nobody(void **state)
{
    struct forum *forum = forum_open(2);
    struct member *members = members_open(forum, TFOS_UNEVEN_PAD);

    (void)state;
    for (int i = 0; i < 2; i++) {
        members[i].options.describe = announce;
        members[i].options.first_rows_wait_ms = 100;
        members[i].options.rows_wait_ms = 20;
        assert_int_equal(pthread_create(&members[i].thread, NULL, read_specs, &members[i]), 0);
    }
    feed_long_lists(&members[0]);
    for (int i = 0; i < 2; i++) {
        node_end_epoch(&members[i].node, 1);
        node_set_state(&members[i].node, TFOS__FEED_ENDED, NULL);
    }
    members_join(members, 2);
    assert_int_equal(members[0].steps[0], members[1].steps[0]);
    assert_int_equal(members[0].used[0], 3000);
    assert_int_equal(members[1].used[0], 0);
    members_close(members, 2);
    forum_close(forum);
}

// One member's feed is cut short by terminate(): it fills up as long as the others have rows.
static void a_terminated_member_goes_along(void **state)
{
    struct forum *forum = forum_open(3);
    struct member *members = members_open(forum, TFOS_UNEVEN_PAD);

    (void)state;
    for (int i = 0; i < 3; i++)
        for (int epoch = 0; epoch < EPOCHS; epoch++)
            members[i].rows[epoch] = i == 1 ? 0 : 35;
    tfos_feed_reader_terminate(members[1].node.reader);
    members_run(members, 3);
    for (int i = 0; i < 3; i++)
        if (i != 1)
            for (int epoch = 0; epoch < EPOCHS; epoch++) {
                feed_numbers(&members[i].node, epoch + 1, i, row_name(&members[i], epoch, 0), 35, 9,
                             0);
                node_end_epoch(&members[i].node, epoch + 1);
            }
    node_set_state(&members[0].node, TFOS__FEED_ENDED, NULL);
    node_set_state(&members[2].node, TFOS__FEED_ENDED, NULL);
    members_join(members, 3);
    check_members(members, 3);
    members_close(members, 3);
    forum_close(forum);
}

static void members_without_any_rows_end(void **state)
{
    struct forum *forum = forum_open(2);
    struct member *members = members_open(forum, TFOS_UNEVEN_JOIN);

    (void)state;
    members_run(members, 2);
    feed_members(members, 2, 1);
    members_join(members, 2);
    assert_int_equal(members[0].status, TFOS_END);
    assert_int_equal(members[1].status, TFOS_END);
    members_close(members, 2);
    forum_close(forum);
}

// Feeds one row with a list of `length` numbers, or of another type where that is 0.
static void feed_list(struct member *member, int32_t length)
{
    const int32_t offsets[] = {0, length};
    const double values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct made_column batch, list, items;

    make_column(&items, "item", length > 0 ? "g" : "l", length, values, NULL);
    make_column(&list, "x", "+l", 1, offsets, NULL);
    add_child(&list, &items);
    make_batch(&batch, 1);
    add_child(&batch, &list);
    feed_only(&member->node, &batch.schema, &batch.array);
}

static void run_lists(const int32_t lengths[2], enum tfos_column_form form, struct member **out,
                      struct forum **forum_out)
{
    static struct tfos_dataset_column column = {.name = "x"};
    struct forum *forum = forum_open(2);
    struct member *members = members_open(forum, TFOS_UNEVEN_STOP);

    column.form = form;
    for (int i = 0; i < 2; i++) {
        members[i].options.columns = &column;
        members[i].options.column_count = 1;
        members[i].options.batch_size = 100; // no batch is ever whole
        feed_list(&members[i], lengths[i]);
    }
    members_run(members, 2);
    members_join(members, 2);
    *out = members;
    *forum_out = forum;
}

static void layouts_are_made_common(void **state)
{
    struct forum *forum = NULL;
    struct member *members = NULL;

    (void)state;
    run_lists((int32_t[]){3, 4}, TFOS_FORM_AUTO, &members, &forum); // becomes ragged
    for (int i = 0; i < 2; i++)
        assert_int_equal(members[i].status, TFOS_OK);
    members_close(members, 2);
    forum_close(forum);
    run_lists((int32_t[]){3, 4}, TFOS_FORM_DENSE, &members, &forum);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(members[i].status, TFOS_INVALID);
        assert_non_null(strstr(members[i].err.message, "[3]"));
        assert_non_null(strstr(members[i].err.message, "[4]"));
    }
    members_close(members, 2);
    forum_close(forum);
    run_lists((int32_t[]){3, 0}, TFOS_FORM_AUTO, &members, &forum);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(members[i].status, TFOS_INVALID);
        assert_non_null(strstr(members[i].err.message, "float64"));
        assert_non_null(strstr(members[i].err.message, "int64"));
    }
    members_close(members, 2);
    forum_close(forum);
}

static void keep_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static enum tfos_status describe_numbers(void *context, int64_t feed, int64_t timeout_ms,
                                         struct ArrowSchema *schema, struct tfos_error *err)
{
    static struct ArrowSchema number = {.format = "l", .name = "n"};
    static struct ArrowSchema *children[] = {&number};

    (void)context;
    (void)timeout_ms;
    (void)err;
    if (feed != 1)
        return TFOS_AGAIN;
    *schema = (struct ArrowSchema){
        .format = "+s", .name = "", .n_children = 1, .children = children, .release = keep_schema};
    return TFOS_OK;
}

static void described_members_wait_for_no_row(void **state)
{
    struct forum *forum = forum_open(2);
    struct member *members = members_open(forum, TFOS_UNEVEN_JOIN);

    (void)state;
    for (int i = 0; i < 2; i++)
        members[i].options.describe = describe_numbers;
    members_run(members, 2);
    pthread_mutex_lock(&forum->mutex);
    while (forum->round_count == 0 || forum->rounds[0].given < 2) {
        pthread_mutex_unlock(&forum->mutex);
        sched_yield();
        pthread_mutex_lock(&forum->mutex);
    }
    pthread_mutex_unlock(&forum->mutex);
    members[1].rows[1] = 17; // of the second epoch: the first has no row at all
    feed_members(members, 2, 10);
    members_join(members, 2);
    check_members(members, 2);
    members_close(members, 2);
    forum_close(forum);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(padded_members_use_every_row),
    cmocka_unit_test(joining_members_use_every_row),
    cmocka_unit_test(stopping_members_end_together),
    cmocka_unit_test(exchanges_cover_several_steps),
    cmocka_unit_test(s14_who_waits_for_rows_holds_up_nobody),
    cmocka_unit_test(s14_who_gets_no_row_holds_up_nobody),
    cmocka_unit_test(described_members_wait_for_no_row),
    cmocka_unit_test(a_terminated_member_goes_along),
    cmocka_unit_test(members_without_any_rows_end),
    cmocka_unit_test(layouts_are_made_common),
};

TEST_MAIN(cases)
