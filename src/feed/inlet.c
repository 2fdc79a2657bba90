// SPDX-License-Identifier: Apache-2.0
// The head moves by compare-and-swap only, so that a fence set by the host at any moment decides
// for good whether a record was published. The count of rows that belongs to a head is written
// before it, into the slot that the present head does not use: whoever reads the head finds the
// exact count, whenever this process dies.
#include "feed/inlet.h"

#include "base/clock.h"
#include "base/fail.h"

void tfos__inlet_init(struct tfos__inlet *inlet)
{
    uint64_t head = atomic_load(inlet->head) & ~TFOS__HEAD_FENCED;

    inlet->position = head;
    inlet->seen_tail = atomic_load(inlet->tail);
    inlet->turn = 0;
    if (inlet->published) {
        // The slot that holds the present head stays untouched by the first commit.
        inlet->turn = atomic_load(&inlet->published[0].head) == head ? 1 : 0;
        inlet->rows = atomic_load(&inlet->published[1 - inlet->turn].rows);
    }
}

// Bytes free behind the head, or a failure when the tail makes no sense.
static enum tfos_status free_size(struct tfos__inlet *inlet, uint64_t wanted, uint64_t *out,
                                  struct tfos_error *err)
{
    uint64_t used = inlet->position - inlet->seen_tail;

    if (inlet->size - used < wanted || used > inlet->size) {
        inlet->seen_tail = atomic_load_explicit(inlet->tail, memory_order_acquire);
        used = inlet->position - inlet->seen_tail;
    }
    if (inlet->seen_tail & TFOS__TAIL_ABANDONED)
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: the reader found this lane corrupt and reads it no more");
    if (used > inlet->size || used % TFOS__RECORD_ALIGN != 0)
        return tfos__fail(
            err, TFOS_CORRUPT, "feed: the reader moved the tail to %llu, the head is %llu",
            (unsigned long long)inlet->seen_tail, (unsigned long long)inlet->position);
    *out = inlet->size - used;
    return TFOS_OK;
}

static uint64_t rest_of_ring(const struct tfos__inlet *inlet)
{
    return inlet->size - inlet->position % inlet->size;
}

// Adds up waits while they last, so that a long one shows before it ends. The clock is read by
// those who wait only.
static void count_wait(struct tfos__inlet *inlet, bool is_waiting)
{
    bool has_waited = inlet->told_wanted > 0;

    if (!inlet->wanted || (!is_waiting && !has_waited))
        return;
    int64_t now_us = tfos__now_us();
    if (has_waited)
        atomic_fetch_add_explicit(inlet->waited_us, (uint64_t)(now_us - inlet->counted_us),
                                  memory_order_relaxed);
    inlet->counted_us = now_us;
}

// Tells the consumer how much space we wait for: it may have to move records that it holds.
static void tell_wanted(struct tfos__inlet *inlet, uint64_t wanted)
{
    if (!inlet->wanted || inlet->told_wanted == wanted)
        return;
    inlet->told_wanted = wanted;
    atomic_store(inlet->wanted, wanted);
    if (wanted > 0)
        tfos__bell_ring(inlet->consumer);
}

// Space for `size` bytes. AGAIN, and the consumer knows it, when there is none.
static enum tfos_status find_space(struct tfos__inlet *inlet, uint64_t size, struct tfos_error *err)
{
    uint64_t available = 0;

    TFOS__TRY(free_size(inlet, size, &available, err));
    count_wait(inlet, available < size);
    tell_wanted(inlet, available < size ? size : 0);
    return available < size ? TFOS_AGAIN : TFOS_OK;
}

enum tfos_status tfos__inlet_reserve(struct tfos__inlet *inlet, uint64_t size, uint8_t **space,
                                     struct tfos_error *err)
{
    uint64_t rest = rest_of_ring(inlet);
    enum tfos_status status = TFOS_OK;

    if (size > rest) {
        status = find_space(inlet, rest, err);
        if (status != TFOS_OK)
            return status;
        struct tfos__record *filler = (void *)(inlet->data + inlet->position % inlet->size);
        *filler = (struct tfos__record){.kind = TFOS__RECORD_FILLER, .size = rest};
        TFOS__TRY(tfos__inlet_commit(inlet, rest, inlet->rows, err));
    }
    status = find_space(inlet, size, err);
    if (status == TFOS_OK)
        *space = inlet->data + inlet->position % inlet->size;
    return status;
}

bool tfos__inlet_has_space(struct tfos__inlet *inlet, uint64_t size)
{
    uint64_t rest = rest_of_ring(inlet);
    uint64_t wanted = size > rest ? rest : size;
    uint64_t available = 0;

    // A failure counts as space: the reserve that follows tells it.
    return free_size(inlet, wanted, &available, NULL) != TFOS_OK || available >= wanted;
}

enum tfos_status tfos__inlet_commit(struct tfos__inlet *inlet, uint64_t size, uint64_t rows,
                                    struct tfos_error *err)
{
    uint64_t expected = inlet->position;
    uint64_t next = inlet->position + size;

    if (inlet->published) {
        struct tfos__published *slot = &inlet->published[inlet->turn];
        // Released, so that a host that reads the pair of a living writer can tell that it has
        // changed.
        atomic_store_explicit(&slot->head, next, memory_order_release);
        atomic_store_explicit(&slot->rows, rows, memory_order_release);
    }
    if (!atomic_compare_exchange_strong(inlet->head, &expected, next))
        return tfos__fail(err, TFOS_BUSY, "feed: this attempt was superseded by a later one");
    inlet->turn ^= 1;
    inlet->position = next;
    inlet->rows = rows;
    tfos__bell_ring(inlet->consumer);
    return TFOS_OK;
}
