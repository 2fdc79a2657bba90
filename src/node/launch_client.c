// SPDX-License-Identifier: Apache-2.0
// The launcher's side of a node: it starts the process, sends it configuration and payload, and
// reads its messages. The node ends when the socket closes, unless it is detached.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tfos/node.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/socket.h"
#include "base/thread.h"
#include "node/fork_server.h"

#define SEND_TIMEOUT_MS 30000
// For a node to end its trainer and itself before it is killed.
#define CLOSE_TIMEOUT_MS 10000
#define EXIT_TIMEOUT_MS 5000
#define REAPER_STACK_SIZE (64 * 1024)

extern char **environ;

struct tfos_node_launch {
    struct tfos__channel *channel; ///< owned
    pid_t pid;                     ///< 0 once reaped; a fork server's child, if that forked it
    int pidfd;                     ///< owned
    bool is_detached;
};

/// `*out` is the caller's to close, also when it fails after it was made.
static enum tfos_status make_payload(const void *payload, size_t size, int *out,
                                     struct tfos_error *err)
{
    int fd = memfd_create("tfos-payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot make a memfd for the payload");
    *out = fd;
    for (size_t done = 0; done < size;) {
        ssize_t written = write(fd, (const char *)payload + done, size - done);
        if (written < 0 && errno != EINTR)
            return tfos__fail_errno(err, TFOS_IO,
                                    "node: cannot write the payload of %zu bytes to a memfd", size);
        done += written > 0 ? (size_t)written : 0;
    }
    // The trainer maps it: nobody may shrink it under its feet.
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot seal the payload");
    return TFOS_OK;
}

static enum tfos_status parse_config(const char *text, json_t **out, struct tfos_error *err)
{
    json_t *config;
    if (tfos__fail_in(err, tfos__json_parse(text, strlen(text), &config, err), "node: config") < 0)
        return TFOS_INVALID;
    json_object_set_new(config, "type", json_string("config"));
    *out = config;
    return TFOS_OK;
}

static enum tfos_status spawn(struct tfos_node_launch *launch, const char *executable, int fd,
                              struct tfos_error *err)
{
    char verb[] = "node";
    char *argv[] = {(char *)executable, verb, NULL}; // which are not written to
    enum tfos_status status = tfos__process_spawn_session(argv, environ, fd, &launch->pid, err);
    if (status == TFOS_OK)
        status = tfos__process_watch(launch->pid, &launch->pidfd, err);
    return status;
}

static enum tfos_status start(struct tfos_node_launch *launch, const char *executable,
                              const json_t *config, struct tfos_error *err)
{
    int fd;
    TFOS__TRY(tfos__channel_open_pair("node", &launch->channel, &fd, err));
    enum tfos_status status =
        tfos__json_string_or(config, "preload", NULL)
            ? tfos__node_fork_server_launch(config, fd, &launch->pid, &launch->pidfd, err)
            : spawn(launch, executable, fd, err);
    close(fd);
    return status;
}

enum tfos_status tfos_node_launch(const char *executable, const char *config, const void *payload,
                                  size_t payload_size, struct tfos_node_launch **out,
                                  struct tfos_error *err)
{
    json_t *message;
    int payload_fd = -1;
    TFOS__TRY(parse_config(config, &message, err));
    struct tfos_node_launch *launch = tfos__alloc(1, sizeof(*launch));
    enum tfos_status status = TFOS_OK;
    if (!launch) {
        status = tfos__no_memory(err, "node", "a launch");
        goto drop_message;
    }
    launch->pidfd = -1;
    if (payload_size > 0)
        status = make_payload(payload, payload_size, &payload_fd, err);
    if (status == TFOS_OK)
        status = start(launch, executable, message, err);
    if (status < 0)
        goto close_launch;
    status = tfos__channel_send(launch->channel, message, &payload_fd, payload_fd >= 0,
                                tfos__deadline(SEND_TIMEOUT_MS), err);
    message = NULL;
    // A node that has ended already may have sent a reason, which launch_next() gives.
    if (status < 0 && status != TFOS_CLOSED)
        goto close_launch;
    status = TFOS_OK;
    *out = launch;
    launch = NULL;

close_launch:
    if (payload_fd >= 0)
        close(payload_fd);
    tfos_node_launch_close(launch);
drop_message:
    json_decref(message);
    return status;
}

/// The process has closed its socket, so it has ended or is about to.
static enum tfos_status fail_exited(struct tfos_node_launch *launch, struct tfos_error *err)
{
    char words[64] = "an unknown status";
    int wait_status;
    if (launch->pid &&
        tfos__socket_wait(launch->pidfd, POLLIN, tfos__deadline(EXIT_TIMEOUT_MS), NULL) ==
            TFOS_OK &&
        waitpid(launch->pid, &wait_status, 0) == launch->pid) {
        launch->pid = 0;
        tfos__process_describe(wait_status, words);
    }
    return tfos__fail(err, TFOS_CLOSED,
                      "node: the node process has ended with %s; the executor's log may say more",
                      words);
}

enum tfos_status tfos_node_launch_next(struct tfos_node_launch *launch, int64_t timeout_ms,
                                       char **json, struct tfos_error *err)
{
    json_t *message;
    enum tfos_status status = tfos__channel_receive(launch->channel, &message, NULL, NULL,
                                                    tfos__deadline(timeout_ms), err);
    if (status == TFOS_TIMEOUT)
        return TFOS_AGAIN;
    if (status == TFOS_CLOSED)
        return fail_exited(launch, err);
    TFOS__TRY(status);
    return tfos__json_print(message, "node", "a message", json, err);
}

enum tfos_status tfos_node_launch_detach(struct tfos_node_launch *launch, struct tfos_error *err)
{
    TFOS__TRY(tfos__channel_send(launch->channel, json_pack("{s:s}", "type", "detach"), NULL, 0,
                                 tfos__deadline(SEND_TIMEOUT_MS), err));
    launch->is_detached = true;
    return TFOS_OK;
}

static void *reap(void *argument)
{
    pid_t pid = (pid_t)(intptr_t)argument;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return NULL;
}

// Starts a thread that waits for the end of the process, which would else stay as a zombie for as
// long as this process lives. Without memory for a thread it does, which has no other effect.
static void start_reaper(pid_t pid)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    pthread_attr_setstacksize(&attributes, least > REAPER_STACK_SIZE ? least : REAPER_STACK_SIZE);
    (void)tfos__thread_start(&thread, &attributes, reap, (void *)(intptr_t)pid);
    pthread_attr_destroy(&attributes);
}

static void end_process(struct tfos_node_launch *launch)
{
    if (launch->pidfd < 0 ||
        tfos__socket_wait(launch->pidfd, POLLIN, tfos__deadline(CLOSE_TIMEOUT_MS), NULL) != TFOS_OK)
        kill(launch->pid, SIGKILL);
    reap((void *)(intptr_t)launch->pid);
}

void tfos_node_launch_close(struct tfos_node_launch *launch)
{
    if (!launch)
        return;
    tfos__channel_close(launch->channel);
    if (launch->pid && launch->is_detached)
        start_reaper(launch->pid);
    else if (launch->pid)
        end_process(launch);
    if (launch->pidfd >= 0)
        close(launch->pidfd);
    tfos__free(launch);
}

int64_t tfos_process_find_executor(int64_t pid)
{
    return tfos__process_find_executor((pid_t)pid);
}
