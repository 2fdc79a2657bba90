// SPDX-License-Identifier: Apache-2.0
// Composes messages of bounded size. A trainer's own message and its lines are cut, so that the
// name of the node and the advice always have room.
#include "cluster/failure_text.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"

#define LISTED_LIMIT 20 // nodes that a list names; the rest are counted
#define MESSAGE_LIMIT                                                                              \
    2000 // bytes of a trainer's own message; its end is kept, where a traceback has the error
#define LINES_LIMIT 3200 // bytes of that and of the last lines; the newest are kept
#define LINE_LIMIT 600   // bytes of one of them; faulthandler names all modules in one line

void tfos__cluster_failure_text_copy(char *to, size_t size, const char *text)
{
    struct tfos__bounded_text copy = {.data = to, .capacity = size};
    tfos__bounded_text_append(&copy, "%s", text);
    for (char *c = to; !tfos__text_is_utf8(to, copy.size) && *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
}

static void append_where(struct tfos__bounded_text *text, const struct tfos__cluster_node *node)
{
    tfos__bounded_text_append(text, "%s (executor id %d", node->name, node->executor_id);
    if (node->executor[0])
        tfos__bounded_text_append(text, ", Spark executor %s", node->executor);
    tfos__bounded_text_append(text, ", host %s)", node->host[0] ? node->host : "unknown");
}

void tfos__cluster_failure_text_of_exit(const json_t *message, char *text, size_t size)
{
    char words[64];
    int64_t signal = tfos__json_int_or(message, "signal", 0);
    int64_t exit_status = tfos__json_int_or(message, "exit_status", -1);
    if (signal > 0 && signal < 127)
        snprintf(text, size, "%s", tfos__process_describe(W_EXITCODE(0, (int)signal), words));
    else if (exit_status >= 0 && exit_status < 256)
        snprintf(text, size, "%s", tfos__process_describe(W_EXITCODE((int)exit_status, 0), words));
    else
        snprintf(text, size, "an unknown status");
}

/// How many of the lines come before the message that they end with; all, if they do not.
static size_t count_before(const json_t *lines, const char *message)
{
    size_t count = json_array_size(lines), left = strlen(message);
    while (left > 0 && message[left - 1] == '\n')
        left--;
    while (left > 0 && count > 0) {
        const char *line = json_string_value(json_array_get(lines, --count));
        size_t size = line ? strlen(line) : 0;
        if (!line || size > left || memcmp(message + left - size, line, size) != 0)
            break;
        left -= size;
        if (left > 0 && message[--left] != '\n')
            break;
        if (left == 0)
            return count;
    }
    return json_array_size(lines);
}

/// The first `count` of the lines in order, as many of the newest as fit `limit` bytes.
static void append_lines(struct tfos__bounded_text *text, const json_t *lines, size_t count,
                         size_t limit)
{
    size_t first = count, size = 0;
    while (first > 0) {
        const char *line = json_string_value(json_array_get(lines, first - 1));
        size += (line ? strnlen(line, LINE_LIMIT) : 0) + 3;
        if (size > limit && first < count)
            break;
        first--;
    }
    if (first < count)
        tfos__bounded_text_append(text, "\nlast lines of its stderr%s:",
                                  count < json_array_size(lines) ? " before that" : "");
    for (; first < count; first++) {
        const char *line = json_string_value(json_array_get(lines, first));
        if (line)
            tfos__bounded_text_append(text, "\n  %s%s", strlen(line) > LINE_LIMIT ? "..." : "",
                                      tfos__text_tail(line, LINE_LIMIT));
    }
}

static const char *end_hint(const json_t *message)
{
    const char *cause = tfos__json_string_or(message, "cause", "trainer");
    int64_t signal = tfos__json_int_or(message, "signal", 0);
    if (!strcmp(cause, "executor_lost"))
        return "Spark's log says why the executor ended; often it used more memory than "
               "spark.executor.memory and spark.executor.memoryOverhead allow";
    if (!strcmp(cause, "task_lost"))
        return "Spark cancelled the task that launched the node, or lost it; see Spark's log";
    if (signal == 9)
        return "signal 9 usually means that the kernel or the resource manager ended it for want "
               "of "
               "memory: see dmesg, and give executors more memory or use smaller batches";
    if (signal > 0)
        return "a crash in native code: the executor's log has what was written before it";
    return "the executor's log has the trainer's whole output";
}

void tfos__cluster_failure_text_of_end(const struct tfos__cluster_node *node, const json_t *message,
                                       const char *exit, char *text, size_t size)
{
    struct tfos__bounded_text whole = {.data = text, .capacity = size};
    const char *cause = tfos__json_string_or(message, "cause", "trainer");
    const char *words = tfos__json_string_or(message, "message", "");
    tfos__bounded_text_append(&whole, "cluster: ");
    append_where(&whole, node);
    if (!strcmp(cause, "executor_lost"))
        tfos__bounded_text_append(
            &whole, " failed: its executor was lost, so its trainer was ended (%s)", exit);
    else if (!strcmp(cause, "task_lost"))
        tfos__bounded_text_append(
            &whole,
            " failed: the Spark task that launched it was lost, so its trainer was ended (%s)",
            exit);
    else
        tfos__bounded_text_append(&whole, " failed: its trainer ended with %s", exit);
    if (words[0])
        tfos__bounded_text_append(&whole, "\n%s%s", strlen(words) > MESSAGE_LIMIT ? "..." : "",
                                  tfos__text_tail(words, MESSAGE_LIMIT));
    const json_t *lines = json_object_get(message, "last_lines");
    append_lines(&whole, lines, count_before(lines, words),
                 LINES_LIMIT - strnlen(words, MESSAGE_LIMIT));
    tfos__bounded_text_append(&whole, "\nhint: %s", end_hint(message));
}

void tfos__cluster_failure_text_of_failure(const struct tfos__cluster_node *node,
                                           const char *message, char *text, size_t size)
{
    struct tfos__bounded_text whole = {.data = text, .capacity = size};
    tfos__bounded_text_append(&whole, "cluster: ");
    append_where(&whole, node);
    tfos__bounded_text_append(&whole, " cannot go on: %s%s",
                              strlen(message) > MESSAGE_LIMIT ? "..." : "",
                              tfos__text_tail(message, MESSAGE_LIMIT));
}

void tfos__cluster_failure_text_of_loss(const struct tfos__cluster_node *node, const char *cause,
                                        char *text, size_t size)
{
    struct tfos__bounded_text whole = {.data = text, .capacity = size};
    tfos__bounded_text_append(&whole, "cluster: ");
    append_where(&whole, node);
    tfos__bounded_text_append(
        &whole,
        " was lost: %s\nhint: its process or its machine has ended, or the network between it "
        "and the "
        "driver; Spark's log says what became of the executor",
        cause);
}

/// Whether a list of `listed` so far has room for one more; counts it either way.
static bool takes_one(struct tfos__bounded_text *text, int *listed)
{
    if (++*listed > LISTED_LIMIT)
        return false;
    if (text->size > 0)
        tfos__bounded_text_append(text, *listed > 1 ? ", " : " ");
    return true;
}

static void append_rest(struct tfos__bounded_text *text, int listed)
{
    if (listed > LISTED_LIMIT)
        tfos__bounded_text_append(text, " and %d more", listed - LISTED_LIMIT);
}

static void append_place(struct tfos__bounded_text *text, const struct tfos__cluster_node *node)
{
    tfos__bounded_text_append(text, "%s on host %s (executor %s)", node->name, node->host,
                              node->executor);
}

static void append_missing(struct tfos__bounded_text *text,
                           const struct tfos__cluster_node_table *table, const char *address,
                           int count)
{
    int listed = 0;
    tfos__bounded_text_append(text, "; missing: %d (executor id", count);
    TFOS__CLUSTER_EACH_NODE (node, table) {
        if (node->state != TFOS__CLUSTER_NODE_MISSING || !takes_one(text, &listed))
            continue;
        tfos__bounded_text_append(text, "%d", node->executor_id);
        if (node->exit[0])
            tfos__bounded_text_append(text, " [had registered from %s, but: %s]", node->host,
                                      node->exit);
    }
    append_rest(text, listed);
    tfos__bounded_text_append(
        text,
        "). Usually Spark has fewer free task slots than nodes: ask for as many executors "
        "(spark.executor.instances, spark.cores.max) as the cluster has nodes, or make "
        "the cluster smaller. If Spark shows their tasks as running, the executors do not "
        "reach the driver at %s: let TFOS_SERVER_HOST be an address of its machine that "
        "they reach, and TFOS_SERVER_PORT a port that firewalls let through",
        address);
}

static void append_unacknowledged(struct tfos__bounded_text *text,
                                  const struct tfos__cluster_node_table *table)
{
    int listed = 0;
    tfos__bounded_text_append(
        text, "; these have not acknowledged the cluster spec (generation %lld) yet:",
        (long long)table->generation);
    TFOS__CLUSTER_EACH_NODE (node, table) {
        if (node->generation != table->generation && takes_one(text, &listed))
            append_place(text, node);
    }
    append_rest(text, listed);
}

static void append_registration(struct tfos__bounded_text *text,
                                const struct tfos__cluster_node_table *table, const char *address)
{
    int registered = 0, listed = 0, count = table->count;
    TFOS__CLUSTER_EACH_NODE (node, table)
        registered += node->state != TFOS__CLUSTER_NODE_MISSING;
    tfos__bounded_text_append(text, "%d of %d nodes registered within %.3g s", registered, count,
                              (double)(tfos__now_ms() - table->opened_ms) / 1000.0);
    if (registered > 0)
        tfos__bounded_text_append(text, "; registered:");
    TFOS__CLUSTER_EACH_NODE (node, table) {
        if (node->state != TFOS__CLUSTER_NODE_MISSING && takes_one(text, &listed))
            append_place(text, node);
    }
    append_rest(text, listed);
    if (registered < count)
        append_missing(text, table, address, count - registered);
    else
        append_unacknowledged(text, table);
}

static void append_queues(struct tfos__bounded_text *text,
                          const struct tfos__cluster_scheduler *scheduler, uint32_t queues)
{
    const char *words = ", unread in queue ";
    for (int i = 0; i < scheduler->names->count; i++) {
        if (!(queues >> i & 1))
            continue;
        tfos__bounded_text_append(text, "%s\"%s\"", words, scheduler->names->names[i]);
        words = " and ";
    }
}

static void append_undrained(struct tfos__bounded_text *text,
                             const struct tfos__cluster_scheduler *scheduler, int64_t waited_ms)
{
    int listed = 0;
    tfos__bounded_text_append(text, "no row was taken for %.3g s;", (double)waited_ms / 1000.0);
    TFOS__CLUSTER_EACH_NODE (node, scheduler->table) {
        uint32_t unread = tfos__cluster_scheduler_unread_queues(scheduler, node);
        if (tfos__cluster_node_is_over(node) || (unread == 0 && node->feeder_count == 0) ||
            !takes_one(text, &listed))
            continue;
        tfos__bounded_text_append(
            text, "%s on host %s (executor %s): %lld rows were fed, %lld taken, %d feeding tasks",
            node->name, node->host, node->executor, (long long)node->rows_written,
            (long long)node->rows_read, node->feeder_count);
        append_queues(text, scheduler, unread);
    }
    append_rest(text, listed);
    if (scheduler->undecided_count > 0)
        tfos__bounded_text_append(text, "%s%d feeding tasks wait for a node", listed ? "; " : " ",
                                  scheduler->undecided_count);
    tfos__bounded_text_append(
        text, ". The trainers take no rows: raise feed_timeout if a step takes longer than that, "
              "or call terminate() in a function that ends before its rows do. Each queue that is "
              "fed must be read");
}

static void append_living(struct tfos__bounded_text *text,
                          const struct tfos__cluster_node_table *table,
                          enum tfos_rendezvous_phase phase, int64_t waited_ms)
{
    int listed = 0;
    tfos__bounded_text_append(text, "after %.3g s have not ended:", (double)waited_ms / 1000.0);
    TFOS__CLUSTER_EACH_NODE (node, table) {
        if (tfos__cluster_node_is_over(node) ||
            (phase == TFOS_PHASE_WORKED && !tfos__cluster_node_is_trainer(node)) ||
            !takes_one(text, &listed))
            continue;
        tfos__bounded_text_append(text, "%s on host %s (executor %s; %s)", node->name,
                                  node->host[0] ? node->host : "unknown", node->executor,
                                  tfos__cluster_node_state_name(node->state));
    }
    append_rest(text, listed);
}

void tfos__cluster_failure_text_of_absence(const struct tfos__cluster_node_table *table,
                                           json_t *const *values, char *text, size_t size)
{
    int listed = 0;
    struct tfos__bounded_text whole = {.data = text, .capacity = size};
    text[0] = '\0';
    TFOS__CLUSTER_EACH_NODE (node, table) {
        if (tfos__cluster_node_is_trainer(node) && !values[node->executor_id] &&
            takes_one(&whole, &listed))
            append_place(&whole, node);
    }
    append_rest(&whole, listed);
}

enum tfos_status
tfos__cluster_failure_text_of_timeout(const struct tfos__cluster_scheduler *scheduler,
                                      const char *address, enum tfos_rendezvous_phase phase,
                                      int64_t waited_ms, struct tfos_error *err)
{
    char message[sizeof(err->message)];
    struct tfos__bounded_text text = {.data = message, .capacity = sizeof(message)};
    if (phase == TFOS_PHASE_RUNNING)
        append_registration(&text, scheduler->table, address);
    else if (phase == TFOS_PHASE_DRAINED)
        append_undrained(&text, scheduler, waited_ms);
    else
        append_living(&text, scheduler->table, phase, waited_ms);
    return tfos__fail(err, TFOS_TIMEOUT, "rendezvous: %s", message);
}
