// SPDX-License-Identifier: Apache-2.0
/// What tests of nodes share: a real rendezvous as the driver, nodes launched by the real command,
/// and waits for what they say. TFOS_COMMAND and TFOS_TRAINER (tests/c/fake_trainer.c) are paths
/// that CMake defines.
#ifndef TFOS_TEST_NODES_H
#define TFOS_TEST_NODES_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tfos.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define PATIENCE_MS 20000
#define MAX_NODES 4

/// A driver, the nodes launched so far, and every event seen.
struct cluster {
    char id[64];
    struct tfos_rendezvous *rendezvous;
    struct tfos_node_launch *launches[MAX_NODES];
    int pids[MAX_NODES]; ///< of the node processes, from the driver's status
    json_t *events;
    int fd_count; ///< descriptors of this process before it all
};

static int count_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void pause_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/// A listener on every address and `port` (0: any) that shares it with whoever of this user shares
/// it too.
static inline int listen_sharing(int port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1, off = 0;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
    assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static inline int port_of(int fd)
{
    struct sockaddr_in6 address;
    socklen_t size = sizeof(address);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin6_port);
}

/// Whether process `pid` is there and no zombie.
static bool is_alive(int pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t size = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[size] = '\0';
    const char *bracket = strrchr(text, ')');
    return bracket && bracket[2] != 'Z' && bracket[2] != 'X';
}

static inline void assert_gone(int pid)
{
    assert_true(pid > 0);
    int64_t deadline = tfos__deadline(PATIENCE_MS);
    while (is_alive(pid)) {
        if (tfos__remaining_ms(deadline) == 0)
            fail_msg("process %d is still there", pid);
        pause_ms(10);
    }
}

static inline void cluster_open_with(struct cluster *cluster,
                                     struct tfos_rendezvous_options options)
{
    struct tfos_error err;
    *cluster = (struct cluster){.fd_count = count_fds()};
    snprintf(cluster->id, sizeof(cluster->id), "test-%d", (int)getpid());
    options.cluster_id = cluster->id;
    options.key = KEY;
    options.listen_host = options.host = "127.0.0.1";
    assert_done(tfos_rendezvous_open(&options, &cluster->rendezvous, &err));
    cluster->events = json_array();
}

static inline void cluster_open(struct cluster *cluster, int node_count, bool is_feeding)
{
    cluster_open_with(cluster, (struct tfos_rendezvous_options){.node_count = node_count,
                                                                .is_feeding = is_feeding});
}

/// The configuration of a node whose trainer is `argv` (ended by NULL); the test may add to it.
static inline json_t *make_config(const struct cluster *cluster, int executor_id,
                                  const char *const *argv)
{
    json_t *arguments = json_array();
    for (; *argv; argv++)
        json_array_append_new(arguments, json_string(*argv));
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:o, s:o, s:s, s:s, s:b, s:{s:i}}",
                     "cluster_id", cluster->id, "key", KEY, "address",
                     tfos_rendezvous_address(cluster->rendezvous), "executor_id", executor_id,
                     "launch", 1, "executor", "7", "argv", arguments, "host", json_null(),
                     "default_fs", "file://", "working_dir", "/", "release_port", 1, "user",
                     "answer", 42);
}

/// Launches a node with `config` (taken over).
static inline void launch(struct cluster *cluster, int slot, json_t *config)
{
    struct tfos_error err;
    char *text = json_dumps(config, 0);
    assert_done(tfos_node_launch(TFOS_COMMAND, text, "payload", 7, &cluster->launches[slot], &err));
    free(text);
    json_decref(config);
}

static inline void launch_shell(struct cluster *cluster, int slot, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    launch(cluster, slot, make_config(cluster, slot, argv));
}

static inline void launch_trainer(struct cluster *cluster, int slot, const char *verb,
                                  bool is_feeding)
{
    const char *const argv[] = {TFOS_TRAINER, verb, NULL};
    json_t *config = make_config(cluster, slot, argv);
    json_object_set_new(config, "feeding", json_boolean(is_feeding));
    launch(cluster, slot, config);
}

/// Waits for the node's message of this type to its launcher; others before it are dropped. The
/// caller drops it.
static inline json_t *await_message(struct cluster *cluster, int slot, const char *type)
{
    struct tfos_error err;
    int64_t deadline = tfos__deadline(PATIENCE_MS);
    for (;;) {
        char *text;
        enum tfos_status status = tfos_node_launch_next(cluster->launches[slot],
                                                        tfos__remaining_ms(deadline), &text, &err);
        if (status != TFOS_OK)
            fail_msg("no \"%s\" from the node: %s: %s", type, tfos_status_name(status),
                     err.message);
        json_t *message = json_loads(text, 0, NULL);
        tfos_free(text);
        const char *found = json_string_value(json_object_get(message, "type"));
        if (strcmp(found, type) == 0)
            return message;
        if (strcmp(found, "failed") == 0)
            fail_msg("the node failed: %s", json_string_value(json_object_get(message, "message")));
        json_decref(message);
    }
}

static inline json_int_t await_number(struct cluster *cluster, int slot, const char *type,
                                      const char *key)
{
    json_t *message = await_message(cluster, slot, type);
    json_int_t number = json_integer_value(json_object_get(message, key));
    json_decref(message);
    return number;
}

/// Whether `event` is of this kind and, where `text` is given, has it in one of its members.
static inline bool is_event(const json_t *event, const char *kind, const char *text)
{
    if (strcmp(json_string_value(json_object_get(event, "event")), kind) != 0)
        return false;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)event, key, value)
    {
        const char *found = json_string_value(value);
        if (!text || (found && strstr(found, text)))
            return true;
    }
    return false;
}

/// Waits for another event.
static inline void await_next_event(struct cluster *cluster)
{
    struct tfos_error err;
    char *json;
    enum tfos_status status =
        tfos_rendezvous_next_event(cluster->rendezvous, PATIENCE_MS, &json, &err);
    if (status != TFOS_OK) {
        char *seen = json_dumps(cluster->events, JSON_INDENT(1));
        fail_msg("no further event after %s", seen);
    }
    json_array_append_new(cluster->events, json_loads(json, 0, NULL));
    tfos_free(json);
}

/// The first event of this kind with `text` in it (NULL: any), borrowed; waits for it.
static inline const json_t *await_event(struct cluster *cluster, const char *kind, const char *text)
{
    struct tfos_error err;
    int64_t deadline = tfos__deadline(PATIENCE_MS);
    for (size_t i = 0;; i++) {
        while (i == json_array_size(cluster->events)) {
            char *json;
            enum tfos_status status = tfos_rendezvous_next_event(
                cluster->rendezvous, tfos__remaining_ms(deadline), &json, &err);
            if (status != TFOS_OK) {
                char *seen = json_dumps(cluster->events, JSON_INDENT(1));
                fail_msg("no event \"%s\" with \"%s\" among %s", kind, text ? text : "", seen);
            }
            json_array_append_new(cluster->events, json_loads(json, 0, NULL));
            tfos_free(json);
        }
        const json_t *event = json_array_get(cluster->events, i);
        if (is_event(event, kind, text))
            return event;
    }
}

/// Whether such an event is among those seen so far.
static inline bool has_event(const struct cluster *cluster, const char *kind, const char *text)
{
    size_t i;
    const json_t *event;
    json_array_foreach(cluster->events, i, event)
    {
        if (is_event(event, kind, text))
            return true;
    }
    return false;
}

/// A member of a node in the driver's status document.
static inline json_int_t node_number(const struct cluster *cluster, int executor_id,
                                     const char *key)
{
    struct tfos_error err;
    char *text;
    assert_done(tfos_rendezvous_get_status(cluster->rendezvous, &text, &err));
    json_t *status = json_loads(text, 0, NULL);
    tfos_free(text);
    json_t *node = json_array_get(json_object_get(status, "nodes"), (size_t)executor_id);
    json_int_t number = json_integer_value(json_object_get(node, key));
    json_decref(status);
    return number;
}

/// Waits until the cluster runs and notes the node processes.
static inline void await_running(struct cluster *cluster, int node_count)
{
    struct tfos_error err;
    assert_done(tfos_rendezvous_wait(cluster->rendezvous, TFOS_PHASE_RUNNING, PATIENCE_MS, &err));
    for (int i = 0; i < node_count; i++)
        cluster->pids[i] = (int)node_number(cluster, i, "pid");
}

/// Ends everything, and checks that nothing is left: no node process and no descriptor.
static inline void cluster_close(struct cluster *cluster)
{
    tfos_rendezvous_close(cluster->rendezvous);
    for (int i = 0; i < MAX_NODES; i++)
        tfos_node_launch_close(cluster->launches[i]);
    for (int i = 0; i < MAX_NODES; i++) {
        if (cluster->pids[i])
            assert_gone(cluster->pids[i]);
    }
    json_decref(cluster->events);
    assert_int_equal(count_fds(), cluster->fd_count);
}

#endif
