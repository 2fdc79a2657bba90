// SPDX-License-Identifier: Apache-2.0
/// A ring of records in shared memory, with one producer and one consumer, which are different
/// processes, and the futexes by which they wake each other.
///
/// The producer reserves space for a record, fills it in place and commits it. The consumer reads
/// records in order and may hold them in place: they are released in any order and by any thread,
/// and their space returns to the producer in order. Each end belongs to one thread at a time, but
/// for what is said to be for any.
#ifndef TFOS_FEED_RECORD_RING_H
#define TFOS_FEED_RECORD_RING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "feed/record.h"

#define TFOS__FEED_SPIN_COUNT 400 ///< checks before a waiter sleeps: a few microseconds

/// A futex word in shared memory, with a count of those who wait on it: waking costs no system call
/// while nobody waits.
///
/// Waiter: value = prepare(); check the condition again; wait(value); cancel().
/// Waker: make the change visible, then wake(). Either the waker sees the waiter, or the waiter's
/// second check sees the change.
struct tfos__feed_futex {
    _Atomic uint32_t *word;
    _Atomic uint32_t *waiters;
};

/// Counts the caller as waiting and returns the value to wait on.
uint32_t tfos__feed_futex_prepare(struct tfos__feed_futex futex);

/// Sleeps until the futex no longer has `value`, a signal comes or `timeout_ms` is over.
void tfos__feed_futex_wait(struct tfos__feed_futex futex, uint32_t value, int timeout_ms);
void tfos__feed_futex_cancel(struct tfos__feed_futex futex);

/// Wakes all who wait.
void tfos__feed_futex_wake(struct tfos__feed_futex futex);

/// A pause between two checks of a spinning waiter.
static inline void tfos__feed_futex_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

// ---- producer

#define TFOS__FEED_HEAD_FENCED UINT64_C(1)    ///< in a head: the host has ended this writer
#define TFOS__FEED_TAIL_ABANDONED UINT64_C(1) ///< in a tail: the reader found the ring corrupt
#define TFOS__FEED_ROWS_COMPLETE                                                                   \
    (UINT64_C(1) << 63) ///< in a count of rows: the partition's end is published too

/// What was published when the head had the value `head`.
struct tfos__feed_published {
    _Atomic uint64_t head;
    _Atomic uint64_t rows;     ///< of the partition, with TFOS__FEED_ROWS_COMPLETE
    _Atomic uint64_t left_out; ///< of those since the channel was handed out, sent to other nodes
};

struct tfos__feed_producer {
    uint8_t *data;
    uint64_t size;
    _Atomic uint64_t *head;
    _Atomic uint64_t *tail;
    _Atomic uint64_t *wanted;    ///< where the consumer is told what we wait for; or NULL
    _Atomic uint64_t *waited_us; ///< where our waits for space are added up; NULL as `wanted`
    struct tfos__feed_published *published; ///< two, used in turn; NULL: a ring without fences
    struct tfos__feed_futex consumer_futex;
    uint64_t position; ///< our head
    uint64_t seen_tail;
    uint64_t rows;     ///< rows published, with TFOS__FEED_ROWS_COMPLETE
    uint64_t left_out; ///< as published with the next record; the caller's to add to
    unsigned turn;
    uint64_t told_wanted; ///< the present value of `wanted`
    int64_t counted_us;   ///< up to when the present wait is in `waited_us`
};

/// Begins at the ring's head.
void tfos__feed_producer_init(struct tfos__feed_producer *producer);

/// Space for a record of `size` bytes, a multiple of 64 and at most the ring's size. AGAIN when
/// there is none yet, of which the consumer is told. BUSY when fenced; CORRUPT when the reader
/// broke the ring or has given it up.
enum tfos_status tfos__feed_producer_reserve(struct tfos__feed_producer *producer, uint64_t size,
                                             uint8_t **space, struct tfos_error *err);

/// Whether a record of `size` bytes could be reserved now.
bool tfos__feed_producer_has_space(struct tfos__feed_producer *producer, uint64_t size);

/// Publishes the record at the reserved space; `rows` (with TFOS__FEED_ROWS_COMPLETE) is then the
/// count of rows published. BUSY when fenced: then the record does not exist.
enum tfos_status tfos__feed_producer_commit(struct tfos__feed_producer *producer, uint64_t size,
                                            uint64_t rows, struct tfos_error *err);

// ---- consumer

struct tfos__feed_held_record {
    uint64_t begin; ///< of the record that is held
    uint64_t size;  ///< of that record
    uint64_t end;   ///< where the tail goes when this and all earlier ones are released
    uint64_t rows;
    bool is_released;
};

/// Held records that keep the producer waiting.
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

    pthread_mutex_t mutex;               ///< guards what follows
    struct tfos__feed_held_record *held; ///< oldest at `first`; a circular array
    size_t first, count, capacity;
    uint64_t sequence; ///< number of the oldest held record
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

/// Skips that record.
void tfos__feed_consumer_skip(struct tfos__feed_consumer *consumer);

/// Keeps the record until release(*sequence).
enum tfos_status tfos__feed_consumer_hold(struct tfos__feed_consumer *consumer, uint64_t *sequence,
                                          struct tfos_error *err);

/// Any thread. Does nothing for a record that rebase() has released.
void tfos__feed_consumer_release(struct tfos__feed_consumer *consumer, uint64_t sequence);

/// Counts rows of a held record as released before the record is. Any thread.
void tfos__feed_consumer_use(struct tfos__feed_consumer *consumer, uint64_t sequence,
                             uint64_t rows);

/// Whether everything is read, and held records keep the producer, or the next one, waiting.
bool tfos__feed_consumer_is_blocking(struct tfos__feed_consumer *consumer,
                                     struct tfos__feed_blockage *blockage);

/// Whether records are held.
bool tfos__feed_consumer_is_holding(struct tfos__feed_consumer *consumer);

/// Copies the held records to `target`, at the offsets that they have in the ring.
void tfos__feed_consumer_copy_held(struct tfos__feed_consumer *consumer, uint8_t *target);

/// Releases all held records, and reads on in `data`, the same ring mapped elsewhere.
void tfos__feed_consumer_rebase(struct tfos__feed_consumer *consumer, const uint8_t *data);

/// Skips everything written so far.
void tfos__feed_consumer_discard(struct tfos__feed_consumer *consumer);

/// Stops reading a corrupt ring and tells the producer.
void tfos__feed_consumer_abandon(struct tfos__feed_consumer *consumer);

/// Whether everything that was written has been read; it may still be held.
bool tfos__feed_consumer_is_empty(struct tfos__feed_consumer *consumer);

#endif
