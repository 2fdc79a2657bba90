// SPDX-License-Identifier: Apache-2.0
// Features are made in the order of the schema and then put into that of the selection. A feature
// is found again by its path, whatever the order in another schema.
#include "dataset/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/shape.h"

#define NAMES_SIZE 640 ///< bytes of the names of columns in a message

/// Names of columns, as far as they fit.
struct names {
    char text[NAMES_SIZE];
    size_t size;
};

struct making {
    struct tfos__plan *plan;
    const struct tfos__wishes *wishes;
    bool *is_selection_known; ///< owned: for each selected name, whether it leads to a column
    bool *is_wish_known;      ///< owned
    struct names there;       ///< of all columns
};

static void add_name(struct names *names, const char *name)
{
    size_t room = sizeof names->text - names->size;

    if (room == 0)
        return;
    int size = snprintf(names->text + names->size, room, "%s%s", names->size > 0 ? ", " : "", name);
    if ((size_t)size < room) {
        names->size += (size_t)size;
        return;
    }
    memcpy(names->text + sizeof names->text - sizeof "...", "...", sizeof "...");
    names->size = sizeof names->text;
}

// Path, names and joined name in one block.
static const char **copy_path(const char *const *path, int depth, const char **name)
{
    size_t pointers_size = (size_t)depth * sizeof(char *), size = 0;

    for (int i = 0; i < depth; i++)
        size += strlen(path[i]) + 1;
    const char **copy = tfos__alloc(pointers_size + 2 * size + 1, 1);
    if (!copy)
        return NULL;
    char *text = (char *)(copy + depth);
    char *joined = text + size;
    *name = joined;
    for (int i = 0; i < depth; i++) {
        size_t length = strlen(path[i]) + 1;
        memcpy(text, path[i], length);
        copy[i] = text;
        text += length;
        if (i > 0)
            joined[-1] = '.';
        memcpy(joined, path[i], length);
        joined += length;
    }
    return copy;
}

struct tfos__feature *tfos__plan_add(struct tfos__plan *plan, const char *const *path, int depth)
{
    const char *name = NULL;

    // Room doubles whenever the count is a power of two.
    if ((plan->feature_count & (plan->feature_count - 1)) == 0) {
        size_t capacity = plan->feature_count > 0 ? 2 * (size_t)plan->feature_count : 1;
        struct tfos__feature *features =
            tfos__realloc(plan->features, capacity, sizeof *plan->features);
        if (!features)
            return NULL;
        plan->features = features;
    }
    const char **copy = copy_path(path, depth, &name);
    if (!copy)
        return NULL;
    struct tfos__feature *feature = &plan->features[plan->feature_count++];
    *feature = (struct tfos__feature){
        .path = copy, .name = name, .depth = depth, .number = plan->feature_count};
    return feature;
}

// Whether `selected` is the path or, as "person" of "person.age", leads to it.
static bool leads_to(const char *selected, const char *name)
{
    size_t size = strlen(selected);

    return strncmp(selected, name, size) == 0 && (name[size] == '\0' || name[size] == '.');
}

// Notes the order of a feature. False when it is not selected.
static bool select_feature(struct making *making, struct tfos__feature *feature)
{
    const struct tfos__wishes *wishes = making->wishes;

    for (int64_t i = 0; i < wishes->selection_count; i++)
        if (leads_to(wishes->selection[i], feature->name)) {
            making->is_selection_known[i] = true;
            feature->order = i;
            return true;
        }
    return wishes->selection_count == 0;
}

static int64_t find_wish(const struct tfos__wishes *wishes, const char *name)
{
    for (int64_t i = 0; i < wishes->column_count; i++)
        if (strcmp(wishes->columns[i].name, name) == 0)
            return i;
    return -1;
}

static enum tfos_status take_leaf(void *context, const struct tfos__leaf *leaf,
                                  struct tfos_error *err)
{
    struct making *making = context;
    struct tfos__feature *feature = tfos__plan_add(making->plan, leaf->names, leaf->depth);

    if (!feature)
        return tfos__no_memory(err, "dataset", "a column");
    add_name(&making->there, feature->name);
    if (!select_feature(making, feature)) {
        tfos__free(feature->path);
        making->plan->feature_count--;
        return TFOS_OK;
    }
    if (leaf->problem)
        return tfos__fail(err, TFOS_INVALID, "dataset: column %s has no tensor form: %s",
                          feature->name, leaf->problem);
    if (leaf->element.part == TFOS__PART_NOTHING)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: column %s has no type yet: no row of the first batch has a "
                          "value in it",
                          feature->name);
    int64_t wish = find_wish(making->wishes, feature->name);
    if (wish >= 0)
        making->is_wish_known[wish] = true;
    return tfos__feature_shape(feature, leaf, wish < 0 ? NULL : &making->wishes->columns[wish],
                               err);
}

static enum tfos_status refuse_wish(const struct tfos__plan *plan, const char *missing,
                                    struct tfos_error *err)
{
    struct names given = {.size = 0};

    for (int64_t i = 0; i < plan->feature_count; i++)
        add_name(&given, plan->features[i].name);
    return tfos__fail(err, TFOS_INVALID,
                      "dataset: there is no column %s among those that are given out: %s", missing,
                      given.text);
}

static enum tfos_status check_wishes(const struct making *making, struct tfos_error *err)
{
    const struct tfos__wishes *wishes = making->wishes;

    for (int64_t i = 0; i < wishes->selection_count; i++)
        if (!making->is_selection_known[i])
            return tfos__fail(err, TFOS_INVALID, "dataset: there is no column %s: the rows have %s",
                              wishes->selection[i], making->there.text);
    for (int64_t i = 0; i < wishes->column_count; i++)
        if (!making->is_wish_known[i])
            return refuse_wish(making->plan, wishes->columns[i].name, err);
    if (making->plan->feature_count == 0)
        return tfos__fail(err, TFOS_INVALID, "dataset: the rows have no columns");
    return TFOS_OK;
}

static int compare_orders(const void *a, const void *b)
{
    const struct tfos__feature *left = a, *right = b;

    if (left->order != right->order)
        return left->order < right->order ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

enum tfos_status tfos__plan_init(struct tfos__plan *plan, const struct ArrowSchema *schema,
                                 const struct tfos__wishes *wishes, struct tfos_error *err)
{
    struct making making = {
        .plan = plan,
        .wishes = wishes,
        .is_selection_known = tfos__alloc((size_t)wishes->selection_count, sizeof(bool)),
        .is_wish_known = tfos__alloc((size_t)wishes->column_count, sizeof(bool)),
    };
    enum tfos_status status = TFOS_OK;

    *plan = (struct tfos__plan){.is_selective = wishes->selection_count > 0};
    if (!making.is_selection_known || !making.is_wish_known)
        status = tfos__no_memory(err, "dataset", "the columns");
    if (status == TFOS_OK)
        status = tfos__leaf_scan(schema, &plan->structure, take_leaf, &making, err);
    if (status == TFOS_OK)
        status = check_wishes(&making, err);
    if (status == TFOS_OK && plan->is_selective)
        qsort(plan->features, (size_t)plan->feature_count, sizeof *plan->features, compare_orders);
    tfos__free(making.is_selection_known);
    tfos__free(making.is_wish_known);
    if (status != TFOS_OK)
        tfos__plan_clear(plan);
    return status;
}

bool tfos__plan_is_undecided(const struct tfos__plan *plan)
{
    for (int64_t i = 0; i < plan->feature_count; i++)
        if (plan->features[i].is_undecided)
            return true;
    return false;
}

bool tfos__plan_follows_rows(const struct tfos__plan *plan)
{
    for (int64_t i = 0; i < plan->feature_count; i++)
        if (plan->features[i].is_measured || plan->features[i].is_flexible)
            return true;
    return false;
}

void tfos__plan_leave_open(struct tfos__plan *plan)
{
    for (int64_t i = 0; i < plan->feature_count; i++) {
        struct tfos__feature *feature = &plan->features[i];
        if (feature->is_undecided && feature->form == TFOS_FORM_AUTO)
            feature->form = TFOS_FORM_DENSE;
        feature->is_undecided = false;
    }
}

enum tfos_status tfos__plan_read_fillers(struct tfos__plan *plan, const struct tfos__wishes *wishes,
                                         struct tfos_error *err)
{
    for (int64_t i = 0; i < plan->feature_count; i++) {
        struct tfos__feature *feature = &plan->features[i];
        int64_t wish = find_wish(wishes, feature->name);
        const char *text = wish >= 0 ? wishes->columns[wish].null_value : NULL;
        text = text ? text : wishes->null_value;
        if (!text)
            continue;
        TFOS__TRY(tfos__filler_init(&feature->filler, feature->dtype, text, feature->name, err));
        feature->fills_nulls = true;
    }
    return TFOS_OK;
}

static int compare_features(const void *a, const void *b)
{
    const struct tfos__feature *const *left = a;
    const struct tfos__feature *const *right = b;

    return tfos__path_compare((*left)->path, (*left)->depth, (*right)->path, (*right)->depth);
}

enum tfos_status tfos__plan_sort(struct tfos__plan *plan, struct tfos_error *err)
{
    size_t count = (size_t)plan->feature_count;

    plan->sorted = tfos__alloc(count, sizeof *plan->sorted);
    if (!plan->sorted)
        return tfos__no_memory(err, "dataset", "the columns");
    for (size_t i = 0; i < count; i++)
        plan->sorted[i] = &plan->features[i];
    qsort(plan->sorted, count, sizeof *plan->sorted, compare_features);
    for (size_t i = 1; i < count; i++) {
        if (compare_features(&plan->sorted[i - 1], &plan->sorted[i]) == 0)
            return tfos__fail(err, TFOS_INVALID, "dataset: two columns have the name %s",
                              plan->sorted[i]->name);
    }
    return TFOS_OK;
}

int64_t tfos__plan_find(const struct tfos__plan *plan, const char *const *path, int depth)
{
    int64_t low = 0, high = plan->feature_count;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        const struct tfos__feature *feature = plan->sorted[middle];
        int order = tfos__path_compare(path, depth, feature->path, feature->depth);
        if (order == 0)
            return feature - plan->features;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

void tfos__plan_clear(struct tfos__plan *plan)
{
    for (int64_t i = 0; i < plan->feature_count; i++) {
        tfos__free(plan->features[i].path);
        tfos__filler_clear(&plan->features[i].filler);
    }
    tfos__free(plan->features);
    tfos__free(plan->sorted);
    *plan = (struct tfos__plan){0};
}
