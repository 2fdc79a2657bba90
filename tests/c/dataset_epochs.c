// SPDX-License-Identifier: Apache-2.0
// Datasets in step from epoch to epoch: how long an epoch is that repeats another, how it
// begins, and passes that do not see its end.
#include <poll.h>

#include "dataset_members.h"

static bool is_again(void *context, int64_t feed)
{
    (void)context;
    return feed > 1;
}

static bool is_again_once(void *context, int64_t feed)
{
    (void)context;
    return feed == 2;
}

static void run_epochs(enum tfos_uneven uneven, bool (*is_repeat)(void *, int64_t),
                       const int64_t rows[2][EPOCHS], const int64_t steps[EPOCHS])
{
    struct forum *forum = forum_open(2);
    struct member *members = members_open(forum, uneven);

    for (int i = 0; i < 2; i++) {
        memcpy(members[i].rows, rows[i], sizeof(members[i].rows));
        members[i].options.is_repeat = is_repeat;
    }
    feed_members(members, 2, 20);
    members_run(members, 2);
    members_join(members, 2);
    for (int i = 0; i < 2; i++)
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
            assert_int_equal(members[i].steps[epoch], steps[epoch]);
            assert_int_equal(members[i].used[epoch], rows[i][epoch]);
        }
    members_close(members, 2);
    forum_close(forum);
}

// Keras ends training at the first epoch with fewer steps than the first.
static void s15_repeated_epochs_have_the_steps_of_the_first(void **state)
{
    static const int64_t shorter[2][EPOCHS] = {{100, 70, 61}, {40, 70, 79}};
    static const int64_t longer[2][EPOCHS] = {{70, 100, 65}, {70, 40, 75}};

    (void)state;
    run_epochs(TFOS_UNEVEN_PAD, is_again, shorter, (int64_t[]){10, 10, 10});
    run_epochs(TFOS_UNEVEN_PAD, is_again, longer, (int64_t[]){7, 10, 8});
    run_epochs(TFOS_UNEVEN_PAD, is_again_once, shorter, (int64_t[]){10, 10, 8});
    run_epochs(TFOS_UNEVEN_PAD, NULL, shorter, (int64_t[]){10, 7, 8});
    run_epochs(TFOS_UNEVEN_JOIN, is_again, shorter, (int64_t[]){10, 7, 8});
}

// Keras counts the steps of the first pass and takes as many of each later one.
static void *fit(void *argument)
{
    struct member *member = argument;
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct tfos_dataset *dataset = dataset_of(&member->node, &member->options);
    struct specs specs = specs_of(dataset);
    int64_t most = INT64_MAX;

    for (int pass = 0; pass < EPOCHS; pass++) {
        while (member->steps[pass] < most &&
               next_of_pass(dataset, member->steps[pass] == 0, tensors)) {
            member->steps[pass]++;
            release_tensors(tensors, specs.count);
        }
        most = member->steps[0];
    }
    tfos_dataset_close(dataset);
    return NULL;
}

static void fit_epochs(int count, enum tfos_uneven uneven, bool (*is_repeat)(void *, int64_t),
                       const int64_t rows[2][EPOCHS], const int64_t steps[EPOCHS])
{
    struct forum *forum = forum_open(count);
    struct member *members = members_open(forum, uneven);

    for (int i = 0; i < count; i++) {
        memcpy(members[i].rows, rows[i], sizeof(members[i].rows));
        members[i].options.is_repeat = is_repeat;
    }
    feed_members(members, count, 20);
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&members[i].thread, NULL, fit, &members[i]), 0);
    members_join(members, count);
    for (int i = 0; i < count; i++)
        assert_memory_equal(members[i].steps, steps, sizeof(members[i].steps));
    members_close(members, count);
    forum_close(forum);
}

static void s15_a_pass_begins_where_an_epoch_has_given_its_steps(void **state)
{
    static const int64_t equal[2][EPOCHS] = {{100, 100, 100}, {40, 40, 40}};
    static const int64_t shorter[2][EPOCHS] = {{100, 70, 61}, {40, 70, 79}};
    static const int64_t longer[2][EPOCHS] = {{70, 100, 65}, {70, 40, 75}};
    static const int64_t empty[2][EPOCHS] = {{70, 70, 0}, {70, 70, 0}};

    (void)state;
    for (enum tfos_uneven uneven = TFOS_UNEVEN_IGNORE; uneven <= TFOS_UNEVEN_STOP; uneven++) {
        int64_t least = uneven == TFOS_UNEVEN_STOP ? 4 : 10;
        int count = uneven == TFOS_UNEVEN_IGNORE ? 1 : 2;
        fit_epochs(count, uneven, is_again, equal, (int64_t[]){least, least, least});
        fit_epochs(count, uneven, NULL, equal, (int64_t[]){least, least, least});
        fit_epochs(count, uneven, NULL, empty, (int64_t[]){7, 7, 0});
    }
    fit_epochs(2, TFOS_UNEVEN_PAD, is_again, shorter, (int64_t[]){10, 10, 10});
    // Three steps of the second epoch are left, and one pass with the third.
    fit_epochs(2, TFOS_UNEVEN_PAD, is_again, longer, (int64_t[]){7, 7, 7});
    fit_epochs(1, TFOS_UNEVEN_IGNORE, is_again, longer, (int64_t[]){7, 7, 7});
    // The third has other rows.
    fit_epochs(2, TFOS_UNEVEN_PAD, is_again_once, longer, (int64_t[]){7, 7, 3});
    fit_epochs(1, TFOS_UNEVEN_IGNORE, NULL, longer, (int64_t[]){7, 7, 3});
}

static void *feed_first(void *argument)
{
    struct member *member = argument;

    feed_numbers(&member->node, 1, 0, row_name(member, 0, 0), ROWS, 7, 60000);
    node_end_epoch(&member->node, EPOCHS);
    return NULL;
}

// Spark starts the task of one member a second and a half after that of the other, whose channel is
// full by then: the first step is not spent on filling up.
static void first_rows_are_given_time(void **state)
{
    static const char *const selection[] = {"n"};
    struct forum *forum = forum_open(2);
    struct member *members = members_open(forum, TFOS_UNEVEN_PAD);
    pthread_t thread;

    (void)state;
    for (int i = 0; i < 2; i++) {
        members[i].rows[0] = ROWS;
        members[i].options.selection = selection;
        members[i].options.selection_count = 1;
        members[i].options.describe = announce;
    }
    members_run(members, 2);
    assert_int_equal(pthread_create(&thread, NULL, feed_first, &members[0]), 0);
    poll(NULL, 0, 1500);
    feed_numbers(&members[1].node, 1, 1, row_name(&members[1], 0, 0), ROWS, 40, 0);
    node_end_epoch(&members[1].node, EPOCHS);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++)
        node_set_state(&members[i].node, TFOS__FEED_ENDED, NULL);
    members_join(members, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(members[i].used_first[0], 10);
        assert_int_equal(members[i].used[0], ROWS);
    }
    members_close(members, 2);
    forum_close(forum);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s15_repeated_epochs_have_the_steps_of_the_first),
    cmocka_unit_test(s15_a_pass_begins_where_an_epoch_has_given_its_steps),
    cmocka_unit_test(first_rows_are_given_time),
};

TEST_MAIN(cases)
