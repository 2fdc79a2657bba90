// SPDX-License-Identifier: Apache-2.0
// Rounds of agreement. A round lasts from the first value to the last, or to the first member that
// cannot give one.
#include "cluster/agreement.h"

#include <string.h>

#include "base/memory.h"
#include "cluster/failure_text.h"
#include "cluster/session.h"

#define NODES_SIZE 2048 // bytes of a list of nodes: an error has room for it and more

struct tfos__cluster_round {
    struct tfos__cluster_round *next;
    char *name;      ///< owned
    json_t **values; ///< owned, by executor id; NULL where none was given
    int given_count;
    size_t size; ///< of their text, in bytes
};

static void free_round(struct tfos__cluster_round *round, int node_count)
{
    if (!round)
        return;
    for (int id = 0; round->values && id < node_count; id++)
        json_decref(round->values[id]);
    tfos__free(round->values);
    tfos__free(round->name);
    tfos__free(round);
}

static void remove_round(struct tfos__cluster_agreement *agreement,
                         struct tfos__cluster_round *round)
{
    struct tfos__cluster_round **link = &agreement->rounds;
    while (*link != round)
        link = &(*link)->next;
    *link = round->next;
    agreement->count--;
    free_round(round, agreement->table->count);
}

static struct tfos__cluster_round *find_round(const struct tfos__cluster_agreement *agreement,
                                              const char *name)
{
    for (struct tfos__cluster_round *round = agreement->rounds; round; round = round->next)
        if (!strcmp(round->name, name))
            return round;
    return NULL;
}

static struct tfos__cluster_round *add_round(struct tfos__cluster_agreement *agreement,
                                             const char *name)
{
    struct tfos__cluster_round *round = tfos__alloc(1, sizeof(*round));
    if (!round)
        return NULL;
    round->name = tfos__strdup(name);
    round->values = tfos__alloc((size_t)agreement->table->count, sizeof(*round->values));
    if (!round->name || !round->values) {
        free_round(round, agreement->table->count);
        return NULL;
    }
    round->next = agreement->rounds;
    agreement->rounds = round;
    agreement->count++;
    return round;
}

/// Sends `message`, taken over, to all that gave a value, and ends the round.
static void finish_round(struct tfos__cluster_agreement *agreement,
                         struct tfos__cluster_round *round, json_t *message)
{
    TFOS__CLUSTER_EACH_NODE (node, agreement->table)
        if (round->values[node->executor_id])
            tfos__cluster_session_send(node->session, json_incref(message));
    json_decref(message);
    remove_round(agreement, round);
}

/// `text`, taken over, is the reason; NULL for want of memory.
static json_t *make_failure(const char *name, char *text)
{
    json_t *message =
        text ? json_pack("{s:s, s:s, s:s}", "type", "disagreed", "name", name, "message", text)
             : NULL;
    tfos__free(text);
    return message;
}

static json_t *make_end_failure(const char *name, const struct tfos__cluster_node *node)
{
    return make_failure(name,
                        tfos__format("agreement: \"%s\" cannot be agreed on: %s has ended (%s)",
                                     name, node->name, node->exit));
}

/// The member whose end makes the round impossible, or NULL.
static const struct tfos__cluster_node *find_ended(const struct tfos__cluster_agreement *agreement,
                                                   const struct tfos__cluster_round *round)
{
    TFOS__CLUSTER_EACH_NODE (node, agreement->table)
        if (tfos__cluster_node_is_trainer(node) && tfos__cluster_node_is_over(node) &&
            !round->values[node->executor_id])
            return node;
    return NULL;
}

static json_t *make_agreed(const struct tfos__cluster_agreement *agreement,
                           const struct tfos__cluster_round *round)
{
    json_t *values = json_array();
    for (int id = 0; id < agreement->table->count; id++)
        if (round->values[id] && json_array_append(values, round->values[id]) != 0) {
            json_decref(values);
            return NULL;
        }
    return json_pack("{s:s, s:s, s:o}", "type", "agreed", "name", round->name, "values", values);
}

static int count_members(const struct tfos__cluster_agreement *agreement)
{
    int count = 0;
    TFOS__CLUSTER_EACH_NODE (node, agreement->table)
        count += tfos__cluster_node_is_trainer(node);
    return count;
}

/// Whether `node` may not give `value`; then it gets the reason.
static bool reject(const struct tfos__cluster_agreement *agreement,
                   const struct tfos__cluster_node *node, const char *name, size_t size)
{
    const struct tfos__cluster_round *round = find_round(agreement, name);
    char *reason;
    if (!tfos__cluster_node_is_trainer(node))
        reason = tfos__format("agreement: \"%s\": %s has no part in it: it is for the chief, the "
                              "master and workers",
                              name, node->name);
    else if (agreement->count >= TFOS__ROUND_LIMIT && !round)
        reason = tfos__format("agreement: \"%s\": %d others are under way: wait for them first",
                              name, TFOS__ROUND_LIMIT);
    else if (size + (round ? round->size : 0) > TFOS__ROUND_SIZE)
        reason =
            tfos__format("agreement: \"%s\": with the value of %s, of %zu bytes, the values of "
                         "all would be larger than %d bytes",
                         name, node->name, size, TFOS__ROUND_SIZE);
    else
        return false;
    tfos__cluster_session_send(node->session, make_failure(name, reason));
    return true;
}

void tfos__cluster_agreement_give(struct tfos__cluster_agreement *agreement,
                                  struct tfos__cluster_node *node, const char *name, json_t *value)
{
    size_t size = json_dumpb(value, NULL, 0, JSON_ENCODE_ANY | JSON_COMPACT);
    if (reject(agreement, node, name, size))
        return;
    struct tfos__cluster_round *round = find_round(agreement, name);
    if (!round)
        round = add_round(agreement, name);
    if (!round) {
        tfos__cluster_session_send(node->session, NULL);
        return;
    }
    if (round->values[node->executor_id]) {
        finish_round(agreement, round,
                     make_failure(name, tfos__format("agreement: \"%s\": %s gave a value twice: "
                                                     "each name is for one agreement",
                                                     name, node->name)));
        return;
    }
    round->values[node->executor_id] = json_incref(value);
    round->given_count++;
    round->size += size;
    const struct tfos__cluster_node *ended = find_ended(agreement, round);
    if (ended)
        finish_round(agreement, round, make_end_failure(name, ended));
    else if (round->given_count == count_members(agreement))
        finish_round(agreement, round, make_agreed(agreement, round));
}

void tfos__cluster_agreement_send_pending(struct tfos__cluster_agreement *agreement,
                                          struct tfos__cluster_node *node, const char *name)
{
    const struct tfos__cluster_round *round = find_round(agreement, name);
    if (!round)
        return;
    char text[NODES_SIZE];
    tfos__cluster_failure_text_of_absence(agreement->table, round->values, text, sizeof(text));
    tfos__cluster_session_send(node->session, json_pack("{s:s, s:s, s:s}", "type", "pending",
                                                        "name", name, "nodes", text));
}

void tfos__cluster_agreement_leave(struct tfos__cluster_agreement *agreement,
                                   struct tfos__cluster_node *node)
{
    if (!tfos__cluster_node_is_trainer(node))
        return;
    struct tfos__cluster_round *next;
    for (struct tfos__cluster_round *round = agreement->rounds; round; round = next) {
        next = round->next;
        if (!round->values[node->executor_id])
            finish_round(agreement, round, make_end_failure(round->name, node));
    }
}

void tfos__cluster_agreement_clear(struct tfos__cluster_agreement *agreement)
{
    while (agreement->rounds)
        remove_round(agreement, agreement->rounds);
}
