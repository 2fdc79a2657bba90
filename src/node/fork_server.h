// SPDX-License-Identifier: Apache-2.0
/// The fork server's clients: launchers whose configuration has "preload". There is one server for
/// each executor and each program, environment and list of modules. It listens on an abstract unix
/// socket, whose name is made of these; only its own user gets a fork.
#ifndef TFOS_NODE_FORK_SERVER_H
#define TFOS_NODE_FORK_SERVER_H

#include <jansson.h>
#include <sys/types.h>
#include <tfos/status.h>

/// Has a node forked whose launcher's socket is `fd` (the caller's to close), and starts the server
/// first where there is none. `config` is checked: "preload" is a string. It waits until the
/// modules are imported. `*pidfd` is the caller's. CLOSED when the server ended before it
/// answered.
enum tfos_status tfos__node_fork_server_launch(const json_t *config, int fd, pid_t *pid, int *pidfd,
                                               struct tfos_error *err);

#endif
