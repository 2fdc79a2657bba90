// SPDX-License-Identifier: Apache-2.0
// Files of Examples as batches: sizes, and one rule for damage of frames and of records.
#include <tfos/example_file.h>
#include <tfos/memory.h>

#include "memory_stream.h"
#include "record/record.h"
#include "record_proto.h"

#define ROWS 10

/// A file of Examples, each with the feature x of its number; in the place of the one numbered
/// `odd` is `other`.
static struct memory_stream make_file_of(struct proto (*feature)(int number), int count, int odd,
                                         struct proto other)
{
    struct tfos_error err;
    struct memory_stream stream = memory_open();
    struct tfos_record_writer *writer = NULL;
    assert_done(tfos_record_writer_open(&stream.base, NULL, &writer, &err));
    for (int i = 0; i < count; i++) {
        struct proto record = {0};
        if (i == odd)
            record = other;
        else
            put_feature(&record, "x", feature(i));
        struct tfos_view view = {record.data, record.size};
        assert_done(tfos_record_writer_append(writer, &view, 1, &err));
    }
    assert_done(tfos_record_writer_finish(writer, &err));
    tfos_record_writer_close(writer);
    return stream;
}

static struct proto one_number(int number)
{
    return INT64S(number);
}

/// A byte each in a record, eight in a column.
static struct proto some_numbers(int number)
{
    return number % 3 == 0 ? INT64S(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) : INT64S(number);
}

/// Examples x = 0, 1, ...; in the place of the one numbered `odd` is `other`.
static struct memory_stream make_file_with(int odd, struct proto other)
{
    return make_file_of(one_number, ROWS, odd, other);
}

static struct proto list_of_bytes(void)
{
    struct proto record = {0};
    put_feature(&record, "x", TEXTS("odd"));
    return record;
}

/// That one has a list of bytes.
static struct memory_stream make_file(int odd)
{
    return make_file_with(odd, list_of_bytes());
}

struct outcome {
    enum tfos_status status;
    struct tfos_error err;
    int64_t rows, batches, sum;
    struct tfos_record_counts counts;
};

static struct outcome read_file(struct memory_stream *stream,
                                const struct tfos_example_reader_options *options)
{
    struct outcome outcome = {0};
    struct ArrowSchema schema = make_table((const char *const[]){"x:l"}, 1);
    struct tfos_example_reader *reader = NULL;
    struct ArrowArray batch;
    stream->at = 0;
    outcome.status =
        tfos_example_reader_open(&stream->base, &schema, options, &reader, &outcome.err);
    while (outcome.status == TFOS_OK) {
        outcome.status = tfos_example_reader_next(reader, &batch, &outcome.err);
        if (outcome.status != TFOS_OK)
            break;
        const int64_t *values = batch.children[0]->buffers[1];
        assert_true(batch.length > 0);
        for (int64_t i = 0; i < batch.length; i++)
            outcome.sum += values[i];
        outcome.rows += batch.length;
        outcome.batches++;
        batch.release(&batch);
    }
    assert_int_equal(tfos_example_reader_next(reader, &batch, NULL), outcome.status);
    outcome.counts = tfos_example_reader_get_counts(reader);
    tfos_example_reader_close(reader);
    clear_column(&schema);
    return outcome;
}

static void batches_have_their_sizes(void **state)
{
    (void)state;
    struct memory_stream file = make_file(-1);
    static const struct {
        int64_t batch_rows, batch_size, batches;
    } cases[] = {{0, 0, 1}, {3, 0, 4}, {10, 0, 1}, {1, 0, 10}, {0, 1, 10}, {0, 20, 5}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tfos_example_reader_options options = {.batch_rows = cases[i].batch_rows,
                                                      .batch_size = cases[i].batch_size};
        struct outcome outcome = read_file(&file, &options);
        assert_int_equal(outcome.status, TFOS_END);
        assert_int_equal(outcome.rows, ROWS);
        assert_int_equal(outcome.sum, 45);
        assert_int_equal(outcome.batches, cases[i].batches);
        assert_int_equal(outcome.counts.records, ROWS);
    }
    memory_clear(&file);
}

/// A reader from a place on, of a file that comes in parts of `step` bytes.
static struct tfos_example_reader *open_at(struct memory_stream *file, size_t step,
                                           const struct tfos_example_reader_options *options,
                                           struct tfos_record_position start)
{
    struct tfos_error err;
    struct ArrowSchema schema = make_table((const char *const[]){"x:+l:l"}, 1);
    struct tfos_example_reader_options from = *options;
    struct tfos_example_reader *reader = NULL;
    file->at = 0;
    file->step = step;
    from.record.start = start;
    assert_done(tfos_example_reader_open(&file->base, &schema, &from, &reader, &err));
    clear_column(&schema);
    return reader;
}

/// Lengths of batches until there are no more; with what that ends.
static enum tfos_status measure(struct tfos_example_reader *reader, int64_t *lengths,
                                struct tfos_record_position *places)
{
    struct ArrowArray batch;
    enum tfos_status status;
    while ((status = tfos_example_reader_next(reader, &batch, NULL)) == TFOS_OK) {
        *lengths++ = batch.length;
        *places++ = tfos__record_example_reader_tell(reader);
        batch.release(&batch);
    }
    tfos_example_reader_close(reader);
    *lengths = 0;
    return status;
}

/// Where batches end must not depend on how a file comes, nor on where reading begins.
static void s88_batches_go_on_alike_from_any_place(void **state)
{
    (void)state;
    static const struct tfos_record_position beginning;
    enum { COUNT = 100 };
    for (int odd = -1; odd < COUNT; odd += 27)
        for (int64_t batch_size = 1; batch_size < 3000; batch_size += 300)
            for (int mode = TFOS_RECORD_STRICT; mode <= TFOS_RECORD_SKIP_FILE; mode++) {
                struct memory_stream file = make_file_of(some_numbers, COUNT, odd, list_of_bytes());
                struct tfos_example_reader_options options = {
                    .batch_size = batch_size, .record = {.mode = (enum tfos_record_mode)mode}};
                int64_t lengths[COUNT + 1], others[COUNT + 1];
                struct tfos_record_position places[COUNT + 1], unused[COUNT + 1];
                enum tfos_status status =
                    measure(open_at(&file, 0, &options, beginning), lengths, places);
                for (size_t i = 0; lengths[i] > 0; i++)
                    for (size_t step = 1; step < 500; step += 166) {
                        struct tfos_example_reader *reader =
                            open_at(&file, step, &options, places[i]);
                        assert_int_equal(measure(reader, others, unused), status);
                        for (size_t k = 0; lengths[i + k] > 0; k++)
                            assert_int_equal(others[k], lengths[i + 1 + k]);
                    }
                memory_clear(&file);
            }
}

static void note_damage(void *context, const struct tfos_record_damage *damage)
{
    struct tfos_record_damage *noted = context;
    assert_non_null(strstr(damage->message, "part-3: offset "));
    *noted = *damage;
    noted->message = NULL;
}

static void s68_records_that_are_no_good(void **state)
{
    (void)state;
    struct memory_stream file = make_file(4);
    struct tfos_record_damage noted = {0};
    struct tfos_example_reader_options options = {
        .record = {.name = "part-3", .on_damage = note_damage, .context = &noted}};
    for (int64_t batch_rows = 1; batch_rows < 12; batch_rows++) {
        options.batch_rows = batch_rows;
        options.record.mode = TFOS_RECORD_STRICT;
        struct outcome outcome = read_file(&file, &options);
        assert_int_equal(outcome.status, TFOS_CORRUPT);
        assert_int_equal(outcome.rows, 4);
        assert_non_null(strstr(outcome.err.message, "part-3: offset "));
        assert_non_null(strstr(outcome.err.message, "column x: the feature is a bytes_list"));
        options.record.mode = TFOS_RECORD_SKIP_RECORD;
        outcome = read_file(&file, &options);
        assert_int_equal(outcome.status, TFOS_END);
        assert_int_equal(outcome.rows, ROWS - 1);
        assert_int_equal(outcome.sum, 45 - 4);
        assert_int_equal(outcome.counts.records, ROWS - 1);
        assert_int_equal(outcome.counts.damages, 1);
        assert_int_equal(noted.kind, TFOS_RECORD_BAD_EXAMPLE);
        assert_int_equal(noted.size, outcome.counts.skipped_bytes);
        options.record.mode = TFOS_RECORD_SKIP_FILE;
        outcome = read_file(&file, &options);
        assert_int_equal(outcome.status, TFOS_END);
        assert_int_equal(outcome.rows, 4);
        assert_int_equal(noted.size, 0);
    }
    memory_clear(&file);
}

static void frames_and_records_count_together(void **state)
{
    (void)state;
    struct memory_stream file = make_file(4);
    struct tfos_example_reader_options options = {.record = {.mode = TFOS_RECORD_SKIP_RECORD}};
    file.data[file.size - 1] ^= 1; // the checksum of the last record
    struct outcome outcome = read_file(&file, &options);
    assert_int_equal(outcome.rows, ROWS - 2);
    assert_int_equal(outcome.counts.damages, 2);
    memory_clear(&file);
}

static void the_inference_of_a_file(void **state)
{
    (void)state;
    struct tfos_error err;
    struct proto lists = {0};
    put_message(&lists, 2, in_field(1, entry("x", in_field(1, INT64S(1)))));
    struct memory_stream file = make_file_with(4, lists);
    uint64_t seen = 0;
    struct tfos_schema_inference *inference = NULL;
    struct tfos_record_reader_options options = {.name = "part-0"};
    assert_done(tfos_schema_inference_open(TFOS_RECORD_SEQUENCE_EXAMPLE, &inference, &err));
    assert_done(tfos_schema_inference_read(inference, &file.base, &options, 3, &seen, &err));
    assert_int_equal(seen, 3);
    file.at = 0;
    assert_int_equal(tfos_schema_inference_read(inference, &file.base, &options, 0, &seen, &err),
                     TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "record: part-0: offset "));
    assert_non_null(strstr(err.message, "feature x: a feature list, and a context feature in "
                                        "part-0: offset 0: no column holds both"));
    file.at = 0;
    options.mode = TFOS_RECORD_SKIP_RECORD;
    assert_done(tfos_schema_inference_read(inference, &file.base, &options, 0, &seen, &err));
    assert_int_equal(seen, ROWS - 1);
    tfos_schema_inference_close(inference);
    memory_clear(&file);
}

/// Two files that contradict each other: the same error in either order, by way of text.
static void inferences_of_files_that_contradict_name_both(void **state)
{
    (void)state;
    struct tfos_error err;
    struct proto lists = {0};
    put_message(&lists, 2, in_field(1, entry("x", in_field(1, INT64S(1)))));
    struct memory_stream files[] = {make_file_with(0, lists), make_file(-1)};
    for (int first = 0; first < 2; first++) {
        struct tfos_schema_inference *inferences[2] = {0}, *loaded = NULL;
        char *json = NULL;
        uint64_t seen;
        for (int i = 0; i < 2; i++) {
            const struct tfos_record_reader_options options = {.name = i == 0 ? "p\xFFrt" : "b"};
            files[i].at = 0;
            assert_done(
                tfos_schema_inference_open(TFOS_RECORD_SEQUENCE_EXAMPLE, &inferences[i], &err));
            assert_done(tfos_schema_inference_read(inferences[i], &files[i].base, &options, 1,
                                                   &seen, &err));
        }
        assert_done(tfos_schema_inference_save(inferences[1 - first], &json, &err));
        assert_done(tfos_schema_inference_load(json, &loaded, &err));
        tfos_free(json);
        assert_int_equal(tfos_schema_inference_merge(inferences[first], loaded, &err),
                         TFOS_CORRUPT);
        assert_string_equal(err.message,
                            first == 0 ? "record: b: offset 0: feature x: a context feature, and a "
                                         "feature list in p?rt: offset 0: no column holds both, so "
                                         "give a schema"
                                       : "record: p?rt: offset 0: feature x: a feature list, and a "
                                         "context feature in b: offset 0: no column holds both, so "
                                         "give a schema");
        tfos_schema_inference_close(inferences[0]);
        tfos_schema_inference_close(inferences[1]);
        tfos_schema_inference_close(loaded);
    }
    memory_clear(&files[0]);
    memory_clear(&files[1]);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct tfos_error err;
    struct memory_stream file = memory_open();
    struct ArrowSchema schema = make_table((const char *const[]){"x:l"}, 1);
    struct tfos_example_writer *writer = NULL;
    static const int64_t values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const uint8_t bits[] = {0x0F, 0x00};
    const void *column_buffers[] = {NULL, values}, *nothing[] = {NULL};
    struct ArrowArray column = {.length = ROWS, .n_buffers = 2, .buffers = column_buffers};
    struct ArrowArray *columns[] = {&column};
    struct ArrowArray batch = {
        .length = ROWS, .n_buffers = 1, .buffers = nothing, .n_children = 1, .children = columns};
    struct tfos_example_writer_options options = {.record = {.compression = TFOS_COMPRESSION_GZIP}};
    assert_done(tfos_example_writer_open(&file.base, &schema, &options, &writer, &err));
    assert_done(tfos_example_writer_append(writer, &batch, &err));
    // Nothing of a batch that is refused is written; rows are counted from the first of all.
    schema.children[0]->flags = 0;
    column_buffers[0] = bits;
    column.null_count = -1;
    nothing[0] = bits;
    batch.null_count = -1;
    assert_int_equal(tfos_example_writer_append(writer, &batch, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "behind 10 rows: row 4, column x"));
    batch.null_count = 0;
    column.null_count = 0;
    assert_done(tfos_example_writer_append(writer, &batch, &err));
    assert_done(tfos_example_writer_finish(writer, &err));
    size_t column_count;
    assert_int_equal(tfos_example_writer_losses(writer, &column_count)->rounded, 0);
    tfos_example_writer_close(writer);
    struct outcome outcome = read_file(&file, NULL);
    assert_int_equal(outcome.status, TFOS_END);
    assert_int_equal(outcome.rows, 2 * ROWS);
    assert_int_equal(outcome.sum, 90);
    memory_clear(&file);
    clear_column(&schema);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(batches_have_their_sizes),
    cmocka_unit_test(s88_batches_go_on_alike_from_any_place),
    cmocka_unit_test(s68_records_that_are_no_good),
    cmocka_unit_test(frames_and_records_count_together),
    cmocka_unit_test(the_inference_of_a_file),
    cmocka_unit_test(inferences_of_files_that_contradict_name_both),
    cmocka_unit_test(what_is_written_is_read),
};

TEST_MAIN(cases)
