// SPDX-License-Identifier: Apache-2.0
// Features that are no columns are kept in the index too, so that a name is folded once and found
// again like a column's. Names beyond the limits are folded each time.
#include "record/column_names.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"

#define OTHERS_LIMIT 4096     // names
#define OTHER_SIZE_LIMIT 1024 // bytes of a name

static enum tfos_status fold(struct tfos__column_names *names, struct tfos_view name,
                             struct tfos_view *folded, struct tfos_error *err)
{
    names->scratch.begin = names->scratch.end = 0;
    TFOS__TRY(tfos__text_fold_case(name, &names->scratch, err));
    *folded = (struct tfos_view){names->scratch.data, names->scratch.end};
    return TFOS_OK;
}

// Adds a copy of a name, which the index then holds.
static enum tfos_status add_copy(struct tfos__name_index *index, struct tfos_view name,
                                 struct tfos_error *err)
{
    char *copy = tfos__alloc(name.size + 1, 1);
    if (!copy)
        return tfos__no_memory(err, "record", "names");
    if (name.size > 0)
        memcpy(copy, name.data, name.size);
    enum tfos_status status = tfos__name_index_add(index, (struct tfos_view){copy, name.size}, err);
    if (status < 0)
        tfos__free(copy);
    return status;
}

enum tfos_status tfos__column_names_init(struct tfos__column_names *names,
                                         const struct tfos__example_plan *plan, bool ignore_case,
                                         struct tfos_error *err)
{
    names->plan = plan;
    for (size_t i = 0; i < plan->field_count; i++) {
        const struct tfos__example_field *field = &plan->fields[i];
        struct tfos_view name = {field->name, field->name_size}, folded;
        TFOS__TRY(tfos__name_index_add(&names->names, name, err));
        TFOS__TRY(fold(names, name, &folded, err));
        uint32_t same = tfos__name_index_find(&names->folded, folded);
        if (same != TFOS__NAME_UNKNOWN && ignore_case)
            return tfos__fail(err, TFOS_INVALID,
                              "record: the columns %s and %s differ in letter case only",
                              plan->fields[same].name, field->name);
        TFOS__TRY(add_copy(&names->folded, folded, err));
    }
    return TFOS_OK;
}

void tfos__column_names_restart(struct tfos__column_names *names)
{
    tfos__name_index_restart(&names->names);
}

// Room to say what other feature `number` looks like.
static enum tfos_status reserve_other(struct tfos__column_names *names, uint32_t number,
                                      struct tfos_error *err)
{
    if (number < names->lookalike_capacity)
        return TFOS_OK;
    uint32_t capacity = number > 0 ? 2 * number : 16;
    uint32_t *grown = tfos__realloc(names->lookalikes, capacity, sizeof *grown);
    if (!grown)
        return tfos__no_memory(err, "record", "names");
    names->lookalikes = grown;
    names->lookalike_capacity = capacity;
    return TFOS_OK;
}

// The column that a feature which is none, and is not known yet, looks like.
static enum tfos_status find_lookalike(struct tfos__column_names *names, struct tfos_view name,
                                       uint32_t *column, struct tfos_error *err)
{
    uint32_t number = names->names.count - (uint32_t)names->plan->field_count;
    struct tfos_view folded;
    TFOS__TRY(fold(names, name, &folded, err));
    *column = tfos__name_index_find(&names->folded, folded);
    if (*column != TFOS__NAME_UNKNOWN && names->plan->fields[*column].is_name_exact)
        *column = TFOS__NAME_UNKNOWN;
    if (number >= OTHERS_LIMIT || name.size > OTHER_SIZE_LIMIT)
        return TFOS_OK;
    TFOS__TRY(reserve_other(names, number, err));
    names->lookalikes[number] = *column;
    return add_copy(&names->names, name, err);
}

enum tfos_status tfos__column_names_find_other(struct tfos__column_names *names,
                                               struct tfos_view name, uint32_t number,
                                               uint32_t *column, struct tfos_error *err)
{
    if (number == TFOS__NAME_UNKNOWN)
        return find_lookalike(names, name, column, err);
    *column = names->lookalikes[number - names->plan->field_count];
    return TFOS_OK;
}

static void free_names(const struct tfos__name_index *index, size_t first)
{
    for (size_t i = first; i < index->count; i++)
        tfos__free((void *)(uintptr_t)index->names[i].data);
}

void tfos__column_names_clear(struct tfos__column_names *names)
{
    if (names->plan)
        free_names(&names->names, names->plan->field_count);
    free_names(&names->folded, 0);
    tfos__name_index_clear(&names->names);
    tfos__name_index_clear(&names->folded);
    tfos__free(names->lookalikes);
    tfos__buffer_clear(&names->scratch);
}
