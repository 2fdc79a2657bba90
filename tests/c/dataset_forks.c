// SPDX-License-Identifier: Apache-2.0
// Datasets in a process that is forked from the one that opened them.
#include <sys/wait.h>

#include "dataset_fixture.h"

#define ROWS 100

static void *take_batch(void *argument)
{
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct tfos_error err;

    return tfos_dataset_next(argument, tensors, &err) == TFOS_END ? argument : NULL;
}

/// What the forked process may not do, and what it may. The status to exit with.
static int use_in_child(struct tfos_dataset *dataset, struct tfos_tensor *tensor)
{
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct tfos_dataset *found = NULL;
    struct specs specs;
    struct tfos_error err;

    if (tfos_dataset_acquire(tfos_dataset_number(dataset), &found, &err) != TFOS_OK)
        return 1;
    if (tfos_dataset_next(found, tensors, &err) != TFOS_INVALID ||
        !strstr(err.message, "was forked from"))
        return 2;
    if (tfos_dataset_get_specs(found, 0, &specs.list, &specs.count, &specs.structure, &err) !=
        TFOS_INVALID)
        return 3;
    tfos_dataset_close(found);
    for (int64_t i = 0; i < ROWS; i++)
        if (int_at(tensor, i) != i)
            return 4;
    tfos_tensor_release(tensor);
    tfos_dataset_close(dataset);
    return 0;
}

/// A thread waits in the dataset, whose lock it holds, while the process is forked.
static void s73_a_forked_process_gets_no_batch(void **state)
{
    struct node node;
    struct tfos_tensor tensors[TENSOR_LIMIT], more[TENSOR_LIMIT];
    struct tfos_dataset_options options = {.batch_size = ROWS};
    struct tfos_error err;
    pthread_t thread;

    (void)state;
    node_open(&node, 0);
    node_start(&node);
    feed_numbers(&node, 1, 0, 0, ROWS, ROWS, 0);
    struct tfos_dataset *dataset = dataset_of(&node, &options);
    assert_int_equal(specs_of(dataset).count, 1);
    assert_true(next_batch(dataset, tensors));
    int64_t waited_ms = node_stats(&node).reader_wait_ms;
    assert_int_equal(pthread_create(&thread, NULL, take_batch, dataset), 0);
    while (node_stats(&node).reader_wait_ms <= waited_ms)
        poll(NULL, 0, 1);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(use_in_child(dataset, tensors));
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(int_at(tensors, ROWS - 1), ROWS - 1);
    release_tensors(tensors, 1);
    node_set_state(&node, TFOS__FEED_ENDED, NULL);
    void *ended = NULL;
    pthread_join(thread, &ended);
    assert_ptr_equal(ended, dataset);
    assert_int_equal(tfos_dataset_next(dataset, more, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "forked from this one"));
    tfos_dataset_close(dataset);
    node_close(&node);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s73_a_forked_process_gets_no_batch),
};

TEST_MAIN(cases)
