// SPDX-License-Identifier: Apache-2.0
// The node's side of its launch: the channel to the Spark task that launched it, and the watch over
// the executor. Until the launcher has sent `detach`, the end of its socket is the end of the task,
// and so of the node.
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "node/node.h"

#define CONFIG_TIMEOUT_MS 30000
#define CLOSE_TIMEOUT_MS 1000
// When the executor dies, its task's end may be seen first: how long to wait for the real cause.
#define EXECUTOR_WAIT_MS 100

enum tfos_status tfos__node_launcher_open(struct tfos__node *node, int fd, struct tfos_error *err)
{
    TFOS__TRY(tfos__channel_open(fd, TFOS__CHANNEL_UNIX, NULL, "launcher", &node->launcher, err));
    json_t *message;
    int fds[TFOS__FRAME_DESCRIPTORS];
    int fd_count = 0;
    TFOS__TRY(tfos__channel_receive(node->launcher, &message, fds, &fd_count,
                                    tfos__deadline(CONFIG_TIMEOUT_MS), err));
    if (fd_count > 0)
        node->payload_fd = fds[0];
    for (int i = 1; i < fd_count; i++)
        close(fds[i]);
    return tfos__node_config_init(&node->config, message, err);
}

enum tfos_status tfos__node_launcher_watch_executor(struct tfos__node *node, struct tfos_error *err)
{
    if (node->config.executor_pid == 0)
        return TFOS_OK;
    return tfos__fail_in(
        err, tfos__process_watch((pid_t)node->config.executor_pid, &node->executor_fd, err),
        "node: executor %s", node->config.executor);
}

void tfos__node_launcher_send(struct tfos__node *node, json_t *message)
{
    if (!node->launcher) {
        json_decref(message);
        return;
    }
    struct tfos_error err;
    if (tfos__channel_send_bounded(node->launcher, message, NULL, 0, TFOS__NODE_QUEUE_LIMIT,
                                   &err) == TFOS_OK)
        return;
    tfos__channel_close(node->launcher);
    node->launcher = NULL;
    if (node->is_detached)
        return;
    tfos__node_end(node, TFOS__CAUSE_TASK_LOST, TFOS__NODE_LOSS_GRACE_MS,
                   "the Spark task that launched this node could not be told how it goes: %s",
                   err.message);
}

void tfos__node_launcher_executor_ended(struct tfos__node *node)
{
    close(node->executor_fd);
    node->executor_fd = -1;
    tfos__node_end(node, TFOS__CAUSE_EXECUTOR_LOST, 0,
                   "executor %s (pid %lld on %s) has ended; Spark's log of it says why",
                   node->config.executor, (long long)node->config.executor_pid, node->host);
}

static void launcher_ended(struct tfos__node *node)
{
    tfos__channel_close(node->launcher);
    node->launcher = NULL;
    if (node->is_detached)
        return;
    struct pollfd slot = {.fd = node->executor_fd, .events = POLLIN};
    if (node->executor_fd >= 0 && poll(&slot, 1, EXECUTOR_WAIT_MS) == 1)
        tfos__node_launcher_executor_ended(node);
    else
        tfos__node_end(
            node, TFOS__CAUSE_TASK_LOST, TFOS__NODE_LOSS_GRACE_MS,
            "the Spark task that launched this node has ended: it was cancelled, or failed");
}

void tfos__node_launcher_step(struct tfos__node *node)
{
    struct tfos_error err;
    json_t *message;
    enum tfos_status status;
    (void)tfos__channel_pump(node->launcher,
                             &err); // next() gives its failure behind the last message
    while ((status = tfos__channel_next(node->launcher, &message, NULL, NULL, &err)) == TFOS_OK) {
        if (strcmp(tfos__json_string_or(message, "type", ""), "detach") == 0)
            node->is_detached = true;
        json_decref(message);
    }
    if (status < 0)
        launcher_ended(node);
}

void tfos__node_launcher_close(struct tfos__node *node)
{
    tfos__channel_finish(node->launcher, CLOSE_TIMEOUT_MS);
    node->launcher = NULL;
}
