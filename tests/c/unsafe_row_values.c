// SPDX-License-Identifier: Apache-2.0
// Every type that a row of Spark's holds, with and without nulls, as Arrow arrays.
#include "unsafe_rows.h"

static void types_of_fixed_size(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    open_batch(&shown,
               BATCH(LEAF("byte", "c"), LEAF("short", "s"), LEAF("int", "i"), LEAF("long", "l"),
                     LEAF("float", "f"), LEAF("double", "g"), LEAF("date", "tdD"),
                     LEAF("timestamp", "tsu:Europe/Berlin"), LEAF("local", "tsu:"),
                     LEAF("months", "tiM"), LEAF("interval", "tDu"), LEAF("time", "ttn")));
    for (int i = 0; i < 3; i++) {
        struct image row = make_row(12);
        SET(&row, 0, int8_t, (int8_t)(-1 - i));
        SET(&row, 1, int16_t, (int16_t)(-1000 - i));
        SET(&row, 2, int32_t, -100000 - i);
        SET(&row, 3, int64_t, INT64_MIN + i);
        SET(&row, 4, float, 0.5f + (float)i);
        SET(&row, 5, double, 0.25 + i);
        SET(&row, 6, int32_t, 19000 + i);
        SET(&row, 7, int64_t, 1700000000000000 + i);
        SET(&row, 8, int64_t, -i);
        SET(&row, 9, int32_t, -13 * i);
        SET(&row, 10, int64_t, 86400000000 * i);
        SET(&row, 11, int64_t, 1000 * i);
        add_row(&rows, row);
    }
    append_good(&shown, &rows);
    struct ArrowArray **column = shown.array->children;
    assert_int_equal(shown.array->length, 3);
    for (int i = 0; i < 12; i++)
        assert_nulls(column[i], "...");
    ASSERT_VALUES(column[0], int8_t, -1, -2, -3);
    ASSERT_VALUES(column[1], int16_t, -1000, -1001, -1002);
    ASSERT_VALUES(column[2], int32_t, -100000, -100001, -100002);
    ASSERT_VALUES(column[3], int64_t, INT64_MIN, INT64_MIN + 1, INT64_MIN + 2);
    ASSERT_VALUES(column[4], float, 0.5f, 1.5f, 2.5f);
    ASSERT_VALUES(column[5], double, 0.25, 1.25, 2.25);
    ASSERT_VALUES(column[6], int32_t, 19000, 19001, 19002);
    ASSERT_VALUES(column[7], int64_t, 1700000000000000, 1700000000000001, 1700000000000002);
    ASSERT_VALUES(column[8], int64_t, 0, -1, -2);
    ASSERT_VALUES(column[9], int32_t, 0, -13, -26);
    ASSERT_VALUES(column[10], int64_t, 0, 86400000000, 172800000000);
    ASSERT_VALUES(column[11], int64_t, 0, 1000, 2000);
    assert_string_equal(shown.schema->children[7]->format, "tsu:Europe/Berlin");
    tfos_row_batch_close(shown.batch);
}

struct calendar_interval {
    int32_t months, days;
    int64_t time; ///< microseconds in Spark, nanoseconds in Arrow
};

static void calendar_intervals_end_with_nanoseconds(void **state)
{
    const struct calendar_interval good[] = {{-14, 3, -7}, {0, 0, 0}, {1, -1, INT64_MAX / 1000}};
    const struct calendar_interval zero = {0, 0, 0}, long_one = {0, 0, INT64_MAX / 1000 + 1};
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    open_batch(&shown, BATCH(LEAF("span", "tin"), NEST("spans", "+l", LEAF("element", "tin"))));
    for (int i = 0; i < 3; i++) {
        struct image row = make_row(2), list = make_array(2, 8);
        if (i == 1)
            set_null(&row, 0);
        else
            put_bytes(&row, 0, &good[i], sizeof(good[i]));
        put_bytes(&list, 0, &good[i], sizeof(good[i]));
        set_null(&list, 1);
        put_image(&row, 1, list);
        add_row(&rows, row);
    }
    append_good(&shown, &rows);
    struct ArrowArray *span = shown.array->children[0], *spans = shown.array->children[1];
    assert_nulls(span, ".n.");
    assert_nulls(spans->children[0], ".n.n.n");
    ASSERT_VALUES(span, struct calendar_interval, {-14, 3, -7000}, zero,
                  {1, -1, INT64_MAX / 1000 * 1000});
    ASSERT_VALUES(spans->children[0], struct calendar_interval, {-14, 3, -7000}, zero, zero, zero,
                  {1, -1, INT64_MAX / 1000 * 1000}, zero);
    for (int is_short = 0; is_short < 2; is_short++) {
        struct image row = make_row(2);
        put_bytes(&row, 0, &long_one, is_short ? 8 : sizeof(long_one));
        set_null(&row, 1);
        add_row(&rows, row);
        assert_int_equal(append_rows(&shown, &rows), is_short ? TFOS_CORRUPT : TFOS_INVALID);
        assert_non_null(strstr(shown.err.message, is_short ? "an interval of 8 bytes"
                                                           : "an interval of 9223372036854776"));
    }
    tfos_row_batch_close(shown.batch);
}

static void booleans_and_nulls_past_a_word(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};
    char pattern[201] = {0};

    (void)state;
    open_batch(&shown, BATCH(LEAF("flag", "b"), LEAF("number", "i"), LEAF("nothing", "n")));
    for (int i = 0; i < 200; i++) {
        struct image row = make_row(3);
        // In four calls, so that steps begin within a word of bits.
        if (i % 50 == 17)
            append_good(&shown, &rows);
        // The null bit counts, not what is left in the slot.
        SET(&row, 0, bool, i % 3 == 0);
        SET(&row, 1, int32_t, i);
        set_null(&row, 2);
        pattern[i] = i >= 70 && i % 7 == 0 ? 'n' : '.';
        if (pattern[i] == 'n')
            set_null(&row, 1);
        add_row(&rows, row);
    }
    append_good(&shown, &rows);
    const uint8_t *bits = shown.array->children[0]->buffers[1];
    const int32_t *numbers = shown.array->children[1]->buffers[1];
    for (int i = 0; i < 200; i++) {
        assert_int_equal(bits[i / 8] >> i % 8 & 1, i % 3 == 0);
        assert_int_equal(numbers[i], pattern[i] == 'n' ? 0 : i);
    }
    assert_nulls(shown.array->children[1], pattern);
    assert_int_equal(shown.array->children[2]->null_count, 200);
    assert_int_equal(shown.array->children[2]->n_buffers, 0);
    tfos_row_batch_close(shown.batch);
}

static void strings_and_binary(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};
    static const char *const texts[] = {"", "gr\xc3\xbc\xc3\x9f", NULL, "twelve bytes", "x"};

    (void)state;
    open_batch(&shown,
               BATCH(LEAF("text", "u"), LEAF("large", "U"), LEAF("bin", "z"), LEAF("blob", "Z")));
    for (int i = 0; i < 5; i++) {
        struct image row = make_row(4);
        for (int field = 0; field < 4; field++) {
            if (texts[i])
                put_text(&row, field, texts[i]);
            else
                set_null(&row, field);
        }
        add_row(&rows, row);
    }
    append_good(&shown, &rows);
    for (int i = 0; i < 4; i++) {
        const struct ArrowArray *column = shown.array->children[i];
        assert_nulls(column, "..n..");
        assert_bytes(column, "gr\xc3\xbc\xc3\x9ftwelve bytesx");
        if (i % 2 == 0)
            ASSERT_OFFSETS(column, 0, 0, 6, 6, 18, 19);
        else
            ASSERT_VALUES(column, int64_t, 0, 0, 6, 6, 18, 19);
    }
    tfos_row_batch_close(shown.batch);
}

// A decimal's low and high half.
#define DECIMAL(low, high) (uint64_t)(low), (uint64_t)(high)

static void decimals(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};
    static const uint8_t minus_two[] = {0xFE}, large[] = {0x00, 0x80, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t least[16] = {0xB4, 0xC4, 0xB3, 0x57, 0xA5, 0x79, 0x3B, 0x85,
                                      0xF6, 0x75, 0xDD, 0xC0, 0x00, 0x00, 0x00, 0x01};

    (void)state;
    open_batch(&shown, BATCH(LEAF("small", "d:18,2"), LEAF("big", "d:38,10,128"),
                             NEST("list", "+l", LEAF("element", "d:10,-2")),
                             NEST("bigs", "+l", LEAF("element", "d:19,0"))));
    for (int i = 0; i < 4; i++) {
        struct image row = make_row(4), list = make_array(2, 8), bigs = make_array(2, 8);
        SET(&row, 0, int64_t, i % 2 ? -123 - i : 123 + i);
        if (i == 0)
            put_bytes(&row, 1, minus_two, 1);
        else if (i == 1)
            put_bytes(&row, 1, large, sizeof(large));
        else if (i == 2)
            put_bytes(&row, 1, least, sizeof(least));
        else // A null keeps its place in the variable part.
            put_bytes(&row, 1, large, 0);
        if (i == 3)
            set_null(&row, 1);
        SET(&list, 0, int64_t, -i);
        set_null(&list, 1);
        set_null(&bigs, 0);
        put_bytes(&bigs, 1, minus_two, 1);
        put_image(&row, 2, list);
        put_image(&row, 3, bigs);
        add_row(&rows, row);
    }
    append_good(&shown, &rows);
    struct ArrowArray **column = shown.array->children;
    ASSERT_VALUES(column[0], uint64_t, DECIMAL(123, 0), DECIMAL(-124, -1), DECIMAL(125, 0),
                  DECIMAL(-126, -1));
    ASSERT_VALUES(column[1], uint64_t, DECIMAL(-2, -1), DECIMAL(INT64_MIN, 0),
                  DECIMAL(0xF675DDC000000001, 0xB4C4B357A5793B85), DECIMAL(0, 0));
    assert_nulls(column[1], "...n");
    ASSERT_VALUES(column[2]->children[0], uint64_t, DECIMAL(0, 0), DECIMAL(0, 0), DECIMAL(-1, -1),
                  DECIMAL(0, 0), DECIMAL(-2, -1));
    assert_nulls(column[2]->children[0], ".n.n.n.n");
    ASSERT_VALUES(column[3]->children[0], uint64_t, DECIMAL(0, 0), DECIMAL(-2, -1));
    assert_nulls(column[3]->children[0], "n.n.n.n.");
    tfos_row_batch_close(shown.batch);
}

static void an_empty_batch(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    open_batch(&shown, BATCH(LEAF("text", "u"), NEST("list", "+L", LEAF("element", "f"))));
    append_good(&shown, &rows);
    assert_int_equal(shown.array->length, 0);
    for (int i = 0; i < 2; i++) {
        assert_nulls(shown.array->children[i], "");
        ASSERT_VALUES(shown.array->children[i], int64_t, 0);
    }
    assert_string_equal(shown.schema->children[1]->children[0]->name, "element");
    assert_int_equal(shown.schema->children[1]->flags, ARROW_FLAG_NULLABLE);
    tfos_row_batch_close(shown.batch);
}

static void rows_without_columns(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};
    struct ArrowSchema schema = {.format = "+s", .name = ""};

    (void)state;
    open_batch(&shown, &schema);
    for (int i = 0; i < 100; i++)
        add_row(&rows, make_row(0));
    append_good(&shown, &rows);
    assert_int_equal(rows_of(shown.batch), 100);
    assert_int_equal(shown.array->length, 100);
    tfos_row_batch_close(shown.batch);
}

static void clearing_forgets_rows_and_nulls(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    open_batch(&shown, BATCH(LEAF("text", "u"), NEST("list", "+l", LEAF("element", "s"))));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 70; i++) {
            struct image row = make_row(2), list = make_array(1, 2);
            put_text(&row, 0, "text");
            if (round == 0 && i == 69)
                set_null(&row, 0);
            SET(&list, 0, int16_t, (int16_t)(100 * round + i));
            put_image(&row, 1, list);
            add_row(&rows, row);
        }
        append_good(&shown, &rows);
        const struct ArrowArray *list = shown.array->children[1];
        assert_int_equal(shown.array->children[0]->null_count, round == 0);
        assert_int_equal(list->children[0]->length, 70);
        assert_int_equal(((const int16_t *)list->children[0]->buffers[1])[69], 100 * round + 69);
        tfos_row_batch_clear(shown.batch);
        assert_int_equal(rows_of(shown.batch), 0);
    }
    tfos_row_batch_close(shown.batch);
}

static void buffers_are_aligned(void **state)
{
    struct shown shown = {0};
    struct rows rows = {0};

    (void)state;
    open_batch(&shown, BATCH(LEAF("a", "l"), LEAF("b", "u"), LEAF("c", "b")));
    for (int i = 0; i < 5000; i++) {
        struct image row = make_row(3);
        put_text(&row, 1, "some text");
        set_null(&row, i % 3);
        add_row(&rows, row);
    }
    append_good(&shown, &rows);
    for (int i = 0; i < 3; i++)
        for (int64_t buffer = 0; buffer < shown.array->children[i]->n_buffers; buffer++)
            assert_int_equal((uintptr_t)shown.array->children[i]->buffers[buffer] % 64, 0);
    tfos_row_batch_close(shown.batch);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(types_of_fixed_size),
    cmocka_unit_test(calendar_intervals_end_with_nanoseconds),
    cmocka_unit_test(booleans_and_nulls_past_a_word),
    cmocka_unit_test(strings_and_binary),
    cmocka_unit_test(decimals),
    cmocka_unit_test(an_empty_batch),
    cmocka_unit_test(rows_without_columns),
    cmocka_unit_test(clearing_forgets_rows_and_nulls),
    cmocka_unit_test(buffers_are_aligned),
};

TEST_MAIN(cases)
