// SPDX-License-Identifier: Apache-2.0
/// The node's feed host: hands lanes to the trainer, carries what happens to attempts to the
/// driver, and answers writers that ask why nothing is read. A lane that opens before the trainer
/// has asked for its queue waits here, as a descriptor of our own.
#include "node/supervisor.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define QUEUE_NAME "input"
/// A node that Spark launched again meets the one before it until that has seen its task's end.
#define NAME_TIMEOUT_MS 10000
#define NAME_INTERVAL_MS 50
/// How soon the driver hears that the lanes are empty: there is no event for it, a reader only
/// moves a counter.
#define STEP_INTERVAL_BUSY_MS 20
#define STEP_INTERVAL_IDLE_MS 1000

enum tfos_status tfos__feeders_open(struct tfos__node *node, struct tfos_error *err)
{
    const struct tfos__node_config *config = &node->config;
    char *name =
        tfos__format("tfos-feed-%s-%lld", config->cluster_id, (long long)config->executor_id);
    if (!name)
        return tfos__no_memory(err, "node", "the name of the feed's socket");
    struct tfos_feed_host_options options = {.cluster_id = config->cluster_id,
                                             .key = config->key,
                                             .socket_name = name,
                                             .queue = QUEUE_NAME};
    int64_t deadline = tfos__deadline(NAME_TIMEOUT_MS);
    enum tfos_status status = tfos_feed_host_open(&options, &node->feed, err);
    while (status == TFOS_BUSY && tfos__remaining_ms(deadline) != 0) {
        poll(NULL, 0, NAME_INTERVAL_MS);
        status = tfos_feed_host_open(&options, &node->feed, err);
    }
    tfos__free(name);
    return status;
}

static json_t *lane_message(int lane)
{
    return json_pack("{s:s, s:s, s:i}", "type", "lane", "queue", QUEUE_NAME, "lane", lane);
}

static enum tfos_status keep_lane(struct tfos__node *node, int lane, int fd, struct tfos_error *err)
{
    struct tfos__lane *lanes =
        tfos__realloc(node->lanes, (size_t)node->lane_count + 1, sizeof *lanes);
    if (!lanes)
        return tfos__no_memory(err, "node", "a lane");
    node->lanes = lanes;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot keep lane %d", lane);
    lanes[node->lane_count++] = (struct tfos__lane){.number = lane, .fd = copy};
    return TFOS_OK;
}

static void tell_attempt(struct tfos__node *node, const struct tfos_feed_event *event)
{
    tfos__driver_tell(node,
                      json_pack("{s:s, s:I, s:I, s:I, s:I, s:b}", "type", "partition", "feed",
                                (json_int_t)event->feed, "partition", (json_int_t)event->partition,
                                "attempt", (json_int_t)event->attempt, "rows",
                                (json_int_t)event->rows, "complete", (int)event->complete));
}

static enum tfos_status follow(struct tfos__node *node, const struct tfos_feed_event *event,
                               struct tfos_error *err)
{
    switch (event->kind) {
    case TFOS_FEED_LANE_OPENED:
        if (!node->is_feed_open)
            return keep_lane(node, event->lane, event->fd, err);
        tfos__trainer_tell(node, lane_message(event->lane), &event->fd, 1);
        break;
    case TFOS_FEED_ATTEMPT_CLOSED:
        tell_attempt(node, event);
        break;
    case TFOS_FEED_STALLED:
        if (node->trainer.is_running)
            tfos__stall_ask(&node->stall, node->trainer.pid, node->output);
        else
            tfos_feed_host_explain(node->feed, "the trainer does not run");
        break;
    }
    return TFOS_OK;
}

enum tfos_status tfos__feeders_step(struct tfos__node *node, struct tfos_error *err)
{
    if (!node->feed)
        return TFOS_OK;
    TFOS__TRY(tfos_feed_host_step(node->feed, err));
    for (;;) {
        struct tfos_feed_event event;
        enum tfos_status status = tfos_feed_host_next_event(node->feed, &event, err);
        if (status == TFOS_AGAIN)
            break;
        TFOS__TRY(status);
        TFOS__TRY(follow(node, &event, err));
    }
    if (tfos__remaining_ms(tfos__stall_due(&node->stall)) == 0) {
        char *answer = tfos__stall_answer(&node->stall, node->trainer.pid, node->output);
        tfos_feed_host_explain(node->feed, answer ? answer : "");
        tfos__free(answer);
    }
    struct tfos_feed_stats stats;
    tfos_feed_host_get_stats(node->feed, &stats);
    if (stats.is_terminated && node->feed_state < TFOS_FEED_TERMINATED)
        node->feed_state = TFOS_FEED_TERMINATED; // by the reader, in shared memory
    if (stats.is_drained != node->was_drained || stats.is_terminated != node->was_terminated)
        node->heartbeat_at = tfos__now_ms();
    node->feed_step_at =
        tfos__deadline(stats.is_drained ? STEP_INTERVAL_IDLE_MS : STEP_INTERVAL_BUSY_MS);
    return TFOS_OK;
}

void tfos__feeders_set_state(struct tfos__node *node, enum tfos_feed_host_state state,
                             const char *message)
{
    // The states are in the order in which one may follow another.
    if (!node->feed || state <= node->feed_state)
        return;
    node->feed_state = state;
    tfos_feed_host_set_state(node->feed, state, message);
    node->heartbeat_at = tfos__now_ms();
    node->feed_step_at = node->heartbeat_at;
}

static void drop_lanes(struct tfos__node *node)
{
    for (int i = 0; i < node->lane_count; i++)
        close(node->lanes[i].fd);
    tfos__free(node->lanes);
    node->lanes = NULL;
    node->lane_count = 0;
}

static void refuse(struct tfos__node *node, const char *queue, const char *reason)
{
    tfos__trainer_tell(
        node, json_pack("{s:s, s:s, s:s}", "type", "refused", "queue", queue, "message", reason),
        NULL, 0);
}

void tfos__feeders_attach(struct tfos__node *node, const char *queue)
{
    if (!node->feed) {
        refuse(node, queue, "this node is not fed by Spark");
    } else if (strcmp(queue, QUEUE_NAME) != 0) {
        refuse(node, queue, "the only queue of a node is \"" QUEUE_NAME "\"");
    } else if (node->is_feed_open) {
        refuse(node, queue, "another process of this trainer reads it");
    } else {
        int bell_fd = tfos_feed_host_bell_fd(node->feed);
        tfos__trainer_tell(node, json_pack("{s:s, s:s}", "type", "feed", "queue", queue), &bell_fd,
                           1);
        for (int i = 0; i < node->lane_count; i++)
            tfos__trainer_tell(node, lane_message(node->lanes[i].number), &node->lanes[i].fd, 1);
        drop_lanes(node);
        node->is_feed_open = true;
    }
}

void tfos__feeders_fence(struct tfos__node *node, const json_t *message)
{
    if (!node->feed)
        return;
    struct tfos_feed_event event = {.feed = tfos__json_int_or(message, "feed", 0),
                                    .partition = tfos__json_int_or(message, "partition", 0),
                                    .attempt = tfos__json_int_or(message, "attempt", 0)};
    tfos_feed_host_fence(node->feed, event.feed, event.partition, event.attempt, &event.rows,
                         &event.complete);
    tell_attempt(node, &event);
}

void tfos__feeders_close(struct tfos__node *node)
{
    drop_lanes(node);
    tfos_feed_host_close(node->feed);
    node->feed = NULL;
}
