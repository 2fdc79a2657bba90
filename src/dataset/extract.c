// SPDX-License-Identifier: Apache-2.0
// Each array of the tree is built from the spans of its counterpart, and gives those of its
// children. Every array owns its buffers, so that the tree is released like any other.
#include "dataset/extract.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/element.h"
#include "dataset/validity.h"

struct copying {
    const struct ArrowSchema *schema;
    const struct ArrowArray *array;
    const struct tfos__span *spans;
    int64_t span_count;
    struct ArrowArray *out;
};

static void release_array(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i] && array->children[i]->release)
            array->children[i]->release(array->children[i]);
        tfos__free(array->children[i]);
    }
    for (int64_t i = 0; i < array->n_buffers; i++)
        tfos__free((void *)(uintptr_t)array->buffers[i]);
    tfos__free(array->children);
    tfos__free(array->buffers);
    array->release = NULL;
}

// A buffer of `size` bytes in the place `index`, zeroed.
static void *add_buffer(struct copying *copying, int index, int64_t size)
{
    void *buffer = tfos__alloc((size_t)size, 1);

    copying->out->buffers[index] = buffer;
    return buffer;
}

// Copies bits of all spans, of buffer `index`.
static bool copy_bits(struct copying *copying, int index)
{
    const uint8_t *source = copying->array->buffers[index];
    uint8_t *bits = add_buffer(copying, index, copying->out->length / 8 + 1);
    int64_t position = 0;

    if (!bits)
        return false;
    for (int64_t i = 0; i < copying->span_count; i++) {
        int64_t first = copying->array->offset + copying->spans[i].first;
        for (int64_t k = first; k < first + copying->spans[i].count; k++, position++)
            bits[position / 8] |= (uint8_t)((source[k / 8] >> (k % 8) & 1) << (position % 8));
    }
    return true;
}

static bool copy_values(struct copying *copying, int64_t width)
{
    const uint8_t *source = copying->array->buffers[1];
    uint8_t *values = add_buffer(copying, 1, copying->out->length * width);

    if (!values)
        return false;
    for (int64_t i = 0; i < copying->span_count; i++) {
        const struct tfos__span *span = &copying->spans[i];
        if (span->count == 0)
            continue;
        memcpy(values, source + (copying->array->offset + span->first) * width,
               (size_t)(span->count * width));
        values += span->count * width;
    }
    return true;
}

// The spans of what lies behind the offsets of each span, as a new list.
static struct tfos__span *find_inner(const struct copying *copying, bool is_wide, int64_t *total)
{
    struct tfos__span *inner = tfos__alloc((size_t)copying->span_count, sizeof *inner);

    *total = 0;
    for (int64_t i = 0; inner && i < copying->span_count; i++) {
        int64_t first = copying->array->offset + copying->spans[i].first;
        int64_t end = first + copying->spans[i].count;
        const void *offsets = copying->array->buffers[1];
        if (copying->spans[i].count == 0) // there may be no offsets then
            continue;
        int64_t begin =
            is_wide ? ((const int64_t *)offsets)[first] : ((const int32_t *)offsets)[first];
        inner[i].first = begin;
        inner[i].count =
            (is_wide ? ((const int64_t *)offsets)[end] : ((const int32_t *)offsets)[end]) - begin;
        *total += inner[i].count;
    }
    return inner;
}

// Offsets as wide as those of the source: what they span is not more than it was.
static bool copy_offsets(struct copying *copying, bool is_wide)
{
    int64_t width = is_wide ? 8 : 4, position = 0, end = 0;
    void *copy = add_buffer(copying, 1, (copying->out->length + 1) * width);

    if (!copy)
        return false;
    for (int64_t i = 0; i < copying->span_count; i++) {
        int64_t first = copying->array->offset + copying->spans[i].first;
        for (int64_t k = first; k < first + copying->spans[i].count; k++) {
            const void *offsets = copying->array->buffers[1];
            if (is_wide) {
                end += ((const int64_t *)offsets)[k + 1] - ((const int64_t *)offsets)[k];
                ((int64_t *)copy)[++position] = end;
            } else {
                end += ((const int32_t *)offsets)[k + 1] - ((const int32_t *)offsets)[k];
                ((int32_t *)copy)[++position] = (int32_t)end;
            }
        }
    }
    return true;
}

static enum tfos_status no_room(struct tfos_error *err)
{
    return tfos__no_memory(err, "dataset", "rows to shuffle");
}

static enum tfos_status copy_text(struct copying *copying, bool is_wide, struct tfos_error *err)
{
    int64_t total = 0;
    struct tfos__span *inner = find_inner(copying, is_wide, &total);
    char *bytes = inner ? add_buffer(copying, 2, total) : NULL;
    bool is_done = bytes && copy_offsets(copying, is_wide);

    for (int64_t i = 0; is_done && i < copying->span_count; i++) {
        if (inner[i].count > 0)
            memcpy(bytes, (const char *)copying->array->buffers[2] + inner[i].first,
                   (size_t)inner[i].count);
        bytes += inner[i].count;
    }
    tfos__free(inner);
    return is_done ? TFOS_OK : no_room(err);
}

static enum tfos_status copy_children(struct copying *copying, const struct tfos__span *spans,
                                      struct tfos_error *err)
{
    for (int64_t i = 0; i < copying->array->n_children; i++) {
        copying->out->children[i] = tfos__alloc(1, sizeof(struct ArrowArray));
        if (!copying->out->children[i])
            return no_room(err);
        TFOS__TRY(tfos__array_extract(copying->schema->children[i], copying->array->children[i],
                                      spans, copying->span_count, copying->out->children[i], err));
    }
    return TFOS_OK;
}

// Structs and lists of a fixed length: `factor` values of the children for each of theirs.
static enum tfos_status copy_fixed(struct copying *copying, int64_t factor, struct tfos_error *err)
{
    struct tfos__span *inner = tfos__alloc((size_t)copying->span_count, sizeof *inner);

    if (!inner)
        return no_room(err);
    for (int64_t i = 0; i < copying->span_count; i++) {
        inner[i].first = (copying->array->offset + copying->spans[i].first) * factor;
        inner[i].count = copying->spans[i].count * factor;
    }
    enum tfos_status status = copy_children(copying, inner, err);
    tfos__free(inner);
    return status;
}

static enum tfos_status copy_lists(struct copying *copying, bool is_wide, struct tfos_error *err)
{
    int64_t total = 0;
    struct tfos__span *inner = find_inner(copying, is_wide, &total);
    enum tfos_status status = inner && copy_offsets(copying, is_wide) ? TFOS_OK : no_room(err);

    if (status == TFOS_OK)
        status = copy_children(copying, inner, err);
    tfos__free(inner);
    return status;
}

static enum tfos_status copy_array(struct copying *copying, struct tfos_error *err)
{
    const char *format = copying->schema->format;
    struct tfos__element element;

    if (tfos__validity_matters(copying->array) && !copy_bits(copying, 0))
        return no_room(err);
    if (strcmp(format, "+s") == 0)
        return copy_fixed(copying, 1, err);
    if (strncmp(format, "+w:", 3) == 0)
        return copy_fixed(copying, strtoll(format + 3, NULL, 10), err);
    if (format[0] == '+')
        return copy_lists(copying, format[1] == 'L', err);
    if (!tfos__element_parse(format, &element))
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "dataset: column %s: rows with values of its type cannot be shuffled: "
                          "leave the column out, or shuffle in Spark",
                          copying->schema->name);
    if (element.kind == TFOS__ELEMENT_TEXT || element.kind == TFOS__ELEMENT_WIDE_TEXT)
        return copy_text(copying, element.kind == TFOS__ELEMENT_WIDE_TEXT, err);
    bool is_done = element.kind == TFOS__ELEMENT_BITS ? copy_bits(copying, 1)
                                                      : copy_values(copying, element.width);
    return is_done ? TFOS_OK : no_room(err);
}

enum tfos_status tfos__array_extract(const struct ArrowSchema *schema,
                                     const struct ArrowArray *array, const struct tfos__span *spans,
                                     int64_t span_count, struct ArrowArray *out,
                                     struct tfos_error *err)
{
    struct copying copying = {schema, array, spans, span_count, out};

    *out = (struct ArrowArray){.null_count = tfos__validity_matters(array) ? -1 : 0,
                               .release = release_array};
    for (int64_t i = 0; i < span_count; i++)
        out->length += spans[i].count;
    out->buffers = tfos__alloc((size_t)array->n_buffers, sizeof(void *));
    out->children = tfos__alloc((size_t)array->n_children, sizeof(void *));
    out->n_buffers = out->buffers ? array->n_buffers : 0;
    out->n_children = out->children ? array->n_children : 0;
    enum tfos_status status =
        out->buffers && out->children ? copy_array(&copying, err) : no_room(err);
    if (status != TFOS_OK)
        release_array(out);
    return status;
}
