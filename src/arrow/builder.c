// SPDX-License-Identifier: Apache-2.0
// Bits are written a word at a time: the words of Arrow's bit order on a little-endian machine.
// What lies behind the last bit of a buffer in its word is zero.
#include "arrow/builder.h"

#include <assert.h>

#include "base/fail.h"
#include "base/memory.h"

#define ALIGNMENT 64
#define FIRST_CAPACITY 256

// What an empty buffer points to; as offsets, the 0 that they begin with.
static const _Alignas(ALIGNMENT) uint8_t nothing[ALIGNMENT];

// ---- memory

/// Makes room behind the first `used` bytes for `size` more; the bytes may move. Growth doubles.
static enum tfos_status reserve(struct tfos__arrow_buffer *buffer, size_t used, size_t size,
                                struct tfos_error *err)
{
    if (buffer->block && buffer->capacity >= used && buffer->capacity - used >= size)
        return TFOS_OK;
    size_t capacity = buffer->capacity > 0        ? 2 * buffer->capacity
                      : buffer->last_capacity > 0 ? buffer->last_capacity
                                                  : FIRST_CAPACITY;
    void *block = NULL;
    if (size < SIZE_MAX / 4 - used) {
        while (capacity < used + size)
            capacity *= 2;
        block = tfos__realloc(NULL, capacity + ALIGNMENT, 1);
    }
    if (!block)
        return tfos__fail(err, TFOS_NO_MEMORY, "arrow: no memory for a column of %zu bytes",
                          used + size);
    uint8_t *data = block;
    data += -(uintptr_t)block % ALIGNMENT;
    if (used > 0)
        memcpy(data, buffer->data, used);
    tfos__free(buffer->block);
    *buffer = (struct tfos__arrow_buffer){.data = data, .capacity = capacity, .block = block};
    return TFOS_OK;
}

static struct tfos__arrow_buffer take_buffer(struct tfos__arrow_buffer *buffer)
{
    struct tfos__arrow_buffer taken = *buffer;
    *buffer = (struct tfos__arrow_buffer){.last_capacity = taken.capacity};
    return taken;
}

/// Bytes of the words that hold `count` bits.
static size_t bits_size(int64_t count)
{
    return (size_t)(count + 63) / 64 * sizeof(uint64_t);
}

/// Writes the low `count` bits of `word`, 64 at most, behind the first `at` bits.
static void put_bits(uint8_t *data, int64_t at, uint64_t word, unsigned count)
{
    uint64_t *words = (uint64_t *)(void *)data + at / 64;
    unsigned shift = (unsigned)(at % 64);
    word &= tfos__arrow_mask(count);
    if (shift == 0) {
        *words = word;
        return;
    }
    *words = (*words & tfos__arrow_mask(shift)) | word << shift;
    if (shift + count > 64)
        words[1] = word >> (64 - shift);
}

// ---- types

static enum tfos_status make_children(struct tfos__arrow_builder *builder, int64_t count,
                                      struct tfos_error *err)
{
    const size_t size = sizeof(*builder->children) + sizeof(struct ArrowArray *);
    builder->children = tfos__alloc((size_t)count, size);
    if (!builder->children)
        return tfos__no_memory(err, "arrow", "the columns of a batch");
    builder->child_count = count;
    builder->array.children = (struct ArrowArray **)(void *)(builder->children + count);
    for (int64_t i = 0; i < count; i++)
        builder->array.children[i] = &builder->children[i].array;
    return TFOS_OK;
}

static enum tfos_status init(struct tfos__arrow_builder *builder, const struct ArrowSchema *schema,
                             int depth, struct tfos_error *err)
{
    enum tfos_status status = tfos__arrow_type_read(&builder->type, schema, err);
    if (status == TFOS_OK && depth > TFOS__ARROW_DEPTH)
        status = tfos__fail(err, TFOS_UNSUPPORTED, "it is nested deeper than %d levels",
                            TFOS__ARROW_DEPTH);
    TFOS__TRY(tfos__fail_in(err, status, "column %s", schema->name ? schema->name : ""));
    builder->type.time_zone = ""; // the schema need not live so long
    if (schema->n_children == 0)
        return TFOS_OK;
    TFOS__TRY(make_children(builder, schema->n_children, err));
    for (int64_t i = 0; i < schema->n_children; i++)
        TFOS__TRY(init(&builder->children[i], schema->children[i], depth + 1, err));
    return TFOS_OK;
}

enum tfos_status tfos__arrow_builder_init(struct tfos__arrow_builder *builder,
                                          const struct ArrowSchema *schema, struct tfos_error *err)
{
    return init(builder, schema, 0, err);
}

enum tfos_status tfos__arrow_builder_adopt(struct tfos__arrow_builder *builder,
                                           struct tfos__arrow_type type, int64_t child_count,
                                           struct tfos_error *err)
{
    int64_t null_count = builder->length;

    assert(builder->type.kind == TFOS__ARROW_NULL || builder->null_count == builder->length);
    tfos__arrow_builder_clear(builder);
    if (child_count > 0)
        TFOS__TRY(make_children(builder, child_count, err));
    builder->type = type;
    while (builder->length < null_count)
        TFOS__TRY(tfos__arrow_builder_append_null(builder, err));
    return TFOS_OK;
}

// ---- values

/// Bytes of `length` values, or of their offsets, with the 0 before the first.
static size_t values_size(const struct tfos__arrow_builder *builder, int64_t length)
{
    if (tfos__arrow_has_offsets(&builder->type))
        return length > 0 ? ((size_t)length + 1) * (size_t)builder->type.width / 8 : 0;
    return builder->type.width == 1 ? bits_size(length)
                                    : (size_t)length * ((size_t)builder->type.width / 8);
}

enum tfos_status tfos__arrow_builder_reserve(struct tfos__arrow_builder *builder, int64_t count,
                                             struct tfos_error *err)
{
    size_t used = values_size(builder, builder->length);
    TFOS__TRY(
        reserve(&builder->values, used, values_size(builder, builder->length + count) - used, err));
    if (builder->length == 0 && count > 0 && tfos__arrow_has_offsets(&builder->type))
        memset(builder->values.data, 0, sizeof(int64_t));
    return TFOS_OK;
}

void tfos__arrow_builder_put_bits(struct tfos__arrow_builder *builder, uint64_t word,
                                  unsigned count)
{
    put_bits(builder->values.data, builder->length, word, count);
    builder->length += count;
}

/// Ends the next text or list at `end`.
static enum tfos_status append_offset(struct tfos__arrow_builder *builder, int64_t end,
                                      struct tfos_error *err)
{
    bool is_wide = builder->type.width == 64;
    size_t width = is_wide ? sizeof(int64_t) : sizeof(int32_t);
    if (!is_wide && end > INT32_MAX)
        return TFOS_AGAIN;
    if (builder->length == 0 || builder->values.capacity < ((size_t)builder->length + 2) * width)
        TFOS__TRY(tfos__arrow_builder_reserve(builder, 1, err));
    builder->length++;
    if (is_wide)
        ((int64_t *)(void *)builder->values.data)[builder->length] = end;
    else
        ((int32_t *)(void *)builder->values.data)[builder->length] = (int32_t)end;
    return TFOS_OK;
}

/// Puts bytes behind the others, of no text yet.
static enum tfos_status put_bytes(struct tfos__arrow_builder *builder, const void *data,
                                  size_t size, struct tfos_error *err)
{
    if (builder->bytes.capacity - builder->byte_count < size)
        TFOS__TRY(reserve(&builder->bytes, builder->byte_count, size, err));
    if (size > 0)
        memcpy(builder->bytes.data + builder->byte_count, data, size);
    return TFOS_OK;
}

enum tfos_status tfos__arrow_builder_append_bytes(struct tfos__arrow_builder *builder,
                                                  const void *data, size_t size,
                                                  struct tfos_error *err)
{
    TFOS__TRY(put_bytes(builder, data, size, err));
    enum tfos_status status = append_offset(builder, (int64_t)(builder->byte_count + size), err);
    if (status == TFOS_OK)
        builder->byte_count += size;
    return status;
}

enum tfos_status tfos__arrow_builder_end_list(struct tfos__arrow_builder *builder,
                                              struct tfos_error *err)
{
    if (tfos__arrow_has_offsets(&builder->type))
        return append_offset(builder, builder->children[0].length, err);
    builder->length++;
    return TFOS_OK;
}

enum tfos_status tfos__arrow_builder_append_zeros(struct tfos__arrow_builder *builder,
                                                  int64_t count, struct tfos_error *err)
{
    bool is_fixed_list = builder->type.layout == TFOS__ARROW_FIXED_LIST;
    int64_t inner = is_fixed_list ? builder->type.list_size : 1;
    if (__builtin_mul_overflow(inner, count, &inner) || inner > INT32_MAX)
        return tfos__fail(err, TFOS_INVALID, "arrow: a list of more than %d values", INT32_MAX);
    if (tfos__arrow_has_offsets(&builder->type)) {
        int64_t end =
            builder->length > 0 ? tfos__arrow_builder_offset(builder, builder->length) : 0;
        for (int64_t i = 0; i < count; i++)
            TFOS__TRY(append_offset(builder, end, err));
        return TFOS_OK;
    }
    for (int64_t i = 0; i < builder->child_count; i++)
        TFOS__TRY(tfos__arrow_builder_append_zeros(&builder->children[i], inner, err));
    if (builder->type.layout == TFOS__ARROW_FIXED && count > 0) {
        size_t used = values_size(builder, builder->length);
        TFOS__TRY(tfos__arrow_builder_reserve(builder, count, err));
        memset(builder->values.data + used, 0,
               values_size(builder, builder->length + count) - used);
    }
    builder->length += count;
    return TFOS_OK;
}

// ---- nulls

/// Writes the bits of values that are not null up to value `end`.
static enum tfos_status fill_validity(struct tfos__arrow_builder *builder, int64_t end,
                                      struct tfos_error *err)
{
    int64_t at = builder->marked_count;
    if (at >= end)
        return TFOS_OK;
    TFOS__TRY(reserve(&builder->validity, bits_size(at), bits_size(end) - bits_size(at), err));
    while (at < end) {
        unsigned step = 64 - (unsigned)(at % 64);
        step = end - at < step ? (unsigned)(end - at) : step;
        put_bits(builder->validity.data, at, UINT64_MAX, step);
        at += step;
    }
    builder->marked_count = end;
    return TFOS_OK;
}

enum tfos_status tfos__arrow_builder_mark(struct tfos__arrow_builder *builder, int64_t at,
                                          uint64_t nulls, unsigned count, struct tfos_error *err)
{
    nulls &= tfos__arrow_mask(count);
    if (nulls == 0 && builder->null_count == 0)
        return TFOS_OK;
    TFOS__TRY(fill_validity(builder, at + count, err));
    put_bits(builder->validity.data, at, ~nulls, count);
    builder->null_count += __builtin_popcountll(nulls);
    return TFOS_OK;
}

enum tfos_status tfos__arrow_builder_append_null(struct tfos__arrow_builder *builder,
                                                 struct tfos_error *err)
{
    if (builder->type.layout != TFOS__ARROW_NOTHING)
        TFOS__TRY(tfos__arrow_builder_mark(builder, builder->length, 1, 1, err));
    return tfos__arrow_builder_append_zeros(builder, 1, err);
}

static int64_t count_nulls(const struct tfos__arrow_builder *builder)
{
    int64_t null_count = 0;
    for (int64_t at = 0; at < builder->marked_count; at += 64) {
        unsigned step =
            builder->marked_count - at < 64 ? (unsigned)(builder->marked_count - at) : 64;
        null_count += __builtin_popcountll(~tfos__arrow_bits(builder->validity.data, at, step) &
                                           tfos__arrow_mask(step));
    }
    return null_count;
}

void tfos__arrow_builder_truncate(struct tfos__arrow_builder *builder, int64_t length)
{
    bool has_offsets = tfos__arrow_has_offsets(&builder->type);
    int64_t inner = length;
    if (has_offsets)
        inner = length > 0 ? tfos__arrow_builder_offset(builder, length) : 0;
    else if (builder->type.layout == TFOS__ARROW_FIXED_LIST)
        inner = length * builder->type.list_size;
    builder->length = length;
    if (builder->marked_count > length) {
        builder->marked_count = length;
        builder->null_count = count_nulls(builder);
    }
    builder->byte_count = has_offsets ? (size_t)inner : 0;
    for (int64_t i = 0; i < builder->child_count; i++)
        tfos__arrow_builder_truncate(&builder->children[i], inner);
}

size_t tfos__arrow_builder_size(const struct tfos__arrow_builder *builder)
{
    size_t size = values_size(builder, builder->length) + builder->byte_count;
    for (int64_t i = 0; i < builder->child_count; i++)
        size += tfos__arrow_builder_size(&builder->children[i]);
    return size;
}

// ---- copies

static enum tfos_status append_nulls(struct tfos__arrow_builder *builder,
                                     const struct ArrowArray *array, int64_t first, int64_t count,
                                     struct tfos_error *err)
{
    if (!tfos__arrow_has_nulls(array))
        return TFOS_OK;
    for (int64_t done = 0; done < count; done += 64) {
        unsigned step = count - done < 64 ? (unsigned)(count - done) : 64;
        uint64_t valid = tfos__arrow_bits(array->buffers[0], array->offset + first + done, step);
        TFOS__TRY(tfos__arrow_builder_mark(builder, builder->length + done, ~valid, step, err));
    }
    return TFOS_OK;
}

static enum tfos_status append_fixed(struct tfos__arrow_builder *builder,
                                     const struct ArrowArray *array, int64_t first, int64_t count,
                                     struct tfos_error *err)
{
    TFOS__TRY(tfos__arrow_builder_reserve(builder, count, err));
    if (builder->type.width != 1) {
        memcpy(tfos__arrow_builder_end(builder), tfos__arrow_value(&builder->type, array, first),
               (size_t)(count * (builder->type.width / 8)));
        builder->length += count;
        return TFOS_OK;
    }
    for (int64_t end = first + count; first < end; first += 64) {
        unsigned step = end - first < 64 ? (unsigned)(end - first) : 64;
        tfos__arrow_builder_put_bits(
            builder, tfos__arrow_bits(array->buffers[1], array->offset + first, step), step);
    }
    return TFOS_OK;
}

/// Appends the ends of texts or lists, which begin at `from` in the array and at `to` in the
/// column.
static enum tfos_status append_offsets(struct tfos__arrow_builder *builder,
                                       const struct ArrowArray *array, int64_t first, int64_t count,
                                       int64_t to, struct tfos_error *err)
{
    int64_t shift = to - tfos__arrow_offset(&builder->type, array, first);
    int64_t last = tfos__arrow_offset(&builder->type, array, first + count) + shift;
    bool is_wide = builder->type.width == 64;
    if (!is_wide && last > INT32_MAX)
        return TFOS_AGAIN;
    TFOS__TRY(tfos__arrow_builder_reserve(builder, count, err));
    void *ends = builder->values.data + (builder->length + 1) * (builder->type.width / 8);
    const void *from = (const uint8_t *)array->buffers[1] +
                       (array->offset + first + 1) * (builder->type.width / 8);
    for (int64_t i = 0; i < count; i++)
        if (is_wide)
            ((int64_t *)ends)[i] = ((const int64_t *)from)[i] + shift;
        else
            ((int32_t *)ends)[i] = (int32_t)(((const int32_t *)from)[i] + shift);
    builder->length += count;
    return TFOS_OK;
}

static enum tfos_status append_texts(struct tfos__arrow_builder *builder,
                                     const struct ArrowArray *array, int64_t first, int64_t count,
                                     struct tfos_error *err)
{
    struct tfos__arrow_span span = tfos__arrow_lists(&builder->type, array, first, count);
    size_t start = builder->byte_count;
    TFOS__TRY(
        put_bytes(builder, (const char *)array->buffers[2] + span.first, (size_t)span.count, err));
    builder->byte_count += (size_t)span.count;
    return append_offsets(builder, array, first, count, (int64_t)start, err);
}

enum tfos_status tfos__arrow_builder_append_span(struct tfos__arrow_builder *builder,
                                                 const struct ArrowArray *array, int64_t first,
                                                 int64_t count, struct tfos_error *err)
{
    struct tfos__arrow_span inner = {array->offset + first, count};
    enum tfos_status status = TFOS_OK;
    if (count == 0) // there may be no buffers then
        return TFOS_OK;
    TFOS__TRY(append_nulls(builder, array, first, count, err));
    if (builder->type.layout == TFOS__ARROW_FIXED)
        return append_fixed(builder, array, first, count, err);
    if (builder->type.layout == TFOS__ARROW_VARIABLE)
        return append_texts(builder, array, first, count, err);
    int64_t start = builder->child_count > 0 ? builder->children[0].length : 0;
    if (builder->type.kind == TFOS__ARROW_LIST || builder->type.kind == TFOS__ARROW_MAP)
        inner = tfos__arrow_lists(&builder->type, array, first, count);
    for (int64_t i = 0; i < builder->child_count && status == TFOS_OK; i++)
        status = tfos__arrow_builder_append_span(&builder->children[i], array->children[i],
                                                 inner.first, inner.count, err);
    if (status == TFOS_OK && builder->type.layout == TFOS__ARROW_OFFSETS)
        return append_offsets(builder, array, first, count, start, err);
    builder->length += count;
    return status;
}

// ---- arrays

/// Writes the bits that are missing, if there are any.
static enum tfos_status finish_validity(struct tfos__arrow_builder *builder, struct tfos_error *err)
{
    return builder->null_count > 0 ? fill_validity(builder, builder->length, err) : TFOS_OK;
}

static void describe(const struct tfos__arrow_builder *builder, struct ArrowArray *array)
{
    bool is_null = builder->type.kind == TFOS__ARROW_NULL;
    array->length = builder->length;
    array->null_count = is_null ? builder->length : builder->null_count;
    array->n_buffers = tfos__arrow_buffer_count(&builder->type);
    array->n_children = builder->child_count;
}

enum tfos_status tfos__arrow_builder_show(struct tfos__arrow_builder *builder,
                                          struct tfos_error *err)
{
    TFOS__TRY(finish_validity(builder, err));
    describe(builder, &builder->array);
    builder->array.buffers = builder->buffers;
    builder->buffers[0] = builder->null_count > 0 ? builder->validity.data : NULL;
    builder->buffers[1] = builder->length > 0 ? builder->values.data : nothing;
    builder->buffers[2] = builder->byte_count > 0 ? builder->bytes.data : nothing;
    for (int64_t i = 0; i < builder->child_count; i++)
        TFOS__TRY(tfos__arrow_builder_show(&builder->children[i], err));
    return TFOS_OK;
}

/// What an array of a column owns.
struct holder {
    const void *buffers[TFOS__ARROW_BUFFERS];
    struct tfos__arrow_buffer owned[TFOS__ARROW_BUFFERS];
    struct ArrowArray children[];
};

static void release_taken(struct ArrowArray *array)
{
    struct holder *holder = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++)
        tfos__arrow_array_release(array->children[i]);
    for (int i = 0; i < TFOS__ARROW_BUFFERS; i++)
        tfos__free(holder->owned[i].block);
    tfos__free(holder);
    array->release = NULL;
}

static void hold(struct holder *holder, int index, struct tfos__arrow_buffer *buffer, bool is_empty)
{
    if (!is_empty)
        holder->owned[index] = take_buffer(buffer);
    holder->buffers[index] = is_empty ? nothing : holder->owned[index].data;
}

static enum tfos_status take(struct tfos__arrow_builder *builder, struct ArrowArray *out,
                             struct tfos_error *err)
{
    size_t count = (size_t)builder->child_count;
    struct holder *holder =
        tfos__alloc(1, sizeof(*holder) + count * (sizeof(struct ArrowArray) + sizeof(void *)));
    if (!holder)
        return tfos__no_memory(err, "arrow", "an array");
    *out = (struct ArrowArray){.buffers = holder->buffers,
                               .children = (struct ArrowArray **)(void *)(holder->children + count),
                               .release = release_taken,
                               .private_data = holder};
    describe(builder, out);
    for (size_t i = 0; i < count; i++)
        out->children[i] = &holder->children[i];
    TFOS__TRY(finish_validity(builder, err));
    if (builder->null_count > 0)
        hold(holder, 0, &builder->validity, false);
    hold(holder, 1, &builder->values, builder->length == 0);
    hold(holder, 2, &builder->bytes, builder->byte_count == 0);
    for (size_t i = 0; i < count; i++)
        TFOS__TRY(take(&builder->children[i], &holder->children[i], err));
    return TFOS_OK;
}

enum tfos_status tfos__arrow_builder_take(struct tfos__arrow_builder *builder,
                                          struct ArrowArray *out, struct tfos_error *err)
{
    struct ArrowArray taken = {0};
    enum tfos_status status = take(builder, &taken, err);
    tfos__arrow_builder_truncate(builder, 0);
    if (status == TFOS_OK)
        *out = taken;
    else
        tfos__arrow_array_release(&taken);
    return status;
}

void tfos__arrow_builder_clear(struct tfos__arrow_builder *builder)
{
    for (int64_t i = 0; i < builder->child_count; i++)
        tfos__arrow_builder_clear(&builder->children[i]);
    tfos__free(builder->children);
    tfos__free(builder->validity.block);
    tfos__free(builder->values.block);
    tfos__free(builder->bytes.block);
    *builder = (struct tfos__arrow_builder){0};
}

enum tfos_status tfos__arrow_array_extract(const struct ArrowSchema *schema,
                                           const struct ArrowArray *array,
                                           const struct tfos__arrow_span *spans, int64_t span_count,
                                           struct ArrowArray *out, struct tfos_error *err)
{
    struct tfos__arrow_builder builder = {0};
    enum tfos_status status = tfos__arrow_builder_init(&builder, schema, err);
    for (int64_t i = 0; status == TFOS_OK && i < span_count; i++)
        status =
            tfos__arrow_builder_append_span(&builder, array, spans[i].first, spans[i].count, err);
    if (status == TFOS_AGAIN)
        status = tfos__fail(err, TFOS_INVALID, "a column grows beyond its offsets of 32 bits");
    if (status == TFOS_OK)
        status = tfos__arrow_builder_take(&builder, out, err);
    tfos__arrow_builder_clear(&builder);
    return status;
}
