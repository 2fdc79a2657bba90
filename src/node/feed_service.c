// SPDX-License-Identifier: Apache-2.0
// The node's feed host: passes channels to the trainer, reports attempts to the driver, and answers
// writers whose rows are not taken. A channel that opens before the trainer has opened its queue
// waits here, in a slot with a descriptor of its own. Messages about a queue that this node does
// not have are ignored.
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "node/node.h"

// A node that Spark launched again finds the name taken until the one before it has ended.
#define NAME_TIMEOUT_MS 10000
#define NAME_INTERVAL_MS 50
// How soon the driver learns that the channels are empty: a reader only moves a counter, which is
// no event.
#define STEP_INTERVAL_BUSY_MS 20
#define STEP_INTERVAL_IDLE_MS 1000

enum tfos_status tfos__node_feed_open(struct tfos__node *node, struct tfos_error *err)
{
    const struct tfos__node_config *config = &node->config;
    TFOS__TRY(tfos__queue_names_init(&node->queue_names, config->queues, err));
    char *name =
        tfos__format("tfos-feed-%s-%lld", config->cluster_id, (long long)config->executor_id);
    if (!name)
        return tfos__no_memory(err, "node", "the name of the feed's socket");
    struct tfos__feed_host_options options = {.cluster_id = config->cluster_id,
                                              .key = config->key,
                                              .socket_name = name,
                                              .queues = config->queues};
    int64_t deadline = tfos__deadline(NAME_TIMEOUT_MS);
    enum tfos_status status = tfos__feed_host_open(&options, &node->feed, err);
    while (status == TFOS_BUSY && tfos__remaining_ms(deadline) != 0) {
        poll(NULL, 0, NAME_INTERVAL_MS);
        status = tfos__feed_host_open(&options, &node->feed, err);
    }
    tfos__free(name);
    return status;
}

static json_t *channel_message(const char *queue, int channel)
{
    return json_pack("{s:s, s:s, s:i}", "type", "channel", "queue", queue, "channel", channel);
}

static enum tfos_status keep_slot(struct tfos__node_queue *queue, int channel, int fd,
                                  struct tfos_error *err)
{
    struct tfos__node_slot *slots =
        tfos__realloc(queue->slots, (size_t)queue->slot_count + 1, sizeof(*slots));
    if (!slots)
        return tfos__no_memory(err, "node", "a channel");
    queue->slots = slots;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot keep channel %d", channel);
    slots[queue->slot_count++] = (struct tfos__node_slot){.number = channel, .fd = copy};
    return TFOS_OK;
}

static enum tfos_status pass_channel(struct tfos__node *node, const struct tfos__feed_event *event,
                                     struct tfos_error *err)
{
    struct tfos__node_queue *queue =
        &node->queues[tfos__queue_names_find(&node->queue_names, event->queue)];
    if (!queue->is_open)
        return keep_slot(queue, event->channel, event->fd, err);
    tfos__node_trainer_send(node, channel_message(event->queue, event->channel), &event->fd, 1);
    return TFOS_OK;
}

static void report_attempt(struct tfos__node *node, const struct tfos__feed_event *event)
{
    tfos__node_rendezvous_send(
        node, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:b}", "type", "partition", "queue",
                        event->queue, "feed", (json_int_t)event->feed, "partition",
                        (json_int_t)event->partition, "attempt", (json_int_t)event->attempt, "rows",
                        (json_int_t)event->rows, "written", (json_int_t)event->written, "complete",
                        (int)event->complete));
}

static enum tfos_status follow(struct tfos__node *node, const struct tfos__feed_event *event,
                               struct tfos_error *err)
{
    switch (event->kind) {
    case TFOS__FEED_CHANNEL_OPENED:
        return pass_channel(node, event, err);
    case TFOS__FEED_ATTEMPT_CLOSED:
        report_attempt(node, event);
        break;
    case TFOS__FEED_STALLED:
        if (node->trainer.child.is_running)
            tfos__node_trainer_ask_stack(node);
        else
            tfos__feed_host_explain(node->feed, "the trainer does not run");
        break;
    }
    return TFOS_OK;
}

/// The queues whose slots are empty, and those whose reader wants no more: a bit for each.
static void get_states(const struct tfos__node *node, uint32_t *drained, uint32_t *terminated)
{
    struct tfos__feed_queue_stats queue;
    *drained = *terminated = 0;
    for (int i = 0; node->feed && tfos__feed_host_get_queue(node->feed, i, &queue); i++) {
        *drained |= (uint32_t)queue.is_drained << i;
        *terminated |= (uint32_t)queue.is_terminated << i;
    }
}

enum tfos_status tfos__node_feed_step(struct tfos__node *node, struct tfos_error *err)
{
    if (!node->feed)
        return TFOS_OK;
    TFOS__TRY(tfos__feed_host_step(node->feed, err));
    for (;;) {
        struct tfos__feed_event event;
        enum tfos_status status = tfos__feed_host_next_event(node->feed, &event, err);
        if (status == TFOS_AGAIN)
            break;
        TFOS__TRY(status);
        TFOS__TRY(follow(node, &event, err));
    }
    if (tfos__remaining_ms(tfos__node_trainer_stack_due(node)) == 0) {
        char *answer = tfos__node_trainer_take_stack(node);
        tfos__feed_host_explain(node->feed, answer ? answer : "");
        tfos__free(answer);
    }
    uint32_t drained, terminated, all = tfos__queue_names_mask(&node->queue_names);
    get_states(node, &drained, &terminated);
    if (terminated == all && node->feed_state < TFOS__FEED_TERMINATED)
        node->feed_state = TFOS__FEED_TERMINATED; // by the readers, in shared memory
    if (drained != node->was_drained || terminated != node->was_terminated)
        node->heartbeat_at = tfos__now_ms();
    node->feed_step_at =
        tfos__deadline(drained == all ? STEP_INTERVAL_IDLE_MS : STEP_INTERVAL_BUSY_MS);
    return TFOS_OK;
}

void tfos__node_feed_set_state(struct tfos__node *node, enum tfos__feed_state state,
                               const char *message)
{
    // The states are in the order in which one may follow another.
    if (!node->feed || state <= node->feed_state)
        return;
    node->feed_state = state;
    tfos__feed_host_set_state(node->feed, state, message);
    node->heartbeat_at = tfos__now_ms();
    node->feed_step_at = node->heartbeat_at;
}

static void close_slots(struct tfos__node_queue *queue)
{
    for (int i = 0; i < queue->slot_count; i++)
        close(queue->slots[i].fd);
    tfos__free(queue->slots);
    queue->slots = NULL;
    queue->slot_count = 0;
}

static void reject(struct tfos__node *node, const char *queue, const char *reason)
{
    tfos__node_trainer_send(
        node, json_pack("{s:s, s:s, s:s}", "type", "refused", "queue", queue, "message", reason),
        NULL, 0);
}

void tfos__node_feed_attach(struct tfos__node *node, const char *name)
{
    struct tfos_error err;
    int number;
    if (!node->feed) {
        reject(node, name, "this node is not fed by Spark");
        return;
    }
    if (tfos__queue_names_get(&node->queue_names, name, &number, &err) < 0) {
        reject(node, name, err.message);
        return;
    }
    struct tfos__node_queue *queue = &node->queues[number];
    if (queue->is_open) {
        reject(node, name, "another process of this trainer reads it");
        return;
    }
    int control_fd = tfos__feed_host_control_fd(node->feed, name);
    tfos__node_trainer_send(node, json_pack("{s:s, s:s}", "type", "feed", "queue", name),
                            &control_fd, 1);
    for (int i = 0; i < queue->slot_count; i++)
        tfos__node_trainer_send(node, channel_message(name, queue->slots[i].number),
                                &queue->slots[i].fd, 1);
    close_slots(queue);
    queue->is_open = true;
}

/// Attempts below the message's are superseded. The answer is about those alone: an attempt of this
/// number may have begun since.
static void fence(struct tfos__node *node, const char *queue, const json_t *message)
{
    struct tfos__feed_event event = {.queue = queue,
                                     .feed = tfos__json_int_or(message, "feed", 0),
                                     .partition = tfos__json_int_or(message, "partition", 0),
                                     .attempt = tfos__json_int_or(message, "attempt", 0)};
    tfos__feed_host_fence(node->feed, &event);
    event.attempt--;
    report_attempt(node, &event);
}

static void send_description(struct tfos__node *node, int queue)
{
    tfos__node_trainer_send(node, json_incref(node->queues[queue].description), NULL, 0);
}

static void describe(struct tfos__node *node, int queue, json_t *message)
{
    json_decref(node->queues[queue].description);
    node->queues[queue].description = json_incref(message);
    send_description(node, queue);
}

bool tfos__node_feed_follow(struct tfos__node *node, const char *type, json_t *message)
{
    bool is_fence = strcmp(type, "fence") == 0, is_epoch = strcmp(type, "end_epoch") == 0;
    bool is_batch = strcmp(type, "end_batch") == 0, is_description = strcmp(type, "describe") == 0;
    if (strcmp(type, "end_feed") == 0) {
        tfos__node_feed_set_state(node, TFOS__FEED_ENDED, NULL);
        return true;
    }
    if (strcmp(type, "terminate") == 0) {
        tfos__node_feed_set_state(node, TFOS__FEED_TERMINATED, NULL);
        return true;
    }
    if (!is_fence && !is_epoch && !is_batch && !is_description)
        return false;
    int queue = node->feed ? tfos__queue_names_find(&node->queue_names,
                                                    tfos__json_string_or(message, "queue", NULL))
                           : -1;
    if (queue < 0)
        return true;
    const char *name = node->queue_names.names[queue];
    int64_t feed = tfos__json_int_or(message, "feed", 0);
    if (is_fence)
        fence(node, name, message);
    else if (is_epoch)
        tfos__feed_host_end_epoch(node->feed, name, feed);
    else if (is_batch)
        tfos__feed_host_end_batch(node->feed, name, feed);
    else
        describe(node, queue, message);
    return true;
}

void tfos__node_feed_send_descriptions(struct tfos__node *node)
{
    for (int queue = 0; node->feed && queue < node->queue_names.count; queue++)
        if (node->queues[queue].description)
            send_description(node, queue);
}

void tfos__node_feed_close(struct tfos__node *node)
{
    for (int i = 0; i < TFOS__QUEUE_LIMIT; i++) {
        close_slots(&node->queues[i]);
        json_decref(node->queues[i].description);
        node->queues[i].description = NULL;
    }
    tfos__feed_host_close(node->feed);
    node->feed = NULL;
}
