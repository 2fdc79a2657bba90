// SPDX-License-Identifier: Apache-2.0
// Contiguous values are visited together; they are split at nulls and where a list is padded. The
// arrays come from the feed, which has checked their lengths and offsets against their memory.
#include "dataset/column_visitor.h"

#include <string.h>

#include "base/fail.h"

#define COUNT_LIMIT (INT64_MAX / 4) // so that counts can be added and take one more

static const struct tfos__dataset_fill_value zero;

static enum tfos_status visit(struct tfos__dataset_column_visitor *visitor, int step, int level,
                              const struct ArrowArray *array, int64_t first, int64_t count,
                              struct tfos_error *err);

void tfos__dataset_column_visitor_init(struct tfos__dataset_column_visitor *visitor,
                                       const struct tfos__dataset_feature *feature)
{
    *visitor = (struct tfos__dataset_column_visitor){.feature = feature};
    for (int i = 0; i < feature->level_count; i++) {
        visitor->targets[i] = feature->lengths[i];
        visitor->shortest[i] = INT64_MAX;
        visitor->longest[i] = -1;
    }
}

enum tfos_status
tfos__dataset_column_visitor_check(const struct tfos__dataset_column_visitor *visitor,
                                   struct tfos_error *err)
{
    if (!visitor->is_overrun)
        return TFOS_OK;
    return tfos__fail(err, TFOS_INVALID,
                      "dataset: column %s: its lists, padded to the longest or to the shape "
                      "asked for, are more values than a tensor can hold: ask for form ragged, or "
                      "for a smaller shape",
                      visitor->feature->name);
}

void tfos__dataset_column_visitor_write(struct tfos__dataset_column_visitor *visitor)
{
    visitor->is_writing = true;
    visitor->value_room = visitor->value_count + visitor->fill_count;
    visitor->text_room = visitor->is_borrowed ? 0 : visitor->text_size;
    for (int i = 0; i < visitor->feature->level_count; i++)
        visitor->split_rooms[i] = visitor->list_counts[i];
}

enum tfos_status
tfos__dataset_column_visitor_finish(const struct tfos__dataset_column_visitor *visitor,
                                    struct tfos_error *err)
{
    bool is_whole = !visitor->is_overrun && visitor->value_room == 0 && visitor->text_room == 0;

    for (int i = 0; i < visitor->feature->level_count && is_whole; i++)
        is_whole = visitor->split_rooms[i] == 0;
    return is_whole ? TFOS_OK
                    : tfos__fail(err, TFOS_CORRUPT, "dataset: column %s changed while it was read",
                                 visitor->feature->name);
}

// The product of two counts. Beyond the limit the visitor is overrun.
static int64_t multiply(struct tfos__dataset_column_visitor *visitor, int64_t count, int64_t size)
{
    int64_t product = 0;

    if (!__builtin_mul_overflow(count, size, &product) && product <= COUNT_LIMIT)
        return product;
    visitor->is_overrun = true;
    return 0;
}

// Adds to a measured total.
static void add_up(struct tfos__dataset_column_visitor *visitor, int64_t *total, int64_t count)
{
    if (count <= COUNT_LIMIT - *total)
        *total += count;
    else
        visitor->is_overrun = true;
}

// Takes room for what is written next. False, from then on, when there is too little.
static bool take_room(struct tfos__dataset_column_visitor *visitor, int64_t *room, int64_t size)
{
    visitor->is_overrun = visitor->is_overrun || size > *room;
    if (!visitor->is_overrun)
        *room -= size;
    return !visitor->is_overrun;
}

// Where the bytes of value `index` of a column of strings begin; those of the one before end there.
static int64_t text_begin(const struct tfos__arrow_type *type, const struct ArrowArray *array,
                          int64_t index)
{
    return type->layout == TFOS__ARROW_FIXED ? (array->offset + index) * (type->width / 8)
                                             : tfos__arrow_offset(type, array, index);
}

static void write_text(struct tfos__dataset_column_visitor *visitor, const struct ArrowArray *array,
                       int64_t first, int64_t count)
{
    const struct tfos__arrow_type *type = &visitor->path->element.type;
    const char *bytes = array->buffers[type->layout == TFOS__ARROW_FIXED ? 1 : 2];
    int64_t begin = text_begin(type, array, first);
    int64_t size = text_begin(type, array, first + count) - begin;
    int64_t shift = visitor->text_position - begin;

    if (!take_room(visitor, &visitor->text_room, size))
        return;
    for (int64_t i = 1; i <= count; i++)
        visitor->offsets[i] = text_begin(type, array, first + i) + shift;
    visitor->offsets += count;
    if (size > 0)
        memcpy(visitor->text + visitor->text_position, bytes + begin, (size_t)size);
    visitor->text_position += size;
}

static void put_values(struct tfos__dataset_column_visitor *visitor, const struct ArrowArray *array,
                       int64_t first, int64_t count)
{
    const struct tfos__dataset_element *element = &visitor->path->element;
    bool is_text = visitor->feature->dtype == TFOS_DTYPE_STRING;

    if (count == 0) // there may be no buffers then
        return;
    if (visitor->is_borrowed) {
        take_room(visitor, &visitor->value_room, count);
    } else if (!visitor->is_writing) {
        add_up(visitor, &visitor->value_count, count);
        visitor->span_count++;
        visitor->values = array;
        visitor->first_value = first;
        visitor->element = *element;
        if (is_text)
            add_up(visitor, &visitor->text_size,
                   text_begin(&element->type, array, first + count) -
                       text_begin(&element->type, array, first));
    } else if (!take_room(visitor, &visitor->value_room, count)) {
        return;
    } else if (is_text) {
        write_text(visitor, array, first, count);
    } else {
        tfos__dataset_element_copy(element, array, first, count, visitor->out);
        visitor->out += count * (int64_t)tfos__dataset_type_size(visitor->feature->dtype);
    }
}

static void put_fill_values(struct tfos__dataset_column_visitor *visitor, int64_t count,
                            const struct tfos__dataset_fill_value *value)
{
    size_t width = tfos__dataset_type_size(visitor->feature->dtype);
    int64_t text_size = (int64_t)value->text_size;
    int64_t whole_text_size = multiply(visitor, count, text_size);

    if (!visitor->is_writing) {
        add_up(visitor, &visitor->fill_count, count);
        add_up(visitor, &visitor->text_size, whole_text_size);
        return;
    }
    if (!take_room(visitor, &visitor->value_room, count) ||
        !take_room(visitor, &visitor->text_room, whole_text_size))
        return;
    for (int64_t i = 0; i < count; i++) {
        if (width > 0) {
            memcpy(visitor->out, value->bytes, width);
            visitor->out += width;
            continue;
        }
        if (text_size > 0)
            memcpy(visitor->text + visitor->text_position, value->text, (size_t)text_size);
        visitor->text_position += text_size;
        *++visitor->offsets = visitor->text_position;
    }
}

// Adds `count` ragged lists of one length.
static void put_splits(struct tfos__dataset_column_visitor *visitor, int level, int64_t count,
                       int64_t length)
{
    if (!visitor->is_writing) {
        add_up(visitor, &visitor->list_counts[level], count);
        return;
    }
    if (!take_room(visitor, &visitor->split_rooms[level], count))
        return;
    for (int64_t i = 0; i < count; i++, visitor->splits[level]++)
        visitor->splits[level][1] = visitor->splits[level][0] + length;
}

// Fills `count` places at a level: with lists, or at the last level with values.
static void fill(struct tfos__dataset_column_visitor *visitor, int level, int64_t count,
                 const struct tfos__dataset_fill_value *value)
{
    if (level < visitor->feature->level_count && visitor->feature->form == TFOS_FORM_RAGGED) {
        put_splits(visitor, level, count, 0);
        return;
    }
    for (int i = level; i < visitor->feature->level_count; i++)
        count = multiply(visitor, count, visitor->targets[i] > 0 ? visitor->targets[i] : 0);
    put_fill_values(visitor, count, value);
}

void tfos__dataset_column_visitor_zeros(struct tfos__dataset_column_visitor *visitor, int64_t count)
{
    fill(visitor, 0, count, &zero);
}

static enum tfos_status visit_nulls(struct tfos__dataset_column_visitor *visitor, int level,
                                    int64_t count, struct tfos_error *err)
{
    if (!visitor->feature->fills_nulls && visitor->feature->form != TFOS_FORM_AUTO)
        return tfos__fail(err, TFOS_INVALID,
                          "column %s is null%s: say by null_value what a null becomes",
                          visitor->feature->name, level > 0 ? " within a list" : "");
    fill(visitor, level, count, &visitor->feature->fill_value);
    return TFOS_OK;
}

// Notes the lengths of lists [first, first + count); whether all are as long as the target.
static bool note_lengths(struct tfos__dataset_column_visitor *visitor,
                         const struct tfos__arrow_type *type, int level,
                         const struct ArrowArray *array, int64_t first, int64_t count)
{
    int64_t shortest = INT64_MAX, longest = -1;
    bool is_ragged = visitor->feature->form == TFOS_FORM_RAGGED;

    for (int64_t i = 0; i < count; i++) {
        int64_t length = tfos__arrow_list(type, array, first + i).count;
        shortest = length < shortest ? length : shortest;
        longest = length > longest ? length : longest;
        if (is_ragged)
            put_splits(visitor, level, 1, length);
        else if (type->layout == TFOS__ARROW_FIXED_LIST)
            break;
    }
    if (shortest < visitor->shortest[level])
        visitor->shortest[level] = shortest;
    if (longest > visitor->longest[level])
        visitor->longest[level] = longest;
    return shortest == visitor->targets[level] && longest == shortest;
}

static enum tfos_status check_lengths(const struct tfos__dataset_column_visitor *visitor, int level,
                                      struct tfos_error *err)
{
    const struct tfos__dataset_feature *feature = visitor->feature;
    int64_t target = visitor->targets[level];

    if (target < 0 || (feature->form == TFOS_FORM_PADDED && visitor->longest[level] <= target))
        return TFOS_OK;
    if (feature->form == TFOS_FORM_PADDED)
        return tfos__fail(err, TFOS_INVALID,
                          "column %s has a list of %lld elements, more than the %lld of its shape",
                          feature->name, (long long)visitor->longest[level], (long long)target);
    int64_t length =
        visitor->shortest[level] != target ? visitor->shortest[level] : visitor->longest[level];
    return tfos__fail(err, TFOS_INVALID,
                      "column %s has a list of %lld elements where each has %lld: ask for form "
                      "ragged or padded if lengths vary",
                      feature->name, (long long)length, (long long)target);
}

// Visits lists one by one, and pads each.
static enum tfos_status visit_padded(struct tfos__dataset_column_visitor *visitor, int step,
                                     int level, const struct ArrowArray *array, int64_t first,
                                     int64_t count, struct tfos_error *err)
{
    for (int64_t i = first; i < first + count; i++) {
        struct tfos__arrow_span list = tfos__arrow_list(&visitor->path->steps[step].type, array, i);
        TFOS__TRY(
            visit(visitor, step + 1, level + 1, array->children[0], list.first, list.count, err));
        fill(visitor, level + 1, visitor->targets[level] - list.count,
             &visitor->feature->fill_value);
    }
    return TFOS_OK;
}

static enum tfos_status visit_lists(struct tfos__dataset_column_visitor *visitor, int step,
                                    int level, const struct ArrowArray *array, int64_t first,
                                    int64_t count, struct tfos_error *err)
{
    const struct tfos__arrow_type *type = &visitor->path->steps[step].type;
    bool is_ragged = visitor->feature->form == TFOS_FORM_RAGGED;

    if (count == 0) // there may be no offsets then
        return TFOS_OK;
    bool is_even = note_lengths(visitor, type, level, array, first, count);
    if (!is_ragged && !is_even)
        TFOS__TRY(check_lengths(visitor, level, err));
    if (!is_ragged && !is_even && visitor->targets[level] >= 0)
        return visit_padded(visitor, step, level, array, first, count, err);
    struct tfos__arrow_span lists = tfos__arrow_lists(type, array, first, count);
    return visit(visitor, step + 1, level + 1, array->children[0], lists.first, lists.count, err);
}

static enum tfos_status visit_valid(struct tfos__dataset_column_visitor *visitor, int step,
                                    int level, const struct ArrowArray *array, int64_t first,
                                    int64_t count, struct tfos_error *err)
{
    const struct tfos__dataset_path_step *next = &visitor->path->steps[step];

    if (step == visitor->path->step_count) {
        if (visitor->path->element.part == TFOS__PART_NOTHING && count > 0)
            return visit_nulls(visitor, level, count, err);
        put_values(visitor, array, first, count);
        return TFOS_OK;
    }
    if (next->type.kind == TFOS__ARROW_STRUCT)
        return visit(visitor, step + 1, level, array->children[next->member], array->offset + first,
                     count, err);
    return visit_lists(visitor, step, level, array, first, count, err);
}

// Visits values [first, first + count) of an array, its own offset not counted.
static enum tfos_status visit(struct tfos__dataset_column_visitor *visitor, int step, int level,
                              const struct ArrowArray *array, int64_t first, int64_t count,
                              struct tfos_error *err)
{
    if (!tfos__arrow_has_nulls(array))
        return visit_valid(visitor, step, level, array, first, count, err);
    while (count > 0) {
        bool is_null = false;
        int64_t run = tfos__arrow_run(array, first, count, &is_null);
        TFOS__TRY(is_null ? visit_nulls(visitor, level, run, err)
                          : visit_valid(visitor, step, level, array, first, run, err));
        first += run;
        count -= run;
    }
    return TFOS_OK;
}

enum tfos_status tfos__dataset_column_visitor_rows(struct tfos__dataset_column_visitor *visitor,
                                                   const struct ArrowArray *batch, int64_t first,
                                                   int64_t count, struct tfos_error *err)
{
    return visit(visitor, 0, 0, batch, first, count, err);
}
