// SPDX-License-Identifier: Apache-2.0
/// S15: real nodes whose trainers read in step get equally many rows, each once, whatever
/// partitions there are, and however their feeders end.
#include <pthread.h>
#include <spawn.h>

#include "nodes.h"
#include "number_batch.h"

#define STEP_ROWS 10
#define PARTITIONS 60

/// A partition: rows with the values from `first` on.
struct partition {
    const struct cluster *cluster;
    int64_t feed, number, first, rows;
    bool is_remote;
    int64_t broken_at; ///< an attempt that ends here, without the end; 0: none
};

static struct tfos_feeder_options options_of(const struct partition *partition, int64_t attempt)
{
    return (struct tfos_feeder_options){.address =
                                            tfos_rendezvous_address(partition->cluster->rendezvous),
                                        .cluster_id = partition->cluster->id,
                                        .key = KEY,
                                        .feed = partition->feed,
                                        .partition = partition->number,
                                        .attempt = attempt,
                                        .is_remote = partition->is_remote,
                                        .wait.timeout_ms = PATIENCE_MS};
}

/// Feeds the partition's rows up to `limit` from where the driver says.
static enum tfos_status feed_rows(const struct partition *partition, int64_t attempt, int64_t limit,
                                  struct tfos_error *err)
{
    struct tfos_feeder_options options = options_of(partition, attempt);
    struct tfos_feeder *feeder;
    struct rows batch;
    enum tfos_status status = tfos_feeder_open(&options, &feeder, err);
    if (status != TFOS_OK)
        return status;
    int64_t row = tfos_feeder_first_row(feeder), before = row;
    while (status == TFOS_OK && row < limit) {
        int64_t count = limit - row < 37 ? limit - row : 37;
        make_rows(&batch, partition->first + row, count);
        status = tfos_feeder_append(feeder, &batch.schema, &batch.array, err);
        row += count;
    }
    if (status == TFOS_OK && tfos_feeder_row_count(feeder) != row - before)
        fail_msg("%d rows appended", (int)tfos_feeder_row_count(feeder));
    if (status == TFOS_OK && limit == partition->rows)
        status = tfos_feeder_finish(feeder, err);
    tfos_feeder_close(feeder);
    return status;
}

static void *feed_partition(void *argument)
{
    const struct partition *partition = argument;
    struct tfos_error err;
    if (partition->broken_at > 0)
        assert_done(feed_rows(partition, 1, partition->broken_at, &err));
    assert_done(feed_rows(partition, 2, partition->rows, &err));
    return NULL;
}

/// Feeds all partitions, `task_count` at a time, as Spark's tasks would.
static void feed_all(struct partition *partitions, int count, int task_count)
{
    for (int first = 0; first < count; first += task_count) {
        pthread_t threads[PARTITIONS];
        int last = first + task_count < count ? first + task_count : count;
        for (int i = first; i < last; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, feed_partition, &partitions[i]), 0);
        for (int i = first; i < last; i++)
            pthread_join(threads[i], NULL);
    }
}

/// Waits for what each trainer says of the epoch, and checks it.
static void check_epoch(struct cluster *cluster, int nodes, int epoch, int64_t rows)
{
    char start[32];
    int64_t all_rows = 0, sum = 0;
    int seen = 0;
    snprintf(start, sizeof(start), "epoch %d: ", epoch);
    await_event(cluster, "line", start);
    for (size_t i = 0; seen < nodes; i++) {
        while (i == json_array_size(cluster->events))
            await_next_event(cluster);
        const char *text =
            json_string_value(json_object_get(json_array_get(cluster->events, i), "text"));
        long long steps, node_rows, node_sum;
        if (!text || strncmp(text, start, strlen(start)) != 0)
            continue;
        assert_int_equal(sscanf(text + strlen(start), "%lld steps, %lld rows, sum %lld", &steps,
                                &node_rows, &node_sum),
                         3);
        int64_t step_rows = (int64_t)nodes * STEP_ROWS;
        assert_int_equal(steps, (rows + step_rows - 1) / step_rows);
        all_rows += node_rows;
        sum += node_sum;
        seen++;
    }
    assert_int_equal(all_rows, rows);
    assert_int_equal(sum, rows * (rows - 1) / 2);
}

static void open_cluster(struct cluster *cluster, int nodes)
{
    cluster_open(cluster, nodes, true);
    for (int id = 0; id < nodes; id++)
        launch_trainer(cluster, id, "in_step", true);
    await_running(cluster, nodes);
}

static void close_cluster(struct cluster *cluster)
{
    struct tfos_error err;
    tfos_rendezvous_end_feed(cluster->rendezvous);
    assert_done(tfos_rendezvous_wait(cluster->rendezvous, TFOS_PHASE_WORKED, PATIENCE_MS, &err));
    cluster_close(cluster);
}

/// Feeds partitions of these sizes, by turns, until there are `count`.
static int64_t make_partitions(const struct cluster *cluster, struct partition *partitions,
                               int feed, int count, const int *sizes, int size_count)
{
    int64_t rows = 0;
    for (int i = 0; i < count; i++) {
        partitions[i] = (struct partition){.cluster = cluster,
                                           .feed = feed,
                                           .number = i,
                                           .first = rows,
                                           .rows = sizes[i % size_count]};
        rows += partitions[i].rows;
    }
    return rows;
}

static void feed_uneven(int nodes, bool is_remote)
{
    static const int few[] = {700, 30, 200}, many[] = {11, 60, 1, 39, 0, 10};
    struct partition partitions[PARTITIONS];
    struct cluster cluster;
    struct tfos_error err;
    open_cluster(&cluster, nodes);
    for (int feed = 1; feed <= 2; feed++) {
        bool is_few = feed == 1;
        int count = is_few ? 3 : PARTITIONS;
        int64_t rows =
            make_partitions(&cluster, partitions, feed, count, is_few ? few : many, is_few ? 3 : 6);
        for (int i = 0; i < count; i++)
            partitions[i].is_remote = is_remote && i % 2 == 0;
        feed_all(partitions, count, is_few ? 2 : 4);
        assert_done(tfos_rendezvous_end_epoch(cluster.rendezvous, NULL, feed, &err));
        check_epoch(&cluster, nodes, feed, rows);
    }
    close_cluster(&cluster);
}

static void s15_uneven_partitions_on_two_nodes(void **state)
{
    (void)state;
    feed_uneven(2, false);
}

static void s15_uneven_partitions_on_three_nodes_over_tcp(void **state)
{
    (void)state;
    feed_uneven(3, true);
}

static void s21_attempts_that_break_off_are_made_up_for(void **state)
{
    (void)state;
    static const int sizes[] = {250, 90, 130};
    struct partition partitions[PARTITIONS];
    struct cluster cluster;
    struct tfos_error err;
    open_cluster(&cluster, 3);
    int64_t rows = make_partitions(&cluster, partitions, 1, 12, sizes, 3);
    for (int i = 0; i < 12; i++) {
        partitions[i].broken_at = i % 2 ? 0 : partitions[i].rows / 2 + i;
        partitions[i].is_remote = i % 4 == 0;
    }
    feed_all(partitions, 12, 3);
    assert_done(tfos_rendezvous_end_epoch(cluster.rendezvous, NULL, 1, &err));
    check_epoch(&cluster, 3, 1, rows);
    close_cluster(&cluster);
}

/// A process that feeds without an end, and is killed wherever it is.
static void s21_a_feeder_is_killed(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct cluster cluster;
        struct tfos_error err;
        open_cluster(&cluster, 2);
        struct partition partition = {.cluster = &cluster, .feed = 1};
        const char *const argv[] = {
            TFOS_TRAINER, "feed", tfos_rendezvous_address(cluster.rendezvous),
            cluster.id,   KEY,    round == 1 ? "remote" : "local",
            NULL};
        pid_t pid;
        assert_int_equal(
            posix_spawn(&pid, TFOS_TRAINER, NULL, NULL, (char *const *)(uintptr_t)argv, environ),
            0);
        // Both nodes have rows.
        int64_t deadline = tfos__deadline(PATIENCE_MS);
        while (node_number(&cluster, 0, "rows_read") < 100 ||
               node_number(&cluster, 1, "rows_read") < 100) {
            assert_true(tfos__now_ms() < deadline);
            pause_ms(5);
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        struct tfos_feeder_options options = options_of(&partition, 2);
        struct tfos_feeder *feeder;
        assert_done(tfos_feeder_open(&options, &feeder, &err));
        int64_t first_row = tfos_feeder_first_row(feeder);
        tfos_feeder_close(feeder);
        partition.rows = first_row + 75;
        assert_done(feed_rows(&partition, 3, partition.rows, &err));
        assert_done(tfos_rendezvous_end_epoch(cluster.rendezvous, NULL, 1, &err));
        check_epoch(&cluster, 2, 1, partition.rows);
        close_cluster(&cluster);
    }
}

/// A trainer that continues at its own pace is fed by its own tasks alone.
static void trainers_not_in_step_are_fed_as_they_are(void **state)
{
    (void)state;
    struct partition partitions[2];
    static const int sizes[] = {100};
    struct cluster cluster;
    struct tfos_error err;
    cluster_open(&cluster, 2, true);
    for (int id = 0; id < 2; id++)
        launch_trainer(&cluster, id, "rows", true);
    await_running(&cluster, 2);
    make_partitions(&cluster, partitions, 1, 2, sizes, 1);
    for (int i = 0; i < 2; i++)
        feed_partition(&partitions[i]);
    assert_done(tfos_rendezvous_wait(cluster.rendezvous, TFOS_PHASE_DRAINED, PATIENCE_MS, &err));
    for (int id = 0; id < 2; id++)
        assert_int_equal(node_number(&cluster, id, "rows_read"), 100);
    close_cluster(&cluster);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s15_uneven_partitions_on_two_nodes),
    cmocka_unit_test(s15_uneven_partitions_on_three_nodes_over_tcp),
    cmocka_unit_test(s21_attempts_that_break_off_are_made_up_for),
    cmocka_unit_test(s21_a_feeder_is_killed),
    cmocka_unit_test(trainers_not_in_step_are_fed_as_they_are),
};

TEST_MAIN(cases)
