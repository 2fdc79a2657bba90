// SPDX-License-Identifier: Apache-2.0
/// The writing end of a ring: reserve space for a record, fill it in place, commit. One thread at a
/// time.
#ifndef TFOS_FEED_PRODUCER_H
#define TFOS_FEED_PRODUCER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "feed/futex.h"
#include "feed/record.h"

#define TFOS__FEED_HEAD_FENCED UINT64_C(1)    ///< in a head: the host has ended this writer
#define TFOS__FEED_TAIL_ABANDONED UINT64_C(1) ///< in a tail: the reader found the ring corrupt
#define TFOS__FEED_ROWS_COMPLETE                                                                   \
    (UINT64_C(1) << 63) ///< in a count of rows: the partition's end is published too

/// What was published when the head had the value `head`.
struct tfos__feed_published {
    _Atomic uint64_t head;
    _Atomic uint64_t rows;
};

struct tfos__feed_producer {
    uint8_t *data;
    uint64_t size;
    _Atomic uint64_t *head;
    _Atomic uint64_t *tail;
    _Atomic uint64_t *wanted;    ///< where the consumer is told what we wait for; or NULL
    _Atomic uint64_t *waited_us; ///< where our waits for space are added up; NULL as `wanted`
    struct tfos__feed_published
        *published; ///< two, used in turn; NULL for a ring that nobody fences
    struct tfos__feed_futex consumer_futex;
    uint64_t position; ///< our head
    uint64_t seen_tail;
    uint64_t rows; ///< rows published, with TFOS__FEED_ROWS_COMPLETE
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

#endif
