// SPDX-License-Identifier: Apache-2.0
#include "dataset/column_options.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

// Copies a text that may be NULL. False: no memory.
static bool copy_text(const char *text, const char **out)
{
    *out = text ? tfos__strdup(text) : NULL;
    return !text || *out;
}

static enum tfos_status copy_column(const struct tfos_dataset_column *column,
                                    struct tfos_dataset_column *copy, struct tfos_error *err)
{
    size_t rank = column->shape ? (size_t)column->rank : 0;
    int64_t *shape = column->shape ? tfos__alloc(rank, sizeof(*shape)) : NULL;

    *copy =
        (struct tfos_dataset_column){.form = column->form, .rank = column->rank, .shape = shape};
    if (!copy_text(column->name, &copy->name) ||
        !copy_text(column->null_value, &copy->null_value) || (column->shape && !shape))
        return tfos__no_memory(err, "dataset", "the options");
    if (rank > 0)
        memcpy(shape, column->shape, rank * sizeof(*shape));
    return TFOS_OK;
}

static enum tfos_status copy_all(struct tfos__dataset_column_options *columns,
                                 const struct tfos_dataset_options *options, struct tfos_error *err)
{
    if (options->column_count < 0 || options->selection_count < 0)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: options column_count and selection_count are not negative");
    columns->columns = tfos__alloc((size_t)options->column_count, sizeof(*columns->columns));
    columns->selection = tfos__alloc((size_t)options->selection_count, sizeof(char *));
    columns->null_value = options->null_value ? tfos__strdup(options->null_value) : NULL;
    if (!columns->columns || !columns->selection || (options->null_value && !columns->null_value))
        return tfos__no_memory(err, "dataset", "the options");
    for (int64_t i = 0; i < options->column_count; i++) {
        const struct tfos_dataset_column *column = &options->columns[i];
        if (!column->name || column->rank < 0)
            return tfos__fail(err, TFOS_INVALID,
                              "dataset: option columns: number %lld has no name or a negative rank",
                              (long long)i);
        if (tfos__dataset_column_options_find(columns, column->name))
            return tfos__fail(err, TFOS_INVALID, "dataset: option columns: %s is there twice",
                              column->name);
        TFOS__TRY(copy_column(column, &columns->columns[columns->column_count++], err));
    }
    for (int64_t i = 0; i < options->selection_count; i++) {
        if (!options->selection[i])
            return tfos__fail(err, TFOS_INVALID, "dataset: option selection: name %lld is missing",
                              (long long)i);
        columns->selection[i] = tfos__strdup(options->selection[i]);
        if (!columns->selection[i])
            return tfos__no_memory(err, "dataset", "the options");
        columns->selection_count++;
    }
    return TFOS_OK;
}

enum tfos_status tfos__dataset_column_options_init(struct tfos__dataset_column_options *columns,
                                                   const struct tfos_dataset_options *options,
                                                   struct tfos_error *err)
{
    *columns = (struct tfos__dataset_column_options){0};
    enum tfos_status status = copy_all(columns, options, err);
    if (status != TFOS_OK)
        tfos__dataset_column_options_clear(columns);
    return status;
}

const struct tfos_dataset_column *
tfos__dataset_column_options_find(const struct tfos__dataset_column_options *columns,
                                  const char *name)
{
    for (int64_t i = 0; i < columns->column_count; i++)
        if (strcmp(columns->columns[i].name, name) == 0)
            return &columns->columns[i];
    return NULL;
}

int64_t tfos__dataset_column_options_select(const struct tfos__dataset_column_options *columns,
                                            const char *name)
{
    for (int64_t i = 0; i < columns->selection_count; i++) {
        size_t size = strlen(columns->selection[i]);
        if (strncmp(columns->selection[i], name, size) == 0 &&
            (name[size] == '\0' || name[size] == '.'))
            return i;
    }
    return columns->selection_count == 0 ? 0 : -1;
}

static void free_const(const void *block)
{
    tfos__free((void *)(uintptr_t)block);
}

void tfos__dataset_column_options_clear(struct tfos__dataset_column_options *columns)
{
    for (int64_t i = 0; i < columns->column_count; i++) {
        free_const(columns->columns[i].name);
        free_const(columns->columns[i].null_value);
        free_const(columns->columns[i].shape);
    }
    for (int64_t i = 0; i < columns->selection_count; i++)
        tfos__free(columns->selection[i]);
    tfos__free(columns->columns);
    tfos__free(columns->selection);
    tfos__free(columns->null_value);
    *columns = (struct tfos__dataset_column_options){0};
}
