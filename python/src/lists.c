// SPDX-License-Identifier: Apache-2.0
// Lists of numbers as one array. Invariant: elements of lists of one length lie one behind the
// other, so that they are copied as one piece.
#include "lists.h"
#include "plain.h"

#include <string.h>

struct tfos__py_value_type tfos__py_lists_array_type(const struct tfos__py_value_type *type)
{
    struct tfos__py_value_type array = tfos__py_value_type_elements(type);

    array.kind = TFOS__VALUE_ARRAY;
    array.dimension_count = 1;
    return array;
}

/// Whether these are the packer's numbers: of varying length, as its others have their shape.
static bool is_packed(const struct tfos__py_column *layout)
{
    const struct tfos__py_value_type *type = &layout->type;

    return layout->plain == TFOS__PLAIN_NONE && tfos__py_value_type_is_sequence(type) && !type->is_fixed &&
           tfos__py_value_type_elements(type).letter != 0;
}

/// Offsets in the elements, from that of value `index` on.
static const int64_t *find_ends(const struct ArrowArray *array, int64_t index)
{
    return (const int64_t *)array->buffers[1] + array->offset + index;
}

/// The length that `count` lists, at least one, have; -1: they differ, or one is None.
static int64_t find_size(const struct ArrowArray *array, int64_t index, int64_t count)
{
    const int64_t *ends = find_ends(array, index);
    int64_t size = ends[1] - ends[0];

    for (int64_t i = 0; i < count; i++) {
        if (tfos__arrow_is_null(array, index + i) || ends[i + 1] - ends[i] != size)
            return -1;
    }
    // Whoever unpacks the values one by one says what is wrong with such offsets.
    return ends[0] >= 0 && ends[count] <= array->children[0]->length ? size : -1;
}

static bool find_packed_shape(const struct tfos__py_column *layout,
                              const struct ArrowArray *array, int64_t index, int64_t count,
                              struct tfos__py_value_type *type)
{
    int64_t size = count > 0 ? find_size(array, index, count) : 0;

    if (size < 0)
        return false;
    *type = tfos__py_lists_array_type(&layout->type);
    type->is_fixed = true;
    type->shape[0] = size;
    return true;
}

bool tfos__py_lists_find_shape(const struct tfos__py_column *layout,
                            const struct ArrowArray *array, int64_t index, int64_t count,
                            struct tfos__py_value_type *type)
{
    if (is_packed(layout))
        return find_packed_shape(layout, array, index, count, type);
    return layout->plain != TFOS__PLAIN_NONE && !tfos__py_value_type_is_numeric(&layout->type) &&
           tfos__py_plain_find_shape(layout, array, index, count, type);
}

int64_t tfos__py_lists_copy(const struct tfos__py_column *layout, const struct ArrowArray *array,
                         int64_t index, int64_t count, void *to)
{
    const struct ArrowArray *elements = NULL;
    const int64_t *ends = NULL;
    size_t width = (size_t)tfos__py_value_type_width(&layout->type);

    if (layout->plain != TFOS__PLAIN_NONE)
        return tfos__py_plain_copy(layout, array, index, count, to);
    elements = array->children[0];
    ends = find_ends(array, index);
    if (ends[count] > ends[0])
        memcpy(to,
               (const char *)elements->buffers[1] + (size_t)(elements->offset + ends[0]) * width,
               (size_t)(ends[count] - ends[0]) * width);
    return -1;
}
