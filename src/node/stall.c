// SPDX-License-Identifier: Apache-2.0
/// SIGUSR2 ends a process that has no handler for it, so /proc/<pid>/status is asked first.
#include "node/stall.h"

#include "base/clock.h"
#include "base/memory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GATHER_MS 1000
#define STATUS_SIZE 4096

/// The value of a line of /proc/<pid>/status, found by its name with the colon ("State:"), or NULL.
static const char *find_field(pid_t pid, const char *name, char text[STATUS_SIZE])
{
    char *path = tfos__format("/proc/%d/status", (int)pid);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    tfos__free(path);
    if (fd < 0)
        return NULL;
    ssize_t size = read(fd, text, STATUS_SIZE - 1);
    close(fd);
    text[size > 0 ? size : 0] = '\0';
    char *field = strstr(text, name);
    if (!field)
        return NULL;
    field += strlen(name);
    field += strspn(field, "\t ");
    field[strcspn(field, "\n")] = '\0';
    return field;
}

static bool can_tell(pid_t pid)
{
    char text[STATUS_SIZE];
    const char *caught = find_field(pid, "SigCgt:", text);
    return caught && (strtoull(caught, NULL, 16) >> (SIGUSR2 - 1) & 1);
}

void tfos__stall_ask(struct tfos__stall *stall, pid_t trainer, struct tfos__output *output)
{
    if (stall->is_asked)
        return;
    stall->is_asked = true;
    stall->answer_at = tfos__now_ms();
    if (!can_tell(trainer))
        return;
    stall->answer_at += GATHER_MS;
    tfos__output_start_capture(output);
    kill(trainer, SIGUSR2);
}

int64_t tfos__stall_due(const struct tfos__stall *stall)
{
    return stall->is_asked ? stall->answer_at : TFOS__NEVER;
}

char *tfos__stall_answer(struct tfos__stall *stall, pid_t trainer, struct tfos__output *output)
{
    stall->is_asked = false;
    char *capture = tfos__output_take_capture(output);
    if (capture)
        return capture;
    char text[STATUS_SIZE];
    const char *state = find_field(trainer, "State:", text);
    return tfos__format(
        "the trainer (pid %d) is in state %s; it gave no stack trace (a Python trainer does "
        "on SIGUSR2)",
        (int)trainer, state ? state : "unknown");
}
