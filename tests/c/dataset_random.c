// SPDX-License-Identifier: Apache-2.0
// Datasets of random schemas against a reference that goes value by value, and running out of
// memory anywhere.
#include "arrow/arrow.h"
#include "base/memory.h"
#include "dataset_fixture.h"

#define ROUNDS 60
#define BATCHES 5
#define LEAVES 60
#define STEPS 8
#define VALUES 20000

static const struct shape PRIMITIVES[] = {
    {"c", NULL, 0},   {"s", NULL, 0},   {"i", NULL, 0}, {"l", NULL, 0},
    {"g", NULL, 0},   {"b", NULL, 0},   {"u", NULL, 0}, {"Z", NULL, 0},
    {"w:5", NULL, 0}, {"tdD", NULL, 0}, {"f", NULL, 0}, {"tsu:", NULL, 0},
};
#define PRIMITIVE_COUNT (sizeof(PRIMITIVES) / sizeof(PRIMITIVES[0]))

// ---- the reference

/// The way to a leaf: numbers of children, and its name.
struct leaf {
    int64_t steps[STEPS];
    int step_count, level_count;
    const char *format;
    char name[256];
};

/// What a leaf's tensors should be.
struct expected {
    uint8_t values[VALUES * 8];
    int64_t value_count, byte_count;
    int64_t offsets[VALUES];
    int64_t splits[STEPS][VALUES];
    int64_t split_counts[STEPS];
};

static bool is_text(const char *format)
{
    return strchr("uZw", format[0]);
}

static void find_leaves(const struct ArrowSchema *schema, struct leaf path, struct leaf *leaves,
                        int *count)
{
    bool is_list = schema->format[0] == '+' && schema->format[1] != 's';
    bool is_map = strcmp(schema->format, "+m") == 0;

    path.level_count += is_list;
    if (schema->format[0] != '+') {
        path.format = schema->format;
        assert_true(*count < LEAVES);
        leaves[(*count)++] = path;
        return;
    }
    for (int64_t i = 0; i < schema->n_children; i++) {
        struct leaf child = path;
        const struct ArrowSchema *field = schema->children[i];
        child.steps[child.step_count++] = i;
        if (!is_list)
            snprintf(child.name + strlen(child.name), 64, "%s%s", child.name[0] ? "." : "",
                     field->name);
        if (is_map) {
            for (int64_t k = 0; k < 2; k++) {
                struct leaf entry = child;
                entry.steps[entry.step_count++] = k;
                snprintf(entry.name + strlen(entry.name), 64, ".%s", k == 0 ? "key" : "value");
                find_leaves(field->children[k], entry, leaves, count);
            }
            continue;
        }
        find_leaves(field, child, leaves, count);
    }
}

static void expect_element(const struct ArrowSchema *schema, const struct ArrowArray *array,
                           int64_t index, struct expected *out)
{
    bool is_wide = strchr("UZ", schema->format[0]);
    int64_t begin = index * 5, size = 5;

    if (strchr("uZ", schema->format[0])) {
        begin = test_offset(array, is_wide, index - array->offset);
        size = test_offset(array, is_wide, index - array->offset + 1) - begin;
    }
    if (schema->format[0] == 'b') {
        const uint8_t *bits = array->buffers[1];
        out->values[out->byte_count++] = bits[index / 8] >> (index % 8) & 1;
    } else if (is_text(schema->format)) {
        const char *bytes = array->buffers[schema->format[0] == 'w' ? 1 : 2];
        memcpy(out->values + out->byte_count, bytes + begin, (size_t)size);
        out->byte_count += size;
    } else {
        int64_t width = test_width(schema->format) / 8;
        memcpy(out->values + out->byte_count, (const char *)array->buffers[1] + index * width,
               (size_t)width);
        out->byte_count += width;
    }
    out->offsets[++out->value_count] = out->byte_count;
}

// A null: an empty list, or the null_value "0".
static void expect_null(const struct leaf *leaf, int level, struct expected *out)
{
    if (level < leaf->level_count) {
        int64_t *count = &out->split_counts[level];
        out->splits[level][*count + 1] = out->splits[level][*count];
        ++*count;
        return;
    }
    if (is_text(leaf->format))
        out->values[out->byte_count++] = '0';
    else
        out->byte_count += leaf->format[0] == 'b' ? 1 : test_width(leaf->format) / 8;
    out->offsets[++out->value_count] = out->byte_count;
}

static void expect_at(const struct leaf *leaf, int step, int level,
                      const struct ArrowSchema *schema, const struct ArrowArray *array,
                      int64_t index, struct expected *out)
{
    const char *format = schema->format;

    if (is_null(array, index)) {
        expect_null(leaf, level, out);
        return;
    }
    index += array->offset;
    if (step == leaf->step_count) {
        expect_element(schema, array, index, out);
        return;
    }
    int64_t child = leaf->steps[step];
    if (strcmp(format, "+s") == 0) {
        expect_at(leaf, step + 1, level, schema->children[child], array->children[child], index,
                  out);
        return;
    }
    int64_t length = strncmp(format, "+w:", 3) == 0 ? strtol(format + 3, NULL, 10) : -1;
    bool is_wide = format[1] == 'L';
    int64_t begin =
        length >= 0 ? index * length : test_offset(array, is_wide, index - array->offset);
    if (length < 0)
        length = test_offset(array, is_wide, index - array->offset + 1) - begin;
    int64_t *count = &out->split_counts[level];
    out->splits[level][*count + 1] = out->splits[level][*count] + length;
    ++*count;
    for (int64_t i = 0; i < length; i++)
        expect_at(leaf, step + 1, level + 1, schema->children[0], array->children[0], begin + i,
                  out);
}

// ---- random schemas

static struct shape grow(int depth, struct shape *store, int *used)
{
    static const char *const lists[] = {"+l", "+L", "+w:3", "+m"};

    if (depth == 0 || random_below(3) == 0)
        return PRIMITIVES[random_below(PRIMITIVE_COUNT)];
    bool is_struct = random_below(3) == 0;
    int count = is_struct ? 1 + (int)random_below(3) : 1;
    struct shape *children = store + *used;
    *used += count;
    for (int i = 0; i < count; i++)
        children[i] = grow(depth - 1, store, used);
    const char *format = is_struct ? "+s" : lists[random_below(4)];
    if (strcmp(format, "+m") == 0) {
        struct shape *members = store + *used;
        *used += 2;
        members[0] = PRIMITIVES[random_below(PRIMITIVE_COUNT)];
        members[1] = children[0];
        children[0] = (struct shape){"+s", members, 2};
    }
    return (struct shape){format, children, count};
}

// ---- comparison

static void check_tensors(const struct leaf *leaf, const struct expected *expected,
                          const struct tfos_tensor *tensors)
{
    const struct tfos_tensor *values = &tensors[0];

    assert_int_equal(values->shape[0], expected->value_count);
    if (is_text(leaf->format)) {
        for (int64_t i = 0; i < expected->value_count; i++) {
            int64_t size = expected->offsets[i + 1] - expected->offsets[i];
            assert_int_equal(int_at(values, i + 1) - int_at(values, i), size);
            assert_memory_equal(values->bytes + int_at(values, i),
                                expected->values + expected->offsets[i], (size_t)size);
        }
    } else {
        assert_int_equal(values->size, expected->byte_count);
        assert_memory_equal(values->data, expected->values, (size_t)expected->byte_count);
    }
    for (int level = 0; level < leaf->level_count; level++) {
        assert_int_equal(tensors[1 + level].shape[0], expected->split_counts[level] + 1);
        assert_memory_equal(tensors[1 + level].data, expected->splits[level],
                            (size_t)(expected->split_counts[level] + 1) * 8);
    }
}

struct made {
    struct ArrowSchema schema;
    struct ArrowArray arrays[BATCHES];
    struct leaf leaves[LEAVES];
    int leaf_count;
    struct tfos_dataset_column columns[LEAVES];
};

static void make(struct made *made)
{
    static struct shape store[400];
    struct shape columns[4], root = {"+s", columns, 1 + (int)random_below(4)};
    int used = 0;

    for (int i = 0; i < root.child_count; i++)
        columns[i] = grow(3, store, &used);
    made->leaf_count = 0;
    make_schema(&root, "root", &made->schema);
    find_leaves(&made->schema, (struct leaf){0}, made->leaves, &made->leaf_count);
    for (int i = 0; i < made->leaf_count; i++)
        made->columns[i] = (struct tfos_dataset_column){
            .name = made->leaves[i].name,
            .null_value = "0",
            .form = made->leaves[i].level_count > 0 ? TFOS_FORM_RAGGED : TFOS_FORM_AUTO};
    for (int i = 0; i < BATCHES; i++)
        make_array(&root, 1 + (int64_t)random_below(30), &made->arrays[i]);
    // A row that is null as a whole is not what a feeder sends.
    for (int i = 0; i < BATCHES; i++)
        made->arrays[i].null_count = 0;
}

static void made_clear(struct made *made)
{
    for (int i = 0; i < BATCHES; i++)
        made->arrays[i].release(&made->arrays[i]);
    made->schema.release(&made->schema);
}

// Row `row` of all batches together, added to what a leaf's tensors should be.
static void expect_row(const struct made *made, const struct leaf *leaf, int64_t row,
                       struct expected *out)
{
    for (int i = 0; i < BATCHES; i++) {
        if (row < made->arrays[i].length) {
            expect_at(leaf, 0, 0, &made->schema, &made->arrays[i], row, out);
            return;
        }
        row -= made->arrays[i].length;
    }
}

static void check_batch_of(const struct made *made, int64_t row, int64_t rows,
                           const struct tfos_tensor *tensors)
{
    struct expected *expected = malloc(sizeof(*expected));
    int64_t position = 0;

    for (int i = 0; i < made->leaf_count; i++) {
        memset(expected, 0, sizeof(*expected));
        for (int64_t k = 0; k < rows; k++)
            expect_row(made, &made->leaves[i], row + k, expected);
        check_tensors(&made->leaves[i], expected, &tensors[position]);
        position += 1 + made->leaves[i].level_count;
    }
    free(expected);
}

static void random_columns_are_as_the_reference(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        static struct made made;
        struct node node;
        struct tfos_tensor tensors[TENSOR_LIMIT * 4];
        make(&made);
        node_open(&node, 0);
        node_start(&node);
        struct tfos__feed_writer *writer = feed_open(&node, 1, 0);
        int64_t total = 0, row = 0;
        for (int i = 0; i < BATCHES; i++) {
            feed_append(writer, &made.schema, &made.arrays[i]);
            total += made.arrays[i].length;
        }
        feed_finish(writer);
        node_end_epoch(&node, 1);
        node_set_state(&node, TFOS__FEED_ENDED, NULL);
        struct tfos_dataset_options options = {.batch_size = 1 + (int64_t)random_below(40),
                                               .columns = made.columns,
                                               .column_count = made.leaf_count};
        struct tfos_dataset *dataset = dataset_of(&node, &options);
        while (next_batch(dataset, tensors)) {
            int64_t rows = total - row < options.batch_size ? total - row : options.batch_size;
            check_batch_of(&made, row, rows, tensors);
            row += rows;
            release_tensors(tensors, specs_of(dataset).count);
        }
        assert_int_equal(row, total);
        tfos_dataset_close(dataset);
        node_close(&node);
        made_clear(&made);
    }
}

static void extracts_equal_their_rows(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        static struct made made;
        struct tfos__arrow_span spans[8];
        struct ArrowArray copy;
        struct tfos_error err;
        make(&made);
        const struct ArrowArray *array = &made.arrays[0];
        int64_t count = 1 + (int64_t)random_below(8), position = 0;
        for (int64_t i = 0; i < count; i++) {
            spans[i].first = (int64_t)random_below((uint64_t)array->length);
            spans[i].count = (int64_t)random_below((uint64_t)(array->length - spans[i].first) + 1);
        }
        assert_done(tfos__arrow_array_extract(&made.schema, array, spans, count, &copy, &err));
        for (int64_t i = 0; i < count; i++)
            for (int64_t k = 0; k < spans[i].count; k++)
                compare_value(&made.schema, array, spans[i].first + k, &copy, position++);
        assert_int_equal(copy.length, position);
        copy.release(&copy);
        made_clear(&made);
    }
}

// ---- memory

static void node_pause(struct node *node)
{
    pthread_mutex_lock(&node->mutex);
    node->is_stopping = true;
    pthread_mutex_unlock(&node->mutex);
    pthread_join(node->thread, NULL);
    node->is_stopping = false;
}

// Opens, reads and closes a dataset. False when memory ran out on the way.
static bool read_in_short_memory(struct node *node, const struct made *made, int64_t shuffle_rows)
{
    struct tfos_dataset_options options = {.reader = node->reader,
                                           .batch_size = 7,
                                           .shuffle_rows = shuffle_rows,
                                           .columns = made->columns,
                                           .column_count = made->leaf_count};
    struct tfos_tensor tensors[TENSOR_LIMIT * 4];
    struct tfos_dataset *dataset = NULL;
    struct tfos_error err;
    const struct tfos_tensor_spec *specs = NULL;
    enum tfos_row_structure structure;
    int64_t count = 0;

    enum tfos_status status = tfos_dataset_open(&options, &dataset, &err);
    if (status == TFOS_OK)
        status = tfos_dataset_get_specs(dataset, 0, &specs, &count, &structure, &err);
    while (status == TFOS_OK) {
        status = tfos_dataset_next(dataset, tensors, &err);
        if (status == TFOS_OK)
            release_tensors(tensors, count);
    }
    tfos_dataset_close(dataset);
    if (status != TFOS_END)
        assert_int_equal(status, TFOS_NO_MEMORY);
    return status == TFOS_END;
}

static void memory_may_run_out_anywhere(void **state)
{
    static struct made made;
    bool is_enough = false;

    (void)state;
    random_state = 5;
    make(&made);
    for (long n = 1; !is_enough; n++) {
        struct node node;
        node_open(&node, 0);
        node_start(&node);
        struct tfos__feed_writer *writer = feed_open(&node, 1, 0);
        for (int i = 0; i < BATCHES; i++)
            feed_append(writer, &made.schema, &made.arrays[i]);
        feed_finish(writer);
        node_end_epoch(&node, 1);
        node_set_state(&node, TFOS__FEED_ENDED, NULL);
        node_pause(&node); // only the reader's requests are counted
        tfos__memory_fail_at(n);
        is_enough = read_in_short_memory(&node, &made, n % 2 * 10);
        tfos__memory_fail_at(0);
        node_start(&node);
        node_close(&node);
        assert_true(n < 5000);
    }
    made_clear(&made);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(random_columns_are_as_the_reference),
    cmocka_unit_test(extracts_equal_their_rows),
    cmocka_unit_test(memory_may_run_out_anywhere),
};

TEST_MAIN(cases)
