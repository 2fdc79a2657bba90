// SPDX-License-Identifier: Apache-2.0
// A struct's children begin at the struct's offset, a list's at 0; each array adds its own.
#include "record/example_source.h"

#include "base/fail.h"

struct search {
    const struct tfos__example_plan *plan;
    struct tfos__example_source *sources;
    size_t shape, field;
};

static enum tfos_status mismatch(const char *name, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_INVALID,
                      "column %s: the batch is not of the schema that the encoder was made "
                      "for",
                      name);
}

static struct tfos__example_bits validity_of(const struct ArrowArray *array, int64_t offset)
{
    bool may_be_null = array->null_count != 0 && array->n_buffers > 0 && array->buffers[0];
    return (struct tfos__example_bits){may_be_null ? array->buffers[0] : NULL, offset};
}

static enum tfos_status find_values(struct tfos__example_source *source,
                                    const struct ArrowArray *array, int64_t offset,
                                    struct tfos_error *err)
{
    bool has_bytes = source->field->value >= TFOS__VALUE_TEXT;
    if (array->n_buffers != (has_bytes ? 3 : 2) || array->n_children != 0 || array->dictionary)
        return mismatch(source->field->name, err);
    source->value_validity = validity_of(array, offset);
    source->offset = offset;
    source->values = array->buffers[1];
    source->bytes = has_bytes ? array->buffers[2] : NULL;
    return TFOS_OK;
}

static enum tfos_status find_leaf(struct tfos__example_source *source,
                                  const struct ArrowArray *array, int64_t offset,
                                  struct tfos_error *err)
{
    const struct tfos__example_field *field = source->field;
    offset += array->offset;
    source->validity = validity_of(array, offset);
    for (int i = 0; i < field->level_count; i++) {
        bool has_offsets = field->levels[i].fixed_size < 0;
        if (array->n_buffers != (has_offsets ? 2 : 1) || array->n_children != 1)
            return mismatch(field->name, err);
        source->levels[i].validity = validity_of(array, offset);
        source->levels[i].offsets = has_offsets ? array->buffers[1] : NULL;
        source->levels[i].offset = offset;
        array = array->children[0];
        offset = array->offset;
    }
    return find_values(source, array, offset, err);
}

// `offset` is that of the first row among the node's parents.
static enum tfos_status find_node(struct search *search, const struct ArrowArray *array,
                                  int64_t offset, int64_t row_count, struct tfos_error *err)
{
    int64_t child_count = search->plan->shape[search->shape++];
    if (child_count < 0) {
        struct tfos__example_source *source = &search->sources[search->field];
        *source = (struct tfos__example_source){.field = &search->plan->fields[search->field]};
        search->field++;
        return find_leaf(source, array, offset, err);
    }
    const char *first = search->field < search->plan->field_count
                            ? search->plan->fields[search->field].name
                            : "of the batch";
    if (array->n_children != child_count)
        return mismatch(first, err);
    offset += array->offset;
    struct tfos__example_bits validity = validity_of(array, offset);
    for (int64_t row = 0; validity.bits && row < row_count; row++)
        if (tfos__example_is_null(validity, row))
            return tfos__fail(err, TFOS_INVALID,
                              "row %lld, column %s: the struct that it is in is null, "
                              "which a record cannot say",
                              (long long)row, first);
    for (int64_t i = 0; i < child_count; i++)
        TFOS__TRY(find_node(search, array->children[i], offset, row_count, err));
    return TFOS_OK;
}

enum tfos_status tfos__example_sources_find(const struct tfos__example_plan *plan,
                                            const struct ArrowArray *batch,
                                            struct tfos__example_source *sources,
                                            struct tfos_error *err)
{
    struct search search = {.plan = plan, .sources = sources};
    return find_node(&search, batch, 0, batch->length, err);
}

enum tfos_status tfos__example_source_list(const struct tfos__example_source *source, int level,
                                           int64_t index, struct tfos__example_range *range,
                                           struct tfos_error *err)
{
    const struct tfos__example_field *field = source->field;
    int64_t at = source->levels[level].offset + index, fixed_size = field->levels[level].fixed_size;
    if (tfos__example_is_null(source->levels[level].validity, index))
        return tfos__fail(err, TFOS_INVALID,
                          "column %s: a null within a list, which a record cannot hold",
                          field->name);
    if (!source->levels[level].offsets) {
        *range = (struct tfos__example_range){at * fixed_size, (at + 1) * fixed_size};
    } else if (field->levels[level].is_wide) {
        const int64_t *offsets = source->levels[level].offsets;
        *range = (struct tfos__example_range){offsets[at], offsets[at + 1]};
    } else {
        const int32_t *offsets = source->levels[level].offsets;
        *range = (struct tfos__example_range){offsets[at], offsets[at + 1]};
    }
    return TFOS_OK;
}
