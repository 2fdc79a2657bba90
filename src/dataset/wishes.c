// SPDX-License-Identifier: Apache-2.0
#include "dataset/wishes.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

static void free_const(const void *block)
{
    tfos__free((void *)(uintptr_t)block);
}

static enum tfos_status copy_column(struct tfos__wishes *wishes,
                                    const struct tfos_dataset_column *column,
                                    struct tfos_error *err)
{
    struct tfos_dataset_column *copy = &wishes->columns[wishes->column_count];

    if (!column->name || column->rank < 0)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: option columns: number %lld has no name or a negative rank",
                          (long long)wishes->column_count);
    wishes->column_count++;
    copy->form = column->form;
    copy->rank = column->rank;
    copy->name = tfos__strdup(column->name);
    copy->null_value = column->null_value ? tfos__strdup(column->null_value) : NULL;
    int64_t *shape =
        column->shape ? tfos__alloc((size_t)column->rank, sizeof *column->shape) : NULL;
    copy->shape = shape;
    if (!copy->name || (column->null_value && !copy->null_value) || (column->shape && !shape))
        return tfos__no_memory(err, "dataset", "the options");
    if (shape)
        memcpy(shape, column->shape, (size_t)column->rank * sizeof *shape);
    return TFOS_OK;
}

static enum tfos_status copy_all(struct tfos__wishes *wishes,
                                 const struct tfos_dataset_options *options, struct tfos_error *err)
{
    if (options->column_count < 0 || options->selection_count < 0)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: options column_count and selection_count are not negative");
    wishes->columns = tfos__alloc((size_t)options->column_count, sizeof *wishes->columns);
    wishes->selection = tfos__alloc((size_t)options->selection_count, sizeof(char *));
    wishes->null_value = options->null_value ? tfos__strdup(options->null_value) : NULL;
    if (!wishes->columns || !wishes->selection || (options->null_value && !wishes->null_value))
        return tfos__no_memory(err, "dataset", "the options");
    for (int64_t i = 0; i < options->column_count; i++)
        TFOS__TRY(copy_column(wishes, &options->columns[i], err));
    for (int64_t i = 0; i < options->selection_count; i++) {
        char *name = options->selection[i] ? tfos__strdup(options->selection[i]) : NULL;
        if (!name)
            return options->selection[i]
                       ? tfos__no_memory(err, "dataset", "the options")
                       : tfos__fail(err, TFOS_INVALID,
                                    "dataset: option selection: name %lld is missing",
                                    (long long)i);
        wishes->selection[wishes->selection_count++] = name;
    }
    return TFOS_OK;
}

enum tfos_status tfos__wishes_init(struct tfos__wishes *wishes,
                                   const struct tfos_dataset_options *options,
                                   struct tfos_error *err)
{
    *wishes = (struct tfos__wishes){0};
    enum tfos_status status = copy_all(wishes, options, err);
    if (status != TFOS_OK)
        tfos__wishes_clear(wishes);
    return status;
}

void tfos__wishes_clear(struct tfos__wishes *wishes)
{
    for (int64_t i = 0; i < wishes->column_count; i++) {
        free_const(wishes->columns[i].name);
        free_const(wishes->columns[i].null_value);
        free_const(wishes->columns[i].shape);
    }
    for (int64_t i = 0; i < wishes->selection_count; i++)
        tfos__free(wishes->selection[i]);
    tfos__free(wishes->columns);
    tfos__free(wishes->selection);
    tfos__free(wishes->null_value);
    *wishes = (struct tfos__wishes){0};
}
