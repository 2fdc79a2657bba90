// SPDX-License-Identifier: Apache-2.0
/// Feeders that a test plays: what they ask the driver for, and what it answers.
#ifndef TFOS_TEST_FEEDER_SCENE_H
#define TFOS_TEST_FEEDER_SCENE_H

#include "rendezvous_scene.h"

/// What a feeder asks for.
struct ask {
    int feed, partition, attempt;
    const char *host;
    int executor_pid;
    int has_results;
    const char *queue, *job; ///< NULL: it names none
};

static inline struct tfos__channel *open_feeder(const struct place *place, struct ask ask)
{
    struct tfos__channel *feeder = connect_to(place);
    say(feeder,
        json_pack("{s:s, s:s, s:i, s:s*, s:s*, s:i, s:i, s:i, s:s, s:i, s:b}", "type", "hello",
                  "kind", "feeder", "version", 1, "queue", ask.queue, "job", ask.job, "feed",
                  ask.feed, "partition", ask.partition, "attempt", ask.attempt, "host", ask.host,
                  "executor_pid", ask.executor_pid, "results", ask.has_results));
    return feeder;
}

/// Opens a feeder and checks that it gets `node`; its `first_row` is returned.
static inline json_int_t feed_to(const struct place *place, struct ask ask, const char *node,
                                 struct tfos__channel **feeder)
{
    *feeder = open_feeder(place, ask);
    json_t *target = expect(*feeder, "target");
    assert_string_equal(text_of(target, "node"), node);
    assert_string_equal(text_of(target, "queue"), ask.queue ? ask.queue : "input");
    json_int_t first_row = number_of(target, "first_row");
    json_decref(target);
    return first_row;
}

/// The feeder is told to go for this reason.
static inline void expect_dismissal(struct tfos__channel *feeder, const char *type,
                                    const char *says)
{
    json_t *message = expect(feeder, type);
    assert_says(text_of(message, !strcmp(type, "skip") ? "reason" : "message"), says);
    json_decref(message);
    tfos__channel_finish(feeder, 0);
}

/// The node reports how many rows of the partition it has.
static inline void report(struct tfos__channel *node, struct ask ask, int rows, int is_complete)
{
    say(node, json_pack("{s:s, s:s*, s:i, s:i, s:i, s:i, s:b}", "type", "partition", "queue",
                        ask.queue, "feed", ask.feed, "partition", ask.partition, "attempt",
                        ask.attempt, "rows", rows, "complete", is_complete));
}

static inline void expect_fence(struct tfos__channel *node, int partition, int attempt)
{
    json_t *fence = expect(node, "fence");
    assert_int_equal(number_of(fence, "partition"), partition);
    assert_int_equal(number_of(fence, "attempt"), attempt);
    json_decref(fence);
}

static inline void send_heartbeat(struct tfos__channel *node, int rows_read, int is_drained,
                                  int is_terminated)
{
    say(node, json_pack("{s:s, s:i, s:i, s:{s:{s:b, s:b}}}", "type", "heartbeat", "rows_written",
                        100, "rows_read", rows_read, "queues", "input", "drained", is_drained,
                        "terminated", is_terminated));
}

#endif
