// SPDX-License-Identifier: Apache-2.0
// A row is a value, a list, or a list of lists, as its field says. Validity is of rows only: the
// lists of a record hold no nulls.
#include "record/example_column.h"

#include "base/fail.h"

static enum tfos_status fail(const struct tfos__example_column *column, struct tfos_error *err,
                             const char *words)
{
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %s", column->field->name, words);
}

static int64_t value_count(const struct tfos__example_column *column)
{
    return tfos__example_values(column->field)->length;
}

// A null row: its list is empty, or, of a fixed size, full of what stands for nothing.
static enum tfos_status append_null(const struct tfos__example_column *column,
                                    struct tfos_error *err)
{
    if (!column->field->is_nullable)
        return fail(column, err, "the record has none, and the schema says that none is null");
    return tfos__arrow_builder_append_null(column->field->levels[0], err);
}

// Adds the values of the pieces of a step, beginning with `*piece`, which moves behind them.
static enum tfos_status append_step(const struct tfos__example_column *column,
                                    const struct tfos__feature *feature, uint32_t step,
                                    uint32_t *piece, struct tfos_error *err)
{
    for (; *piece < feature->piece_count && feature->pieces[*piece].step == step; ++*piece) {
        const struct tfos__feature_piece *at = &feature->pieces[*piece];
        TFOS__PASS(at->kind == column->field->kind
                       ? tfos__example_values_append(column->field, at->list, err)
                       : tfos__example_values_convert(column->field, at->kind, at->list, err));
    }
    return TFOS_OK;
}

// The list of `level` that holds `count` lists or values ends.
static enum tfos_status close_list(const struct tfos__example_column *column, int level,
                                   int64_t count, struct tfos_error *err)
{
    const struct tfos__example_field *field = column->field;
    struct tfos__arrow_builder *list = field->levels[level];
    if (list->type.layout == TFOS__ARROW_FIXED_LIST && count != list->type.list_size)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: a list of %lld, where each of %s has %lld: read it as lists "
                          "of any size",
                          field->name, (long long)count, field->type,
                          (long long)list->type.list_size);
    return tfos__arrow_builder_end_list(list, err);
}

static enum tfos_status several_values(const struct tfos__example_column *column, int64_t count,
                                       struct tfos_error *err)
{
    char text[TFOS_TYPE_TEXT_SIZE];
    const struct tfos__example_field *field = column->field;
    return tfos__fail(err, TFOS_CORRUPT, "column %s: %lld values, where %s is one: read it as %s",
                      field->name, (long long)count, field->type,
                      tfos__example_type_of(field, field->kind, 1, text));
}

static enum tfos_status append_scalar(const struct tfos__example_column *column,
                                      struct tfos_error *err)
{
    uint32_t piece = 0;
    int64_t before = value_count(column);
    TFOS__PASS(append_step(column, &column->plain, 0, &piece, err));
    int64_t count = value_count(column) - before;
    if (count > 1)
        return several_values(column, count, err);
    return count == 0 ? append_null(column, err) : TFOS_OK;
}

static enum tfos_status append_plain_list(const struct tfos__example_column *column,
                                          struct tfos_error *err)
{
    uint32_t piece = 0;
    int64_t before = value_count(column);
    if (column->plain.piece_count == 0)
        return append_null(column, err);
    TFOS__PASS(append_step(column, &column->plain, 0, &piece, err));
    return close_list(column, 0, value_count(column) - before, err);
}

// A column of lists whose feature is a feature list: a value of each of its features.
static enum tfos_status append_steps_as_list(const struct tfos__example_column *column,
                                             struct tfos_error *err)
{
    uint32_t piece = 0;
    for (uint32_t step = 0; step < column->list.step_count; step++) {
        int64_t before = value_count(column);
        TFOS__PASS(append_step(column, &column->list, step, &piece, err));
        if (value_count(column) != before + 1)
            return tfos__fail(err, TFOS_CORRUPT,
                              "column %s: feature %u of the feature list has %lld values, where "
                              "%s has one: read it as lists of lists",
                              column->field->name, step, (long long)(value_count(column) - before),
                              column->field->type);
    }
    return close_list(column, 0, column->list.step_count, err);
}

static enum tfos_status append_lists(const struct tfos__example_column *column,
                                     struct tfos_error *err)
{
    uint32_t piece = 0;
    for (uint32_t step = 0; step < column->list.step_count; step++) {
        int64_t before = value_count(column);
        TFOS__PASS(append_step(column, &column->list, step, &piece, err));
        TFOS__PASS(close_list(column, 1, value_count(column) - before, err));
    }
    return close_list(column, 0, column->list.step_count, err);
}

enum tfos_status tfos__example_column_append(struct tfos__example_column *column,
                                             struct tfos_error *err)
{
    const struct tfos__example_field *field = column->field;
    if (field->level_count < 2 && column->plain.is_present && column->list.is_present)
        return fail(column, err, "the record has it as a context feature and as a feature list");
    if (field->level_count == 0 && column->list.is_present)
        return tfos__fail(
            err, TFOS_CORRUPT,
            "column %s: a feature list, where %s is no list: read it as lists of lists",
            field->name, field->type);
    if (field->level_count == 2 && column->plain.is_present)
        return tfos__fail(err, TFOS_CORRUPT,
                          "column %s: a context feature, where %s is lists of lists: read it as a "
                          "list, or as one value",
                          field->name, field->type);
    if (!column->plain.is_present && !column->list.is_present)
        return append_null(column, err);
    if (field->level_count == 0)
        return append_scalar(column, err);
    if (field->level_count == 2)
        return append_lists(column, err);
    return column->plain.is_present ? append_plain_list(column, err)
                                    : append_steps_as_list(column, err);
}

void tfos__example_column_clear(struct tfos__example_column *column)
{
    tfos__feature_clear(&column->plain);
    tfos__feature_clear(&column->list);
}
