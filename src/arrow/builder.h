// SPDX-License-Identifier: Apache-2.0
/// A column that grows, with its children: the buffers of an Arrow array as values come. There are
/// no validity bits before the first null, and none behind the last one: what is not marked is
/// valid.
#ifndef TFOS_ARROW_BUILDER_H
#define TFOS_ARROW_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "arrow/array.h"
#include "arrow/type.h"

/// Memory at a multiple of 64, which only grows. All zero is an empty one.
struct tfos__arrow_buffer {
    uint8_t *data;
    size_t capacity;
    void *block;          ///< owned; `data` lies in it; NULL: `data` is borrowed
    size_t last_capacity; ///< of what was taken away, and will be needed again
};

/// All zero is an empty column of NULL.
struct tfos__arrow_builder {
    struct tfos__arrow_type type;
    int64_t length, null_count;
    int64_t marked_count;               ///< values whose validity bits are written
    struct tfos__arrow_buffer validity; ///< bits
    struct tfos__arrow_buffer values;   ///< values, or offsets: one more than there are values
    struct tfos__arrow_buffer bytes;    ///< of texts and binary
    size_t byte_count;
    int64_t child_count;
    struct tfos__arrow_builder *children; ///< owned
    struct ArrowArray array;              ///< what show() fills
    const void *buffers[TFOS__ARROW_BUFFERS];
};

/// Makes a zeroed column, and those below it, for the types of a schema. UNSUPPORTED, INVALID: the
/// message names the column. On failure the caller clears it too.
enum tfos_status tfos__arrow_builder_init(struct tfos__arrow_builder *builder,
                                          const struct ArrowSchema *schema, struct tfos_error *err);

/// Gives a column that has nothing but nulls, as one of NULL, another type. Its children are of
/// NULL.
enum tfos_status tfos__arrow_builder_adopt(struct tfos__arrow_builder *builder,
                                           struct tfos__arrow_type type, int64_t child_count,
                                           struct tfos_error *err);

/// Makes room for `count` more values of FIXED, or for the ends of so many lists or texts.
enum tfos_status tfos__arrow_builder_reserve(struct tfos__arrow_builder *builder, int64_t count,
                                             struct tfos_error *err);

/// Where the next value of one or several bytes goes, if there is room; then `length` is raised.
static inline void *tfos__arrow_builder_end(const struct tfos__arrow_builder *builder)
{
    return builder->values.data + builder->length * (builder->type.width / 8);
}

/// Appends the low `count` bits of a word, 64 at most, as booleans; there must be room.
void tfos__arrow_builder_put_bits(struct tfos__arrow_builder *builder, uint64_t word,
                                  unsigned count);

/// Appends a text or bytes. AGAIN, and nothing is: the offsets reach no further.
enum tfos_status tfos__arrow_builder_append_bytes(struct tfos__arrow_builder *builder,
                                                  const void *data, size_t size,
                                                  struct tfos_error *err);

/// Ends a list: it holds what was appended to the child since the one before. AGAIN, and it is not
/// ended: the offsets reach no further.
enum tfos_status tfos__arrow_builder_end_list(struct tfos__arrow_builder *builder,
                                              struct tfos_error *err);

/// Appends `count` zeros, empty texts, empty lists.
enum tfos_status tfos__arrow_builder_append_zeros(struct tfos__arrow_builder *builder,
                                                  int64_t count, struct tfos_error *err);

/// Says which of the `count` values, 64 at most, from `at` on are null; in the order of the values,
/// which may come later. Values that are not null need not be marked.
enum tfos_status tfos__arrow_builder_mark(struct tfos__arrow_builder *builder, int64_t at,
                                          uint64_t nulls, unsigned count, struct tfos_error *err);

enum tfos_status tfos__arrow_builder_append_null(struct tfos__arrow_builder *builder,
                                                 struct tfos_error *err);

/// Appends `count` values of an array of the same type from `first` on, with all that is in them.
/// AGAIN: the offsets reach no further.
enum tfos_status tfos__arrow_builder_append_span(struct tfos__arrow_builder *builder,
                                                 const struct ArrowArray *array, int64_t first,
                                                 int64_t count, struct tfos_error *err);

/// Offset `index` of the column's texts or lists.
static inline int64_t tfos__arrow_builder_offset(const struct tfos__arrow_builder *builder,
                                                 int64_t index)
{
    const void *offsets = builder->values.data;
    return builder->type.width == 64 ? ((const int64_t *)offsets)[index]
                                     : ((const int32_t *)offsets)[index];
}

/// Forgets all but the first `length` values, of children too, however far each of them had come.
void tfos__arrow_builder_truncate(struct tfos__arrow_builder *builder, int64_t length);

/// Bytes of the values, about.
size_t tfos__arrow_builder_size(const struct tfos__arrow_builder *builder);

/// Brings `builder->array` and those below it up to date: it is not to be released, and lives until
/// the column changes. Fails only where the bits of nulls were not written by a show()
/// before.
enum tfos_status tfos__arrow_builder_show(struct tfos__arrow_builder *builder,
                                          struct tfos_error *err);

/// Makes an array that owns the memory, also on failure; the column is empty then. The caller
/// releases it.
enum tfos_status tfos__arrow_builder_take(struct tfos__arrow_builder *builder,
                                          struct ArrowArray *out, struct tfos_error *err);

void tfos__arrow_builder_clear(struct tfos__arrow_builder *builder);

/// Makes an array of its own, which the caller releases, of some spans of another, one behind the
/// other. UNSUPPORTED, INVALID: of its types, as of init().
enum tfos_status tfos__arrow_array_extract(const struct ArrowSchema *schema,
                                           const struct ArrowArray *array,
                                           const struct tfos__arrow_span *spans, int64_t span_count,
                                           struct ArrowArray *out, struct tfos_error *err);

#endif
