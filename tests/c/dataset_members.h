// SPDX-License-Identifier: Apache-2.0
/// Datasets in step: up to eight members in threads, over an exchange in this process, with any
/// number of rows each.
#ifndef TFOS_TESTS_DATASET_MEMBERS_H
#define TFOS_TESTS_DATASET_MEMBERS_H

#include "base/json.h"
#include "base/memory.h"
#include "dataset_fixture.h"

#define MEMBERS 8
#define EPOCHS 3
#define ROWS 400 ///< most of a member in an epoch

// ---- the exchange

struct round {
    char name[128];
    char *values[MEMBERS];
    int given, taken;
};

struct forum {
    pthread_mutex_t mutex;
    pthread_cond_t is_complete;
    int member_count;
    struct round rounds[4096];
    int round_count;
};

struct member {
    struct forum *forum;
    struct node node;
    struct tfos_dataset_options options;
    pthread_t thread;
    int64_t rows[EPOCHS];
    int64_t steps[EPOCHS], used[EPOCHS];
    int64_t used_first[EPOCHS]; ///< in the first step
    uint8_t seen[EPOCHS][ROWS];
    int number;
    enum tfos_status status; ///< of get_specs()
    struct tfos_error err;
};

static inline struct round *find_round(struct forum *forum, const char *name)
{
    for (int i = 0; i < forum->round_count; i++)
        if (strcmp(forum->rounds[i].name, name) == 0)
            return &forum->rounds[i];
    assert_true(forum->round_count < 4096);
    struct round *round = &forum->rounds[forum->round_count++];
    snprintf(round->name, sizeof(round->name), "%s", name);
    return round;
}

static inline char *join_values(const struct forum *forum, const struct round *round)
{
    json_t *array = json_array();

    for (int i = 0; i < forum->member_count; i++)
        json_array_append_new(array, json_loads(round->values[i], 0, NULL));
    char *text = tfos__json_text(array);
    json_decref(array);
    return text;
}

static inline enum tfos_status agree(void *context, const char *name, const char *value_json,
                                     char **values_json, struct tfos_error *err)
{
    struct member *member = context;
    struct forum *forum = member->forum;
    struct timespec until;

    (void)err;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&forum->mutex);
    struct round *round = find_round(forum, name);
    assert_null(round->values[member->number]); // each name once
    round->values[member->number] = tfos__strdup(value_json);
    if (++round->given == forum->member_count)
        pthread_cond_broadcast(&forum->is_complete);
    while (values_json && round->given < forum->member_count)
        if (pthread_cond_timedwait(&forum->is_complete, &forum->mutex, &until) != 0)
            fail_msg("member %d waits alone at %s", member->number, name);
    if (values_json)
        *values_json = join_values(forum, round);
    pthread_mutex_unlock(&forum->mutex);
    return TFOS_OK;
}

// ---- members

static inline int64_t row_name(const struct member *member, int epoch, int64_t row)
{
    return 1 + member->number * 1000000 + epoch * 10000 + row;
}

static inline void check_rows(struct member *member, int epoch, const struct tfos_tensor *tensors)
{
    int64_t count = tensors[0].shape[0];
    bool is_pad = member->options.uneven == TFOS_UNEVEN_PAD;

    if (member->options.uneven != TFOS_UNEVEN_JOIN)
        assert_int_equal(count, member->options.batch_size);
    assert_true(count <= member->options.batch_size);
    for (int64_t i = 0; i < count; i++) {
        int64_t value = int_at(&tensors[0], i);
        if (is_pad) {
            float weight = ((const float *)tensors[1].data)[i];
            assert_true(weight == (value != 0 ? 1.0f : 0.0f));
        }
        if (value == 0 && is_pad)
            continue;
        int64_t row = value - row_name(member, epoch, 0);
        assert_in_range(row, 0, member->rows[epoch] - 1);
        member->seen[epoch][row]++;
        member->used[epoch]++;
    }
}

static inline void *member_main(void *argument)
{
    struct member *member = argument;
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct tfos_dataset *dataset = dataset_of(&member->node, &member->options);
    const struct tfos_tensor_spec *specs = NULL;
    enum tfos_row_structure structure;
    int64_t count = 0;

    member->status =
        tfos_dataset_get_specs(dataset, WAIT_MS, &specs, &count, &structure, &member->err);
    for (int epoch = 0; epoch < EPOCHS && member->status == TFOS_OK; epoch++)
        while (next_batch(dataset, tensors)) {
            check_rows(member, epoch, tensors);
            release_tensors(tensors, count);
            if (member->steps[epoch]++ == 0)
                member->used_first[epoch] = member->used[epoch];
        }
    if (member->status == TFOS_OK)
        assert_false(next_batch(dataset, tensors));
    tfos_dataset_close(dataset);
    return NULL;
}

static inline struct forum *forum_open(int member_count)
{
    struct forum *forum = calloc(1, sizeof(*forum));

    pthread_mutex_init(&forum->mutex, NULL);
    pthread_cond_init(&forum->is_complete, NULL);
    forum->member_count = member_count;
    return forum;
}

static inline void forum_close(struct forum *forum)
{
    for (int i = 0; i < forum->round_count; i++)
        for (int k = 0; k < forum->member_count; k++)
            tfos__free(forum->rounds[i].values[k]);
    pthread_cond_destroy(&forum->is_complete);
    pthread_mutex_destroy(&forum->mutex);
    free(forum);
}

static inline struct member *members_open(struct forum *forum, enum tfos_uneven uneven)
{
    struct member *members = calloc((size_t)forum->member_count, sizeof(*members));

    for (int i = 0; i < forum->member_count; i++) {
        members[i].forum = forum;
        members[i].number = i;
        members[i].options = (struct tfos_dataset_options){.uneven = uneven,
                                                           .batch_size = 10,
                                                           .agree = agree,
                                                           .context = &members[i],
                                                           .name = "input"};
        node_open(&members[i].node, 0);
        node_start(&members[i].node);
    }
    return members;
}

static inline void members_run(struct member *members, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&members[i].thread, NULL, member_main, &members[i]), 0);
}

static inline void members_join(struct member *members, int count)
{
    for (int i = 0; i < count; i++)
        pthread_join(members[i].thread, NULL);
}

static inline void members_close(struct member *members, int count)
{
    for (int i = 0; i < count; i++)
        node_close(&members[i].node);
    free(members);
}

static inline void feed_members(struct member *members, int count, int64_t ring_rows)
{
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        for (int i = 0; i < count; i++) {
            if (members[i].rows[epoch] > 0)
                feed_numbers(&members[i].node, epoch + 1, i, row_name(&members[i], epoch, 0),
                             members[i].rows[epoch], ring_rows, 0);
            node_end_epoch(&members[i].node, epoch + 1);
        }
    for (int i = 0; i < count; i++)
        node_set_state(&members[i].node, TFOS__FEED_ENDED, NULL);
}

// The driver has said that rows will come, but not what they are.
static inline enum tfos_status announce(void *context, int64_t feed, int64_t timeout_ms,
                                        struct ArrowSchema *schema, struct tfos_error *err)
{
    (void)context;
    (void)feed;
    (void)timeout_ms;
    (void)err;
    *schema = (struct ArrowSchema){0};
    return TFOS_OK;
}

#endif
