// SPDX-License-Identifier: Apache-2.0
// A round has up to three exchanges, so that their size does not grow with the number of nodes: the
// digests of all plans; unless all have the same one, the plan of one node, chosen at random;
// unless the others have none, in what theirs differ from it. All nodes decide by the same values.
#include "dataset/plan_agreement.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "dataset/dataset_step_agreement.h"

#define REASON_SIZE 800 // bytes that fit an error's message

static enum tfos_status exchange(const struct tfos__dataset_plan_agreement *agreement,
                                 const char *subject, json_t *value, json_t **out,
                                 struct tfos_error *err)
{
    char *name = tfos__format("dataset/%s/layout/%lld/%s", agreement->options->name,
                              (long long)agreement->round, subject);

    return tfos__dataset_exchange(agreement->options, name, value, out, err);
}

// ---- the first exchange: digests

/// What a node knows of its rows.
enum knowledge {
    KNOWS_NOTHING,
    KNOWS_TYPES, ///< but not all lengths
    KNOWS_ROWS,  ///< a plan that follows from its first rows
    KNOWS_ALL    ///< a plan that follows from the types
};

/// What the digests say.
struct poll {
    json_t *layout;        ///< owned; this node's plan; NULL: it has none
    int64_t lot;           ///< of this node: the one with the least proposes its plan
    bool is_proposer;      ///< it is this node
    bool differs;          ///< two nodes have different plans
    bool lacks;            ///< a node has none
    bool all_looked;       ///< no node waits for rows
    bool all_ended;        ///< no node has rows in this epoch
    bool all_over;         ///< no node has a further epoch
    bool is_any_full;      ///< a node reads no further
    bool follows_rows;     ///< a plan follows from first rows
    bool is_any_undecided; ///< a node knows types
};

static enum knowledge knowledge_of(const struct tfos__dataset_plan *plan)
{
    if (!plan)
        return KNOWS_NOTHING;
    if (tfos__dataset_plan_is_undecided(plan))
        return KNOWS_TYPES;
    return tfos__dataset_plan_follows_rows(plan) ? KNOWS_ROWS : KNOWS_ALL;
}

static enum tfos_status print_digest(const json_t *layout, char digest[TFOS__DIGEST_TEXT],
                                     struct tfos_error *err)
{
    char *text = tfos__json_text(layout);

    if (!text)
        return tfos__no_memory(err, "dataset", "an exchange");
    struct tfos_view view = {text, strlen(text)};
    enum tfos_status status = tfos__text_print_digest(view, "dataset", digest, err);
    tfos__free(text);
    return status;
}

static enum tfos_status send_digest(const struct tfos__dataset_plan_agreement *agreement,
                                    struct poll *poll, json_t **values, struct tfos_error *err)
{
    enum knowledge knowledge = knowledge_of(agreement->own);
    char digest[TFOS__DIGEST_TEXT];

    if (getrandom(&poll->lot, sizeof(poll->lot), 0) != (ssize_t)sizeof(poll->lot))
        return tfos__fail_errno(err, TFOS_IO, "dataset: cannot draw lots");
    poll->lot &= INT64_MAX;
    if (knowledge >= KNOWS_ROWS) {
        poll->layout = tfos__dataset_plan_write(agreement->own, err);
        if (!poll->layout)
            return TFOS_INVALID;
        TFOS__TRY(print_digest(poll->layout, digest, err));
    }
    json_t *value = json_pack("{s:i, s:b, s:i, s:i, s:I, s:s?}", "uneven",
                              (int)agreement->options->uneven, "over", (int)agreement->is_over,
                              "rows", (int)agreement->rows, "known", (int)knowledge, "lot",
                              (json_int_t)poll->lot, "digest", poll->layout ? digest : NULL);
    return exchange(agreement, "digests", value, values, err);
}

static void count_node(struct poll *poll, const json_t *value)
{
    int64_t rows = tfos__json_int_or(value, "rows", TFOS__ROWS_AWAITED);
    int64_t knowledge = tfos__json_int_or(value, "known", KNOWS_NOTHING);

    poll->all_looked = poll->all_looked && rows != TFOS__ROWS_AWAITED;
    poll->all_ended = poll->all_ended && rows == TFOS__ROWS_NONE;
    poll->all_over = poll->all_over && tfos__json_bool_or(value, "over", false);
    poll->is_any_full = poll->is_any_full || rows == TFOS__ROWS_FULL;
    poll->follows_rows = poll->follows_rows || knowledge == KNOWS_ROWS;
    poll->is_any_undecided = poll->is_any_undecided || knowledge == KNOWS_TYPES;
}

// Whether there is a common plan now: OK, or AGAIN and what comes before, or END.
static enum tfos_status conclude(const struct poll *poll, bool is_known,
                                 enum tfos__dataset_plan_agreement_next *next)
{
    *next = TFOS__PLAN_WAIT;
    if (is_known)
        return poll->all_looked || poll->is_any_full || !poll->follows_rows ? TFOS_OK : TFOS_AGAIN;
    if (!poll->all_ended)
        return TFOS_AGAIN;
    *next = poll->is_any_undecided ? TFOS__PLAN_LEAVE_OPEN : TFOS__PLAN_NEXT_EPOCH;
    return poll->all_over && !poll->is_any_undecided ? TFOS_END : TFOS_AGAIN;
}

static enum tfos_status count_poll(const struct tfos__dataset_plan_agreement *agreement,
                                   const json_t *values, struct poll *poll,
                                   enum tfos__dataset_plan_agreement_next *next,
                                   struct tfos_error *err)
{
    const char *first = NULL;
    int64_t least = INT64_MAX;

    poll->all_looked = poll->all_ended = poll->all_over = true;
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *value = json_array_get(values, i);
        const char *digest = tfos__json_string_or(value, "digest", NULL);
        int64_t lot = tfos__json_int_or(value, "lot", INT64_MAX);
        if (tfos__json_int_or(value, "uneven", -1) != (int64_t)agreement->options->uneven)
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
    poll->is_proposer = poll->layout && poll->lot == least;
    return conclude(poll, first != NULL, next);
}

// ---- the second: the proposed plan

static enum tfos_status receive_plan(const struct tfos__dataset_plan_agreement *agreement,
                                     const struct poll *poll, struct tfos__dataset_plan *plan,
                                     struct tfos_error *err)
{
    json_t *value = json_pack("{s:O?}", "plan", poll->is_proposer ? poll->layout : NULL);
    const json_t *layout = NULL;
    json_t *values = NULL;

    TFOS__TRY(exchange(agreement, "plan", value, &values, err));
    for (size_t i = 0; i < json_array_size(values) && !json_is_object(layout); i++)
        layout = json_object_get(json_array_get(values, i), "plan");
    enum tfos_status status = tfos__dataset_plan_read(layout, plan, err);
    json_decref(values);
    return status;
}

// ---- the third: differences

static bool has_equal_numbers(const int64_t *a, int a_count, const int64_t *b, int b_count)
{
    return a_count == b_count && memcmp(a, b, (size_t)a_count * sizeof(*a)) == 0;
}

// Python's integers are floats where another node has floats.
static bool has_equal_type(const struct tfos__dataset_feature *a,
                           const struct tfos__dataset_feature *b)
{
    return (a->dtype == b->dtype || (a->is_number && b->is_number)) &&
           a->is_vector == b->is_vector && a->level_count == b->level_count;
}

static bool has_equal_form(const struct tfos__dataset_feature *a,
                           const struct tfos__dataset_feature *b)
{
    return a->form == b->form &&
           has_equal_numbers(a->lengths, a->level_count, b->lengths, b->level_count) &&
           has_equal_numbers(a->shape, a->rank, b->shape, b->rank);
}

// "float32[3][any]".
static void describe(const struct tfos__dataset_feature *feature, char *text, size_t size)
{
    static const char *const forms[] = {[TFOS_FORM_AUTO] = "",
                                        [TFOS_FORM_DENSE] = "",
                                        [TFOS_FORM_RAGGED] = "ragged ",
                                        [TFOS_FORM_PADDED] = "padded ",
                                        [TFOS_FORM_SPARSE] = "sparse "};
    size_t used = (size_t)snprintf(text, size, "%s%s%s", forms[feature->form],
                                   feature->is_vector ? "vector of " : "",
                                   tfos__dataset_type_name(feature->dtype));

    for (int i = 0; i < feature->level_count && used < size; i++)
        used += (size_t)(feature->lengths[i] < 0 ? snprintf(text + used, size - used, "[any]")
                                                 : snprintf(text + used, size - used, "[%lld]",
                                                            (long long)feature->lengths[i]));
}

/// What must change in the proposed plan to fit that of this node.
struct changes {
    json_t *ragged, *floats; ///< owned; columns that become ragged, or floats
    char *reason;            ///< owned; why the plans do not fit; NULL: they do
    bool has_failed;         ///< no memory
};

static void refuse(struct changes *changes, char *reason)
{
    changes->reason = reason;
    changes->has_failed = !reason;
}

// Adds column `index` to ranges: [first, last, first, last, ...].
static void add_column(struct changes *changes, json_t *ranges, int64_t index)
{
    size_t size = json_array_size(ranges);
    bool is_next = size > 0 && json_integer_value(json_array_get(ranges, size - 1)) == index - 1;

    if (!is_next && json_array_append_new(ranges, json_integer(index)) != 0)
        changes->has_failed = true;
    if (is_next ? json_array_set_new(ranges, size - 1, json_integer(index)) != 0
                : json_array_append_new(ranges, json_integer(index)) != 0)
        changes->has_failed = true;
}

// Compares the two nodes' columns of one path, number `index` of the proposed plan.
static void compare_columns(struct changes *changes, int64_t index,
                            const struct tfos__dataset_feature *proposed,
                            const struct tfos__dataset_feature *own)
{
    bool has_form = has_equal_form(proposed, own);

    if (!has_equal_type(proposed, own) ||
        (!has_form && !(proposed->is_flexible && own->is_flexible))) {
        char first[200], second[200];
        describe(proposed, first, sizeof(first));
        describe(own, second, sizeof(second));
        refuse(changes, tfos__format("column %.300s is %s on one and %s on another", proposed->name,
                                     first, second));
        return;
    }
    if (!has_form)
        add_column(changes, changes->ragged, index);
    if (proposed->dtype != own->dtype)
        add_column(changes, changes->floats, index);
}

// Refuses a plan that has a column which the other has not.
static void find_absent(struct changes *changes, const struct tfos__dataset_plan *plan,
                        const struct tfos__dataset_plan *other)
{
    for (int64_t i = 0; i < plan->feature_count && !changes->reason && !changes->has_failed; i++) {
        const struct tfos__dataset_feature *feature = &plan->features[i];
        if (tfos__dataset_plan_find(other, feature->path, feature->depth) < 0)
            refuse(changes,
                   tfos__format("one has a column %.300s, another has none", feature->name));
    }
}

// NULL: no memory.
static json_t *compare(const struct tfos__dataset_plan *plan, const struct tfos__dataset_plan *own)
{
    struct changes changes = {.ragged = json_array(), .floats = json_array()};
    json_t *value = NULL;

    changes.has_failed = !changes.ragged || !changes.floats;
    find_absent(&changes, plan, own);
    find_absent(&changes, own, plan);
    if (plan->structure != own->structure && !changes.reason && !changes.has_failed)
        refuse(&changes, tfos__format("rows are of different kinds: tuples, dictionaries, values"));
    for (int64_t i = 0; i < plan->feature_count && !changes.reason && !changes.has_failed; i++) {
        const struct tfos__dataset_feature *proposed = &plan->features[i];
        int64_t number = tfos__dataset_plan_find(own, proposed->path, proposed->depth);
        compare_columns(&changes, i, proposed, &own->features[number]);
    }
    if (!changes.has_failed)
        value = json_pack("{s:O, s:O, s:s?}", "ragged", changes.ragged, "floats", changes.floats,
                          "refused", changes.reason);
    json_decref(changes.ragged);
    json_decref(changes.floats);
    tfos__free(changes.reason);
    return value;
}

static void make_float(struct tfos__dataset_feature *feature)
{
    if (feature->is_number)
        feature->dtype = TFOS_DTYPE_FLOAT64;
}

// Changes the columns in the ranges.
static void change(struct tfos__dataset_plan *plan, const json_t *ranges,
                   void (*make)(struct tfos__dataset_feature *feature))
{
    for (size_t i = 0; i + 1 < json_array_size(ranges); i += 2) {
        int64_t first = json_integer_value(json_array_get(ranges, i));
        int64_t last = json_integer_value(json_array_get(ranges, i + 1));
        for (int64_t number = first < 0 ? 0 : first; number <= last && number < plan->feature_count;
             number++)
            make(&plan->features[number]);
    }
}

static enum tfos_status settle_differences(const struct tfos__dataset_plan_agreement *agreement,
                                           const struct poll *poll, struct tfos__dataset_plan *plan,
                                           struct tfos_error *err)
{
    json_t *value = poll->layout ? compare(plan, agreement->own)
                                 : json_pack("{s:[], s:n}", "ragged", "refused");
    json_t *values = NULL;
    enum tfos_status status = TFOS_OK;

    TFOS__TRY(exchange(agreement, "differences", value, &values, err));
    for (size_t i = 0; i < json_array_size(values) && status == TFOS_OK; i++) {
        const json_t *changes = json_array_get(values, i);
        const char *reason = tfos__json_string_or(changes, "refused", NULL);
        if (reason)
            status = tfos__fail(err, TFOS_INVALID,
                                "dataset: nodes were fed rows of different structure: %.*s",
                                REASON_SIZE, reason);
        change(plan, json_object_get(changes, "ragged"), tfos__dataset_feature_make_ragged);
        change(plan, json_object_get(changes, "floats"), make_float);
    }
    json_decref(values);
    return status;
}

static enum tfos_status find_plan(const struct tfos__dataset_plan_agreement *agreement,
                                  const struct poll *poll, struct tfos__dataset_plan *plan,
                                  struct tfos_error *err)
{
    if (!poll->differs && !poll->lacks)
        return tfos__dataset_plan_read(poll->layout, plan, err);
    TFOS__TRY(receive_plan(agreement, poll, plan, err));
    enum tfos_status status =
        poll->differs ? settle_differences(agreement, poll, plan, err) : TFOS_OK;
    if (status != TFOS_OK)
        tfos__dataset_plan_clear(plan);
    return status;
}

enum tfos_status tfos__dataset_plan_agreement_reach(
    const struct tfos__dataset_plan_agreement *agreement, struct tfos__dataset_plan *plan,
    enum tfos__dataset_plan_agreement_next *next, struct tfos_error *err)
{
    struct poll poll = {0};
    json_t *values = NULL;
    enum tfos_status status = send_digest(agreement, &poll, &values, err);

    if (status == TFOS_OK)
        status = count_poll(agreement, values, &poll, next, err);
    if (status == TFOS_OK)
        status = find_plan(agreement, &poll, plan, err);
    json_decref(values);
    json_decref(poll.layout);
    return status;
}
