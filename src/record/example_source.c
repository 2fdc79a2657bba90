// SPDX-License-Identifier: Apache-2.0
// A struct's children begin at the struct's offset, a list's at 0; each array adds its own.
#include "record/example_source.h"

#include "base/fail.h"

struct search {
    const struct tfos__example_plan *plan;
    struct tfos__example_source *sources;
    size_t field;
};

static enum tfos_status mismatch(const char *name, struct tfos_error *err)
{
    return tfos__fail(err, TFOS_INVALID,
                      "column %s: the batch is not of the schema that the encoder was made "
                      "for",
                      name);
}

static enum tfos_status find_leaf(struct tfos__example_source *source,
                                  const struct ArrowArray *array, struct tfos_error *err)
{
    const struct tfos__example_field *field = source->field;
    for (int i = 0; i <= field->level_count; i++) {
        const struct tfos__arrow_builder *level = field->levels[i];
        if (!tfos__arrow_fits(&level->type, array, level->child_count))
            return mismatch(field->name, err);
        source->levels[i] = array;
        array = i < field->level_count ? array->children[0] : NULL;
    }
    return TFOS_OK;
}

// `offset` is the index of the first row in the array.
static enum tfos_status find_node(struct search *search, const struct tfos__arrow_builder *node,
                                  const struct ArrowArray *array, int64_t offset, int64_t row_count,
                                  struct tfos_error *err)
{
    const struct tfos__example_field *field = &search->plan->fields[search->field];
    bool is_any_left = search->field < search->plan->field_count;
    if (node->type.kind != TFOS__ARROW_STRUCT) {
        struct tfos__example_source *source = &search->sources[search->field++];
        *source = (struct tfos__example_source){.field = field, .offset = offset};
        return find_leaf(source, array, err);
    }
    const char *first = is_any_left ? field->name : "of the batch";
    if (!tfos__arrow_fits(&node->type, array, node->child_count))
        return mismatch(first, err);
    int64_t null = tfos__arrow_find_null(array, offset, row_count);
    if (null >= 0)
        return tfos__fail(err, TFOS_INVALID,
                          "row %lld, column %s: the struct that it is in is null, "
                          "which a record cannot say",
                          (long long)(null - offset), first);
    for (int64_t i = 0; i < node->child_count; i++)
        TFOS__TRY(find_node(search, &node->children[i], array->children[i], array->offset + offset,
                            row_count, err));
    return TFOS_OK;
}

enum tfos_status tfos__example_sources_find(const struct tfos__example_plan *plan,
                                            const struct ArrowArray *batch,
                                            struct tfos__example_source *sources,
                                            struct tfos_error *err)
{
    struct search search = {.plan = plan, .sources = sources};
    return find_node(&search, &plan->rows, batch, 0, batch->length, err);
}

enum tfos_status tfos__example_source_list(const struct tfos__example_source *source, int level,
                                           int64_t index, struct tfos__arrow_span *span,
                                           struct tfos_error *err)
{
    const struct ArrowArray *array = source->levels[level];
    if (tfos__arrow_is_null(array, index))
        return tfos__fail(err, TFOS_INVALID,
                          "column %s: a null within a list, which a record cannot hold",
                          source->field->name);
    *span = tfos__arrow_list(&source->field->levels[level]->type, array, index);
    return TFOS_OK;
}
