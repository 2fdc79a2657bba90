// SPDX-License-Identifier: Apache-2.0
// Datasets of files: every row once, in an order that threads do not change, and passes that are
// given up.
#include <sys/syscall.h>
#include <sys/wait.h>

#include "numbered_files.h"

static void every_row_once_in_order(void **state)
{
    (void)state;
    struct tfos_error err;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    for (int64_t reads = 0; reads < 7; reads++) {
        struct tfos_record_dataset_options options = options_for(&files, reads);
        int64_t values[LIMIT], again[LIMIT], seen[LIMIT] = {0};
        struct tfos_dataset *dataset = NULL, *repeated = NULL;
        struct tfos_record_counts counts;
        assert_done(tfos_record_dataset_open(&options, &dataset, &err));
        assert_int_equal(read_rows(dataset, values), files.row_count);
        assert_done(tfos_record_dataset_repeat(dataset, &options.pass, &repeated, &err));
        tfos_dataset_close(dataset);
        assert_int_equal(read_rows(repeated, again), files.row_count);
        assert_memory_equal(values, again, sizeof(values[0]) * (size_t)files.row_count);
        for (int64_t i = 0; i < files.row_count; i++)
            seen[values[i]]++;
        for (int64_t i = 0; i < files.row_count; i++)
            assert_int_equal(seen[i], 1);
        for (int64_t i = 0; i < files.row_count && reads < 2; i++)
            assert_int_equal(values[i], i);
        assert_done(tfos_record_dataset_get_counts(repeated, &counts, &err));
        assert_int_equal(counts.records, 2 * files.row_count);
        tfos_dataset_close(repeated);
    }
    remove_files(&files);
}

static void a_pass_is_given_up(void **state)
{
    (void)state;
    struct tfos_error err;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    for (int64_t reads = 0; reads < 5; reads++) {
        struct tfos_record_dataset_options options = options_for(&files, reads);
        struct tfos_dataset *dataset = NULL;
        struct tfos_tensor tensor;
        assert_done(tfos_record_dataset_open(&options, &dataset, &err));
        assert_done(tfos_dataset_next(dataset, &tensor, &err));
        tfos_dataset_close(dataset);
        assert_int_equal(((const int64_t *)tensor.data)[0], 0); // it outlives the dataset
        tfos_tensor_release(&tensor);
    }
    remove_files(&files);
}

static void no_files_have_no_rows(void **state)
{
    (void)state;
    struct tfos_error err;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    struct tfos_record_dataset_options options = options_for(&files, 2);
    struct tfos_dataset *dataset = NULL;
    struct tfos_tensor tensor;
    options.path_count = 0;
    assert_done(tfos_record_dataset_open(&options, &dataset, &err));
    assert_int_equal(tfos_dataset_next(dataset, &tensor, &err), TFOS_END);
    tfos_dataset_close(dataset);
    remove_files(&files);
}

/// Shards get each row once, and numbers of rows that differ by no more than the files allow.
static void s92_each_row_is_in_one_shard(void **state)
{
    (void)state;
    struct tfos_error err;
    for (int round = 0; round < 12; round++) {
        struct files files = make_files(round % 2 ? TFOS_COMPRESSION_GZIP : TFOS_COMPRESSION_NONE);
        for (int64_t count = 1; count < 8; count++) {
            int64_t values[LIMIT], seen[LIMIT] = {0}, total = 0;
            for (int64_t index = 0; index < count; index++) {
                struct tfos_record_dataset_options options = options_for(&files, round / 4);
                struct tfos_dataset *dataset = NULL;
                options.rows.shuffle_rows = round / 2 % 2 ? 5 : 0;
                options.pass.seed = (uint64_t)index; // shards need not agree on it
                options.pass.shuffle_files = round / 2 % 2;
                options.pass.shard_index = index;
                options.pass.shard_count = count;
                assert_done(tfos_record_dataset_open(&options, &dataset, &err));
                int64_t rows = read_rows(dataset, values);
                for (int64_t i = 0; i < rows; i++)
                    seen[values[i]]++;
                total += rows;
                // With more shards than files, each has its part of each file.
                if (count > FILE_COUNT)
                    assert_in_range(rows, files.row_count / count - 1,
                                    files.row_count / count + FILE_COUNT);
                tfos_dataset_close(dataset);
            }
            assert_int_equal(total, files.row_count);
            for (int64_t i = 0; i < total; i++)
                assert_int_equal(seen[i], 1);
        }
        remove_files(&files);
    }
}

static void what_fails_names_the_file(void **state)
{
    (void)state;
    struct tfos_error err;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    for (int64_t reads = 0; reads < 6; reads++) {
        struct tfos_record_dataset_options options = options_for(&files, reads);
        struct tfos_dataset *dataset = NULL;
        struct tfos_tensor tensor;
        enum tfos_status status;
        options.path_count = FILE_COUNT + 1;
        assert_done(tfos_record_dataset_open(&options, &dataset, &err));
        while ((status = tfos_dataset_next(dataset, &tensor, &err)) == TFOS_OK)
            tfos_tensor_release(&tensor);
        assert_int_equal(status, TFOS_NOT_FOUND);
        assert_non_null(strstr(err.message, files.paths[FILE_COUNT]));
        assert_int_equal(tfos_dataset_next(dataset, &tensor, &err), TFOS_NOT_FOUND);
        tfos_dataset_close(dataset);
    }
    assert_int_equal(truncate(files.paths[3], 100), 0);
    struct tfos_record_dataset_options options = options_for(&files, 2);
    struct tfos_dataset *dataset = NULL;
    struct tfos_tensor tensor;
    enum tfos_status status;
    assert_done(tfos_record_dataset_open(&options, &dataset, &err));
    while ((status = tfos_dataset_next(dataset, &tensor, &err)) == TFOS_OK)
        tfos_tensor_release(&tensor);
    assert_int_equal(status, TFOS_CORRUPT);
    assert_non_null(strstr(err.message, files.paths[3]));
    tfos_dataset_close(dataset);
    remove_files(&files);
}

static void options_that_cannot_be(void **state)
{
    (void)state;
    struct tfos_error err;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    struct tfos_record_dataset_options options = options_for(&files, -1);
    struct tfos_dataset *dataset = NULL;
    assert_int_equal(tfos_record_dataset_open(&options, &dataset, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "parallel_reads"));
    options.pass = (struct tfos_record_pass){.shard_index = 2, .shard_count = 2};
    assert_int_equal(tfos_record_dataset_open(&options, &dataset, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "there is no shard 2 of 2"));
    options.pass = (struct tfos_record_pass){0};
    options.rows.batch_size = 0;
    assert_int_equal(tfos_record_dataset_open(&options, &dataset, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "batch_size"));
    options.rows = (struct tfos_dataset_options){
        .batch_size = 4,
        .columns = &(struct tfos_dataset_column){.name = "y"},
        .column_count = 1,
    };
    assert_done(tfos_record_dataset_open(&options, &dataset, &err));
    const struct tfos_tensor_spec *specs;
    int64_t count;
    enum tfos_row_structure structure;
    assert_int_equal(tfos_dataset_get_specs(dataset, 0, &specs, &count, &structure, &err),
                     TFOS_INVALID);
    assert_non_null(strstr(err.message, "there is no column y"));
    tfos_dataset_close(dataset);
    remove_files(&files);
}

/// Its position in the files is the other process's, and it has none of the threads.
static void s73_files_are_not_read_on_in_a_forked_process(void **state)
{
    (void)state;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    for (int64_t parallel_reads = 1; parallel_reads <= 2; parallel_reads++) {
        int64_t values[LIMIT];
        struct tfos_record_dataset_options options = options_for(&files, parallel_reads);
        struct tfos_dataset *dataset = NULL;
        struct tfos_tensor tensor;
        struct tfos_error err;
        assert_done(tfos_record_dataset_open(&options, &dataset, &err));
        assert_done(tfos_dataset_next(dataset, &tensor, &err));
        int64_t count = tensor.shape[0];
        tfos_tensor_release(&tensor);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            bool is_refused = tfos_dataset_next(dataset, &tensor, &err) == TFOS_INVALID;
            tfos_dataset_close(dataset);
            options.pass.parallel_reads = 1; // TSan lets it start no thread
            assert_done(tfos_record_dataset_open(&options, &dataset, &err));
            bool is_right = is_refused && read_rows(dataset, values) == files.row_count;
            // Past TSan, which takes the threads that this process has not for leaked.
            syscall(SYS_exit_group, is_right ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(count + read_rows(dataset, values), files.row_count);
        tfos_dataset_close(dataset);
    }
    remove_files(&files);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(every_row_once_in_order),
    cmocka_unit_test(a_pass_is_given_up),
    cmocka_unit_test(no_files_have_no_rows),
    cmocka_unit_test(s92_each_row_is_in_one_shard),
    cmocka_unit_test(what_fails_names_the_file),
    cmocka_unit_test(options_that_cannot_be),
    cmocka_unit_test(s73_files_are_not_read_on_in_a_forked_process),
};

TEST_MAIN(cases)
