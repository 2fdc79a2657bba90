// SPDX-License-Identifier: Apache-2.0
// What a piece holds is released by whichever thread gives up the last of it.
#include "dataset/piece.h"

#include "base/fail.h"
#include "base/memory.h"

static void end_piece(struct tfos__lease *lease)
{
    struct tfos__piece *piece = (struct tfos__piece *)lease;

    tfos__arrow_array_release(&piece->array);
    tfos__arrow_schema_release(&piece->schema);
    tfos__binding_release(piece->binding);
    tfos__free(piece->row_numbers);
    tfos__free(piece);
}

// Bytes of an array, about: its values and offsets, not the bits of its nulls.
static int64_t measure(const struct ArrowSchema *schema, const struct ArrowArray *array)
{
    struct tfos__arrow_type type;

    if (array->length == 0 || tfos__arrow_type_read(&type, schema, NULL) < 0)
        return 0;
    int64_t size = array->length * type.width / 8;
    if (type.layout == TFOS__ARROW_VARIABLE)
        size += tfos__arrow_offset(&type, array, array->length);
    for (int64_t i = 0; i < array->n_children; i++)
        size += measure(schema->children[i], array->children[i]);
    return size;
}

enum tfos_status tfos__piece_open(struct tfos_feed_item *item, struct tfos__piece **out,
                                  struct tfos_error *err)
{
    struct tfos__piece *piece = tfos__alloc(1, sizeof *piece);

    if (!piece) {
        item->array.release(&item->array);
        item->schema.release(&item->schema);
        return tfos__no_memory(err, "dataset", "a batch");
    }
    piece->lease.references = 1;
    piece->lease.end = end_piece;
    piece->schema = item->schema;
    piece->array = item->array;
    piece->partition = item->partition;
    piece->first_row = item->first_row;
    piece->row_step = 1;
    piece->size = measure(&piece->schema, &piece->array);
    *out = piece;
    return TFOS_OK;
}

int64_t tfos__piece_row_number(const struct tfos__piece *piece, int64_t row)
{
    return piece->row_numbers ? piece->row_numbers[row] : piece->first_row + row * piece->row_step;
}

void tfos__piece_locate(const struct tfos__piece *piece, struct tfos_error *err)
{
    if (piece->origin)
        tfos__fail_prefix(err, "dataset: %s", piece->origin);
    else
        tfos__fail_prefix(err, "dataset: partition %lld", (long long)piece->partition);
}

void tfos__piece_locate_row(const struct tfos__piece *piece, int64_t row, struct tfos_error *err)
{
    long long number = (long long)tfos__piece_row_number(piece, row);

    if (piece->origin)
        tfos__fail_prefix(err, "dataset: %s, row %lld", piece->origin, number);
    else
        tfos__fail_prefix(err, "dataset: partition %lld, row %lld", (long long)piece->partition,
                          number);
}

enum tfos_status tfos__piece_bind(struct tfos__piece *piece, const struct tfos__plan *plan,
                                  struct tfos__binding **last, struct tfos_error *err)
{
    if (piece->binding)
        return TFOS_OK;
    if (!*last || !tfos__binding_fits(*last, &piece->schema)) {
        struct tfos__binding *binding = NULL;
        enum tfos_status status = tfos__binding_open(&piece->schema, plan, &binding, err);
        if (status != TFOS_OK) {
            tfos__piece_locate_row(piece, 0, err);
            return status;
        }
        tfos__binding_release(*last);
        *last = binding;
    }
    piece->binding = tfos__binding_share(*last);
    return TFOS_OK;
}

enum tfos_status tfos__piece_extract(const struct tfos__piece *piece,
                                     const struct tfos__arrow_span *spans, int64_t span_count,
                                     struct tfos__piece **out, struct tfos_error *err)
{
    const struct ArrowSchema *schema = &piece->binding->schema;
    struct tfos__piece *copy = tfos__alloc(1, sizeof *copy);

    if (!copy)
        return tfos__no_memory(err, "dataset", "a batch");
    copy->lease.references = 1;
    copy->lease.end = end_piece;
    copy->number = piece->number;
    copy->partition = piece->partition;
    copy->origin = piece->origin;
    copy->binding = tfos__binding_share(piece->binding);
    enum tfos_status status =
        tfos__arrow_array_extract(schema, &piece->array, spans, span_count, &copy->array, err);
    if (status == TFOS_OK) {
        copy->row_numbers = tfos__alloc((size_t)copy->array.length, sizeof *copy->row_numbers);
        if (!copy->row_numbers)
            status = tfos__no_memory(err, "dataset", "a batch");
    }
    if (status != TFOS_OK) {
        tfos__lease_release(&copy->lease);
        return status;
    }
    int64_t position = 0;
    for (int64_t i = 0; i < span_count; i++)
        for (int64_t k = 0; k < spans[i].count; k++)
            copy->row_numbers[position++] = tfos__piece_row_number(piece, spans[i].first + k);
    copy->size = measure(schema, &copy->array);
    *out = copy;
    return TFOS_OK;
}
