// SPDX-License-Identifier: Apache-2.0
// Runs of values go down together, cut only where nulls lie between them or a list is filled up.
// The arrays come from the feed, which has checked their lengths and offsets against the memory
// behind them.
#include "dataset/walk.h"

#include <string.h>

#include "base/fail.h"

#define COUNT_LIMIT (INT64_MAX / 4) // so that counts can be added and take one more

static const struct tfos__filler zero;

static enum tfos_status visit(struct tfos__walk *walk, int step, int level,
                              const struct ArrowArray *array, int64_t first, int64_t count,
                              struct tfos_error *err);

void tfos__walk_init(struct tfos__walk *walk, const struct tfos__feature *feature)
{
    *walk = (struct tfos__walk){.feature = feature};
    for (int i = 0; i < feature->level_count; i++) {
        walk->targets[i] = feature->lengths[i];
        walk->shortest[i] = INT64_MAX;
        walk->longest[i] = -1;
    }
}

enum tfos_status tfos__walk_check(const struct tfos__walk *walk, struct tfos_error *err)
{
    if (!walk->is_overrun)
        return TFOS_OK;
    return tfos__fail(err, TFOS_INVALID,
                      "dataset: column %s: its lists, filled up to the longest or to the shape "
                      "asked for, are more values than a tensor can hold: ask for form ragged, or "
                      "for a smaller shape",
                      walk->feature->name);
}

void tfos__walk_write(struct tfos__walk *walk)
{
    walk->is_writing = true;
    walk->value_room = walk->value_count + walk->fill_count;
    walk->text_room = walk->is_lent ? 0 : walk->text_size;
    for (int i = 0; i < walk->feature->level_count; i++)
        walk->split_rooms[i] = walk->list_counts[i];
}

enum tfos_status tfos__walk_finish(const struct tfos__walk *walk, struct tfos_error *err)
{
    bool is_whole = !walk->is_overrun && walk->value_room == 0 && walk->text_room == 0;

    for (int i = 0; i < walk->feature->level_count && is_whole; i++)
        is_whole = walk->split_rooms[i] == 0;
    return is_whole ? TFOS_OK
                    : tfos__fail(err, TFOS_CORRUPT, "dataset: column %s changed while it was read",
                                 walk->feature->name);
}

// The product of two counts; beyond the limit there is an end of counting.
static int64_t multiply(struct tfos__walk *walk, int64_t count, int64_t size)
{
    int64_t product = 0;

    if (!__builtin_mul_overflow(count, size, &product) && product <= COUNT_LIMIT)
        return product;
    walk->is_overrun = true;
    return 0;
}

// Adds to what is measured.
static void add_up(struct tfos__walk *walk, int64_t *total, int64_t count)
{
    if (count <= COUNT_LIMIT - *total)
        *total += count;
    else
        walk->is_overrun = true;
}

// Takes room for what comes. False, for good, when there is not enough of it.
static bool take_room(struct tfos__walk *walk, int64_t *room, int64_t size)
{
    walk->is_overrun = walk->is_overrun || size > *room;
    if (!walk->is_overrun)
        *room -= size;
    return !walk->is_overrun;
}

// Where the bytes of value `index` of a column of strings begin; those of the one before end there.
static int64_t text_begin(const struct tfos__arrow_type *type, const struct ArrowArray *array,
                          int64_t index)
{
    return type->layout == TFOS__ARROW_FIXED ? (array->offset + index) * (type->width / 8)
                                             : tfos__arrow_offset(type, array, index);
}

static void write_text(struct tfos__walk *walk, const struct ArrowArray *array, int64_t first,
                       int64_t count)
{
    const struct tfos__arrow_type *type = &walk->route->element.type;
    const char *bytes = array->buffers[type->layout == TFOS__ARROW_FIXED ? 1 : 2];
    int64_t begin = text_begin(type, array, first);
    int64_t size = text_begin(type, array, first + count) - begin;
    int64_t shift = walk->text_position - begin;

    if (!take_room(walk, &walk->text_room, size))
        return;
    for (int64_t i = 1; i <= count; i++)
        walk->offsets[i] = text_begin(type, array, first + i) + shift;
    walk->offsets += count;
    if (size > 0)
        memcpy(walk->text + walk->text_position, bytes + begin, (size_t)size);
    walk->text_position += size;
}

static void put_values(struct tfos__walk *walk, const struct ArrowArray *array, int64_t first,
                       int64_t count)
{
    const struct tfos__element *element = &walk->route->element;
    bool is_text = walk->feature->dtype == TFOS_DTYPE_STRING;

    if (count == 0) // there may be no buffers then
        return;
    if (walk->is_lent) {
        take_room(walk, &walk->value_room, count);
    } else if (!walk->is_writing) {
        add_up(walk, &walk->value_count, count);
        walk->span_count++;
        walk->values = array;
        walk->first_value = first;
        walk->element = *element;
        if (is_text)
            add_up(walk, &walk->text_size,
                   text_begin(&element->type, array, first + count) -
                       text_begin(&element->type, array, first));
    } else if (!take_room(walk, &walk->value_room, count)) {
        return;
    } else if (is_text) {
        write_text(walk, array, first, count);
    } else {
        tfos__element_copy(element, array, first, count, walk->out);
        walk->out += count * (int64_t)tfos__dtype_size(walk->feature->dtype);
    }
}

static void put_filling(struct tfos__walk *walk, int64_t count, const struct tfos__filler *filler)
{
    size_t width = tfos__dtype_size(walk->feature->dtype);
    int64_t text_size = (int64_t)filler->text_size;
    int64_t whole_text_size = multiply(walk, count, text_size);

    if (!walk->is_writing) {
        add_up(walk, &walk->fill_count, count);
        add_up(walk, &walk->text_size, whole_text_size);
        return;
    }
    if (!take_room(walk, &walk->value_room, count) ||
        !take_room(walk, &walk->text_room, whole_text_size))
        return;
    for (int64_t i = 0; i < count; i++) {
        if (width > 0) {
            memcpy(walk->out, filler->bytes, width);
            walk->out += width;
            continue;
        }
        if (text_size > 0)
            memcpy(walk->text + walk->text_position, filler->text, (size_t)text_size);
        walk->text_position += text_size;
        *++walk->offsets = walk->text_position;
    }
}

// Notes lists of one length, which are ragged.
static void put_splits(struct tfos__walk *walk, int level, int64_t count, int64_t length)
{
    if (!walk->is_writing) {
        add_up(walk, &walk->list_counts[level], count);
        return;
    }
    if (!take_room(walk, &walk->split_rooms[level], count))
        return;
    for (int64_t i = 0; i < count; i++, walk->splits[level]++)
        walk->splits[level][1] = walk->splits[level][0] + length;
}

// Makes up what stands at a level: `count` lists, or at the last one values.
static void fill(struct tfos__walk *walk, int level, int64_t count,
                 const struct tfos__filler *filler)
{
    if (level < walk->feature->level_count && walk->feature->form == TFOS_FORM_RAGGED) {
        put_splits(walk, level, count, 0);
        return;
    }
    for (int i = level; i < walk->feature->level_count; i++)
        count = multiply(walk, count, walk->targets[i] > 0 ? walk->targets[i] : 0);
    put_filling(walk, count, filler);
}

void tfos__walk_zeros(struct tfos__walk *walk, int64_t count)
{
    fill(walk, 0, count, &zero);
}

static enum tfos_status visit_nulls(struct tfos__walk *walk, int level, int64_t count,
                                    struct tfos_error *err)
{
    if (!walk->feature->fills_nulls && walk->feature->form != TFOS_FORM_AUTO)
        return tfos__fail(err, TFOS_INVALID,
                          "column %s is null%s: say by null_value what a null becomes",
                          walk->feature->name, level > 0 ? " within a list" : "");
    fill(walk, level, count, &walk->feature->filler);
    return TFOS_OK;
}

// Notes the lengths of lists [first, first + count); whether all are as long as the target.
static bool note_lengths(struct tfos__walk *walk, const struct tfos__arrow_type *type, int level,
                         const struct ArrowArray *array, int64_t first, int64_t count)
{
    int64_t shortest = INT64_MAX, longest = -1;
    bool is_ragged = walk->feature->form == TFOS_FORM_RAGGED;

    for (int64_t i = 0; i < count; i++) {
        int64_t length = tfos__arrow_list(type, array, first + i).count;
        shortest = length < shortest ? length : shortest;
        longest = length > longest ? length : longest;
        if (is_ragged)
            put_splits(walk, level, 1, length);
        else if (type->layout == TFOS__ARROW_FIXED_LIST)
            break;
    }
    if (shortest < walk->shortest[level])
        walk->shortest[level] = shortest;
    if (longest > walk->longest[level])
        walk->longest[level] = longest;
    return shortest == walk->targets[level] && longest == shortest;
}

static enum tfos_status check_lengths(const struct tfos__walk *walk, int level,
                                      struct tfos_error *err)
{
    const struct tfos__feature *feature = walk->feature;
    int64_t target = walk->targets[level];

    if (target < 0 || (feature->form == TFOS_FORM_PADDED && walk->longest[level] <= target))
        return TFOS_OK;
    if (feature->form == TFOS_FORM_PADDED)
        return tfos__fail(err, TFOS_INVALID,
                          "column %s has a list of %lld elements, more than the %lld of its shape",
                          feature->name, (long long)walk->longest[level], (long long)target);
    int64_t length = walk->shortest[level] != target ? walk->shortest[level] : walk->longest[level];
    return tfos__fail(err, TFOS_INVALID,
                      "column %s has a list of %lld elements where each has %lld: ask for form "
                      "ragged or padded if lengths vary",
                      feature->name, (long long)length, (long long)target);
}

// Lists that are filled up, one by one.
static enum tfos_status visit_padded(struct tfos__walk *walk, int step, int level,
                                     const struct ArrowArray *array, int64_t first, int64_t count,
                                     struct tfos_error *err)
{
    for (int64_t i = first; i < first + count; i++) {
        struct tfos__arrow_span list = tfos__arrow_list(&walk->route->steps[step].type, array, i);
        TFOS__TRY(
            visit(walk, step + 1, level + 1, array->children[0], list.first, list.count, err));
        fill(walk, level + 1, walk->targets[level] - list.count, &walk->feature->filler);
    }
    return TFOS_OK;
}

static enum tfos_status visit_lists(struct tfos__walk *walk, int step, int level,
                                    const struct ArrowArray *array, int64_t first, int64_t count,
                                    struct tfos_error *err)
{
    const struct tfos__arrow_type *type = &walk->route->steps[step].type;
    bool is_ragged = walk->feature->form == TFOS_FORM_RAGGED;

    if (count == 0) // there may be no offsets then
        return TFOS_OK;
    bool is_even = note_lengths(walk, type, level, array, first, count);
    if (!is_ragged && !is_even)
        TFOS__TRY(check_lengths(walk, level, err));
    if (!is_ragged && !is_even && walk->targets[level] >= 0)
        return visit_padded(walk, step, level, array, first, count, err);
    struct tfos__arrow_span lists = tfos__arrow_lists(type, array, first, count);
    return visit(walk, step + 1, level + 1, array->children[0], lists.first, lists.count, err);
}

static enum tfos_status visit_valid(struct tfos__walk *walk, int step, int level,
                                    const struct ArrowArray *array, int64_t first, int64_t count,
                                    struct tfos_error *err)
{
    const struct tfos__step *next = &walk->route->steps[step];

    if (step == walk->route->step_count) {
        if (walk->route->element.part == TFOS__PART_NOTHING && count > 0)
            return visit_nulls(walk, level, count, err);
        put_values(walk, array, first, count);
        return TFOS_OK;
    }
    if (next->type.kind == TFOS__ARROW_STRUCT)
        return visit(walk, step + 1, level, array->children[next->member], array->offset + first,
                     count, err);
    return visit_lists(walk, step, level, array, first, count, err);
}

// Visits values [first, first + count) of an array, its own offset not counted.
static enum tfos_status visit(struct tfos__walk *walk, int step, int level,
                              const struct ArrowArray *array, int64_t first, int64_t count,
                              struct tfos_error *err)
{
    if (!tfos__arrow_has_nulls(array))
        return visit_valid(walk, step, level, array, first, count, err);
    while (count > 0) {
        bool is_null = false;
        int64_t run = tfos__arrow_run(array, first, count, &is_null);
        TFOS__TRY(is_null ? visit_nulls(walk, level, run, err)
                          : visit_valid(walk, step, level, array, first, run, err));
        first += run;
        count -= run;
    }
    return TFOS_OK;
}

enum tfos_status tfos__walk_rows(struct tfos__walk *walk, const struct ArrowArray *batch,
                                 int64_t first, int64_t count, struct tfos_error *err)
{
    return visit(walk, 0, 0, batch, first, count, err);
}
