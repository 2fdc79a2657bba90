// SPDX-License-Identifier: Apache-2.0
/// A writer, and its route to the node: a lane in shared memory, or a TLS connection. What both do
/// alike is in writer.c; what differs is behind the calls of a route. One thread at a time.
#ifndef TFOS_FEED_ROUTE_H
#define TFOS_FEED_ROUTE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/channel.h"
#include "base/clock.h"
#include "feed/batch.h"
#include "feed/feed.h"
#include "feed/lane.h"
#include "feed/sender.h"

#define TFOS__WRITER_SLICE_MS 50 ///< longest sleep without a look at the node's messages

struct tfos__route {
    /// Takes up the node's answer "lane", with its descriptors (taken over).
    enum tfos_status (*attach)(struct tfos__feed_writer *writer, const json_t *message,
                               const int *fds, int fd_count, struct tfos_error *err);
    /// Bytes that batches are cut to.
    uint64_t (*ring_size)(const struct tfos__feed_writer *writer);
    /// Space for a record. AGAIN: none yet. BUSY: fenced.
    enum tfos_status (*reserve)(struct tfos__feed_writer *writer, uint64_t size, uint8_t **space,
                                struct tfos_error *err);
    /// Publishes it; `rows` as for tfos__inlet_commit().
    enum tfos_status (*commit)(struct tfos__feed_writer *writer, uint64_t size, uint64_t rows,
                               struct tfos_error *err);
    /// Looks for what the node has to say, without waiting; END, CLOSED and BUSY as it says them.
    enum tfos_status (*check)(struct tfos__feed_writer *writer, struct tfos_error *err);
    /// The next record of results. AGAIN: none.
    enum tfos_status (*peek)(struct tfos__feed_writer *writer, const struct tfos__record **record,
                             const uint8_t **body, struct tfos_error *err);
    void (*skip)(struct tfos__feed_writer *writer);
    /// Takes that record, which counts as `rows` results, and moves its body to memory of its own.
    enum tfos_status (*take)(struct tfos__feed_writer *writer, const uint8_t **body,
                             struct tfos__batch_owner *owner, struct tfos_error *err);
    /// Sleeps at most TFOS__WRITER_SLICE_MS until there may be space for `size` bytes (0: not
    /// wanted) or a result.
    void (*wait)(struct tfos__feed_writer *writer, uint64_t size);
    /// A number that changes whenever the reader takes something.
    uint64_t (*progress)(const struct tfos__feed_writer *writer);
    /// Rows of this attempt that the reader has taken.
    int64_t (*taken)(const struct tfos__feed_writer *writer);
    /// Rows of the reader's batches as the reader says, whatever the number; 0: unknown.
    int64_t (*batch_rows)(const struct tfos__feed_writer *writer);
    /// Whether the node has all that was committed.
    bool (*is_delivered)(const struct tfos__feed_writer *writer);
    /// Queues a message to the node and writes what can be written at once.
    enum tfos_status (*say)(struct tfos__feed_writer *writer, json_t *message,
                            struct tfos_error *err);
    /// The last word, with a bounded wait, and the end of the route.
    void (*close)(struct tfos__feed_writer *writer);
};

extern const struct tfos__route tfos__route_shared;
extern const struct tfos__route tfos__route_stream;

/// A lane of a writer. Only the last one is written to; with results, the earlier ones still bring
/// some.
struct tfos__writer_lane {
    struct tfos__lane *lane;
    uint64_t released_before; ///< the lane's count of rows released when it was handed to us
    int64_t row_count;        ///< rows that we wrote to it
    int64_t result_count;     ///< results that came from it
};

struct tfos__route_shared_state {
    struct tfos__board *board;
    struct tfos__writer_lane *lanes; ///< owned
    size_t lane_count;
    int64_t left_count;    ///< rows written to lanes that we have left
    bool is_growing;       ///< a larger lane was asked for
    int64_t checked_ms;    ///< when the node's messages were last looked for
    uint64_t answer_count; ///< progress that the node told of
};

struct tfos__route_stream_state {
    uint64_t ring_size;         ///< of the lane at the node
    uint64_t ring_limit;        ///< largest ring that the node may have for this writer
    struct tfos__buffer out;    ///< whole records on their way
    struct tfos__record record; ///< head of the record that comes in
    size_t received;            ///< bytes of that record, its head included
    uint8_t *body;              ///< owned
    int64_t taken_count;        ///< rows that the reader has taken, as the node last told
    int64_t batch_rows;         ///< of the reader, as the node last told
    int64_t others;             ///< goes up while the node's other queues are read
    uint64_t progress;
    bool is_complete; ///< the node has the partition's end
};

struct tfos__feed_writer {
    const struct tfos__route *route;
    char *place; ///< where the node is, for messages
    char *queue;
    int64_t feed, partition, attempt, first_row;
    int64_t lane_size, timeout_ms, ahead_rows;
    bool has_results;
    struct tfos_wait caller; ///< who may interrupt
    struct tfos__wait wait;  ///< when it is asked; has no deadline of its own
    char token[65];
    struct tfos__channel *channel;
    struct tfos__route_shared_state shared;
    struct tfos__route_stream_state stream;
    struct tfos__sender sender;
    int64_t row_count; ///< rows committed
    int64_t partial;   ///< rows committed of the batch that append() left with AGAIN
    bool is_attached;  ///< the node has given a lane
    bool is_finished;  ///< the partition's end is committed
    bool is_cut;       ///< the reader had gone when append() came with more
    bool is_left;      ///< the reader had gone when finish() came: all is appended
    int64_t result_count;
    struct tfos__schema result_schema;
    struct tfos__buffer pieces; ///< of the body of the next batch of results
    enum tfos_status verdict;   ///< what the node said last: END, or a failure with `verdict_error`
    struct tfos_error verdict_error;
    char *explanation; ///< owned: the node's answer to "stalled"
};

/// Takes up a message of the node, with its descriptors (taken over). Keeps a verdict.
enum tfos_status tfos__writer_hear(struct tfos__feed_writer *writer, const json_t *message,
                                   const int *fds, int fd_count, struct tfos_error *err);

/// Asks for a lane of `size` bytes that continues at the row after those committed.
enum tfos_status tfos__writer_ask_lane(struct tfos__feed_writer *writer, int64_t size,
                                       struct tfos_error *err);

/// Sends a frame (taken over). OK also when the node has gone, which read_frames() tells.
enum tfos_status tfos__writer_send_frame(struct tfos__feed_writer *writer, json_t *message,
                                         struct tfos_error *err);

/// Reads the frames that have come and takes them up. CLOSED when the node has gone.
enum tfos_status tfos__writer_read_frames(struct tfos__feed_writer *writer, struct tfos_error *err);

/// Keeps a verdict, unless there is one already, and gives the one that is kept.
enum tfos_status tfos__writer_judge(struct tfos__feed_writer *writer, enum tfos_status status,
                                    const char *words, struct tfos_error *err);

/// CLOSED when the caller wants the wait to end.
enum tfos_status tfos__writer_check_interrupt(struct tfos__feed_writer *writer,
                                              struct tfos_error *err);

/// The verdict as a status, its message copied.
enum tfos_status tfos__writer_verdict(const struct tfos__feed_writer *writer,
                                      struct tfos_error *err);

#endif
