// SPDX-License-Identifier: Apache-2.0
/// The words for what has gone wrong with a cluster: which node, where, why, and what to do.
#ifndef TFOS_CLUSTER_EXPLANATION_H
#define TFOS_CLUSTER_EXPLANATION_H

#include <jansson.h>
#include <stddef.h>
#include <tfos/rendezvous.h>

#include "cluster/feeding.h"
#include "cluster/registry.h"

/// Copies `text` into `size` bytes, cut between characters of UTF-8 where it does not fit; bytes
/// that are no UTF-8 become '?', so that the copy can travel as JSON.
void tfos__explanation_copy(char *to, size_t size, const char *text);

/// How a trainer ended by its node's message, such as "exit status 3" or "signal 9 (Killed)".
void tfos__explanation_of_exit(const json_t *message, char *text, size_t size);

/// Why the cluster fails: the trainer of `entry` ended by `message` ("trainer" with state "ended"),
/// `exit` in words.
void tfos__explanation_of_end(const struct tfos__entry *entry, const json_t *message,
                              const char *exit, char *text, size_t size);

/// Why the cluster fails: the node itself said that it cannot go on.
void tfos__explanation_of_failure(const struct tfos__entry *entry, const char *message, char *text,
                                  size_t size);

/// Why the cluster fails: `entry` is lost by `cause`.
void tfos__explanation_of_loss(const struct tfos__entry *entry, const char *cause, char *text,
                               size_t size);

/// Who has given no value to an agreement, as a list. `values` are by executor id, NULL where none
/// was given.
void tfos__explanation_of_absence(const struct tfos__node_table *nodes, json_t *const *values,
                                  char *text, size_t size);

/// The TIMEOUT of a wait for `phase`: who is being waited for. `waited_ms` counts from the last
/// progress.
enum tfos_status tfos__explanation_of_timeout(const struct tfos__feeding *feeding,
                                              enum tfos_rendezvous_phase phase, int64_t waited_ms,
                                              struct tfos_error *err);

#endif
