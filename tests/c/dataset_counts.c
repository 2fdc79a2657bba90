// SPDX-License-Identifier: Apache-2.0
// Few values that become more, when lists are filled up, than can be counted.
#include "dataset_fixture.h"

#define LEVELS 7
#define LENGTH 1024

/// One row of lists in lists, each level with one list of so many and otherwise empty ones.
struct nest {
    struct made_column batch, lists[LEVELS], values;
};

static void make_nest(struct nest *nest, int level_count, int64_t length, struct made_column values)
{
    static int32_t outer[2], inner[LENGTH + 1];

    outer[1] = (int32_t)length;
    for (int64_t i = 1; i <= length; i++)
        inner[i] = (int32_t)length;
    nest->values = values;
    nest->values.array.buffers = nest->values.buffers; // which have moved
    for (int i = level_count; i-- > 0;) {
        make_column(&nest->lists[i], i > 0 ? "item" : "x", "+l", i > 0 ? length : 1,
                    i > 0 ? inner : outer, NULL);
        add_child(&nest->lists[i], i + 1 < level_count ? &nest->lists[i + 1] : &nest->values);
    }
    nest->values.schema.name = "item";
    make_batch(&nest->batch, 1);
    add_child(&nest->batch, &nest->lists[0]);
}

static struct made_column numbers(int64_t count)
{
    static const int64_t values[LENGTH];
    struct made_column column;

    make_column(&column, "item", "l", count, values, NULL);
    return column;
}

static void expect_too_many(struct nest *nest, const struct tfos_dataset_column *column)
{
    struct tfos_dataset_options options = {.columns = column, .column_count = 1};

    expect_refusal(&nest->batch, &options,
                   WORDS("column x", "more values than a tensor", "ragged"));
}

// 1,024 to the seventh is 2 to the 70th, whose lowest 64 bits are 0.
static void padded_lists_of_the_longest_of_each_level_are_counted(void **state)
{
    struct tfos_dataset_column column = {.name = "x", .form = TFOS_FORM_PADDED};
    struct nest nest;

    (void)state;
    make_nest(&nest, LEVELS, LENGTH, numbers(LENGTH));
    expect_too_many(&nest, &column);
}

static void padded_lists_of_a_shape_are_counted(void **state)
{
    const int64_t shape[] = {-1, INT64_C(1) << 62};
    struct tfos_dataset_column column = {
        .name = "x", .form = TFOS_FORM_PADDED, .shape = shape, .rank = 2};
    struct nest nest;

    (void)state;
    make_nest(&nest, 2, 8, numbers(8));
    expect_too_many(&nest, &column);
}

static void the_bytes_of_padding_are_counted(void **state)
{
    static const int32_t offsets[9];
    const int64_t shape[] = {-1, INT64_C(1) << 57};
    struct tfos_dataset_column column = {.name = "x",
                                         .form = TFOS_FORM_PADDED,
                                         .shape = shape,
                                         .rank = 2,
                                         .null_value = "a text of 32 bytes, none of them"};
    struct made_column texts;
    struct nest nest;

    (void)state;
    make_text(&texts, "item", "u", 8, offsets, "", NULL);
    make_nest(&nest, 2, 8, texts);
    expect_too_many(&nest, &column);
}

// The same lists are few as they are.
static void ragged_lists_have_no_padding(void **state)
{
    struct tfos_dataset_column column = {.name = "x", .form = TFOS_FORM_RAGGED};
    struct tfos_dataset_options options = {.columns = &column, .column_count = 1};
    struct nest nest;
    struct scene scene;

    (void)state;
    make_nest(&nest, LEVELS, LENGTH, numbers(LENGTH));
    scene_open(&scene, &nest.batch, &options);
    assert_int_equal(scene.tensors[0].shape[0], LENGTH);
    scene_close(&scene);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(padded_lists_of_the_longest_of_each_level_are_counted),
    cmocka_unit_test(padded_lists_of_a_shape_are_counted),
    cmocka_unit_test(the_bytes_of_padding_are_counted),
    cmocka_unit_test(ragged_lists_have_no_padding),
};

TEST_MAIN(cases)
