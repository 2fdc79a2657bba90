// SPDX-License-Identifier: Apache-2.0
/// The launcher's `config` message (docs/protocol.md, "Node"), checked once and then read as a
/// struct.
#ifndef TFOS_NODE_CONFIG_H
#define TFOS_NODE_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

/// Strings and values are borrowed from `object`.
struct tfos__node_config {
    json_t *object; ///< owned
    const char *cluster_id;
    const char *key;
    const char *address; ///< of the rendezvous
    const char *host; ///< to advertise; NULL: the local address of the connection to the rendezvous
    const char *executor;
    const char *directory;           ///< of the trainer; NULL: the node's
    const json_t *argv;              ///< of the trainer: strings, at least one
    const json_t *environment;       ///< name: value or null to unset; NULL: nothing
    const json_t *board_argv;        ///< TensorBoard's command; NULL: none is wanted
    int64_t board_port;              ///< 0: any
    const char *board_log_directory; ///< for the feed's figures; NULL: they are not shown
    int64_t executor_id;
    int64_t launch;
    int64_t executor_pid;    ///< 0: not watched
    int64_t tf_port;         ///< 0: any
    int64_t join_timeout_ms; ///< 0: as tfos__cluster_member_open() has it
    bool is_feeding;
    const char *queues; ///< names, divided by commas; NULL: "input"
};

/// Takes over `message`, also when it fails. INVALID names the key and what was expected.
enum tfos_status tfos__node_config_init(struct tfos__node_config *config, json_t *message,
                                        struct tfos_error *err);

void tfos__node_config_clear(struct tfos__node_config *config);

#endif
