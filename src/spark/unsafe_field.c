// SPDX-License-Identifier: Apache-2.0
// A row is read column by column, 64 rows at a time, and an array 64 elements at a time: the null
// bits of one step are a word, and what must be reserved is reserved once for a step. An array of
// numbers is one copy.
#include "base/fail.h"
#include "spark/unsafe_value.h"

static unsigned least(unsigned a, int64_t b)
{
    return b < (int64_t)a ? (unsigned)b : a;
}

static void zero_nulls(uint8_t *values, size_t width, uint64_t nulls)
{
    for (; nulls != 0; nulls &= nulls - 1)
        memset(values + (size_t)__builtin_ctzll(nulls) * width, 0, width);
}

static void put_decimal(uint8_t *value, uint64_t word)
{
    uint64_t words[2] = {word, word >> 63 ? UINT64_MAX : 0};

    memcpy(value, words, sizeof words);
}

// Copies one slot of each row. With a width that is constant where it is called, a plain move.
static inline void copy_slots(uint8_t *values, const struct tfos__unsafe_region *rows,
                              unsigned count, size_t slot, size_t width)
{
    for (unsigned i = 0; i < count; i++)
        memcpy(values + i * width, rows[i].base + slot, width);
}

static enum tfos_status read_fixed_slots(struct tfos__unsafe_column *column,
                                         const struct tfos__unsafe_region *rows, unsigned count,
                                         uint64_t nulls, struct tfos_error *err)
{
    struct tfos__arrow_builder *builder = column->values;
    size_t width = (size_t)builder->type.width / 8;

    TFOS__TRY(tfos__arrow_builder_reserve(builder, count, err));
    uint8_t *values = tfos__arrow_builder_end(builder);
    if (builder->type.kind == TFOS__ARROW_DECIMAL)
        for (unsigned i = 0; i < count; i++)
            put_decimal(values + 16 * (size_t)i,
                        tfos__unsafe_load_word(rows[i].base + column->slot));
    else if (width == 8)
        copy_slots(values, rows, count, column->slot, 8);
    else if (width == 4)
        copy_slots(values, rows, count, column->slot, 4);
    else
        copy_slots(values, rows, count, column->slot, width);
    zero_nulls(values, width, nulls);
    builder->length += count;
    return TFOS_OK;
}

static enum tfos_status read_boolean_slots(struct tfos__unsafe_column *column,
                                           const struct tfos__unsafe_region *rows, unsigned count,
                                           uint64_t nulls, struct tfos_error *err)
{
    uint64_t bits = 0;

    TFOS__TRY(tfos__arrow_builder_reserve(column->values, count, err));
    for (unsigned i = 0; i < count; i++)
        bits |= (uint64_t)(rows[i].base[column->slot] != 0) << i;
    tfos__arrow_builder_put_bits(column->values, bits & ~nulls, count);
    return TFOS_OK;
}

// Appends the field `column` of up to 64 rows.
static enum tfos_status read_field(struct tfos__unsafe_column *column,
                                   struct tfos__unsafe_region *rows, unsigned count,
                                   struct tfos_error *err)
{
    uint64_t nulls = 0;

    if (tfos__unsafe_column_kind(column) == TFOS__ARROW_NULL) {
        column->values->length += count;
        return TFOS_OK;
    }
    for (unsigned i = 0; i < count; i++)
        nulls |= (tfos__unsafe_load_word(rows[i].base + column->null_word) >> column->null_bit & 1)
                 << i;
    TFOS__TRY(tfos__arrow_builder_mark(column->values, column->values->length, nulls, count, err));
    if (tfos__unsafe_column_kind(column) == TFOS__ARROW_BOOL)
        return read_boolean_slots(column, rows, count, nulls, err);
    if (!column->is_variable)
        return read_fixed_slots(column, rows, count, nulls, err);
    struct tfos__unsafe_cells cells = {
        .regions = rows, .region_step = 1, .count = count, .nulls = nulls};
    for (unsigned i = 0; i < count; i++)
        cells.words[i] = tfos__unsafe_load_word(rows[i].base + column->slot);
    return tfos__unsafe_read_cells(column, &cells, err);
}

enum tfos_status tfos__unsafe_read_rows(struct tfos__unsafe_column *column,
                                        struct tfos__unsafe_region *rows, unsigned count,
                                        struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    // After a failure the columns behind it are read for the rows before it, as one of those may be
    // at fault too.
    for (int64_t i = 0; i < column->child_count && count > 0; i++) {
        struct tfos__unsafe_column *child = &column->children[i];
        enum tfos_status child_status = read_field(child, rows, count, err);
        if (child_status != TFOS_OK) {
            status = child_status;
            count = (unsigned)(child->values->length - column->values->length);
        }
    }
    column->values->length += count;
    return status;
}

// The null bits of the up to 64 elements from `first` on.
static uint64_t element_nulls(const struct tfos__unsafe_elements *elements, int64_t first)
{
    uint64_t word = tfos__unsafe_load_word(elements->nulls + first / 64 * TFOS__UNSAFE_WORD);

    return word & tfos__arrow_mask(least(64, elements->count - first));
}

static bool has_nulls(const struct tfos__unsafe_elements *elements)
{
    uint64_t nulls = 0;

    for (int64_t first = 0; first < elements->count; first += 64)
        nulls |= element_nulls(elements, first);
    return nulls != 0;
}

static enum tfos_status mark_elements(struct tfos__arrow_builder *builder,
                                      const struct tfos__unsafe_elements *elements,
                                      struct tfos_error *err)
{
    for (int64_t first = 0; first < elements->count; first += 64)
        TFOS__TRY(tfos__arrow_builder_mark(builder, builder->length + first,
                                           element_nulls(elements, first),
                                           least(64, elements->count - first), err));
    return TFOS_OK;
}

static enum tfos_status read_fixed_elements(struct tfos__unsafe_column *column,
                                            const struct tfos__unsafe_elements *elements,
                                            bool is_nullable, struct tfos_error *err)
{
    struct tfos__arrow_builder *builder = column->values;
    size_t width = (size_t)builder->type.width / 8;

    TFOS__TRY(tfos__arrow_builder_reserve(builder, elements->count, err));
    uint8_t *values = tfos__arrow_builder_end(builder);
    if (builder->type.kind == TFOS__ARROW_DECIMAL)
        for (int64_t i = 0; i < elements->count; i++)
            put_decimal(values + 16 * i,
                        tfos__unsafe_load_word(elements->values + TFOS__UNSAFE_WORD * i));
    else
        memcpy(values, elements->values, (size_t)elements->count * width);
    for (int64_t first = 0; is_nullable && first < elements->count; first += 64)
        zero_nulls(values + (size_t)first * width, width, element_nulls(elements, first));
    builder->length += elements->count;
    return TFOS_OK;
}

static enum tfos_status read_boolean_elements(struct tfos__unsafe_column *column,
                                              const struct tfos__unsafe_elements *elements,
                                              struct tfos_error *err)
{
    TFOS__TRY(tfos__arrow_builder_reserve(column->values, elements->count, err));
    for (int64_t first = 0; first < elements->count; first += 64) {
        unsigned count = least(64, elements->count - first);
        uint64_t bits = 0;
        for (unsigned i = 0; i < count; i++)
            bits |= (uint64_t)(elements->values[first + i] != 0) << i;
        tfos__arrow_builder_put_bits(column->values, bits & ~element_nulls(elements, first), count);
    }
    return TFOS_OK;
}

static enum tfos_status read_variable_elements(struct tfos__unsafe_column *column,
                                               struct tfos__unsafe_elements *elements,
                                               struct tfos_error *err)
{
    struct tfos__unsafe_cells cells = {.regions = &elements->region};

    for (int64_t first = 0; first < elements->count; first += 64) {
        cells.count = least(64, elements->count - first);
        cells.nulls = element_nulls(elements, first);
        memcpy(cells.words, elements->values + TFOS__UNSAFE_WORD * first,
               TFOS__UNSAFE_WORD * (size_t)cells.count);
        TFOS__TRY(tfos__unsafe_read_cells(column, &cells, err));
    }
    return TFOS_OK;
}

enum tfos_status tfos__unsafe_read_elements(struct tfos__unsafe_column *column,
                                            struct tfos__unsafe_elements *elements,
                                            struct tfos_error *err)
{
    if (tfos__unsafe_column_kind(column) == TFOS__ARROW_NULL || elements->count == 0) {
        column->values->length += elements->count;
        return TFOS_OK;
    }
    bool is_nullable = has_nulls(elements);
    if (is_nullable || column->values->null_count > 0)
        TFOS__TRY(mark_elements(column->values, elements, err));
    if (tfos__unsafe_column_kind(column) == TFOS__ARROW_BOOL)
        return read_boolean_elements(column, elements, err);
    return column->is_variable ? read_variable_elements(column, elements, err)
                               : read_fixed_elements(column, elements, is_nullable, err);
}
