// SPDX-License-Identifier: Apache-2.0
// Datasets of files: every row once, in an order that threads do not change, and passes that are
// given up.
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tfos/record_dataset.h>
#include <unistd.h>

#define FILE_COUNT 4
#define LIMIT 64 // rows

static const int64_t COUNTS[FILE_COUNT] = {10, 0, 3, 9};

struct files {
    char folder[64];
    char paths[FILE_COUNT + 1][96];
    const char *names[FILE_COUNT + 1];
    int64_t row_count;
};

static struct ArrowSchema number = {.format = "l", .name = "x", .flags = ARROW_FLAG_NULLABLE};
static struct ArrowSchema *columns[] = {&number};
static const struct ArrowSchema rows_schema = {
    .format = "+s", .name = "", .n_children = 1, .children = columns};

static void write_file(const char *path, int64_t first, int64_t count)
{
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    struct tfos_example_writer *writer = NULL;
    int64_t values[LIMIT];
    const void *buffers[] = {NULL, values}, *no_buffers[] = {NULL};
    struct ArrowArray column = {.length = count, .n_buffers = 2, .buffers = buffers};
    struct ArrowArray *children[] = {&column};
    struct ArrowArray batch = {.length = count,
                               .n_buffers = 1,
                               .buffers = no_buffers,
                               .n_children = 1,
                               .children = children};
    for (int64_t i = 0; i < count; i++)
        values[i] = first + i;
    assert_done(tfos_stream_open_writer(path, &stream, &err));
    assert_done(tfos_example_writer_open(stream, &rows_schema, NULL, &writer, &err));
    if (count > 0)
        assert_done(tfos_example_writer_append(writer, &batch, &err));
    assert_done(tfos_example_writer_finish(writer, &err));
    tfos_example_writer_close(writer);
    tfos_stream_close(stream);
}

static struct files make_files(void)
{
    struct files files = {.folder = "/tmp/tfos-files-XXXXXX"};
    assert_non_null(mkdtemp(files.folder));
    for (int i = 0; i < FILE_COUNT; i++) {
        snprintf(files.paths[i], sizeof files.paths[i], "%s/%d", files.folder, i);
        write_file(files.paths[i], files.row_count, COUNTS[i]);
        files.row_count += COUNTS[i];
    }
    snprintf(files.paths[FILE_COUNT], sizeof files.paths[0], "%s/none", files.folder);
    return files;
}

static struct tfos_record_dataset_options options_for(struct files *files, int64_t parallel_reads)
{
    for (int i = 0; i <= FILE_COUNT; i++)
        files->names[i] = files->paths[i];
    return (struct tfos_record_dataset_options){.schema = &rows_schema,
                                                .rows = {.batch_size = 4},
                                                .pass = {.paths = files->names,
                                                         .path_count = FILE_COUNT,
                                                         .parallel_reads = parallel_reads}};
}

static void remove_files(const struct files *files)
{
    for (int i = 0; i < FILE_COUNT; i++)
        assert_int_equal(unlink(files->paths[i]), 0);
    assert_int_equal(rmdir(files->folder), 0);
}

/// Reads to the end; how many rows there were.
static int64_t read_rows(struct tfos_dataset *dataset, int64_t *values)
{
    struct tfos_error err;
    struct tfos_tensor tensor;
    enum tfos_status status;
    int64_t count = 0;
    while ((status = tfos_dataset_next(dataset, &tensor, &err)) == TFOS_OK) {
        assert_int_equal(tensor.dtype, TFOS_DTYPE_INT64);
        assert_true(count + tensor.shape[0] <= LIMIT);
        memcpy(values + count, tensor.data, (size_t)tensor.size);
        count += tensor.shape[0];
        tfos_tensor_release(&tensor);
    }
    assert_int_equal(status, TFOS_END);
    assert_int_equal(tfos_dataset_next(dataset, &tensor, &err), TFOS_END); // for ever
    return count;
}

static void every_row_once_in_order(void **state)
{
    (void)state;
    struct tfos_error err;
    struct files files = make_files();
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
        assert_memory_equal(values, again, sizeof values[0] * (size_t)files.row_count);
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
    struct files files = make_files();
    for (int64_t reads = 0; reads < 5; reads++) {
        struct tfos_record_dataset_options options = options_for(&files, reads);
        struct tfos_dataset *dataset = NULL, *none = NULL;
        struct tfos_tensor tensor;
        const struct tfos_record_pass nothing = {0};
        assert_done(tfos_record_dataset_open(&options, &dataset, &err));
        assert_done(tfos_dataset_next(dataset, &tensor, &err));
        assert_done(tfos_record_dataset_repeat(dataset, &nothing, &none, &err));
        tfos_dataset_close(dataset);
        assert_int_equal(((const int64_t *)tensor.data)[0], 0); // it outlives the dataset
        tfos_tensor_release(&tensor);
        assert_int_equal(tfos_dataset_next(none, &tensor, &err), TFOS_END);
        tfos_dataset_close(none);
    }
    remove_files(&files);
}

static void what_fails_names_the_file(void **state)
{
    (void)state;
    struct tfos_error err;
    struct files files = make_files();
    for (int64_t reads = 0; reads < 6; reads++) {
        struct tfos_record_dataset_options options = options_for(&files, reads);
        struct tfos_dataset *dataset = NULL;
        struct tfos_tensor tensor;
        enum tfos_status status;
        options.pass.path_count = FILE_COUNT + 1;
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
    struct files files = make_files();
    struct tfos_record_dataset_options options = options_for(&files, -1);
    struct tfos_dataset *dataset = NULL;
    assert_int_equal(tfos_record_dataset_open(&options, &dataset, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "parallel_reads"));
    options.pass.parallel_reads = 0;
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
    struct files files = make_files();
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
    cmocka_unit_test(what_fails_names_the_file),
    cmocka_unit_test(options_that_cannot_be),
    cmocka_unit_test(s73_files_are_not_read_on_in_a_forked_process),
};

TEST_MAIN(cases)
