// SPDX-License-Identifier: Apache-2.0
// What it costs nodes to train in step: eight nodes with a trainer each, real processes all, and
// the driver's rendezvous over TLS on loopback. Each trainer reads as many small batches in step
// with the others as on its own, from rings that hold them all before it begins; what an epoch
// takes longer, divided by its steps, is the cost a step. A second line is the cost of one exchange
// of values, which is that of a step when no node can look further ahead.
//
// This program is both the driver and, with --train, the trainers.
#include <pthread.h>
#include <stdint.h>
#include <tfos.h>
#include <unistd.h>

#include "figures.h"
#include "number_column.h"

#define NODES 8
#define ROUNDS 5
#define STEPS 4000
#define STEP_ROWS 32
#define APPENDED_ROWS 1024
#define EXCHANGES 200
#define CHANNEL_SIZE (2 << 20) ///< holds an epoch
#define WAIT_MS 60000
#define LIMIT_MS 1.0
#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

enum way { IN_STEP, ALONE, WAYS };

static const char *const queues[WAYS] = {"in_step", "alone"};

static void fail(const char *what)
{
    fprintf(stderr, "step_agreement: %s\n", what);
    exit(1);
}

// ---- a trainer

static enum tfos_status agree(void *context, const char *name, const char *value_json,
                              char **values_json, struct tfos_error *err)
{
    const struct tfos_wait wait = {.timeout_ms = WAIT_MS};

    return tfos_trainer_agree(context, name, value_json, &wait, values_json, err);
}

// Returns when all trainers have come here.
static void meet(struct tfos_trainer *trainer, const char *what, int number)
{
    struct tfos_error err;
    char name[64];
    char *values = NULL;

    snprintf(name, sizeof(name), "%s/%d", what, number);
    check(agree(trainer, name, "1", &values, &err), &err);
    tfos_free(values);
}

static struct tfos_dataset *open_dataset(struct tfos_trainer *trainer, enum way way)
{
    struct tfos_dataset_options options = {.batch_size = STEP_ROWS,
                                           .uneven = way == IN_STEP ? TFOS_UNEVEN_PAD
                                                                    : TFOS_UNEVEN_IGNORE,
                                           .agree = agree,
                                           .context = trainer,
                                           .name = "input"};
    struct tfos_dataset *dataset = NULL;
    struct tfos_error err;

    check(tfos_trainer_open_feed(trainer, queues[way], &options.reader, &err), &err);
    check(tfos_dataset_open(&options, &dataset, &err), &err);
    return dataset;
}

// Seconds of an epoch, without the wait for its first batch and for the word that it has ended.
static double time_epoch(struct tfos_dataset *dataset, int64_t tensor_count)
{
    struct tfos_tensor tensors[2];
    struct tfos_error err;
    double first = 0, last = 0;
    int steps = 0;

    for (;;) {
        enum tfos_status status = tfos_dataset_next(dataset, tensors, &err);
        check(status, &err);
        if (status == TFOS_END)
            break;
        last = now_s();
        if (steps++ == 0)
            first = last;
        for (int64_t i = 0; i < tensor_count; i++)
            tfos_tensor_release(&tensors[i]);
    }
    if (steps != STEPS)
        fail("an epoch has not as many steps as were fed");
    return last - first;
}

static double time_exchanges(struct tfos_trainer *trainer, int round)
{
    double begin = now_s();

    for (int i = 0; i < EXCHANGES; i++)
        meet(trainer, "exchange", round * EXCHANGES + i);
    return now_s() - begin;
}

static int train(void)
{
    const struct tfos_wait wait = {.timeout_ms = WAIT_MS};
    struct tfos_trainer *trainer = NULL;
    struct tfos_dataset *datasets[WAYS];
    int64_t tensor_counts[WAYS];
    struct tfos_error err;
    char *description = NULL;

    check(tfos_trainer_open(TFOS_TRAINER_FD, &trainer, &err), &err);
    // Feeding begins when it is known how they are read; the driver tells when all rows are in
    // their rings.
    for (enum way way = 0; way < WAYS; way++)
        datasets[way] = open_dataset(trainer, way);
    check(tfos_trainer_await_description(trainer, queues[IN_STEP], &wait, &description, &err),
          &err);
    tfos_free(description);
    for (enum way way = 0; way < WAYS; way++) {
        const struct tfos_tensor_spec *specs = NULL;
        enum tfos_row_structure structure;
        check(tfos_dataset_get_specs(datasets[way], WAIT_MS, &specs, &tensor_counts[way],
                                     &structure, &err),
              &err);
    }
    for (int round = 0; round <= ROUNDS; round++) {
        double times[WAYS];
        for (enum way way = 0; way < WAYS; way++) {
            meet(trainer, queues[way], round);
            times[way] = time_epoch(datasets[way], tensor_counts[way]);
        }
        meet(trainer, "round", round);
        // Standard output is for the results of the bench.
        fprintf(stderr, "times %d %.6f %.6f %.6f\n", round, times[IN_STEP], times[ALONE],
                time_exchanges(trainer, round));
    }
    for (enum way way = 0; way < WAYS; way++)
        tfos_dataset_close(datasets[way]);
    tfos_trainer_close(trainer);
    return 0;
}

// ---- the driver

struct driver {
    struct tfos_rendezvous *rendezvous;
    char cluster_id[64];
    struct tfos_node_launch *nodes[NODES];
};

struct feeding {
    struct tfos_feeder *feeder;
    pthread_t thread;
};

static void launch(struct driver *driver, const char *program, int id)
{
    char config[2048];
    struct tfos_error err;

    snprintf(config, sizeof(config),
             "{\"type\": \"config\", \"cluster_id\": \"%s\", \"key\": \"" KEY "\", "
             "\"address\": \"%s\", \"executor_id\": %d, \"launch\": 1, \"executor\": \"%d\", "
             "\"host\": null, \"feeding\": true, \"queues\": \"%s,%s\", "
             "\"argv\": [\"%s\", \"--train\"], \"default_fs\": \"file://\", "
             "\"working_dir\": \"/\", \"release_port\": false, \"user\": {}}",
             driver->cluster_id, tfos_rendezvous_address(driver->rendezvous), id, id,
             queues[IN_STEP], queues[ALONE], program);
    check(tfos_node_launch(TFOS_COMMAND, config, "", 0, &driver->nodes[id], &err), &err);
}

static void *append_epoch(void *argument)
{
    struct feeding *feeding = argument;
    static int64_t values[APPENDED_ROWS];
    struct number_column numbers;
    struct tfos_error err;

    number_column_init(&numbers, values, APPENDED_ROWS);
    for (int rows = 0; rows < STEPS * STEP_ROWS; rows += APPENDED_ROWS)
        check(tfos_feeder_append(feeding->feeder, &numbers.schema, &numbers.array, &err), &err);
    check(tfos_feeder_finish(feeding->feeder, &err), &err);
    return NULL;
}

// Feeds one epoch: a partition to each node, all open at once, so that none gets two.
static void feed(struct driver *driver, enum way way, int64_t number)
{
    struct feeding feedings[NODES];
    struct tfos_error err;

    for (int id = 0; id < NODES; id++) {
        struct tfos_feeder_options options = {.address =
                                                  tfos_rendezvous_address(driver->rendezvous),
                                              .cluster_id = driver->cluster_id,
                                              .key = KEY,
                                              .queue = queues[way],
                                              .feed = number,
                                              .partition = id,
                                              .channel_size = CHANNEL_SIZE};
        check(tfos_feeder_open(&options, &feedings[id].feeder, &err), &err);
    }
    for (int id = 0; id < NODES; id++)
        if (pthread_create(&feedings[id].thread, NULL, append_epoch, &feedings[id]) != 0)
            fail("cannot start a thread");
    for (int id = 0; id < NODES; id++) {
        pthread_join(feedings[id].thread, NULL);
        tfos_feeder_close(feedings[id].feeder);
    }
    check(tfos_rendezvous_end_epoch(driver->rendezvous, queues[way], number, &err), &err);
}

// The times of a round are those of its slowest trainers.
struct round {
    double times[WAYS];
    double exchanges;
    int reports;
};

// Takes the trainers' lines until all have told all rounds.
static void hear_times(struct driver *driver, struct round *rounds)
{
    for (int left = NODES * (ROUNDS + 1); left > 0;) {
        struct tfos_error err;
        char *event = NULL;
        int number = 0;
        double times[3];
        enum tfos_status status =
            tfos_rendezvous_next_event(driver->rendezvous, WAIT_MS, &event, &err);
        if (status != TFOS_OK)
            fail("a trainer says nothing");
        check(tfos_rendezvous_check(driver->rendezvous, &err), &err);
        const char *text = strstr(event, "times ");
        if (text &&
            sscanf(text, "times %d %lf %lf %lf", &number, &times[0], &times[1], &times[2]) == 4 &&
            number >= 0 && number <= ROUNDS) {
            struct round *round = &rounds[number];
            for (enum way way = 0; way < WAYS; way++)
                if (times[way] > round->times[way])
                    round->times[way] = times[way];
            if (times[2] > round->exchanges)
                round->exchanges = times[2];
            left--;
        }
        tfos_free(event);
    }
}

static void tell(const struct round *rounds)
{
    const struct figure step = {"step_agreement", "8 nodes", "ms", "1_ms_a_step", 1};
    const struct figure exchange = {"step_agreement", "8 nodes, a step ahead", "ms", "1_ms_a_step",
                                    0};
    double costs[ROUNDS], exchanges[ROUNDS];

    // The first round warms up.
    for (int i = 0; i < ROUNDS; i++) {
        const struct round *round = &rounds[i + 1];
        costs[i] = (round->times[IN_STEP] - round->times[ALONE]) * 1000 / STEPS;
        exchanges[i] = round->exchanges * 1000 / EXCHANGES;
        fprintf(stderr, "%d steps: %.3f s in step, %.3f s alone; an exchange: %.3f ms\n", STEPS,
                round->times[IN_STEP], round->times[ALONE], exchanges[i]);
    }
    print_line(&step, median(costs, ROUNDS), LIMIT_MS);
    print_line(&exchange, median(exchanges, ROUNDS), LIMIT_MS);
}

static int drive(const char *program)
{
    struct driver driver = {0};
    struct round rounds[ROUNDS + 1] = {0};
    struct tfos_error err;

    snprintf(driver.cluster_id, sizeof(driver.cluster_id), "bench-%d", (int)getpid());
    struct tfos_rendezvous_options options = {.cluster_id = driver.cluster_id,
                                              .key = KEY,
                                              .listen_host = "127.0.0.1",
                                              .host = "127.0.0.1",
                                              .node_count = NODES,
                                              .is_feeding = true,
                                              .queues = "in_step,alone"};
    check(tfos_rendezvous_open(&options, &driver.rendezvous, &err), &err);
    for (int id = 0; id < NODES; id++)
        launch(&driver, program, id);
    check(tfos_rendezvous_wait(driver.rendezvous, TFOS_PHASE_RUNNING, WAIT_MS, &err), &err);
    for (int number = 1; number <= ROUNDS + 1; number++)
        for (enum way way = 0; way < WAYS; way++)
            feed(&driver, way, number);
    tfos_rendezvous_end_feed(driver.rendezvous);
    check(tfos_rendezvous_describe_feed(driver.rendezvous, queues[IN_STEP], 1, 0, "{}", &err),
          &err);
    hear_times(&driver, rounds);
    check(tfos_rendezvous_wait(driver.rendezvous, TFOS_PHASE_ENDED, WAIT_MS, &err), &err);
    tfos_rendezvous_close(driver.rendezvous);
    for (int id = 0; id < NODES; id++)
        tfos_node_launch_close(driver.nodes[id]);
    tell(rounds);
    return 0;
}

int main(int argc, char **argv)
{
    char program[1024] = "";

    if (argc > 1 && strcmp(argv[1], "--train") == 0)
        return train();
    if (readlink("/proc/self/exe", program, sizeof(program) - 1) <= 0)
        fail("cannot find its own program");
    return drive(program);
}
