// SPDX-License-Identifier: Apache-2.0
// Positions of passes over files: what is read from one on, in another dataset, is what the first
// continues with.
#include "base/memory.h"
#include "numbered_files.h"

#define NUMBERS 64 // of a position, at most
#define VARIANTS 96

/// One of the ways of reading files.
static struct tfos_record_dataset_options variant_of(struct files *files, int variant)
{
    static const int64_t pools[] = {0, 1, 5, 100};
    static const int64_t batches[] = {1, 4, 7};
    struct tfos_record_dataset_options options = options_for(files, variant % 4 * 2 / 3);
    options.rows.shuffle_rows = pools[variant / 4 % 4];
    options.rows.batch_size = batches[variant / 16 % 3];
    options.pass.seed = 7;
    options.pass.shuffle_files = variant / 48 % 2;
    options.pass.shard_count = variant % 3 == 2 ? 3 : 0;
    return options;
}

static int64_t read_batch(struct tfos_dataset *dataset, int64_t *values)
{
    struct tfos_error err;
    struct tfos_tensor tensor;
    int64_t count = 0;
    if (tfos_dataset_next(dataset, &tensor, &err) == TFOS_OK) {
        count = tensor.shape[0];
        memcpy(values, tensor.data, (size_t)tensor.size);
        tfos_tensor_release(&tensor);
    }
    return count;
}

/// A pass that has read nothing, over the same files by another dataset, with another seed.
static struct tfos_dataset *open_another(struct tfos_record_dataset_options options)
{
    struct tfos_error err;
    struct tfos_dataset *dataset = NULL;
    options.pass.seed += 100;
    assert_done(tfos_record_dataset_open(&options, &dataset, &err));
    return dataset;
}

/// Continues from behind some batches at the position; all rows must be those of `expected`.
static void assert_goes_on(struct tfos_record_dataset_options options, const int64_t *position,
                           int64_t number_count, int64_t batch_count, const int64_t *expected,
                           int64_t count)
{
    struct tfos_error err;
    struct tfos_dataset *dataset = open_another(options);
    int64_t values[LIMIT], again[NUMBERS];
    for (int turn = 0; turn < 2; turn++) { // from the beginning, and from elsewhere
        assert_done(
            tfos_record_dataset_set_position(dataset, position, number_count, batch_count, &err));
        assert_done(tfos_record_dataset_get_position(dataset, again, &err));
        assert_done(tfos_record_dataset_set_position(dataset, again, number_count, 0, &err));
        for (int64_t left = count, given; left > 0; left -= given) {
            given = read_batch(dataset, values);
            assert_in_range(given, 1, left);
            assert_memory_equal(values, expected + (count - left), (size_t)given * 8);
        }
        assert_int_equal(read_batch(dataset, values), 0);
    }
    tfos_dataset_close(dataset);
}

static void s88_a_pass_goes_on_from_any_position(void **state)
{
    (void)state;
    struct tfos_error err;
    for (int round = 0; round < 2; round++) {
        struct files files = make_files(round ? TFOS_COMPRESSION_ZLIB : TFOS_COMPRESSION_NONE);
        for (int variant = 0; variant < VARIANTS; variant++) {
            struct tfos_record_dataset_options options = variant_of(&files, variant);
            struct tfos_dataset *first = NULL, *dataset = NULL;
            int64_t rows[LIMIT], values[LIMIT], position[NUMBERS], mark[NUMBERS];
            assert_done(tfos_record_dataset_open(&options, &first, &err));
            int64_t count = read_rows(first, rows);
            assert_done(tfos_record_dataset_repeat(first, &options.pass, &dataset, &err));
            int64_t number_count = tfos_record_dataset_position_count(dataset);
            assert_in_range(number_count, 1, NUMBERS);
            int64_t at = 0, marked = 0;
            for (int64_t batches = 0, given = 1; given > 0; at += given, batches++) {
                assert_done(tfos_record_dataset_get_position(dataset, position, &err));
                assert_goes_on(options, position, number_count, 0, rows + at, count - at);
                if (batches % 3 == 0) {
                    memcpy(mark, position, sizeof(mark));
                    marked = batches;
                }
                assert_goes_on(options, mark, number_count, batches - marked, rows + at,
                               count - at);
                given = read_batch(dataset, values);
            }
            assert_int_equal(at, count);
            // Behind the end is its end, where nothing is read.
            assert_done(tfos_record_dataset_set_position(dataset, mark, number_count, 100, &err));
            struct tfos_dataset *other = open_another(options);
            assert_int_equal(tfos_record_dataset_set_position(other, mark, number_count, 100, &err),
                             TFOS_END);
            assert_done(tfos_record_dataset_get_position(other, position, &err));
            assert_goes_on(options, position, number_count, 0, NULL, 0);
            tfos_dataset_close(other);
            tfos_dataset_close(dataset);
            tfos_dataset_close(first);
        }
        remove_files(&files);
    }
}

/// Of a plain file what lies before the position is not read again.
static void s88_only_what_is_needed_is_read_again(void **state)
{
    (void)state;
    struct tfos_error err;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    for (int64_t shuffle_rows = 0; shuffle_rows < 3; shuffle_rows += 2) {
        struct tfos_record_dataset_options options = options_for(&files, 0);
        struct tfos_dataset *dataset = NULL, *other = NULL;
        struct tfos_record_counts counts;
        int64_t values[LIMIT], position[NUMBERS];
        options.rows.shuffle_rows = shuffle_rows;
        assert_done(tfos_record_dataset_open(&options, &dataset, &err));
        for (int i = 0; i < 4; i++)
            assert_int_equal(read_batch(dataset, values), 4); // row 15 is in the last file
        assert_done(tfos_record_dataset_get_position(dataset, position, &err));
        other = open_another(options);
        assert_done(tfos_record_dataset_set_position(
            other, position, tfos_record_dataset_position_count(other), 0, &err));
        assert_int_equal(read_rows(other, values), files.row_count - 16);
        tfos_dataset_close(dataset);
        assert_done(tfos_record_dataset_get_counts(other, &counts, &err));
        assert_in_range(counts.records, files.row_count - 16, 9 + 3);
        tfos_dataset_close(other);
    }
    remove_files(&files);
}

enum { WIDE_ROWS = 5000, WIDE = 100 };

/// Numbered rows, of which a thousand are so much that they are copied when half of them are gone.
static void write_wide_rows(const char *path, const struct ArrowSchema *schema)
{
    static int64_t values[WIDE_ROWS];
    static int32_t offsets[WIDE_ROWS + 1];
    static char text[WIDE_ROWS * WIDE];
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    struct tfos_example_writer *writer = NULL;
    const void *number_buffers[] = {NULL, values}, *text_buffers[] = {NULL, offsets, text};
    const void *no_buffers[] = {NULL};
    struct ArrowArray numbers = {.length = WIDE_ROWS, .n_buffers = 2, .buffers = number_buffers};
    struct ArrowArray texts = {.length = WIDE_ROWS, .n_buffers = 3, .buffers = text_buffers};
    struct ArrowArray *children[] = {&numbers, &texts};
    struct ArrowArray batch = {.length = WIDE_ROWS,
                               .n_buffers = 1,
                               .buffers = no_buffers,
                               .n_children = 2,
                               .children = children};
    for (int64_t i = 0; i < WIDE_ROWS; i++) {
        values[i] = i;
        offsets[i + 1] = (int32_t)(i + 1) * WIDE;
        memset(text + i * WIDE, (int)(i % 251), WIDE);
    }
    assert_done(tfos_stream_open_writer(path, &stream, &err));
    assert_done(tfos_example_writer_open(stream, schema, NULL, &writer, &err));
    assert_done(tfos_example_writer_append(writer, &batch, &err));
    assert_done(tfos_example_writer_finish(writer, &err));
    tfos_example_writer_close(writer);
    tfos_stream_close(stream);
}

static int64_t read_wide_batch(struct tfos_dataset *dataset, int64_t *values)
{
    struct tfos_error err;
    struct tfos_tensor tensors[2];
    if (tfos_dataset_next(dataset, tensors, &err) != TFOS_OK)
        return 0;
    int64_t count = tensors[0].shape[0];
    const int64_t *offsets = tensors[1].data;
    memcpy(values, tensors[0].data, (size_t)tensors[0].size);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(offsets[i + 1] - offsets[i], WIDE);
        assert_int_equal((uint8_t)tensors[1].bytes[offsets[i]], values[i] % 251);
    }
    tfos_tensor_release(&tensors[0]);
    tfos_tensor_release(&tensors[1]);
    return count;
}

static void s88_a_pool_of_wide_rows_goes_on(void **state)
{
    (void)state;
    struct ArrowSchema text = {.format = "z", .name = "y"};
    struct ArrowSchema *both[] = {&number, &text};
    struct ArrowSchema schema = {.format = "+s", .name = "", .n_children = 2, .children = both};
    char path[] = "/tmp/tfos-wide-XXXXXX";
    const char *paths[] = {path};
    struct tfos_error err;
    static int64_t values[WIDE_ROWS], others[WIDE_ROWS];
    int64_t position[NUMBERS], count = 0, given;
    assert_int_equal(close(mkstemp(path)), 0);
    write_wide_rows(path, &schema);
    struct tfos_record_dataset_options options = {
        .schema = &schema,
        .rows = {.batch_size = 300, .shuffle_rows = 400},
        .paths = paths,
        .path_count = 1,
    };
    struct tfos_dataset *dataset = NULL, *other = NULL;
    assert_done(tfos_record_dataset_open(&options, &dataset, &err));
    int64_t number_count = tfos_record_dataset_position_count(dataset);
    while ((given = read_wide_batch(dataset, values + count)) > 0)
        count += given;
    assert_int_equal(count, WIDE_ROWS);
    tfos_dataset_close(dataset);
    for (int64_t at = 300; at < count; at += 1500) {
        assert_done(tfos_record_dataset_open(&options, &dataset, &err));
        for (int64_t i = 0; i < at; i += 300)
            assert_int_equal(read_wide_batch(dataset, others), 300);
        assert_done(tfos_record_dataset_get_position(dataset, position, &err));
        tfos_dataset_close(dataset);
        other = open_another(options);
        assert_done(tfos_record_dataset_set_position(other, position, number_count, 0, &err));
        for (int64_t end = at; (given = read_wide_batch(other, others)) > 0; end += given)
            assert_memory_equal(others, values + end, (size_t)given * 8);
        tfos_dataset_close(other);
    }
    assert_int_equal(unlink(path), 0);
}

static void s88_no_memory_for_a_position(void **state)
{
    (void)state;
    struct tfos_error err;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    struct tfos_record_dataset_options options = options_for(&files, 0);
    struct tfos_dataset *dataset = NULL;
    int64_t values[LIMIT], position[NUMBERS];
    options.rows.shuffle_rows = 5;
    assert_done(tfos_record_dataset_open(&options, &dataset, &err));
    assert_int_equal(read_batch(dataset, values), 4);
    int64_t count = tfos_record_dataset_position_count(dataset);
    assert_done(tfos_record_dataset_get_position(dataset, position, &err));
    tfos_dataset_close(dataset);
    enum tfos_status status = TFOS_NO_MEMORY;
    int64_t spec_count;
    for (long n = 1; status != TFOS_OK; n++) {
        const struct tfos_tensor_spec *specs;
        enum tfos_row_structure structure;
        dataset = open_another(options);
        assert_done(tfos_dataset_get_specs(dataset, 0, &specs, &spec_count, &structure, &err));
        tfos__memory_fail_at(n);
        status = tfos_record_dataset_set_position(dataset, position, count, 0, &err);
        tfos__memory_fail_at(0);
        assert_true(status == TFOS_OK || status == TFOS_NO_MEMORY);
        assert_done(tfos_record_dataset_set_position(dataset, position, count, 0, &err));
        assert_int_equal(read_rows(dataset, values), files.row_count - 4);
        tfos_dataset_close(dataset);
    }
    remove_files(&files);
}

static void assert_refused(struct tfos_record_dataset_options options, const int64_t *position,
                           int64_t count, const char *words)
{
    struct tfos_error err;
    struct tfos_dataset *dataset = open_another(options);
    assert_int_equal(tfos_record_dataset_set_position(dataset, position, count, 0, &err),
                     TFOS_INVALID);
    if (!strstr(err.message, words))
        fail_msg("%s", err.message);
    tfos_dataset_close(dataset);
}

static void s88_positions_of_other_datasets_are_refused(void **state)
{
    (void)state;
    struct tfos_error err;
    struct files files = make_files(TFOS_COMPRESSION_NONE);
    struct tfos_record_dataset_options options = options_for(&files, 2), other;
    struct tfos_dataset *dataset = NULL;
    int64_t values[LIMIT], position[NUMBERS], damaged[NUMBERS];
    options.rows.shuffle_rows = 3;
    assert_done(tfos_record_dataset_open(&options, &dataset, &err));
    assert_int_equal(read_batch(dataset, values), 4);
    int64_t count = tfos_record_dataset_position_count(dataset);
    assert_done(tfos_record_dataset_get_position(dataset, position, &err));
    tfos_dataset_close(dataset);
    other = options;
    other.path_count--;
    assert_refused(other, position, count, "the number of files is 4 there and 3 here");
    other = options;
    other.paths++;
    assert_refused(other, position, count, "the checksum of the files' names");
    other = options;
    other.pass.parallel_reads = 3;
    assert_refused(other, position, count, "files that are read side by side is 2 there and 3");
    other = options;
    other.rows.shuffle_rows = 0;
    assert_refused(other, position, count, "rows that are drawn from is 3 there and 0 here");
    other = options;
    other.pass.shard_count = 2;
    assert_refused(other, position, count, "the number of shards is 1 there and 2 here");
    other = options;
    other.pass.shuffle_files = true;
    assert_refused(other, position, count, "whether files are shuffled");
    assert_refused(options, position, 3, "has 22 numbers, not 3");
    assert_refused(options, position, count - 1, "has 22 numbers, not 21");
    for (int64_t i = 10; i < count; i++) { // behind the seed and the number of batches
        memcpy(damaged, position, sizeof(damaged));
        damaged[i] = -1;
        assert_refused(options, damaged, count, "dataset: ");
    }
    assert_int_equal(truncate(files.paths[0], 0), 0);
    assert_int_equal(truncate(files.paths[3], 0), 0);
    assert_refused(options, position, count, "they have become others since");
    remove_files(&files);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s88_a_pass_goes_on_from_any_position),
    cmocka_unit_test(s88_only_what_is_needed_is_read_again),
    cmocka_unit_test(s88_a_pool_of_wide_rows_goes_on),
    cmocka_unit_test(s88_no_memory_for_a_position),
    cmocka_unit_test(s88_positions_of_other_datasets_are_refused),
};

TEST_MAIN(cases)
