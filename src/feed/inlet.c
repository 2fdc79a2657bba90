// SPDX-License-Identifier: Apache-2.0
// The head moves by compare-and-swap only, so that a fence set by the host at any moment decides
// for good whether a record was published. The count of rows that belongs to a head is written
// before it, into the slot that the present head does not use: whoever reads the head finds the
// exact count, whenever this process dies.
#include "feed/inlet.h"

#include "base/clock.h"
#include "base/fail.h"

void tfos__feed_producer_init(struct tfos__feed_producer *producer)
{
    uint64_t head = atomic_load(producer->head) & ~TFOS__FEED_HEAD_FENCED;

    producer->position = head;
    producer->seen_tail = atomic_load(producer->tail);
    producer->turn = 0;
    if (producer->published) {
        // The slot that holds the present head stays untouched by the first commit.
        producer->turn = atomic_load(&producer->published[0].head) == head ? 1 : 0;
        producer->rows = atomic_load(&producer->published[1 - producer->turn].rows);
    }
}

// Bytes free behind the head, or a failure when the tail makes no sense.
static enum tfos_status free_size(struct tfos__feed_producer *producer, uint64_t wanted,
                                  uint64_t *out, struct tfos_error *err)
{
    uint64_t used = producer->position - producer->seen_tail;

    if (producer->size - used < wanted || used > producer->size) {
        producer->seen_tail = atomic_load_explicit(producer->tail, memory_order_acquire);
        used = producer->position - producer->seen_tail;
    }
    if (producer->seen_tail & TFOS__FEED_TAIL_ABANDONED)
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: the reader found this lane corrupt and reads it no more");
    if (used > producer->size || used % TFOS__FEED_RECORD_ALIGN != 0)
        return tfos__fail(
            err, TFOS_CORRUPT, "feed: the reader moved the tail to %llu, the head is %llu",
            (unsigned long long)producer->seen_tail, (unsigned long long)producer->position);
    *out = producer->size - used;
    return TFOS_OK;
}

static uint64_t rest_of_ring(const struct tfos__feed_producer *producer)
{
    return producer->size - producer->position % producer->size;
}

// Adds up waits while they last, so that a long one shows before it ends. The clock is read by
// those who wait only.
static void count_wait(struct tfos__feed_producer *producer, bool is_waiting)
{
    bool has_waited = producer->told_wanted > 0;

    if (!producer->wanted || (!is_waiting && !has_waited))
        return;
    int64_t now_us = tfos__now_us();
    if (has_waited)
        atomic_fetch_add_explicit(producer->waited_us, (uint64_t)(now_us - producer->counted_us),
                                  memory_order_relaxed);
    producer->counted_us = now_us;
}

// Tells the consumer how much space we wait for: it may have to move records that it holds.
static void tell_wanted(struct tfos__feed_producer *producer, uint64_t wanted)
{
    if (!producer->wanted || producer->told_wanted == wanted)
        return;
    producer->told_wanted = wanted;
    atomic_store(producer->wanted, wanted);
    if (wanted > 0)
        tfos__feed_futex_wake(producer->consumer_futex);
}

// Space for `size` bytes. AGAIN, and the consumer knows it, when there is none.
static enum tfos_status find_space(struct tfos__feed_producer *producer, uint64_t size,
                                   struct tfos_error *err)
{
    uint64_t available = 0;

    TFOS__TRY(free_size(producer, size, &available, err));
    count_wait(producer, available < size);
    tell_wanted(producer, available < size ? size : 0);
    return available < size ? TFOS_AGAIN : TFOS_OK;
}

enum tfos_status tfos__feed_producer_reserve(struct tfos__feed_producer *producer, uint64_t size,
                                             uint8_t **space, struct tfos_error *err)
{
    uint64_t rest = rest_of_ring(producer);
    enum tfos_status status = TFOS_OK;

    if (size > rest) {
        status = find_space(producer, rest, err);
        if (status != TFOS_OK)
            return status;
        struct tfos__feed_record *filler =
            (void *)(producer->data + producer->position % producer->size);
        *filler = (struct tfos__feed_record){.kind = TFOS__FEED_RECORD_FILLER, .size = rest};
        TFOS__TRY(tfos__feed_producer_commit(producer, rest, producer->rows, err));
    }
    status = find_space(producer, size, err);
    if (status == TFOS_OK)
        *space = producer->data + producer->position % producer->size;
    return status;
}

bool tfos__feed_producer_has_space(struct tfos__feed_producer *producer, uint64_t size)
{
    uint64_t rest = rest_of_ring(producer);
    uint64_t wanted = size > rest ? rest : size;
    uint64_t available = 0;

    // A failure counts as space: the reserve that follows tells it.
    return free_size(producer, wanted, &available, NULL) != TFOS_OK || available >= wanted;
}

enum tfos_status tfos__feed_producer_commit(struct tfos__feed_producer *producer, uint64_t size,
                                            uint64_t rows, struct tfos_error *err)
{
    uint64_t expected = producer->position;
    uint64_t next = producer->position + size;

    if (producer->published) {
        struct tfos__feed_published *slot = &producer->published[producer->turn];
        // Released, so that a host that reads the pair of a living writer can tell that it has
        // changed.
        atomic_store_explicit(&slot->head, next, memory_order_release);
        atomic_store_explicit(&slot->rows, rows, memory_order_release);
    }
    if (!atomic_compare_exchange_strong(producer->head, &expected, next))
        return tfos__fail(err, TFOS_BUSY, "feed: this attempt was superseded by a later one");
    producer->turn ^= 1;
    producer->position = next;
    producer->rows = rows;
    tfos__feed_futex_wake(producer->consumer_futex);
    return TFOS_OK;
}
