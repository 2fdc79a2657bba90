// SPDX-License-Identifier: Apache-2.0
// Each step has three stages: A, every rank writes what others need of it into its slab; B, each
// reduces its slice from all slabs, in the order of ranks; C, each copies the others' slices. A
// rank is in A of one step, B of the one before and C of the one before that, so that a wait is
// short unless somebody is slow. Between B and C the leader takes the step round the ring of hosts.
//
// A slab is written again when all have taken what they need of the step that used it before.
#include "collective/slab_pipeline.h"

#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "collective/host_ring.h"

#define ALIGNMENT 64 // bytes; slices of two ranks share no line of the cache
#define LIST_SIZE 2048
#define LEADER_GRACE_MS 2000

/// A part of a step, in elements.
struct slice {
    int64_t begin, count;
};

static enum tfos_status fail_stalled(const struct tfos__collective_operation *operation,
                                     enum tfos__collective_signal signal, uint64_t value,
                                     struct tfos_error *err)
{
    const struct tfos__collective_roster *roster = operation->roster;
    char list[LIST_SIZE] = "";
    struct tfos__bounded_text late = {.data = list, .capacity = sizeof(list)};
    for (int i = 0; i < operation->segment->member_count; i++) {
        if (tfos__collective_segment_get(operation->segment, i, signal) >= value)
            continue;
        int rank = tfos__collective_roster_rank(roster, roster->members[roster->rank].host, i);
        tfos__bounded_text_append(&late, "%s%s", late.size > 0 ? ", " : "",
                                  roster->members[rank].label);
    }
    return tfos__fail(err, TFOS_TIMEOUT, "%s within %.10g s by %s",
                      signal == TFOS__COLLECTIVE_ARRIVED ? "not called" : "nothing moved",
                      (double)operation->stall_timeout_ms / 1000.0, list);
}

static enum tfos_status await(struct tfos__collective_operation *operation, int member,
                              enum tfos__collective_signal signal, uint64_t value,
                              struct tfos_error *err)
{
    // The leader, which waits for other hosts, knows better who is late.
    int64_t timeout_ms =
        operation->stall_timeout_ms + (signal == TFOS__COLLECTIVE_CIRCLED ? LEADER_GRACE_MS : 0);
    enum tfos_status status = tfos__collective_segment_wait(
        operation->segment, member, signal, value, operation->descriptor.sequence, timeout_ms, err);
    return status == TFOS_AGAIN ? fail_stalled(operation, signal, value, err) : status;
}

static enum tfos_status await_all(struct tfos__collective_operation *operation,
                                  enum tfos__collective_signal signal, uint64_t value,
                                  struct tfos_error *err)
{
    const struct tfos__collective_segment *segment = operation->segment;
    for (int i = 0; i < segment->member_count; i++)
        if (i != segment->index)
            TFOS__TRY(await(operation, i, signal, value, err));
    return TFOS_OK;
}

/// Waits until this rank's slab for `step` may be written.
static enum tfos_status await_slab(struct tfos__collective_operation *operation, uint64_t step,
                                   struct tfos_error *err)
{
    if (step < TFOS__COLLECTIVE_BUFFERS)
        return TFOS_OK;
    return await_all(operation, TFOS__COLLECTIVE_TAKEN, step - TFOS__COLLECTIVE_BUFFERS + 1, err);
}

static void signal(const struct tfos__collective_operation *operation,
                   enum tfos__collective_signal signal, uint64_t step)
{
    tfos__collective_segment_signal(operation->segment, signal, step + 1);
}

/// Ends the operation's `count` steps: signals that it did not need are raised as well.
static void finish(const struct tfos__collective_operation *operation, int64_t count)
{
    const struct tfos__collective_segment *segment = operation->segment;
    uint64_t next = *operation->step + (uint64_t)count;
    for (int i = TFOS__COLLECTIVE_READY; i <= TFOS__COLLECTIVE_TAKEN; i++)
        if (tfos__collective_segment_get(segment, segment->index, i) < next)
            tfos__collective_segment_signal(segment, i, next);
    *operation->step = next;
}

static unsigned char *own_slab(const struct tfos__collective_operation *operation, uint64_t step)
{
    return tfos__collective_segment_slab(operation->segment, step, operation->segment->index);
}

// ---- meeting

void tfos__collective_pipeline_arrive(const struct tfos__collective_operation *operation)
{
    const struct tfos__collective_segment *segment = operation->segment;
    struct tfos__collective_segment_head *head = segment->head;
    uint64_t sequence = operation->descriptor.sequence;
    head->slots[segment->index].descriptors[sequence & 1] = operation->descriptor;
    uint64_t arrivals = atomic_fetch_add(&head->arrival_count, 1) + 1;
    if (arrivals % (uint64_t)segment->member_count == 0)
        atomic_store(&head->last_arrived[sequence & 1], operation->roster->rank);
    tfos__collective_segment_signal(segment, TFOS__COLLECTIVE_ARRIVED, sequence);
}

static enum tfos_status meet_host(struct tfos__collective_operation *operation, int64_t *counts,
                                  struct tfos_error *err)
{
    const struct tfos__collective_segment *segment = operation->segment;
    const struct tfos__collective_roster *roster = operation->roster;
    int host = roster->members[roster->rank].host;
    uint64_t sequence = operation->descriptor.sequence;
    TFOS__TRY(await_all(operation, TFOS__COLLECTIVE_ARRIVED, sequence, err));
    operation->last_rank = atomic_load(&segment->head->last_arrived[sequence & 1]);
    for (int i = 0; i < segment->member_count; i++) {
        const struct tfos__collective_descriptor *other =
            &segment->head->slots[i].descriptors[sequence & 1];
        int rank = tfos__collective_roster_rank(roster, host, i);
        if (!tfos__collective_descriptor_matches(&operation->descriptor, other))
            return tfos__collective_operation_fail_mismatch(operation, rank, other, err);
        if (counts)
            counts[rank] = other->count;
    }
    return TFOS_OK;
}

/// The leaders meet, which takes a step; the others wait for theirs.
static enum tfos_status meet_hosts(struct tfos__collective_operation *operation, int64_t *counts,
                                   struct tfos_error *err)
{
    struct tfos__collective_segment_head *head = operation->segment->head;
    if (operation->ring) {
        TFOS__TRY(tfos__collective_ring_meet(operation, counts, err));
        if (counts)
            memcpy(head->counts, counts, sizeof(head->counts));
        signal(operation, TFOS__COLLECTIVE_CIRCLED, *operation->step);
    } else {
        TFOS__TRY(await(operation, 0, TFOS__COLLECTIVE_CIRCLED, *operation->step + 1, err));
        if (counts)
            memcpy(counts, head->counts, sizeof(head->counts));
    }
    finish(operation, 1);
    return TFOS_OK;
}

enum tfos_status tfos__collective_pipeline_meet(struct tfos__collective_operation *operation,
                                                int64_t *counts, struct tfos_error *err)
{
    TFOS__TRY(meet_host(operation, counts, err));
    return operation->roster->host_count > 1 ? meet_hosts(operation, counts, err) : TFOS_OK;
}

// ---- all-reduce

/// The step's elements, or those of one rank's slice of it.
static int64_t step_elements(const struct tfos__collective_operation *operation,
                             size_t element_size)
{
    return (int64_t)(operation->segment->slab_size / element_size);
}

static struct slice step_of(int64_t count, int64_t limit, int64_t number)
{
    int64_t begin = number * limit, left = count - begin;
    return (struct slice){begin, left < 0 ? 0 : left < limit ? left : limit};
}

static struct slice slice_of(const struct slice *step, int member_count, int index,
                             size_t element_size)
{
    int64_t line = ALIGNMENT / (int64_t)element_size;
    int64_t share = (step->count + member_count - 1) / member_count;
    share = (share + line - 1) / line * line;
    int64_t begin = share * index < step->count ? share * index : step->count;
    int64_t end = begin + share < step->count ? begin + share : step->count;
    return (struct slice){begin, end - begin};
}

/// A vector's all-reduce.
struct all_reduce {
    struct tfos__collective_operation *operation;
    const struct tfos__collective_vector *vector;
    const struct tfos__collective_reduction *reduction;
    int64_t limit; ///< elements of a step
    bool is_alone; ///< there is no other host
};

static enum tfos_status offer(const struct all_reduce *self, int64_t number, struct tfos_error *err)
{
    struct tfos__collective_operation *operation = self->operation;
    const struct tfos__collective_segment *segment = operation->segment;
    size_t size = self->vector->element_size;
    uint64_t step = *operation->step + (uint64_t)number;
    struct slice part = step_of(self->vector->count, self->limit, number);
    struct slice own = slice_of(&part, segment->member_count, segment->index, size);
    TFOS__TRY(await_slab(operation, step, err));
    unsigned char *slab = own_slab(operation, step);
    int64_t behind = own.begin + own.count;
    tfos__collective_vector_read(self->vector, part.begin, own.begin, slab);
    tfos__collective_vector_read(self->vector, part.begin + behind, part.count - behind,
                                 slab + (size_t)behind * size);
    signal(operation, TFOS__COLLECTIVE_READY, step);
    return TFOS_OK;
}

/// Reduces `own` of a step, whose elements lie at `place` in each slab; this rank's come from its
/// vector, at `begin`. The result goes to `out`, and, unless the hosts go on with it, to the
/// vector.
static void reduce_slice(const struct all_reduce *self, uint64_t step, const struct slice *own,
                         int64_t begin)
{
    const struct tfos__collective_segment *segment = self->operation->segment;
    int64_t size = (int64_t)self->vector->element_size, piece;
    for (int64_t done = 0; done < own->count; done += piece / size) {
        const void *sources[TFOS_COLLECTIVE_MAX_RANKS];
        unsigned char *data =
            tfos__collective_vector_at(self->vector, (begin + done) * size, &piece);
        if (piece > (own->count - done) * size)
            piece = (own->count - done) * size;
        size_t offset = (size_t)((own->begin + done) * size);
        for (int i = 0; i < segment->member_count; i++)
            sources[i] = i == segment->index
                             ? data
                             : tfos__collective_segment_slab(segment, step, i) + offset;
        tfos__collective_reduce(self->reduction, sources, segment->member_count, piece / size,
                                self->is_alone, own_slab(self->operation, step) + offset,
                                self->is_alone ? data : NULL);
    }
}

static enum tfos_status reduce(const struct all_reduce *self, int64_t number,
                               struct tfos_error *err)
{
    struct tfos__collective_operation *operation = self->operation;
    const struct tfos__collective_segment *segment = operation->segment;
    uint64_t step = *operation->step + (uint64_t)number;
    struct slice part = step_of(self->vector->count, self->limit, number);
    struct slice own =
        slice_of(&part, segment->member_count, segment->index, self->vector->element_size);
    TFOS__TRY(await_all(operation, TFOS__COLLECTIVE_READY, step + 1, err));
    reduce_slice(self, step, &own, part.begin + own.begin);
    signal(operation, TFOS__COLLECTIVE_REDUCED, step);
    return TFOS_OK;
}

/// The leader's: takes a step, whose slices lie in the slabs of their owners, round the hosts.
static enum tfos_status circle(const struct all_reduce *self, int64_t number,
                               struct tfos_error *err)
{
    struct tfos__collective_operation *operation = self->operation;
    const struct tfos__collective_segment *segment = operation->segment;
    struct tfos_collective_span spans[TFOS_COLLECTIVE_MAX_RANKS];
    size_t size = self->vector->element_size;
    uint64_t step = *operation->step + (uint64_t)number;
    struct slice part = step_of(self->vector->count, self->limit, number);
    TFOS__TRY(await_all(operation, TFOS__COLLECTIVE_REDUCED, step + 1, err));
    for (int i = 0; i < segment->member_count; i++) {
        struct slice slice = slice_of(&part, segment->member_count, i, size);
        spans[i].data =
            tfos__collective_segment_slab(segment, step, i) + (size_t)slice.begin * size;
        spans[i].count = slice.count;
    }
    struct tfos__collective_vector vector;
    TFOS__TRY(tfos__collective_vector_init(&vector, spans, segment->member_count, size, err));
    enum tfos_status status =
        tfos__collective_ring_all_reduce(operation, &vector, self->reduction, err);
    tfos__collective_vector_clear(&vector);
    if (status == TFOS_OK)
        signal(operation, TFOS__COLLECTIVE_CIRCLED, step);
    return status;
}

static enum tfos_status take(const struct all_reduce *self, int64_t number, struct tfos_error *err)
{
    struct tfos__collective_operation *operation = self->operation;
    const struct tfos__collective_segment *segment = operation->segment;
    size_t size = self->vector->element_size;
    uint64_t step = *operation->step + (uint64_t)number;
    struct slice part = step_of(self->vector->count, self->limit, number);
    if (!self->is_alone && segment->index != 0)
        TFOS__TRY(await(operation, 0, TFOS__COLLECTIVE_CIRCLED, step + 1, err));
    for (int i = 1; i <= segment->member_count; i++) {
        int member = (segment->index + i) % segment->member_count;
        if (member == segment->index && self->is_alone)
            break;
        struct slice slice = slice_of(&part, segment->member_count, member, size);
        if (self->is_alone)
            TFOS__TRY(await(operation, member, TFOS__COLLECTIVE_REDUCED, step + 1, err));
        tfos__collective_vector_write(self->vector, part.begin + slice.begin, slice.count,
                                      tfos__collective_segment_slab(segment, step, member) +
                                          (size_t)slice.begin * size);
    }
    signal(operation, TFOS__COLLECTIVE_TAKEN, step);
    return TFOS_OK;
}

enum tfos_status tfos__collective_pipeline_all_reduce(
    struct tfos__collective_operation *operation, const struct tfos__collective_vector *vector,
    const struct tfos__collective_reduction *reduction, struct tfos_error *err)
{
    struct all_reduce self = {.operation = operation,
                              .vector = vector,
                              .reduction = reduction,
                              .limit = step_elements(operation, vector->element_size),
                              .is_alone = operation->roster->host_count == 1};
    int64_t count = (vector->count + self.limit - 1) / self.limit;
    for (int64_t number = 0; number < count + 2 && count > 0; number++) {
        if (number < count)
            TFOS__TRY(offer(&self, number, err));
        if (number >= 1 && number <= count) {
            TFOS__TRY(reduce(&self, number - 1, err));
            if (operation->ring)
                TFOS__TRY(circle(&self, number - 1, err));
        }
        if (number >= 2)
            TFOS__TRY(take(&self, number - 2, err));
    }
    finish(operation, count);
    return TFOS_OK;
}

// ---- broadcast

/// Whose slab has the data of this host: the root's, or the leader's, who has it from another host.
static int source_of(const struct tfos__collective_operation *operation, bool *is_local)
{
    const struct tfos__collective_roster *roster = operation->roster;
    const struct tfos__collective_member *root = &roster->members[operation->descriptor.root];
    *is_local = root->host == roster->members[roster->rank].host;
    return *is_local ? root->index : 0;
}

static enum tfos_status broadcast_step(struct tfos__collective_operation *operation,
                                       const struct tfos__collective_vector *vector, uint64_t step,
                                       const struct slice *part, struct tfos_error *err)
{
    const struct tfos__collective_segment *segment = operation->segment;
    bool is_local, is_root = operation->descriptor.root == operation->roster->rank;
    int source = source_of(operation, &is_local);
    if (segment->index == source)
        TFOS__TRY(await_slab(operation, step, err));
    if (is_root) {
        tfos__collective_vector_read(vector, part->begin, part->count, own_slab(operation, step));
        signal(operation, TFOS__COLLECTIVE_READY, step);
    }
    unsigned char *slab = tfos__collective_segment_slab(segment, step, source);
    if (is_local && !is_root)
        TFOS__TRY(await(operation, source, TFOS__COLLECTIVE_READY, step + 1, err));
    if (operation->ring)
        TFOS__TRY(tfos__collective_ring_broadcast(
            operation, slab, part->count * (int64_t)vector->element_size, err));
    if (operation->ring && !is_local)
        signal(operation, TFOS__COLLECTIVE_CIRCLED, step);
    if (!is_local && segment->index != 0)
        TFOS__TRY(await(operation, 0, TFOS__COLLECTIVE_CIRCLED, step + 1, err));
    if (!is_root)
        tfos__collective_vector_write(vector, part->begin, part->count, slab);
    signal(operation, TFOS__COLLECTIVE_TAKEN, step);
    return TFOS_OK;
}

enum tfos_status tfos__collective_pipeline_broadcast(struct tfos__collective_operation *operation,
                                                     const struct tfos__collective_vector *vector,
                                                     struct tfos_error *err)
{
    int64_t limit = step_elements(operation, vector->element_size);
    int64_t count = (vector->count + limit - 1) / limit;
    for (int64_t number = 0; number < count; number++) {
        struct slice part = step_of(vector->count, limit, number);
        TFOS__TRY(
            broadcast_step(operation, vector, *operation->step + (uint64_t)number, &part, err));
    }
    finish(operation, count);
    return TFOS_OK;
}

// ---- all-gather

struct all_gather {
    struct tfos__collective_operation *operation;
    const int64_t *counts;
    unsigned char *result;
    size_t size; ///< of an element
    int64_t limit;
    int places[TFOS_COLLECTIVE_MAX_RANKS];      ///< of the slabs, by rank
    int64_t offsets[TFOS_COLLECTIVE_MAX_RANKS]; ///< in the result, in elements, by rank
};

static void place_ranks(struct all_gather *self)
{
    const struct tfos__collective_roster *roster = self->operation->roster;
    int host = roster->members[roster->rank].host;
    int remote = self->operation->segment->member_count;
    int64_t offset = 0;
    for (int rank = 0; rank < roster->size; rank++) {
        bool is_local = roster->members[rank].host == host;
        self->places[rank] = is_local ? roster->members[rank].index : remote++;
        self->offsets[rank] = offset;
        offset += self->counts[rank];
    }
}

/// The slabs of a step of all ranks, in the order of hosts, go round.
static enum tfos_status circle_slabs(const struct all_gather *self, uint64_t step, int64_t number,
                                     struct tfos_error *err)
{
    const struct tfos__collective_roster *roster = self->operation->roster;
    struct tfos_collective_span spans[TFOS_COLLECTIVE_MAX_RANKS];
    int64_t host_counts[TFOS_COLLECTIVE_MAX_RANKS] = {0};
    int span_count = 0;
    TFOS__TRY(await_all(self->operation, TFOS__COLLECTIVE_READY, step + 1, err));
    for (int host = 0; host < roster->host_count; host++)
        for (int index = 0; index < roster->counts[host]; index++) {
            int rank = tfos__collective_roster_rank(roster, host, index);
            struct slice part = step_of(self->counts[rank], self->limit, number);
            spans[span_count].data =
                tfos__collective_segment_slab(self->operation->segment, step, self->places[rank]);
            spans[span_count++].count = part.count;
            host_counts[host] += part.count;
        }
    struct tfos__collective_vector vector;
    TFOS__TRY(tfos__collective_vector_init(&vector, spans, span_count, self->size, err));
    enum tfos_status status =
        tfos__collective_ring_all_gather(self->operation, &vector, host_counts, err);
    tfos__collective_vector_clear(&vector);
    if (status == TFOS_OK)
        signal(self->operation, TFOS__COLLECTIVE_CIRCLED, step);
    return status;
}

static enum tfos_status take_slabs(const struct all_gather *self, uint64_t step, int64_t number,
                                   struct tfos_error *err)
{
    struct tfos__collective_operation *operation = self->operation;
    const struct tfos__collective_segment *segment = operation->segment;
    const struct tfos__collective_roster *roster = operation->roster;
    for (int i = 1; i < roster->size; i++) {
        int rank = (roster->rank + i) % roster->size;
        bool is_local = roster->members[rank].host == roster->members[roster->rank].host;
        struct slice part = step_of(self->counts[rank], self->limit, number);
        if (part.count == 0)
            continue;
        if (is_local)
            TFOS__TRY(await(operation, roster->members[rank].index, TFOS__COLLECTIVE_READY,
                            step + 1, err));
        else if (segment->index != 0)
            TFOS__TRY(await(operation, 0, TFOS__COLLECTIVE_CIRCLED, step + 1, err));
        memcpy(self->result + (size_t)(self->offsets[rank] + part.begin) * self->size,
               tfos__collective_segment_slab(segment, step, self->places[rank]),
               (size_t)part.count * self->size);
    }
    signal(operation, TFOS__COLLECTIVE_TAKEN, step);
    return TFOS_OK;
}

static enum tfos_status gather_step(const struct all_gather *self, const unsigned char *data,
                                    int64_t number, struct tfos_error *err)
{
    struct tfos__collective_operation *operation = self->operation;
    uint64_t step = *operation->step + (uint64_t)number;
    struct slice own = step_of(self->counts[operation->roster->rank], self->limit, number);
    TFOS__TRY(await_slab(operation, step, err));
    if (own.count > 0)
        memcpy(own_slab(operation, step), data + (size_t)own.begin * self->size,
               (size_t)own.count * self->size);
    signal(operation, TFOS__COLLECTIVE_READY, step);
    if (operation->ring)
        TFOS__TRY(circle_slabs(self, step, number, err));
    return take_slabs(self, step, number, err);
}

enum tfos_status tfos__collective_pipeline_all_gather(struct tfos__collective_operation *operation,
                                                      const void *data, const int64_t *counts,
                                                      void *result, struct tfos_error *err)
{
    size_t size = tfos__collective_element_size(operation->descriptor.dtype);
    struct all_gather self = {.operation = operation,
                              .counts = counts,
                              .result = result,
                              .size = size,
                              .limit = step_elements(operation, size)};
    int64_t count = 0;
    place_ranks(&self);
    for (int rank = 0; rank < operation->roster->size; rank++) {
        int64_t steps = (counts[rank] + self.limit - 1) / self.limit;
        count = steps > count ? steps : count;
    }
    for (int64_t number = 0; number < count; number++)
        TFOS__TRY(gather_step(&self, data, number, err));
    finish(operation, count);
    return TFOS_OK;
}

// ---- reduce-scatter

enum tfos_status tfos__collective_pipeline_reduce_scatter(
    struct tfos__collective_operation *operation, const void *data, const int64_t *counts,
    const struct tfos__collective_reduction *reduction, void *result, struct tfos_error *err)
{
    const struct tfos__collective_segment *segment = operation->segment;
    size_t size = tfos__collective_element_size(reduction->dtype);
    int members = segment->member_count, own = segment->index;
    int64_t share = step_elements(operation, size) / members, count = 0;
    int64_t offsets[TFOS_COLLECTIVE_MAX_RANKS] = {0};
    const unsigned char *bytes = data;
    for (int i = 0; i < members; i++) {
        int64_t steps = (counts[i] + share - 1) / share;
        count = steps > count ? steps : count;
        if (i > 0)
            offsets[i] = offsets[i - 1] + counts[i - 1];
    }
    for (int64_t number = 0; number < count; number++) {
        const void *sources[TFOS_COLLECTIVE_MAX_RANKS];
        uint64_t step = *operation->step + (uint64_t)number;
        TFOS__TRY(await_slab(operation, step, err));
        for (int i = 0; i < members; i++) {
            struct slice part = step_of(counts[i], share, number);
            const unsigned char *from = bytes + (size_t)(offsets[i] + part.begin) * size;
            if (i != own && part.count > 0)
                memcpy(own_slab(operation, step) + (size_t)(share * i) * size, from,
                       (size_t)part.count * size);
        }
        signal(operation, TFOS__COLLECTIVE_READY, step);
        struct slice part = step_of(counts[own], share, number);
        TFOS__TRY(await_all(operation, TFOS__COLLECTIVE_READY, step + 1, err));
        for (int i = 0; i < members; i++)
            sources[i] = i == own ? bytes + (size_t)(offsets[own] + part.begin) * size
                                  : tfos__collective_segment_slab(segment, step, i) +
                                        (size_t)(share * own) * size;
        if (part.count > 0)
            tfos__collective_reduce(reduction, sources, members, part.count, true,
                                    (unsigned char *)result + (size_t)part.begin * size, NULL);
        signal(operation, TFOS__COLLECTIVE_TAKEN, step);
    }
    finish(operation, count);
    return TFOS_OK;
}
