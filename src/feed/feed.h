// SPDX-License-Identifier: Apache-2.0
/// The feed: batches of rows from Spark's tasks to a trainer on the same machine through shared
/// memory, or from another machine over TCP, and results back. Three parties:
///
///   writer  in a Spark task: opens a channel to one node and appends batches to it;
///   host    in the node: makes channels (a channel is a ring in a memfd for one writer), passes
///           their descriptors to both sides, fences superseded attempts, detects ends;
///   reader  in the trainer: takes batches from all channels, in place, and puts results back.
///
/// <tfos/feed.h> says what a batch is and has what users do with a reader; here is the rest.
/// docs/protocol.md has the bytes.
#ifndef TFOS_FEED_FEED_H
#define TFOS_FEED_FEED_H

#include <tfos/feed.h>
#include <tfos/feeder.h>

#define TFOS__FEED_CHANNEL_SIZE (16 << 20)  ///< default bytes of a channel's data
#define TFOS__FEED_MEMORY_LIMIT (128 << 20) ///< default bytes of all channels of a node together
#define TFOS__FEED_TIMEOUT_MS 600000        ///< default time in which a reader takes nothing

// ---- writer: one thread at a time

struct tfos__feed_writer;

/// The node that a writer feeds, and from which row on. All borrowed for the call.
struct tfos__feed_target {
    const char *socket_name; ///< the node's abstract unix socket; NULL: use `address`
    const char *address;     ///< the node's "host:port" for feeding from elsewhere
    int64_t first_row;       ///< of the partition, behind what was published elsewhere and before
    bool is_extra; ///< the attempt feeds another node too: it gets a channel without a wait
};

/// Connects to the node and gets a channel. The options are those of a feeder, but for `address`,
/// `job` and `is_remote`. DENIED; NOT_FOUND when no node listens; BUSY when this attempt is already
/// superseded; TIMEOUT when no channel comes free. END when the reader wants no more rows.
TFOS_MUST_CHECK enum tfos_status tfos__feed_writer_open(const struct tfos_feeder_options *options,
                                                        const struct tfos__feed_target *target,
                                                        struct tfos__feed_writer **out,
                                                        struct tfos_error *err);

/// As tfos_feeder_append(), tfos_feeder_finish() and tfos_feeder_next_result() say, but for the
/// driver, of which a writer does not know.
TFOS_MUST_CHECK enum tfos_status tfos__feed_writer_append(struct tfos__feed_writer *writer,
                                                          const struct ArrowSchema *schema,
                                                          const struct ArrowArray *array,
                                                          struct tfos_error *err);
TFOS_MUST_CHECK enum tfos_status tfos__feed_writer_finish(struct tfos__feed_writer *writer,
                                                          struct tfos_error *err);
TFOS_MUST_CHECK enum tfos_status tfos__feed_writer_next_result(struct tfos__feed_writer *writer,
                                                               int64_t timeout_ms,
                                                               struct ArrowSchema *schema,
                                                               struct ArrowArray *array,
                                                               struct tfos_error *err);

/// Rows appended by this attempt.
int64_t tfos__feed_writer_row_count(const struct tfos__feed_writer *writer);

/// Rows of the batches that the reader makes (tfos__feed_reader_set_batch_rows()), at most
/// 2,147,483,647; 0 while it is unknown. A writer that appends so many rows at a time lets the
/// reader use each batch as it lies, without a copy.
int64_t tfos__feed_writer_batch_rows(const struct tfos__feed_writer *writer);

/// Rows of a step that the reader takes together with the readers of other nodes; -1: it reads
/// independently; 0: there is no reader yet.
int64_t tfos__feed_writer_step_rows(const struct tfos__feed_writer *writer);

/// Waits until it is known how the reader reads: step_rows() is not 0. Statuses as for append().
TFOS_MUST_CHECK enum tfos_status tfos__feed_writer_await_reader(struct tfos__feed_writer *writer,
                                                                struct tfos_error *err);

/// The bytes that `array` needs in a channel. INVALID and UNSUPPORTED as for append().
TFOS_MUST_CHECK enum tfos_status tfos__feed_writer_measure(struct tfos__feed_writer *writer,
                                                           const struct ArrowSchema *schema,
                                                           const struct ArrowArray *array,
                                                           int64_t *size, struct tfos_error *err);

/// The next row is this one of the partition: those before it went to other nodes. Not with
/// results.
void tfos__feed_writer_seek(struct tfos__feed_writer *writer, int64_t row);

/// Waits until the node has published all that was appended. Statuses as for append().
TFOS_MUST_CHECK enum tfos_status tfos__feed_writer_confirm(struct tfos__feed_writer *writer,
                                                           struct tfos_error *err);

/// Ends the attempt. Without finish() before it the partition counts as incomplete. NULL is
/// accepted.
void tfos__feed_writer_close(struct tfos__feed_writer *writer);

// ---- reader: what the trainer and the dataset do beyond <tfos/feed.h>

/// Reads from the node's queue whose shared page is `control_fd` (taken over, also on failure).
TFOS_MUST_CHECK enum tfos_status
tfos__feed_reader_open(int control_fd, struct tfos_feed_reader **out, struct tfos_error *err);

/// Refuses columns that only Python's pickle can read again, of whoever feeds and as results, with
/// UNSUPPORTED, which names the column and its type. Before the first channel is added.
void tfos__feed_reader_refuse_pickles(struct tfos_feed_reader *reader);

/// Adds a channel, whose descriptor is taken over. CORRUPT when its header is not one of ours.
TFOS_MUST_CHECK enum tfos_status tfos__feed_reader_add_channel(struct tfos_feed_reader *reader,
                                                               int channel, int fd,
                                                               struct tfos_error *err);

/// The feed whose items next() returns, or that it returns next. Any thread.
int64_t tfos__feed_reader_feed(struct tfos_feed_reader *reader);

/// Tells writers how many rows the batches have that are made of what next() gives, so that they
/// cut there; 0: no matter. Any thread, at any time.
void tfos__feed_reader_set_batch_rows(struct tfos_feed_reader *reader, int64_t row_count);

/// Tells writers how many rows the reader takes at a step which it takes together with the readers
/// of other nodes, so that they all get equally many; -1: it reads independently, as it also does
/// where next() is called before this. Any thread, at any time.
void tfos__feed_reader_set_step_rows(struct tfos_feed_reader *reader, int64_t row_count);

/// Ends the reader. Arrays given out stay as they are until they are released. NULL is accepted.
void tfos__feed_reader_close(struct tfos_feed_reader *reader);

// ---- host: one thread

struct tfos__feed_host;

struct tfos__feed_host_options {
    const char *cluster_id;
    const char *key;
    const char *socket_name; ///< abstract unix name to listen on
    const char *queues;      ///< names, divided by commas, 16 at most; NULL: "input"
    const char *listen_host; ///< for TCP; NULL: all addresses
    int64_t memory_limit;    ///< bytes of the channels of all queues; 0: TFOS__FEED_MEMORY_LIMIT. A
                             ///< queue that has none gets one in any case
};

enum tfos__feed_state {
    TFOS__FEED_RUNNING = 0,
    TFOS__FEED_ENDED = 1, ///< nothing more will be fed; readers come to their end when all is taken
    TFOS__FEED_TERMINATED =
        2, ///< nobody reads any more (terminate(), or the function returned): writers get END
    TFOS__FEED_FAILED = 3 ///< writers get CLOSED with the message
};

enum tfos__feed_event_kind {
    TFOS__FEED_CHANNEL_OPENED =
        1, ///< `channel`, `fd`: to be passed to the reader; fd stays the host's
    TFOS__FEED_ATTEMPT_CLOSED =
        2, ///< an attempt ended: feed, partition, attempt, rows, written, complete
    TFOS__FEED_STALLED =
        3 ///< a writer is about to time out and asks what the trainer is doing; answer by explain()
};

struct tfos__feed_event {
    enum tfos__feed_event_kind kind;
    int channel;
    int fd;
    const char *queue; ///< the host's
    int64_t feed, partition, attempt;
    int64_t rows;    ///< of the partition up to the last one that was published here
    int64_t written; ///< how many of them the attempt published here
    bool complete;
};

struct tfos__feed_stats {
    int64_t rows_written; ///< published by writers since open
    int64_t rows_read;    ///< given out by the reader and released
    int64_t bytes_written;
    int64_t used_size, total_size; ///< bytes in channels now, and their capacity
    int writer_count;              ///< channels with a live writer
    bool is_drained;               ///< every queue is
    bool is_terminated;            ///< every queue is
    int64_t reader_wait_ms;        ///< for how long readers have waited for rows
    int64_t writer_wait_ms;        ///< for how long writers have waited for space, all together
};

struct tfos__feed_queue_stats {
    const char *name;   ///< the host's
    int64_t rows_read;  ///< given out by the reader and released
    bool is_drained;    ///< no channel holds rows, or nobody wants what is in it
    bool is_terminated; ///< the reader called terminate(), or the host did
};

TFOS_MUST_CHECK enum tfos_status tfos__feed_host_open(const struct tfos__feed_host_options *options,
                                                      struct tfos__feed_host **out,
                                                      struct tfos_error *err);

/// An epoll descriptor that is readable when step() has work; the TCP port; the shared page for the
/// reader of `queue` (NULL: "input"; stays the host's), -1 when there is no such queue.
int tfos__feed_host_fd(const struct tfos__feed_host *host);
int tfos__feed_host_port(const struct tfos__feed_host *host);
int tfos__feed_host_control_fd(const struct tfos__feed_host *host, const char *queue);

/// Does what can be done without waiting; call it also once a second. A faulty peer never makes it
/// fail.
TFOS_MUST_CHECK enum tfos_status tfos__feed_host_step(struct tfos__feed_host *host,
                                                      struct tfos_error *err);

/// The next event, or AGAIN.
TFOS_MUST_CHECK enum tfos_status tfos__feed_host_next_event(struct tfos__feed_host *host,
                                                            struct tfos__feed_event *event,
                                                            struct tfos_error *err);

/// Of all queues. `message` (copied) is sent to writers when the state is FAILED.
void tfos__feed_host_set_state(struct tfos__feed_host *host, enum tfos__feed_state state,
                               const char *message);

/// Epochs of `queue` (NULL: "input") up to feed `feed` have been fed completely.
void tfos__feed_host_end_epoch(struct tfos__feed_host *host, const char *queue, int64_t feed);

/// Feeds of `queue` up to `feed` have been fed completely; this one was a batch of a stream. The
/// reader continues with the next without an end of its epoch, which is that of all feeds to come
/// and ends with ENDED.
void tfos__feed_host_end_batch(struct tfos__feed_host *host, const char *queue, int64_t feed);

/// Supersedes attempts of (queue, feed, partition) below `attempt`, all four as in `*attempt` (a
/// queue of NULL: "input"): whatever they have not published by now is never delivered.
/// `attempt->rows` becomes what was (0 when the host knows none), `attempt->complete` whether the
/// partition's end was, and `attempt->written` what one that was alive had published.
void tfos__feed_host_fence(struct tfos__feed_host *host, struct tfos__feed_event *attempt);

/// The answer to STALLED: text for the writers that wait (a stack trace, say).
void tfos__feed_host_explain(struct tfos__feed_host *host, const char *text);

void tfos__feed_host_get_stats(struct tfos__feed_host *host, struct tfos__feed_stats *stats);

/// The queue at this place of the list, from 0; false past its end.
bool tfos__feed_host_get_queue(const struct tfos__feed_host *host, int number,
                               struct tfos__feed_queue_stats *out);

/// Closes all channels and connections. NULL is accepted.
void tfos__feed_host_close(struct tfos__feed_host *host);

#endif
