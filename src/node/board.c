// SPDX-License-Identifier: Apache-2.0
/// The port is chosen here and given to TensorBoard on its command line. It does not share ports as
/// TensorFlow does, so the reservation ends just before it starts; should somebody be faster, it
/// ends and that is the warning.
#include "node/board.h"

#include "base/clock.h"
#include "base/listener.h"
#include "base/memory.h"
#include "base/socket.h"
#include "node/environment.h"
#include "node/scalars.h"
#include "node/supervisor.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROBE_INTERVAL_MS 250
#define START_TIMEOUT_MS 120000

extern char **environ;

static bool is_board_node(const struct tfos__node *node)
{
    if (strcmp(node->job_name, "chief") == 0 || strcmp(node->job_name, "master") == 0)
        return true;
    return strcmp(node->job_name, "worker") == 0 && node->task_index == 0 &&
           !json_object_get(node->cluster_spec, "chief") &&
           !json_object_get(node->cluster_spec, "master");
}

static void warn_of(struct tfos__node *node, const char *what, const char *reason)
{
    char *message =
        tfos__format("%s on %s, training goes on without it: %s", what, node->name, reason);
    tfos__driver_tell(
        node, json_pack("{s:s, s:s}", "type", "warning", "message", message ? message : reason));
    tfos__free(message);
}

static void warn(struct tfos__node *node, const char *reason)
{
    warn_of(node, "TensorBoard is not running", reason);
}

static void free_arguments(char **arguments)
{
    for (char **argument = arguments; argument && *argument; argument++)
        tfos__free(*argument);
    tfos__free(arguments);
}

/// The command with host and port in place of the arguments that stand for them, or NULL when out
/// of memory. No other argument changes, whatever is in it.
static char **make_arguments(const json_t *argv, const char *host, int port)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%d", port);
    char **arguments = tfos__alloc(json_array_size(argv) + 1, sizeof *arguments);
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)argv, i, item)
    {
        if (!arguments)
            return NULL;
        const char *text = json_string_value(item);
        if (strcmp(text, "{port}") == 0)
            text = digits;
        else if (strcmp(text, "{host}") == 0)
            text = host;
        arguments[i] = tfos__strdup(text);
        if (!arguments[i]) {
            free_arguments(arguments);
            return NULL;
        }
    }
    return arguments;
}

static enum tfos_status start(struct tfos__node *node, struct tfos_error *err)
{
    struct tfos__board *board = &node->board;
    int port_fd;
    enum tfos_status status =
        tfos__listener_reserve((int)node->config.board_port, &port_fd, &board->port, err);
    if (status < 0)
        return status;
    struct tfos__environment environment = {0};
    status = tfos__environment_init(&environment, environ, err);
    if (status == TFOS_OK)
        status = tfos__environment_apply(&environment, node->config.environment, err);
    char **arguments = make_arguments(node->config.board_argv, node->host, board->port);
    if (status == TFOS_OK && !arguments)
        status = tfos__no_memory(err, "node", "TensorBoard's command");
    if (status == TFOS_OK)
        status = tfos__output_open(false, &board->output, err);
    char address[TFOS__ADDRESS_SIZE];
    tfos__address_join(node->host, board->port, address);
    if (status == TFOS_OK)
        status = tfos__socket_resolve(address, &board->addresses, err);
    close(port_fd);
    if (status == TFOS_OK) {
        struct tfos__spawn_options options = {
            .argv = arguments,
            .envp = environment.items,
            .directory = node->config.directory,
            .stdin_fd = -1,
            .stdout_fd = tfos__output_writer_fd(board->output, TFOS__OUTPUT_STDOUT),
            .stderr_fd = tfos__output_writer_fd(board->output, TFOS__OUTPUT_STDERR),
        };
        status = tfos__child_start(&board->child, &options, err);
        tfos__output_close_writers(board->output);
    }
    free_arguments(arguments);
    tfos__environment_clear(&environment);
    return status;
}

void tfos__board_start(struct tfos__node *node)
{
    if (!node->config.board_argv || !is_board_node(node))
        return;
    struct tfos__board *board = &node->board;
    struct tfos_error err;
    if (start(node, &err) < 0) {
        tfos__board_close(board);
        warn(node, err.message);
        return;
    }
    board->probe_at = tfos__deadline(PROBE_INTERVAL_MS);
    board->give_up_at = tfos__deadline(START_TIMEOUT_MS);
    board->begun_s = time(NULL);
}

int64_t tfos__board_due(const struct tfos__board *board)
{
    if (!board->child.is_running)
        return TFOS__NEVER;
    bool is_probed = !board->is_served && !board->child.was_stopped;
    int64_t probe_at = is_probed ? board->probe_at : TFOS__NEVER;
    return probe_at < board->child.kill_at ? probe_at : board->child.kill_at;
}

static void end_probe(struct tfos__board *board)
{
    if (board->is_probing)
        close(board->probe_fd);
    board->is_probing = false;
}

/// A look that is not decided by now, for packets may be dropped, makes room for the next.
static void begin_probe(struct tfos__board *board)
{
    end_probe(board);
    board->probed =
        board->probed && board->probed->ai_next ? board->probed->ai_next : board->addresses;
    board->probe_fd = tfos__socket_connect_begin(board->probed);
    board->is_probing = board->probe_fd >= 0;
}

void tfos__board_step(struct tfos__node *node)
{
    struct tfos__board *board = &node->board;
    board->is_served = tfos__socket_is_connected(board->probe_fd);
    end_probe(board);
    if (!board->is_served)
        return;
    char address[TFOS__ADDRESS_SIZE];
    tfos__address_join(node->host, board->port, address);
    char *url = tfos__format("http://%s", address);
    tfos__driver_tell(node, json_pack("{s:s, s:s?}", "type", "tensorboard", "url", url));
    tfos__free(url);
}

void tfos__board_tick(struct tfos__node *node)
{
    struct tfos__board *board = &node->board;
    tfos__child_tick(&board->child);
    if (!board->child.is_running || board->is_served || board->child.was_stopped ||
        tfos__remaining_ms(board->probe_at) != 0)
        return;
    board->probe_at = tfos__deadline(PROBE_INTERVAL_MS);
    if (tfos__remaining_ms(board->give_up_at) != 0) {
        begin_probe(board);
        return;
    }
    end_probe(board);
    tfos__child_stop(&board->child, TFOS__NODE_LOSS_GRACE_MS);
    warn(node, "it did not serve its port within 120 s");
}

bool tfos__board_wants_figures(const struct tfos__node *node)
{
    return node->board.child.is_running && node->config.board_log_directory &&
           !node->board.has_no_scalars;
}

void tfos__board_show(struct tfos__node *node, const json_t *figures)
{
    struct tfos_error err;
    struct tfos__scalars scalars = {.log_directory = node->config.board_log_directory,
                                    .host = node->host,
                                    .begun_s = node->board.begun_s};
    if (!tfos__board_wants_figures(node) || tfos__scalars_write(&scalars, figures, &err) == TFOS_OK)
        return;
    node->board.has_no_scalars = true;
    warn_of(node, "TensorBoard has no diagram of the feed", err.message);
}

void tfos__board_ended(struct tfos__node *node)
{
    struct tfos__board *board = &node->board;
    tfos__output_finish(board->output, 0);
    if (!board->child.was_stopped) {
        char words[64];
        json_t *lines = tfos__output_get_last_lines(board->output);
        const char *last = json_string_value(json_array_get(lines, json_array_size(lines) - 1));
        char *reason = tfos__format("it ended with %s%s%s",
                                    tfos__process_describe(board->child.wait_status, words),
                                    last ? ": " : "", last ? last : "");
        warn(node, reason ? reason : "it ended");
        tfos__free(reason);
        json_decref(lines);
    }
    tfos__board_close(board);
}

void tfos__board_close(struct tfos__board *board)
{
    end_probe(board);
    if (board->addresses)
        freeaddrinfo(board->addresses);
    board->addresses = NULL;
    board->probed = NULL;
    tfos__output_close(board->output);
    board->output = NULL;
}
