// SPDX-License-Identifier: Apache-2.0
// Columns that grow: values of every type come out as they went in, whatever their nulls, offsets
// and nesting, whether the arrays are shown or taken, and after values were taken back.
#include <math.h>

#include "arrow/arrow.h"
#include "base/memory.h"
#include "feed_arrow.h"

#define ROUNDS 30

static struct tfos_error err;

static const struct shape LEAVES[] = {
    {"b", NULL, 0}, {"c", NULL, 0},   {"S", NULL, 0},       {"f", NULL, 0},
    {"l", NULL, 0}, {"w:5", NULL, 0}, {"w:0", NULL, 0},     {"u", NULL, 0},
    {"Z", NULL, 0}, {"tdD", NULL, 0}, {"tsu:UTC", NULL, 0}, {"d:38,10", NULL, 0},
};
#define LEAF_COUNT (sizeof(LEAVES) / sizeof(LEAVES[0]))

// Some rows of `array`, in three spans, taken and shown.
static void copy_spans(const struct ArrowSchema *schema, const struct ArrowArray *array)
{
    struct tfos__arrow_span spans[3];
    struct ArrowArray taken;
    struct tfos__arrow_builder builder = {0};
    int64_t position = 0;

    assert_done(tfos__arrow_builder_init(&builder, schema, &err));
    for (int i = 0; i < 3; i++) {
        spans[i].first = (int64_t)random_below((uint64_t)array->length + 1);
        spans[i].count = (int64_t)random_below((uint64_t)(array->length - spans[i].first) + 1);
        assert_done(
            tfos__arrow_builder_append_span(&builder, array, spans[i].first, spans[i].count, &err));
    }
    assert_done(tfos__arrow_array_extract(schema, array, spans, 3, &taken, &err));
    assert_done(tfos__arrow_builder_show(&builder, &err));
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < spans[i].count; k++, position++) {
            compare_value(schema, array, spans[i].first + k, &taken, position);
            compare_value(schema, array, spans[i].first + k, &builder.array, position);
        }
    assert_int_equal(taken.length, position);
    assert_int_equal(builder.array.length, position);
    // A child may be moved away.
    struct ArrowArray moved = *taken.children[0];
    taken.children[0]->release = NULL;
    taken.release(&taken);
    assert_null(taken.release);
    if (spans[0].count > 0)
        compare_value(schema->children[0], array->children[0], array->offset + spans[0].first,
                      &moved, 0);
    moved.release(&moved);
    // What is taken back was never there.
    int64_t kept = (int64_t)random_below((uint64_t)spans[0].count + 1);
    tfos__arrow_builder_truncate(&builder, kept);
    assert_done(tfos__arrow_builder_append_span(&builder, array, 0, array->length, &err));
    assert_done(tfos__arrow_builder_show(&builder, &err));
    for (int64_t k = 0; k < kept; k++)
        compare_value(schema, array, spans[0].first + k, &builder.array, k);
    for (int64_t k = 0; k < array->length; k++)
        compare_value(schema, array, k, &builder.array, kept + k);
    tfos__arrow_builder_clear(&builder);
}

static void copy_shape(const struct shape *root)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct ArrowSchema schema;
        struct ArrowArray array;
        make_schema(root, "root", &schema);
        make_array(root, (int64_t)random_below(round % 4 == 0 ? 3 : 150), &array);
        copy_spans(&schema, &array);
        array.release(&array);
        schema.release(&schema);
    }
}

static void flat_columns_are_copied(void **state)
{
    const struct shape all = {"+s", LEAVES, LEAF_COUNT};
    (void)state;
    copy_shape(&all);
}

static void nested_columns_are_copied(void **state)
{
    static const char *const lists[] = {"+l", "+L", "+w:3", "+w:0"};
    (void)state;

    for (size_t outer = 0; outer < 4; outer++)
        for (size_t inner = 0; inner < 4; inner++)
            for (size_t leaf = 0; leaf < LEAF_COUNT; leaf += 3) {
                const struct shape inner_list = {lists[inner], &LEAVES[leaf], 1};
                const struct shape members[] = {inner_list, LEAVES[0], LEAVES[7]};
                const struct shape row = {"+s", members, 3};
                const struct shape outer_list = {lists[outer], &row, 1};
                const struct shape root = {"+s", &outer_list, 1};
                copy_shape(&root);
            }
}

static void give_type(struct tfos__arrow_builder *builder, enum tfos__arrow_kind kind, int width,
                      int64_t child_count)
{
    assert_done(
        tfos__arrow_builder_adopt(builder, tfos__arrow_type_of(kind, width, 0), child_count, &err));
}

// Every n-th of 1000 values is null, for several n, and the last ones are not.
static void nulls_are_where_they_were_marked(void **state)
{
    static const int64_t steps[] = {1, 2, 3, 63, 64, 65, 700, 2000};
    (void)state;

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct tfos__arrow_builder builder = {0};
        give_type(&builder, TFOS__ARROW_INT, 16, 0);
        for (int64_t k = 0; k < 1000; k++) {
            if (k > 0 && k % steps[i] == 0 && k < 950) {
                assert_done(tfos__arrow_builder_append_null(&builder, &err));
                continue;
            }
            assert_done(tfos__arrow_builder_reserve(&builder, 1, &err));
            *(int16_t *)tfos__arrow_builder_end(&builder) = (int16_t)k;
            builder.length++;
        }
        assert_done(tfos__arrow_builder_show(&builder, &err));
        int64_t null_count = 0;
        for (int64_t k = 0; k < 1000; k++) {
            bool is_null = k > 0 && k % steps[i] == 0 && k < 950;
            assert_int_equal(tfos__arrow_is_null(&builder.array, k), is_null);
            assert_int_equal(tfos__arrow_integer(&builder.type, &builder.array, k),
                             is_null ? 0 : k);
            null_count += is_null;
        }
        assert_int_equal(builder.array.null_count, null_count);
        assert_int_equal(builder.array.buffers[0] != NULL, null_count > 0);
        tfos__arrow_builder_truncate(&builder, 500);
        assert_int_equal(builder.null_count, (499 / steps[i]));
        tfos__arrow_builder_clear(&builder);
    }
}

// What one value after the other says of runs, words of bits say too.
static void runs_of_nulls_are_found(void **state)
{
    const struct shape leaf = {"c", NULL, 0};
    (void)state;

    for (int round = 0; round < 200; round++) {
        struct ArrowArray array;
        make_array(&leaf, 1 + (int64_t)random_below(300), &array);
        uint8_t *bits = (uint8_t *)(uintptr_t)array.buffers[0];
        int64_t filled = bits ? (array.offset + array.length) / 8 : 0;
        for (int64_t i = 0; i < filled; i++)
            bits[i] = random_below(3) ? (uint8_t)-random_below(2) : bits[i];
        int64_t index = (int64_t)random_below((uint64_t)array.length);
        int64_t count = 1 + (int64_t)random_below((uint64_t)(array.length - index));
        int64_t run = 1, null = -1;
        bool found = false;
        while (run < count && is_null(&array, index + run) == is_null(&array, index))
            run++;
        for (int64_t i = index; i < index + count && null < 0; i++)
            null = is_null(&array, i) ? i : -1;
        assert_int_equal(tfos__arrow_run(&array, index, count, &found), run);
        assert_int_equal(found, is_null(&array, index));
        assert_int_equal(tfos__arrow_find_null(&array, index, count), null);
        array.release(&array);
    }
}

static void numbers_are_read_in_every_width(void **state)
{
    static const int8_t bytes[] = {0, -1, -128, 127};
    static const int16_t halves[] = {0x3C00, (int16_t)0xC500, 0x7C00, 1};
    static const double reals[] = {1, -5, (double)INFINITY, 0x1p-24};
    const void *buffers[2] = {0};
    const struct ArrowArray array = {.length = 3, .offset = 1, .n_buffers = 2, .buffers = buffers};
    (void)state;

    buffers[1] = bytes;
    struct tfos__arrow_type type = tfos__arrow_type_of(TFOS__ARROW_INT, 8, 0);
    assert_int_equal(tfos__arrow_integer(&type, &array, 1), -128);
    type = tfos__arrow_type_of(TFOS__ARROW_UINT, 8, 0);
    assert_int_equal(tfos__arrow_integer(&type, &array, 0), 255);
    type = tfos__arrow_type_of(TFOS__ARROW_BOOL, 1, 0);
    assert_int_equal(tfos__arrow_integer(&type, &array, 7), 1);
    buffers[1] = halves;
    type = tfos__arrow_type_of(TFOS__ARROW_FLOAT, 16, 0);
    for (int i = 0; i < 4; i++)
        assert_true(tfos__arrow_real(&type, &array, i - 1) == reals[i]);
    type = tfos__arrow_type_of(TFOS__ARROW_INT, 16, 0);
    assert_int_equal(tfos__arrow_integer(&type, &array, 0), (int16_t)0xC500);
    type = tfos__arrow_type_of(TFOS__ARROW_UINT, 16, 0);
    assert_int_equal(tfos__arrow_integer(&type, &array, 0), 0xC500);
}

// The nulls of a column that had no type yet are nulls of the type.
static void a_type_may_come_after_nulls(void **state)
{
    static const enum tfos__arrow_kind kinds[] = {TFOS__ARROW_FLOAT, TFOS__ARROW_TEXT,
                                                  TFOS__ARROW_LIST};
    (void)state;

    for (int i = 0; i < 3; i++) {
        struct tfos__arrow_builder builder = {0};
        for (int k = 0; k < 70; k++)
            assert_done(tfos__arrow_builder_append_null(&builder, &err));
        give_type(&builder, kinds[i], 64, kinds[i] == TFOS__ARROW_LIST);
        assert_done(tfos__arrow_builder_append_zeros(&builder, 1, &err));
        assert_done(tfos__arrow_builder_show(&builder, &err));
        assert_int_equal(builder.array.length, 71);
        assert_int_equal(builder.array.null_count, 70);
        assert_true(tfos__arrow_is_null(&builder.array, 69));
        assert_false(tfos__arrow_is_null(&builder.array, 70));
        if (kinds[i] != TFOS__ARROW_FLOAT)
            assert_int_equal(tfos__arrow_list(&builder.type, &builder.array, 70).count, 0);
        tfos__arrow_builder_clear(&builder);
    }
}

// Values without type take no memory, so that there may be as many as offsets can count.
static void offsets_of_32_bits_have_an_end(void **state)
{
    struct tfos__arrow_builder builder = {0};
    (void)state;

    give_type(&builder, TFOS__ARROW_LIST, 32, 1);
    builder.children[0].length = INT32_MAX;
    assert_done(tfos__arrow_builder_end_list(&builder, &err));
    builder.children[0].length++;
    assert_int_equal(tfos__arrow_builder_end_list(&builder, &err), TFOS_AGAIN);
    assert_int_equal(builder.length, 1);
    tfos__arrow_builder_truncate(&builder, 0);
    assert_int_equal(builder.children[0].length, 0);
    tfos__arrow_builder_clear(&builder);
}

static void nothing_is_left_when_memory_runs_out(void **state)
{
    const struct shape list = {"+l", &LEAVES[7], 1};
    const struct shape members[] = {list, LEAVES[0], LEAVES[3]};
    const struct shape root = {"+s", members, 3};
    struct ArrowSchema schema;
    struct ArrowArray array, taken;
    enum tfos_status status = TFOS_NO_MEMORY;
    (void)state;

    make_schema(&root, "root", &schema);
    make_array(&root, 90, &array);
    const struct tfos__arrow_span span = {3, 80};
    for (long n = 1; status != TFOS_OK; n++) {
        assert_true(n < 100);
        tfos__memory_fail_at(n);
        status = tfos__arrow_array_extract(&schema, &array, &span, 1, &taken, &err);
        tfos__memory_fail_at(0);
        if (status != TFOS_OK)
            assert_int_equal(status, TFOS_NO_MEMORY);
    }
    taken.release(&taken);
    array.release(&array);
    schema.release(&schema);
}

static void types_that_are_unknown_are_named_with_their_column(void **state)
{
    struct ArrowSchema leaf = {.format = "vu", .name = "price"}, *leaves[] = {&leaf};
    struct ArrowSchema list = {.format = "+l", .name = "list", .n_children = 1, .children = leaves};
    struct tfos__arrow_builder builder = {0};
    (void)state;

    assert_int_equal(tfos__arrow_builder_init(&builder, &list, &err), TFOS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "column price: its type, string_view, is not known"));
    tfos__arrow_builder_clear(&builder);
    leaves[0] = &list; // without an end
    assert_int_equal(tfos__arrow_builder_init(&builder, &list, &err), TFOS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "column list: it is nested deeper"));
    tfos__arrow_builder_clear(&builder);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(flat_columns_are_copied),
    cmocka_unit_test(nested_columns_are_copied),
    cmocka_unit_test(nulls_are_where_they_were_marked),
    cmocka_unit_test(runs_of_nulls_are_found),
    cmocka_unit_test(numbers_are_read_in_every_width),
    cmocka_unit_test(a_type_may_come_after_nulls),
    cmocka_unit_test(offsets_of_32_bits_have_an_end),
    cmocka_unit_test(nothing_is_left_when_memory_runs_out),
    cmocka_unit_test(types_that_are_unknown_are_named_with_their_column),
};

TEST_MAIN(cases)
