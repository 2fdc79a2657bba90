// SPDX-License-Identifier: Apache-2.0
/// The reading end of a ring. Records are read in order and may be held in place; they are given
/// back in any order and by any thread, and the space returns to the writer in order. peek(),
/// skip() and hold() are for one thread at a time.
#ifndef TFOS_FEED_CONSUMER_H
#define TFOS_FEED_CONSUMER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "feed/futex.h"
#include "feed/record.h"

struct tfos__feed_held_record {
    uint64_t begin; ///< of the record that is held
    uint64_t size;  ///< of that record
    uint64_t end;   ///< where the tail goes when this and all earlier spans are given back
    uint64_t rows;
    bool is_released;
};

/// What keeps a ring from being used on.
struct tfos__feed_blockage {
    uint64_t oldest;        ///< number of the oldest record that is held
    uint64_t size;          ///< bytes from it on
    bool has_writer_exited; ///< the writer has gone: the ring serves no other before it is drained
};

struct tfos__feed_consumer {
    const uint8_t *data;
    uint64_t size;
    _Atomic uint64_t *head;
    _Atomic uint64_t *tail;
    _Atomic uint64_t *rows_released; ///< NULL: not counted
    _Atomic uint64_t *wanted;        ///< space that the producer waits for; NULL: it does not tell
    struct tfos__feed_futex producer_futex;
    uint64_t position; ///< of the next record
    uint64_t seen_head;
    struct tfos__feed_record record; ///< the next record's head, copied out of the ring once
    bool has_record;

    pthread_mutex_t mutex;                ///< guards what follows
    struct tfos__feed_held_record *spans; ///< held records, oldest at `first`; a circular array
    size_t first, count, capacity;
    uint64_t sequence; ///< number of the oldest span
    bool is_abandoned;
};

/// Begins at the ring's tail. CORRUPT when head and tail make no sense.
enum tfos_status tfos__feed_consumer_init(struct tfos__feed_consumer *consumer,
                                          struct tfos_error *err);
void tfos__feed_consumer_clear(struct tfos__feed_consumer *consumer);

/// The next record; its head is copied to consumer->record and checked. Fillers are skipped. AGAIN
/// when there is none. CORRUPT: the ring is given up, which the writer is told, and nothing more is
/// read.
enum tfos_status tfos__feed_consumer_peek(struct tfos__feed_consumer *consumer,
                                          struct tfos_error *err);

/// The body of the record that peek() found.
const uint8_t *tfos__feed_consumer_body(const struct tfos__feed_consumer *consumer);

/// Done with the record at once.
void tfos__feed_consumer_skip(struct tfos__feed_consumer *consumer);

/// Keeps the record until release(*sequence).
enum tfos_status tfos__feed_consumer_hold(struct tfos__feed_consumer *consumer, uint64_t *sequence,
                                          struct tfos_error *err);

/// Any thread. Nothing comes of it for a record that was let go.
void tfos__feed_consumer_release(struct tfos__feed_consumer *consumer, uint64_t sequence);

/// Counts rows of a held record as released before it is: its reader gets on, if slowly. Any
/// thread.
void tfos__feed_consumer_use(struct tfos__feed_consumer *consumer, uint64_t sequence,
                             uint64_t rows);

/// Whether everything is read, and only held records keep the producer, or the next one, waiting.
bool tfos__feed_consumer_is_blocking(struct tfos__feed_consumer *consumer,
                                     struct tfos__feed_blockage *blockage);

/// Whether records are held.
bool tfos__feed_consumer_is_holding(struct tfos__feed_consumer *consumer);

/// Copies the records that are held to the places in `target` that they have in the ring.
void tfos__feed_consumer_copy_held(struct tfos__feed_consumer *consumer, uint8_t *target);

/// Counts all held records as given back, and reads on in `data`, the same ring mapped elsewhere.
void tfos__feed_consumer_rebase(struct tfos__feed_consumer *consumer, const uint8_t *data);

/// Done with everything written so far, unread.
void tfos__feed_consumer_discard(struct tfos__feed_consumer *consumer);

/// Gives the ring up as corrupt.
void tfos__feed_consumer_abandon(struct tfos__feed_consumer *consumer);

/// Whether everything that was written has been read (not: given back).
bool tfos__feed_consumer_is_empty(struct tfos__feed_consumer *consumer);

#endif
