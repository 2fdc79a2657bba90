// SPDX-License-Identifier: Apache-2.0
// Rows are measured and written 64 at a time, column by column. Invariant: while `array` is there,
// each column has the sources that belong to it.
#include <stdio.h>
#include <string.h>
#include <tfos/result_rows.h>

#include "base/fail.h"
#include "base/memory.h"
#include "unsafe_row/result_column.h"

#define NAMES_SIZE 2048

struct tfos_result_rows {
    struct ArrowSchema schema;                      ///< owned; the declared columns
    struct tfos__unsafe_row_result_column *columns; ///< owned
    struct ArrowSchema batch_schema;                ///< owned while a batch is there
    struct ArrowArray batch;                        ///< the same
    int64_t row;                                    ///< the batch's next
};

enum tfos_status tfos_result_rows_open(const struct ArrowSchema *schema,
                                       struct tfos_result_rows **out, struct tfos_error *err)
{
    struct tfos_result_rows *rows = tfos__alloc(1, sizeof(*rows));
    enum tfos_status status = TFOS_OK;
    if (!rows)
        return tfos__no_memory(err, "inference", "results");
    rows->columns = tfos__alloc((size_t)schema->n_children, sizeof(*rows->columns));
    status = rows->columns ? tfos_arrow_schema_copy(schema, &rows->schema, err)
                           : tfos__no_memory(err, "inference", "results");
    for (int64_t i = 0; status == TFOS_OK && i < schema->n_children; i++)
        status = tfos__unsafe_row_result_type_init(&rows->columns[i].type, rows->schema.children[i],
                                                   err);
    if (status == TFOS_OK)
        *out = rows;
    else
        tfos_result_rows_close(rows);
    return status;
}

static void drop_batch(struct tfos_result_rows *rows)
{
    tfos__arrow_array_release(&rows->batch);
    tfos__arrow_schema_release(&rows->batch_schema);
}

void tfos_result_rows_close(struct tfos_result_rows *rows)
{
    if (!rows)
        return;
    drop_batch(rows);
    for (int64_t i = 0; rows->schema.release && i < rows->schema.n_children; i++)
        tfos__unsafe_row_result_column_clear(&rows->columns[i]);
    tfos__arrow_schema_release(&rows->schema);
    tfos__free(rows->columns);
    tfos__free(rows);
}

// ---- a batch

static const char *list_names(const struct ArrowSchema *schema, char names[NAMES_SIZE])
{
    size_t used = 0;
    names[0] = '\0';
    for (int64_t i = 0; i < schema->n_children && used < NAMES_SIZE; i++)
        used += (size_t)snprintf(names + used, NAMES_SIZE - used, "%s'%s'", i ? ", " : "",
                                 schema->children[i]->name);
    return names;
}

/// The place of a column in a schema, mostly `guess`; -1: it has none of the name.
static int64_t find(const struct ArrowSchema *schema, const char *name, int64_t guess)
{
    if (guess < schema->n_children && strcmp(schema->children[guess]->name, name) == 0)
        return guess;
    for (int64_t i = 0; i < schema->n_children; i++)
        if (strcmp(schema->children[i]->name, name) == 0)
            return i;
    return -1;
}

static enum tfos_status check_names(const struct ArrowSchema *declared,
                                    const struct ArrowSchema *result, struct tfos_error *err)
{
    char names[NAMES_SIZE];
    for (int64_t i = 0; i < declared->n_children; i++)
        if (find(result, declared->children[i]->name, i) < 0)
            return tfos__fail(
                err, TFOS_INVALID,
                "inference: a result has no column '%s', which output_schema has; it has %s",
                declared->children[i]->name, list_names(result, names));
    for (int64_t i = 0; i < result->n_children; i++)
        if (find(declared, result->children[i]->name, i) < 0)
            return tfos__fail(
                err, TFOS_INVALID,
                "inference: a result has a column '%s', which output_schema has not; that has %s",
                result->children[i]->name, list_names(declared, names));
    return TFOS_OK;
}

static enum tfos_status check_count(const struct ArrowSchema *declared, int64_t count,
                                    struct tfos_error *err)
{
    char names[NAMES_SIZE];
    if (count == declared->n_children)
        return TFOS_OK;
    return tfos__fail(
        err, TFOS_INVALID, "inference: a result has %lld columns, output_schema %lld: %s",
        (long long)count, (long long)declared->n_children, list_names(declared, names));
}

/// What a result is: "value", "tuple", "list", "dict" or "row".
struct kind {
    char text[16];
    bool has_names, is_sequence;
};

static struct kind kind_of(const struct ArrowSchema *schema)
{
    struct kind kind = {.text = "row"};
    char text[sizeof(kind.text)];
    if (tfos_arrow_metadata_find(schema->metadata, "tfos.row", text, sizeof(text)))
        memcpy(kind.text, text, sizeof(text));
    kind.has_names = strcmp(kind.text, "dict") == 0 || strcmp(kind.text, "row") == 0;
    kind.is_sequence = strcmp(kind.text, "tuple") == 0 || strcmp(kind.text, "list") == 0;
    return kind;
}

static bool is_pickled(const struct ArrowSchema *schema)
{
    char note[16];
    return tfos_arrow_metadata_find(schema->metadata, "tfos.value", note, sizeof(note)) &&
           strcmp(note, "pickle") == 0;
}

/// Whether a tuple or list is itself the value of the one column.
static bool is_zipped(const struct tfos_result_rows *rows, const struct kind *kind)
{
    const struct ArrowSchema *result = &rows->batch_schema;
    struct tfos__arrow_type type;
    if (!kind->is_sequence || rows->schema.n_children != 1 || rows->columns[0].type.depth == 0)
        return false;
    return result->n_children != 1 ||
           (tfos__arrow_type_read(&type, result->children[0], NULL) == TFOS_OK &&
            type.kind < TFOS__ARROW_LIST && !is_pickled(result->children[0]));
}

/// Gives the column `count` sources, the results' columns from `first` on.
static enum tfos_status bind(struct tfos_result_rows *rows,
                             struct tfos__unsafe_row_result_column *column, int64_t first,
                             int64_t count, struct tfos_error *err)
{
    TFOS__TRY(tfos__unsafe_row_result_column_reserve(column, count, err));
    for (int64_t i = 0; i < count; i++)
        TFOS__TRY(tfos__unsafe_row_source_init(
            &column->sources[i], rows->batch_schema.children[first + i],
            rows->batch.children[first + i], column->type.name, err));
    return tfos__unsafe_row_result_column_check(column, err);
}

static enum tfos_status bind_columns(struct tfos_result_rows *rows, struct tfos_error *err)
{
    const struct ArrowSchema *declared = &rows->schema, *result = &rows->batch_schema;
    struct kind kind = kind_of(result);
    if (strcmp(kind.text, "value") == 0 && declared->n_children != 1 && result->n_children == 1 &&
        is_pickled(result->children[0]))
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "inference: results are objects that only Python can read, as each may "
                          "have columns of its own; give all the same columns, or use "
                          "inference(via=\"arrow\")");
    if (is_zipped(rows, &kind)) {
        rows->columns[0].is_zipped = true;
        return bind(rows, &rows->columns[0], 0, result->n_children, err);
    }
    TFOS__TRY(kind.has_names ? check_names(declared, result, err)
                             : check_count(declared, result->n_children, err));
    for (int64_t i = 0; i < declared->n_children; i++) {
        int64_t place = kind.has_names ? find(result, declared->children[i]->name, i) : i;
        rows->columns[i].is_zipped = false;
        TFOS__TRY(bind(rows, &rows->columns[i], place, 1, err));
    }
    return TFOS_OK;
}

enum tfos_status tfos_result_rows_take(struct tfos_result_rows *rows, struct ArrowSchema *schema,
                                       struct ArrowArray *array, struct tfos_error *err)
{
    drop_batch(rows);
    rows->batch_schema = *schema;
    rows->batch = *array;
    schema->release = NULL;
    array->release = NULL;
    rows->row = 0;
    enum tfos_status status = bind_columns(rows, err);
    if (status != TFOS_OK)
        drop_batch(rows);
    return status;
}

// ---- rows

/// Measures the next rows.
static void measure(const struct tfos_result_rows *rows, struct tfos__unsafe_row_chunk *chunk)
{
    int64_t left = rows->batch.length - rows->row;
    int64_t field_count = rows->schema.n_children;
    chunk->first = rows->batch.offset + rows->row;
    chunk->count = left < TFOS__ROW_CHUNK ? (unsigned)left : TFOS__ROW_CHUNK;
    chunk->slots = (size_t)tfos__unsafe_row_null_bits_size(field_count);
    for (unsigned i = 0; i < chunk->count; i++)
        chunk->sizes[i] = chunk->slots + (uint64_t)field_count * TFOS__ROW_WORD;
    for (int64_t i = 0; i < field_count; i++)
        tfos__unsafe_row_result_column_measure(&rows->columns[i], chunk);
}

/// Lays out as many of the rows as there is room for. Returns the bytes that they take.
static uint64_t place_rows(const struct tfos_result_rows *rows,
                           struct tfos__unsafe_row_chunk *chunk, uint8_t *data, uint64_t capacity)
{
    uint64_t used = 0;
    unsigned count = 0;
    for (; count < chunk->count; count++) {
        uint64_t size = chunk->sizes[count];
        if (size > INT32_MAX || TFOS__ROW_HEAD + size > capacity - used)
            break;
        memcpy(data + used, &size, sizeof(size));
        chunk->rows[count] = data + used + TFOS__ROW_HEAD;
        memset(chunk->rows[count], 0, chunk->slots);
        chunk->used[count] =
            (uint32_t)(chunk->slots + (size_t)rows->schema.n_children * TFOS__ROW_WORD);
        used += TFOS__ROW_HEAD + size;
    }
    chunk->count = count;
    return used;
}

/// Writes up to 64 rows. `*size` becomes 0 where there is no room for one, which needs `*needed`.
static enum tfos_status write_chunk(struct tfos_result_rows *rows, uint8_t *data, uint64_t capacity,
                                    uint64_t *size, uint64_t *needed, struct tfos_error *err)
{
    struct tfos__unsafe_row_chunk chunk;
    measure(rows, &chunk);
    *needed = TFOS__ROW_HEAD + chunk.sizes[0];
    if (chunk.sizes[0] > INT32_MAX)
        return tfos__fail(
            err, TFOS_INVALID,
            "inference: a result of %llu bytes is larger than a row of Spark's can be",
            (unsigned long long)chunk.sizes[0]);
    *size = place_rows(rows, &chunk, data, capacity);
    for (int64_t i = 0; i < rows->schema.n_children; i++)
        TFOS__TRY(tfos__unsafe_row_result_column_write(&rows->columns[i], i, &chunk, err));
    rows->row += chunk.count;
    return TFOS_OK;
}

enum tfos_status tfos_result_rows_next(struct tfos_result_rows *rows, void *data, int64_t capacity,
                                       int64_t *size, struct tfos_error *err)
{
    uint64_t used = 0, written = 0, needed = 0;
    if (!rows->batch.release || rows->row == rows->batch.length)
        return TFOS_END;
    do {
        TFOS__TRY(write_chunk(rows, (uint8_t *)data + used, (uint64_t)capacity - used, &written,
                              &needed, err));
        used += written;
    } while (written > 0 && rows->row < rows->batch.length);
    *size = (int64_t)(used > 0 ? used : needed);
    return used > 0 ? TFOS_OK : TFOS_AGAIN;
}
