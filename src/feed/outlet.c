// SPDX-License-Identifier: Apache-2.0
// Every word that the peer writes is copied out once and checked before it is used. The tail moves
// only over spans that are all given back, so that a view handed out is never overwritten.
#include "feed/outlet.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "feed/inlet.h"

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
    tfos__free(consumer->spans);
    consumer->spans = NULL;
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

    memcpy(record, consumer->data + place, sizeof *record);
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

static struct tfos__feed_held_record *span_at(struct tfos__feed_consumer *consumer, size_t index)
{
    return &consumer->spans[(consumer->first + index) % consumer->capacity];
}

static void skip_to(struct tfos__feed_consumer *consumer, uint64_t position)
{
    pthread_mutex_lock(&consumer->mutex);
    consumer->position = position;
    consumer->has_record = false;
    if (consumer->count == 0)
        move_tail(consumer, position);
    else
        span_at(consumer, consumer->count - 1)->end = position;
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

static enum tfos_status grow_spans(struct tfos__feed_consumer *consumer, struct tfos_error *err)
{
    size_t capacity = consumer->capacity ? consumer->capacity * 2 : 16;
    struct tfos__feed_held_record *spans = tfos__alloc(capacity, sizeof *spans);

    if (!spans)
        return tfos__no_memory(err, "feed", "a list of batches");
    for (size_t i = 0; i < consumer->count; i++)
        spans[i] = *span_at(consumer, i);
    tfos__free(consumer->spans);
    consumer->spans = spans;
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
        status = grow_spans(consumer, err);
    if (status == TFOS_OK) {
        uint64_t rows = (uint64_t)consumer->record.rows;
        uint64_t begin = consumer->position;
        consumer->position += consumer->record.size;
        consumer->has_record = false;
        *sequence = consumer->sequence + consumer->count;
        consumer->count++;
        *span_at(consumer, consumer->count - 1) = (struct tfos__feed_held_record){
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
        struct tfos__feed_held_record *span = span_at(consumer, sequence - consumer->sequence);
        if (rows > span->rows)
            rows = span->rows;
        span->rows -= rows;
        count_released(consumer, rows);
    }
    pthread_mutex_unlock(&consumer->mutex);
}

// Takes the oldest span off the list and says how many of its rows were not counted yet.
static uint64_t drop_oldest(struct tfos__feed_consumer *consumer)
{
    uint64_t rows = span_at(consumer, 0)->rows;

    consumer->first = (consumer->first + 1) % consumer->capacity;
    consumer->count--;
    consumer->sequence++;
    return rows;
}

void tfos__feed_consumer_release(struct tfos__feed_consumer *consumer, uint64_t sequence)
{
    uint64_t tail = 0;
    uint64_t rows = 0;
    bool has_moved = false;

    pthread_mutex_lock(&consumer->mutex);
    if (sequence >= consumer->sequence)
        span_at(consumer, sequence - consumer->sequence)->is_released = true;
    while (consumer->count > 0 && span_at(consumer, 0)->is_released) {
        tail = span_at(consumer, 0)->end;
        rows += drop_oldest(consumer);
        has_moved = true;
    }
    if (has_moved && !consumer->is_abandoned) {
        count_released(consumer, rows);
        move_tail(consumer, tail);
    }
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
        uint64_t size = consumer->position - span_at(consumer, 0)->begin;
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
        const struct tfos__feed_held_record *span = span_at(consumer, i);
        uint64_t place = span->begin % consumer->size;
        if (!span->is_released)
            memcpy(target + place, consumer->data + place, span->size);
    }
    pthread_mutex_unlock(&consumer->mutex);
}

void tfos__feed_consumer_rebase(struct tfos__feed_consumer *consumer, const uint8_t *data)
{
    uint64_t rows = 0;

    pthread_mutex_lock(&consumer->mutex);
    consumer->data = data;
    bool has_held = consumer->count > 0;
    while (consumer->count > 0)
        rows += drop_oldest(consumer);
    if (has_held) {
        count_released(consumer, rows);
        move_tail(consumer, consumer->position);
    }
    pthread_mutex_unlock(&consumer->mutex);
}

bool tfos__feed_consumer_is_empty(struct tfos__feed_consumer *consumer)
{
    return consumer->is_abandoned ||
           (!consumer->has_record &&
            (atomic_load(consumer->head) & ~TFOS__FEED_HEAD_FENCED) == consumer->position);
}
