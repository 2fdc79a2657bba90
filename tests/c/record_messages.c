// SPDX-License-Identifier: Apache-2.0
// Records that are other messages than the one they are read as.
#include <tfos/example_file.h>
#include <tfos/memory.h>

#include "memory_stream.h"
#include "record_proto.h"

/// Decodes a record into the column x.
static enum tfos_status decode(struct proto record, enum tfos_record_type type,
                               struct tfos_error *err)
{
    const struct tfos_example_decoder_options options = {.type = type};
    const char *column = "x:l";
    struct ArrowSchema schema = make_table(&column, 1);
    struct tfos_example_decoder *decoder = NULL;
    struct tfos_view view = {record.data, record.size};
    size_t appended;
    enum tfos_status status = tfos_example_decoder_open(&schema, &options, &decoder, err);
    if (status == TFOS_OK)
        status = tfos_example_decoder_append(decoder, &view, 1, &appended, err);
    tfos_example_decoder_close(decoder);
    clear_column(&schema);
    return status;
}

/// Looks at a record for its columns.
static enum tfos_status inference(struct proto record, enum tfos_record_type type,
                                  struct tfos_error *err)
{
    struct tfos_schema_inference *inference = NULL;
    struct tfos_view view = {record.data, record.size};
    size_t seen;
    enum tfos_status status = tfos_schema_inference_open(type, &inference, err);
    if (status == TFOS_OK)
        status = tfos_schema_inference_append(inference, &view, 1, &seen, err);
    tfos_schema_inference_close(inference);
    return status;
}

static void assert_refused(struct proto record, enum tfos_record_type type, const char *words)
{
    struct tfos_error err;
    assert_int_equal(decode(record, type, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, words));
    assert_null(strstr(err.message, "map entry"));
    assert_int_equal(inference(record, type, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, words));
}

static void assert_read(struct proto record, enum tfos_record_type type)
{
    struct tfos_error err;
    assert_done(decode(record, type, &err));
    assert_done(inference(record, type, &err));
}

/// A SequenceExample with the context feature x, and the feature list steps if it is to have one.
static struct proto sequence(bool has_list)
{
    struct proto record = {0}, lists = {0};
    put_feature(&record, "x", INT64S(1));
    if (has_list)
        put_message(&lists, 1, entry("steps", in_field(1, FLOATS(1, 2))));
    put_message(&record, 2, lists);
    return record;
}

static void s84_a_sequence_example_is_no_example(void **state)
{
    (void)state;
    struct proto only_lists = {0};
    put_message(&only_lists, 2, in_field(1, entry("steps", in_field(1, INT64S(1)))));
    assert_refused(sequence(true), TFOS_RECORD_EXAMPLE,
                   "the record is a SequenceExample, with feature lists (steps) that an Example "
                   "does not have: read it with the record type SequenceExample");
    assert_refused(only_lists, TFOS_RECORD_EXAMPLE, "the record type SequenceExample");
    assert_read(sequence(true), TFOS_RECORD_SEQUENCE_EXAMPLE);
    assert_read(only_lists, TFOS_RECORD_SEQUENCE_EXAMPLE);
}

static void s84_what_is_lost_to_nobody_is_read(void **state)
{
    (void)state;
    struct proto empty = {0}, no_features = {0}, unknown = {0};
    put_field(&no_features, 1, "", 0);
    put_feature(&unknown, "x", INT64S(1));
    put_field(&unknown, 2, "a text", 6);
    put_field(&unknown, 9, "another", 7);
    assert_read(empty, TFOS_RECORD_EXAMPLE);
    assert_read(no_features, TFOS_RECORD_EXAMPLE);
    assert_read(unknown, TFOS_RECORD_EXAMPLE);
    assert_read(sequence(false), TFOS_RECORD_EXAMPLE);
    assert_read(empty, TFOS_RECORD_SEQUENCE_EXAMPLE);
    assert_read(no_features, TFOS_RECORD_SEQUENCE_EXAMPLE);
}

static void s84_other_messages_are_told(void **state)
{
    (void)state;
    static const char name[] = "10023947602400723454_1120_000_1140_000", json[] = "{\"a\": 1}";
    static const char text[] = "hello world", digits[] = "2024";
    struct proto records[7] = {0}, shape = {0};
    // Waymo's Frame: a context with a name and calibrations, and a time.
    struct proto context = in_field(2, in_field(3, shape));
    put_field(&context, 1, name, sizeof(name) - 1);
    put_message(&records[0], 1, context);
    put_varint(&records[0], 2 << 3);
    put_varint(&records[0], 1234567);
    // TensorFlow's Event: a time, a step, a text.
    put_varint(&records[1], 1 << 3 | 1);
    put_raw(&records[1], "\0\0\0\0\0\0\xF0\x3F", 8);
    put_varint(&records[1], 2 << 3);
    put_varint(&records[1], 3);
    put_field(&records[1], 3, "brain.Event:2", 13);
    // A TensorProto: its type, its shape, its content.
    put_varint(&records[2], 1 << 3);
    put_varint(&records[2], 3);
    put_message(&shape, 2, in_field(3, (struct proto){.data = "x", .size = 1}));
    put_message(&records[2], 2, shape);
    put_field(&records[2], 4, "01234567", 8);
    put_raw(&records[3], json, sizeof(json) - 1);
    put_raw(&records[4], text, sizeof(text) - 1);
    put_raw(&records[5], digits, sizeof(digits) - 1);
    // Something without a field that an Example has.
    put_field(&records[6], 5, "01234567", 8);
    for (size_t i = 0; i < 7; i++) {
        assert_refused(records[i], TFOS_RECORD_EXAMPLE,
                       "the record is no Example but another message, or none: the record type "
                       "ByteArray gives its bytes as they are");
        assert_refused(records[i], TFOS_RECORD_SEQUENCE_EXAMPLE,
                       "the record is no SequenceExample but another message");
    }
}

// Where damage may be passed over, and nothing else is there.
static void s84_no_columns_of_what_was_passed_over(void **state)
{
    (void)state;
    const struct tfos_record_reader_options skipping = {.mode = TFOS_RECORD_SKIP_RECORD};
    struct tfos_error err;
    struct memory_stream stream = memory_open();
    struct tfos_record_writer *writer = NULL;
    struct tfos_schema_inference *inference = NULL, *loaded = NULL;
    struct ArrowSchema schema;
    struct tfos_view record = {"hello", 5};
    uint64_t seen;
    char *json = NULL;
    assert_done(tfos_record_writer_open(&stream.base, NULL, &writer, &err));
    assert_done(tfos_record_writer_append(writer, &record, 1, &err));
    assert_done(tfos_record_writer_finish(writer, &err));
    tfos_record_writer_close(writer);
    stream.at = 0;
    assert_done(tfos_schema_inference_open(TFOS_RECORD_EXAMPLE, &inference, &err));
    assert_done(tfos_schema_inference_read(inference, &stream.base, &skipping, 0, &seen, &err));
    assert_int_equal(seen, 0);
    assert_done(tfos_schema_inference_save(inference, &json, &err));
    assert_done(tfos_schema_inference_load(json, &loaded, &err));
    assert_int_equal(tfos_schema_inference_schema(loaded, &schema, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "1 places were passed over"));
    tfos_schema_inference_close(inference);
    tfos_schema_inference_close(loaded);
    tfos_free(json);
    memory_clear(&stream);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s84_a_sequence_example_is_no_example),
    cmocka_unit_test(s84_what_is_lost_to_nobody_is_read),
    cmocka_unit_test(s84_other_messages_are_told),
    cmocka_unit_test(s84_no_columns_of_what_was_passed_over),
};

TEST_MAIN(cases)
