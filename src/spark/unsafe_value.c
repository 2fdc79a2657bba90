// SPDX-License-Identifier: Apache-2.0
// Values in the variable part of a row or an array. Nothing that a row says is trusted: each
// offset, size and count is checked against the region it is in, and the values of a region
// together may take no more bytes than it has, as they do not overlap when Spark writes them. So
// the work is bounded by the bytes given.
#include "spark/unsafe_value.h"

#include "base/fail.h"

static bool is_null(const struct tfos__unsafe_cells *cells, unsigned index)
{
    return cells->nulls >> index & 1;
}

// The part of its region that cell `index` points to.
static enum tfos_status take_part(const struct tfos__unsafe_column *column,
                                  struct tfos__unsafe_cells *cells, unsigned index,
                                  struct tfos__unsafe_region *part, struct tfos_error *err)
{
    struct tfos__unsafe_region *region = &cells->regions[index * cells->region_step];
    uint32_t offset = (uint32_t)(cells->words[index] >> 32);
    uint32_t size = (uint32_t)cells->words[index];

    if (size > region->size || offset > region->size - size)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: %u bytes at offset %u of what has %u bytes", column->path,
                          size, offset, region->size);
    if (size > region->left)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: %u bytes at offset %u overlap with those of other values",
                          column->path, size, offset);
    region->left -= size;
    *part = (struct tfos__unsafe_region){region->base + offset, size, size};
    return TFOS_OK;
}

// What ending a text or a list came to.
static enum tfos_status check_end(const struct tfos__unsafe_column *column, enum tfos_status status,
                                  struct tfos_error *err)
{
    if (status == TFOS_AGAIN)
        return tfos__fail(err, TFOS_INVALID,
                          "column %s: the batch grows beyond offsets of 32 bits: clear it sooner",
                          column->path);
    return status;
}

static enum tfos_status read_big_decimal(const struct tfos__unsafe_column *column,
                                         const struct tfos__unsafe_region *part, uint8_t *value,
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
static enum tfos_status read_interval(const struct tfos__unsafe_column *column,
                                      const struct tfos__unsafe_region *part, uint8_t *value,
                                      struct tfos_error *err)
{
    int64_t microseconds = 0, nanoseconds = 0;

    if (part->size != 16)
        return tfos__fail(err, TFOS_CORRUPT, "column %s: an interval of %u bytes", column->path,
                          part->size);
    memcpy(&microseconds, part->base + 8, sizeof microseconds);
    if (__builtin_mul_overflow(microseconds, 1000, &nanoseconds))
        return tfos__fail(err, TFOS_INVALID,
                          "column %s: an interval of %lld microseconds is longer than Arrow's 64 "
                          "bits of nanoseconds",
                          column->path, (long long)microseconds);
    memcpy(value, part->base, 8);
    memcpy(value + 8, &nanoseconds, sizeof nanoseconds);
    return TFOS_OK;
}

// Values that lie in the variable part, though all have one width in Arrow.
static enum tfos_status read_wide(const struct tfos__unsafe_column *column,
                                  struct tfos__unsafe_cells *cells, struct tfos_error *err)
{
    struct tfos__arrow_builder *values = column->values;

    TFOS__TRY(tfos__arrow_builder_reserve(values, cells->count, err));
    for (unsigned i = 0; i < cells->count; i++) {
        struct tfos__unsafe_region part;
        uint8_t *value = tfos__arrow_builder_end(values);
        if (is_null(cells, i)) {
            memset(value, 0, 16);
        } else {
            TFOS__TRY(take_part(column, cells, i, &part, err));
            TFOS__TRY(values->type.kind == TFOS__ARROW_INTERVAL
                          ? read_interval(column, &part, value, err)
                          : read_big_decimal(column, &part, value, err));
        }
        values->length++;
    }
    return TFOS_OK;
}

static enum tfos_status read_bytes(struct tfos__unsafe_column *column,
                                   struct tfos__unsafe_cells *cells, struct tfos_error *err)
{
    for (unsigned i = 0; i < cells->count; i++) {
        struct tfos__unsafe_region part = {0};
        if (!is_null(cells, i))
            TFOS__TRY(take_part(column, cells, i, &part, err));
        enum tfos_status status =
            tfos__arrow_builder_append_bytes(column->values, part.base, part.size, err);
        TFOS__TRY(check_end(column, status, err));
    }
    return TFOS_OK;
}

// Reads the head of an array of values of `element`.
static enum tfos_status open_array(const struct tfos__unsafe_column *element,
                                   const struct tfos__unsafe_region *part,
                                   struct tfos__unsafe_elements *elements, struct tfos_error *err)
{
    uint64_t count =
        part->size < TFOS__UNSAFE_WORD ? UINT64_MAX : tfos__unsafe_load_word(part->base);

    // More elements than bytes: refused first, so that what follows cannot overflow.
    uint64_t head =
        count > part->size ? UINT64_MAX : TFOS__UNSAFE_WORD + (count + 63) / 64 * TFOS__UNSAFE_WORD;
    if (head > part->size || count * element->element_size > part->size - head)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: an array of %u bytes that says to have %llu elements",
                          element->path, part->size, (unsigned long long)count);
    *elements = (struct tfos__unsafe_elements){
        .region = {part->base, part->size,
                   part->size - (uint32_t)(head + count * element->element_size)},
        .nulls = part->base + TFOS__UNSAFE_WORD,
        .values = part->base + head,
        .count = (int64_t)count,
    };
    return TFOS_OK;
}

static enum tfos_status read_list(struct tfos__unsafe_column *column,
                                  const struct tfos__unsafe_region *part, struct tfos_error *err)
{
    struct tfos__unsafe_elements elements;

    TFOS__TRY(open_array(&column->children[0], part, &elements, err));
    return tfos__unsafe_read_elements(&column->children[0], &elements, err);
}

static enum tfos_status read_map(struct tfos__unsafe_column *column,
                                 const struct tfos__unsafe_region *part, struct tfos_error *err)
{
    struct tfos__unsafe_column *entries = &column->children[0];
    struct tfos__unsafe_column *key = &entries->children[0], *value = &entries->children[1];
    struct tfos__unsafe_elements keys, values;
    int64_t null_count = key->values->null_count;

    uint64_t key_size =
        part->size < TFOS__UNSAFE_WORD ? UINT64_MAX : tfos__unsafe_load_word(part->base);
    if (part->size < TFOS__UNSAFE_WORD || key_size > part->size - TFOS__UNSAFE_WORD)
        return tfos__fail(err, TFOS_CORRUPT, "column %s: a map of %u bytes with %llu of keys",
                          column->path, part->size, (unsigned long long)key_size);
    struct tfos__unsafe_region region = {.base = part->base + TFOS__UNSAFE_WORD,
                                         .size = (uint32_t)key_size};
    TFOS__TRY(open_array(key, &region, &keys, err));
    region.base += key_size;
    region.size = part->size - TFOS__UNSAFE_WORD - (uint32_t)key_size;
    TFOS__TRY(open_array(value, &region, &values, err));
    if (keys.count != values.count)
        return tfos__fail(err, TFOS_CORRUPT, "column %s: a map of %lld keys and %lld values",
                          column->path, (long long)keys.count, (long long)values.count);
    TFOS__TRY(tfos__unsafe_read_elements(key, &keys, err));
    if (key->values->null_count != null_count)
        return tfos__fail(err, TFOS_CORRUPT, "column %s: a key is null", column->path);
    TFOS__TRY(tfos__unsafe_read_elements(value, &values, err));
    entries->values->length += keys.count;
    return TFOS_OK;
}

static enum tfos_status read_lists(struct tfos__unsafe_column *column,
                                   struct tfos__unsafe_cells *cells, struct tfos_error *err)
{
    struct tfos__arrow_builder *values = column->values;

    for (unsigned i = 0; i < cells->count; i++) {
        if (!is_null(cells, i)) {
            struct tfos__unsafe_region part;
            TFOS__TRY(take_part(column, cells, i, &part, err));
            TFOS__TRY(values->type.kind == TFOS__ARROW_MAP ? read_map(column, &part, err)
                                                           : read_list(column, &part, err));
        }
        TFOS__TRY(check_end(column, tfos__arrow_builder_end_list(values, err), err));
    }
    return TFOS_OK;
}

static enum tfos_status read_structs(struct tfos__unsafe_column *column,
                                     struct tfos__unsafe_cells *cells, struct tfos_error *err)
{
    struct tfos__unsafe_region rows[TFOS__UNSAFE_CHUNK];
    enum tfos_status status = TFOS_OK;
    unsigned count = 0;

    for (; count < cells->count; count++) {
        struct tfos__unsafe_region *row = &rows[count];
        if (is_null(cells, count)) {
            *row = (struct tfos__unsafe_region){column->null_row, (uint32_t)column->fixed_size, 0};
            continue;
        }
        status = take_part(column, cells, count, row, err);
        if (status == TFOS_OK && row->size < column->fixed_size)
            status = tfos__fail(err, TFOS_CORRUPT,
                                "column %s: a struct of %u bytes, less than the %zu of its fields",
                                column->path, row->size, column->fixed_size);
        if (status != TFOS_OK)
            break;
        row->left -= (uint32_t)column->fixed_size;
    }
    TFOS__TRY(tfos__unsafe_read_rows(column, rows, count, err));
    return status;
}

enum tfos_status tfos__unsafe_read_cells(struct tfos__unsafe_column *column,
                                         struct tfos__unsafe_cells *cells, struct tfos_error *err)
{
    switch (tfos__unsafe_column_kind(column)) {
    case TFOS__ARROW_DECIMAL:
    case TFOS__ARROW_INTERVAL:
        return read_wide(column, cells, err);
    case TFOS__ARROW_TEXT:
    case TFOS__ARROW_BINARY:
        return read_bytes(column, cells, err);
    case TFOS__ARROW_STRUCT:
        return read_structs(column, cells, err);
    default:
        return read_lists(column, cells, err);
    }
}
