// SPDX-License-Identifier: Apache-2.0
// The port is chosen here and given to TensorBoard on its command line. It does not share ports as
// TensorFlow does, so the reservation ends just before it starts; should somebody be faster, it
// ends and that is the warning.

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/listener.h"
#include "base/memory.h"
#include "base/socket.h"
#include "node/event_writer.h"
#include "node/node.h"

#define PROBE_INTERVAL_MS 250
#define START_TIMEOUT_MS 120000

extern char **environ;

static bool is_tensorboard_node(const struct tfos__node *node)
{
    if (strcmp(node->job_name, "chief") == 0 || strcmp(node->job_name, "master") == 0)
        return true;
    return strcmp(node->job_name, "worker") == 0 && node->task_index == 0 &&
           !json_object_get(node->cluster_spec, "chief") &&
           !json_object_get(node->cluster_spec, "master");
}

static void warn(struct tfos__node *node, const char *what, const char *reason)
{
    struct tfos_error text;
    tfos__fail(&text, TFOS_IO, "%s on %s, training goes on without it: %s", what, node->name,
               reason);
    tfos__node_rendezvous_send(node,
                               json_pack("{s:s, s:s}", "type", "warning", "message", text.message));
}

static void warn_of_end(struct tfos__node *node, const char *reason)
{
    warn(node, "TensorBoard is not running", reason);
}

/// The command with host and port in place of the arguments that stand for them. No other argument
/// changes, whatever is in it.
static enum tfos_status make_arguments(const struct tfos__node *node,
                                       struct tfos__node_strings *arguments, struct tfos_error *err)
{
    char digits[16];
    size_t i;
    json_t *item;
    snprintf(digits, sizeof(digits), "%d", node->tensorboard.port);
    json_array_foreach((json_t *)node->config.tensorboard_argv, i, item)
    {
        const char *text = json_string_value(item);
        if (strcmp(text, "{port}") == 0)
            text = digits;
        else if (strcmp(text, "{host}") == 0)
            text = node->host;
        TFOS__TRY(tfos__node_strings_append(arguments, tfos__strdup(text), err));
    }
    return TFOS_OK;
}

static enum tfos_status start_process(struct tfos__node *node, int port_fd, struct tfos_error *err)
{
    struct tfos__node_tensorboard *board = &node->tensorboard;
    struct tfos__node_strings environment = {0}, arguments = {0};
    char address[TFOS__ADDRESS_SIZE];
    tfos__address_join(node->host, board->port, address);
    enum tfos_status status = tfos__node_environment_init(&environment, environ, err);
    if (status == TFOS_OK)
        status = tfos__node_environment_apply(&environment, node->config.environment, err);
    if (status == TFOS_OK)
        status = make_arguments(node, &arguments, err);
    if (status == TFOS_OK)
        status = tfos__node_output_open(false, &board->output, err);
    if (status == TFOS_OK)
        status = tfos__socket_resolve(address, &board->addresses, err);
    close(port_fd);
    if (status == TFOS_OK) {
        struct tfos__spawn_options options = {.argv = arguments.items,
                                              .envp = environment.items,
                                              .directory = node->config.directory};
        status = tfos__node_child_start(&board->child, &options, board->output, NULL, err);
    }
    tfos__node_strings_clear(&arguments);
    tfos__node_strings_clear(&environment);
    return status;
}

static enum tfos_status start(struct tfos__node *node, struct tfos_error *err)
{
    int port_fd;
    TFOS__TRY(tfos__listener_reserve((int)node->config.tensorboard_port, &port_fd,
                                     &node->tensorboard.port, err));
    return start_process(node, port_fd, err);
}

void tfos__node_tensorboard_start(struct tfos__node *node)
{
    if (!node->config.tensorboard_argv || !is_tensorboard_node(node))
        return;
    struct tfos__node_tensorboard *board = &node->tensorboard;
    struct tfos_error err;
    if (start(node, &err) < 0) {
        tfos__node_tensorboard_close(board);
        warn_of_end(node, err.message);
        return;
    }
    board->probe_at = tfos__deadline(PROBE_INTERVAL_MS);
    board->give_up_at = tfos__deadline(START_TIMEOUT_MS);
    board->begun_s = time(NULL);
}

int64_t tfos__node_tensorboard_due(const struct tfos__node_tensorboard *board)
{
    if (!board->child.is_running)
        return TFOS__NEVER;
    bool is_probed = !board->is_served && !board->child.was_stopped;
    int64_t probe_at = is_probed ? board->probe_at : TFOS__NEVER;
    return probe_at < board->child.kill_at ? probe_at : board->child.kill_at;
}

static void end_probe(struct tfos__node_tensorboard *board)
{
    if (board->is_probing)
        close(board->probe_fd);
    board->is_probing = false;
}

/// A probe that is not decided by now, since packets may be dropped, gives way to the next.
static void begin_probe(struct tfos__node_tensorboard *board)
{
    end_probe(board);
    board->probed =
        board->probed && board->probed->ai_next ? board->probed->ai_next : board->addresses;
    board->probe_fd = tfos__socket_connect_begin(board->probed);
    board->is_probing = board->probe_fd >= 0;
}

void tfos__node_tensorboard_step(struct tfos__node *node)
{
    struct tfos__node_tensorboard *board = &node->tensorboard;
    board->is_served = tfos__socket_is_connected(board->probe_fd);
    end_probe(board);
    if (!board->is_served)
        return;
    char address[TFOS__ADDRESS_SIZE];
    tfos__address_join(node->host, board->port, address);
    tfos__node_rendezvous_send(node, json_pack("{s:s, s:s+, s:i}", "type", "tensorboard", "url",
                                               "http://", address, "pid", (int)board->child.pid));
}

void tfos__node_tensorboard_tick(struct tfos__node *node)
{
    struct tfos__node_tensorboard *board = &node->tensorboard;
    tfos__node_child_tick(&board->child);
    if (!board->child.is_running || board->is_served || board->child.was_stopped ||
        tfos__remaining_ms(board->probe_at) != 0)
        return;
    board->probe_at = tfos__deadline(PROBE_INTERVAL_MS);
    if (tfos__remaining_ms(board->give_up_at) != 0) {
        begin_probe(board);
        return;
    }
    end_probe(board);
    tfos__node_child_stop(&board->child, TFOS__NODE_LOSS_GRACE_MS);
    warn_of_end(node, "it did not serve its port within 120 s");
}

bool tfos__node_tensorboard_wants_figures(const struct tfos__node *node)
{
    return node->tensorboard.child.is_running && node->config.tensorboard_log_directory &&
           !node->tensorboard.has_no_scalars;
}

void tfos__node_tensorboard_show(struct tfos__node *node, const json_t *figures)
{
    struct tfos_error err;
    struct tfos__node_event_writer writer = {.log_directory =
                                                 node->config.tensorboard_log_directory,
                                             .host = node->host,
                                             .begun_s = node->tensorboard.begun_s};
    if (!tfos__node_tensorboard_wants_figures(node) ||
        tfos__node_event_writer_write(&writer, figures, &err) == TFOS_OK)
        return;
    node->tensorboard.has_no_scalars = true;
    warn(node, "TensorBoard has no diagram of the feed", err.message);
}

void tfos__node_tensorboard_ended(struct tfos__node *node)
{
    struct tfos__node_tensorboard *board = &node->tensorboard;
    tfos__node_output_finish(board->output, 0);
    if (!board->child.was_stopped) {
        char words[64];
        struct tfos_error reason;
        json_t *lines = tfos__node_output_get_last_lines(board->output);
        const char *last = json_string_value(json_array_get(lines, json_array_size(lines) - 1));
        tfos__fail(&reason, TFOS_IO, "it ended with %s%s%s",
                   tfos__process_describe(board->child.wait_status, words), last ? ": " : "",
                   last ? last : "");
        warn_of_end(node, reason.message);
        json_decref(lines);
    }
    tfos__node_tensorboard_close(board);
}

void tfos__node_tensorboard_close(struct tfos__node_tensorboard *board)
{
    end_probe(board);
    if (board->addresses)
        freeaddrinfo(board->addresses);
    board->addresses = NULL;
    board->probed = NULL;
    tfos__node_output_close(board->output);
    board->output = NULL;
}
