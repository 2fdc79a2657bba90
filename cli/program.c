// SPDX-License-Identifier: Apache-2.0
/// One child with one pipe; it is always reaped before this returns.
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bytes.h"
#include "terminal.h"

extern char **environ;

static bool start(char *const *argv, int writer, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    int fault = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (fault == 0)
        fault = posix_spawn_file_actions_adddup2(&actions, writer, STDOUT_FILENO);
    if (fault == 0)
        fault = posix_spawn_file_actions_adddup2(&actions, writer, STDERR_FILENO);
    if (fault == 0)
        fault = posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return fault == 0;
}

/// Reads to the end of the pipe; false when it does not come in time. What exceeds `capacity` is
/// dropped.
static bool read_all(int reader, int timeout_ms, char *text, size_t capacity)
{
    int64_t deadline = now_ms() + timeout_ms;
    size_t size = 0;
    for (;;) {
        text[size] = '\0';
        struct pollfd slot = {.fd = reader, .events = POLLIN};
        int64_t remaining = deadline - now_ms();
        if (remaining <= 0)
            return false;
        int count = poll(&slot, 1, (int)remaining);
        if (count <= 0)
            continue;
        char spill[512];
        bool is_full = size + 1 >= capacity;
        ssize_t taken = is_full ? read(reader, spill, sizeof(spill))
                                : read(reader, text + size, capacity - 1 - size);
        if (taken == 0)
            return true;
        if (taken < 0 && errno != EINTR)
            return false;
        if (taken > 0 && !is_full)
            size += (size_t)taken;
    }
}

bool run_program(char *const *argv, int timeout_ms, char *text, size_t capacity)
{
    int fds[2];
    pid_t pid;
    text[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    bool has_started = start(argv, fds[1], &pid);
    close(fds[1]);
    bool is_complete = has_started && read_all(fds[0], timeout_ms, text, capacity);
    close(fds[0]);
    if (!has_started)
        return false;
    if (!is_complete)
        kill(pid, SIGKILL);
    int wait_status;
    while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
        continue;
    return is_complete && wait_status == 0;
}

void choose_python(char *path, size_t capacity)
{
    static const char name[] = "python3";
    ssize_t size = readlink("/proc/self/exe", path, capacity - sizeof(name));
    while (size > 0 && path[size - 1] != '/')
        size--;
    memcpy(path + (size > 0 ? size : 0), name, sizeof(name));
    if (access(path, X_OK) != 0)
        memcpy(path, name, sizeof(name));
}

static const char opening[] = "import os, signal, sys\n"
                              "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
                              "if signal.getsignal(signal.SIGINT) is signal.default_int_handler:\n"
                              "    signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
                              "if sys.path[:1] == ['']:\n"
                              "    del sys.path[0]\n";

int become_python(const char *purpose, const char *code, char *const *arguments)
{
    char python[4096], option[] = "-c";
    size_t count = 0;
    while (arguments[count])
        count++;
    size_t size = strlen(opening) + strlen(code) + 1;
    char *text = allocate(size, 1), **argv = allocate(count + 4, sizeof(*argv));
    snprintf(text, size, "%s%s", opening, code);
    choose_python(python, sizeof(python));
    argv[0] = python;
    argv[1] = option;
    argv[2] = text;
    memcpy(argv + 3, arguments, count * sizeof(*argv));
    execvp(python, argv);
    fprintf(stderr, "%s, and %s cannot be run: %s: install Python 3.9 or later\n", purpose, python,
            strerror(errno));
    free(argv);
    free(text);
    return 1;
}
