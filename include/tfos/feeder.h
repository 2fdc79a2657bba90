// SPDX-License-Identifier: Apache-2.0
/// A feeder: one attempt of a Spark task to feed one partition. It asks the driver which node to
/// feed, opens a channel there, and listens to the driver while it feeds. One thread at a time.
#ifndef TFOS_FEEDER_H
#define TFOS_FEEDER_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>
#include <tfos/wait.h>

struct tfos_feeder;

/// All borrowed for the call. Zero means the default.
struct tfos_feeder_options {
    const char *address; ///< "host:port" of the rendezvous
    const char *cluster_id;
    const char *key;       ///< 64 hexadecimal digits
    const char *queue;     ///< NULL: "input"
    int64_t feed;          ///< number of the feed within its queue, from 1
    int64_t partition;     ///< from 0
    int64_t attempt;       ///< Spark's task attempt id: higher ones supersede lower ones
    int64_t channel_size;  ///< bytes
    bool has_results;      ///< the reader answers each row with a result
    bool is_remote;        ///< over TCP even to a node of this machine
    struct tfos_wait wait; ///< of every call: its timeout is the longest time in which the reader
                           ///< takes nothing, 600,000 ms; its context must outlive the feeder
    const char *job;       ///< whom to feed: NULL or "trainers", or "evaluator"
    int64_t ahead_rows;    ///< with has_results: rows that the reader has not used, beyond which
                           ///< append() waits; 0: only the channel limits them
    bool refuses_pickles;  ///< columns that only Python's pickle can read again give UNSUPPORTED
};

/// Numbers a feed whose rows get results, and an attempt at it, from Spark's, for a task of Spark's
/// stage `stage` (below 2^32): what is computed lazily may be so in several stages at once, and,
/// after coalesce(), several times in one task. `options->feed` is below 2^31.
TFOS_API void tfos_feeder_number_lazily(struct tfos_feeder_options *options, int64_t stage);

/// Joins the rendezvous and opens a channel to the node that it names, once the cluster runs. OK
/// also when the partition is to be skipped: tfos_feeder_node() is NULL then. CLOSED carries the
/// cluster's failure, or says that the wait was interrupted; TIMEOUT when the driver names no node,
/// or no channel becomes free; BUSY when this attempt is already superseded; DENIED; NOT_FOUND when
/// the node cannot be reached.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feeder_open(const struct tfos_feeder_options *options, struct tfos_feeder **out,
                 struct tfos_error *err);

/// "worker:0", or NULL when the partition is to be skipped. Valid until close.
TFOS_API const char *tfos_feeder_node(const struct tfos_feeder *feeder);

/// Rows of the partition that earlier attempts delivered: this one starts behind them.
TFOS_API int64_t tfos_feeder_first_row(const struct tfos_feeder *feeder);

/// Reads the driver's messages and checks the caller's wait. CLOSED carries the cluster's failure.
/// For long work between two batches; append() does it by itself.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feeder_check(struct tfos_feeder *feeder,
                                                            struct tfos_error *err);

/// Copies one batch into the channel and publishes it, waiting for space. `array` and `schema` stay
/// the caller's. END: the rest may be skipped, because the partition is, the reader has terminated
/// the feed, or its function has returned. AGAIN (only with has_results): there is no space but a
/// result waits: take it with next_result() and append the same batch again. TIMEOUT says how many
/// rows the reader has taken and, where the node can tell, what the trainer was doing; it fails the
/// cluster. CLOSED carries the failure of the node or cluster; what the driver knows of it is
/// preferred to what this side saw. BUSY: superseded by another attempt.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feeder_append(struct tfos_feeder *feeder,
                                                             const struct ArrowSchema *schema,
                                                             const struct ArrowArray *array,
                                                             struct tfos_error *err);

/// The partition is complete: marks its end. Statuses as for append().
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feeder_finish(struct tfos_feeder *feeder,
                                                             struct tfos_error *err);

/// The next batch of results, in the order of the rows. The caller releases schema and array, which
/// may outlive the feeder. AGAIN after `timeout_ms` (0: do not wait; negative: until the feeder's
/// own timeout, then TIMEOUT with the partition and both counts), and at once when the reader has
/// gone, every row appended has its result, and it is still to be seen by append() or finish()
/// whether there are more. END once every row appended has its result and finish() was called.
/// CLOSED when the reader has gone before it gave each row a result, or the partition is skipped.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feeder_next_result(struct tfos_feeder *feeder, int64_t timeout_ms, struct ArrowSchema *schema,
                        struct ArrowArray *array, struct tfos_error *err);

/// Rows appended by this attempt.
TFOS_API int64_t tfos_feeder_row_count(const struct tfos_feeder *feeder);

/// Ends the attempt; without finish() before it the partition counts as incomplete. NULL is
/// accepted.
TFOS_API void tfos_feeder_close(struct tfos_feeder *feeder);

#endif
