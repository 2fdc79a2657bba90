// SPDX-License-Identifier: Apache-2.0
// A cluster that refuses pickles: neither side writes them, and neither takes them of one that
// does.
#include "feed_task.h"

/// One row with a number and a struct, with metadata for the rows, the number and the struct's
/// member.
struct noted {
    struct test_batch numbers;
    struct ArrowSchema schema, pair, columns[3];
    struct ArrowArray array, pair_array;
    struct ArrowSchema *schema_children[2], *pair_children[1];
    struct ArrowArray *array_children[2], *pair_array_children[1];
    char metadata[3][160];
};

/// Pairs of key and value, ended by NULL; NULL for none.
static const char *write_metadata(char *out, const char *const *pairs)
{
    int32_t count = 0;
    char *end = out + sizeof(count);

    if (!pairs)
        return NULL;
    for (; pairs[2 * count]; count++) {
        for (int i = 0; i < 2; i++) {
            int32_t size = (int32_t)strlen(pairs[2 * count + i]);
            memcpy(end, &size, sizeof(size));
            memcpy(end + sizeof(size), pairs[2 * count + i], (size_t)size);
            end += sizeof(size) + (size_t)size;
        }
    }
    memcpy(out, &count, sizeof(count));
    return out;
}

struct notes {
    const char *const *row, *const *column, *const *member;
};

static void make_noted(struct noted *noted, const struct notes *notes)
{
    memset(noted, 0, sizeof(*noted));
    batch_init(&noted->numbers, 0, 1, 0);
    noted->columns[0] =
        (struct ArrowSchema){.format = "l",
                             .name = "first",
                             .metadata = write_metadata(noted->metadata[1], notes->column)};
    noted->columns[1] =
        (struct ArrowSchema){.format = "l",
                             .name = "member",
                             .metadata = write_metadata(noted->metadata[2], notes->member)};
    noted->pair_children[0] = &noted->columns[1];
    noted->pair = (struct ArrowSchema){
        .format = "+s", .name = "", .n_children = 1, .children = noted->pair_children};
    noted->schema_children[0] = &noted->columns[0];
    noted->schema_children[1] = &noted->pair;
    noted->schema = (struct ArrowSchema){.format = "+s",
                                         .name = "",
                                         .metadata = write_metadata(noted->metadata[0], notes->row),
                                         .n_children = 2,
                                         .children = noted->schema_children};
    noted->pair_array_children[0] = &noted->numbers.columns[0];
    noted->pair_array = noted->numbers.array;
    noted->pair_array.children = noted->pair_array_children;
    noted->array_children[0] = &noted->numbers.columns[0];
    noted->array_children[1] = &noted->pair_array;
    noted->array = noted->numbers.array;
    noted->array.n_children = 2;
    noted->array.children = noted->array_children;
}

#define PAIRS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/// What is refused, with what of the message says which.
static const struct {
    struct notes notes;
    const char *words[2];
} refused[] = {
    {{NULL, PAIRS("tfos.value", "pickle"), NULL}, {"column first", "\"pickle\""}},
    {{NULL, NULL, PAIRS("tfos.value", "pickle")}, {"column 1", "\"pickle\""}},
    {{NULL, PAIRS("tfos.value", "int", "tfos.value", "pickle"), NULL}, {"column first", "pickle"}},
    {{NULL, PAIRS("tfos.value", "pickle", "tfos.value", "int"), NULL}, {"column first", "pickle"}},
    {{NULL, PAIRS("tfos.value", "pickle of a long name"), NULL}, {"column first", "pickle of a"}},
    {{NULL, PAIRS("tfos.value", "later"), NULL}, {"column first", "\"later\""}},
    {{PAIRS("tfos.row", "later"), NULL, NULL}, {"rows", "\"later\""}},
};

static const struct notes allowed[] = {
    {NULL, NULL, NULL},
    {PAIRS("tfos.row", "tuple"), PAIRS("tfos.value", "int"), PAIRS("other", "pickle")},
    {PAIRS("tfos.row", "row"), PAIRS("tfos.value", "scalar i8"), PAIRS("tfos.value", "null")},
};

struct pickled_case {
    bool is_remote, writer_refuses, reader_refuses;
};

static struct tfos__feed_writer *open_writer(struct node *node, const struct pickled_case *way)
{
    struct writer_options options = writer_options(node, 0);
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    if (way->is_remote) {
        options.target.socket_name = NULL;
        options.target.address = node->address;
    }
    options.feeder.has_results = true;
    options.feeder.refuses_pickles = way->writer_refuses;
    assert_done(writer_open(&options, &writer, &err));
    return writer;
}

static void start_node(struct node *node, const struct pickled_case *way)
{
    node_open(node, 0);
    if (way->reader_refuses)
        tfos__feed_reader_refuse_pickles(node->reader);
    node_start(node);
}

static void expect_refusal(enum tfos_status status, const struct tfos_error *err, size_t which)
{
    assert_int_equal(status, TFOS_UNSUPPORTED);
    for (int i = 0; i < 2; i++)
        if (!strstr(err->message, refused[which].words[i]))
            fail_msg("\"%s\" is not in: %s", refused[which].words[i], err->message);
    assert_non_null(strstr(err->message, "allow_pickle"));
}

static enum tfos_status append(struct tfos__feed_writer *writer, const struct notes *notes,
                               struct tfos_error *err)
{
    struct noted noted;

    make_noted(&noted, notes);
    enum tfos_status status = tfos__feed_writer_append(writer, &noted.schema, &noted.array, err);
    batch_clear(&noted.numbers);
    return status;
}

static enum tfos_status answer(struct node *node, int channel, const struct notes *notes,
                               struct tfos_error *err)
{
    struct noted noted;

    make_noted(&noted, notes);
    enum tfos_status status =
        tfos_feed_reader_put_results(node->reader, channel, &noted.schema, &noted.array, NULL, err);
    batch_clear(&noted.numbers);
    return status;
}

static const struct pickled_case ways[] = {
    {false, true, false}, {true, true, false}, {false, false, true}, {true, false, true}};

// Whoever refuses them does, whatever the other side thinks.
static void pickles_are_not_fed(void **state)
{
    (void)state;
    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
        for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
            struct node node;
            struct tfos_feed_item item;
            struct tfos_error err;
            start_node(&node, &ways[way]);
            struct tfos__feed_writer *writer = open_writer(&node, &ways[way]);
            enum tfos_status status = append(writer, &refused[i].notes, &err);
            if (ways[way].writer_refuses) {
                expect_refusal(status, &err, i);
            } else {
                assert_int_equal(status, TFOS_OK);
                expect_refusal(tfos_feed_reader_next(node.reader, WAIT_MS, &item, &err), &err, i);
            }
            tfos__feed_writer_close(writer);
            node_close(&node);
        }
}

static void pickles_are_no_results(void **state)
{
    (void)state;
    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
        for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
            struct node node;
            struct tfos_feed_item item;
            struct ArrowSchema schema;
            struct ArrowArray array;
            struct tfos_error err;
            start_node(&node, &ways[way]);
            struct tfos__feed_writer *writer = open_writer(&node, &ways[way]);
            assert_done(append_rows(writer, 0, 1, 0, &err));
            assert_int_equal(next_item(&node, &item), TFOS_OK);
            enum tfos_status status = answer(&node, item.channel, &refused[i].notes, &err);
            if (ways[way].reader_refuses) {
                expect_refusal(status, &err, i);
            } else {
                assert_int_equal(status, TFOS_OK);
                expect_refusal(tfos__feed_writer_next_result(writer, -1, &schema, &array, &err),
                               &err, i);
            }
            release_item(&item);
            tfos__feed_writer_close(writer);
            node_close(&node);
        }
}

static void columns_that_need_no_pickle_pass(void **state)
{
    static const struct pickled_case both[] = {{false, true, true}, {true, true, true}};

    (void)state;
    for (size_t way = 0; way < 2; way++)
        for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
            struct node node;
            struct tfos_feed_item item;
            struct ArrowSchema schema;
            struct ArrowArray array;
            struct tfos_error err;
            start_node(&node, &both[way]);
            struct tfos__feed_writer *writer = open_writer(&node, &both[way]);
            assert_int_equal(append(writer, &allowed[i], &err), TFOS_OK);
            assert_int_equal(next_item(&node, &item), TFOS_OK);
            assert_done(answer(&node, item.channel, &allowed[i], &err));
            release_item(&item);
            assert_done(tfos__feed_writer_next_result(writer, -1, &schema, &array, &err));
            schema.release(&schema);
            array.release(&array);
            tfos__feed_writer_close(writer);
            node_close(&node);
        }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(pickles_are_not_fed),
    cmocka_unit_test(pickles_are_no_results),
    cmocka_unit_test(columns_that_need_no_pickle_pass),
};

TEST_MAIN(cases)
