// SPDX-License-Identifier: Apache-2.0
// Rows that end early or lie, schemas that cannot be read, and memory that runs out: a status that
// says where, and the rows before.
#include "base/memory.h"
#include "unsafe_rows.h"

static void assert_message(const struct shown *shown, const char *part)
{
    if (!strstr(shown->err.message, part))
        fail_msg("\"%s\" is not in \"%s\"", part, shown->err.message);
}

static const struct ArrowSchema *every_shape(void)
{
    static struct ArrowSchema number = {.format = "l", .name = "number"},
                              text = {.format = "u", .name = "text"},
                              big = {.format = "d:38,0", .name = "big"},
                              item = {.format = "f", .name = "element"},
                              key = {.format = "u", .name = "key"},
                              value = {.format = "i", .name = "value"};
    static struct ArrowSchema *list_children[] = {&item}, *entry_children[] = {&key, &value};
    static struct ArrowSchema list = {
        .format = "+l", .name = "list", .n_children = 1, .children = list_children};
    static struct ArrowSchema entries = {
        .format = "+s", .name = "entries", .n_children = 2, .children = entry_children};
    static struct ArrowSchema *map_children[] = {&entries}, *pair_children[] = {&text, &list};
    static struct ArrowSchema map = {
        .format = "+m", .name = "map", .n_children = 1, .children = map_children};
    static struct ArrowSchema pair = {
        .format = "+s", .name = "pair", .n_children = 2, .children = pair_children};
    static struct ArrowSchema *children[] = {&number, &text, &big, &list, &map, &pair};
    static struct ArrowSchema schema = {
        .format = "+s", .name = "", .n_children = 6, .children = children};

    return &schema;
}

static struct image good_list(int64_t count)
{
    struct image list = make_array(count, 4);

    for (int64_t i = 0; i < count; i++)
        SET(&list, i, float, (float)i);
    return list;
}

static struct image good_map(void)
{
    struct image keys = make_array(1, 8), values = make_array(1, 4);

    put_text(&keys, 0, "key");
    SET(&values, 0, int32_t, 1);
    return make_map(keys, values);
}

static struct image good_row(int64_t number)
{
    struct image row = make_row(6), pair = make_row(2);

    SET(&row, 0, int64_t, number);
    put_text(&row, 1, "some text");
    put_bytes(&row, 2, "\x01\x02", 2);
    put_image(&row, 3, good_list(number));
    put_image(&row, 4, good_map());
    put_text(&pair, 0, "inner");
    put_image(&pair, 1, good_list(2));
    put_image(&row, 5, pair);
    return row;
}

// Two good rows, then `row`, then a good one: the message must hold `part`, and the batch the two.
static void expect_fault(struct image row, const char *part)
{
    struct shown shown = {0};
    struct rows rows = {0};

    open_batch(&shown, every_shape());
    add_row(&rows, good_row(1));
    add_row(&rows, good_row(2));
    add_row(&rows, row);
    add_row(&rows, good_row(3));
    assert_int_equal(append_rows(&shown, &rows), TFOS_CORRUPT);
    assert_message(&shown, "spark: row 2: ");
    assert_message(&shown, part);
    assert_int_equal(rows_of(shown.batch), 2);
    // More rows continue from there.
    add_row(&rows, good_row(5));
    append_good(&shown, &rows);
    struct ArrowArray **column = shown.array->children;
    ASSERT_VALUES(column[0], int64_t, 1, 2, 5);
    ASSERT_OFFSETS(column[1], 0, 9, 18, 27);
    ASSERT_OFFSETS(column[3], 0, 1, 3, 8);
    ASSERT_VALUES(column[3]->children[0], float, 0, 0, 1, 0, 1, 2, 3, 4);
    assert_int_equal(column[4]->children[0]->children[1]->length, 3);
    assert_int_equal(column[5]->children[1]->children[0]->length, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(column[i]->length, 3);
    tfos_row_batch_close(shown.batch);
}

static void set_slot(struct image *row, int field, uint32_t offset, uint32_t size)
{
    SET(row, field, uint64_t, (uint64_t)offset << 32 | size);
}

static void offsets_that_lead_out(void **state)
{
    static const char *const names[] = {"number", "text", "big", "list", "map", "pair"};

    (void)state;
    for (int field = 1; field < 6; field++) {
        char part[64];
        snprintf(part, sizeof(part), "column %s: ", names[field]);
        struct image row = good_row(1);
        set_slot(&row, field, (uint32_t)row.size - 8, 16);
        expect_fault(row, part);
        row = good_row(1);
        set_slot(&row, field, UINT32_MAX, 8);
        expect_fault(row, part);
        row = good_row(1);
        set_slot(&row, field, 8, UINT32_MAX);
        expect_fault(row, part);
        row = good_row(1);
        set_slot(&row, field, (uint32_t)row.size + 8, 0);
        expect_fault(row, part);
    }
}

static void values_that_overlap(void **state)
{
    struct image row = good_row(1);

    (void)state;
    set_slot(&row, 1, 0, (uint32_t)row.size);
    expect_fault(row, "column text: ");
    row = good_row(1);
    set_slot(&row, 1, 56, (uint32_t)row.size - 56);
    expect_fault(row, "column big: 2 bytes at offset");
}

static struct image with_part(int field, struct image part)
{
    struct image row = good_row(1);

    put_image(&row, field, part);
    return row;
}

static void arrays_that_lie(void **state)
{
    static const int64_t counts[] = {-1,        INT64_MIN,       INT64_MAX, INT32_MAX,
                                     1LL << 32, (1LL << 62) + 1, 5,         1000};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct image list = good_list(4);
        memcpy(list.data, &counts[i], 8);
        expect_fault(with_part(3, list), "column list.element: an array of 32 bytes");
    }
    struct image list = good_list(0);
    list.size = 0;
    expect_fault(with_part(3, list), "column list.element: an array of 0 bytes");
}

static void maps_that_lie(void **state)
{
    uint64_t sizes[] = {UINT64_MAX, 1 << 20, 80, 0, 8};
    struct image map, keys = make_array(1, 8);

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        map = good_map();
        memcpy(map.data, &sizes[i], 8);
        expect_fault(with_part(4, map), "column map");
    }
    map = good_map();
    map.size = 4;
    expect_fault(with_part(4, map), "column map: a map of 4 bytes");
    put_text(&keys, 0, "key");
    expect_fault(with_part(4, make_map(keys, make_array(2, 4))), "a map of 1 keys and 2 values");
    keys = make_array(1, 8);
    set_null(&keys, 0);
    expect_fault(with_part(4, make_map(keys, make_array(1, 4))), "column map: a key is null");
}

static void structs_and_decimals_that_lie(void **state)
{
    struct image row = good_row(1), pair = make_row(2);

    (void)state;
    pair.size = 16;
    expect_fault(with_part(5, pair), "column pair: a struct of 16 bytes");
    put_bytes(&row, 2, "12345678901234567", 17);
    expect_fault(row, "column big: a decimal of 17 bytes");
    row = good_row(1);
    put_bytes(&row, 2, "", 0);
    expect_fault(row, "column big: a decimal of 0 bytes");
}

static void the_first_faulty_row_is_named(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    open_batch(&shown, every_shape());
    for (int i = 0; i < 150; i++) {
        struct image row = good_row(i);
        if (i % 10 == 9)
            set_null(&row, 0);
        if (i == 100) // A column far behind, in a row before that of the other faults.
            set_slot(&row, 5, 0, UINT32_MAX);
        if (i == 101 || i == 103)
            set_slot(&row, 1, 0, UINT32_MAX);
        add_row(&rows, row);
    }
    assert_int_equal(append_rows(&shown, &rows), TFOS_CORRUPT);
    assert_message(&shown, "spark: row 100: column pair: ");
    assert_int_equal(shown.array->length, 100);
    assert_int_equal(shown.array->children[1]->length, 100);
    assert_int_equal(shown.array->children[0]->null_count, 10);
    tfos_row_batch_close(shown.batch);
}

static void every_truncation(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    open_batch(&shown, every_shape());
    add_row(&rows, good_row(1));
    size_t first = rows.size;
    add_row(&rows, good_row(2));
    for (size_t size = 0; size < rows.size; size++) {
        uint8_t *copy = malloc(size + 1);
        memcpy(copy + 1, rows.data, size); // not aligned, and with its end guarded
        assert_int_equal(tfos_row_batch_append(shown.batch, copy + 1, (int64_t)size, 2, &shown.err),
                         TFOS_CORRUPT);
        assert_int_equal(rows_of(shown.batch), size >= first);
        assert_message(&shown, size >= first ? "spark: row 1: " : "spark: row 0: ");
        tfos_row_batch_clear(shown.batch);
        free(copy);
    }
    rows.count = 1;
    assert_int_equal(append_rows(&shown, &rows), TFOS_CORRUPT);
    assert_message(&shown, "bytes follow the last row");
    tfos_row_batch_close(shown.batch);
}

static void frames_that_lie(void **state)
{
    static const uint64_t heads[] = {0, 12, 40, 1ULL << 31, (1ULL << 32) + 400, 1 << 20};

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct shown shown = {0};
        struct rows rows = {0};
        open_batch(&shown, every_shape());
        add_row(&rows, good_row(1));
        memcpy(rows.data, &heads[i], 8);
        assert_int_equal(append_rows(&shown, &rows), TFOS_CORRUPT);
        assert_int_equal(shown.array->length, 0);
        assert_int_equal(tfos_row_batch_append(shown.batch, NULL, -1, 1, NULL), TFOS_INVALID);
        assert_int_equal(tfos_row_batch_append(shown.batch, NULL, 0, -1, NULL), TFOS_INVALID);
        tfos_row_batch_close(shown.batch);
    }
}

// Nulls take no memory, so that their number can grow as large as it may not.
static void more_values_than_offsets_reach(void **state)
{
    enum { COUNT = 1 << 20 };
    struct shown shown = {0};
    struct image row = make_row(2), list = make_array(COUNT, 8), wide = make_array(COUNT, 8);
    struct rows rows = {0};

    (void)state;
    open_batch(&shown, BATCH(NEST("narrow", "+l", LEAF("element", "n")),
                             NEST("wide", "+L", LEAF("element", "n"))));
    put_image(&row, 0, list);
    put_image(&row, 1, wide);
    add_row(&rows, row);
    for (int i = 0; i < 2047; i++)
        assert_int_equal(
            tfos_row_batch_append(shown.batch, rows.data, (int64_t)rows.size, 1, &shown.err),
            TFOS_OK);
    assert_int_equal(append_rows(&shown, &rows), TFOS_INVALID);
    assert_message(&shown,
                   "spark: row 2047: column narrow: the batch grows beyond offsets of 32 bits");
    assert_int_equal(shown.array->length, 2047);
    assert_int_equal(shown.array->children[1]->children[0]->length, 2047LL * COUNT);
    tfos_row_batch_close(shown.batch);
}

static void expect_refusal(const struct ArrowSchema *schema, enum tfos_status status,
                           const char *part)
{
    struct shown shown = {0};

    assert_int_equal(tfos_row_batch_open(schema, &shown.batch, &shown.err), status);
    assert_null(shown.batch);
    assert_message(&shown, part);
}

static void types_that_are_not_read(void **state)
{
    static const struct {
        const char *format, *name;
    } types[] = {
        {"C", "uint8"},
        {"L", "uint64"},
        {"e", "float16"},
        {"vu", "string"},
        {"w:4", "fixed_size_binary[4]"},
        {"+w:4", "array<int>"},
        {"ts", "ts"},
        {"tsn:", "timestamp[ns]"},
        {"d:39,0", "decimal(39,0)"},
        {"d:10", "d:10"},
        {"d:,1", "d:,1"},
        {"d:5,1,256", "decimal(5,1)"},
        {"", ""},
        {"tdm", "date64[ms]"},
        {"ttu", "time64[us]"},
        {"tDn", "duration[ns]"},
        {"d:0,0", "d:0,0"},
        {"+r", "+r"},
    };
    const char variant[] = "\x01\0\0\0\x07\0\0\0variant\x04\0\0\0true";
    const char other[] = "\x02\0\0\0\x07\0\0\0variant\x05\0\0\0false\x01\0\0\0k\x04\0\0\0true";

    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        char part[64];
        const char *format = types[i].format;
        snprintf(part, sizeof(part), "column outer.odd: its type, %s, is not read", types[i].name);
        struct ArrowSchema *odd =
            format[0] == '+' ? NEST("odd", format, LEAF("x", "i")) : LEAF("odd", format);
        expect_refusal(BATCH(NEST("outer", "+s", odd)), TFOS_UNSUPPORTED, part);
    }
    struct ArrowSchema *column = NEST("any", "+s", LEAF("value", "z"), LEAF("metadata", "z"));
    column->metadata = variant;
    expect_refusal(BATCH(column), TFOS_UNSUPPORTED, "column any: its type, variant,");
    column->metadata = other;
    struct shown shown = {0};
    open_batch(&shown, BATCH(column));
    tfos_row_batch_show(shown.batch, &shown.schema, &shown.array);
    assert_memory_equal(shown.schema->children[0]->metadata, other, sizeof(other) - 1);
    tfos_row_batch_close(shown.batch);
}

static void schemas_of_a_wrong_shape(void **state)
{
    struct ArrowSchema nodes[100], *links[100], dictionary = {.format = "u", .name = ""};
    struct ArrowSchema *text = LEAF("text", "i");

    (void)state;
    expect_refusal(LEAF("text", "u"), TFOS_INVALID, "not string");
    expect_refusal(BATCH(LEAF("list", "+l")), TFOS_INVALID, "column list: its type, array, with 0");
    expect_refusal(BATCH(NEST("n", "i", LEAF("x", "i"))), TFOS_INVALID, "with 1 columns");
    expect_refusal(BATCH(NEST("map", "+m", LEAF("x", "i"))), TFOS_INVALID, "column map: ");
    text->dictionary = &dictionary;
    expect_refusal(BATCH(text), TFOS_UNSUPPORTED, "column text: it is encoded by a dictionary");
    for (int i = 0; i < 100; i++) {
        nodes[i] = (struct ArrowSchema){
            .format = i == 99 ? "i" : "+s", .name = "x", .n_children = i < 99, .children = links};
        links[i] = &nodes[i < 99 ? i + 1 : i];
        nodes[i].children = &links[i];
    }
    expect_refusal(&nodes[0], TFOS_UNSUPPORTED, "nested deeper than 64 levels");
    struct shown shown = {0};
    open_batch(&shown, &nodes[99 - 64]);
    tfos_row_batch_close(shown.batch);
}

static void memory_that_runs_out(void **state)
{
    bool is_done = false;

    (void)state;
    for (long n = 1; !is_done; n++) {
        struct shown shown = {0};
        struct rows rows = {0};
        for (int i = 0; i < 70; i++)
            add_row(&rows, good_row(i));
        tfos__memory_fail_at(n);
        enum tfos_status status = tfos_row_batch_open(every_shape(), &shown.batch, &shown.err);
        if (status == TFOS_OK)
            status = append_rows(&shown, &rows);
        tfos__memory_fail_at(0);
        free(rows.data);
        assert_true(status == TFOS_OK || status == TFOS_NO_MEMORY);
        is_done = status == TFOS_OK;
        if (shown.batch) { // What is there can be used, and more can follow.
            int64_t count = rows_of(shown.batch);
            rows = (struct rows){0};
            add_row(&rows, good_row(count));
            append_good(&shown, &rows);
            const int64_t *numbers = shown.array->children[0]->buffers[1];
            for (int64_t i = 0; i <= count; i++)
                assert_int_equal(numbers[i], i);
        }
        tfos_row_batch_close(shown.batch);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(offsets_that_lead_out),
    cmocka_unit_test(values_that_overlap),
    cmocka_unit_test(arrays_that_lie),
    cmocka_unit_test(maps_that_lie),
    cmocka_unit_test(structs_and_decimals_that_lie),
    cmocka_unit_test(the_first_faulty_row_is_named),
    cmocka_unit_test(every_truncation),
    cmocka_unit_test(frames_that_lie),
    cmocka_unit_test(more_values_than_offsets_reach),
    cmocka_unit_test(types_that_are_not_read),
    cmocka_unit_test(schemas_of_a_wrong_shape),
    cmocka_unit_test(memory_that_runs_out),
};

TEST_MAIN(cases)
