// SPDX-License-Identifier: Apache-2.0
// Nodes that read shards of files in step: every row once in each pass, equal steps, and a node
// that leaves a pass keeps no other waiting.
#include <stdatomic.h>

#include "dataset_members.h"
#include "numbered_files.h"

#define PASSES 2
#define LARGE_ROWS 60000
#define TEXT_SIZE 900 // bytes of a row in a large file

struct reader {
    struct member member; ///< of the forum
    struct tfos_record_dataset_options options;
    pthread_t thread;
    int64_t most; ///< steps of a pass; then it is left
    int64_t steps[PASSES], rows[PASSES];
    atomic_int *seen; ///< shared; by pass and row
    int64_t row_count;
    enum tfos_status status;
    struct tfos_error err;
    int released;
};

static enum tfos_status agree_in_forum(void *context, const char *name, const char *value_json,
                                       char **values_json, struct tfos_error *err)
{
    struct reader *reader = context;
    return agree(&reader->member, name, value_json, values_json, err);
}

static void count_release(void *context)
{
    ((struct reader *)context)->released++;
}

static void see_rows(struct reader *reader, int pass, const struct tfos_tensor *tensors)
{
    bool is_pad = reader->options.rows.uneven == TFOS_UNEVEN_PAD;
    for (int64_t i = 0; i < tensors[0].shape[0]; i++) {
        if (is_pad && ((const float *)tensors[1].data)[i] == 0.0f)
            continue;
        int64_t row = ((const int64_t *)tensors[0].data)[i];
        assert_in_range(row, 0, reader->row_count - 1);
        atomic_fetch_add(&reader->seen[pass * reader->row_count + row], 1);
        reader->rows[pass]++;
    }
}

static void read_pass(struct reader *reader, struct tfos_dataset *dataset, int pass)
{
    struct tfos_tensor tensors[2];
    int count = reader->options.rows.uneven == TFOS_UNEVEN_PAD ? 2 : 1;
    while (reader->steps[pass] < reader->most &&
           (reader->status = tfos_dataset_next(dataset, tensors, &reader->err)) == TFOS_OK) {
        reader->steps[pass]++;
        see_rows(reader, pass, tensors);
        for (int i = 0; i < count; i++)
            tfos_tensor_release(&tensors[i]);
    }
    if (reader->status != TFOS_OK) // for ever, at once
        assert_int_equal(tfos_dataset_next(dataset, tensors, &reader->err), reader->status);
}

static void *reader_main(void *argument)
{
    struct reader *reader = argument;
    struct tfos_dataset *dataset = NULL, *pass = NULL;
    const struct tfos_tensor_spec *specs;
    int64_t count;
    enum tfos_row_structure structure;
    struct tfos_error err;
    reader->status = tfos_record_dataset_open(&reader->options, &dataset, &reader->err);
    if (reader->status < 0)
        return NULL;
    assert_done(tfos_dataset_get_specs(dataset, -1, &specs, &count, &structure, &err));
    for (int i = 0; i < PASSES; i++) {
        assert_done(tfos_record_dataset_repeat(dataset, &reader->options.pass, &pass, &err));
        read_pass(reader, pass, i);
        tfos_dataset_close(pass);
    }
    tfos_dataset_close(dataset);
    return NULL;
}

static struct reader *readers_open(struct forum *forum, struct files *files,
                                   enum tfos_uneven uneven)
{
    struct reader *readers = calloc((size_t)forum->member_count, sizeof(*readers));
    atomic_int *seen = calloc((size_t)(PASSES * files->row_count), sizeof(*seen));
    for (int i = 0; i < forum->member_count; i++) {
        struct reader *reader = &readers[i];
        reader->member = (struct member){.forum = forum, .number = i};
        reader->options = options_for(files, i % 3);
        reader->options.rows.uneven = uneven;
        reader->options.rows.agree = agree_in_forum;
        reader->options.rows.release = count_release;
        reader->options.rows.context = reader;
        reader->options.rows.name = "files/1";
        reader->options.pass.shard_index = i;
        reader->options.pass.shard_count = forum->member_count;
        reader->most = INT64_MAX;
        reader->seen = seen;
        reader->row_count = files->row_count;
    }
    return readers;
}

static void readers_run(struct reader *readers, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]), 0);
    for (int i = 0; i < count; i++)
        pthread_join(readers[i].thread, NULL);
}

static void readers_close(struct reader *readers)
{
    free(readers[0].seen);
    free(readers);
}

static void check_steps(const struct reader *readers, int count)
{
    int64_t batch_size = readers[0].options.rows.batch_size, total = 0;
    bool is_stop = readers[0].options.rows.uneven == TFOS_UNEVEN_STOP;
    for (int pass = 0; pass < PASSES; pass++) {
        for (int i = 0; i < count; i++) {
            assert_int_equal(readers[i].status, TFOS_END);
            assert_int_equal(readers[i].released, 1);
            assert_int_equal(readers[i].steps[pass], readers[0].steps[0]);
            assert_true(!is_stop || readers[i].rows[pass] == readers[i].steps[pass] * batch_size);
            total += readers[i].rows[pass];
        }
        for (int64_t row = 0; row < readers[0].row_count; row++)
            assert_true(readers[0].seen[pass * readers[0].row_count + row] == 1 ||
                        (is_stop && readers[0].seen[pass * readers[0].row_count + row] == 0));
    }
    assert_true(is_stop || total == PASSES * readers[0].row_count);
}

static void each_row_once_in_equal_steps(void **state)
{
    (void)state;
    for (int round = 0; round < 24; round++) {
        struct files files = make_files(round % 2 ? TFOS_COMPRESSION_GZIP : TFOS_COMPRESSION_NONE);
        for (int count = 1; count <= MEMBERS; count++) {
            struct forum *forum = forum_open(count);
            struct reader *readers = readers_open(forum, &files, (enum tfos_uneven)(1 + round % 3));
            for (int i = 0; i < count; i++) {
                readers[i].options.rows.batch_size = 1 + round % 5;
                readers[i].options.rows.shuffle_rows = round / 4 % 2 ? 6 : 0;
                readers[i].options.pass.shuffle_files = round / 8 % 2;
                readers[i].options.pass.seed = (uint64_t)i;
            }
            readers_run(readers, count);
            check_steps(readers, count);
            readers_close(readers);
            forum_close(forum);
        }
        remove_files(&files);
    }
}

// No exchange follows the last step, so none can be waited for by one node alone.
static void whole_passes_exchange_no_more_than_steps(void **state)
{
    (void)state;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    struct forum *forum = forum_open(2);
    struct reader *readers = readers_open(forum, &files, TFOS_UNEVEN_PAD);
    for (int i = 0; i < 2; i++) {
        readers[i].options.rows.batch_size = 1;
        readers[i].options.pass.shard_count = 1; // both read all: 22 steps
        readers[i].options.pass.shard_index = 0;
        readers[i].most = 22; // as Keras does from the second epoch on
    }
    readers_run(readers, 2);
    assert_int_equal(readers[1].steps[1], 22);
    assert_int_equal(readers[1].status, TFOS_OK);
    for (int i = 0; i < forum->round_count; i++)
        assert_int_equal(forum->rounds[i].given, 2);
    assert_int_equal(forum->round_count, 1 + PASSES * 2); // the files; of each pass 15 and 7 steps
    readers_close(readers);
    forum_close(forum);
    remove_files(&files);
}

static void who_leaves_a_pass_keeps_nobody_waiting(void **state)
{
    (void)state;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    struct forum *forum = forum_open(2);
    struct reader *readers = readers_open(forum, &files, TFOS_UNEVEN_JOIN);
    for (int i = 0; i < 2; i++) {
        readers[i].options.rows.batch_size = 1;
        readers[i].options.pass.shard_count = 1;
        readers[i].options.pass.shard_index = 0;
    }
    readers[0].most = 10;
    readers_run(readers, 2);
    assert_int_equal(readers[0].steps[1], 10);
    assert_int_equal(readers[1].status, TFOS_INVALID);
    assert_int_equal(readers[1].steps[0], 15);
    assert_int_equal(readers[1].steps[1], 15);
    assert_non_null(strstr(readers[1].err.message, "another node takes no more batches"));
    for (int i = 0; i < forum->round_count; i++) // nobody waits, and nothing is left in the driver
        assert_int_equal(forum->rounds[i].given, 2);
    readers_close(readers);
    forum_close(forum);
    remove_files(&files);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    struct forum *forum = forum_open(3);
    struct reader *readers = readers_open(forum, &files, TFOS_UNEVEN_PAD);
    readers[2].options.path_count--;
    readers_run(readers, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(readers[i].status, TFOS_INVALID);
        assert_int_equal(readers[i].released, 0);
        assert_non_null(strstr(readers[i].err.message, "do not read the same files"));
    }
    readers_close(readers);
    forum_close(forum);
    remove_files(&files);
}

// ---- ranges

static void write_large_file(const char *path, enum tfos_compression compression)
{
    static struct ArrowSchema text = {.format = "u", .name = "text"};
    static struct ArrowSchema *two[] = {&number, &text};
    static const struct ArrowSchema schema = {
        .format = "+s", .name = "", .n_children = 2, .children = two};
    const struct tfos_example_writer_options options = {
        .record = {.compression = compression, .level = 1}};
    enum { ROWS_A_TIME = 1000 };
    int64_t values[ROWS_A_TIME];
    int32_t offsets[ROWS_A_TIME + 1];
    char *bytes = calloc(ROWS_A_TIME, TEXT_SIZE);
    const void *number_buffers[] = {NULL, values}, *text_buffers[] = {NULL, offsets, bytes};
    const void *no_buffers[] = {NULL};
    struct ArrowArray column = {.length = ROWS_A_TIME, .n_buffers = 2, .buffers = number_buffers};
    struct ArrowArray texts = {.length = ROWS_A_TIME, .n_buffers = 3, .buffers = text_buffers};
    struct ArrowArray *children[] = {&column, &texts};
    struct ArrowArray batch = {.length = ROWS_A_TIME,
                               .n_buffers = 1,
                               .buffers = no_buffers,
                               .n_children = 2,
                               .children = children};
    struct tfos_stream *stream = NULL;
    struct tfos_example_writer *writer = NULL;
    struct tfos_error err;
    memset(bytes, 'x', (size_t)ROWS_A_TIME * TEXT_SIZE);
    for (int i = 0; i <= ROWS_A_TIME; i++)
        offsets[i] = i * TEXT_SIZE;
    assert_done(tfos_stream_open_writer(path, &stream, &err));
    assert_done(tfos_example_writer_open(stream, &schema, &options, &writer, &err));
    for (int64_t first = 0; first < LARGE_ROWS; first += ROWS_A_TIME) {
        for (int i = 0; i < ROWS_A_TIME; i++)
            values[i] = first + i;
        assert_done(tfos_example_writer_append(writer, &batch, &err));
    }
    assert_done(tfos_example_writer_finish(writer, &err));
    tfos_example_writer_close(writer);
    tfos_stream_close(stream);
    free(bytes);
}

// Of 55 MB each of three shards reads a third: no more than that many bytes.
static void a_large_file_is_read_by_ranges(void **state)
{
    (void)state;
    for (int compressed = 0; compressed < 2; compressed++) {
        struct files files = make_files(TFOS_COMPRESSION_NONE);
        struct forum *forum = forum_open(3);
        write_large_file(files.paths[0],
                         compressed ? TFOS_COMPRESSION_GZIP : TFOS_COMPRESSION_NONE);
        files.row_count = LARGE_ROWS;
        struct reader *readers = readers_open(forum, &files, TFOS_UNEVEN_JOIN);
        for (int i = 0; i < 3; i++) {
            readers[i].options.path_count = 1;
            readers[i].options.rows.batch_size = 500;
            readers[i].options.pass.parallel_reads = 0;
        }
        readers_run(readers, 3);
        check_steps(readers, 3);
        int64_t share = LARGE_ROWS / 3;
        for (int i = 0; i < 3; i++)
            assert_in_range(readers[i].rows[0], share - 200, share + 200);
        // Every n-th record, or records in a row.
        assert_int_equal(readers[1].rows[0] == share && readers[2].rows[0] == share, compressed);
        readers_close(readers);
        forum_close(forum);
        remove_files(&files);
    }
}

// A pass over a range continues from a position, and says where a row is.
static void a_range_goes_on_from_a_position(void **state)
{
    (void)state;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    struct tfos_record_dataset_options options = options_for(&files, 0);
    struct tfos_dataset *dataset = NULL, *other = NULL;
    struct tfos_tensor tensor;
    struct tfos_error err;
    int64_t position[32];
    write_large_file(files.paths[0], TFOS_COMPRESSION_NONE);
    options.path_count = 1;
    options.rows.batch_size = 700;
    options.pass.shard_index = 1;
    options.pass.shard_count = 3;
    assert_done(tfos_record_dataset_open(&options, &dataset, &err));
    for (int i = 0; i < 5; i++) {
        assert_done(tfos_dataset_next(dataset, &tensor, &err));
        tfos_tensor_release(&tensor);
    }
    assert_true(tfos_record_dataset_position_count(dataset) <= 32);
    assert_done(tfos_record_dataset_get_position(dataset, position, &err));
    assert_done(tfos_record_dataset_open(&options, &other, &err));
    assert_done(tfos_record_dataset_set_position(
        other, position, tfos_record_dataset_position_count(dataset), 0, &err));
    enum tfos_status status;
    while ((status = tfos_dataset_next(dataset, &tensor, &err)) == TFOS_OK) {
        struct tfos_tensor again;
        assert_done(tfos_dataset_next(other, &again, &err));
        assert_int_equal(tensor.size, again.size);
        assert_memory_equal(tensor.data, again.data, (size_t)tensor.size);
        tfos_tensor_release(&tensor);
        tfos_tensor_release(&again);
    }
    assert_int_equal(status, TFOS_END);
    assert_int_equal(tfos_dataset_next(other, &tensor, &err), TFOS_END);
    tfos_dataset_close(dataset);
    tfos_dataset_close(other);
    remove_files(&files);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(each_row_once_in_equal_steps),
    cmocka_unit_test(whole_passes_exchange_no_more_than_steps),
    cmocka_unit_test(who_leaves_a_pass_keeps_nobody_waiting),
    cmocka_unit_test(other_files_are_refused),
    cmocka_unit_test(a_large_file_is_read_by_ranges),
    cmocka_unit_test(a_range_goes_on_from_a_position),
};

TEST_MAIN(cases)
