// SPDX-License-Identifier: Apache-2.0
// Values into UnsafeRow format, as docs/protocol.md has it under "Spark's rows". What lies behind a
// value in its 8 bytes is zero, as Spark compares rows by their bytes. Rows have been measured, so
// that there is room for whatever is written.
#include "unsafe_row/result_column.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a value begins its slot");

enum tfos_status
tfos__unsafe_row_result_column_reserve(struct tfos__unsafe_row_result_column *column, int64_t count,
                                       struct tfos_error *err)
{
    if (count > column->source_capacity) {
        struct tfos__unsafe_row_source *sources =
            tfos__realloc(column->sources, (size_t)count, sizeof(*sources));
        if (!sources)
            return tfos__no_memory(err, "inference", "a batch of results");
        column->sources = sources;
        column->source_capacity = count;
    }
    column->source_count = count;
    return TFOS_OK;
}

void tfos__unsafe_row_result_column_clear(struct tfos__unsafe_row_result_column *column)
{
    tfos__free(column->sources);
}

// ---- types

/// Puts the column and both types before the reason in `err`.
static enum tfos_status fail_cast(const struct tfos__unsafe_row_result_column *column,
                                  const struct tfos__unsafe_row_source *source,
                                  struct tfos_error *err)
{
    char was[TFOS__RESULT_NAME], wanted[TFOS__RESULT_NAME];
    tfos__fail_prefix(
        err, "inference: result column '%s': %s cannot be cast to %s without loss",
        column->type.name,
        tfos__unsafe_row_source_type_name(was, source, source->depth + column->is_zipped),
        tfos__unsafe_row_result_type_name(wanted, &column->type.value, column->type.depth));
    return TFOS_INVALID;
}

static enum tfos_status check_source(const struct tfos__unsafe_row_result_column *column,
                                     const struct tfos__unsafe_row_source *source,
                                     struct tfos_error *err)
{
    const struct tfos__unsafe_row_result_type *type = &column->type;
    int depth = source->depth + column->is_zipped;
    bool is_nothing = source->type.kind == TFOS__ARROW_NULL;
    if (depth != type->depth && !(is_nothing && depth < type->depth))
        tfos__fail(err, TFOS_INVALID, "one is %d levels of lists deep, the other %d", depth,
                   type->depth);
    else if (!is_nothing &&
             tfos__unsafe_row_is_bytes(&source->type) != tfos__unsafe_row_is_bytes(&type->value))
        tfos__fail(err, TFOS_INVALID,
                   "numbers are read from text, and written as such, by inference(via=\"arrow\")");
    else
        return TFOS_OK;
    return fail_cast(column, source, err);
}

enum tfos_status
tfos__unsafe_row_result_column_check(const struct tfos__unsafe_row_result_column *column,
                                     struct tfos_error *err)
{
    for (int64_t i = 0; i < column->source_count; i++)
        TFOS__TRY(check_source(column, &column->sources[i], err));
    return TFOS_OK;
}

// ---- sizes

static uint64_t padded(uint64_t size)
{
    return (size + TFOS__ROW_WORD - 1) / TFOS__ROW_WORD * TFOS__ROW_WORD;
}

static uint64_t head_size(int64_t count)
{
    return TFOS__ROW_WORD + tfos__unsafe_row_null_bits_size(count);
}

/// Bytes of an array of `range` of the source's values of `depth`, which are `level` lists deep in
/// the declared type.
static uint64_t measure_array(const struct tfos__unsafe_row_result_type *type,
                              const struct tfos__unsafe_row_source *source, int depth, int level,
                              struct tfos__arrow_span range);

/// Bytes of a value that has a part of the variable part.
static uint64_t measure_value(const struct tfos__unsafe_row_result_type *type,
                              const struct tfos__unsafe_row_source *source, int depth, int level,
                              int64_t index)
{
    if (tfos__unsafe_row_source_is_null(source, depth, index))
        return 0;
    if (depth == source->depth)
        return padded(tfos__arrow_bytes(&source->type, source->values, index).size);
    return measure_array(type, source, depth + 1, level + 1,
                         tfos__unsafe_row_source_list(source, depth, index));
}

static uint64_t measure_array(const struct tfos__unsafe_row_result_type *type,
                              const struct tfos__unsafe_row_source *source, int depth, int level,
                              struct tfos__arrow_span range)
{
    uint64_t size = head_size(range.count);
    if (!tfos__unsafe_row_is_variable(type, level))
        return size + padded((uint64_t)range.count * type->element_size);
    size += (uint64_t)range.count * TFOS__ROW_WORD;
    for (int64_t i = 0; i < range.count; i++)
        size += measure_value(type, source, depth, level, range.first + i);
    return size;
}

static uint64_t measure_zipped(const struct tfos__unsafe_row_result_column *column, int64_t index)
{
    const struct tfos__unsafe_row_result_type *type = &column->type;
    uint64_t size = head_size(column->source_count);
    if (!tfos__unsafe_row_is_variable(type, 1))
        return size + padded((uint64_t)column->source_count * type->element_size);
    size += (uint64_t)column->source_count * TFOS__ROW_WORD;
    for (int64_t i = 0; i < column->source_count; i++)
        size += measure_value(type, &column->sources[i], 0, 1, index);
    return size;
}

void tfos__unsafe_row_result_column_measure(const struct tfos__unsafe_row_result_column *column,
                                            struct tfos__unsafe_row_chunk *chunk)
{
    if (!tfos__unsafe_row_is_variable(&column->type, 0))
        return;
    for (unsigned i = 0; i < chunk->count; i++)
        chunk->sizes[i] += column->is_zipped ? measure_zipped(column, chunk->first + i)
                                             : measure_value(&column->type, &column->sources[0], 0,
                                                             0, chunk->first + i);
}

// ---- values

/// Where the null bits and slots of a row or an array are.
struct frame {
    uint8_t *base; ///< what offsets count from
    uint8_t *nulls;
    uint8_t *slots;
    uint32_t used; ///< bytes
};

static void set_null(struct frame *frame, int64_t index)
{
    frame->nulls[index / 8] |= (uint8_t)(1 << index % 8);
}

static void set_word(struct frame *frame, int64_t index, uint64_t word)
{
    memcpy(frame->slots + index * TFOS__ROW_WORD, &word, sizeof(word));
}

static enum tfos_status fail_null(const struct tfos__unsafe_row_result_column *column,
                                  const struct tfos__unsafe_row_source *source, int level,
                                  struct tfos_error *err)
{
    if (level == 0)
        return tfos__fail(err, TFOS_INVALID,
                          "inference: result column '%s' has a null, though output_schema says NOT "
                          "NULL",
                          column->type.name);
    tfos__fail(err, TFOS_INVALID, "an element is null, though output_schema says that none is");
    return fail_cast(column, source, err);
}

static enum tfos_status note_null(const struct tfos__unsafe_row_result_column *column,
                                  const struct tfos__unsafe_row_source *source, int level,
                                  struct frame *frame, int64_t index, struct tfos_error *err)
{
    if (column->type.required >> level & 1)
        return fail_null(column, source, level, err);
    set_null(frame, index);
    return TFOS_OK;
}

/// Begins an array of `count` elements, which are `level` lists deep, behind what `frame` has used.
static struct frame begin_array(const struct tfos__unsafe_row_result_column *column, int level,
                                const struct frame *frame, int64_t count)
{
    uint8_t *base = frame->base + frame->used;
    uint32_t head = (uint32_t)head_size(count);
    uint32_t width = tfos__unsafe_row_is_variable(&column->type, level) ? TFOS__ROW_WORD
                                                                        : column->type.element_size;
    uint32_t used = head + (uint32_t)count * width;
    memcpy(base, &count, sizeof(count));
    memset(base + TFOS__ROW_WORD, 0, head - TFOS__ROW_WORD);
    memset(base + used, 0, (size_t)padded(used) - used);
    return (struct frame){base, base + TFOS__ROW_WORD, base + head, (uint32_t)padded(used)};
}

/// Points slot `index` to the `size` bytes behind what `frame` has used.
static void end_part(struct frame *frame, int64_t index, uint32_t size)
{
    uint32_t whole = (uint32_t)padded(size);
    set_word(frame, index, (uint64_t)frame->used << 32 | size);
    memset(frame->base + frame->used + size, 0, whole - size);
    frame->used += whole;
}

static enum tfos_status write_numbers(const struct tfos__unsafe_row_result_column *column,
                                      const struct tfos__unsafe_row_source *source, int level,
                                      struct tfos__arrow_span range, struct frame *frame,
                                      int64_t at, struct tfos_error *err)
{
    bool has_nulls = tfos__unsafe_row_source_has_nulls(source);
    uint8_t *to = frame->slots + at * column->type.element_size;
    if (tfos__unsafe_row_source_cast(source, range.first, range.count, &column->type, to, err) !=
        TFOS_OK)
        return fail_cast(column, source, err);
    for (int64_t i = 0; has_nulls && i < range.count; i++)
        if (tfos__unsafe_row_source_is_null(source, source->depth, range.first + i))
            TFOS__TRY(note_null(column, source, level, frame, at + i, err));
    return TFOS_OK;
}

static enum tfos_status write_bytes(const struct tfos__unsafe_row_result_column *column,
                                    const struct tfos__unsafe_row_source *source, int64_t value,
                                    struct frame *frame, int64_t index, struct tfos_error *err)
{
    struct tfos_view bytes = tfos__arrow_bytes(&source->type, source->values, value);
    bool may_be_no_text =
        column->type.value.kind == TFOS__ARROW_TEXT && source->type.kind == TFOS__ARROW_BINARY;
    if (bytes.size > 0)
        memcpy(frame->base + frame->used, bytes.data, bytes.size);
    if (may_be_no_text && !tfos__text_is_utf8(frame->base + frame->used, bytes.size)) {
        tfos__fail(err, TFOS_INVALID, "some bytes are no UTF-8");
        return fail_cast(column, source, err);
    }
    end_part(frame, index, (uint32_t)bytes.size);
    return TFOS_OK;
}

/// Writes the values of `range`, which become the elements of `frame` from `at` on.
static enum tfos_status write_elements(const struct tfos__unsafe_row_result_column *column,
                                       const struct tfos__unsafe_row_source *source, int depth,
                                       int level, struct tfos__arrow_span range,
                                       struct frame *frame, int64_t at, struct tfos_error *err);

/// Writes a value into the variable part.
static enum tfos_status write_part(const struct tfos__unsafe_row_result_column *column,
                                   const struct tfos__unsafe_row_source *source, int depth,
                                   int level, int64_t value, struct frame *frame, int64_t index,
                                   struct tfos_error *err)
{
    if (tfos__unsafe_row_source_is_null(source, depth, value)) {
        set_word(frame, index, 0);
        return note_null(column, source, level, frame, index, err);
    }
    if (depth == source->depth)
        return write_bytes(column, source, value, frame, index, err);
    struct tfos__arrow_span range = tfos__unsafe_row_source_list(source, depth, value);
    struct frame array = begin_array(column, level + 1, frame, range.count);
    TFOS__TRY(write_elements(column, source, depth + 1, level + 1, range, &array, 0, err));
    end_part(frame, index, array.used);
    return TFOS_OK;
}

static enum tfos_status write_elements(const struct tfos__unsafe_row_result_column *column,
                                       const struct tfos__unsafe_row_source *source, int depth,
                                       int level, struct tfos__arrow_span range,
                                       struct frame *frame, int64_t at, struct tfos_error *err)
{
    if (!tfos__unsafe_row_is_variable(&column->type, level))
        return write_numbers(column, source, level, range, frame, at, err);
    for (int64_t i = 0; i < range.count; i++)
        TFOS__TRY(write_part(column, source, depth, level, range.first + i, frame, at + i, err));
    return TFOS_OK;
}

/// Writes an array of which each source has one element.
static enum tfos_status write_zipped(const struct tfos__unsafe_row_result_column *column,
                                     int64_t value, struct frame *frame, int64_t index,
                                     struct tfos_error *err)
{
    struct frame array = begin_array(column, 1, frame, column->source_count);
    struct tfos__arrow_span range = {value, 1};
    for (int64_t i = 0; i < column->source_count; i++)
        TFOS__TRY(write_elements(column, &column->sources[i], 0, 1, range, &array, i, err));
    end_part(frame, index, array.used);
    return TFOS_OK;
}

/// Writes numbers, each into a slot of its own.
static enum tfos_status write_slots(const struct tfos__unsafe_row_result_column *column,
                                    int64_t field, struct tfos__unsafe_row_chunk *chunk,
                                    struct tfos_error *err)
{
    const struct tfos__unsafe_row_source *source = &column->sources[0];
    uint32_t width = column->type.element_size;
    uint64_t packed[TFOS__ROW_CHUNK];
    bool has_nulls = tfos__unsafe_row_source_has_nulls(source);
    if (tfos__unsafe_row_source_cast(source, chunk->first, chunk->count, &column->type, packed,
                                     err) != TFOS_OK)
        return fail_cast(column, source, err);
    for (unsigned i = 0; i < chunk->count; i++) {
        struct frame row = {chunk->rows[i], chunk->rows[i], chunk->rows[i] + chunk->slots, 0};
        uint64_t word = 0;
        memcpy(&word, (const uint8_t *)packed + i * width, width);
        set_word(&row, field, word);
        if (has_nulls && tfos__unsafe_row_source_is_null(source, 0, chunk->first + i))
            TFOS__TRY(note_null(column, source, 0, &row, field, err));
    }
    return TFOS_OK;
}

enum tfos_status
tfos__unsafe_row_result_column_write(const struct tfos__unsafe_row_result_column *column,
                                     int64_t field, struct tfos__unsafe_row_chunk *chunk,
                                     struct tfos_error *err)
{
    if (!tfos__unsafe_row_is_variable(&column->type, 0))
        return write_slots(column, field, chunk, err);
    for (unsigned i = 0; i < chunk->count; i++) {
        struct frame row = {chunk->rows[i], chunk->rows[i], chunk->rows[i] + chunk->slots,
                            chunk->used[i]};
        int64_t value = chunk->first + i;
        TFOS__TRY(column->is_zipped
                      ? write_zipped(column, value, &row, field, err)
                      : write_part(column, &column->sources[0], 0, 0, value, &row, field, err));
        chunk->used[i] = row.used;
    }
    return TFOS_OK;
}
