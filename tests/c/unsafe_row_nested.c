// SPDX-License-Identifier: Apache-2.0
// Arrays, structs and maps in each other, nulls at every level, and rows that are wide, large or
// were written by Spark itself.
#include "unsafe_rows.h"

static void arrays_of_numbers(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    open_batch(&shown, BATCH(NEST("narrow", "+l", LEAF("element", "f")),
                             NEST("wide", "+L", LEAF("element", "l")),
                             NEST("flags", "+l", LEAF("element", "b"))));
    for (int i = 0; i < 4; i++) {
        struct image row = make_row(3), narrow = make_array(i, 4), wide = make_array(i, 8);
        struct image flags = make_array(i * 50, 1);
        for (int k = 0; k < i; k++) {
            SET(&narrow, k, float, (float)(10 * i + k));
            SET(&wide, k, int64_t, -10 * i - k);
        }
        for (int k = 0; k < i * 50; k++)
            SET(&flags, k, bool, k % 3 == 0);
        if (i == 3) {
            set_null(&wide, 1);
            set_null(&flags, 149);
        }
        put_image(&row, 0, narrow);
        put_image(&row, 1, wide);
        put_image(&row, 2, flags);
        if (i == 2)
            set_null(&row, 0);
        add_row(&rows, row);
    }
    append_good(&shown, &rows);
    struct ArrowArray **column = shown.array->children;
    assert_nulls(column[0], "..n.");
    ASSERT_OFFSETS(column[0], 0, 0, 1, 1, 4);
    ASSERT_VALUES(column[0]->children[0], float, 10, 30, 31, 32);
    assert_nulls(column[0]->children[0], "....");
    ASSERT_VALUES(column[1], int64_t, 0, 0, 1, 3, 6);
    ASSERT_VALUES(column[1]->children[0], int64_t, -10, -20, -21, -30, 0, -32);
    assert_nulls(column[1]->children[0], "....n.");
    ASSERT_OFFSETS(column[2], 0, 0, 50, 150, 300);
    const struct ArrowArray *flags = column[2]->children[0];
    const uint8_t *bits = flags->buffers[1];
    for (int i = 0; i < 300; i++) {
        int k = i < 50 ? i : i < 150 ? i - 50 : i - 150;
        assert_int_equal(bits[i / 8] >> i % 8 & 1, k % 3 == 0 && i != 299);
    }
    assert_int_equal(flags->null_count, 1);
    tfos_row_batch_close(shown.batch);
}

// [{n: 1, text: "a"}, null, {n: null, text: null}], then null, then [].
static void arrays_of_structs(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    open_batch(&shown,
               BATCH(NEST("list", "+l", NEST("element", "+s", LEAF("n", "i"), LEAF("text", "u")))));
    struct image row = make_row(1), list = make_array(3, 8), item = make_row(2);
    SET(&item, 0, int32_t, 1);
    put_text(&item, 1, "a");
    put_image(&list, 0, item);
    set_null(&list, 1);
    item = make_row(2);
    set_null(&item, 0);
    set_null(&item, 1);
    put_image(&list, 2, item);
    put_image(&row, 0, list);
    add_row(&rows, row);
    row = make_row(1);
    set_null(&row, 0);
    add_row(&rows, row);
    row = make_row(1);
    put_image(&row, 0, make_array(0, 8));
    add_row(&rows, row);
    append_good(&shown, &rows);
    const struct ArrowArray *column = shown.array->children[0], *items = column->children[0];
    assert_nulls(column, ".n.");
    ASSERT_OFFSETS(column, 0, 3, 3, 3);
    assert_nulls(items, ".n.");
    assert_nulls(items->children[0], ".nn");
    ASSERT_VALUES(items->children[0], int32_t, 1, 0, 0);
    assert_nulls(items->children[1], ".nn");
    ASSERT_OFFSETS(items->children[1], 0, 1, 1, 1);
    tfos_row_batch_close(shown.batch);
}

static void structs_in_structs(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    open_batch(&shown,
               BATCH(NEST("outer", "+s", LEAF("flag", "b"),
                          NEST("inner", "+s", LEAF("n", "l"), NEST("list", "+l", LEAF("e", "c"))),
                          NEST("void", "+l", LEAF("e", "n")))));
    for (int i = 0; i < 100; i++) {
        struct image row = make_row(1), outer = make_row(3), inner = make_row(2);
        struct image list = make_array(1, 1);
        SET(&outer, 0, bool, true);
        SET(&list, 0, int8_t, (int8_t)i);
        SET(&inner, 0, int64_t, i);
        put_image(&inner, 1, list);
        put_image(&outer, 1, inner);
        put_image(&outer, 2, make_array(2, 8));
        if (i % 3 == 1)
            set_null(&outer, 1);
        put_image(&row, 0, outer);
        if (i % 3 == 2)
            set_null(&row, 0);
        add_row(&rows, row);
    }
    append_good(&shown, &rows);
    const struct ArrowArray *outer = shown.array->children[0], *inner = outer->children[1];
    assert_int_equal(outer->null_count, 33);
    assert_int_equal(outer->children[0]->null_count, 33);
    assert_int_equal(inner->null_count, 66);
    assert_int_equal(inner->children[0]->null_count, 66);
    const int64_t *numbers = inner->children[0]->buffers[1];
    const int32_t *offsets = inner->children[1]->buffers[1];
    const int8_t *items = inner->children[1]->children[0]->buffers[1];
    for (int i = 0; i < 100; i += 3) {
        assert_int_equal(numbers[i], i);
        assert_int_equal(offsets[i + 1] - offsets[i], 1);
        assert_int_equal(items[offsets[i]], i);
    }
    assert_int_equal(outer->children[2]->children[0]->length, 134);
    assert_int_equal(outer->children[2]->children[0]->null_count, 134);
    tfos_row_batch_close(shown.batch);
}

// {"k": [1], "kk": null}, {}, null.
static void maps(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    open_batch(&shown,
               BATCH(MAP("map", LEAF("key", "u"), NEST("value", "+l", LEAF("element", "s")))));
    for (int i = 0; i < 3; i++) {
        int64_t count = i == 0 ? 2 : 0;
        struct image row = make_row(1), keys = make_array(count, 8), values = make_array(count, 8);
        if (i == 0) {
            struct image list = make_array(1, 2);
            SET(&list, 0, int16_t, 1);
            put_text(&keys, 0, "k");
            put_text(&keys, 1, "kk");
            put_image(&values, 0, list);
            set_null(&values, 1);
        }
        put_image(&row, 0, make_map(keys, values));
        if (i == 2)
            set_null(&row, 0);
        add_row(&rows, row);
    }
    append_good(&shown, &rows);
    const struct ArrowArray *map = shown.array->children[0], *entries = map->children[0];
    assert_nulls(map, "..n");
    ASSERT_OFFSETS(map, 0, 2, 2, 2);
    assert_nulls(entries, "..");
    ASSERT_OFFSETS(entries->children[0], 0, 1, 3);
    assert_bytes(entries->children[0], "kkk");
    assert_nulls(entries->children[1], ".n");
    ASSERT_OFFSETS(entries->children[1], 0, 1, 1);
    ASSERT_VALUES(entries->children[1]->children[0], int16_t, 1);
    tfos_row_batch_close(shown.batch);
}

static void a_batch_of_ten_thousand_columns(void **state)
{
    enum { COUNT = 10000, ROWS = 70 };
    struct ArrowSchema *fields = calloc(COUNT, sizeof(*fields)), **children = calloc(COUNT, 8);
    struct ArrowSchema schema = {
        .format = "+s", .name = "", .n_children = COUNT, .children = children};
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        fields[i] = (struct ArrowSchema){.format = i % 2 ? "i" : "u", .name = "column"};
        children[i] = &fields[i];
    }
    open_batch(&shown, &schema);
    for (int i = 0; i < ROWS; i++) {
        struct image row = make_row(COUNT);
        for (int field = 0; field < COUNT; field++) {
            if (field % 2)
                SET(&row, field, int32_t, field + i);
            else
                set_null(&row, field);
        }
        put_text(&row, 0, "text");
        row.data[0] &= 0xFE;
        add_row(&rows, row);
    }
    append_good(&shown, &rows);
    for (int field = 1; field < COUNT; field += 2) {
        const int32_t *values = shown.array->children[field]->buffers[1];
        assert_int_equal(values[0], field);
        assert_int_equal(values[ROWS - 1], field + ROWS - 1);
        assert_int_equal(shown.array->children[field]->null_count, 0);
        assert_int_equal(shown.array->children[field - 1]->null_count, field == 1 ? 0 : ROWS);
    }
    tfos_row_batch_close(shown.batch);
    free(children);
    free(fields);
}

static void a_row_of_100_megabytes(void **state)
{
    enum { COUNT = 100 << 18 };
    struct shown shown = {0};
    struct rows rows = {0};
    struct image row = make_row(2), list = make_array(COUNT, 4);

    (void)state;
    open_batch(&shown, BATCH(NEST("list", "+l", LEAF("element", "f")), LEAF("label", "l")));
    for (int i = 0; i < COUNT; i++)
        SET(&list, i, float, (float)i);
    put_image(&row, 0, list);
    SET(&row, 1, int64_t, 7);
    add_row(&rows, row);
    append_good(&shown, &rows);
    const struct ArrowArray *values = shown.array->children[0]->children[0];
    assert_int_equal(values->length, COUNT);
    for (int i = 0; i < COUNT; i += 1023)
        assert_true(((const float *)values->buffers[1])[i] == (float)i);
    ASSERT_VALUES(shown.array->children[1], int64_t, 7);
    tfos_row_batch_close(shown.batch);
}

// Two rows as Spark 3.5.9 and 4.3.0 had them in memory, with the 4 + 4 bytes of append() before
// each: (7, "gr\u00fc\u00df", [1.5, -2], -12345678901234567890.5, {"k": 1, "kk": null}, {true,
// ["a", null]}, null) and (null, "", [], 0.1, {}, null, 2020-01-02).
static const uint64_t spark_rows[] = {
    256,
    0x40,
    0x7,
    0x4000000006,
    0x4800000018,
    0x6000000009,
    0x7000000050,
    0xc000000040,
    0x0,
    0x9fc3bcc37267,
    0x2,
    0x0,
    0xc00000003fc00000,
    0x93c9d07e60b14ef9,
    0xc7,
    0x30,
    0x2,
    0x0,
    0x2000000001,
    0x2800000002,
    0x6b,
    0x6b6b,
    0x2,
    0x2,
    0x1,
    0x0,
    0x1,
    0x1800000028,
    0x2,
    0x2,
    0x2000000001,
    0x0,
    0x61,
    112,
    0x21,
    0x0,
    0x4000000000,
    0x4000000008,
    0x4800000001,
    0x5800000018,
    0x0,
    0x4757,
    0x0,
    0x1,
    0x0,
    0x8,
    0x0,
    0x0,
};

static void rows_that_spark_wrote(void **state)
{
    struct shown shown = {0};
    struct rows rows = {.data = malloc(sizeof(spark_rows)), .size = sizeof(spark_rows), .count = 2};

    (void)state;
    memcpy(rows.data, spark_rows, sizeof(spark_rows));
    open_batch(
        &shown,
        BATCH(LEAF("n", "l"), LEAF("text", "u"), NEST("list", "+l", LEAF("element", "f")),
              LEAF("big", "d:38,1"), MAP("map", LEAF("key", "u"), LEAF("value", "i")),
              NEST("pair", "+s", LEAF("flag", "b"), NEST("list", "+l", LEAF("element", "u"))),
              LEAF("day", "tdD")));
    append_good(&shown, &rows);
    struct ArrowArray **column = shown.array->children;
    assert_nulls(column[0], ".n");
    ASSERT_VALUES(column[0], int64_t, 7, 0);
    ASSERT_OFFSETS(column[1], 0, 6, 6);
    assert_bytes(column[1], "gr\xc3\xbc\xc3\x9f");
    ASSERT_OFFSETS(column[2], 0, 2, 2);
    ASSERT_VALUES(column[2]->children[0], float, 1.5f, -2);
    // -123456789012345678905 and 1.
    ASSERT_VALUES(column[3], uint64_t, 0x4EB1607ED0C993C7, UINT64_MAX - 6, 1, 0);
    const struct ArrowArray *entries = column[4]->children[0];
    ASSERT_OFFSETS(column[4], 0, 2, 2);
    assert_bytes(entries->children[0], "kkk");
    assert_nulls(entries->children[1], ".n");
    ASSERT_VALUES(entries->children[1], int32_t, 1, 0);
    assert_nulls(column[5], ".n");
    assert_nulls(column[5]->children[0], ".n");
    ASSERT_VALUES(column[5]->children[0], uint8_t, 1);
    ASSERT_OFFSETS(column[5]->children[1], 0, 2, 2);
    assert_nulls(column[5]->children[1]->children[0], ".n");
    assert_bytes(column[5]->children[1]->children[0], "a");
    assert_nulls(column[6], "n.");
    ASSERT_VALUES(column[6], int32_t, 0, 18263);
    tfos_row_batch_close(shown.batch);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(arrays_of_numbers),
    cmocka_unit_test(arrays_of_structs),
    cmocka_unit_test(structs_in_structs),
    cmocka_unit_test(maps),
    cmocka_unit_test(a_batch_of_ten_thousand_columns),
    cmocka_unit_test(a_row_of_100_megabytes),
    cmocka_unit_test(rows_that_spark_wrote),
};

TEST_MAIN(cases)
