// SPDX-License-Identifier: Apache-2.0
#include "feed/record_ring.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

// ---- futex
//
// Without the private flag, because waiter and waker are different processes. A hostile peer can
// end a wait early or let it run to its timeout, nothing else: every caller checks its condition
// again.

uint32_t tfos__feed_futex_prepare(struct tfos__feed_futex futex)
{
    atomic_fetch_add(futex.waiters, 1);
    // The counterpart of wake()'s: one of the two sees what the other has stored.
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load(futex.word);
}

void tfos__feed_futex_wait(struct tfos__feed_futex futex, uint32_t value, int timeout_ms)
{
    struct timespec timeout = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};

    syscall(SYS_futex, futex.word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

void tfos__feed_futex_cancel(struct tfos__feed_futex futex)
{
    atomic_fetch_sub(futex.waiters, 1);
}

void tfos__feed_futex_wake(struct tfos__feed_futex futex)
{
    // The change that is announced must be visible before the waiters are counted.
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(futex.waiters) == 0)
        return;
    atomic_fetch_add(futex.word, 1);
    syscall(SYS_futex, futex.word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// ---- producer
//
// The head moves by compare-and-swap only, so that a fence set by the host at any moment decides
// for good whether a record was published. The count of rows that belongs to a head is written
// before it, into the slot that the present head does not use: whoever reads the head finds the
// exact count, whenever this process dies.

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
        producer->left_out = atomic_load(&producer->published[1 - producer->turn].left_out);
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
                          "feed: the reader found this channel corrupt and reads it no more");
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
        atomic_store_explicit(&slot->left_out, producer->left_out, memory_order_release);
    }
    if (!atomic_compare_exchange_strong(producer->head, &expected, next))
        return tfos__fail(err, TFOS_BUSY, "feed: this attempt was superseded by a later one");
    producer->turn ^= 1;
    producer->position = next;
    producer->rows = rows;
    tfos__feed_futex_wake(producer->consumer_futex);
    return TFOS_OK;
}

// ---- consumer
//
// Every word that the peer writes is copied out once and checked before it is used. The tail moves
// only over spans that are all given back, so that a view handed out is never overwritten.

enum tfos_status tfos__feed_consumer_init(struct tfos__feed_consumer *consumer,
                                          struct tfos_error *err)
{
    uint64_t tail = atomic_load(consumer->tail);
    uint64_t head = atomic_load(consumer->head) & ~TFOS__FEED_HEAD_FENCED;

    if (tail % TFOS__FEED_RECORD_ALIGN != 0 || head % TFOS__FEED_RECORD_ALIGN != 0 ||
        head - tail > consumer->size)
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: a ring of %llu bytes has its head at %llu and its tail at %llu",
                          (unsigned long long)consumer->size, (unsigned long long)head,
                          (unsigned long long)tail);
    consumer->position = tail;
    consumer->seen_head = tail;
    consumer->has_record = false;
    pthread_mutex_init(&consumer->mutex, NULL);
    return TFOS_OK;
}

void tfos__feed_consumer_clear(struct tfos__feed_consumer *consumer)
{
    pthread_mutex_destroy(&consumer->mutex);
    tfos__free(consumer->held);
    consumer->held = NULL;
}

static void move_tail(struct tfos__feed_consumer *consumer, uint64_t tail)
{
    atomic_store_explicit(consumer->tail, tail, memory_order_release);
    tfos__feed_futex_wake(consumer->producer_futex);
}

void tfos__feed_consumer_abandon(struct tfos__feed_consumer *consumer)
{
    pthread_mutex_lock(&consumer->mutex);
    consumer->is_abandoned = true;
    consumer->has_record = false;
    move_tail(consumer, atomic_load(consumer->tail) | TFOS__FEED_TAIL_ABANDONED);
    pthread_mutex_unlock(&consumer->mutex);
}

// A filler lies at the end of the ring and never takes all of it: two do not follow each other,
// however hostile the writer, so skipping them ends.
static bool is_misplaced_filler(const struct tfos__feed_consumer *consumer, uint64_t place)
{
    return consumer->record.kind == TFOS__FEED_RECORD_FILLER &&
           (place == 0 || place + consumer->record.size != consumer->size);
}

static enum tfos_status read_record(struct tfos__feed_consumer *consumer, struct tfos_error *err)
{
    struct tfos__feed_record *record = &consumer->record;
    uint64_t place = consumer->position % consumer->size;

    memcpy(record, consumer->data + place, sizeof(*record));
    // The compiler must not read the shared copy again after the checks.
    atomic_signal_fence(memory_order_seq_cst);
    if (!tfos__feed_record_is_valid(record) || record->kind == TFOS__FEED_RECORD_MESSAGE ||
        record->size > consumer->seen_head - consumer->position ||
        record->size > consumer->size - place || is_misplaced_filler(consumer, place))
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: the record at %llu is broken: kind %u, size %llu, body %llu, row "
                          "%lld, rows %lld",
                          (unsigned long long)consumer->position, record->kind,
                          (unsigned long long)record->size, (unsigned long long)record->body_size,
                          (long long)record->row, (long long)record->rows);
    consumer->has_record = true;
    return TFOS_OK;
}

static enum tfos_status look(struct tfos__feed_consumer *consumer, struct tfos_error *err)
{
    if (consumer->seen_head == consumer->position) {
        uint64_t head =
            atomic_load_explicit(consumer->head, memory_order_acquire) & ~TFOS__FEED_HEAD_FENCED;
        if (head - consumer->position > consumer->size || head % TFOS__FEED_RECORD_ALIGN != 0)
            return tfos__fail(err, TFOS_CORRUPT,
                              "feed: the writer moved the head to %llu, was at %llu",
                              (unsigned long long)head, (unsigned long long)consumer->position);
        consumer->seen_head = head;
        if (head == consumer->position)
            return TFOS_AGAIN;
    }
    return read_record(consumer, err);
}

enum tfos_status tfos__feed_consumer_peek(struct tfos__feed_consumer *consumer,
                                          struct tfos_error *err)
{
    while (!consumer->has_record) {
        if (consumer->is_abandoned)
            return TFOS_AGAIN;
        enum tfos_status status = look(consumer, err);
        if (status < 0)
            tfos__feed_consumer_abandon(consumer);
        if (status != TFOS_OK)
            return status;
        if (consumer->record.kind == TFOS__FEED_RECORD_FILLER)
            tfos__feed_consumer_skip(consumer);
    }
    return TFOS_OK;
}

const uint8_t *tfos__feed_consumer_body(const struct tfos__feed_consumer *consumer)
{
    return consumer->data + consumer->position % consumer->size + sizeof(struct tfos__feed_record);
}

static struct tfos__feed_held_record *held_at(struct tfos__feed_consumer *consumer, size_t index)
{
    return &consumer->held[(consumer->first + index) % consumer->capacity];
}

static void skip_to(struct tfos__feed_consumer *consumer, uint64_t position)
{
    pthread_mutex_lock(&consumer->mutex);
    consumer->position = position;
    consumer->has_record = false;
    if (consumer->count == 0)
        move_tail(consumer, position);
    else
        held_at(consumer, consumer->count - 1)->end = position;
    pthread_mutex_unlock(&consumer->mutex);
}

void tfos__feed_consumer_skip(struct tfos__feed_consumer *consumer)
{
    skip_to(consumer, consumer->position + consumer->record.size);
}

void tfos__feed_consumer_discard(struct tfos__feed_consumer *consumer)
{
    uint64_t head = atomic_load(consumer->head) & ~TFOS__FEED_HEAD_FENCED;

    if (consumer->is_abandoned)
        return;
    if (head - consumer->position > consumer->size || head % TFOS__FEED_RECORD_ALIGN != 0) {
        tfos__feed_consumer_abandon(consumer);
        return;
    }
    consumer->seen_head = head;
    skip_to(consumer, head);
}

static enum tfos_status grow_held(struct tfos__feed_consumer *consumer, struct tfos_error *err)
{
    size_t capacity = consumer->capacity ? consumer->capacity * 2 : 16;
    struct tfos__feed_held_record *held = tfos__alloc(capacity, sizeof(*held));

    if (!held)
        return tfos__no_memory(err, "feed", "a list of batches");
    for (size_t i = 0; i < consumer->count; i++)
        held[i] = *held_at(consumer, i);
    tfos__free(consumer->held);
    consumer->held = held;
    consumer->capacity = capacity;
    consumer->first = 0;
    return TFOS_OK;
}

enum tfos_status tfos__feed_consumer_hold(struct tfos__feed_consumer *consumer, uint64_t *sequence,
                                          struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    pthread_mutex_lock(&consumer->mutex);
    if (consumer->count == consumer->capacity)
        status = grow_held(consumer, err);
    if (status == TFOS_OK) {
        uint64_t rows = (uint64_t)consumer->record.rows;
        uint64_t begin = consumer->position;
        consumer->position += consumer->record.size;
        consumer->has_record = false;
        *sequence = consumer->sequence + consumer->count;
        consumer->count++;
        *held_at(consumer, consumer->count - 1) = (struct tfos__feed_held_record){
            begin, consumer->position - begin, consumer->position, rows, false};
    }
    pthread_mutex_unlock(&consumer->mutex);
    return status;
}

static void count_released(struct tfos__feed_consumer *consumer, uint64_t rows)
{
    if (consumer->rows_released && !consumer->is_abandoned)
        atomic_fetch_add_explicit(consumer->rows_released, rows, memory_order_relaxed);
}

void tfos__feed_consumer_use(struct tfos__feed_consumer *consumer, uint64_t sequence, uint64_t rows)
{
    pthread_mutex_lock(&consumer->mutex);
    if (sequence >= consumer->sequence) {
        struct tfos__feed_held_record *record = held_at(consumer, sequence - consumer->sequence);
        if (rows > record->rows)
            rows = record->rows;
        record->rows -= rows;
        count_released(consumer, rows);
    }
    pthread_mutex_unlock(&consumer->mutex);
}

// Takes the released records (or all) off the front of the list and gives their space back.
static void give_back(struct tfos__feed_consumer *consumer, bool all)
{
    uint64_t rows = 0, tail = 0;
    size_t count = consumer->count;

    while (consumer->count > 0 && (all || held_at(consumer, 0)->is_released)) {
        tail = held_at(consumer, 0)->end;
        rows += held_at(consumer, 0)->rows;
        consumer->first = (consumer->first + 1) % consumer->capacity;
        consumer->count--;
        consumer->sequence++;
    }
    if (consumer->count < count && !consumer->is_abandoned) {
        count_released(consumer, rows);
        move_tail(consumer, tail);
    }
}

void tfos__feed_consumer_release(struct tfos__feed_consumer *consumer, uint64_t sequence)
{
    pthread_mutex_lock(&consumer->mutex);
    if (sequence >= consumer->sequence)
        held_at(consumer, sequence - consumer->sequence)->is_released = true;
    give_back(consumer, false);
    pthread_mutex_unlock(&consumer->mutex);
}

bool tfos__feed_consumer_is_blocking(struct tfos__feed_consumer *consumer,
                                     struct tfos__feed_blockage *blockage)
{
    uint64_t head = atomic_load(consumer->head);
    uint64_t wanted = consumer->wanted ? atomic_load(consumer->wanted) : 0;
    bool has_writer_exited = head & TFOS__FEED_HEAD_FENCED;
    bool is_blocking = false;

    if ((head & ~TFOS__FEED_HEAD_FENCED) != consumer->position ||
        (wanted == 0 && !has_writer_exited))
        return false;
    pthread_mutex_lock(&consumer->mutex);
    if (consumer->count > 0 && !consumer->is_abandoned) {
        uint64_t size = consumer->position - held_at(consumer, 0)->begin;
        is_blocking = has_writer_exited || wanted > consumer->size - size;
        *blockage = (struct tfos__feed_blockage){consumer->sequence, size, has_writer_exited};
    }
    pthread_mutex_unlock(&consumer->mutex);
    return is_blocking;
}

bool tfos__feed_consumer_is_holding(struct tfos__feed_consumer *consumer)
{
    pthread_mutex_lock(&consumer->mutex);
    bool is_holding = consumer->count > 0;
    pthread_mutex_unlock(&consumer->mutex);
    return is_holding;
}

void tfos__feed_consumer_copy_held(struct tfos__feed_consumer *consumer, uint8_t *target)
{
    pthread_mutex_lock(&consumer->mutex);
    for (size_t i = 0; i < consumer->count; i++) {
        const struct tfos__feed_held_record *record = held_at(consumer, i);
        uint64_t place = record->begin % consumer->size;
        if (!record->is_released)
            memcpy(target + place, consumer->data + place, record->size);
    }
    pthread_mutex_unlock(&consumer->mutex);
}

void tfos__feed_consumer_rebase(struct tfos__feed_consumer *consumer, const uint8_t *data)
{
    pthread_mutex_lock(&consumer->mutex);
    consumer->data = data;
    give_back(consumer, true);
    pthread_mutex_unlock(&consumer->mutex);
}

bool tfos__feed_consumer_is_empty(struct tfos__feed_consumer *consumer)
{
    return consumer->is_abandoned ||
           (!consumer->has_record &&
            (atomic_load(consumer->head) & ~TFOS__FEED_HEAD_FENCED) == consumer->position);
}
