// SPDX-License-Identifier: Apache-2.0
// A view of a batch is one block: the arrays of all columns, their lists of buffers and children,
// and copies of all offsets. Values and validity bits stay where they are, since no value of theirs
// can lead a reader astray.
#include "feed/batch_decoder.h"

#include <stdatomic.h>
#include <string.h>
#include <tfos/feed.h>

#include "base/fail.h"
#include "base/memory.h"
#include "feed/record.h"

static void free_memory(void *memory, uint64_t sequence)
{
    (void)sequence;
    tfos__free(memory);
}

struct tfos__feed_batch_owner tfos__feed_batch_owner_of_memory(void *memory)
{
    return (struct tfos__feed_batch_owner){.release = free_memory, .holder = memory};
}

// What an empty buffer points to.
static const uint64_t nothing[8];

struct view {
    atomic_size_t references; // one for each column: Arrow lets a consumer move a child away
    struct tfos__feed_batch_owner owner;
    uint64_t *offsets; // owned: room for the copies of all offsets
    struct ArrowArray **children;
    const void **buffers;
    struct ArrowArray arrays[];
};

static void free_view(struct view *view)
{
    tfos__free(view->offsets);
    tfos__free(view->children);
    tfos__free(view->buffers);
    tfos__free(view);
}

static void release_view(struct ArrowArray *array)
{
    struct view *view = array->private_data;

    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release)
            array->children[i]->release(array->children[i]);
    array->release = NULL;
    if (atomic_fetch_sub(&view->references, 1) != 1)
        return;
    struct tfos__feed_batch_owner owner = view->owner;
    free_view(view);
    owner.release(owner.holder, owner.sequence);
}

void tfos_feed_batch_use(const struct ArrowArray *array, int64_t row_count)
{
    const struct tfos__feed_batch_owner *owner = &((const struct view *)array->private_data)->owner;

    if (owner->use && row_count > 0)
        owner->use(owner->holder, owner->sequence, (uint64_t)row_count);
}

struct decoder {
    const struct tfos__feed_schema *schema;
    const uint8_t *body;
    uint64_t size;
    const uint64_t *word; // next in the private copy of the table
    uint64_t table_size;
    struct view *view;
    uint64_t *offsets; // next free in view->offsets
    const void **buffers;
    struct ArrowArray **children;
};

static enum tfos_status broken(const struct tfos__feed_field *field, const char *what,
                               struct tfos_error *err)
{
    return tfos__fail(err, TFOS_CORRUPT, "feed: a batch is broken: column %s: %s", field->name,
                      what);
}

// Takes the next buffer of the table: it must lie behind the table and hold `length` items of
// `width` bits.
static bool take_buffer(struct decoder *decoder, int64_t length, int64_t width,
                        const uint8_t **data, uint64_t *size)
{
    uint64_t place = *decoder->word++;
    uint64_t needed = 0;

    *size = *decoder->word++;
    *data = (const uint8_t *)nothing;
    if (!tfos__arrow_size(length, width, &needed) || *size < needed)
        return false;
    if (*size == 0)
        return true;
    if (place % TFOS__FEED_RECORD_ALIGN != 0 || place < decoder->table_size ||
        place > decoder->size || *size > decoder->size - place)
        return false;
    *data = decoder->body + place;
    return true;
}

// Copies `length` + 1 offsets out of the ring and checks that they rise from 0.
static bool take_offsets(struct decoder *decoder, int64_t length, int64_t width, const void **out,
                         int64_t *last)
{
    const uint8_t *data = NULL;
    uint64_t size = 0;

    if (!take_buffer(decoder, length == 0 ? 0 : length + 1, width, &data, &size))
        return false;
    uint64_t *copy = decoder->offsets;
    size_t copy_size = length == 0 ? 0 : ((size_t)length + 1) * (size_t)(width / 8);
    copy[0] = 0;
    memcpy(copy, data, copy_size);
    decoder->offsets += copy_size / sizeof(*copy) + 1;
    *out = copy;
    int64_t previous = 0;
    bool has_fallen = false;
    if (width == 32)
        for (int64_t i = 0; i <= length; i++) {
            int64_t offset = ((const int32_t *)(const void *)copy)[i];
            has_fallen |= offset < previous;
            previous = offset;
        }
    else
        for (int64_t i = 0; i <= length; i++) {
            int64_t offset = ((const int64_t *)(const void *)copy)[i];
            has_fallen |= offset < previous;
            previous = offset;
        }
    *last = previous;
    return !has_fallen;
}

static enum tfos_status take_validity(struct decoder *decoder, const struct tfos__feed_field *field,
                                      struct ArrowArray *array, struct tfos_error *err)
{
    bool is_absent = decoder->word[1] == 0;
    const uint8_t *data = NULL;
    uint64_t size = 0;

    if (!take_buffer(decoder, is_absent ? 0 : array->length, 1, &data, &size))
        return broken(field, "its validity buffer lies outside the batch", err);
    array->buffers[0] = is_absent ? NULL : data;
    if (is_absent && array->null_count > 0 && array->length > 0)
        return broken(field, "it has nulls but no validity buffer", err);
    if (is_absent)
        array->null_count = 0;
    return TFOS_OK;
}

// Reads field `index`, of which `length` values are needed, and those below it. `*next` is the
// field after them.
static enum tfos_status decode_field(struct decoder *decoder, size_t index, int64_t length,
                                     size_t *next, struct tfos_error *err)
{
    const struct tfos__feed_field *field = &decoder->schema->fields[index];
    struct ArrowArray *array = &decoder->view->arrays[index];
    int64_t child_length = 0, last = 0;
    const uint8_t *data = NULL;
    uint64_t size = 0;

    array->length = (int64_t)*decoder->word++;
    array->null_count = (int64_t)*decoder->word++;
    array->n_buffers = tfos__arrow_buffer_count(&field->type);
    array->n_children = field->child_count;
    array->buffers = decoder->buffers;
    array->children = field->child_count > 0 ? decoder->children : NULL;
    array->private_data = decoder->view;
    array->release = release_view;
    decoder->buffers += array->n_buffers;
    decoder->children += field->child_count;
    if (array->length != length || length == INT64_MAX || array->null_count < -1 ||
        array->null_count > length)
        return broken(field, "its length or count of nulls is wrong", err);
    TFOS__TRY(take_validity(decoder, field, array, err));
    switch (field->type.layout) {
    case TFOS__ARROW_FIXED:
        if (!take_buffer(decoder, length, field->type.width, &data, &size))
            return broken(field, "its values lie outside the batch", err);
        array->buffers[1] = data;
        break;
    case TFOS__ARROW_VARIABLE:
    case TFOS__ARROW_OFFSETS:
        if (!take_offsets(decoder, length, field->type.width, &array->buffers[1], &last))
            return broken(field, "its offsets lie outside the batch or do not rise from 0", err);
        child_length = last;
        if (field->type.layout == TFOS__ARROW_OFFSETS)
            break;
        if (!take_buffer(decoder, last, 8, &data, &size))
            return broken(field, "its bytes lie outside the batch", err);
        array->buffers[2] = data;
        break;
    case TFOS__ARROW_FIXED_LIST:
        if (__builtin_mul_overflow(length, field->type.list_size, &child_length))
            return broken(field, "its lists are too many", err);
        break;
    default:
        child_length = length;
        break;
    }
    *next = index + 1;
    for (int64_t i = 0; i < field->child_count; i++) {
        array->children[i] = &decoder->view->arrays[*next];
        TFOS__TRY(decode_field(decoder, *next, child_length, next, err));
    }
    return TFOS_OK;
}

struct shape {
    size_t words; // of the table
    size_t buffer_count;
    size_t offset_words; // room for the copies of all offsets
};

// Adds up from the private copy of the table what the view needs. The offsets of a column cannot be
// larger than the body, or the column will be refused before they are copied.
static bool measure(const struct tfos__feed_schema *schema, const uint64_t *table, uint64_t size,
                    struct shape *shape)
{
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct tfos__arrow_type *type = &schema->fields[i].type;
        int count = tfos__arrow_buffer_count(type);
        if (table && tfos__arrow_has_offsets(type)) {
            uint64_t offsets_size = table[shape->words + 5];
            if (offsets_size > size)
                return false;
            shape->offset_words += offsets_size / sizeof(uint64_t) + 2;
        }
        shape->words += 2 + 2 * (size_t)count;
        shape->buffer_count += (size_t)count;
    }
    return true;
}

static struct view *make_view(const struct tfos__feed_schema *schema, const struct shape *shape,
                              const struct tfos__feed_batch_owner *owner)
{
    struct view *view =
        tfos__alloc(1, sizeof(*view) + schema->field_count * sizeof(view->arrays[0]));

    if (!view)
        return NULL;
    view->references = schema->field_count;
    view->owner = *owner;
    view->buffers = tfos__alloc(shape->buffer_count, sizeof(void *));
    view->children = tfos__alloc(schema->field_count, sizeof(struct ArrowArray *));
    view->offsets = shape->offset_words ? tfos__alloc(shape->offset_words, sizeof(uint64_t)) : NULL;
    if (!view->buffers || !view->children || (shape->offset_words && !view->offsets)) {
        free_view(view);
        return NULL;
    }
    return view;
}

static enum tfos_status decode_array(const struct tfos__feed_schema *schema, const uint8_t *body,
                                     uint64_t size, int64_t rows,
                                     const struct tfos__feed_batch_owner *owner,
                                     struct ArrowArray *array, struct tfos_error *err)
{
    struct shape shape = {0};
    size_t next = 0;

    measure(schema, NULL, size, &shape);
    size_t table_size = shape.words * sizeof(uint64_t);
    if (size < table_size)
        return tfos__fail(err, TFOS_CORRUPT, "feed: a batch of %zu columns has only %llu bytes",
                          schema->field_count, (unsigned long long)size);
    uint64_t small[256];
    uint64_t *table = shape.words <= 256 ? small : tfos__alloc(shape.words, sizeof(*table));
    if (!table)
        return tfos__no_memory(err, "feed", "a batch");
    memcpy(table, body, table_size);
    shape = (struct shape){0};
    enum tfos_status status = TFOS_OK;
    struct view *view = NULL;
    if (!measure(schema, table, size, &shape))
        status = tfos__fail(err, TFOS_CORRUPT, "feed: a batch has offsets beyond its end");
    else if (!(view = make_view(schema, &shape, owner)))
        status = tfos__no_memory(err, "feed", "a batch");
    else {
        struct decoder decoder = {schema, body,          size,          table,         table_size,
                                  view,   view->offsets, view->buffers, view->children};
        status = decode_field(&decoder, 0, rows, &next, err);
    }
    if (status == TFOS_OK)
        *array = view->arrays[0];
    else if (view)
        free_view(view);
    if (table != small)
        tfos__free(table);
    return status;
}

enum tfos_status tfos__feed_batch_decode(const struct tfos__feed_schema *schema,
                                         const uint8_t *body, uint64_t size, int64_t rows,
                                         const struct tfos__feed_batch_owner *owner,
                                         struct ArrowSchema *schema_out,
                                         struct ArrowArray *array_out, struct tfos_error *err)
{
    struct ArrowSchema tree;
    enum tfos_status status = tfos_arrow_schema_copy(&schema->tree, &tree, err);

    if (status == TFOS_OK) {
        status = decode_array(schema, body, size, rows, owner, array_out, err);
        if (status != TFOS_OK)
            tree.release(&tree);
    }
    if (status == TFOS_OK)
        *schema_out = tree;
    else
        owner->release(owner->holder, owner->sequence);
    return status;
}
