// SPDX-License-Identifier: Apache-2.0
/// A trainer whose function makes its process a daemon: it forks and ends, and a process forked
/// from it goes on in a session of its own. That is the trainer then, and its end is the trainer's.
#include "node/supervisor.h"

#include "base/clock.h"
#include "base/process.h"

#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_SIZE 4096
#define NAME_SIZE 15     // of a process's name, as the kernel keeps it
#define FORKED_ONLY 0x40 // of the kernel's flags of a process: it was forked and did not exec
/// From the end of the one process to the other's setsid().
#define PATIENCE_MS 1000
#define LOOK_INTERVAL_MS 10

static const char *argument(const struct tfos__node *node, size_t index)
{
    return json_string_value(json_array_get(node->config.argv, index));
}

/// Whether the process has the trainer's command line, as one that was forked from it has.
static bool has_command(const struct tfos__node *node, pid_t pid)
{
    char command[COMMAND_SIZE];
    size_t size = tfos__process_read(pid, "cmdline", command, sizeof command), place = 0;
    for (size_t i = 0; i < json_array_size(node->config.argv); i++) {
        size_t word_size = strlen(argument(node, i)) + 1;
        if (word_size > size - place || memcmp(command + place, argument(node, i), word_size) != 0)
            return false;
        place += word_size;
    }
    return true;
}

/// Whether the process has ended, had the trainer's name, and had been forked without an exec. Its
/// command line is gone.
static bool had_name(const struct tfos__node *node, pid_t pid)
{
    char text[COMMAND_SIZE];
    const char *slash = strrchr(argument(node, 0), '/');
    const char *name = slash ? slash + 1 : argument(node, 0);
    unsigned long flags = 0;
    if (tfos__process_read(pid, "stat", text, sizeof text) == 0)
        return false;
    const char *begin = strchr(text, '('), *end = strrchr(text, ')');
    size_t size = strnlen(name, NAME_SIZE);
    return begin && end == begin + 1 + size && memcmp(begin + 1, name, size) == 0 &&
           sscanf(end, ") Z %*d %*d %*d %*d %*d %lu", &flags) == 1 && (flags & FORKED_ONLY);
}

struct search {
    const struct tfos__node *node;
    bool is_any;  ///< a process that was forked from the trainer
    pid_t daemon; ///< one of these that has a session of its own; 0: none
};

static void look(void *context, pid_t pid)
{
    struct search *search = context;
    if (pid == search->node->board.child.pid)
        return;
    bool has_own_session = getsid(pid) != search->node->trainer_session;
    bool is_forked = has_command(search->node, pid);
    search->is_any |= is_forked;
    if (has_own_session && (is_forked || had_name(search->node, pid)))
        search->daemon = pid;
}

bool tfos__trainer_goes_on(struct tfos__node *node)
{
    struct tfos__child *trainer = &node->trainer;
    if (node->trainer_link)
        tfos__trainer_step(node);
    if (trainer->wait_status != 0 || trainer->was_stopped || node->is_trainer_done ||
        node->is_ending)
        return false;
    int64_t deadline = tfos__deadline(PATIENCE_MS);
    struct search search = {.node = node};
    // Two looks without any: one that ended while the first went on has left its own child, which
    // only the second sees.
    for (int misses = 0; misses < 2 && search.daemon == 0 && tfos__remaining_ms(deadline) != 0;) {
        search.is_any = false;
        tfos__child_visit(look, &search);
        misses = search.is_any ? 0 : misses + 1;
        if (search.daemon == 0)
            poll(NULL, 0, LOOK_INTERVAL_MS);
    }
    if (search.daemon == 0)
        return false;
    trainer->pid = search.daemon;
    trainer->is_running = true;
    return true;
}
