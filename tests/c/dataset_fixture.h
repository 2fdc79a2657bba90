// SPDX-License-Identifier: Apache-2.0
/// A node that is fed, and a dataset that reads it: what the tests of datasets share.
#ifndef TFOS_TEST_DATASET_FIXTURE_H
#define TFOS_TEST_DATASET_FIXTURE_H

#include <tfos/dataset.h>

#include "feed_arrow.h"
#include "feed_fixture.h"

#define TENSOR_LIMIT 64

/// A writer of batches in the test's own thread: they must fit into the channel.
static inline struct tfos__feed_writer *feed_open(struct node *node, int64_t feed,
                                                  int64_t partition)
{
    struct writer_options options = writer_options(node, partition);
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    options.feeder.feed = feed;
    options.feeder.channel_size = 4 << 20;
    assert_done(writer_open(&options, &writer, &err));
    return writer;
}

static inline void feed_append(struct tfos__feed_writer *writer, const struct ArrowSchema *schema,
                               const struct ArrowArray *array)
{
    struct tfos_error err;

    assert_done(tfos__feed_writer_append(writer, schema, array, &err));
}

static inline void feed_finish(struct tfos__feed_writer *writer)
{
    struct tfos_error err;

    assert_done(tfos__feed_writer_finish(writer, &err));
    tfos__feed_writer_close(writer);
}

/// Feeds rows [first, first + rows) of number_batch as one partition, in batches of `batch_rows`.
static inline void feed_numbers(struct node *node, int64_t feed, int64_t partition, int64_t first,
                                int64_t rows, int64_t batch_rows, int payload)
{
    struct tfos__feed_writer *writer = feed_open(node, feed, partition);
    struct tfos_error err;

    for (int64_t row = 0; row < rows; row += batch_rows)
        assert_done(append_rows(writer, first + row,
                                rows - row < batch_rows ? rows - row : batch_rows, payload, &err));
    feed_finish(writer);
}

/// Feeds one batch as the only one of feed 1 and ends everything.
static inline void feed_only(struct node *node, const struct ArrowSchema *schema,
                             const struct ArrowArray *array)
{
    struct tfos__feed_writer *writer = feed_open(node, 1, 0);

    feed_append(writer, schema, array);
    feed_finish(writer);
    node_end_epoch(node, 1);
    node_set_state(node, TFOS__FEED_ENDED, NULL);
}

static inline struct tfos_dataset *dataset_of(struct node *node,
                                              struct tfos_dataset_options *options)
{
    struct tfos_dataset *dataset = NULL;
    struct tfos_error err;

    options->reader = node->reader;
    assert_done(tfos_dataset_open(options, &dataset, &err));
    return dataset;
}

struct specs {
    const struct tfos_tensor_spec *list;
    int64_t count;
    enum tfos_row_structure structure;
};

static inline struct specs specs_of(struct tfos_dataset *dataset)
{
    struct specs specs;
    struct tfos_error err;

    assert_done(tfos_dataset_get_specs(dataset, WAIT_MS, &specs.list, &specs.count,
                                       &specs.structure, &err));
    assert_true(specs.count <= TENSOR_LIMIT);
    return specs;
}

/// The next batch, or the first of a pass: true, or false at the end of an epoch.
static inline bool next_of_pass(struct tfos_dataset *dataset, bool is_first,
                                struct tfos_tensor *tensors)
{
    struct tfos_error err;
    enum tfos_status status = is_first ? tfos_dataset_first(dataset, tensors, &err)
                                       : tfos_dataset_next(dataset, tensors, &err);

    if (status < 0)
        fail_msg("next: %s: %s", tfos_status_name(status), err.message);
    return status == TFOS_OK;
}

static inline bool next_batch(struct tfos_dataset *dataset, struct tfos_tensor *tensors)
{
    return next_of_pass(dataset, false, tensors);
}

static inline void release_tensors(struct tfos_tensor *tensors, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        tfos_tensor_release(&tensors[i]);
}

static inline int64_t int_at(const struct tfos_tensor *tensor, int64_t index)
{
    return ((const int64_t *)tensor->data)[index];
}

static inline double double_at(const struct tfos_tensor *tensor, int64_t index)
{
    return ((const double *)tensor->data)[index];
}

/// Fails the case unless string `index` is `text`.
static inline void check_text(const struct tfos_tensor *tensor, int64_t index, const char *text)
{
    int64_t begin = int_at(tensor, index), end = int_at(tensor, index + 1);

    assert_int_equal(end - begin, (int64_t)strlen(text));
    assert_memory_equal(tensor->bytes + begin, text, strlen(text));
}

// ---- columns made of values that a test writes down

/// A column with its memory; `children` are borrowed.
struct made_column {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[3];
    struct ArrowSchema *child_schemas[8];
    struct ArrowArray *child_arrays[8];
};

/// A column of `count` values that lie at `values`; `validity` NULL: all are there.
static inline void make_column(struct made_column *column, const char *name, const char *format,
                               int64_t count, const void *values, const void *validity)
{
    memset(column, 0, sizeof(*column));
    column->schema = (struct ArrowSchema){.format = format, .name = name};
    column->buffers[0] = validity;
    column->buffers[1] = values;
    bool has_values = strcmp(format, "+s") != 0 && strncmp(format, "+w", 2) != 0;
    column->array = (struct ArrowArray){.length = count,
                                        .null_count = validity ? -1 : 0,
                                        .n_buffers = has_values ? 2 : 1,
                                        .buffers = column->buffers,
                                        .children = column->child_arrays};
    column->schema.children = column->child_schemas;
}

static inline void add_child(struct made_column *column, struct made_column *child)
{
    column->child_schemas[column->schema.n_children++] = &child->schema;
    column->child_arrays[column->array.n_children++] = &child->array;
}

/// A column of strings: offsets are int32 for "u" and "z".
static inline void make_text(struct made_column *column, const char *name, const char *format,
                             int64_t count, const void *offsets, const char *bytes,
                             const void *validity)
{
    make_column(column, name, format, count, offsets, validity);
    column->buffers[2] = bytes;
    column->array.n_buffers = 3;
}

/// A batch: a struct of the columns that are added to it.
static inline void make_batch(struct made_column *batch, int64_t rows)
{
    make_column(batch, "", "+s", rows, NULL, NULL);
}

/// Metadata of one pair, in static memory that the next call but fifteen reuses.
static inline const char *metadata_of(const char *key, const char *value)
{
    static char blocks[16][256];
    static int turn;
    char *block = blocks[turn++ % 16];
    int32_t numbers[] = {1, (int32_t)strlen(key), (int32_t)strlen(value)};

    memcpy(block, numbers, 8);
    memcpy(block + 8, key, strlen(key));
    memcpy(block + 8 + strlen(key), &numbers[2], 4);
    memcpy(block + 12 + strlen(key), value, strlen(value));
    return block;
}

// ---- one batch, fed and read

/// A dataset over one batch, with its first tensors.
struct scene {
    struct node node;
    struct tfos_dataset *dataset;
    struct specs specs;
    struct tfos_tensor tensors[TENSOR_LIMIT];
};

static inline void scene_open(struct scene *scene, const struct made_column *batch,
                              struct tfos_dataset_options *options)
{
    memset(scene, 0, sizeof(*scene));
    node_open(&scene->node, 0);
    node_start(&scene->node);
    feed_only(&scene->node, &batch->schema, &batch->array);
    if (options->batch_size == 0)
        options->batch_size = batch->array.length;
    scene->dataset = dataset_of(&scene->node, options);
    scene->specs = specs_of(scene->dataset);
    assert_true(next_batch(scene->dataset, scene->tensors));
}

static inline void scene_close(struct scene *scene)
{
    release_tensors(scene->tensors, scene->specs.count);
    tfos_dataset_close(scene->dataset);
    node_close(&scene->node);
}

/// Expects get_specs() or next() to refuse the batch with all these words.
static inline void expect_refusal(const struct made_column *batch,
                                  struct tfos_dataset_options *options, const char *const *words)
{
    struct node node;
    struct tfos_tensor tensors[TENSOR_LIMIT];
    struct tfos_error err;

    node_open(&node, 0);
    node_start(&node);
    feed_only(&node, &batch->schema, &batch->array);
    options->batch_size = batch->array.length;
    struct tfos_dataset *dataset = dataset_of(&node, options);
    assert_int_equal(tfos_dataset_next(dataset, tensors, &err), TFOS_INVALID);
    for (; *words; words++)
        if (!strstr(err.message, *words))
            fail_msg("\"%s\" is not in: %s", *words, err.message);
    tfos_dataset_close(dataset);
    node_close(&node);
}

#define WORDS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

#endif
