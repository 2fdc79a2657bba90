// SPDX-License-Identifier: Apache-2.0
// Every word that the peer writes is copied out once and checked before it is used. The tail moves
// only over spans that are all given back, so that a view handed out is never overwritten.
#include "feed/outlet.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "feed/inlet.h"

enum tfos_status tfos__outlet_init(struct tfos__outlet *outlet, struct tfos_error *err)
{
    uint64_t tail = atomic_load(outlet->tail);
    uint64_t head = atomic_load(outlet->head) & ~TFOS__HEAD_FENCED;

    if (tail % TFOS__RECORD_ALIGN != 0 || head % TFOS__RECORD_ALIGN != 0 ||
        head - tail > outlet->size)
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: a ring of %llu bytes has its head at %llu and its tail at %llu",
                          (unsigned long long)outlet->size, (unsigned long long)head,
                          (unsigned long long)tail);
    outlet->position = tail;
    outlet->seen_head = tail;
    outlet->has_record = false;
    pthread_mutex_init(&outlet->mutex, NULL);
    return TFOS_OK;
}

void tfos__outlet_clear(struct tfos__outlet *outlet)
{
    pthread_mutex_destroy(&outlet->mutex);
    tfos__free(outlet->spans);
    outlet->spans = NULL;
}

static void move_tail(struct tfos__outlet *outlet, uint64_t tail)
{
    atomic_store_explicit(outlet->tail, tail, memory_order_release);
    tfos__bell_ring(outlet->producer);
}

void tfos__outlet_abandon(struct tfos__outlet *outlet)
{
    pthread_mutex_lock(&outlet->mutex);
    outlet->is_abandoned = true;
    outlet->has_record = false;
    move_tail(outlet, atomic_load(outlet->tail) | TFOS__TAIL_ABANDONED);
    pthread_mutex_unlock(&outlet->mutex);
}

// A filler lies at the end of the ring and never takes all of it: two do not follow each other,
// however hostile the writer, so skipping them ends.
static bool is_misplaced_filler(const struct tfos__outlet *outlet, uint64_t place)
{
    return outlet->record.kind == TFOS__RECORD_FILLER &&
           (place == 0 || place + outlet->record.size != outlet->size);
}

static enum tfos_status read_record(struct tfos__outlet *outlet, struct tfos_error *err)
{
    struct tfos__record *record = &outlet->record;
    uint64_t place = outlet->position % outlet->size;

    memcpy(record, outlet->data + place, sizeof *record);
    // The compiler must not read the shared copy again after the checks.
    atomic_signal_fence(memory_order_seq_cst);
    if (!tfos__record_is_sound(record) || record->kind == TFOS__RECORD_MESSAGE ||
        record->size > outlet->seen_head - outlet->position ||
        record->size > outlet->size - place || is_misplaced_filler(outlet, place))
        return tfos__fail(err, TFOS_CORRUPT,
                          "feed: the record at %llu is broken: kind %u, size %llu, body %llu, row "
                          "%lld, rows %lld",
                          (unsigned long long)outlet->position, record->kind,
                          (unsigned long long)record->size, (unsigned long long)record->body_size,
                          (long long)record->row, (long long)record->rows);
    outlet->has_record = true;
    return TFOS_OK;
}

static enum tfos_status look(struct tfos__outlet *outlet, struct tfos_error *err)
{
    if (outlet->seen_head == outlet->position) {
        uint64_t head =
            atomic_load_explicit(outlet->head, memory_order_acquire) & ~TFOS__HEAD_FENCED;
        if (head - outlet->position > outlet->size || head % TFOS__RECORD_ALIGN != 0)
            return tfos__fail(err, TFOS_CORRUPT,
                              "feed: the writer moved the head to %llu, was at %llu",
                              (unsigned long long)head, (unsigned long long)outlet->position);
        outlet->seen_head = head;
        if (head == outlet->position)
            return TFOS_AGAIN;
    }
    return read_record(outlet, err);
}

enum tfos_status tfos__outlet_peek(struct tfos__outlet *outlet, struct tfos_error *err)
{
    while (!outlet->has_record) {
        if (outlet->is_abandoned)
            return TFOS_AGAIN;
        enum tfos_status status = look(outlet, err);
        if (status < 0)
            tfos__outlet_abandon(outlet);
        if (status != TFOS_OK)
            return status;
        if (outlet->record.kind == TFOS__RECORD_FILLER)
            tfos__outlet_skip(outlet);
    }
    return TFOS_OK;
}

const uint8_t *tfos__outlet_body(const struct tfos__outlet *outlet)
{
    return outlet->data + outlet->position % outlet->size + sizeof(struct tfos__record);
}

static struct tfos__span *span_at(struct tfos__outlet *outlet, size_t index)
{
    return &outlet->spans[(outlet->first + index) % outlet->capacity];
}

static void skip_to(struct tfos__outlet *outlet, uint64_t position)
{
    pthread_mutex_lock(&outlet->mutex);
    outlet->position = position;
    outlet->has_record = false;
    if (outlet->count == 0)
        move_tail(outlet, position);
    else
        span_at(outlet, outlet->count - 1)->end = position;
    pthread_mutex_unlock(&outlet->mutex);
}

void tfos__outlet_skip(struct tfos__outlet *outlet)
{
    skip_to(outlet, outlet->position + outlet->record.size);
}

void tfos__outlet_drop(struct tfos__outlet *outlet)
{
    uint64_t head = atomic_load(outlet->head) & ~TFOS__HEAD_FENCED;

    if (outlet->is_abandoned)
        return;
    if (head - outlet->position > outlet->size || head % TFOS__RECORD_ALIGN != 0) {
        tfos__outlet_abandon(outlet);
        return;
    }
    outlet->seen_head = head;
    skip_to(outlet, head);
}

static enum tfos_status grow_spans(struct tfos__outlet *outlet, struct tfos_error *err)
{
    size_t capacity = outlet->capacity ? outlet->capacity * 2 : 16;
    struct tfos__span *spans = tfos__alloc(capacity, sizeof *spans);

    if (!spans)
        return tfos__no_memory(err, "feed", "a list of batches");
    for (size_t i = 0; i < outlet->count; i++)
        spans[i] = *span_at(outlet, i);
    tfos__free(outlet->spans);
    outlet->spans = spans;
    outlet->capacity = capacity;
    outlet->first = 0;
    return TFOS_OK;
}

enum tfos_status tfos__outlet_hold(struct tfos__outlet *outlet, uint64_t *sequence,
                                   struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    pthread_mutex_lock(&outlet->mutex);
    if (outlet->count == outlet->capacity)
        status = grow_spans(outlet, err);
    if (status == TFOS_OK) {
        uint64_t rows = (uint64_t)outlet->record.rows;
        uint64_t begin = outlet->position;
        outlet->position += outlet->record.size;
        outlet->has_record = false;
        *sequence = outlet->sequence + outlet->count;
        outlet->count++;
        *span_at(outlet, outlet->count - 1) =
            (struct tfos__span){begin, outlet->position - begin, outlet->position, rows, false};
    }
    pthread_mutex_unlock(&outlet->mutex);
    return status;
}

static void count_released(struct tfos__outlet *outlet, uint64_t rows)
{
    if (outlet->rows_released && !outlet->is_abandoned)
        atomic_fetch_add_explicit(outlet->rows_released, rows, memory_order_relaxed);
}

void tfos__outlet_use(struct tfos__outlet *outlet, uint64_t sequence, uint64_t rows)
{
    pthread_mutex_lock(&outlet->mutex);
    if (sequence >= outlet->sequence) {
        struct tfos__span *span = span_at(outlet, sequence - outlet->sequence);
        if (rows > span->rows)
            rows = span->rows;
        span->rows -= rows;
        count_released(outlet, rows);
    }
    pthread_mutex_unlock(&outlet->mutex);
}

// Takes the oldest span off the list and says how many of its rows were not counted yet.
static uint64_t drop_oldest(struct tfos__outlet *outlet)
{
    uint64_t rows = span_at(outlet, 0)->rows;

    outlet->first = (outlet->first + 1) % outlet->capacity;
    outlet->count--;
    outlet->sequence++;
    return rows;
}

void tfos__outlet_release(struct tfos__outlet *outlet, uint64_t sequence)
{
    uint64_t tail = 0;
    uint64_t rows = 0;
    bool has_moved = false;

    pthread_mutex_lock(&outlet->mutex);
    if (sequence >= outlet->sequence)
        span_at(outlet, sequence - outlet->sequence)->is_released = true;
    while (outlet->count > 0 && span_at(outlet, 0)->is_released) {
        tail = span_at(outlet, 0)->end;
        rows += drop_oldest(outlet);
        has_moved = true;
    }
    if (has_moved && !outlet->is_abandoned) {
        count_released(outlet, rows);
        move_tail(outlet, tail);
    }
    pthread_mutex_unlock(&outlet->mutex);
}

bool tfos__outlet_is_obstructed(struct tfos__outlet *outlet, struct tfos__obstacle *obstacle)
{
    uint64_t head = atomic_load(outlet->head);
    uint64_t wanted = outlet->wanted ? atomic_load(outlet->wanted) : 0;
    bool is_without_user = head & TFOS__HEAD_FENCED;
    bool is_obstructed = false;

    if ((head & ~TFOS__HEAD_FENCED) != outlet->position || (wanted == 0 && !is_without_user))
        return false;
    pthread_mutex_lock(&outlet->mutex);
    if (outlet->count > 0 && !outlet->is_abandoned) {
        uint64_t size = outlet->position - span_at(outlet, 0)->begin;
        is_obstructed = is_without_user || wanted > outlet->size - size;
        *obstacle = (struct tfos__obstacle){outlet->sequence, size, is_without_user};
    }
    pthread_mutex_unlock(&outlet->mutex);
    return is_obstructed;
}

bool tfos__outlet_is_holding(struct tfos__outlet *outlet)
{
    pthread_mutex_lock(&outlet->mutex);
    bool is_holding = outlet->count > 0;
    pthread_mutex_unlock(&outlet->mutex);
    return is_holding;
}

void tfos__outlet_copy_held(struct tfos__outlet *outlet, uint8_t *target)
{
    pthread_mutex_lock(&outlet->mutex);
    for (size_t i = 0; i < outlet->count; i++) {
        const struct tfos__span *span = span_at(outlet, i);
        uint64_t place = span->begin % outlet->size;
        if (!span->is_released)
            memcpy(target + place, outlet->data + place, span->size);
    }
    pthread_mutex_unlock(&outlet->mutex);
}

void tfos__outlet_let_go(struct tfos__outlet *outlet, const uint8_t *data)
{
    uint64_t rows = 0;

    pthread_mutex_lock(&outlet->mutex);
    outlet->data = data;
    bool has_held = outlet->count > 0;
    while (outlet->count > 0)
        rows += drop_oldest(outlet);
    if (has_held) {
        count_released(outlet, rows);
        move_tail(outlet, outlet->position);
    }
    pthread_mutex_unlock(&outlet->mutex);
}

bool tfos__outlet_is_empty(struct tfos__outlet *outlet)
{
    return outlet->is_abandoned ||
           (!outlet->has_record &&
            (atomic_load(outlet->head) & ~TFOS__HEAD_FENCED) == outlet->position);
}
