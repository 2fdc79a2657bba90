// SPDX-License-Identifier: Apache-2.0
/// What a trainer finds in its environment: the launcher's variables, TensorFlow's, and the user's
/// over both.
#ifndef TFOS_NODE_ENVIRONMENT_H
#define TFOS_NODE_ENVIRONMENT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

/// An environment as execve() takes it. All zero is an empty one that can be cleared.
struct tfos__environment {
    char **items; ///< owned, "name=value", ended by NULL
    size_t count;
};

/// A copy of `items` (ended by NULL, as `environ` is).
enum tfos_status tfos__environment_init(struct tfos__environment *environment, char *const *items,
                                        struct tfos_error *err);

/// Sets a variable; NULL unsets it.
enum tfos_status tfos__environment_set(struct tfos__environment *environment, const char *name,
                                       const char *value, struct tfos_error *err);

/// Sets and unsets what `overrides` (an object of strings and nulls, or NULL) says.
enum tfos_status tfos__environment_apply(struct tfos__environment *environment,
                                         const json_t *overrides, struct tfos_error *err);

void tfos__environment_clear(struct tfos__environment *environment);

/// TF_CONFIG for one task of `cluster_spec`; the caller frees it with tfos__free(). An evaluator is
/// not part of TensorFlow's "cluster"; "environment" is "cloud" where there is a chief or master.
enum tfos_status tfos__environment_tf_config(const json_t *cluster_spec, const char *job_name,
                                             int64_t task_index, char **out,
                                             struct tfos_error *err);

#endif
