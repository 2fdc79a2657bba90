// SPDX-License-Identifier: Apache-2.0
// A launcher finds the server by its socket's name. Where nobody listens, it binds that name itself
// and hands the listening socket to a new server: of several launchers one gets the name, and the
// others wait in the socket's backlog while the server imports.
#include "node/fork_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <tfos/node.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/listener.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/socket.h"
#include "base/text.h"
#include "node/config.h"

#define CONNECT_TIMEOUT_MS 30000
#define IMPORT_TIMEOUT_MS 600000
#define REQUEST_TIMEOUT_MS 10000
#define IDLE_MS 600000
#define RETRY_MS 10
#define DIGEST_LENGTH 32 // digits of the digest that are in the name
#define NAME_SIZE 80

enum passed { PASSED_LINK, PASSED_STDOUT, PASSED_STDERR, PASSED_COUNT };

extern char **environ;

// ---- the launcher's side

static enum tfos_status append_all(struct tfos__buffer *text,
                                   const struct tfos__node_strings *strings, struct tfos_error *err)
{
    for (size_t i = 0; i < strings->count; i++)
        TFOS__TRY(tfos__buffer_append(text, strings->items[i], strlen(strings->items[i]) + 1, err));
    return tfos__buffer_append(text, "", 1, err);
}

/// "tfos-fork-<executor's pid>-<digest>".
static enum tfos_status make_name(json_int_t executor_pid,
                                  const struct tfos__node_strings *arguments,
                                  const struct tfos__node_strings *environment,
                                  char name[NAME_SIZE], struct tfos_error *err)
{
    char digest[TFOS__DIGEST_TEXT] = "";
    struct tfos__buffer text = {0};
    enum tfos_status status = append_all(&text, arguments, err);
    if (status == TFOS_OK)
        status = append_all(&text, environment, err);
    if (status == TFOS_OK) {
        struct tfos_view view = {text.data, tfos__buffer_size(&text)};
        status = tfos__text_print_digest(view, "node", digest, err);
    }
    snprintf(name, NAME_SIZE, "tfos-fork-%lld-%.*s", (long long)executor_pid, DIGEST_LENGTH,
             digest);
    tfos__buffer_clear(&text);
    return status;
}

/// The program that a trainer is, and the environment, in which a variable tells it to be a server.
static enum tfos_status make_command(const json_t *config, struct tfos__node_strings *arguments,
                                     struct tfos__node_strings *environment, struct tfos_error *err)
{
    size_t i;
    const json_t *argument;
    char *task = tfos__format("%lld %s", (long long)tfos__json_int_or(config, "executor_pid", 0),
                              tfos__json_string_or(config, "preload", ""));
    enum tfos_status status = task ? TFOS_OK : tfos__no_memory(err, "node", "a fork server");
    json_array_foreach(json_object_get(config, "argv"), i, argument)
    {
        if (status == TFOS_OK)
            status = tfos__node_strings_append(arguments, tfos__strdup(json_string_value(argument)),
                                               err);
    }
    if (status == TFOS_OK)
        status = tfos__node_environment_init(environment, environ, err);
    if (status == TFOS_OK)
        status =
            tfos__node_environment_apply(environment, json_object_get(config, "environment"), err);
    if (status == TFOS_OK)
        status = tfos__node_environment_set(environment, TFOS_FORK_SERVER_VARIABLE, task, err);
    tfos__free(task);
    return status;
}

/// AGAIN when another launcher has the name already.
static enum tfos_status start_server(const char *name, const struct tfos__node_strings *arguments,
                                     const struct tfos__node_strings *environment,
                                     struct tfos_error *err)
{
    int listener;
    pid_t pid;
    enum tfos_status status = tfos__listener_open_unix(name, &listener, err);
    if (status < 0)
        return status == TFOS_BUSY ? TFOS_AGAIN : status;
    status = tfos__process_spawn_session(arguments->items, environment->items, listener, &pid, err);
    close(listener);
    return status;
}

static enum tfos_status connect_or_start(const json_t *config, int *fd, struct tfos_error *err)
{
    char name[NAME_SIZE];
    struct tfos__node_strings arguments = {0}, environment = {0};
    int64_t deadline = tfos__deadline(CONNECT_TIMEOUT_MS);
    enum tfos_status status = make_command(config, &arguments, &environment, err);
    if (status == TFOS_OK)
        status = make_name(tfos__json_int_or(config, "executor_pid", 0), &arguments, &environment,
                           name, err);
    while (status == TFOS_OK) {
        status = tfos__socket_connect_unix(name, TFOS__UNTIL(deadline), fd, err);
        if (status != TFOS_NOT_FOUND || tfos__remaining_ms(deadline) == 0)
            break;
        status = start_server(name, &arguments, &environment, err);
        if (status == TFOS_AGAIN) {
            poll(NULL, 0, RETRY_MS);
            status = TFOS_OK;
        }
    }
    tfos__node_strings_clear(&arguments);
    tfos__node_strings_clear(&environment);
    return status;
}

/// The node's descriptors: what this process has closed is /dev/null there.
static enum tfos_status send_request(struct tfos__channel *server, int fd, struct tfos_error *err)
{
    int passed[PASSED_COUNT] = {fd, tfos__process_standard_fd(STDOUT_FILENO),
                                tfos__process_standard_fd(STDERR_FILENO)};
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot open /dev/null");
    for (int i = 0; i < PASSED_COUNT; i++)
        passed[i] = passed[i] < 0 ? null_fd : passed[i];
    enum tfos_status status =
        tfos__channel_send(server, json_pack("{s:s}", "type", "fork"), passed, PASSED_COUNT,
                           tfos__deadline(REQUEST_TIMEOUT_MS), err);
    close(null_fd);
    return status;
}

static enum tfos_status request_fork(struct tfos__channel *server, int fd, pid_t *pid, int *pidfd,
                                     struct tfos_error *err)
{
    json_t *answer;
    int fds[TFOS__FRAME_DESCRIPTORS];
    int count = 0;
    enum tfos_status status = send_request(server, fd, err);
    // A server that has answered already closes its end.
    if (status < 0 && status != TFOS_CLOSED)
        return status;
    TFOS__TRY(tfos__channel_receive(server, &answer, fds, &count, tfos__deadline(IMPORT_TIMEOUT_MS),
                                    err));
    *pid = (pid_t)tfos__json_int_or(answer, "pid", 0);
    json_decref(answer);
    if (count == 0)
        return tfos__fail(err, TFOS_IO, "node: the fork server could not fork");
    *pidfd = fds[0];
    for (int i = 1; i < count; i++)
        close(fds[i]);
    return TFOS_OK;
}

static enum tfos_status launch(const json_t *config, int fd, pid_t *pid, int *pidfd,
                               struct tfos_error *err)
{
    int server_fd;
    struct tfos__channel *server;
    TFOS__TRY(connect_or_start(config, &server_fd, err));
    TFOS__TRY(tfos__channel_open(server_fd, TFOS__CHANNEL_UNIX, NULL, "fork server", &server, err));
    enum tfos_status status = request_fork(server, fd, pid, pidfd, err);
    tfos__channel_close(server);
    return status;
}

enum tfos_status tfos__node_fork_server_launch(const json_t *config, int fd, pid_t *pid, int *pidfd,
                                               struct tfos_error *err)
{
    enum tfos_status status = launch(config, fd, pid, pidfd, err);
    // A server that was idle may have ended just when it was asked.
    if (status == TFOS_CLOSED)
        status = launch(config, fd, pid, pidfd, err);
    if (status == TFOS_CLOSED)
        return tfos__fail(err, TFOS_CLOSED,
                          "node: the process that preloads \"%s\" ended before it could start a "
                          "node; the executor's log may say why",
                          tfos__json_string_or(config, "preload", ""));
    return status;
}

// ---- the server's side

struct fork_server {
    int listener;    ///< owned
    int executor_fd; ///< owned pidfd; -1: not watched
    int signal_fd;   ///< owned
    int node_count;  ///< nodes that run
    const struct tfos_node_forker *forker;
};

/// In the forked process: the life of a node. It does not return.
static void run_node(const struct fork_server *server, const int passed[PASSED_COUNT])
{
    struct tfos_error err;
    struct tfos__spawn_options options = {
        .stdin_fd = -1,
        .stdout_fd = passed[PASSED_STDOUT],
        .stderr_fd = passed[PASSED_STDERR],
        .inherited_fds = &passed[PASSED_LINK],
        .inherited_count = 1,
        .new_session = true,
    };
    enum tfos_status status = tfos__process_become(&options, &err);
    (void)prctl(PR_SET_NAME, "tfos-node", 0, 0, 0);
    if (status == TFOS_OK)
        status = tfos_node_run(STDERR_FILENO + 1, server->forker, &err);
    if (status < 0)
        dprintf(STDERR_FILENO, "%s\n", err.message);
    _exit(status < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/// Forks a node and tells the launcher. A launcher that has gone ends its node by that.
static enum tfos_status fork_node(struct fork_server *server, struct tfos__channel *launcher,
                                  const int passed[PASSED_COUNT], struct tfos_error *err)
{
    int pidfd;
    pid_t pid = server->forker->fork(server->forker->context);
    if (pid == 0)
        run_node(server, passed);
    if (pid < 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot fork process %d", (int)getpid());
    server->node_count++;
    TFOS__TRY(tfos__process_watch(pid, &pidfd, err));
    enum tfos_status status =
        tfos__channel_send(launcher, json_pack("{s:s, s:i}", "type", "forked", "pid", (int)pid),
                           &pidfd, 1, tfos__deadline(REQUEST_TIMEOUT_MS), err);
    close(pidfd);
    return status;
}

static enum tfos_status take_request(struct fork_server *server, struct tfos__channel *launcher,
                                     struct tfos_error *err)
{
    json_t *request;
    int fds[TFOS__FRAME_DESCRIPTORS];
    int count = 0;
    TFOS__TRY(tfos__channel_receive(launcher, &request, fds, &count,
                                    tfos__deadline(REQUEST_TIMEOUT_MS), err));
    enum tfos_status status =
        count == PASSED_COUNT
            ? fork_node(server, launcher, fds, err)
            : tfos__fail(err, TFOS_CORRUPT,
                         "node: a launcher sent %d descriptors to the fork server", count);
    for (int i = 0; i < count; i++)
        close(fds[i]);
    json_decref(request);
    return status;
}

/// What fails is that launcher's, which learns it by the end of its connection; the log says why. A
/// launcher that closes its end has its answer, or has gone.
static void serve_launcher(struct fork_server *server)
{
    int fd;
    char peer[TFOS__ADDRESS_SIZE];
    struct tfos_error err;
    struct tfos__channel *launcher = NULL;
    enum tfos_status status = tfos__socket_accept(server->listener, &fd, peer, &err);
    if (status == TFOS_OK)
        status = tfos__channel_open(fd, TFOS__CHANNEL_UNIX, NULL, peer, &launcher, &err);
    if (status == TFOS_OK)
        status = take_request(server, launcher, &err);
    tfos__channel_close(launcher);
    if (status < 0 && status != TFOS_CLOSED)
        dprintf(STDERR_FILENO, "%s\n", err.message);
}

static void reap(struct fork_server *server)
{
    struct signalfd_siginfo info;
    while (read(server->signal_fd, &info, sizeof(info)) == sizeof(info))
        continue;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        server->node_count--;
}

static enum tfos_status open_server(struct fork_server *server, int64_t executor_pid,
                                    struct tfos_error *err)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    (void)prctl(PR_SET_NAME, "tfos-forkserver", 0, 0, 0);
    if (sigprocmask(SIG_BLOCK, &mask, NULL) != 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot block signals");
    server->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (server->signal_fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot watch signals");
    int is_listening = 0;
    socklen_t size = sizeof(is_listening);
    (void)getsockopt(server->listener, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size);
    if (!is_listening || fcntl(server->listener, F_SETFD, FD_CLOEXEC) != 0)
        return tfos__fail(
            err, TFOS_INVALID,
            "node: descriptor %d does not listen; only a launcher starts a fork server",
            server->listener);
    return executor_pid ? tfos__process_watch((pid_t)executor_pid, &server->executor_fd, err)
                        : TFOS_OK;
}

enum tfos_status tfos_node_serve_forks(int listener_fd, int64_t executor_pid,
                                       const struct tfos_node_forker *forker,
                                       struct tfos_error *err)
{
    struct fork_server server = {
        .listener = listener_fd, .executor_fd = -1, .signal_fd = -1, .forker = forker};
    enum tfos_status status = open_server(&server, executor_pid, err);
    while (status == TFOS_OK) {
        struct pollfd slots[] = {{.fd = server.listener, .events = POLLIN},
                                 {.fd = server.signal_fd, .events = POLLIN},
                                 {.fd = server.executor_fd, .events = POLLIN}};
        int count = poll(slots, 3, server.node_count > 0 ? -1 : IDLE_MS);
        if (count < 0 && errno != EINTR)
            status = tfos__fail_errno(err, TFOS_IO, "node: cannot wait for launchers");
        if (slots[2].revents || count == 0)
            break;
        if (slots[1].revents)
            reap(&server);
        if (slots[0].revents)
            serve_launcher(&server);
    }
    const int fds[] = {server.listener, server.signal_fd, server.executor_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    return status;
}
