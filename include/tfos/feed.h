// SPDX-License-Identifier: Apache-2.0
/// The feed: batches of rows from Spark's tasks to a trainer on the same machine through shared
/// memory, or from another machine over TCP, and results back. Three parties:
///
///   writer  in a Spark task: opens a lane to one node and appends batches to it;
///   host    in the node: makes lanes (a lane is a ring in a memfd for one writer), hands their
///           descriptors to both sides, fences superseded attempts, notices what died;
///   reader  in the trainer: takes batches from all lanes, in place, and puts results back.
///
/// A node may have several queues, each with a reader of its own; feeds are numbered within a
/// queue. A batch belongs to (feed, partition, attempt) and starts at a row number; it is delivered
/// whole or not at all, and each row of a partition once, whatever attempts Spark makes.
/// docs/protocol.md has the bytes. Batches cross this interface as Arrow C data: a struct array
/// whose children are the columns. Schema metadata travels with it unchanged.
#ifndef TFOS_FEED_H
#define TFOS_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>
#include <tfos/wait.h>

#define TFOS_FEED_LANE_SIZE (16 << 20)     ///< default bytes of a lane's data
#define TFOS_FEED_MEMORY_LIMIT (128 << 20) ///< default bytes of all lanes of a node together

// ---- writer: one thread at a time

struct tfos_feed_writer;

/// All borrowed for the call. Zero means the default.
struct tfos_feed_writer_options {
    const char *socket_name; ///< the node's abstract unix socket; NULL: use `address`
    const char *address;     ///< the node's "host:port" for feeding from elsewhere
    const char *cluster_id;
    const char *key;       ///< 64 hexadecimal digits
    const char *queue;     ///< NULL: "input"
    int64_t feed;          ///< number of the feed (one each train() epoch or inference()), from 1
    int64_t partition;     ///< partition of the feed, from 0
    int64_t attempt;       ///< number of the attempt; a higher one supersedes a lower one
    int64_t first_row;     ///< rows of the partition that earlier attempts delivered; this attempt
                           ///< starts there
    int64_t lane_size;     ///< bytes; 0: TFOS_FEED_LANE_SIZE. Grown when a batch needs more
    bool has_results;      ///< the reader answers each row with a result
    struct tfos_wait wait; ///< of every call: its timeout is the longest time in which the reader
                           ///< takes nothing, 600,000 ms; its context must outlive the writer
    int64_t ahead_rows;    ///< with has_results: rows that the reader has not used, beyond which
                           ///< append() waits; 0: only the lane limits them
    bool refuses_pickles;  ///< columns that only Python's pickle can read again are neither fed nor
                           ///< taken as results: UNSUPPORTED names the column and its type
};

/// Connects to the node and gets a lane. DENIED; NOT_FOUND when no node listens; BUSY when this
/// attempt is already superseded; TIMEOUT when no lane comes free. END when the reader wants no
/// more rows.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feed_writer_open(const struct tfos_feed_writer_options *options, struct tfos_feed_writer **out,
                      struct tfos_error *err);

/// Copies one batch into the lane and publishes it, waiting for space. `array` and `schema` stay
/// the caller's. END: the reader has terminated the feed or its function has returned, the rest may
/// be skipped. AGAIN (only with has_results): there is no space but a result waits: take it with
/// next_result() and append the same batch again. TIMEOUT says how many rows the reader has taken
/// and, where the node can tell, what the trainer was doing. CLOSED carries the failure of the node
/// or cluster. BUSY: superseded by another attempt.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feed_writer_append(struct tfos_feed_writer *writer,
                                                                  const struct ArrowSchema *schema,
                                                                  const struct ArrowArray *array,
                                                                  struct tfos_error *err);

/// The partition is complete: marks its end. Statuses as for append().
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feed_writer_finish(struct tfos_feed_writer *writer,
                                                                  struct tfos_error *err);

/// The next batch of results, in the order of the rows. The caller releases schema and array, which
/// may outlive the writer. AGAIN after `timeout_ms` (0: do not wait; negative: until the
/// writer's own timeout, then TIMEOUT with the partition and both counts), and at once when the
/// reader has gone, every row appended has its result, and it is still to be seen by append() or
/// finish() whether there are more. END once every row appended has its result and finish() was
/// called. CLOSED when the reader has gone before it gave each row a result.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feed_writer_next_result(struct tfos_feed_writer *writer, int64_t timeout_ms,
                             struct ArrowSchema *schema, struct ArrowArray *array,
                             struct tfos_error *err);

/// Rows appended by this attempt.
TFOS_API int64_t tfos_feed_writer_row_count(const struct tfos_feed_writer *writer);

/// Rows of the batches that the reader makes (tfos_feed_reader_set_batch_rows()), at most
/// 2,147,483,647; 0 while it is unknown. A writer that appends so many rows at a time lets the
/// reader use each batch as it lies, without a copy.
TFOS_API int64_t tfos_feed_writer_batch_rows(const struct tfos_feed_writer *writer);

/// Ends the attempt. Without finish() before it the partition counts as incomplete. NULL is
/// accepted.
TFOS_API void tfos_feed_writer_close(struct tfos_feed_writer *writer);

// ---- reader: next() and put_results() from one thread at a time, the others from any

/// Belongs to the process that opened it. In one that is forked from that, calls which can fail
/// give INVALID and all others do nothing: the rows are the opener's. Arrays that were given out
/// before the fork stay what they are in both.
struct tfos_feed_reader;

enum tfos_feed_item_kind {
    TFOS_FEED_BATCH = 1,         ///< rows
    TFOS_FEED_PARTITION_END = 2, ///< the partition of this lane has ended
    TFOS_FEED_EPOCH_END = 3      ///< all partitions of this feed, on all lanes, have been given out
};

/// What next() gives. For a batch the caller owns `schema` and `array` and releases both, from any
/// thread and in any order. The array's memory is the ring's own, and the space returns to the
/// writer with the release. It may be held for as long as one likes, even beyond close(): when the
/// writer waits for space and next() has nothing else to give, next() moves the batches held to
/// memory of their own, behind the same pointers. They count as used then. A consumer is therefore
/// bounded by what it holds, not by the ring. Memory that is held must not be registered with a
/// device.
struct tfos_feed_item {
    enum tfos_feed_item_kind kind;
    int lane; ///< handle for put_results(); each attempt has its own; -1 at the end of an epoch
    bool has_results; ///< the writer waits for a result a row
    int64_t feed;
    int64_t partition;
    int64_t first_row; ///< number of the batch's first row in its partition
    struct ArrowSchema schema;
    struct ArrowArray array;
};

/// Reads from the node's queue whose shared page is `bell_fd` (taken over, also on failure).
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feed_reader_open(int bell_fd, struct tfos_feed_reader **out, struct tfos_error *err);

/// Refuses columns that only Python's pickle can read again, of whoever feeds and as results, with
/// UNSUPPORTED, which names the column and its type. Before the first lane is added.
TFOS_API void tfos_feed_reader_refuse_pickles(struct tfos_feed_reader *reader);

/// INVALID in a forked process; from then on also in the process that opened the reader, whose
/// next() gives it too, because the failure of the other may not be seen. Any thread.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feed_reader_check(const struct tfos_feed_reader *reader, struct tfos_error *err);

/// Adds a lane, whose descriptor is taken over. CORRUPT when its header is not one of ours.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feed_reader_add_lane(struct tfos_feed_reader *reader,
                                                                    int lane, int fd,
                                                                    struct tfos_error *err);

/// The next item. Feeds are given out in order of their numbers: items of feed n+1 wait for the end
/// of epoch n. Those that want results wait for no other feed. AGAIN after `timeout_ms` (negative:
/// no limit). END after the end of the feed, once all is given out, and after terminate(). CLOSED
/// with the message of fail(). CORRUPT: a lane broke its format; it is not read any more, nor is
/// one with pickles that are refused (UNSUPPORTED).
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feed_reader_next(struct tfos_feed_reader *reader,
                                                                int64_t timeout_ms,
                                                                struct tfos_feed_item *item,
                                                                struct tfos_error *err);

/// The feed whose items next() gives out, or that it gives out next. Any thread.
TFOS_API int64_t tfos_feed_reader_feed(struct tfos_feed_reader *reader);

/// Notes that `row_count` more rows of a batch from next() have been used, though it is not
/// released yet: to the writer's timeout, and to whoever looks at the figures, a reader that is
/// slow over a large batch gets on. Any thread.
TFOS_API void tfos_feed_batch_use(const struct ArrowArray *array, int64_t row_count);

/// Sends results for the next rows of `lane`'s partition, in order. INVALID, with the partition and
/// both counts, when there are more results than rows given out, or `lane` was not. CLOSED when the
/// writer has gone (the caller may drop them and go on), or the wait was interrupted. `wait` has no
/// limit: a writer that takes nothing for its own timeout goes. After a wait that ended early it is
/// not known how many of the results were sent.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feed_reader_put_results(struct tfos_feed_reader *reader, int lane,
                             const struct ArrowSchema *schema, const struct ArrowArray *array,
                             const struct tfos_wait *wait, struct tfos_error *err);

/// Tells writers how many rows the batches have that are made of what next() gives, so that they
/// cut there; 0: no matter. Any thread, at any time.
TFOS_API void tfos_feed_reader_set_batch_rows(struct tfos_feed_reader *reader, int64_t row_count);

/// No more rows are wanted: writers get END, next() gives END.
TFOS_API void tfos_feed_reader_terminate(struct tfos_feed_reader *reader);

/// Ends all waits with this status and message (the node has gone).
TFOS_API void tfos_feed_reader_fail(struct tfos_feed_reader *reader, enum tfos_status status,
                                    const char *message);

/// Ends the reader. Arrays given out stay as they are until they are released. NULL is accepted.
TFOS_API void tfos_feed_reader_close(struct tfos_feed_reader *reader);

// ---- host: one thread

struct tfos_feed_host;

struct tfos_feed_host_options {
    const char *cluster_id;
    const char *key;
    const char *socket_name; ///< abstract unix name to listen on
    const char *queues;      ///< names, divided by commas, 16 at most; NULL: "input"
    const char *listen_host; ///< for TCP; NULL: all addresses
    int64_t memory_limit;    ///< bytes of the lanes of all queues; 0: TFOS_FEED_MEMORY_LIMIT. A
                             ///< queue that has none gets one in any case
};

enum tfos_feed_host_state {
    TFOS_FEED_RUNNING = 0,
    TFOS_FEED_ENDED = 1, ///< nothing more will be fed; readers come to their end when all is taken
    TFOS_FEED_TERMINATED =
        2, ///< nobody reads any more (terminate(), or the function returned): writers get END
    TFOS_FEED_FAILED = 3 ///< writers get CLOSED with the message
};

enum tfos_feed_event_kind {
    TFOS_FEED_LANE_OPENED = 1, ///< `lane`, `fd`: to be handed to the reader; fd stays the host's
    TFOS_FEED_ATTEMPT_CLOSED =
        2, ///< an attempt ended: feed, partition, attempt, rows (first_row included), complete
    TFOS_FEED_STALLED =
        3 ///< a writer is about to time out and asks what the trainer is doing; answer by explain()
};

struct tfos_feed_event {
    enum tfos_feed_event_kind kind;
    int lane;
    int fd;
    const char *queue; ///< the host's
    int64_t feed, partition, attempt, rows;
    bool complete;
};

struct tfos_feed_stats {
    int64_t rows_written; ///< published by writers since open
    int64_t rows_read;    ///< given out by the reader and released
    int64_t bytes_written;
    int64_t used_size, total_size; ///< bytes in lanes now, and their capacity
    int writer_count;              ///< lanes with a live writer
    bool is_drained;               ///< every queue is
    bool is_terminated;            ///< every queue is
    int64_t reader_wait_ms;        ///< for how long readers have waited for rows
    int64_t writer_wait_ms;        ///< for how long writers have waited for space, all together
};

struct tfos_feed_queue {
    const char *name;   ///< the host's
    int64_t rows_read;  ///< given out by the reader and released
    bool is_drained;    ///< no lane holds rows, or nobody wants what is in it
    bool is_terminated; ///< the reader called terminate(), or the host did
};

TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_feed_host_open(const struct tfos_feed_host_options *options, struct tfos_feed_host **out,
                    struct tfos_error *err);

/// An epoll descriptor that is readable when step() has work; the TCP port; the shared page for the
/// reader of `queue` (NULL: "input"; stays the host's), -1 when there is no such queue.
TFOS_API int tfos_feed_host_fd(const struct tfos_feed_host *host);
TFOS_API int tfos_feed_host_port(const struct tfos_feed_host *host);
TFOS_API int tfos_feed_host_bell_fd(const struct tfos_feed_host *host, const char *queue);

/// Does what can be done without waiting; call it also once a second. A faulty peer never makes it
/// fail.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feed_host_step(struct tfos_feed_host *host,
                                                              struct tfos_error *err);

/// The next event, or AGAIN.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_feed_host_next_event(struct tfos_feed_host *host,
                                                                    struct tfos_feed_event *event,
                                                                    struct tfos_error *err);

/// Of all queues. `message` (copied) is what writers are told when the state is FAILED.
TFOS_API void tfos_feed_host_set_state(struct tfos_feed_host *host, enum tfos_feed_host_state state,
                                       const char *message);

/// Epochs of `queue` (NULL: "input") up to feed `feed` have been fed completely.
TFOS_API void tfos_feed_host_end_epoch(struct tfos_feed_host *host, const char *queue,
                                       int64_t feed);

/// Feeds of `queue` up to `feed` have been fed completely; this one was a batch of a stream. The
/// reader goes on to the next without an end of its epoch, which is that of all feeds to come and
/// ends with ENDED.
TFOS_API void tfos_feed_host_end_batch(struct tfos_feed_host *host, const char *queue,
                                       int64_t feed);

/// Supersedes attempts of (queue, feed, partition) below `attempt`, all four as in `*attempt` (a
/// queue of NULL: "input"): whatever they have not published by now is never delivered.
/// `attempt->rows` becomes what was (0 when the host knows none), `attempt->complete` whether the
/// partition's end was.
TFOS_API void tfos_feed_host_fence(struct tfos_feed_host *host, struct tfos_feed_event *attempt);

/// The answer to STALLED: text for the writers that wait (a stack trace, say).
TFOS_API void tfos_feed_host_explain(struct tfos_feed_host *host, const char *text);

TFOS_API void tfos_feed_host_get_stats(struct tfos_feed_host *host, struct tfos_feed_stats *stats);

/// The queue at this place of the list, from 0; false past its end.
TFOS_API bool tfos_feed_host_get_queue(const struct tfos_feed_host *host, int number,
                                       struct tfos_feed_queue *out);

/// Closes all lanes and connections. NULL is accepted.
TFOS_API void tfos_feed_host_close(struct tfos_feed_host *host);

#endif
