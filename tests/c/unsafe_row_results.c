// SPDX-License-Identifier: Apache-2.0
// Results as rows of Spark's: numbers of every type as every other, text, arrays of any depth, by
// name and by place; what does not fit, and how it is named; buffers of any size.
#include "unsafe_row_results.h"

#include <math.h>

#include "base/memory.h"

#define REQUIRED(field_name, field_format)                                                         \
    (&(struct ArrowSchema){.format = (field_format), .name = (field_name)})

static struct result a, b, c;

// ---- numbers

/// The column `a` as one of this type.
static const struct ArrowArray *cast(struct taken *taken, const char *format)
{
    open_results(taken, BATCH(LEAF("x", format)));
    return pass_results(taken, "value", (struct result *[]){&a}, 1);
}

static void refuse_cast(const char *format, const char *words)
{
    struct taken taken;

    open_results(&taken, BATCH(LEAF("x", format)));
    refuse_results(&taken, "value", (struct result *[]){&a}, 1, TFOS_INVALID, words);
    close_results(&taken);
}

#define ASSERT_CAST(format, type, ...)                                                             \
    do {                                                                                           \
        struct taken cast_taken;                                                                   \
        const struct ArrowArray *cast_array = cast(&cast_taken, (format));                         \
        ASSERT_VALUES(cast_array, type, __VA_ARGS__);                                              \
        assert_int_equal(cast_array->null_count, 0);                                               \
        close_results(&cast_taken);                                                                \
    } while (0)

static void casts_integers(void **state)
{
    static const char *const formats[] = {"c", "s", "i", "l"};
    static const int8_t bytes[] = {-128, 0, 127};
    static const int16_t shorts[] = {-128, 0, 127};
    static const int32_t ints[] = {-128, 0, 127};
    static const int64_t longs[] = {-128, 0, 127};
    static const void *const values[] = {bytes, shorts, ints, longs};
    (void)state;

    for (size_t i = 0; i < 4; i++) {
        set_result(&a, "", formats[i], "", 3, NULL, values[i], NULL);
        ASSERT_CAST("c", int8_t, -128, 0, 127);
        ASSERT_CAST("s", int16_t, -128, 0, 127);
        ASSERT_CAST("i", int32_t, -128, 0, 127);
        ASSERT_CAST("l", int64_t, -128, 0, 127);
        ASSERT_CAST("f", float, -128, 0, 127);
        ASSERT_CAST("g", double, -128, 0, 127);
        ASSERT_CAST("b", uint8_t, 5);
    }
}

static void casts_unsigned_integers(void **state)
{
    (void)state;
    NUMBERS(&a, "", "C", "scalar u1", uint8_t, 0, 255);
    ASSERT_CAST("s", int16_t, 0, 255);
    refuse_cast("c",
                "uint8 cannot be cast to tinyint without loss: Integer value 255 not in range: "
                "-128 to 127");
    NUMBERS(&a, "", "S", "scalar u2", uint16_t, 0, 65535);
    ASSERT_CAST("i", int32_t, 0, 65535);
    NUMBERS(&a, "", "I", "scalar u4", uint32_t, 0, UINT32_MAX);
    ASSERT_CAST("l", int64_t, 0, UINT32_MAX);
    refuse_cast("i", "Integer value 4294967295 not in range: -2147483648 to 2147483647");
    NUMBERS(&a, "", "L", "scalar u8", uint64_t, 1, INT64_MAX);
    ASSERT_CAST("l", int64_t, 1, INT64_MAX);
    NUMBERS(&a, "", "L", "scalar u8", uint64_t, 1, UINT64_MAX);
    refuse_cast("l", "result column 'x': uint64 cannot be cast to bigint without loss: Integer");
    refuse_cast("g", "uint64 cannot be cast to double");
    ASSERT_CAST("b", uint8_t, 3);
}

static void refuses_integers_out_of_range(void **state)
{
    (void)state;
    NUMBERS(&a, "", "l", "int", int64_t, 0, -129);
    refuse_cast("c", "Integer value -129 not in range: -128 to 127");
    NUMBERS(&a, "", "l", "int", int64_t, 32768, 0);
    refuse_cast("s", "Integer value 32768 not in range: -32768 to 32767");
    NUMBERS(&a, "", "l", "int", int64_t, INT64_C(1) << 40);
    refuse_cast("i", "inference: result column 'x': bigint cannot be cast to int without loss: "
                     "Integer value 1099511627776 not in range: -2147483648 to 2147483647");
    NUMBERS(&a, "", "l", "int", int64_t, 1 << 24, -(1 << 24));
    ASSERT_CAST("f", float, 16777216.0F, -16777216.0F);
    NUMBERS(&a, "", "l", "int", int64_t, (1 << 24) + 1);
    refuse_cast("f", "Integer value 16777217 not in range: -16777216 to 16777216");
    NUMBERS(&a, "", "l", "int", int64_t, -(INT64_C(1) << 53) - 1);
    refuse_cast("g", "not in range: -9007199254740992 to 9007199254740992");
}

static void s95_tells_shortest_decimals(void **state)
{
    static const double numbers[] = {1.1, 0.30000000000000004, 1e300};
    static const char *const words[] = {"1.1 was", "0.30000000000000004 was", "1e+300 was"};
    (void)state;

    for (int i = 0; i < 3; i++) {
        NUMBERS(&a, "", "g", "float", double, numbers[i]);
        refuse_cast("l", words[i]);
    }
}

static void casts_floats(void **state)
{
    (void)state;
    NUMBERS(&a, "", "g", "float", double, -2, 0, 1e15);
    ASSERT_CAST("l", int64_t, -2, 0, INT64_C(1000000000000000));
    ASSERT_CAST("f", float, -2, 0, 1e15F);
    ASSERT_CAST("b", uint8_t, 5);
    NUMBERS(&a, "", "f", "scalar f4", float, 0.5F, -3);
    ASSERT_CAST("g", double, 0.5, -3);
    refuse_cast("i", "float cannot be cast to int without loss: Float value 0.5 was truncated "
                     "converting to int");
    for (int i = 0; i < 4; i++) {
        NUMBERS(&a, "", "g", "float", double,
                (const double[]){(double)NAN, (double)INFINITY, 0x1p63, -0x1p64}[i]);
        refuse_cast("l", "was truncated converting to bigint");
    }
    NUMBERS(&a, "", "g", "float", double, -0x1p63);
    ASSERT_CAST("l", int64_t, INT64_MIN);
    NUMBERS(&a, "", "g", "float", double, 300);
    refuse_cast("c", "Integer value 300 not in range: -128 to 127");
}

static void casts_half_floats(void **state)
{
    (void)state;
    // The largest, the smallest, one without an exponent of its own, minus two, infinity.
    NUMBERS(&a, "", "e", "scalar f2", uint16_t, 0x7BFF, 0x0001, 0x03FF, 0xC000, 0x7C00);
    ASSERT_CAST("f", float, 65504, 0x1p-24F, 0x1.FF8p-15F, -2, INFINITY);
}

static void casts_booleans(void **state)
{
    (void)state;
    NUMBERS(&a, "", "C", "bool", uint8_t, 1, 0, 1);
    ASSERT_CAST("b", uint8_t, 5);
    ASSERT_CAST("i", int32_t, 1, 0, 1);
    ASSERT_CAST("g", double, 1, 0, 1);
    NUMBERS(&a, "", "C", "scalar b1", uint8_t, 1, 0, 1);
    ASSERT_CAST("b", uint8_t, 5);
    set_result(&a, "", "b", "", 3, NULL, &(uint8_t){6}, NULL);
    a.array.offset = 1;
    a.array.length = 2;
    ASSERT_CAST("c", int8_t, 1, 1);
}

/// Of more rows than are written at a time, and behind an offset.
static void casts_many(void **state)
{
    int64_t longs[1000];
    int32_t wanted[1000];
    struct taken taken;
    (void)state;

    for (int i = 0; i < 1000; i++) {
        longs[i] = i * 7 - 1000;
        wanted[i] = i * 7 - 1000;
    }
    set_result(&a, "", "l", "int", 990, NULL, longs, NULL);
    a.array.offset = 10;
    const struct ArrowArray *array = cast(&taken, "i");
    assert_int_equal(array->length, 990);
    assert_values(array, wanted + 10, 990 * sizeof(wanted[0]));
    close_results(&taken);
}

// ---- nulls

static void keeps_nulls(void **state)
{
    struct taken taken;
    (void)state;

    // What lies in the place of a null is not looked at.
    set_result(&a, "", "l", "int", 3, &(uint8_t){5}, (int64_t[]){1, INT64_MAX, 3}, NULL);
    const struct ArrowArray *array = cast(&taken, "c");
    assert_nulls(array, ".n.");
    ASSERT_VALUES(array, int8_t, 1, 0, 3);
    close_results(&taken);
    NUMBERS(&a, "", "C", "null", uint8_t, 0, 0);
    assert_nulls(cast(&taken, "g"), "nn");
    close_results(&taken);
    assert_nulls(cast(&taken, "u"), "nn");
    close_results(&taken);
    open_results(&taken, BATCH(NEST("x", "+l", LEAF("element", "f"))));
    assert_nulls(pass_results(&taken, "value", (struct result *[]){&a}, 1), "nn");
    close_results(&taken);
}

static void refuses_nulls_where_none_may_be(void **state)
{
    struct taken taken;
    (void)state;

    set_result(&a, "", "l", "int", 2, &(uint8_t){1}, (int64_t[]){1, 2}, NULL);
    open_results(&taken, BATCH(REQUIRED("x", "l")));
    refuse_results(&taken, "value", (struct result *[]){&a}, 1, TFOS_INVALID,
                   "result column 'x' has a null, though output_schema says NOT NULL");
    set_result(&a, "", "l", "int", 2, &(uint8_t){3}, (int64_t[]){1, 2}, NULL);
    ASSERT_VALUES(pass_results(&taken, "value", (struct result *[]){&a}, 1), int64_t, 1, 2);
    close_results(&taken);

    set_result(&b, "", "l", "", 2, &(uint8_t){1}, (int64_t[]){1, 2}, NULL);
    nest_result(set_result(&a, "", "+w:2", "", 1, NULL, NULL, NULL), &b);
    open_results(&taken, BATCH(NEST("x", "+l", REQUIRED("element", "l"))));
    refuse_results(&taken, "value", (struct result *[]){&a}, 1, TFOS_INVALID,
                   "array<bigint> cannot be cast to array<bigint> without loss: an element "
                   "is null, though output_schema says that none is");
    close_results(&taken);
}

// ---- text

static void copies_text(void **state)
{
    struct taken taken;
    const struct ArrowArray *array = NULL;
    (void)state;

    set_result(&a, "", "U", "text", 4, &(uint8_t){0xD}, (int64_t[]){0, 3, 3, 3, 13},
               "abc0123456789");
    array = cast(&taken, "u");
    assert_nulls(array, ".n..");
    ASSERT_OFFSETS(array, 0, 3, 3, 3, 13);
    assert_bytes(array, "abc0123456789");
    close_results(&taken);
    set_result(&a, "", "u", "", 2, NULL, (int32_t[]){0, 1, 2}, "xy");
    array = cast(&taken, "z");
    ASSERT_OFFSETS(array, 0, 1, 2);
    assert_bytes(array, "xy");
    close_results(&taken);
}

static void looks_at_bytes_that_become_text(void **state)
{
    struct taken taken;
    (void)state;

    set_result(&a, "", "Z", "bytes", 2, NULL, (int64_t[]){0, 2, 3}, "\xC3\xA4z");
    assert_bytes(cast(&taken, "u"), "\xC3\xA4z");
    close_results(&taken);
    set_result(&a, "", "Z", "bytes", 2, NULL, (int64_t[]){0, 1, 3}, "\xC3\xA4z");
    refuse_cast("u", "binary cannot be cast to string without loss: some bytes are no UTF-8");
}

static void refuses_numbers_as_text(void **state)
{
    (void)state;
    set_result(&a, "", "U", "text", 1, NULL, (int64_t[]){0, 1}, "1");
    refuse_cast("g", "result column 'x': string cannot be cast to double");
    NUMBERS(&a, "", "l", "int", int64_t, 1);
    refuse_cast("u",
                "bigint cannot be cast to string without loss: numbers are read from text, and "
                "written as such, by inference(via=\"arrow\")");
}

// ---- arrays

static void copies_arrays_of_one_length(void **state)
{
    struct taken taken;
    (void)state;

    NUMBERS(&b, "", "f", "", float, 1, 2, 3, 4, 5, 6);
    nest_result(set_result(&a, "", "+w:3", "array f4 3", 2, NULL, NULL, NULL), &b);
    open_results(&taken, BATCH(NEST("x", "+l", LEAF("element", "f"))));
    const struct ArrowArray *array = pass_results(&taken, "value", (struct result *[]){&a}, 1);
    ASSERT_OFFSETS(array, 0, 3, 6);
    ASSERT_VALUES(array->children[0], float, 1, 2, 3, 4, 5, 6);
    close_results(&taken);

    open_results(&taken, BATCH(NEST("x", "+l", LEAF("element", "i"))));
    array = pass_results(&taken, "value", (struct result *[]){&a}, 1);
    ASSERT_VALUES(array->children[0], int32_t, 1, 2, 3, 4, 5, 6);
    close_results(&taken);
}

static void copies_arrays_of_more_dimensions(void **state)
{
    struct taken taken;
    (void)state;

    NUMBERS(&b, "", "s", "", int16_t, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    nest_result(set_result(&a, "", "+w:6", "array i2 3 2", 2, NULL, NULL, NULL), &b);
    open_results(&taken, BATCH(NEST("x", "+l", NEST("element", "+l", LEAF("element", "l")))));
    const struct ArrowArray *array = pass_results(&taken, "value", (struct result *[]){&a}, 1);
    ASSERT_OFFSETS(array, 0, 3, 6);
    ASSERT_OFFSETS(array->children[0], 0, 2, 4, 6, 8, 10, 12);
    ASSERT_VALUES(array->children[0]->children[0], int64_t, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    nest_result(set_result(&a, "", "+w:6", "array i2 3 3", 2, NULL, NULL, NULL), &b);
    assert_int_equal(take_results(&taken, "value", (struct result *[]){&a}, 1), TFOS_CORRUPT);
    nest_result(set_result(&a, "", "+w:6", "array i2 3 x", 2, NULL, NULL, NULL), &b);
    assert_int_equal(take_results(&taken, "value", (struct result *[]){&a}, 1), TFOS_CORRUPT);
    nest_result(set_result(&a, "", "+w:6", "list int 6", 2, NULL, NULL, NULL), &b);
    refuse_results(&taken, "value", (struct result *[]){&a}, 1, TFOS_INVALID,
                   "array<smallint> cannot be cast to array<array<bigint>>");
    close_results(&taken);
}

static void copies_ragged_arrays(void **state)
{
    struct taken taken;
    (void)state;

    NUMBERS(&b, "", "C", "", uint8_t, 1, 0, 1);
    nest_result(
        set_result(&a, "", "+L", "list bool", 4, &(uint8_t){0xB}, (int64_t[]){0, 2, 2, 2, 3}, NULL),
        &b);
    open_results(&taken, BATCH(NEST("x", "+l", LEAF("element", "b"))));
    const struct ArrowArray *array = pass_results(&taken, "value", (struct result *[]){&a}, 1);
    assert_nulls(array, "..n.");
    ASSERT_OFFSETS(array, 0, 2, 2, 2, 3);
    ASSERT_VALUES(array->children[0], uint8_t, 5);
    close_results(&taken);

    set_result(&b, "", "U", "", 3, &(uint8_t){5}, (int64_t[]){0, 1, 1, 4}, "abcd");
    nest_result(set_result(&a, "", "+l", "", 2, NULL, (int32_t[]){0, 1, 3}, NULL), &b);
    open_results(&taken, BATCH(NEST("x", "+l", LEAF("element", "u"))));
    array = pass_results(&taken, "value", (struct result *[]){&a}, 1);
    ASSERT_OFFSETS(array, 0, 1, 3);
    assert_nulls(array->children[0], ".n.");
    assert_bytes(array->children[0], "abcd");
    close_results(&taken);
}

/// A list of several columns is the one value where an array is declared.
static void gathers_lists(void **state)
{
    struct taken taken;
    struct result *columns[] = {&a, &b, &c};
    (void)state;

    NUMBERS(&a, "0", "l", "int", int64_t, 1, 2);
    set_result(&b, "1", "g", "float", 2, &(uint8_t){2}, (double[]){0, 0.5}, NULL);
    NUMBERS(&c, "2", "C", "null", uint8_t, 0, 0);
    open_results(&taken, BATCH(NEST("x", "+l", LEAF("element", "f"))));
    const struct ArrowArray *array = pass_results(&taken, "list", columns, 3);
    ASSERT_OFFSETS(array, 0, 3, 6);
    assert_nulls(array->children[0], ".nn..n");
    ASSERT_VALUES(array->children[0], float, 1, 0, 0, 2, 0.5F, 0);
    close_results(&taken);

    set_result(&a, "0", "U", "text", 1, NULL, (int64_t[]){0, 2}, "ab");
    set_result(&b, "1", "U", "text", 1, NULL, (int64_t[]){0, 1}, "c");
    open_results(&taken, BATCH(NEST("x", "+l", LEAF("element", "u"))));
    array = pass_results(&taken, "tuple", columns, 2);
    ASSERT_OFFSETS(array->children[0], 0, 2, 3);
    assert_bytes(array->children[0], "abc");
    close_results(&taken);
}

/// Lists of lists with nulls among them, as the packer makes them of what fits no other form.
static void reads_nulls_among_lists(void **state)
{
    struct taken taken;
    (void)state;

    // [[1, None], None, []], None, [[0.5]]
    set_result(&c, "item", "g", "", 3, &(uint8_t){5}, (double[]){1, 0, 0.5}, NULL);
    nest_result(
        set_result(&b, "item", "+L", "", 4, &(uint8_t){13}, (int64_t[]){0, 2, 2, 2, 3}, NULL), &c);
    nest_result(set_result(&a, "x", "+L", "", 3, &(uint8_t){5}, (int64_t[]){0, 3, 3, 4}, NULL), &b);
    open_results(&taken, BATCH(NEST("x", "+l", NEST("element", "+l", LEAF("element", "f")))));
    const struct ArrowArray *array = pass_results(&taken, "value", (struct result *[]){&a}, 1);
    assert_nulls(array, ".n.");
    ASSERT_OFFSETS(array, 0, 3, 3, 4);
    assert_nulls(array->children[0], ".n..");
    ASSERT_OFFSETS(array->children[0], 0, 2, 2, 2, 3);
    assert_nulls(array->children[0]->children[0], ".n.");
    ASSERT_VALUES(array->children[0]->children[0], float, 1, 0, 0.5F);
    close_results(&taken);

    // [None], []: of a type that nothing says
    set_result(&b, "item", "C", "null", 1, &(uint8_t){0}, (uint8_t[]){0}, NULL);
    nest_result(set_result(&a, "x", "+L", "", 2, NULL, (int64_t[]){0, 1, 1}, NULL), &b);
    open_results(&taken, BATCH(NEST("x", "+l", LEAF("element", "u"))));
    array = pass_results(&taken, "value", (struct result *[]){&a}, 1);
    ASSERT_OFFSETS(array, 0, 1, 1);
    assert_nulls(array->children[0], "n");
    close_results(&taken);
}

// ---- columns

static void finds_columns_by_name(void **state)
{
    struct taken taken;
    (void)state;

    NUMBERS(&a, "y", "l", "int", int64_t, 1);
    NUMBERS(&b, "x", "g", "float", double, 2);
    open_results(&taken, BATCH(LEAF("x", "g"), LEAF("y", "i")));
    const struct ArrowArray *x = pass_results(&taken, "dict", (struct result *[]){&a, &b}, 2);
    ASSERT_VALUES(x, double, 2);
    ASSERT_VALUES(taken.shown.array->children[1], int32_t, 1);
    refuse_results(&taken, "row", (struct result *[]){&b}, 1, TFOS_INVALID,
                   "a result has no column 'y', which output_schema has; it has 'x'");
    c = a;
    c.schema.name = "z";
    refuse_results(&taken, "row", (struct result *[]){&a, &b, &c}, 3, TFOS_INVALID,
                   "a result has a column 'z', which output_schema has not; that has 'x', 'y'");
    refuse_results(&taken, "value", (struct result *[]){&a}, 1, TFOS_INVALID,
                   "a result has 1 columns, output_schema 2: 'x', 'y'");
    ASSERT_VALUES(taken.shown.array->children[0], double, 2);
    close_results(&taken);
}

static void refuses_what_only_python_reads(void **state)
{
    struct taken taken;
    (void)state;

    set_result(&a, "x", "Z", "pickle", 1, NULL, (int64_t[]){0, 1}, "N");
    open_results(&taken, BATCH(LEAF("x", "l")));
    refuse_results(&taken, "dict", (struct result *[]){&a}, 1, TFOS_UNSUPPORTED,
                   "result column 'x': its values are objects that only Python can read");
    refuse_results(&taken, "value", (struct result *[]){&a}, 1, TFOS_UNSUPPORTED,
                   "use inference(via=\"arrow\")");
    NUMBERS(&b, "x", "w:8", "scalar c8", uint64_t, 1);
    refuse_results(&taken, "value", (struct result *[]){&b}, 1, TFOS_INVALID,
                   "complex numbers cannot be cast: Spark has none");
    NUMBERS(&b, "x", "tdD", "", int32_t, 1);
    refuse_results(&taken, "value", (struct result *[]){&b}, 1, TFOS_UNSUPPORTED,
                   "values of such a type are not read here");
    close_results(&taken);
    open_results(&taken, BATCH(LEAF("x", "l"), LEAF("y", "l")));
    refuse_results(&taken, "value", (struct result *[]){&a}, 1, TFOS_UNSUPPORTED,
                   "results are objects that only Python can read");
    close_results(&taken);
}

static void refuses_declared_types(void **state)
{
    struct tfos_result_rows *rows = NULL;
    static const char *const types[][2] = {{"tdD", "date"},           {"tsu:UTC", "timestamp"},
                                           {"d:5,2", "decimal(5,2)"}, {"tin", "interval"},
                                           {"ttn", "time"},           {"vu", "string"}};
    struct tfos_error err = {0};
    (void)state;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        assert_int_equal(tfos_result_rows_open(BATCH(LEAF("x", types[i][0])), &rows, &err),
                         TFOS_UNSUPPORTED);
        assert_non_null(strstr(err.message, "column 'x'"));
        assert_non_null(strstr(err.message, types[i][1]));
        assert_null(strstr(err.message, types[i][0])); // s95: no format strings for users
    }
    assert_int_equal(tfos_result_rows_open(BATCH(NEST("x", "+s", LEAF("y", "l"))), &rows, &err),
                     TFOS_UNSUPPORTED);
    assert_null(rows);
}

// ---- buffers

static void fills_buffers_of_any_size(void **state)
{
    struct taken taken;
    int64_t ids[200], ends[201];
    char text[200 * 12 + 1];
    (void)state;

    ends[0] = 0;
    for (int i = 0; i < 200; i++) {
        ids[i] = i;
        ends[i + 1] = ends[i] + sprintf(text + ends[i], "%d%.*s", i, i % 9, "xxxxxxxxx");
    }
    set_result(&a, "0", "l", "int", 200, NULL, ids, NULL);
    set_result(&b, "1", "U", "text", 200, NULL, ends, text);
    for (int64_t capacity = 0; capacity < 4096; capacity = capacity * 2 + 24) {
        open_results(&taken, BATCH(LEAF("id", "l"), LEAF("text", "u")));
        assert_int_equal(take_results(&taken, "tuple", (struct result *[]){&a, &b}, 2), TFOS_OK);
        assert_int_equal(read_results(&taken, capacity), TFOS_OK);
        assert_int_equal(taken.shown.array->length, 200);
        assert_values(taken.shown.array->children[0], ids, sizeof(ids));
        assert_bytes(taken.shown.array->children[1], text);
        close_results(&taken);
    }
}

static void writes_many_columns(void **state)
{
    struct ArrowSchema fields[130], *children[130];
    struct ArrowSchema declared = {
        .format = "+s", .name = "", .n_children = 130, .children = children};
    struct ArrowArray *arrays[130];
    struct ArrowSchema schema = declared;
    struct ArrowArray array = {.length = 1, .n_buffers = 1, .n_children = 130, .children = arrays};
    const void *buffers[1] = {NULL};
    struct taken taken;
    (void)state;

    set_result(&a, "", "i", "int", 1, NULL, (int32_t[]){7}, NULL);
    NUMBERS(&b, "", "C", "null", uint8_t, 0);
    struct ArrowSchema *given[130];
    for (int i = 0; i < 130; i++) {
        fields[i] = (struct ArrowSchema){.format = "l", .name = "x", .flags = ARROW_FLAG_NULLABLE};
        children[i] = &fields[i];
        given[i] = i % 3 ? &a.schema : &b.schema;
        arrays[i] = i % 3 ? &a.array : &b.array;
    }
    open_results(&taken, &declared);
    taken.note = make_note("tfos.row", "tuple");
    schema.metadata = taken.note.bytes;
    schema.children = given;
    schema.release = release_result_schema;
    array.buffers = buffers;
    array.release = release_result_array;
    assert_int_equal(tfos_result_rows_take(taken.rows, &schema, &array, &taken.err), TFOS_OK);
    assert_int_equal(read_results(&taken, 1 << 12), TFOS_OK);
    for (int i = 0; i < 130; i++) {
        assert_nulls(taken.shown.array->children[i], i % 3 ? "." : "n");
        ASSERT_VALUES(taken.shown.array->children[i], int64_t, i % 3 ? 7 : 0);
    }
    close_results(&taken);
}

static void survives_lack_of_memory(void **state)
{
    const struct ArrowSchema *schema = BATCH(LEAF("x", "l"), NEST("y", "+l", LEAF("element", "g")));
    enum tfos_status status = TFOS_NO_MEMORY;
    struct tfos_error err = {0};
    (void)state;

    for (long n = 1; status != TFOS_OK; n++) {
        struct tfos_result_rows *rows = NULL;
        tfos__memory_fail_at(n);
        status = tfos_result_rows_open(schema, &rows, &err);
        tfos__memory_fail_at(0);
        assert_true(status == TFOS_OK || status == TFOS_NO_MEMORY);
        tfos_result_rows_close(rows);
    }
    struct taken taken;
    NUMBERS(&a, "", "l", "int", int64_t, 1);
    open_results(&taken, BATCH(LEAF("x", "l")));
    tfos__memory_fail_at(1);
    refuse_results(&taken, "value", (struct result *[]){&a}, 1, TFOS_NO_MEMORY, "no memory");
    tfos__memory_fail_at(0);
    ASSERT_VALUES(pass_results(&taken, "value", (struct result *[]){&a}, 1), int64_t, 1);
    close_results(&taken);
    tfos_result_rows_close(NULL);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(casts_integers),
    cmocka_unit_test(casts_unsigned_integers),
    cmocka_unit_test(refuses_integers_out_of_range),
    cmocka_unit_test(s95_tells_shortest_decimals),
    cmocka_unit_test(casts_floats),
    cmocka_unit_test(casts_half_floats),
    cmocka_unit_test(casts_booleans),
    cmocka_unit_test(casts_many),
    cmocka_unit_test(keeps_nulls),
    cmocka_unit_test(refuses_nulls_where_none_may_be),
    cmocka_unit_test(copies_text),
    cmocka_unit_test(looks_at_bytes_that_become_text),
    cmocka_unit_test(refuses_numbers_as_text),
    cmocka_unit_test(copies_arrays_of_one_length),
    cmocka_unit_test(copies_arrays_of_more_dimensions),
    cmocka_unit_test(copies_ragged_arrays),
    cmocka_unit_test(gathers_lists),
    cmocka_unit_test(reads_nulls_among_lists),
    cmocka_unit_test(finds_columns_by_name),
    cmocka_unit_test(refuses_what_only_python_reads),
    cmocka_unit_test(refuses_declared_types),
    cmocka_unit_test(fills_buffers_of_any_size),
    cmocka_unit_test(writes_many_columns),
    cmocka_unit_test(survives_lack_of_memory),
};

TEST_MAIN(cases)
