// SPDX-License-Identifier: Apache-2.0
/// Files of numbered rows, and datasets of them.
#ifndef TFOS_TEST_NUMBERED_FILES_H
#define TFOS_TEST_NUMBERED_FILES_H

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tfos/record_dataset.h>
#include <unistd.h>

#include "harness.h"

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

static inline void write_file(const char *path, int64_t first, int64_t count,
                              enum tfos_compression compression)
{
    const struct tfos_example_writer_options options = {.record = {.compression = compression}};
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
    assert_done(tfos_example_writer_open(stream, &rows_schema, &options, &writer, &err));
    if (count > 0)
        assert_done(tfos_example_writer_append(writer, &batch, &err));
    assert_done(tfos_example_writer_finish(writer, &err));
    tfos_example_writer_close(writer);
    tfos_stream_close(stream);
}

static inline struct files make_files(enum tfos_compression compression)
{
    struct files files = {.folder = "/tmp/tfos-files-XXXXXX"};
    assert_non_null(mkdtemp(files.folder));
    for (int i = 0; i < FILE_COUNT; i++) {
        snprintf(files.paths[i], sizeof(files.paths[i]), "%s/%d", files.folder, i);
        write_file(files.paths[i], files.row_count, COUNTS[i], compression);
        files.row_count += COUNTS[i];
    }
    snprintf(files.paths[FILE_COUNT], sizeof(files.paths[0]), "%s/none", files.folder);
    return files;
}

static inline struct tfos_record_dataset_options options_for(struct files *files,
                                                             int64_t parallel_reads)
{
    for (int i = 0; i <= FILE_COUNT; i++)
        files->names[i] = files->paths[i];
    return (struct tfos_record_dataset_options){.schema = &rows_schema,
                                                .rows = {.batch_size = 4},
                                                .paths = files->names,
                                                .path_count = FILE_COUNT,
                                                .pass = {.parallel_reads = parallel_reads}};
}

static inline void remove_files(const struct files *files)
{
    for (int i = 0; i < FILE_COUNT; i++)
        assert_int_equal(unlink(files->paths[i]), 0);
    assert_int_equal(rmdir(files->folder), 0);
}

/// Reads to the end; how many rows there were.
static inline int64_t read_rows(struct tfos_dataset *dataset, int64_t *values)
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

#endif
