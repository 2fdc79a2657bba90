// SPDX-License-Identifier: Apache-2.0
// Three exchanges a round at most, so that what is told does not grow with the nodes: digests of
// all layouts, and how it stands with rows; unless all have the same, the layout of one; unless
// only nodes without rows had none, in what the others' differ from it. Every node follows from the
// same values in the same way.
#include "dataset/accord.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "dataset/plan_text.h"

#define REASON_SIZE 800 // bytes: an error has room for it

// Gives `value`, taken over, and takes those of all: an array of objects.
static enum tfos_status exchange(const struct tfos__accord *accord, const char *subject,
                                 json_t *value, json_t **out, struct tfos_error *err)
{
    const struct tfos_dataset_options *options = accord->options;
    char *text = value ? tfos__json_text(value) : NULL;
    char *name =
        tfos__format("dataset/%s/layout/%lld/%s", options->name, (long long)accord->round, subject);
    char *values = NULL;
    json_t *array = NULL;

    json_decref(value);
    enum tfos_status status = text && name
                                  ? options->agree(options->context, name, text, &values, err)
                                  : tfos__no_memory(err, "dataset", "an exchange");
    if (status == TFOS_OK) {
        array = json_loads(values, 0, NULL);
        if (json_array_size(array) == 0)
            status =
                tfos__fail(err, TFOS_INVALID,
                           "dataset: the exchange of plans gave no list of values: %.200s", values);
    }
    tfos__free(values);
    tfos__free(name);
    tfos__free(text);
    if (status != TFOS_OK) {
        json_decref(array);
        return status;
    }
    *out = array;
    return TFOS_OK;
}

// ---- the first exchange: digests

/// What a node knows of its rows.
enum knowledge {
    KNOWS_NOTHING,
    KNOWS_TYPES, ///< but not all lengths
    KNOWS_ROWS,  ///< all that first rows say, so that those of another node may say otherwise
    KNOWS_ALL
};

struct poll {
    enum knowledge knowledge; ///< of this node
    json_t *layout;           ///< owned; this node's, NULL: it has not decided on one
    int64_t lot;  ///< of this node: of those that have a layout the one with the least tells it
    bool tells;   ///< it is this node
    bool differs; ///< two nodes have different layouts
    bool lacks;   ///< a node has none

    bool all_looked;    ///< each has rows, or its epoch has ended
    bool all_ended;     ///< no node has rows in this epoch
    bool all_over;      ///< there will be no further one
    bool is_any_full;   ///< a node reads no further
    bool follows_rows;  ///< a layout was decided by first rows
    bool is_any_opened; ///< a node knows types
};

static enum knowledge knowledge_of(const struct tfos__plan *plan)
{
    if (!plan)
        return KNOWS_NOTHING;
    if (tfos__plan_is_undecided(plan))
        return KNOWS_TYPES;
    return tfos__plan_follows_rows(plan) ? KNOWS_ROWS : KNOWS_ALL;
}

static enum tfos_status tell_digest(const struct tfos__accord *accord, struct poll *poll,
                                    json_t **values, struct tfos_error *err)
{
    char digest[TFOS__PLAN_DIGEST_SIZE];
    uint64_t lot = 0;

    if (getrandom(&lot, sizeof lot, 0) != (ssize_t)sizeof lot)
        return tfos__fail_errno(err, TFOS_IO, "dataset: cannot draw lots");
    poll->lot = (int64_t)(lot >> 1);
    if (poll->layout)
        TFOS__TRY(tfos__plan_digest(poll->layout, digest, err));
    json_t *value =
        json_pack("{s:i, s:b, s:i, s:i, s:I, s:s?}", "uneven", (int)accord->options->uneven, "over",
                  (int)accord->is_over, "rows", (int)accord->arrival, "known", (int)poll->knowledge,
                  "lot", (json_int_t)poll->lot, "digest", poll->layout ? digest : NULL);
    return exchange(accord, "digests", value, values, err);
}

static void count_node(struct poll *poll, const json_t *value)
{
    int64_t arrival = tfos__json_int_or(value, "rows", TFOS__ARRIVAL_AWAITED);
    int64_t knowledge = tfos__json_int_or(value, "known", KNOWS_NOTHING);

    poll->all_looked = poll->all_looked && arrival != TFOS__ARRIVAL_AWAITED;
    poll->all_ended = poll->all_ended && arrival == TFOS__ARRIVAL_NONE;
    poll->all_over = poll->all_over && tfos__json_bool_or(value, "over", false);
    poll->is_any_full = poll->is_any_full || arrival == TFOS__ARRIVAL_FULL;
    poll->follows_rows = poll->follows_rows || knowledge == KNOWS_ROWS;
    poll->is_any_opened = poll->is_any_opened || knowledge == KNOWS_TYPES;
}

// Whether there is to be a common layout now: OK, or AGAIN and what comes before, or END.
static enum tfos_status conclude(const struct poll *poll, bool is_known,
                                 enum tfos__accord_next *next)
{
    *next = TFOS__ACCORD_WAIT;
    if (is_known)
        return poll->all_looked || poll->is_any_full || !poll->follows_rows ? TFOS_OK : TFOS_AGAIN;
    if (!poll->all_ended)
        return TFOS_AGAIN;
    *next = poll->is_any_opened ? TFOS__ACCORD_OPEN : TFOS__ACCORD_EPOCH;
    return poll->all_over && !poll->is_any_opened ? TFOS_END : TFOS_AGAIN;
}

static enum tfos_status count_poll(const struct tfos__accord *accord, const json_t *values,
                                   struct poll *poll, enum tfos__accord_next *next,
                                   struct tfos_error *err)
{
    const char *first = NULL;
    size_t index = 0;
    json_t *value = NULL;
    int64_t least = INT64_MAX;

    poll->all_looked = poll->all_ended = poll->all_over = true;
    json_array_foreach(values, index, value)
    {
        const char *digest = tfos__json_string_or(value, "digest", NULL);
        int64_t lot = tfos__json_int_or(value, "lot", INT64_MAX);
        if (tfos__json_int_or(value, "uneven", -1) != (int64_t)accord->options->uneven)
            return tfos__fail(err, TFOS_INVALID,
                              "dataset: nodes do not agree on what to do with uneven rows: give "
                              "all the same `uneven`");
        count_node(poll, value);
        poll->lacks = poll->lacks || !digest;
        if (!digest)
            continue;
        first = first ? first : digest;
        poll->differs = poll->differs || strcmp(first, digest) != 0;
        least = lot < least ? lot : least;
    }
    poll->tells = poll->layout && poll->lot == least;
    return conclude(poll, first != NULL, next);
}

// ---- the second: a layout

static enum tfos_status hear_layout(const struct tfos__accord *accord, const struct poll *poll,
                                    struct tfos__plan *plan, struct tfos_error *err)
{
    json_t *value = json_pack("{s:O?}", "plan", poll->tells ? poll->layout : NULL);
    const json_t *layout = NULL;
    json_t *values = NULL;

    TFOS__TRY(exchange(accord, "plan", value, &values, err));
    for (size_t i = 0; i < json_array_size(values) && !json_is_object(layout); i++)
        layout = json_object_get(json_array_get(values, i), "plan");
    enum tfos_status status = tfos__plan_read(layout, plan, err);
    json_decref(values);
    return status;
}

// ---- the third: differences

static bool has_equal_numbers(const int64_t *a, int a_count, const int64_t *b, int b_count)
{
    return a_count == b_count && memcmp(a, b, (size_t)a_count * sizeof *a) == 0;
}

// Python's integers are floats where another node has such.
static bool has_equal_type(const struct tfos__feature *a, const struct tfos__feature *b)
{
    return (a->dtype == b->dtype || (a->is_number && b->is_number)) &&
           a->is_vector == b->is_vector && a->level_count == b->level_count;
}

static bool has_equal_form(const struct tfos__feature *a, const struct tfos__feature *b)
{
    return a->form == b->form &&
           has_equal_numbers(a->lengths, a->level_count, b->lengths, b->level_count) &&
           has_equal_numbers(a->shape, a->rank, b->shape, b->rank);
}

// "float32[3][any]".
static void describe(const struct tfos__feature *feature, char *text, size_t size)
{
    static const char *const forms[] = {[TFOS_FORM_AUTO] = "",
                                        [TFOS_FORM_DENSE] = "",
                                        [TFOS_FORM_RAGGED] = "ragged ",
                                        [TFOS_FORM_PADDED] = "padded ",
                                        [TFOS_FORM_SPARSE] = "sparse "};
    size_t used =
        (size_t)snprintf(text, size, "%s%s%s", forms[feature->form],
                         feature->is_vector ? "vector of " : "", tfos__dtype_name(feature->dtype));

    for (int i = 0; i < feature->level_count && used < size; i++)
        used += (size_t)(feature->lengths[i] < 0 ? snprintf(text + used, size - used, "[any]")
                                                 : snprintf(text + used, size - used, "[%lld]",
                                                            (long long)feature->lengths[i]));
}

static char *tell_difference(const struct tfos__feature *told, const struct tfos__feature *own)
{
    char first[200], second[200];

    describe(told, first, sizeof first);
    describe(own, second, sizeof second);
    return tfos__format("column %.300s is %s on one and %s on another", told->name, first, second);
}

static char *tell_absence(const struct tfos__feature *feature)
{
    return tfos__format("one has a column %.300s, another has none", feature->name);
}

// A column that only one of two plans has.
static const struct tfos__feature *find_absent(const struct tfos__plan *plan,
                                               const struct tfos__plan *other)
{
    for (int64_t i = 0; i < plan->feature_count; i++) {
        const struct tfos__feature *feature = &plan->features[i];
        if (tfos__plan_find(other, feature->path, feature->depth) < 0)
            return feature;
    }
    return NULL;
}

// Notes that column `index` is to become another: [first, last, first, last, ...].
static int note_column(json_t *ranges, int64_t index)
{
    size_t size = json_array_size(ranges);

    if (size > 0 && json_integer_value(json_array_get(ranges, size - 1)) == index - 1)
        return json_array_set_new(ranges, size - 1, json_integer(index));
    return json_array_append_new(ranges, json_integer(index)) != 0
               ? -1
               : json_array_append_new(ranges, json_integer(index));
}

/// What must change in a plan for that of another node.
struct changes {
    json_t *ragged, *floats; ///< columns that become such; owned
    char *reason;            ///< why the plans do not go together; NULL: they do; owned
    bool is_noted;           ///< else there was no memory
};

// Compares the two nodes' columns of one path, number `index` of the plan.
static void compare_columns(struct changes *changes, int64_t index,
                            const struct tfos__feature *told, const struct tfos__feature *own)
{
    bool has_form = has_equal_form(told, own);

    if (!has_equal_type(told, own) || (!has_form && !(told->is_flexible && own->is_flexible))) {
        changes->reason = tell_difference(told, own);
        changes->is_noted = changes->reason != NULL;
        return;
    }
    if (!has_form)
        changes->is_noted = note_column(changes->ragged, index) == 0;
    if (told->dtype != own->dtype)
        changes->is_noted = note_column(changes->floats, index) == 0 && changes->is_noted;
}

// What must change in `plan` for `own` to fit. NULL: no memory.
static json_t *compare(const struct tfos__plan *plan, const struct tfos__plan *own)
{
    struct changes changes = {.ragged = json_array(), .floats = json_array()};
    const struct tfos__feature *absent = find_absent(plan, own);
    json_t *value = NULL;

    changes.is_noted = changes.ragged && changes.floats;
    absent = absent ? absent : find_absent(own, plan);
    if (plan->structure != own->structure || absent) {
        changes.reason =
            absent ? tell_absence(absent)
                   : tfos__format("rows are of different kinds: tuples, dictionaries, values");
        changes.is_noted = changes.reason != NULL;
    }
    for (int64_t i = 0; i < plan->feature_count && !changes.reason && changes.is_noted; i++) {
        const struct tfos__feature *told = &plan->features[i];
        compare_columns(&changes, i, told,
                        &own->features[tfos__plan_find(own, told->path, told->depth)]);
    }
    if (changes.is_noted)
        value = json_pack("{s:O, s:O, s:s?}", "ragged", changes.ragged, "floats", changes.floats,
                          "refused", changes.reason);
    json_decref(changes.ragged);
    json_decref(changes.floats);
    tfos__free(changes.reason);
    return value;
}

static void make_float(struct tfos__feature *feature)
{
    if (feature->is_number)
        feature->dtype = TFOS_DTYPE_FLOAT64;
}

// Changes the columns that the ranges have.
static void change(struct tfos__plan *plan, const json_t *ranges,
                   void (*make)(struct tfos__feature *feature))
{
    for (size_t i = 0; i + 1 < json_array_size(ranges); i += 2) {
        int64_t first = json_integer_value(json_array_get(ranges, i));
        int64_t last = json_integer_value(json_array_get(ranges, i + 1));
        for (int64_t number = first < 0 ? 0 : first; number <= last && number < plan->feature_count;
             number++)
            make(&plan->features[number]);
    }
}

static enum tfos_status settle_differences(const struct tfos__accord *accord,
                                           const struct poll *poll, struct tfos__plan *plan,
                                           struct tfos_error *err)
{
    json_t *value =
        poll->layout ? compare(plan, accord->own) : json_pack("{s:[], s:n}", "ragged", "refused");
    json_t *values = NULL;
    enum tfos_status status = TFOS_OK;

    TFOS__TRY(exchange(accord, "differences", value, &values, err));
    for (size_t i = 0; i < json_array_size(values) && status == TFOS_OK; i++) {
        const json_t *told = json_array_get(values, i);
        const char *reason = tfos__json_string_or(told, "refused", NULL);
        if (reason)
            status = tfos__fail(err, TFOS_INVALID,
                                "dataset: nodes were fed rows of different structure: %.*s",
                                REASON_SIZE, reason);
        change(plan, json_object_get(told, "ragged"), tfos__feature_make_ragged);
        change(plan, json_object_get(told, "floats"), make_float);
    }
    json_decref(values);
    return status;
}

static enum tfos_status find_plan(const struct tfos__accord *accord, const struct poll *poll,
                                  struct tfos__plan *plan, struct tfos_error *err)
{
    if (!poll->differs && !poll->lacks)
        return tfos__plan_read(poll->layout, plan, err);
    TFOS__TRY(hear_layout(accord, poll, plan, err));
    enum tfos_status status = poll->differs ? settle_differences(accord, poll, plan, err) : TFOS_OK;
    if (status != TFOS_OK)
        tfos__plan_clear(plan);
    return status;
}

enum tfos_status tfos__accord_reach(const struct tfos__accord *accord, struct tfos__plan *plan,
                                    enum tfos__accord_next *next, struct tfos_error *err)
{
    struct poll poll = {.knowledge = knowledge_of(accord->own)};
    json_t *values = NULL;
    enum tfos_status status = TFOS_OK;

    if (poll.knowledge >= KNOWS_ROWS) {
        poll.layout = tfos__plan_write(accord->own, err);
        if (!poll.layout)
            return TFOS_INVALID;
    }
    status = tell_digest(accord, &poll, &values, err);
    if (status == TFOS_OK) {
        status = count_poll(accord, values, &poll, next, err);
        json_decref(values);
    }
    if (status == TFOS_OK)
        status = find_plan(accord, &poll, plan, err);
    json_decref(poll.layout);
    return status;
}
