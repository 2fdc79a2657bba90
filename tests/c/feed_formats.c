// SPDX-License-Identifier: Apache-2.0
// Every supported format makes its way through a body and back, whatever its nulls, offsets and
// nesting.
#include "feed/batch_decoder.h"
#include "feed/batch_encoder.h"
#include "feed_arrow.h"

#define ROUNDS 40

static const struct shape LEAVES[] = {
    {"b", NULL, 0},          {"c", NULL, 0},    {"C", NULL, 0},       {"s", NULL, 0},
    {"S", NULL, 0},          {"i", NULL, 0},    {"I", NULL, 0},       {"l", NULL, 0},
    {"L", NULL, 0},          {"e", NULL, 0},    {"f", NULL, 0},       {"g", NULL, 0},
    {"w:5", NULL, 0},        {"w:0", NULL, 0},  {"tdD", NULL, 0},     {"tdm", NULL, 0},
    {"tts", NULL, 0},        {"ttm", NULL, 0},  {"ttu", NULL, 0},     {"ttn", NULL, 0},
    {"tsu:UTC", NULL, 0},    {"tss:", NULL, 0}, {"u", NULL, 0},       {"U", NULL, 0},
    {"z", NULL, 0},          {"Z", NULL, 0},    {"d:38,10", NULL, 0}, {"d:5,-2,32", NULL, 0},
    {"d:76,0,256", NULL, 0}, {"tDs", NULL, 0},  {"tDu", NULL, 0},     {"tiM", NULL, 0},
};
#define LEAF_COUNT (sizeof(LEAVES) / sizeof(LEAVES[0]))

static int released;

static void count_release(void *holder, uint64_t sequence)
{
    assert_int_equal(sequence, 7);
    free(holder);
    released++;
}

// Sends rows [row, row + rows) through a body, and compares.
static void carry(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t row,
                  int64_t rows)
{
    struct tfos__feed_schema decoded = {0};
    struct tfos__feed_batch_encoder encoder = {0};
    struct ArrowSchema got_schema;
    struct ArrowArray got;
    struct tfos_error err;

    assert_done(tfos__feed_batch_encoder_begin(&encoder, schema, array, &err));
    assert_done(tfos__feed_schema_decode(&decoded, encoder.schema_body.data,
                                         tfos__buffer_size(&encoder.schema_body), &err));
    assert_done(tfos__feed_batch_encoder_measure(&encoder, array, row, rows, &err));
    // Exactly as large as it says, so that the sanitizer sees each byte beyond.
    uint8_t *bytes = NULL;
    assert_int_equal(posix_memalign((void **)&bytes, 64, encoder.body_size), 0);
    memset(bytes, 0xA5, encoder.body_size);
    tfos__feed_batch_encoder_write_body(&encoder, bytes);
    struct tfos__feed_batch_owner owner = {NULL, count_release, bytes, 7};
    assert_done(tfos__feed_batch_decode(&decoded, bytes, encoder.body_size, rows, &owner,
                                        &got_schema, &got, &err));
    compare_schema(schema, &got_schema);
    assert_int_equal(got.length, rows);
    for (int64_t i = 0; i < rows; i++)
        compare_value(schema, array, row + i, &got, i);
    released = 0;
    got.release(&got);
    assert_int_equal(released, 1);
    assert_null(got.release);
    got_schema.release(&got_schema);
    tfos__feed_schema_clear(&decoded);
    tfos__feed_batch_encoder_clear(&encoder);
}

static void carry_shape(const struct shape *root)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct ArrowSchema schema;
        struct ArrowArray array;
        int64_t length = (int64_t)random_below(round % 4 == 0 ? 3 : 200);
        make_schema(root, "root", &schema);
        make_array(root, length, &array);
        carry(&schema, &array, 0, length);
        int64_t row = (int64_t)random_below((uint64_t)length + 1);
        carry(&schema, &array, row, (int64_t)random_below((uint64_t)(length - row) + 1));
        array.release(&array);
        schema.release(&schema);
    }
}

static void flat_columns(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEAF_COUNT; i++) {
        struct shape root = {"+s", &LEAVES[i], 1};
        carry_shape(&root);
    }
    struct shape all = {"+s", LEAVES, LEAF_COUNT};
    carry_shape(&all);
    struct shape none = {"+s", NULL, 0};
    carry_shape(&none);
}

static void nested_columns(void **state)
{
    static const char *const lists[] = {"+l", "+L", "+w:3", "+w:0", "+m"};

    (void)state;
    for (size_t outer = 0; outer < 5; outer++)
        for (size_t inner = 0; inner < 5; inner++)
            for (size_t leaf = 0; leaf < LEAF_COUNT; leaf += 5) {
                struct shape pair[] = {LEAVES[22], LEAVES[leaf]}, entry = {"+s", pair, 2};
                bool is_map = strcmp(lists[inner], "+m") == 0;
                struct shape inner_list = {lists[inner], is_map ? &entry : &LEAVES[leaf], 1};
                struct shape members[3] = {inner_list, LEAVES[0], LEAVES[22]};
                struct shape row = {"+s", members, strcmp(lists[outer], "+m") == 0 ? 2 : 3};
                struct shape outer_list = {lists[outer], &row, 1};
                struct shape root = {"+s", &outer_list, 1};
                carry_shape(&root);
            }
}

static void metadata_travels_unchanged(void **state)
{
    // One pair: key "k", value of 3 bytes with a NUL within.
    static const char metadata[] = "\1\0\0\0"
                                   "\1\0\0\0k"
                                   "\3\0\0\0a\0b";
    struct ArrowSchema child = {.format = "l", .name = "n", .metadata = metadata};
    struct ArrowSchema *children[] = {&child};
    struct ArrowSchema schema = {
        .format = "+s", .metadata = metadata, .n_children = 1, .children = children};
    struct tfos__buffer body = {0};
    struct tfos__feed_schema decoded = {0};
    struct ArrowSchema got;
    struct tfos_error err;

    (void)state;
    assert_done(tfos__arrow_schema_encode(&schema, &body, &err));
    assert_done(tfos__feed_schema_decode(&decoded, body.data, tfos__buffer_size(&body), &err));
    assert_done(tfos_arrow_schema_copy(&decoded.tree, &got, &err));
    assert_memory_equal(got.metadata, metadata, sizeof(metadata) - 1);
    assert_memory_equal(got.children[0]->metadata, metadata, sizeof(metadata) - 1);
    assert_string_equal(got.name, "");
    got.release(&got);
    tfos__feed_schema_clear(&decoded);
    tfos__buffer_clear(&body);
}

static void expect_invalid(const struct ArrowSchema *schema, const char *words)
{
    struct tfos__buffer body = {0};
    struct tfos__feed_schema decoded = {0};
    struct tfos_error err;

    enum tfos_status status = tfos__arrow_schema_encode(schema, &body, &err);
    if (status == TFOS_OK)
        status = tfos__feed_schema_decode(&decoded, body.data, tfos__buffer_size(&body), &err);
    assert_true(status == TFOS_INVALID || status == TFOS_UNSUPPORTED || status == TFOS_CORRUPT);
    assert_non_null(strstr(err.message, words));
    assert_int_equal(decoded.field_count, 0);
    tfos__buffer_clear(&body);
}

static void unsupported_columns_are_named(void **state)
{
    static const char *const formats[] = {
        "n",     "d:10", "vu",   "d:10,2,24",     "d:,2", "d:10,x", "d:10,2,", "+m", "+r",
        "+ud:0", "w:",   "w:-1", "w:99999999999", "tsx:", "ts",     "bb",      ""};
    struct ArrowSchema child = {.name = "price"};
    struct ArrowSchema *children[] = {&child};
    struct ArrowSchema schema = {.format = "+s", .n_children = 1, .children = children};

    (void)state;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        child.format = formats[i];
        expect_invalid(&schema, "price");
    }
    child.format = "i";
    child.dictionary = &schema;
    expect_invalid(&schema, "dictionary");
    child.dictionary = NULL;
    child.format = "+l"; // a list without a child
    expect_invalid(&schema, "price");
    schema.format = "l";
    expect_invalid(&schema, "struct");
}

static void arrays_that_do_not_fit_are_refused(void **state)
{
    struct shape root = {"+s", LEAVES, 4};
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct tfos__feed_batch_encoder encoder = {0};
    struct tfos_error err;

    (void)state;
    make_schema(&root, "root", &schema);
    make_array(&root, 10, &array);
    assert_done(tfos__feed_batch_encoder_begin(&encoder, &schema, &array, &err));
    array.children[1]->n_buffers = 3;
    assert_int_equal(tfos__feed_batch_encoder_measure(&encoder, &array, 0, 10, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "root.1"));
    array.children[1]->n_buffers = 2;
    array.children[2]->length = array.offset + 9;
    assert_int_equal(tfos__feed_batch_encoder_measure(&encoder, &array, 0, 10, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "root.2"));
    array.children[2]->length = array.offset + 10;
    const void *values = array.children[3]->buffers[1];
    array.children[3]->buffers[1] = NULL;
    assert_int_equal(tfos__feed_batch_encoder_measure(&encoder, &array, 0, 10, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "root.3"));
    array.children[3]->buffers[1] = values;
    array.n_children = 3;
    assert_int_equal(tfos__feed_batch_encoder_measure(&encoder, &array, 0, 10, &err), TFOS_INVALID);
    array.n_children = 4;
    assert_done(tfos__feed_batch_encoder_measure(&encoder, &array, 0, 10, &err));
    array.release(&array);
    schema.release(&schema);
    tfos__feed_batch_encoder_clear(&encoder);
}

// A body and a schema cut at any byte, and with any byte changed, are refused or read within their
// bounds.
static void damaged_bodies_are_harmless(void **state)
{
    static const struct shape members[] = {
        {"u", NULL, 0}, {"+l", &LEAVES[7], 1}, {"b", NULL, 0}, {"+w:2", &LEAVES[5], 1}};
    struct shape root = {"+s", members, 4};
    struct ArrowSchema schema, got_schema;
    struct ArrowArray array, got;
    struct tfos__feed_schema decoded = {0}, damaged = {0};
    struct tfos__feed_batch_encoder encoder = {0};
    struct tfos_error err;

    (void)state;
    make_schema(&root, "root", &schema);
    make_array(&root, 9, &array);
    assert_done(tfos__feed_batch_encoder_begin(&encoder, &schema, &array, &err));
    const uint8_t *body = encoder.schema_body.data;
    size_t schema_size = tfos__buffer_size(&encoder.schema_body);
    assert_done(tfos__feed_schema_decode(&decoded, body, schema_size, &err));
    for (size_t size = 0; size < schema_size; size++)
        assert_int_not_equal(tfos__feed_schema_decode(&damaged, body, size, &err), TFOS_OK);
    assert_done(tfos__feed_batch_encoder_measure(&encoder, &array, 0, 9, &err));
    uint8_t *whole = NULL;
    assert_int_equal(posix_memalign((void **)&whole, 64, encoder.body_size), 0);
    tfos__feed_batch_encoder_write_body(&encoder, whole);
    for (size_t i = 0; i < encoder.body_size * 2; i++) {
        // Cuts first, then changes.
        size_t size = i < encoder.body_size ? i : encoder.body_size;
        uint8_t *bytes = NULL;
        assert_int_equal(posix_memalign((void **)&bytes, 64, size + 1), 0);
        memcpy(bytes, whole, size);
        if (i >= encoder.body_size)
            bytes[i - encoder.body_size] ^= (uint8_t)(1 + random_below(255));
        struct tfos__feed_batch_owner owner = {NULL, count_release, bytes, 7};
        if (tfos__feed_batch_decode(&decoded, bytes, size, 9, &owner, &got_schema, &got, &err) !=
            TFOS_OK)
            continue;
        for (int64_t row = 0; row < 9; row++)
            compare_value(&schema, &got, row, &got, row);
        got_schema.release(&got_schema);
        got.release(&got);
    }
    free(whole);
    array.release(&array);
    schema.release(&schema);
    tfos__feed_schema_clear(&decoded);
    tfos__feed_batch_encoder_clear(&encoder);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(flat_columns),
    cmocka_unit_test(nested_columns),
    cmocka_unit_test(metadata_travels_unchanged),
    cmocka_unit_test(unsupported_columns_are_named),
    cmocka_unit_test(arrays_that_do_not_fit_are_refused),
    cmocka_unit_test(damaged_bodies_are_harmless),
};

TEST_MAIN(cases)
