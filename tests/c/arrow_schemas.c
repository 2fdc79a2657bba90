// SPDX-License-Identifier: Apache-2.0
// Schemas that own what they are made of: copies, notes, and their form as bytes, whole and
// damaged.
#include "arrow/arrow.h"
#include "base/memory.h"
#include "feed_arrow.h"

static struct tfos_error err;

static const struct shape INT = {"i", NULL, 0};
static const struct shape PAIR[] = {{"u", NULL, 0}, {"+w:2", &INT, 1}};
static const struct shape ENTRY = {"+s", PAIR, 2};
static const struct shape COLUMNS[] = {
    {"tsu:UTC", NULL, 0}, {"+m", &ENTRY, 1}, {"+l", &INT, 1}, {"d:10,2", NULL, 0}};
static const struct shape ROW = {"+s", COLUMNS, 4};

// One pair, key "k", with a NUL in its value.
static const char METADATA[] = "\1\0\0\0"
                               "\1\0\0\0k"
                               "\3\0\0\0a\0b";

static void make_row(struct ArrowSchema *schema)
{
    make_schema(&ROW, "row", schema);
    schema->children[1]->metadata = METADATA;
}

static void a_copy_is_the_same_and_depends_on_nothing(void **state)
{
    struct ArrowSchema schema, copy, again;
    (void)state;

    make_row(&schema);
    assert_done(tfos_arrow_schema_copy(&schema, &copy, &err));
    assert_true(tfos__arrow_schema_equals(&schema, &copy));
    schema.release(&schema);
    assert_done(tfos_arrow_schema_copy(&copy, &again, &err));
    assert_memory_equal(again.children[1]->metadata, METADATA, sizeof(METADATA) - 1);
    assert_int_equal(again.children[1]->flags, copy.children[1]->flags);
    assert_done(tfos__arrow_schema_note(again.children[2], "k", (struct tfos_view){"v", 1}, &err));
    assert_false(tfos__arrow_schema_equals(&again, &copy));
    // A child may be moved away.
    struct ArrowSchema moved = *again.children[1];
    again.children[1]->release = NULL;
    again.release(&again);
    assert_string_equal(moved.children[0]->children[0]->format, "u");
    moved.release(&moved);
    copy.release(&copy);
}

static void notes_are_found_by_their_keys(void **state)
{
    struct ArrowSchema schema;
    char value[8];
    size_t size = 0;
    (void)state;

    assert_done(tfos__arrow_schema_init(&schema, tfos__arrow_type_of(TFOS__ARROW_INT, 16, 0), "c",
                                        0, &err));
    assert_false(tfos_arrow_metadata_find(schema.metadata, "key", value, sizeof(value)));
    assert_done(tfos__arrow_schema_note(&schema, "first", (struct tfos_view){"one", 3}, &err));
    assert_done(tfos__arrow_schema_note(&schema, "second", (struct tfos_view){"a\0b", 3}, &err));
    assert_done(tfos__arrow_schema_note(&schema, "third", (struct tfos_view){NULL, 0}, &err));
    assert_true(tfos_arrow_metadata_find(schema.metadata, "first", value, sizeof(value)));
    assert_string_equal(value, "one");
    assert_memory_equal(tfos_arrow_metadata_get(schema.metadata, "second", &size), "a\0b", 3);
    assert_int_equal(size, 3);
    assert_non_null(tfos_arrow_metadata_get(schema.metadata, "third", &size));
    assert_int_equal(size, 0);
    assert_int_equal(tfos__arrow_metadata_size(schema.metadata, SIZE_MAX), 4 + 16 + 17 + 13);
    for (size_t limit = 0; limit < 50; limit++)
        assert_true(tfos__arrow_metadata_size(schema.metadata, limit) == SIZE_MAX);
    schema.release(&schema);
}

static void metadata_is_found_by_its_key(void **state)
{
    static const char metadata[] = "\2\0\0\0"
                                   "\1\0\0\0k"
                                   "\3\0\0\0one"
                                   "\2\0\0\0kk"
                                   "\0\0\0\0";
    char value[4];

    (void)state;
    assert_true(tfos_arrow_metadata_find(metadata, "k", value, sizeof(value)));
    assert_string_equal(value, "one");
    assert_true(tfos_arrow_metadata_find(metadata, "kk", value, sizeof(value)));
    assert_string_equal(value, "");
    assert_false(tfos_arrow_metadata_find(metadata, "k", value, 3)); // does not fit
    assert_false(tfos_arrow_metadata_find(metadata, "kkk", value, sizeof(value)));
    assert_false(tfos_arrow_metadata_find(NULL, "k", value, sizeof(value)));
}

static void bytes_are_read_as_they_were_written(void **state)
{
    struct ArrowSchema schema, got;
    struct tfos__buffer body = {0};
    (void)state;

    make_row(&schema);
    assert_done(tfos__arrow_schema_encode(&schema, &body, &err));
    assert_done(tfos__arrow_schema_decode(body.data, tfos__buffer_size(&body), &got, &err));
    compare_schema(&schema, &got);
    assert_true(tfos__arrow_schema_equals(&schema, &got));
    got.release(&got);
    schema.release(&schema);
    tfos__buffer_clear(&body);
}

// Cut at any byte they are refused; with any byte changed they are refused, or are another schema.
static void damaged_bytes_are_harmless(void **state)
{
    struct ArrowSchema schema, got;
    struct tfos__buffer body = {0}, again = {0};
    (void)state;

    make_row(&schema);
    assert_done(tfos__arrow_schema_encode(&schema, &body, &err));
    size_t size = tfos__buffer_size(&body);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *bytes = malloc(cut + 1);
        memcpy(bytes, body.data, cut);
        assert_int_equal(tfos__arrow_schema_decode(bytes, cut, &got, &err), TFOS_CORRUPT);
        free(bytes);
    }
    for (size_t place = 0; place < size; place++)
        for (unsigned change = 1; change < 256; change <<= 1) {
            body.data[place] ^= (uint8_t)change;
            if (tfos__arrow_schema_decode(body.data, size, &got, &err) == TFOS_OK) {
                assert_done(tfos__arrow_schema_encode(&got, &again, &err));
                assert_memory_equal(again.data, body.data, size);
                got.release(&got);
            }
            body.data[place] ^= (uint8_t)change;
        }
    schema.release(&schema);
    tfos__buffer_clear(&body);
    tfos__buffer_clear(&again);
}

static void what_has_no_bytes_is_refused(void **state)
{
    struct ArrowSchema child = {.format = "i", .name = "price"}, *children[] = {&child};
    struct ArrowSchema schema = {.format = "+s", .n_children = 1, .children = children};
    struct tfos__buffer body = {0};
    (void)state;

    child.dictionary = &schema;
    assert_int_equal(tfos__arrow_schema_encode(&schema, &body, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "column price: it is encoded by a dictionary"));
    child.dictionary = NULL;
    child.n_children = -1;
    assert_int_equal(tfos__arrow_schema_encode(&schema, &body, &err), TFOS_INVALID);
    schema.format = "i";
    assert_int_equal(tfos__arrow_schema_encode(&schema, &body, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "struct"));
    // Lists of lists without an end.
    child = (struct ArrowSchema){.format = "+l", .name = "deep", .n_children = 1};
    child.children = children;
    schema.format = "+s";
    assert_int_equal(tfos__arrow_schema_encode(&schema, &body, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "column deep: nested deeper"));
    struct ArrowSchema copy = {.format = "untouched"};
    assert_int_equal(tfos_arrow_schema_copy(&schema, &copy, &err), TFOS_UNSUPPORTED);
    assert_string_equal(copy.format, "untouched");
    tfos__buffer_clear(&body);
}

static void nothing_is_left_when_memory_runs_out(void **state)
{
    struct ArrowSchema schema, got;
    struct tfos__buffer body = {0};
    enum tfos_status status = TFOS_NO_MEMORY;
    (void)state;

    make_row(&schema);
    assert_done(tfos__arrow_schema_encode(&schema, &body, &err));
    for (long n = 1; status != TFOS_OK; n++) {
        assert_true(n < 100);
        tfos__memory_fail_at(n);
        status = n % 2 ? tfos_arrow_schema_copy(&schema, &got, &err)
                       : tfos__arrow_schema_decode(body.data, tfos__buffer_size(&body), &got, &err);
        tfos__memory_fail_at(0);
        if (status == TFOS_OK)
            got.release(&got);
        else
            assert_int_equal(status, TFOS_NO_MEMORY);
    }
    schema.release(&schema);
    tfos__buffer_clear(&body);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(a_copy_is_the_same_and_depends_on_nothing),
    cmocka_unit_test(notes_are_found_by_their_keys),
    cmocka_unit_test(metadata_is_found_by_its_key),
    cmocka_unit_test(bytes_are_read_as_they_were_written),
    cmocka_unit_test(damaged_bytes_are_harmless),
    cmocka_unit_test(what_has_no_bytes_is_refused),
    cmocka_unit_test(nothing_is_left_when_memory_runs_out),
};

TEST_MAIN(cases)
