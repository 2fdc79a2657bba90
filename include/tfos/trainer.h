// SPDX-License-Identifier: Apache-2.0
/// The trainer's side of a node: what the process that runs the user's function can ask. One
/// background thread reads the node's messages. Every function here is thread-safe unless it says
/// otherwise, and INVALID in a process that was forked from the trainer's (<tfos/fork.h>). A
/// trainer that does without this interface should end when TFOS_TRAINER_FD does: a node that is
/// killed cannot end it.
#ifndef TFOS_TRAINER_H
#define TFOS_TRAINER_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/collective.h>
#include <tfos/feed.h>
#include <tfos/status.h>
#include <tfos/wait.h>

#define TFOS_TRAINER_FD 3 ///< the descriptor by which a trainer reaches its node

struct tfos_trainer;

/// Takes over `fd` (TFOS_TRAINER_FD), arranges that this process dies with its node, and receives
/// the context.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_trainer_open(int fd, struct tfos_trainer **out,
                                                            struct tfos_error *err);

/// The context, a JSON object (docs/protocol.md, "Context"); valid until close.
TFOS_API const char *tfos_trainer_context(const struct tfos_trainer *trainer);

/// The descriptor of the payload (the pickled function and arguments; a memfd), owned by the
/// trainer; -1 for none.
TFOS_API int tfos_trainer_payload_fd(const struct tfos_trainer *trainer);

/// A reader for queue `name` ("input"); there is one per process and name, and every call gives the
/// same. The trainer owns it and closes it. INVALID in a forked process. NOT_FOUND when this node
/// is not fed, or has no such queue: it names those there are.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_trainer_open_feed(struct tfos_trainer *trainer,
                                                                 const char *name,
                                                                 struct tfos_feed_reader **out,
                                                                 struct tfos_error *err);

/// As tfos_feed_reader_check(), for all queues: INVALID in a forked process, and here once one has
/// tried to read. To be asked before the trainer's work counts as done.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_trainer_check(struct tfos_trainer *trainer,
                                                             struct tfos_error *err);

/// What the driver said last of the rows of `queue` (tfos_rendezvous_describe_feed()), waiting for
/// it if it has said nothing yet; `wait` has 600,000 ms for that. The caller frees `*schema_json`
/// with tfos_free(). NOT_FOUND as for open_feed(); TIMEOUT; CLOSED when the node has gone, or the
/// wait was interrupted.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_trainer_await_description(struct tfos_trainer *trainer, const char *queue,
                               const struct tfos_wait *wait, char **schema_json,
                               struct tfos_error *err);

/// What the driver said of the rows of feed `feed` of `queue`, the JSON of a Spark schema, as
/// Arrow's. The caller releases `*schema`, whose `release` is NULL where the driver said that rows
/// will come, but not what they are. AGAIN: it has said nothing of this feed within `timeout_ms`
/// (0: by now). NOT_FOUND as for open_feed(); CORRUPT and UNSUPPORTED as from
/// tfos_spark_schema_parse(); CLOSED when the node has gone.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_trainer_get_schema(struct tfos_trainer *trainer, const char *queue, int64_t feed,
                        int64_t timeout_ms, struct ArrowSchema *schema, struct tfos_error *err);

/// Whether the driver said that feed `feed` of `queue` has the rows of the feed before it again.
TFOS_API bool tfos_trainer_is_repeat(struct tfos_trainer *trainer, const char *queue, int64_t feed);

/// All chiefs, masters and workers give a value (JSON) under the same `name`, and each gets the
/// array of all values in the order of executor ids. Each name is used once by each member. `wait`
/// has 600,000 ms for it. TIMEOUT names the members that gave no value, which takes 2
/// s more where the driver does not answer; CLOSED when one has ended, or the wait was interrupted.
/// `values_json` NULL: gives the value, and does not wait.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_trainer_agree(struct tfos_trainer *trainer, const char *name, const char *value_json,
                   const struct tfos_wait *wait, char **values_json, struct tfos_error *err);

/// Opens a group whose ranks are the chiefs, masters and workers, in the order of executor ids. Of
/// `options` rank, size, key, exchange and context are set here, and host where it is NULL. All
/// open the groups of one name in one order. `wait` may end the wait for the others; its timeout is
/// that of the options. The group is closed before the trainer. UNSUPPORTED under a node that gave
/// no key; the rest as tfos_trainer_agree() and tfos_collective_open().
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_trainer_open_collective(
    struct tfos_trainer *trainer, const struct tfos_collective_options *options,
    const struct tfos_wait *wait, struct tfos_collective **out, struct tfos_error *err);

/// A member of agreements that may outlive its trainer: for datasets of files in step, whose passes
/// TensorFlow's iterators hold. It has the form of their options agree, is_interrupted, release and
/// name, with itself as the context. Names of members are numbered in the order of opening.
struct tfos_trainer_member;

/// `timeout_ms` is that of each agreement; 0: that of tfos_trainer_agree().
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_trainer_member_open(struct tfos_trainer *trainer,
                                                                   int64_t timeout_ms,
                                                                   struct tfos_trainer_member **out,
                                                                   struct tfos_error *err);

TFOS_API const char *tfos_trainer_member_name(const struct tfos_trainer_member *member);

/// As tfos_trainer_agree(); CLOSED once the trainer is closed, which also ends waits.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_trainer_member_agree(void *member, const char *name,
                                                                    const char *value_json,
                                                                    char **values_json,
                                                                    struct tfos_error *err);

/// Whether the trainer is being closed, or was.
TFOS_API bool tfos_trainer_member_is_interrupted(void *member);

/// NULL is accepted. Any thread.
TFOS_API void tfos_trainer_member_close(void *member);

/// Figures for this node's status (an object of numbers, such as {"step": 12, "loss": 0.3},
/// 16,384 bytes at most); the newest counts.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_trainer_report(struct tfos_trainer *trainer, const char *values_json, struct tfos_error *err);

/// What the function has returned, or a part of it, in any text of at most 1 MiB: the driver gets
/// each as an event `result` (docs/protocol.md), in the order of the calls.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_trainer_put_result(struct tfos_trainer *trainer, const char *text, struct tfos_error *err);

/// Gives up the node's reservation of TensorFlow's port; once it returns, the port can be bound.
/// TIMEOUT when the node does not answer within 30,000 ms; CLOSED when it has gone.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_trainer_release_port(struct tfos_trainer *trainer,
                                                                    struct tfos_error *err);

/// Tells the cluster that this node wants no more rows, of any queue.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_trainer_terminate(struct tfos_trainer *trainer,
                                                                 struct tfos_error *err);

/// The reason to report when this process now ends with a failure (a traceback).
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_trainer_fail(struct tfos_trainer *trainer, const char *message, struct tfos_error *err);

/// Ends the thread and the readers. NULL is accepted.
TFOS_API void tfos_trainer_close(struct tfos_trainer *trainer);

#endif
