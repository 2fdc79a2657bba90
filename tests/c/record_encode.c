// SPDX-License-Identifier: Apache-2.0
// Columns to records and back: what comes back is what went in, or it is refused by row and column.
#include <math.h>
#include <tfos/record.h>

#include "feed_arrow.h"
#include "record_proto.h"

// Reads frames back, so that they are known to be frames, into a batch of the schema.
static void decode_frames(const struct ArrowSchema *schema, enum tfos_record_type type,
                          struct tfos_view frames, const struct tfos_view *records, int64_t count,
                          struct ArrowArray *out)
{
    struct tfos_error err;
    struct tfos_example_decoder *decoder = NULL;
    const uint8_t *at = frames.data;
    size_t appended;
    for (int64_t i = 0; i < count; i++) {
        struct tfos_record_frame frame;
        tfos_record_frame_init(&frame, records[i].data, records[i].size);
        assert_memory_equal(at, frame.head, sizeof(frame.head));
        assert_ptr_equal(at + sizeof(frame.head), records[i].data);
        at += sizeof(frame.head) + records[i].size;
        assert_memory_equal(at, frame.tail, sizeof(frame.tail));
        at += sizeof(frame.tail);
    }
    assert_ptr_equal(at, (const uint8_t *)frames.data + frames.size);
    assert_done(tfos_example_decoder_open(
        schema, &(struct tfos_example_decoder_options){.type = type}, &decoder, &err));
    assert_done(tfos_example_decoder_append(decoder, records, (size_t)count, &appended, &err));
    assert_int_equal(appended, count);
    assert_done(tfos_example_decoder_take(decoder, out, &err));
    tfos_example_decoder_close(decoder);
}

static void no_nulls(struct ArrowArray *array)
{
    array->null_count = 0;
    for (int64_t i = 0; i < array->n_children; i++)
        no_nulls(array->children[i]);
}

// Nulls of rows only: a list cannot hold any.
static void keep_row_nulls(struct ArrowArray *batch)
{
    batch->null_count = 0;
    for (int64_t i = 0; i < batch->n_children; i++) {
        struct ArrowArray *column = batch->children[i];
        for (int64_t k = 0; k < column->n_children; k++)
            no_nulls(column->children[k]);
    }
}

static void random_batches_come_back(void **state)
{
    (void)state;
    static const char *const scalars[] = {"b", "c", "C", "s", "S",   "i",       "I",   "l",
                                          "f", "z", "Z", "l", "tdD", "tsu:UTC", "tDu", "tiM"};
    enum { COUNT = sizeof(scalars) / sizeof(scalars[0]) };
    struct shape values[COUNT], lists[COUNT], deep[COUNT], columns[3 * COUNT];
    for (int i = 0; i < COUNT; i++) {
        values[i] = (struct shape){scalars[i], NULL, 0};
        lists[i] = (struct shape){i % 3 == 0 ? "+L" : i % 3 == 1 ? "+w:3" : "+l", &values[i], 1};
        deep[i] = (struct shape){i % 2 ? "+l" : "+w:2", &lists[i], 1};
    }
    for (int type = TFOS_RECORD_EXAMPLE; type <= TFOS_RECORD_SEQUENCE_EXAMPLE; type++)
        for (int round = 0; round < 20; round++) {
            struct tfos_error err;
            struct ArrowSchema schema;
            struct ArrowArray batch, back;
            struct tfos_example_encoder *encoder = NULL;
            struct tfos_example_encoder_options options = {.type = type};
            struct tfos_view frames;
            const struct tfos_view *records;
            int column_count = 0;
            for (int i = 0; i < COUNT; i++) {
                columns[column_count++] = values[i];
                columns[column_count++] = lists[i];
                if (type == TFOS_RECORD_SEQUENCE_EXAMPLE)
                    columns[column_count++] = deep[i];
            }
            struct shape table = {"+s", columns, column_count};
            random_state = (uint64_t)(type * 100 + round);
            make_schema(&table, "t", &schema);
            for (int i = 0; i < column_count; i++)
                schema.children[i]->flags = ARROW_FLAG_NULLABLE;
            make_array(&table, (int64_t)random_below(20), &batch);
            keep_row_nulls(&batch);
            assert_done(tfos_example_encoder_open(&schema, &options, &encoder, &err));
            for (int again = 0; again < 2; again++) {
                assert_done(tfos_example_encoder_encode(encoder, &batch, &frames, &records, &err));
                decode_frames(&schema, type, frames, records, batch.length, &back);
                assert_int_equal(back.length, batch.length);
                for (int64_t row = 0; row < batch.length; row++)
                    compare_value(&schema, &batch, row, &back, row);
                back.release(&back);
            }
            tfos_example_encoder_close(encoder);
            batch.release(&batch);
            schema.release(&schema);
        }
}

/// A batch of one column of fixed width without nulls.
struct single {
    const void *buffers[3];
    struct ArrowArray column;
    struct ArrowArray *columns[1];
    const void *nothing[1];
    struct ArrowArray batch;
};

static void make_single(struct single *single, const void *values, int64_t count)
{
    *single = (struct single){.buffers = {NULL, values}};
    single->column =
        (struct ArrowArray){.length = count, .n_buffers = 2, .buffers = single->buffers};
    single->columns[0] = &single->column;
    single->batch = (struct ArrowArray){.length = count,
                                        .n_buffers = 1,
                                        .buffers = single->nothing,
                                        .n_children = 1,
                                        .children = single->columns};
}

static enum tfos_status encode(const char *column, const char *metadata, bool is_exact,
                               const struct ArrowArray *batch, struct ArrowArray *back,
                               struct tfos_example_loss *loss, struct tfos_error *err)
{
    struct ArrowSchema schema = make_table(&column, 1);
    struct tfos_example_encoder_options options = {.exact = is_exact};
    struct tfos_example_encoder *encoder = NULL;
    struct tfos_view frames;
    const struct tfos_view *records;
    size_t column_count;
    schema.children[0]->metadata = metadata;
    enum tfos_status status = tfos_example_encoder_open(&schema, &options, &encoder, err);
    if (status == TFOS_OK)
        status = tfos_example_encoder_encode(encoder, batch, &frames, &records, err);
    if (status == TFOS_OK)
        decode_frames(&schema, TFOS_RECORD_EXAMPLE, frames, records, batch->length, back);
    if (loss && encoder) {
        *loss = *tfos_example_encoder_losses(encoder, &column_count);
        assert_int_equal(column_count, 1);
        assert_string_equal(loss->column, "x");
    }
    tfos_example_encoder_close(encoder);
    clear_column(&schema);
    return status;
}

/// The metadata {"tfos.encoding": "exact"} as Arrow lays it out.
static const char EXACT[] = "\1\0\0\0"
                            "\15\0\0\0tfos.encoding"
                            "\5\0\0\0exact";

static void s67_s94_doubles_are_rounded_and_counted_or_refused(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray back;
    struct single single;
    struct tfos_example_loss loss = {0};
    static const double values[] = {0.5, 0.1, -INFINITY, 1e300, NAN, -0.0};
    make_single(&single, values, 6);
    assert_int_equal(encode("x:g", NULL, true, &single.batch, &back, NULL, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "row 1: column x: 0.1"));
    assert_non_null(strstr(err.message, "is no float"));
    assert_done(encode("x:g", NULL, false, &single.batch, &back, &loss, &err));
    assert_int_equal(loss.rounded, 2);
    assert_int_equal(loss.infinite, 1);
    const double *got = back.children[0]->buffers[1];
    assert_true(got[1] == (double)0.1f && isinf(got[3]));
    back.release(&back);
    assert_done(encode("x:g", EXACT, true, &single.batch, &back, NULL, &err));
    assert_memory_equal(back.children[0]->buffers[1], values, sizeof(values));
    back.release(&back);
}

static void s71_decimals(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray back;
    struct single single;
    struct tfos_example_loss loss = {0};
    // 0.10, -0.01, 99999999999999999999999999999999999999 as decimals with two digits behind the
    // point; the last is 38 nines.
    static const uint64_t values[] = {
        10, 0, UINT64_MAX, UINT64_MAX, UINT64_C(0x098A223FFFFFFFFF), UINT64_C(0x4B3B4CA85A86C47A)};
    make_single(&single, values, 2);
    assert_done(encode("x:d:38,2", NULL, true, &single.batch, &back, NULL, &err));
    assert_memory_equal(back.children[0]->buffers[1], values, 32);
    back.release(&back);
    make_single(&single, values, 3);
    assert_int_equal(encode("x:d:38,2", NULL, true, &single.batch, &back, NULL, &err),
                     TFOS_INVALID);
    assert_non_null(strstr(err.message, "row 2: column x: "));
    make_single(&single, values, 3);
    assert_done(encode("x:d:38,2", EXACT, false, &single.batch, &back, &loss, &err));
    assert_int_equal(loss.rounded, 0);
    assert_memory_equal(back.children[0]->buffers[1], values, sizeof(values));
    back.release(&back);
    assert_done(encode("x:d:38,38", EXACT, false, &single.batch, &back, &loss, &err));
    assert_memory_equal(back.children[0]->buffers[1], values, sizeof(values));
    back.release(&back);
    assert_done(encode("x:d:38,0", EXACT, false, &single.batch, &back, &loss, &err));
    assert_memory_equal(back.children[0]->buffers[1], values, sizeof(values));
    back.release(&back);
}

static void s61_nulls_that_cannot_be_kept(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray back;
    struct single single;
    static const int64_t values[] = {1, 2, 3};
    static const int32_t offsets[] = {0, 2, 3};
    static const uint8_t bits[] = {0x05};
    // Rows.
    make_single(&single, values, 3);
    single.buffers[0] = bits;
    single.column.null_count = 1;
    assert_done(encode("x:l", NULL, false, &single.batch, &back, NULL, &err));
    assert_int_equal(back.children[0]->null_count, 1);
    back.release(&back);
    assert_int_equal(encode("x:l!", NULL, false, &single.batch, &back, NULL, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "row 1: column x: a null"));
    // Within a list.
    struct ArrowArray item = single.column, *items[] = {&item};
    const void *item_buffers[] = {bits, values};
    item.buffers = item_buffers;
    make_single(&single, offsets, 2);
    single.column.n_children = 1;
    single.column.children = items;
    assert_int_equal(encode("x:+l:l", NULL, false, &single.batch, &back, NULL, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "row 0: column x: a null within a list"));
    // A whole struct.
    make_single(&single, values, 3);
    single.nothing[0] = bits;
    single.batch.null_count = -1;
    assert_int_equal(encode("x:l", NULL, false, &single.batch, &back, NULL, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "row 1, column x: the struct that it is in is null"));
}

static void values_beyond_a_feature(void **state)
{
    (void)state;
    struct tfos_error err;
    struct ArrowArray back;
    struct single single;
    static const uint64_t values[] = {0, UINT64_MAX};
    make_single(&single, values, 2);
    assert_int_equal(encode("x:L", NULL, false, &single.batch, &back, NULL, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "row 1: column x: 18446744073709551615 is more than"));
    // More than a message holds; the bytes are not looked at.
    static const int64_t offsets[] = {0, INT64_C(1) << 31};
    make_single(&single, offsets, 1);
    single.buffers[2] = values;
    single.column.n_buffers = 3;
    assert_int_equal(encode("x:Z", NULL, false, &single.batch, &back, NULL, &err), TFOS_INVALID);
    assert_non_null(
        strstr(err.message, "row 0: column x: with it the record has 2147483648 bytes"));
    make_single(&single, values, 2);
    // A batch of another schema.
    assert_int_equal(encode("x:+l:l", NULL, false, &single.batch, &back, NULL, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "not of the schema"));
}

/// Byte for byte what TensorFlow 2.21 serializes.
static void records_are_as_tensorflow_writes_them(void **state)
{
    (void)state;
    struct tfos_error err;
    struct single single;
    static const int64_t value[] = {300};
    struct ArrowSchema schema = make_table((const char *const[]){"x:l"}, 1);
    struct tfos_example_encoder *encoder = NULL;
    struct tfos_view frames;
    const struct tfos_view *records;
    static const uint8_t expected[] = {0x0A, 0x0D, 0x0A, 0x0B, 0x0A, 0x01, 'x', 0x12,
                                       0x06, 0x1A, 0x04, 0x0A, 0x02, 0xAC, 0x02};
    make_single(&single, value, 1);
    assert_done(tfos_example_encoder_open(&schema, NULL, &encoder, &err));
    assert_done(tfos_example_encoder_encode(encoder, &single.batch, &frames, &records, &err));
    assert_int_equal(records[0].size, sizeof(expected));
    assert_memory_equal(records[0].data, expected, sizeof(expected));
    tfos_example_encoder_close(encoder);
    clear_column(&schema);
}

static uint8_t *put_head(uint8_t *at, uint8_t tag, size_t size)
{
    *at++ = tag;
    for (; size >= 0x80; size >>= 7)
        *at++ = (uint8_t)(size | 0x80);
    *at++ = (uint8_t)size;
    return at;
}

// Bytes of a field with its head.
static size_t around(size_t size)
{
    uint8_t head[16];
    return (size_t)(put_head(head, 0, size) - head) + size;
}

/// The heads of a record's messages take one byte more or less than those of the record before.
static void sizes_that_change_from_row_to_row(void **state)
{
    (void)state;
    enum { ROWS = 12, LIMIT = 70000 };
    static const int32_t sizes[ROWS] = {0,     200,   0,   113,   114,   16360,
                                        16380, 65000, 127, 16384, 69000, 0};
    static uint8_t bytes[ROWS * LIMIT], expected[LIMIT + 64];
    struct tfos_error err;
    struct single single;
    struct ArrowSchema schema = make_table((const char *const[]){"x:z"}, 1);
    struct tfos_example_encoder *encoder = NULL;
    struct tfos_view frames;
    const struct tfos_view *records;
    int32_t offsets[ROWS + 1] = {0};
    for (int i = 0; i < ROWS; i++) {
        offsets[i + 1] = offsets[i] + sizes[i];
        memset(bytes + offsets[i], 'a' + i, (size_t)sizes[i]);
    }
    make_single(&single, offsets, ROWS);
    single.buffers[2] = bytes;
    single.column.n_buffers = 3;
    assert_done(tfos_example_encoder_open(&schema, NULL, &encoder, &err));
    assert_done(tfos_example_encoder_encode(encoder, &single.batch, &frames, &records, &err));
    for (int i = 0; i < ROWS; i++) {
        size_t size = (size_t)sizes[i], list = around(size), feature = around(list);
        size_t entry = around(1) + around(feature), map = around(entry);
        uint8_t *at = put_head(put_head(put_head(expected, 0x0A, map), 0x0A, entry), 0x0A, 1);
        *at++ = 'x';
        at = put_head(put_head(put_head(at, 0x12, feature), 0x0A, list), 0x0A, size);
        memcpy(at, bytes + offsets[i], size);
        assert_int_equal(records[i].size, at + size - expected);
        assert_memory_equal(records[i].data, expected, records[i].size);
    }
    tfos_example_encoder_close(encoder);
    clear_column(&schema);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(random_batches_come_back),
    cmocka_unit_test(s67_s94_doubles_are_rounded_and_counted_or_refused),
    cmocka_unit_test(s71_decimals),
    cmocka_unit_test(s61_nulls_that_cannot_be_kept),
    cmocka_unit_test(values_beyond_a_feature),
    cmocka_unit_test(records_are_as_tensorflow_writes_them),
    cmocka_unit_test(sizes_that_change_from_row_to_row),
};

TEST_MAIN(cases)
