// SPDX-License-Identifier: Apache-2.0
/// Batches of results made by hand, and the rows that they become, read back as Arrow columns.
#ifndef TFOS_TEST_UNSAFE_ROW_RESULTS_H
#define TFOS_TEST_UNSAFE_ROW_RESULTS_H

#include <tfos/result_rows.h>

#include "harness.h"
#include "unsafe_rows.h"

/// Metadata of one key.
struct note {
    char bytes[128];
};

static inline struct note make_note(const char *key, const char *value)
{
    int32_t count = 1, key_size = (int32_t)strlen(key), value_size = (int32_t)strlen(value);
    struct note note;
    char *at = note.bytes;

    memcpy(at, &count, 4);
    memcpy(at + 4, &key_size, 4);
    memcpy(at + 8, key, (size_t)key_size);
    memcpy(at + 8 + key_size, &value_size, 4);
    memcpy(at + 12 + key_size, value, (size_t)value_size);
    return note;
}

/// What the packer says of a column's values.
#define NOTE(value) (make_note("tfos.value", (value)).bytes)

/// A column of results: its array, and its field with the note "" for none.
struct result {
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct note note;
    const void *buffers[3];
    struct ArrowSchema *schema_child[1];
    struct ArrowArray *array_child[1];
};

static inline void release_result_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static inline void release_result_array(struct ArrowArray *array)
{
    array->release = NULL;
}

/// Values behind `validity` (NULL: none is null) of a type with `buffer_count` buffers.
static inline struct result *set_result(struct result *result, const char *name, const char *format,
                                        const char *note, int64_t length, const void *validity,
                                        const void *first, const void *second)
{
    *result = (struct result){.buffers = {validity, first, second}};
    result->schema = (struct ArrowSchema){.format = format, .name = name};
    if (note[0]) {
        result->note = make_note("tfos.value", note);
        result->schema.metadata = result->note.bytes;
    }
    result->array = (struct ArrowArray){.length = length,
                                        .null_count = validity ? -1 : 0,
                                        .n_buffers = second  ? 3
                                                     : first ? 2
                                                             : 1,
                                        .buffers = result->buffers};
    return result;
}

/// Makes `child` the values of a list.
static inline struct result *nest_result(struct result *result, struct result *child)
{
    result->schema_child[0] = &child->schema;
    result->array_child[0] = &child->array;
    result->schema.n_children = result->array.n_children = 1;
    result->schema.children = result->schema_child;
    result->array.children = result->array_child;
    return result;
}

/// A column of numbers.
#define NUMBERS(result, name, format, note, type, ...)                                             \
    set_result((result), (name), (format), (note),                                                 \
               sizeof((const type[]){__VA_ARGS__}) / sizeof(type), NULL,                           \
               (const type[]){__VA_ARGS__}, NULL)

#define RESULT_COLUMNS 4

/// A batch of results on its way into rows, and what came of it.
struct taken {
    struct tfos_result_rows *rows;
    struct ArrowSchema *schemas[RESULT_COLUMNS];
    struct ArrowArray *arrays[RESULT_COLUMNS];
    struct note note;
    const void *buffers[1];
    struct shown shown; ///< the rows, read back
    struct tfos_error err;
};

/// Rows of these declared columns.
static inline void open_results(struct taken *taken, const struct ArrowSchema *schema)
{
    struct tfos_error err = {0};

    *taken = (struct taken){0};
    assert_done(tfos_result_rows_open(schema, &taken->rows, &err));
    open_batch(&taken->shown, schema);
}

/// Takes a batch of `kind` ("dict", ...).
static inline enum tfos_status take_results(struct taken *taken, const char *kind,
                                            struct result *const *columns, int64_t count)
{
    struct ArrowSchema schema = {.format = "+s",
                                 .name = "",
                                 .n_children = count,
                                 .children = taken->schemas,
                                 .release = release_result_schema};
    struct ArrowArray array = {.length = columns[0]->array.length,
                               .n_buffers = 1,
                               .n_children = count,
                               .buffers = taken->buffers,
                               .children = taken->arrays,
                               .release = release_result_array};

    taken->err = (struct tfos_error){0};
    taken->note = make_note("tfos.row", kind);
    schema.metadata = taken->note.bytes;
    for (int64_t i = 0; i < count; i++) {
        taken->schemas[i] = &columns[i]->schema;
        taken->arrays[i] = &columns[i]->array;
    }
    enum tfos_status status = tfos_result_rows_take(taken->rows, &schema, &array, &taken->err);
    assert_null(schema.release);
    assert_null(array.release);
    return status;
}

/// Writes all rows through a buffer that begins with `capacity` bytes, and reads them back.
static inline enum tfos_status read_results(struct taken *taken, int64_t capacity)
{
    struct rows rows = {0};

    for (;;) {
        int64_t size = 0;
        uint8_t *data = malloc((size_t)capacity + 1);
        enum tfos_status status =
            tfos_result_rows_next(taken->rows, data, capacity, &size, &taken->err);
        if (status == TFOS_OK) {
            rows.data = realloc(rows.data, rows.size + (size_t)size);
            memcpy(rows.data + rows.size, data, (size_t)size);
            rows.size += (size_t)size;
        } else if (status == TFOS_AGAIN) {
            assert_true(size > capacity);
            capacity = size;
        }
        free(data);
        if (status == TFOS_END)
            break;
        if (status < 0) {
            free(rows.data);
            return status;
        }
    }
    for (size_t at = 0; at < rows.size; rows.count++) {
        uint32_t size = 0;
        memcpy(&size, rows.data + at, sizeof(size));
        at += 8 + size;
    }
    append_good(&taken->shown, &rows);
    return TFOS_OK;
}

/// Takes a batch of columns by place and reads it back. Returns the first column.
static inline const struct ArrowArray *pass_results(struct taken *taken, const char *kind,
                                                    struct result *const *columns, int64_t count)
{
    enum tfos_status status = take_results(taken, kind, columns, count);

    if (status == TFOS_OK)
        status = read_results(taken, 1 << 16);
    if (status != TFOS_OK)
        fail_msg("%s: %s", tfos_status_name(status), taken->err.message);
    return taken->shown.array->children[0];
}

/// Fails the case unless the batch is refused, when it is taken or read, by these words.
static inline void refuse_results(struct taken *taken, const char *kind,
                                  struct result *const *columns, int64_t count,
                                  enum tfos_status expected, const char *words)
{
    enum tfos_status status = take_results(taken, kind, columns, count);

    if (status == TFOS_OK)
        status = read_results(taken, 1 << 16);
    assert_int_equal(status, expected);
    if (!strstr(taken->err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", taken->err.message, words);
}

static inline void close_results(struct taken *taken)
{
    tfos_result_rows_close(taken->rows);
    tfos_row_batch_close(taken->shown.batch);
}

#endif
