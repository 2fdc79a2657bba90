// SPDX-License-Identifier: Apache-2.0
/// A writer, and its transport to the node: channels in shared memory, or a TLS connection. What
/// both do alike is in writer.c; what differs is behind the calls of a transport. One thread at a
/// time.
#ifndef TFOS_FEED_WRITER_H
#define TFOS_FEED_WRITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/cluster_key.h"
#include "feed/batch_decoder.h"
#include "feed/batch_encoder.h"
#include "feed/feed.h"
#include "feed/local_writer.h"
#include "feed/record_stream.h"

#define TFOS__FEED_WRITER_SLICE_MS 50 ///< longest sleep without a look at the node's messages

struct tfos__feed_progress {
    uint64_t sum;          ///< changes whenever the reader takes something
    int64_t taken_rows;    ///< of this attempt that the reader has taken
    int64_t batch_rows;    ///< of the reader's batches, whatever it says; 0: unknown
    int64_t step_rows;     ///< of the reader's steps, whatever it says
    int64_t published_row; ///< the node has published what was committed before this row
    bool is_delivered; ///< all that was committed has left this process and, after the partition's
                       ///< end, the node has confirmed it
};

struct tfos__feed_transport {
    /// Takes up the node's answer "channel", with its descriptors (taken over), and sets ring_size.
    enum tfos_status (*attach)(struct tfos__feed_writer *writer, const json_t *message,
                               const int *fds, int fd_count, struct tfos_error *err);
    /// Space for a record. AGAIN: none yet. BUSY: fenced.
    enum tfos_status (*reserve)(struct tfos__feed_writer *writer, uint64_t size, uint8_t **space,
                                struct tfos_error *err);
    /// Publishes it, with `row_count` rows; `rows` as for tfos__feed_producer_commit().
    enum tfos_status (*commit)(struct tfos__feed_writer *writer, uint64_t size, uint64_t rows,
                               int64_t row_count, struct tfos_error *err);
    /// Reads the node's messages, without waiting; END, CLOSED and BUSY as they say.
    enum tfos_status (*check)(struct tfos__feed_writer *writer, struct tfos_error *err);
    /// The next record of results. AGAIN: none.
    enum tfos_status (*peek)(struct tfos__feed_writer *writer,
                             const struct tfos__feed_record **record, const uint8_t **body,
                             struct tfos_error *err);
    /// Done with that record. With `owner` (else NULL) its rows count as results, and its body
    /// moves to memory of its own, `*body`.
    enum tfos_status (*take)(struct tfos__feed_writer *writer, const uint8_t **body,
                             struct tfos__feed_batch_owner *owner, struct tfos_error *err);
    /// Sleeps at most TFOS__FEED_WRITER_SLICE_MS until there may be space for `size` bytes (0: not
    /// wanted) or a result.
    void (*wait)(struct tfos__feed_writer *writer, uint64_t size);
    /// How far the rows are.
    struct tfos__feed_progress (*progress)(const struct tfos__feed_writer *writer);
    /// Queues a message to the node and writes what can be written at once.
    enum tfos_status (*send)(struct tfos__feed_writer *writer, json_t *message,
                             struct tfos_error *err);
    /// Sends `message` (taken over; NULL: none) with a bounded wait, and ends the transport.
    void (*close)(struct tfos__feed_writer *writer, json_t *message);
};

extern const struct tfos__feed_transport tfos__feed_local_transport;
extern const struct tfos__feed_transport tfos__feed_remote_transport;

struct tfos__feed_local_state {
    struct tfos__feed_control *control; ///< owned
    struct tfos__feed_local_writer writer;
    bool is_growing;    ///< a larger channel was asked for
    int64_t checked_ms; ///< when the node's messages were last read
};

struct tfos__feed_remote_state {
    struct tfos__feed_record_stream stream;
    uint64_t ring_limit;           ///< largest ring that the node may have for this writer
    uint8_t *body;                 ///< owned; the record that comes in
    int64_t taken_count;           ///< rows that the reader has taken, by the node's last report
    int64_t batch_rows, step_rows; ///< of the reader, by the same report
    int64_t published_row;         ///< the same
    int64_t others;                ///< goes up while the node's other queues are read
    uint64_t progress;
    bool is_complete; ///< the node has the partition's end
};

struct tfos__feed_writer {
    const struct tfos__feed_transport *transport;
    char *place; ///< where the node is, for messages
    char *queue;
    int64_t feed, partition, attempt, first_row;
    int64_t channel_size, timeout_ms, ahead_rows;
    bool has_results;
    struct tfos_wait caller; ///< who may interrupt
    struct tfos__wait wait;  ///< when it is asked; has no deadline of its own
    char token[TFOS__KEY_PROOF_SIZE];
    struct tfos__channel *connection;
    struct tfos__feed_local_state local;
    struct tfos__feed_remote_state remote;
    struct tfos__feed_batch_encoder encoder;
    uint64_t ring_size;    ///< of the channel that is written to; 0: the node has given none yet
    uint64_t answer_count; ///< progress that the node reported while we waited for a channel
    int64_t row_count;     ///< rows committed
    int64_t row;           ///< of the partition: the next one
    int64_t committed_row; ///< the one behind the last one committed
    bool is_extra;         ///< its attempt has another channel at another node
    bool is_finished;      ///< the partition's end is committed
    bool is_cut;           ///< the reader had gone when append() came with more
    bool is_left;          ///< the reader had gone when finish() came: all is appended
    int64_t result_count;
    struct tfos__feed_schema result_schema;
    struct tfos__buffer pieces;    ///< of the body of the next batch of results
    enum tfos_status final_status; ///< what the node said last: END, or a failure with `failure`
    struct tfos_error failure;
    char *explanation; ///< owned: the node's answer to "stalled"
};

// ---- what writer_connection.c does for the transports and writer.c

/// Takes up a message of the node, with its descriptors (taken over).
enum tfos_status tfos__feed_writer_handle_message(struct tfos__feed_writer *writer,
                                                  const json_t *message, const int *fds,
                                                  int fd_count, struct tfos_error *err);

/// Asks for a channel of `size` bytes that continues at the row after those committed.
enum tfos_status tfos__feed_writer_request_channel(struct tfos__feed_writer *writer, int64_t size,
                                                   struct tfos_error *err);

/// Sends a frame (taken over). OK also when the node has gone, which read_frames() tells.
enum tfos_status tfos__feed_writer_send_frame(struct tfos__feed_writer *writer, json_t *message,
                                              struct tfos_error *err);

/// Reads the frames that have come and takes them up. CLOSED when the node has gone.
enum tfos_status tfos__feed_writer_read_frames(struct tfos__feed_writer *writer,
                                               struct tfos_error *err);

/// Sets the final status, unless there is one already, and gives the one that is set.
enum tfos_status tfos__feed_writer_end(struct tfos__feed_writer *writer, enum tfos_status status,
                                       const char *words, struct tfos_error *err);

/// The final status, with its message.
enum tfos_status tfos__feed_writer_final_status(const struct tfos__feed_writer *writer,
                                                struct tfos_error *err);

/// CLOSED when the caller wants the wait to end.
enum tfos_status tfos__feed_writer_check_interrupt(struct tfos__feed_writer *writer,
                                                   struct tfos_error *err);

#endif
