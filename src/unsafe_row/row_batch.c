// SPDX-License-Identifier: Apache-2.0
// A batch is a struct column. Rows are read 64 at a time; when one is at fault, the columns, which
// may have come to different rows by then, are cut back to the rows before it.
#include <string.h>
#include <tfos/unsafe_row.h>

#include "base/fail.h"
#include "base/memory.h"
#include "unsafe_row/row_reader.h"

struct tfos_row_batch {
    struct ArrowSchema schema; ///< owned
    struct ArrowSchema shown;  ///< the same, not to be released
    struct tfos__arrow_builder rows;
    struct tfos__unsafe_row_column root;
};

enum tfos_status tfos_row_batch_open(const struct ArrowSchema *schema, struct tfos_row_batch **out,
                                     struct tfos_error *err)
{
    enum tfos_status status = tfos__arrow_check_struct(schema, TFOS_TYPE_NAMES_SPARK, err);
    TFOS__TRY(tfos__fail_in(err, status, "spark"));
    struct tfos_row_batch *batch = tfos__alloc(1, sizeof(*batch));
    if (!batch)
        return tfos__no_memory(err, "spark", "a batch of rows");
    status = tfos__unsafe_row_column_init(&batch->root, schema, &batch->rows, err);
    if (status == TFOS_OK)
        status = tfos_arrow_schema_copy(schema, &batch->schema, err);
    batch->shown = batch->schema;
    batch->shown.release = NULL;
    if (status != TFOS_OK)
        tfos_row_batch_close(batch);
    else
        *out = batch;
    return status;
}

// The bytes not yet read, a row behind the other.
struct stream {
    const uint8_t *data;
    int64_t size;
};

static enum tfos_status next_row(struct stream *stream, size_t fixed_size,
                                 struct tfos__unsafe_row_region *row, struct tfos_error *err)
{
    uint64_t head = 0;
    if (stream->size < TFOS__ROW_HEAD)
        return tfos__fail(err, TFOS_CORRUPT, "the data ends %lld bytes after the row before",
                          (long long)stream->size);
    memcpy(&head, stream->data, sizeof(head));
    // A size beyond 32 bits is one that is not followed by zero.
    if (head > INT32_MAX || head % TFOS__ROW_WORD != 0 || head < fixed_size)
        return tfos__fail(err, TFOS_CORRUPT,
                          "its size, 0x%llx, is no multiple of 8 with at least the %zu bytes of "
                          "its fields",
                          (unsigned long long)head, fixed_size);
    if ((int64_t)head > stream->size - TFOS__ROW_HEAD)
        return tfos__fail(err, TFOS_CORRUPT, "a row of %llu bytes where %lld are left",
                          (unsigned long long)head, (long long)(stream->size - TFOS__ROW_HEAD));
    *row = (struct tfos__unsafe_row_region){stream->data + TFOS__ROW_HEAD, (uint32_t)head,
                                            (uint32_t)(head - fixed_size)};
    stream->data += TFOS__ROW_HEAD + head;
    stream->size -= TFOS__ROW_HEAD + (int64_t)head;
    return TFOS_OK;
}

// Reads up to 64 rows. On failure the rows before are there, but columns may be longer.
static enum tfos_status read_chunk(struct tfos__unsafe_row_column *root, struct stream *stream,
                                   unsigned limit, struct tfos_error *err)
{
    struct tfos__unsafe_row_region rows[TFOS__ROW_CHUNK];
    enum tfos_status status = TFOS_OK;
    unsigned count = 0;
    while (count < limit) {
        status = next_row(stream, root->fixed_size, &rows[count], err);
        if (status != TFOS_OK)
            break;
        count++;
    }
    TFOS__TRY(tfos__unsafe_row_read_rows(root, rows, count, err));
    return status;
}

enum tfos_status tfos_row_batch_append(struct tfos_row_batch *batch, const void *data, int64_t size,
                                       int64_t row_count, struct tfos_error *err)
{
    struct tfos__unsafe_row_column *root = &batch->root;
    struct stream stream = {data, size};
    enum tfos_status status = TFOS_OK;
    if (size < 0 || row_count < 0)
        return tfos__fail(err, TFOS_INVALID, "spark: %lld rows in %lld bytes", (long long)row_count,
                          (long long)size);
    while (row_count > 0 && status == TFOS_OK) {
        unsigned limit = row_count < TFOS__ROW_CHUNK ? (unsigned)row_count : TFOS__ROW_CHUNK;
        status = read_chunk(root, &stream, limit, err);
        row_count -= limit;
    }
    if (status == TFOS_OK && stream.size > 0)
        status =
            tfos__fail(err, TFOS_CORRUPT, "%lld bytes follow the last row", (long long)stream.size);
    if (status != TFOS_OK) {
        tfos__fail_prefix(err, "spark: row %lld", (long long)batch->rows.length);
        tfos__arrow_builder_truncate(&batch->rows, batch->rows.length);
    }
    return status;
}

void tfos_row_batch_show(struct tfos_row_batch *batch, const struct ArrowSchema **schema,
                         const struct ArrowArray **array)
{
    // Each value has been marked as null or not, so that nothing can fail here.
    (void)tfos__arrow_builder_show(&batch->rows, NULL);
    *schema = &batch->shown;
    *array = &batch->rows.array;
}

void tfos_row_batch_clear(struct tfos_row_batch *batch)
{
    tfos__arrow_builder_truncate(&batch->rows, 0);
}

void tfos_row_batch_close(struct tfos_row_batch *batch)
{
    if (!batch)
        return;
    tfos__unsafe_row_column_clear(&batch->root);
    tfos__arrow_builder_clear(&batch->rows);
    tfos__arrow_schema_release(&batch->schema);
    tfos__free(batch);
}
