// SPDX-License-Identifier: Apache-2.0
// A row is read column by column, 64 rows at a time, and an array 64 elements at a time: the null
// bits of one step are a word, and memory is reserved once a step. An array of numbers is one copy.
//
// Nothing that a row says is trusted: each offset, size and count is checked against the region
// that it is in, and the values of a region together take at most as many bytes as it has, as they
// do not overlap when Spark writes them. So the work is bounded by the bytes given.
#include "unsafe_row/row_reader.h"

#include <string.h>

#include "base/fail.h"

/// An array whose head has been checked.
struct elements {
    struct tfos__unsafe_row_region region;
    const uint8_t *nulls;
    const uint8_t *values;
    int64_t count;
};

/// Slots that are read at a time: of 64 rows, or of one array.
struct slots {
    struct tfos__unsafe_row_region *regions;
    unsigned region_step; ///< 1: slot i is of regions[i]; 0: all are of regions[0]
    unsigned count;
    uint64_t nulls;
    uint64_t words[TFOS__ROW_CHUNK]; ///< not set where null
};

// Nothing in a row is aligned for sure.
static uint64_t load_word(const uint8_t *at)
{
    uint64_t word = 0;
    memcpy(&word, at, sizeof(word));
    return word;
}

// Appends an array's elements. A failure is that of the element behind the column's length.
static enum tfos_status read_elements(struct tfos__unsafe_row_column *column,
                                      struct elements *elements, struct tfos_error *err);

// ---- values in the variable part

static bool is_null(const struct slots *slots, unsigned index)
{
    return slots->nulls >> index & 1;
}

// The part of its region that slot `index` points to.
static enum tfos_status take_part(const struct tfos__unsafe_row_column *column, struct slots *slots,
                                  unsigned index, struct tfos__unsafe_row_region *part,
                                  struct tfos_error *err)
{
    struct tfos__unsafe_row_region *region = &slots->regions[index * slots->region_step];
    uint32_t offset = (uint32_t)(slots->words[index] >> 32);
    uint32_t size = (uint32_t)slots->words[index];
    if (size > region->size || offset > region->size - size)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: %u bytes at offset %u of what has %u bytes", column->path,
                          size, offset, region->size);
    if (size > region->left)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: %u bytes at offset %u overlap with those of other values",
                          column->path, size, offset);
    region->left -= size;
    *part = (struct tfos__unsafe_row_region){region->base + offset, size, size};
    return TFOS_OK;
}

// What ending a text or a list came to.
static enum tfos_status check_end(const struct tfos__unsafe_row_column *column,
                                  enum tfos_status status, struct tfos_error *err)
{
    if (status == TFOS_AGAIN)
        return tfos__fail(err, TFOS_INVALID,
                          "column %s: the batch grows beyond offsets of 32 bits: clear it sooner",
                          column->path);
    return status;
}

static enum tfos_status read_big_decimal(const struct tfos__unsafe_row_column *column,
                                         const struct tfos__unsafe_row_region *part, uint8_t *value,
                                         struct tfos_error *err)
{
    if (part->size < 1 || part->size > 16)
        return tfos__fail(err, TFOS_CORRUPT, "column %s: a decimal of %u bytes", column->path,
                          part->size);
    memset(value, part->base[0] & 0x80 ? 0xFF : 0, 16);
    for (uint32_t i = 0; i < part->size; i++)
        value[i] = part->base[part->size - 1 - i];
    return TFOS_OK;
}

// Months and days of 4 bytes each are the same on both sides.
static enum tfos_status read_interval(const struct tfos__unsafe_row_column *column,
                                      const struct tfos__unsafe_row_region *part, uint8_t *value,
                                      struct tfos_error *err)
{
    int64_t microseconds = 0, nanoseconds = 0;
    if (part->size != 16)
        return tfos__fail(err, TFOS_CORRUPT, "column %s: an interval of %u bytes", column->path,
                          part->size);
    memcpy(&microseconds, part->base + 8, sizeof(microseconds));
    if (__builtin_mul_overflow(microseconds, 1000, &nanoseconds))
        return tfos__fail(err, TFOS_INVALID,
                          "column %s: an interval of %lld microseconds is longer than Arrow's 64 "
                          "bits of nanoseconds",
                          column->path, (long long)microseconds);
    memcpy(value, part->base, 8);
    memcpy(value + 8, &nanoseconds, sizeof(nanoseconds));
    return TFOS_OK;
}

// Values that lie in the variable part, though all have one width in Arrow.
static enum tfos_status read_wide(const struct tfos__unsafe_row_column *column, struct slots *slots,
                                  struct tfos_error *err)
{
    struct tfos__arrow_builder *values = column->values;
    TFOS__TRY(tfos__arrow_builder_reserve(values, slots->count, err));
    for (unsigned i = 0; i < slots->count; i++) {
        struct tfos__unsafe_row_region part;
        uint8_t *value = tfos__arrow_builder_end(values);
        if (is_null(slots, i)) {
            memset(value, 0, 16);
        } else {
            TFOS__TRY(take_part(column, slots, i, &part, err));
            TFOS__TRY(values->type.kind == TFOS__ARROW_INTERVAL
                          ? read_interval(column, &part, value, err)
                          : read_big_decimal(column, &part, value, err));
        }
        values->length++;
    }
    return TFOS_OK;
}

static enum tfos_status read_bytes(struct tfos__unsafe_row_column *column, struct slots *slots,
                                   struct tfos_error *err)
{
    for (unsigned i = 0; i < slots->count; i++) {
        struct tfos__unsafe_row_region part = {0};
        if (!is_null(slots, i))
            TFOS__TRY(take_part(column, slots, i, &part, err));
        enum tfos_status status =
            tfos__arrow_builder_append_bytes(column->values, part.base, part.size, err);
        TFOS__TRY(check_end(column, status, err));
    }
    return TFOS_OK;
}

// Reads the head of an array of values of `element`.
static enum tfos_status open_array(const struct tfos__unsafe_row_column *element,
                                   const struct tfos__unsafe_row_region *part,
                                   struct elements *elements, struct tfos_error *err)
{
    uint64_t count = part->size < TFOS__ROW_WORD ? UINT64_MAX : load_word(part->base);
    // More elements than bytes: refused first, so that what follows cannot overflow.
    uint64_t head = count > part->size
                        ? UINT64_MAX
                        : TFOS__ROW_WORD + tfos__unsafe_row_null_bits_size((int64_t)count);
    if (head > part->size || count * element->element_size > part->size - head)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: an array of %u bytes that says to have %llu elements",
                          element->path, part->size, (unsigned long long)count);
    *elements = (struct elements){
        .region = {part->base, part->size,
                   part->size - (uint32_t)(head + count * element->element_size)},
        .nulls = part->base + TFOS__ROW_WORD,
        .values = part->base + head,
        .count = (int64_t)count,
    };
    return TFOS_OK;
}

static enum tfos_status read_list(struct tfos__unsafe_row_column *column,
                                  const struct tfos__unsafe_row_region *part,
                                  struct tfos_error *err)
{
    struct elements elements;
    TFOS__TRY(open_array(&column->children[0], part, &elements, err));
    return read_elements(&column->children[0], &elements, err);
}

static enum tfos_status read_map(struct tfos__unsafe_row_column *column,
                                 const struct tfos__unsafe_row_region *part, struct tfos_error *err)
{
    struct tfos__unsafe_row_column *entries = &column->children[0];
    struct tfos__unsafe_row_column *key = &entries->children[0], *value = &entries->children[1];
    struct elements keys, values;
    int64_t null_count = key->values->null_count;
    uint64_t key_size = part->size < TFOS__ROW_WORD ? UINT64_MAX : load_word(part->base);
    if (part->size < TFOS__ROW_WORD || key_size > part->size - TFOS__ROW_WORD)
        return tfos__fail(err, TFOS_CORRUPT, "column %s: a map of %u bytes with %llu of keys",
                          column->path, part->size, (unsigned long long)key_size);
    struct tfos__unsafe_row_region region = {.base = part->base + TFOS__ROW_WORD,
                                             .size = (uint32_t)key_size};
    TFOS__TRY(open_array(key, &region, &keys, err));
    region.base += key_size;
    region.size = part->size - TFOS__ROW_WORD - (uint32_t)key_size;
    TFOS__TRY(open_array(value, &region, &values, err));
    if (keys.count != values.count)
        return tfos__fail(err, TFOS_CORRUPT, "column %s: a map of %lld keys and %lld values",
                          column->path, (long long)keys.count, (long long)values.count);
    TFOS__TRY(read_elements(key, &keys, err));
    if (key->values->null_count != null_count)
        return tfos__fail(err, TFOS_CORRUPT, "column %s: a key is null", column->path);
    TFOS__TRY(read_elements(value, &values, err));
    entries->values->length += keys.count;
    return TFOS_OK;
}

static enum tfos_status read_lists(struct tfos__unsafe_row_column *column, struct slots *slots,
                                   struct tfos_error *err)
{
    struct tfos__arrow_builder *values = column->values;
    for (unsigned i = 0; i < slots->count; i++) {
        if (!is_null(slots, i)) {
            struct tfos__unsafe_row_region part;
            TFOS__TRY(take_part(column, slots, i, &part, err));
            TFOS__TRY(values->type.kind == TFOS__ARROW_MAP ? read_map(column, &part, err)
                                                           : read_list(column, &part, err));
        }
        TFOS__TRY(check_end(column, tfos__arrow_builder_end_list(values, err), err));
    }
    return TFOS_OK;
}

static enum tfos_status read_structs(struct tfos__unsafe_row_column *column, struct slots *slots,
                                     struct tfos_error *err)
{
    struct tfos__unsafe_row_region rows[TFOS__ROW_CHUNK];
    enum tfos_status status = TFOS_OK;
    unsigned count = 0;
    for (; count < slots->count; count++) {
        struct tfos__unsafe_row_region *row = &rows[count];
        if (is_null(slots, count)) {
            *row =
                (struct tfos__unsafe_row_region){column->null_row, (uint32_t)column->fixed_size, 0};
            continue;
        }
        status = take_part(column, slots, count, row, err);
        if (status == TFOS_OK && row->size < column->fixed_size)
            status = tfos__fail(err, TFOS_CORRUPT,
                                "column %s: a struct of %u bytes, less than the %zu of its fields",
                                column->path, row->size, column->fixed_size);
        if (status != TFOS_OK)
            break;
        row->left -= (uint32_t)column->fixed_size;
    }
    TFOS__TRY(tfos__unsafe_row_read_rows(column, rows, count, err));
    return status;
}

// Appends values of a type that lies in the variable part; their nulls are marked already. A
// failure is that of the slot behind the column's length.
static enum tfos_status read_slots(struct tfos__unsafe_row_column *column, struct slots *slots,
                                   struct tfos_error *err)
{
    switch (tfos__unsafe_row_column_kind(column)) {
    case TFOS__ARROW_DECIMAL:
    case TFOS__ARROW_INTERVAL:
        return read_wide(column, slots, err);
    case TFOS__ARROW_TEXT:
    case TFOS__ARROW_BINARY:
        return read_bytes(column, slots, err);
    case TFOS__ARROW_STRUCT:
        return read_structs(column, slots, err);
    default:
        return read_lists(column, slots, err);
    }
}

// ---- fields of rows

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
    memcpy(value, words, sizeof(words));
}

// Copies one slot of each row. Callers pass a constant width, so that each copy is one move.
static inline void copy_slots(uint8_t *values, const struct tfos__unsafe_row_region *rows,
                              unsigned count, size_t slot, size_t width)
{
    for (unsigned i = 0; i < count; i++)
        memcpy(values + i * width, rows[i].base + slot, width);
}

static enum tfos_status read_fixed_slots(struct tfos__unsafe_row_column *column,
                                         const struct tfos__unsafe_row_region *rows, unsigned count,
                                         uint64_t nulls, struct tfos_error *err)
{
    struct tfos__arrow_builder *builder = column->values;
    size_t width = (size_t)builder->type.width / 8;
    TFOS__TRY(tfos__arrow_builder_reserve(builder, count, err));
    uint8_t *values = tfos__arrow_builder_end(builder);
    if (builder->type.kind == TFOS__ARROW_DECIMAL)
        for (unsigned i = 0; i < count; i++)
            put_decimal(values + 16 * (size_t)i, load_word(rows[i].base + column->slot));
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

static enum tfos_status read_boolean_slots(struct tfos__unsafe_row_column *column,
                                           const struct tfos__unsafe_row_region *rows,
                                           unsigned count, uint64_t nulls, struct tfos_error *err)
{
    uint64_t bits = 0;
    TFOS__TRY(tfos__arrow_builder_reserve(column->values, count, err));
    for (unsigned i = 0; i < count; i++)
        bits |= (uint64_t)(rows[i].base[column->slot] != 0) << i;
    tfos__arrow_builder_put_bits(column->values, bits & ~nulls, count);
    return TFOS_OK;
}

// Appends the field `column` of up to 64 rows.
static enum tfos_status read_field(struct tfos__unsafe_row_column *column,
                                   struct tfos__unsafe_row_region *rows, unsigned count,
                                   struct tfos_error *err)
{
    uint64_t nulls = 0;
    if (tfos__unsafe_row_column_kind(column) == TFOS__ARROW_NULL) {
        column->values->length += count;
        return TFOS_OK;
    }
    for (unsigned i = 0; i < count; i++)
        nulls |= (load_word(rows[i].base + column->null_word) >> column->null_bit & 1) << i;
    TFOS__TRY(tfos__arrow_builder_mark(column->values, column->values->length, nulls, count, err));
    if (tfos__unsafe_row_column_kind(column) == TFOS__ARROW_BOOL)
        return read_boolean_slots(column, rows, count, nulls, err);
    if (!column->is_variable)
        return read_fixed_slots(column, rows, count, nulls, err);
    struct slots slots = {.regions = rows, .region_step = 1, .count = count, .nulls = nulls};
    for (unsigned i = 0; i < count; i++)
        slots.words[i] = load_word(rows[i].base + column->slot);
    return read_slots(column, &slots, err);
}

enum tfos_status tfos__unsafe_row_read_rows(struct tfos__unsafe_row_column *column,
                                            struct tfos__unsafe_row_region *rows, unsigned count,
                                            struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    // After a failure the columns behind it are read for the rows before it, as one of those may be
    // at fault too.
    for (int64_t i = 0; i < column->child_count && count > 0; i++) {
        struct tfos__unsafe_row_column *child = &column->children[i];
        enum tfos_status child_status = read_field(child, rows, count, err);
        if (child_status != TFOS_OK) {
            status = child_status;
            count = (unsigned)(child->values->length - column->values->length);
        }
    }
    column->values->length += count;
    return status;
}

// ---- elements of arrays

// The null bits of the up to 64 elements from `first` on.
static uint64_t element_nulls(const struct elements *elements, int64_t first)
{
    uint64_t word = load_word(elements->nulls + first / 64 * TFOS__ROW_WORD);
    return word & tfos__arrow_mask(least(64, elements->count - first));
}

static bool has_nulls(const struct elements *elements)
{
    uint64_t nulls = 0;
    for (int64_t first = 0; first < elements->count; first += 64)
        nulls |= element_nulls(elements, first);
    return nulls != 0;
}

static enum tfos_status mark_elements(struct tfos__arrow_builder *builder,
                                      const struct elements *elements, struct tfos_error *err)
{
    for (int64_t first = 0; first < elements->count; first += 64)
        TFOS__TRY(tfos__arrow_builder_mark(builder, builder->length + first,
                                           element_nulls(elements, first),
                                           least(64, elements->count - first), err));
    return TFOS_OK;
}

static enum tfos_status read_fixed_elements(struct tfos__unsafe_row_column *column,
                                            const struct elements *elements, bool is_nullable,
                                            struct tfos_error *err)
{
    struct tfos__arrow_builder *builder = column->values;
    size_t width = (size_t)builder->type.width / 8;
    TFOS__TRY(tfos__arrow_builder_reserve(builder, elements->count, err));
    uint8_t *values = tfos__arrow_builder_end(builder);
    if (builder->type.kind == TFOS__ARROW_DECIMAL)
        for (int64_t i = 0; i < elements->count; i++)
            put_decimal(values + 16 * i, load_word(elements->values + TFOS__ROW_WORD * i));
    else
        memcpy(values, elements->values, (size_t)elements->count * width);
    for (int64_t first = 0; is_nullable && first < elements->count; first += 64)
        zero_nulls(values + (size_t)first * width, width, element_nulls(elements, first));
    builder->length += elements->count;
    return TFOS_OK;
}

static enum tfos_status read_boolean_elements(struct tfos__unsafe_row_column *column,
                                              const struct elements *elements,
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

static enum tfos_status read_variable_elements(struct tfos__unsafe_row_column *column,
                                               struct elements *elements, struct tfos_error *err)
{
    struct slots slots = {.regions = &elements->region};
    for (int64_t first = 0; first < elements->count; first += 64) {
        slots.count = least(64, elements->count - first);
        slots.nulls = element_nulls(elements, first);
        memcpy(slots.words, elements->values + TFOS__ROW_WORD * first,
               TFOS__ROW_WORD * (size_t)slots.count);
        TFOS__TRY(read_slots(column, &slots, err));
    }
    return TFOS_OK;
}

static enum tfos_status read_elements(struct tfos__unsafe_row_column *column,
                                      struct elements *elements, struct tfos_error *err)
{
    if (tfos__unsafe_row_column_kind(column) == TFOS__ARROW_NULL || elements->count == 0) {
        column->values->length += elements->count;
        return TFOS_OK;
    }
    bool is_nullable = has_nulls(elements);
    if (is_nullable || column->values->null_count > 0)
        TFOS__TRY(mark_elements(column->values, elements, err));
    if (tfos__unsafe_row_column_kind(column) == TFOS__ARROW_BOOL)
        return read_boolean_elements(column, elements, err);
    return column->is_variable ? read_variable_elements(column, elements, err)
                               : read_fixed_elements(column, elements, is_nullable, err);
}
