// SPDX-License-Identifier: Apache-2.0
/// A feeder: one attempt of a Spark task to feed one partition. It asks the driver which node to
/// feed, opens a lane there, and listens to the driver while it feeds. One thread at a time.
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
    int64_t lane_size;     ///< bytes
    bool has_results;      ///< the reader answers each row with a result
    bool is_remote;        ///< over TCP even to a node of this machine
    struct tfos_wait wait; ///< of every call: its timeout is the longest time in which the reader
                           ///< takes nothing, 600,000 ms; its context must outlive the feeder
    const char *job;       ///< whom to feed: NULL or "trainers", or "evaluator"
    int64_t ahead_rows;    ///< as in struct tfos_feed_writer_options, and the next
    bool refuses_pickles;
};

/// Numbers a feed whose rows get results, and an attempt at it, from Spark's, for a task of Spark's
/// stage `stage` (below 2^32): what is computed lazily may be so in several stages at once, and,
/// after coalesce(), several times in one task. `options->feed` is below 2^31.
TFOS_API void tfos_feeder_number_lazily(struct tfos_feeder_options *options, int64_t stage);

/// Joins the rendezvous and opens a lane to the node that it names, once the cluster runs. OK also
/// when the partition is to be skipped: tfos_feeder_node() is NULL then. CLOSED carries the
/// cluster's failure, or says that the wait was interrupted; TIMEOUT when the driver names no node;
/// otherwise as tfos_feed_writer_open().
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feeder_open(const struct tfos_feeder_options *options, struct tfos_feeder **out,
                 struct tfos_error *err);

/// "worker:0", or NULL when the partition is to be skipped. Valid until close.
TFOS_API const char *tfos_feeder_node(const struct tfos_feeder *feeder);

/// Why the partition is skipped; NULL when it is not. Valid until close.
TFOS_API const char *tfos_feeder_skip_reason(const struct tfos_feeder *feeder);

/// Rows of the partition that earlier attempts delivered: this one starts behind them.
TFOS_API int64_t tfos_feeder_first_row(const struct tfos_feeder *feeder);

/// Hears the driver and asks the caller's wait. CLOSED carries the cluster's failure. For long work
/// between two batches; append() does it by itself.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feeder_check(struct tfos_feeder *feeder,
                                                            struct tfos_error *err);

/// As tfos_feed_writer_append(), _finish() and _next_result(); what the driver knows of a failure
/// is preferred to what this side saw of it, and a reader that takes nothing for the timeout fails
/// the cluster. A partition that is skipped gives END; CLOSED for results of one.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feeder_append(struct tfos_feeder *feeder,
                                                             const struct ArrowSchema *schema,
                                                             const struct ArrowArray *array,
                                                             struct tfos_error *err);
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feeder_finish(struct tfos_feeder *feeder,
                                                             struct tfos_error *err);
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feeder_next_result(struct tfos_feeder *feeder, int64_t timeout_ms, struct ArrowSchema *schema,
                        struct ArrowArray *array, struct tfos_error *err);

/// Rows appended by this attempt.
TFOS_API int64_t tfos_feeder_row_count(const struct tfos_feeder *feeder);

/// Ends the attempt; without finish() before it the partition counts as incomplete. NULL is
/// accepted.
TFOS_API void tfos_feeder_close(struct tfos_feeder *feeder);

#endif
