// SPDX-License-Identifier: Apache-2.0
/// Texts of a cluster's failures: which node, where, why, and what to do.
#ifndef TFOS_CLUSTER_FAILURE_TEXT_H
#define TFOS_CLUSTER_FAILURE_TEXT_H

#include <jansson.h>
#include <stddef.h>
#include <tfos/rendezvous.h>

#include "cluster/feed_scheduler.h"
#include "cluster/node_table.h"

/// Copies `text` into `size` bytes, cut between characters of UTF-8 where it does not fit; bytes
/// that are no UTF-8 become '?', so that the copy can travel as JSON.
void tfos__cluster_failure_text_copy(char *to, size_t size, const char *text);

/// How a trainer ended by its node's message, such as "exit status 3" or "signal 9 (Killed)".
void tfos__cluster_failure_text_of_exit(const json_t *message, char *text, size_t size);

/// Why the cluster fails: the trainer of `node` ended by `message` ("trainer" with state "ended"),
/// `exit` in words.
void tfos__cluster_failure_text_of_end(const struct tfos__cluster_node *node, const json_t *message,
                                       const char *exit, char *text, size_t size);

/// Why the cluster fails: the node itself reported that it cannot continue.
void tfos__cluster_failure_text_of_failure(const struct tfos__cluster_node *node,
                                           const char *message, char *text, size_t size);

/// Why the cluster fails: `node` is lost by `cause`.
void tfos__cluster_failure_text_of_loss(const struct tfos__cluster_node *node, const char *cause,
                                        char *text, size_t size);

/// Who has given no value to an agreement, as a list. `values` are by executor id, NULL where none
/// was given.
void tfos__cluster_failure_text_of_absence(const struct tfos__cluster_node_table *table,
                                           json_t *const *values, char *text, size_t size);

/// The TIMEOUT of a wait for `phase`: who is being waited for. `address` is the driver's, which
/// nodes that do not register may not reach; `waited_ms` counts from the last progress.
enum tfos_status
tfos__cluster_failure_text_of_timeout(const struct tfos__cluster_scheduler *scheduler,
                                      const char *address, enum tfos_rendezvous_phase phase,
                                      int64_t waited_ms, struct tfos_error *err);

#endif
