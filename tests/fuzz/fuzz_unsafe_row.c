// SPDX-License-Identifier: Apache-2.0
// Any bytes as rows of Spark's. The first byte chooses the schema, the second the number of rows.
// Whatever comes of it, the batch holds whole rows whose every value can be read, and the same when
// the rows come one at a time.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/unsafe_row.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LEAF(field_format)                                                                         \
    {                                                                                              \
        .format = (field_format), .name = (field_format)                                           \
    }
#define NEST(field_format, list, count)                                                            \
    {                                                                                              \
        .format = (field_format), .name = (field_format), .n_children = (count),                   \
        .children = (list)                                                                         \
    }

static struct ArrowSchema byte = LEAF("c"), small = LEAF("s"), number = LEAF("i"), wide = LEAF("l"),
                          real = LEAF("f"), flag = LEAF("b"), text = LEAF("u"), blob = LEAF("Z"),
                          cents = LEAF("d:10,2"), big = LEAF("d:38,10"), nothing = LEAF("n");
static struct ArrowSchema *of_real[] = {&real}, *of_flag[] = {&flag}, *of_text[] = {&text},
                          *of_small[] = {&small}, *of_big[] = {&big}, *of_cents[] = {&cents},
                          *of_nothing[] = {&nothing}, *of_pair[] = {&number, &text};
static struct ArrowSchema reals = NEST("+l", of_real, 1), flags = NEST("+L", of_flag, 1),
                          texts = NEST("+l", of_text, 1), smalls = NEST("+l", of_small, 1),
                          bigs = NEST("+l", of_big, 1), centses = NEST("+l", of_cents, 1),
                          voids = NEST("+l", of_nothing, 1), pair = NEST("+s", of_pair, 2);
static struct ArrowSchema *of_pairs[] = {&pair}, *of_lists[] = {&texts};
static struct ArrowSchema pairs = NEST("+l", of_pairs, 1), lists = NEST("+l", of_lists, 1);
static struct ArrowSchema *of_entries[] = {&text, &pairs};
static struct ArrowSchema entries = NEST("+s", of_entries, 2);
static struct ArrowSchema *of_map[] = {&entries};
static struct ArrowSchema map = NEST("+m", of_map, 1);
static struct ArrowSchema *of_deep[] = {&map, &lists, &pair, &nothing};
static struct ArrowSchema deep = NEST("+s", of_deep, 4);
static struct ArrowSchema *of_deeps[] = {&deep};
static struct ArrowSchema deeps = NEST("+L", of_deeps, 1);

static struct ArrowSchema *flat_columns[] = {&byte, &small, &number, &wide, &real,   &flag,
                                             &text, &blob,  &cents,  &big,  &nothing};
static struct ArrowSchema *list_columns[] = {&reals, &wide,    &flags, &texts, &smalls,
                                             &bigs,  &centses, &voids, &pairs, &lists};
static struct ArrowSchema *deep_columns[] = {&pair, &map, &deep, &deeps, &text};
// The rows of unsafe_row_nested.c.
static struct ArrowSchema *of_counts[] = {&text, &number}, *of_mixed[] = {&flag, &texts};
static struct ArrowSchema counts = NEST("+s", of_counts, 2), mixed = NEST("+s", of_mixed, 2);
static struct ArrowSchema *of_count_map[] = {&counts};
static struct ArrowSchema count_map = NEST("+m", of_count_map, 1);
static struct ArrowSchema *spark_columns[] = {&wide,      &text,  &reals, &big,
                                              &count_map, &mixed, &number};
static const struct ArrowSchema schemas[] = {
    NEST("+s", flat_columns, 11), NEST("+s", list_columns, 10), NEST("+s", deep_columns, 5),
    NEST("+s", spark_columns, 7), NEST("+s", list_columns, 2),  NEST("+s", NULL, 0),
};

static void require(bool condition)
{
    if (!condition)
        abort();
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001B3);
    return hash;
}

static bool bit_at(const void *bits, int64_t index)
{
    return ((const uint8_t *)bits)[index / 8] >> index % 8 & 1;
}

static size_t width_of(const char *format)
{
    static const char widths[][2] = {{'c', 1}, {'s', 2}, {'i', 4}, {'f', 4}, {'l', 8}, {'d', 16}};

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        if (format[0] == widths[i][0])
            return (size_t)widths[i][1];
    return 0;
}

static int64_t offset_at(const struct ArrowArray *array, bool is_wide, int64_t index)
{
    return is_wide ? ((const int64_t *)array->buffers[1])[index]
                   : ((const int32_t *)array->buffers[1])[index];
}

static uint64_t hash_offsets(uint64_t hash, const struct ArrowArray *array, bool is_wide)
{
    require(offset_at(array, is_wide, 0) == 0);
    for (int64_t i = 0; i < array->length; i++) {
        int64_t length = offset_at(array, is_wide, i + 1) - offset_at(array, is_wide, i);
        require(length >= 0);
        hash = hash_bytes(hash, &length, sizeof(length));
    }
    return hash;
}

// Reads all that a consumer may read of a column of `length` values.
static uint64_t walk(uint64_t hash, const struct ArrowSchema *schema,
                     const struct ArrowArray *array, int64_t length)
{
    const char *format = schema->format;
    bool is_wide = strcmp(format, "+L") == 0 || format[0] == 'Z';
    bool has_offsets = strchr("uZ", format[0]) || (format[0] == '+' && format[1] != 's');
    int64_t null_count = 0, child_length = length;

    require(array->length == length && array->offset == 0);
    if (format[0] == 'n') {
        require(array->null_count == length && array->n_buffers == 0);
        return hash_bytes(hash, &length, sizeof(length));
    }
    for (int64_t i = 0; i < length && array->buffers[0]; i++) {
        null_count += !bit_at(array->buffers[0], i);
        hash = hash_bytes(hash, &(bool){bit_at(array->buffers[0], i)}, 1);
    }
    require(null_count == array->null_count);
    if (format[0] == 'b')
        for (int64_t i = 0; i < length; i++)
            hash = hash_bytes(hash, &(bool){bit_at(array->buffers[1], i)}, 1);
    else if (has_offsets)
        hash = hash_offsets(hash, array, is_wide);
    else
        hash = hash_bytes(hash, array->n_buffers > 1 ? array->buffers[1] : NULL,
                          width_of(format) * (size_t)length);
    if (has_offsets)
        child_length = offset_at(array, is_wide, length);
    if (strchr("uZ", format[0]))
        hash = hash_bytes(hash, array->buffers[2], (size_t)child_length);
    for (int64_t i = 0; i < array->n_children; i++)
        hash = walk(hash, schema->children[i], array->children[i], child_length);
    return hash;
}

static uint64_t walk_batch(struct tfos_row_batch *batch, const struct ArrowSchema *expected)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;

    tfos_row_batch_show(batch, &schema, &array);
    require(schema->n_children == expected->n_children && array->null_count == 0);
    return walk(1, schema, array, array->length);
}

static int64_t rows_of(struct tfos_row_batch *batch)
{
    const struct ArrowSchema *schema = NULL;
    const struct ArrowArray *array = NULL;

    tfos_row_batch_show(batch, &schema, &array);
    return array->length;
}

// Appends the `count` rows that another batch has taken, one at a time, and one more if
// `is_faulty`: which must be refused.
static void append_singly(struct tfos_row_batch *batch, const uint8_t *data, int64_t size,
                          int64_t count, bool is_faulty)
{
    for (int64_t i = 0; i < count; i++) {
        uint64_t head = 0;
        memcpy(&head, data, sizeof(head));
        require(tfos_row_batch_append(batch, data, 8 + (int64_t)head, 1, NULL) == TFOS_OK);
        data += 8 + head;
        size -= 8 + (int64_t)head;
    }
    if (is_faulty)
        require(tfos_row_batch_append(batch, data, size, 1, NULL) == TFOS_CORRUPT);
    require(rows_of(batch) == count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tfos_row_batch *whole = NULL, *singly = NULL;

    if (size < 2)
        return 0;
    const struct ArrowSchema *schema = &schemas[data[0] % (sizeof(schemas) / sizeof(schemas[0]))];
    int64_t row_count = data[1];
    int64_t row_size = (int64_t)size - 2;
    // A copy of just that size, so that the sanitizer sees what reads beyond it.
    uint8_t *rows = malloc((size_t)row_size + 1);
    memcpy(rows, data + 2, (size_t)row_size);
    require(tfos_row_batch_open(schema, &whole, NULL) == TFOS_OK);
    require(tfos_row_batch_open(schema, &singly, NULL) == TFOS_OK);
    enum tfos_status status = tfos_row_batch_append(whole, rows, row_size, row_count, NULL);
    int64_t taken = rows_of(whole);
    require((status == TFOS_OK || status == TFOS_CORRUPT) && taken <= row_count);
    require(status == TFOS_CORRUPT || taken == row_count);
    append_singly(singly, rows, row_size, taken, taken < row_count);
    require(walk_batch(whole, schema) == walk_batch(singly, schema));
    tfos_row_batch_clear(whole);
    require(rows_of(whole) == 0);
    walk_batch(whole, schema);
    tfos_row_batch_close(whole);
    tfos_row_batch_close(singly);
    free(rows);
    return 0;
}
