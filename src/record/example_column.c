// SPDX-License-Identifier: Apache-2.0
// A row is a value, a list, or a list of lists, as its field says. Validity is of rows only: the
// lists of a record hold no nulls.
#include "record/example_column.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

static enum tfos_status fail(const struct tfos__example_column *column, struct tfos_error *err,
                             const char *words)
{
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %s", column->field->name, words);
}

static enum tfos_status reserve_offsets(struct tfos__aligned *offsets, bool is_wide, int64_t count,
                                        struct tfos_error *err)
{
    size_t width = is_wide ? sizeof(int64_t) : sizeof(int32_t);
    size_t used = count > 0 ? ((size_t)count + 1) * width : 0;
    TFOS__TRY(tfos__aligned_reserve(offsets, used, 2 * width, err));
    if (count == 0)
        memset(offsets->data, 0, width);
    return TFOS_OK;
}

// Notes where list number `count` of a level ends. AGAIN: too far for 32 bits.
static enum tfos_status end_list(struct tfos__aligned *offsets, bool is_wide, int64_t count,
                                 int64_t end, struct tfos_error *err)
{
    TFOS__TRY(reserve_offsets(offsets, is_wide, count, err));
    if (is_wide)
        ((int64_t *)(void *)offsets->data)[count + 1] = end;
    else if (end > INT32_MAX)
        return TFOS_AGAIN;
    else
        ((int32_t *)(void *)offsets->data)[count + 1] = (int32_t)end;
    return TFOS_OK;
}

static enum tfos_status mark(struct tfos__example_column *column, bool is_null,
                             struct tfos_error *err)
{
    struct tfos__example_extent *extent = &column->extent;
    size_t row = (size_t)extent->rows, used = (row + 7) / 8;
    if (!is_null && extent->null_count == 0)
        return TFOS_OK;
    TFOS__TRY(tfos__aligned_reserve(&column->validity, extent->null_count > 0 ? used : 0,
                                    extent->null_count > 0 ? 1 : used + 1, err));
    if (extent->null_count == 0)
        memset(column->validity.data, 0xFF, used + 1);
    uint8_t bit = (uint8_t)(1u << row % 8), *byte = &column->validity.data[row / 8];
    if (row % 8 == 0)
        *byte = 0;
    *byte = (uint8_t)(is_null ? *byte & ~bit : *byte | bit);
    extent->null_count += is_null;
    return TFOS_OK;
}

// A null row: its list is empty, or, of a fixed size, full of what stands for nothing.
static enum tfos_status append_null(struct tfos__example_column *column, struct tfos_error *err)
{
    const struct tfos__example_field *field = column->field;
    struct tfos__example_extent *extent = &column->extent;
    int64_t count = 1; // of the lists or values at the level
    if (!field->is_nullable)
        return fail(column, err, "the record has none, and the schema says that none is null");
    TFOS__TRY(mark(column, true, err));
    for (int i = 0; i < field->level_count; i++) {
        bool is_inner = i + 1 == field->level_count, is_fixed = field->levels[i].fixed_size >= 0;
        int64_t end = is_inner ? extent->value_count : extent->list_counts[i + 1];
        for (int64_t k = 0; k < count; k++, extent->list_counts[i]++)
            if (!is_fixed)
                TFOS__TRY(end_list(&column->offsets[i], field->levels[i].is_wide,
                                   extent->list_counts[i], end, err));
        count *= is_fixed ? field->levels[i].fixed_size : 0;
    }
    return tfos__example_values_append_zeros(column, count, err);
}

// Adds the values of the pieces of a step, beginning with `*piece`, which moves behind them.
static enum tfos_status append_step(struct tfos__example_column *column,
                                    const struct tfos__feature *feature, uint32_t step,
                                    uint32_t *piece, struct tfos_error *err)
{
    for (; *piece < feature->piece_count && feature->pieces[*piece].step == step; ++*piece) {
        const struct tfos__feature_piece *at = &feature->pieces[*piece];
        TFOS__TRY(at->kind == column->field->kind
                      ? tfos__example_values_append(column, at->list, err)
                      : tfos__example_values_convert(column, at->kind, at->list, err));
    }
    return TFOS_OK;
}

// The list of `level` that holds `count` lists or values ends.
static enum tfos_status close_list(struct tfos__example_column *column, int level, int64_t count,
                                   struct tfos_error *err)
{
    const struct tfos__example_field *field = column->field;
    struct tfos__example_extent *extent = &column->extent;
    int64_t fixed_size = field->levels[level].fixed_size;
    if (fixed_size >= 0 && count != fixed_size)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: a list of %lld, where each of %s has %lld: read it as lists "
                          "of any size",
                          field->name, (long long)count, field->type, (long long)fixed_size);
    if (fixed_size < 0) {
        bool is_inner = level + 1 == field->level_count;
        enum tfos_status status = end_list(
            &column->offsets[level], field->levels[level].is_wide, extent->list_counts[level],
            is_inner ? extent->value_count : extent->list_counts[level + 1], err);
        if (status != TFOS_OK)
            return status;
    }
    extent->list_counts[level]++;
    return TFOS_OK;
}

static enum tfos_status several_values(const struct tfos__example_column *column, int64_t count,
                                       struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    const struct tfos__example_field *field = column->field;
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %lld values, where %s is one: read it as %s",
                      field->name, (long long)count, field->type,
                      tfos__example_type_of(field, field->kind, 1, text));
}

static enum tfos_status append_scalar(struct tfos__example_column *column, struct tfos_error *err)
{
    uint32_t piece = 0;
    int64_t before = column->extent.value_count;
    TFOS__TRY(append_step(column, &column->plain, 0, &piece, err));
    int64_t count = column->extent.value_count - before;
    if (count == 0)
        return append_null(column, err);
    if (count > 1)
        return several_values(column, count, err);
    return mark(column, false, err);
}

static enum tfos_status append_plain_list(struct tfos__example_column *column,
                                          struct tfos_error *err)
{
    uint32_t piece = 0;
    int64_t before = column->extent.value_count;
    if (column->plain.piece_count == 0)
        return append_null(column, err);
    TFOS__TRY(append_step(column, &column->plain, 0, &piece, err));
    TFOS__TRY(mark(column, false, err));
    return close_list(column, 0, column->extent.value_count - before, err);
}

// A column of lists whose feature is a feature list: a value of each of its features.
static enum tfos_status append_steps_as_list(struct tfos__example_column *column,
                                             struct tfos_error *err)
{
    uint32_t piece = 0;
    for (uint32_t step = 0; step < column->list.step_count; step++) {
        int64_t before = column->extent.value_count;
        TFOS__TRY(append_step(column, &column->list, step, &piece, err));
        if (column->extent.value_count != before + 1)
            return tfos__fail(err, TFOS_CORRUPT,
                              "column %s: feature %u of the feature list has %lld values, where "
                              "%s has one: read it as lists of lists",
                              column->field->name, step,
                              (long long)(column->extent.value_count - before),
                              column->field->type);
    }
    TFOS__TRY(mark(column, false, err));
    return close_list(column, 0, column->list.step_count, err);
}

static enum tfos_status append_lists(struct tfos__example_column *column, struct tfos_error *err)
{
    uint32_t piece = 0;
    for (uint32_t step = 0; step < column->list.step_count; step++) {
        int64_t before = column->extent.value_count;
        TFOS__TRY(append_step(column, &column->list, step, &piece, err));
        enum tfos_status status = close_list(column, 1, column->extent.value_count - before, err);
        if (status != TFOS_OK)
            return status;
    }
    TFOS__TRY(mark(column, false, err));
    return close_list(column, 0, column->list.step_count, err);
}

enum tfos_status tfos__example_column_append(struct tfos__example_column *column,
                                             struct tfos_error *err)
{
    const struct tfos__example_field *field = column->field;
    enum tfos_status status;
    if (field->level_count < 2 && column->plain.is_present && column->list.is_present)
        return fail(column, err, "the record has it as a context feature and as a feature list");
    if (field->level_count == 0 && column->list.is_present)
        return tfos__fail(
            err, TFOS_CORRUPT,
            "column %s: a feature list, where %s is no list: read it as lists of lists",
            field->name, field->type);
    if (field->level_count == 2 && column->plain.is_present)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: a context feature, where %s is lists of lists: read it as a "
                          "list, or as one value",
                          field->name, field->type);
    if (!column->plain.is_present && !column->list.is_present)
        status = append_null(column, err);
    else if (field->level_count == 0)
        status = append_scalar(column, err);
    else if (field->level_count == 2)
        status = append_lists(column, err);
    else
        status = column->plain.is_present ? append_plain_list(column, err)
                                          : append_steps_as_list(column, err);
    if (status != TFOS_OK)
        return status;
    bool is_narrow = field->value >= TFOS__VALUE_TEXT && !field->has_wide_bytes;
    if (is_narrow && column->extent.byte_count > INT32_MAX)
        return TFOS_AGAIN;
    column->extent.rows++;
    return TFOS_OK;
}

/// What an array of a column owns.
struct holder {
    struct ArrowArray child;     ///< of a list
    struct ArrowArray *children; ///< that one's address
    const void *buffers[3];
    struct tfos__aligned owned[3];
};

static void release_array(struct ArrowArray *array)
{
    struct holder *holder = array->private_data;
    if (holder->child.release)
        holder->child.release(&holder->child);
    for (int i = 0; i < 3; i++)
        tfos__aligned_clear(&holder->owned[i]);
    tfos__free(holder);
    array->release = NULL;
}

// An array without a child; takes over the memory of the buffers.
static enum tfos_status make_array(struct ArrowArray *out, int64_t length, int buffer_count,
                                   struct tfos__aligned *buffers[], struct tfos_error *err)
{
    // What an empty buffer points to; as offsets, the 0 that they begin with.
    static const _Alignas(64) uint8_t nothing[64];
    struct holder *holder = tfos__alloc(1, sizeof *holder);
    if (!holder)
        return tfos__no_memory(err, "record", "an array");
    for (int i = 0; i < buffer_count; i++) {
        if (!buffers[i])
            continue;
        holder->owned[i] = tfos__aligned_take(buffers[i]);
        holder->buffers[i] = holder->owned[i].data ? holder->owned[i].data : nothing;
    }
    *out = (struct ArrowArray){.length = length,
                               .n_buffers = buffer_count,
                               .buffers = holder->buffers,
                               .release = release_array,
                               .private_data = holder};
    return TFOS_OK;
}

// Booleans were a byte each.
static void pack_bits(struct tfos__aligned *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint8_t bit = values->data[i];
        if (i % 8 == 0)
            values->data[i / 8] = 0;
        values->data[i / 8] |= (uint8_t)(bit << i % 8);
    }
}

static enum tfos_status take_values(struct tfos__example_column *column,
                                    struct tfos__aligned *validity, struct ArrowArray *out,
                                    struct tfos_error *err)
{
    bool has_bytes = column->field->value >= TFOS__VALUE_TEXT;
    struct tfos__aligned *buffers[] = {validity, &column->values, &column->bytes};
    if (column->field->value == TFOS__VALUE_BOOLEAN)
        pack_bits(&column->values, column->extent.value_count);
    return make_array(out, column->extent.value_count, has_bytes ? 3 : 2, buffers, err);
}

// The array of the lists of a level around `*inner`, which moves into it.
static enum tfos_status wrap(struct tfos__example_column *column, int level,
                             struct tfos__aligned *validity, struct ArrowArray *inner,
                             struct tfos_error *err)
{
    struct tfos__aligned *buffers[] = {validity, &column->offsets[level]};
    bool has_offsets = column->field->levels[level].fixed_size < 0;
    struct ArrowArray outer;
    TFOS__TRY(
        make_array(&outer, column->extent.list_counts[level], has_offsets ? 2 : 1, buffers, err));
    struct holder *holder = outer.private_data;
    holder->child = *inner;
    holder->children = &holder->child;
    outer.n_children = 1;
    outer.children = &holder->children;
    *inner = outer;
    return TFOS_OK;
}

enum tfos_status tfos__example_column_take(struct tfos__example_column *column,
                                           struct ArrowArray *out, struct tfos_error *err)
{
    struct tfos__aligned *validity = column->extent.null_count > 0 ? &column->validity : NULL;
    int level = column->field->level_count;
    struct ArrowArray array;
    enum tfos_status status = take_values(column, level == 0 ? validity : NULL, &array, err);
    if (status < 0)
        return status;
    while (status == TFOS_OK && level-- > 0)
        status = wrap(column, level, level == 0 ? validity : NULL, &array, err);
    array.null_count = column->extent.null_count;
    column->extent = (struct tfos__example_extent){0};
    if (status < 0)
        array.release(&array);
    else
        *out = array;
    return status;
}

void tfos__example_column_clear(struct tfos__example_column *column)
{
    tfos__feature_clear(&column->plain);
    tfos__feature_clear(&column->list);
    tfos__aligned_clear(&column->validity);
    tfos__aligned_clear(&column->values);
    tfos__aligned_clear(&column->bytes);
    for (int i = 0; i < TFOS__EXAMPLE_LEVELS; i++)
        tfos__aligned_clear(&column->offsets[i]);
}
