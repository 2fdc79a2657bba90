// SPDX-License-Identifier: Apache-2.0
/// The launcher's `config` message (docs/protocol.md, "Node"), checked once and then read as a
/// struct; and the environment that it gives a trainer: the launcher's variables, TensorFlow's, and
/// the user's over both.
#ifndef TFOS_NODE_CONFIG_H
#define TFOS_NODE_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
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
    const char *directory;                 ///< of the trainer; NULL: the node's
    const json_t *argv;                    ///< of the trainer: strings, at least one
    const json_t *environment;             ///< name: value or null to unset; NULL: nothing
    const json_t *tensorboard_argv;        ///< TensorBoard's command; NULL: none is wanted
    int64_t tensorboard_port;              ///< 0: any
    const char *tensorboard_log_directory; ///< for the feed's figures; NULL: they are not shown
    int64_t executor_id;
    int64_t launch;
    int64_t executor_pid;      ///< 0: not watched
    int64_t tf_port;           ///< 0: any
    int64_t join_timeout_ms;   ///< 0: as tfos__cluster_join() has it
    int64_t gpu_count;         ///< 0: none
    double gpu_fraction;       ///< of each; 0: it has them alone
    const char *gpu_addresses; ///< as Spark gave them, divided by commas; NULL: they are searched
    bool is_gpu_required;      ///< else the CPU will do where the machine has none
    bool is_feeding;
    const char *queues; ///< names, divided by commas; NULL: "input"
};

/// Takes over `message`, also when it fails. INVALID names the key and what was expected.
enum tfos_status tfos__node_config_init(struct tfos__node_config *config, json_t *message,
                                        struct tfos_error *err);

void tfos__node_config_clear(struct tfos__node_config *config);

/// Strings as execve() takes them. All zero is an empty list.
struct tfos__node_strings {
    char **items; ///< owned, ended by NULL; no item has no array either
    size_t count;
};

/// Takes over `item`; NULL, for want of memory, gives NO_MEMORY.
enum tfos_status tfos__node_strings_append(struct tfos__node_strings *strings, char *item,
                                           struct tfos_error *err);

void tfos__node_strings_clear(struct tfos__node_strings *strings);

/// A copy of `items` (ended by NULL, as `environ` is), in which no name is there twice.
enum tfos_status tfos__node_environment_init(struct tfos__node_strings *environment,
                                             char *const *items, struct tfos_error *err);

/// Sets a variable; NULL unsets it.
enum tfos_status tfos__node_environment_set(struct tfos__node_strings *environment,
                                            const char *name, const char *value,
                                            struct tfos_error *err);

/// Sets and unsets what `overrides` (an object of strings and nulls, or NULL) says.
enum tfos_status tfos__node_environment_apply(struct tfos__node_strings *environment,
                                              const json_t *overrides, struct tfos_error *err);

/// TF_CONFIG for one task of `cluster_spec`; the caller frees it with tfos__free(). An evaluator is
/// not part of TensorFlow's "cluster"; "environment" is "cloud" where there is a chief or master.
enum tfos_status tfos__node_environment_tf_config(const json_t *cluster_spec, const char *job_name,
                                                  int64_t task_index, char **out,
                                                  struct tfos_error *err);

#endif
