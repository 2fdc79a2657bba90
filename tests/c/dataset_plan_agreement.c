// SPDX-License-Identifier: Apache-2.0
// How eight nodes come to one plan: what they tell each other stays small, with 10,000 columns too.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "dataset/plan_agreement.h"
#include "harness.h"

#define MEMBERS 8
#define COLUMNS 10000
#define FEW 100            // columns, where their number does not matter
#define EXCHANGES 3        // at most
#define ROUND_SIZE 2097152 // bytes that the cluster takes in one agreement of all

struct forum {
    pthread_barrier_t barrier;
    char *values[EXCHANGES][MEMBERS];
    size_t sizes[EXCHANGES]; ///< of all values, in bytes
    pthread_mutex_t mutex;   ///< guards sizes
};

struct member {
    struct forum *forum;
    int number, exchange_count;
    struct tfos_dataset_options options;
    struct tfos__dataset_plan own, plan;
    bool has_rows, is_over, is_described;
    const enum tfos__dataset_row_state *row_state; ///< NULL: as has_rows says
    enum tfos__dataset_plan_agreement_next next;
    enum tfos_status status;
    struct tfos_error err;
};

// All members exchange in the same order, so the count of exchanges is as good as the name.
static enum tfos_status agree(void *context, const char *name, const char *value_json,
                              char **values_json, struct tfos_error *err)
{
    struct member *member = context;
    struct forum *forum = member->forum;
    int round = member->exchange_count++;

    (void)err;
    assert_true(round < EXCHANGES);
    assert_non_null(strstr(name, "dataset/input/layout/4/"));
    forum->values[round][member->number] = tfos__strdup(value_json);
    pthread_mutex_lock(&forum->mutex);
    forum->sizes[round] += strlen(value_json);
    pthread_mutex_unlock(&forum->mutex);
    pthread_barrier_wait(&forum->barrier);
    json_t *array = json_array();
    for (int i = 0; i < MEMBERS; i++)
        json_array_append_new(array, json_loads(forum->values[round][i], 0, NULL));
    *values_json = tfos__json_text(array);
    json_decref(array);
    return TFOS_OK;
}

static void *member_main(void *argument)
{
    struct member *member = argument;
    struct tfos__dataset_plan_agreement agreement = {
        .options = &member->options,
        .round = 4,
        .own = member->has_rows || member->is_described ? &member->own : NULL,
        .rows = member->has_rows ? TFOS__ROWS_READY : TFOS__ROWS_NONE,
        .is_over = member->is_over};

    if (member->row_state)
        agreement.rows = *member->row_state;
    member->status =
        tfos__dataset_plan_agreement_reach(&agreement, &member->plan, &member->next, &member->err);
    return NULL;
}

// Lists of three float64 in each column, of which no form was asked.
static void make_plan(struct tfos__dataset_plan *plan, int column_count)
{
    struct tfos_error err;
    char name[64];

    *plan = (struct tfos__dataset_plan){.structure = TFOS_ROW_DICT};
    for (int i = 0; i < column_count; i++) {
        snprintf(name, sizeof(name), "a column with quite a long name %06d", i);
        struct tfos__dataset_feature *feature =
            tfos__dataset_plan_add(plan, (const char *[]){name}, 1);
        assert_non_null(feature);
        feature->dtype = TFOS_DTYPE_FLOAT64;
        feature->form = TFOS_FORM_DENSE;
        feature->is_flexible = true;
        feature->level_count = feature->rank = 1;
        feature->lengths[0] = feature->shape[0] = 3;
    }
    assert_done(tfos__dataset_plan_sort(plan, &err));
}

static struct member *open_members(struct forum *forum, int column_count)
{
    struct member *members = calloc(MEMBERS, sizeof(*members));

    *forum = (struct forum){.mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_barrier_init(&forum->barrier, NULL, MEMBERS);
    for (int i = 0; i < MEMBERS; i++) {
        members[i] = (struct member){.forum = forum, .number = i, .has_rows = true};
        members[i].options = (struct tfos_dataset_options){
            .uneven = TFOS_UNEVEN_PAD, .agree = agree, .context = &members[i], .name = "input"};
        make_plan(&members[i].own, column_count);
    }
    return members;
}

static void run_members(struct member *members)
{
    pthread_t threads[MEMBERS];

    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, member_main, &members[i]), 0);
    for (int i = 0; i < MEMBERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < MEMBERS; i++) {
        assert_int_equal(members[i].status, members[0].status);
        assert_int_equal(members[i].exchange_count, members[0].exchange_count);
        if (members[0].status < 0)
            assert_string_equal(members[i].err.message, members[0].err.message);
    }
    for (int i = 0; i < members[0].exchange_count; i++)
        assert_true(members[0].forum->sizes[i] < ROUND_SIZE);
}

static void close_members(struct member *members)
{
    struct forum *forum = members->forum;

    for (int i = 0; i < MEMBERS; i++) {
        tfos__dataset_plan_clear(&members[i].own);
        if (members[i].status == TFOS_OK)
            tfos__dataset_plan_clear(&members[i].plan);
    }
    for (int i = 0; i < EXCHANGES; i++)
        for (int k = 0; k < MEMBERS; k++)
            tfos__free(forum->values[i][k]);
    pthread_barrier_destroy(&forum->barrier);
    free(members);
}

static void check_plans(const struct member *members, int64_t ragged_first, int64_t ragged_last)
{
    for (int i = 0; i < MEMBERS; i++) {
        const struct tfos__dataset_plan *plan = &members[i].plan;
        assert_int_equal(members[i].status, TFOS_OK);
        assert_int_equal(plan->feature_count, COLUMNS);
        for (int64_t k = 0; k < COLUMNS; k++) {
            const struct tfos__dataset_feature *feature = &plan->features[k];
            bool is_ragged = k >= ragged_first && k <= ragged_last;
            assert_int_equal(feature->form, is_ragged ? TFOS_FORM_RAGGED : TFOS_FORM_DENSE);
            assert_int_equal(feature->lengths[0], is_ragged ? -1 : 3);
            assert_int_equal(tfos__dataset_plan_find(plan, feature->path, 1), k);
        }
    }
}

static void equal_plans_need_only_digests(void **state)
{
    struct forum forum;
    struct member *members = open_members(&forum, COLUMNS);

    (void)state;
    run_members(members);
    check_plans(members, 0, -1);
    assert_int_equal(members[0].exchange_count, 1);
    assert_true(forum.sizes[0] < MEMBERS * 200);
    close_members(members);
}

static void who_has_no_rows_takes_the_plan(void **state)
{
    struct forum forum;
    struct member *members = open_members(&forum, COLUMNS);

    (void)state;
    for (int i = 0; i < MEMBERS; i++)
        members[i].has_rows = i == 2 || i == 5;
    run_members(members);
    check_plans(members, 0, -1);
    assert_int_equal(members[0].exchange_count, 2);
    close_members(members);
}

static void nobody_has_rows(void **state)
{
    struct forum forum;
    struct member *members;

    (void)state;
    for (int over = MEMBERS - 1; over <= MEMBERS; over++) {
        members = open_members(&forum, FEW);
        for (int i = 0; i < MEMBERS; i++) {
            members[i].has_rows = false;
            members[i].is_over = i < over;
        }
        run_members(members);
        assert_int_equal(members[0].status, over == MEMBERS ? TFOS_END : TFOS_AGAIN);
        assert_int_equal(members[0].next, TFOS__PLAN_NEXT_EPOCH);
        close_members(members);
    }
}

// Rows of one node decide when the others have looked, or it is full; without any there is no plan,
// whatever is known of types.
static void rows_are_waited_for(void **state)
{
    static const enum tfos__dataset_row_state awaited = TFOS__ROWS_AWAITED, full = TFOS__ROWS_FULL;
    struct forum forum;
    struct member *members;

    (void)state;
    for (int is_full = 0; is_full < 2; is_full++) {
        members = open_members(&forum, FEW);
        for (int i = 1; i < MEMBERS; i++) {
            members[i].has_rows = false;
            members[i].row_state = &awaited;
        }
        members[0].row_state = is_full ? &full : NULL;
        run_members(members);
        assert_int_equal(members[0].status, is_full ? TFOS_OK : TFOS_AGAIN);
        assert_int_equal(members[0].next, TFOS__PLAN_WAIT);
        close_members(members);
    }
    for (int is_awaited = 0; is_awaited < 2; is_awaited++) {
        members = open_members(&forum, FEW);
        for (int i = 0; i < MEMBERS; i++) {
            members[i].has_rows = false;
            members[i].is_over = true;
            members[i].is_described = i > 0;
            members[i].own.features[1].is_undecided = true;
        }
        members[3].row_state = is_awaited ? &awaited : NULL;
        run_members(members);
        assert_int_equal(members[0].status, TFOS_AGAIN);
        assert_int_equal(members[0].next, is_awaited ? TFOS__PLAN_WAIT : TFOS__PLAN_LEAVE_OPEN);
        close_members(members);
    }
}

// What is described whole waits for no row.
static void descriptions_decide_at_once(void **state)
{
    static const enum tfos__dataset_row_state awaited = TFOS__ROWS_AWAITED;
    struct forum forum;
    struct member *members = open_members(&forum, COLUMNS);

    (void)state;
    for (int i = 0; i < MEMBERS; i++) {
        members[i].has_rows = false;
        members[i].is_described = true;
        members[i].row_state = &awaited;
        for (int k = 0; k < COLUMNS; k++)
            members[i].own.features[k].is_flexible = false;
    }
    run_members(members);
    check_plans(members, 0, -1);
    close_members(members);
}

static void lengths_that_differ_become_ragged(void **state)
{
    struct forum forum;
    struct member *members = open_members(&forum, COLUMNS);

    (void)state;
    members[0].has_rows = false;
    for (int k = 4000; k <= 9000; k++) // no two nodes have the same
        for (int i = 1; i < MEMBERS; i++)
            members[i].own.features[k].lengths[0] = members[i].own.features[k].shape[0] = i + k;
    run_members(members);
    check_plans(members, 4000, 9000);
    assert_int_equal(members[0].exchange_count, 3);
    close_members(members);
}

static void run_refused(struct member *members, const char *words, const char *other_words)
{
    run_members(members);
    assert_int_equal(members[0].status, TFOS_INVALID);
    assert_non_null(strstr(members[0].err.message, words));
    assert_non_null(strstr(members[0].err.message, other_words));
    close_members(members);
}

static void what_differs_is_named(void **state)
{
    struct forum forum;
    struct member *members = open_members(&forum, FEW);

    (void)state;
    members[6].own.features[77].dtype = TFOS_DTYPE_INT16;
    run_refused(members, "name 000077 is ", "int16[3]");
    members = open_members(&forum, FEW);
    members[3].own.features[9].is_flexible = false;
    members[3].own.features[9].lengths[0] = 4;
    run_refused(members, "float64[3]", "float64[4]");
    members = open_members(&forum, FEW);
    members[1].own.feature_count--;
    tfos__free(members[1].own.features[FEW - 1].path);
    tfos__free(members[1].own.sorted);
    assert_int_equal(tfos__dataset_plan_sort(&members[1].own, NULL), TFOS_OK);
    run_refused(members, "has a column a column with quite a long name 000099", "another has none");
    members = open_members(&forum, FEW);
    members[7].own.structure = TFOS_ROW_TUPLE;
    run_refused(members, "different kinds", "structure");
}

// Python's rows: integers on some nodes, floats on others, here with lists of another length too.
static void s87_numbers_become_floats_on_all(void **state)
{
    struct forum forum;
    struct member *members = open_members(&forum, FEW);

    (void)state;
    for (int i = 0; i < MEMBERS; i++) {
        for (int k = 0; k < FEW; k++)
            members[i].own.features[k].is_number = k != 5;
        if (i % 2 == 0)
            members[i].own.features[7].dtype = TFOS_DTYPE_INT64;
    }
    members[3].own.features[8].lengths[0] = members[3].own.features[8].shape[0] = 4;
    members[6].own.features[9].dtype = TFOS_DTYPE_INT64;
    run_members(members);
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(members[i].status, TFOS_OK);
        for (int k = 0; k < FEW; k++) {
            const struct tfos__dataset_feature *feature = &members[i].plan.features[k];
            assert_int_equal(feature->dtype, TFOS_DTYPE_FLOAT64);
            assert_int_equal(feature->form, k == 8 ? TFOS_FORM_RAGGED : TFOS_FORM_DENSE);
        }
    }
    close_members(members);

    members = open_members(&forum, FEW); // a DataFrame's types are said, and must be the same
    members[2].own.features[7].dtype = TFOS_DTYPE_INT64;
    members[2].own.features[7].is_number = true;
    run_refused(members, "float64[3]", "int64[3]");
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(equal_plans_need_only_digests),
    cmocka_unit_test(who_has_no_rows_takes_the_plan),
    cmocka_unit_test(nobody_has_rows),
    cmocka_unit_test(rows_are_waited_for),
    cmocka_unit_test(descriptions_decide_at_once),
    cmocka_unit_test(lengths_that_differ_become_ragged),
    cmocka_unit_test(what_differs_is_named),
    cmocka_unit_test(s87_numbers_become_floats_on_all),
};

TEST_MAIN(cases)
