// SPDX-License-Identifier: Apache-2.0
// A vector is cut into a block a host, and the blocks go round in turns: in turn t host h sends
// block h - t, and receives block h - t - 1, which it sends in the next turn. In the first turns of
// an all-reduce what comes is reduced into the block, in the others it replaces it. So all that
// decides what may be sent is how far the block before has come in: the turns need no beginning and
// no end.
#include "collective/host_ring.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#define PIECE ((int64_t)256 << 10) // bytes of one read or write
#define BLOCK ((int64_t)1 << 20)   // bytes of a host's block of a long vector
#define ALIGNMENT 64

enum tfos_status tfos__collective_ring_init(struct tfos__collective_ring *ring,
                                            const struct tfos__collective_links *links,
                                            const struct tfos__collective_roster *roster,
                                            struct tfos_error *err)
{
    *ring = (struct tfos__collective_ring){.next = links->next.channel,
                                           .previous = links->previous.channel,
                                           .host = roster->members[roster->rank].host,
                                           .host_count = roster->host_count,
                                           .received = tfos__alloc((size_t)PIECE, 1)};
    return ring->received ? TFOS_OK : tfos__no_memory(err, "collective", "a ring");
}

void tfos__collective_ring_clear(struct tfos__collective_ring *ring)
{
    tfos__free(ring->received);
    *ring = (struct tfos__collective_ring){0};
}

// ---- waiting

/// What a turn's block is, in bytes of the vector.
struct block {
    int64_t begin, size;
};

struct cursor {
    int64_t round; ///< of turns: a long vector has several
    int turn;
    int64_t done; ///< bytes of the turn's block
};

/// What goes round.
struct circulation {
    struct tfos__collective_operation *operation;
    const struct tfos__collective_ring *ring;
    const struct tfos__collective_vector *vector;
    const struct tfos__collective_reduction *reduction; ///< of the first `reduced_turns`
    int turns, reduced_turns;
    int shift;             ///< of the blocks, so that a host ends with its own
    int64_t rounds;        ///< 1 where there are counts
    int64_t round_count;   ///< elements of a round
    const int64_t *counts; ///< elements of the blocks, by host; NULL: they are equal
    struct cursor out, in;
    int64_t carried; ///< bytes received of an element that is not whole
    int64_t deadline;
};

static int neighbour(const struct tfos__collective_operation *operation, int step)
{
    const struct tfos__collective_roster *roster = operation->roster;
    int host = operation->ring->host + step + roster->host_count;
    return roster->leaders[host % roster->host_count];
}

/// The neighbour at `step` is lost. Why is known to who watches it.
static enum tfos_status fail_lost(const struct tfos__collective_operation *operation, int step,
                                  enum tfos_status status, const char *cause,
                                  struct tfos_error *err)
{
    TFOS__TRY(tfos__collective_failure_await(operation->failure, operation->descriptor.sequence,
                                             tfos__deadline(TFOS__COLLECTIVE_REASON_MS), err));
    return tfos__fail(err, status == TFOS_CORRUPT ? status : TFOS_CLOSED,
                      "the connection to %s is lost: %s",
                      operation->roster->members[neighbour(operation, step)].label, cause);
}

/// Waits until a neighbour can be written to, or read from.
static enum tfos_status await(struct tfos__collective_operation *operation, bool wants_out,
                              bool wants_in, int64_t deadline, struct tfos_error *err)
{
    struct tfos__collective_failure *failure = operation->failure;
    const struct tfos__collective_ring *ring = operation->ring;
    struct pollfd slots[] = {
        {.fd = wants_out ? tfos__channel_fd(ring->next) : -1, .events = POLLOUT},
        {.fd = wants_in ? tfos__channel_fd(ring->previous) : -1, .events = POLLIN},
        {.fd = failure->wake_fd, .events = POLLIN},
    };
    int64_t begin_us = tfos__now_us();
    int count = poll(slots, 3, tfos__remaining_ms(deadline));
    operation->blocked_us += tfos__now_us() - begin_us;
    if (count < 0 && errno != EINTR)
        return tfos__fail_errno(err, TFOS_IO, "cannot wait for other hosts");
    eventfd_t wakes;
    if (count > 0 && slots[2].revents)
        (void)eventfd_read(failure->wake_fd, &wakes);
    TFOS__TRY(tfos__collective_failure_check(failure, operation->descriptor.sequence, err));
    if (count != 0 || tfos__remaining_ms(deadline) > 0)
        return TFOS_OK;
    return tfos__collective_operation_fail_stalled(operation, err);
}

/// Sends some bytes; `*done` is 0 when none can go now.
static enum tfos_status send_some(const struct tfos__collective_operation *operation,
                                  const void *data, int64_t size, int64_t *done,
                                  struct tfos_error *err)
{
    struct tfos_error cause;
    size_t sent = 0;
    size_t piece = (size_t)(size < PIECE ? size : PIECE);
    enum tfos_status status =
        tfos__channel_write_some(operation->ring->next, data, piece, &sent, &cause);
    *done = status == TFOS_OK ? (int64_t)sent : 0;
    return status < 0 ? fail_lost(operation, 1, status, cause.message, err) : TFOS_OK;
}

static enum tfos_status receive_some(const struct tfos__collective_operation *operation, void *data,
                                     int64_t size, int64_t *done, struct tfos_error *err)
{
    struct tfos_error cause;
    size_t got = 0;
    size_t piece = (size_t)(size < PIECE ? size : PIECE);
    enum tfos_status status =
        tfos__channel_read_some(operation->ring->previous, data, piece, &got, &cause);
    *done = status == TFOS_OK ? (int64_t)got : 0;
    return status < 0 ? fail_lost(operation, -1, status, cause.message, err) : TFOS_OK;
}

// ---- the blocks

static struct block block_of(const struct circulation *self, const struct cursor *cursor, int turn)
{
    int hosts = self->ring->host_count;
    int number = (self->ring->host + self->shift - turn + 2 * hosts) % hosts;
    int64_t size = (int64_t)self->vector->element_size;
    if (self->counts) {
        int64_t begin = 0;
        for (int i = 0; i < number; i++)
            begin += self->counts[i];
        return (struct block){begin * size, self->counts[number] * size};
    }
    int64_t begin = cursor->round * self->round_count, line = ALIGNMENT / size;
    int64_t count = self->vector->count - begin;
    if (count > self->round_count)
        count = self->round_count;
    int64_t share = ((count + hosts - 1) / hosts + line - 1) / line * line;
    int64_t first = share * number < count ? share * number : count;
    int64_t last = first + share < count ? first + share : count;
    return (struct block){(begin + first) * size, (last - first) * size};
}

/// Goes to the next turn while the present one's block is done. False at the end.
static bool settle(const struct circulation *self, struct cursor *cursor, int ahead)
{
    while (cursor->round < self->rounds &&
           cursor->done == block_of(self, cursor, cursor->turn + ahead).size) {
        cursor->done = 0;
        if (++cursor->turn == self->turns) {
            cursor->turn = 0;
            cursor->round++;
        }
    }
    return cursor->round < self->rounds;
}

/// How many bytes of the present turn's block may be sent now.
static int64_t sendable(const struct circulation *self, const struct block *block)
{
    const struct cursor *out = &self->out, *in = &self->in;
    int64_t whole = block->size - out->done;
    if (out->turn == 0 || in->round > out->round)
        return whole;
    if (in->round < out->round || in->turn < out->turn - 1)
        return 0;
    return in->turn == out->turn - 1 ? in->done - out->done : whole;
}

static enum tfos_status send_block(struct circulation *self, bool *has_moved,
                                   struct tfos_error *err)
{
    struct block block = block_of(self, &self->out, self->out.turn);
    int64_t limit = sendable(self, &block), size, done;
    if (limit == 0)
        return TFOS_OK;
    const unsigned char *data =
        tfos__collective_vector_at(self->vector, block.begin + self->out.done, &size);
    TFOS__TRY(send_some(self->operation, data, size < limit ? size : limit, &done, err));
    self->out.done += done;
    *has_moved |= done > 0;
    return TFOS_OK;
}

/// Reduces `count` received elements into the vector, from byte `offset` on.
static void reduce_received(const struct circulation *self, int64_t offset, int64_t count)
{
    int64_t size = (int64_t)self->vector->element_size, piece;
    bool is_last = self->in.turn == self->reduced_turns - 1;
    for (int64_t done = 0; done < count; done += piece / size) {
        unsigned char *own = tfos__collective_vector_at(self->vector, offset + done * size, &piece);
        if (piece > (count - done) * size)
            piece = (count - done) * size;
        const void *sources[] = {self->ring->received + done * size, own};
        tfos__collective_reduce(self->reduction, sources, 2, piece / size, is_last, own, NULL);
    }
}

static enum tfos_status receive_block(struct circulation *self, bool *has_moved,
                                      struct tfos_error *err)
{
    struct block block = block_of(self, &self->in, self->in.turn + 1);
    int64_t offset = block.begin + self->in.done, left = block.size - self->in.done, size, done;
    if (self->in.turn >= self->reduced_turns) {
        unsigned char *data = tfos__collective_vector_at(self->vector, offset, &size);
        TFOS__TRY(receive_some(self->operation, data, size < left ? size : left, &done, err));
        self->in.done += done;
        *has_moved |= done > 0;
        return TFOS_OK;
    }
    int64_t element = (int64_t)self->vector->element_size;
    unsigned char *received = self->ring->received;
    left = left < PIECE ? left : PIECE;
    TFOS__TRY(
        receive_some(self->operation, received + self->carried, left - self->carried, &done, err));
    int64_t whole = (self->carried + done) / element;
    reduce_received(self, offset, whole);
    self->carried += done - whole * element;
    memmove(received, received + whole * element, (size_t)self->carried);
    self->in.done += whole * element;
    *has_moved |= done > 0;
    return TFOS_OK;
}

static enum tfos_status circulate(struct circulation *self, struct tfos_error *err)
{
    int64_t stall_ms = self->operation->stall_timeout_ms, deadline = tfos__deadline(stall_ms);
    for (;;) {
        bool has_moved = false, is_sending = settle(self, &self->out, 0),
             is_receiving = settle(self, &self->in, 1);
        if (!is_sending && !is_receiving)
            return TFOS_OK;
        if (is_sending)
            TFOS__TRY(send_block(self, &has_moved, err));
        if (is_receiving)
            TFOS__TRY(receive_block(self, &has_moved, err));
        if (has_moved) {
            deadline = tfos__deadline(stall_ms);
            continue;
        }
        struct block block = block_of(self, &self->out, self->out.turn);
        TFOS__TRY(await(self->operation, is_sending && sendable(self, &block) > 0, is_receiving,
                        deadline, err));
    }
}

// ---- operations

static struct circulation begin(struct tfos__collective_operation *operation,
                                const struct tfos__collective_vector *vector, const int64_t *counts)
{
    return (struct circulation){.operation = operation,
                                .ring = operation->ring,
                                .vector = vector,
                                .counts = counts,
                                .turns = operation->ring->host_count - 1,
                                .rounds = vector->count > 0,
                                .round_count = vector->count};
}

enum tfos_status tfos__collective_ring_all_reduce(
    struct tfos__collective_operation *operation, const struct tfos__collective_vector *vector,
    const struct tfos__collective_reduction *reduction, struct tfos_error *err)
{
    struct circulation self = begin(operation, vector, NULL);
    int hosts = operation->ring->host_count;
    self.reduction = reduction;
    self.turns = 2 * (hosts - 1);
    self.reduced_turns = hosts - 1;
    self.round_count = BLOCK / (int64_t)vector->element_size * hosts;
    self.rounds = (vector->count + self.round_count - 1) / self.round_count;
    return circulate(&self, err);
}

enum tfos_status tfos__collective_ring_all_gather(struct tfos__collective_operation *operation,
                                                  const struct tfos__collective_vector *vector,
                                                  const int64_t *counts, struct tfos_error *err)
{
    struct circulation self = begin(operation, vector, counts);
    return circulate(&self, err);
}

enum tfos_status tfos__collective_ring_reduce_scatter(
    struct tfos__collective_operation *operation, const struct tfos__collective_vector *vector,
    const int64_t *counts, const struct tfos__collective_reduction *reduction,
    struct tfos_error *err)
{
    struct circulation self = begin(operation, vector, counts);
    self.reduction = reduction;
    self.reduced_turns = self.turns;
    self.shift = -1;
    return circulate(&self, err);
}

/// Sends `out_size` bytes and receives `in_size`.
static enum tfos_status swap(struct tfos__collective_operation *operation, const unsigned char *out,
                             int64_t out_size, unsigned char *in, int64_t in_size,
                             struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(operation->stall_timeout_ms), done;
    while (out_size > 0 || in_size > 0) {
        int64_t moved = 0;
        if (out_size > 0) {
            TFOS__TRY(send_some(operation, out, out_size, &done, err));
            out += done;
            out_size -= done;
            moved += done;
        }
        if (in_size > 0) {
            TFOS__TRY(receive_some(operation, in, in_size, &done, err));
            in += done;
            in_size -= done;
            moved += done;
        }
        if (moved > 0)
            deadline = tfos__deadline(operation->stall_timeout_ms);
        else
            TFOS__TRY(await(operation, out_size > 0, in_size > 0, deadline, err));
    }
    return TFOS_OK;
}

enum tfos_status
tfos__collective_ring_broadcast_vector(struct tfos__collective_operation *operation,
                                       const struct tfos__collective_vector *vector,
                                       struct tfos_error *err)
{
    const struct tfos__collective_ring *ring = operation->ring;
    int root = operation->roster->members[operation->descriptor.root].host;
    int distance = (ring->host - root + ring->host_count) % ring->host_count;
    int64_t whole = vector->count * (int64_t)vector->element_size, size, done;
    int64_t received = distance == 0 ? whole : 0,
            sent = distance == ring->host_count - 1 ? whole : 0;
    int64_t deadline = tfos__deadline(operation->stall_timeout_ms);
    while (received < whole || sent < whole) {
        int64_t moved = 0;
        if (sent < received) {
            const unsigned char *data = tfos__collective_vector_at(vector, sent, &size);
            size = size < received - sent ? size : received - sent;
            TFOS__TRY(send_some(operation, data, size, &done, err));
            sent += done;
            moved += done;
        }
        if (received < whole) {
            unsigned char *data = tfos__collective_vector_at(vector, received, &size);
            TFOS__TRY(receive_some(operation, data, size, &done, err));
            received += done;
            moved += done;
        }
        if (moved > 0)
            deadline = tfos__deadline(operation->stall_timeout_ms);
        else
            TFOS__TRY(await(operation, sent < received, received < whole, deadline, err));
    }
    return TFOS_OK;
}

enum tfos_status tfos__collective_ring_broadcast(struct tfos__collective_operation *operation,
                                                 void *data, int64_t size, struct tfos_error *err)
{
    const struct tfos_collective_span span = {data, size};
    struct tfos__collective_vector vector;
    TFOS__TRY(tfos__collective_vector_init(&vector, &span, 1, 1, err));
    enum tfos_status status = tfos__collective_ring_broadcast_vector(operation, &vector, err);
    tfos__collective_vector_clear(&vector);
    return status;
}

/// The counts of all ranks go round, in the order of hosts.
static enum tfos_status gather_counts(struct tfos__collective_operation *operation, int64_t *counts,
                                      struct tfos_error *err)
{
    const struct tfos__collective_roster *roster = operation->roster;
    int64_t ordered[TFOS_COLLECTIVE_MAX_RANKS], host_counts[TFOS_COLLECTIVE_MAX_RANKS];
    int ranks[TFOS_COLLECTIVE_MAX_RANKS], count = 0;
    for (int host = 0; host < roster->host_count; host++) {
        host_counts[host] = roster->counts[host];
        for (int index = 0; index < roster->counts[host]; index++) {
            ranks[count] = tfos__collective_roster_rank(roster, host, index);
            ordered[count] = counts[ranks[count]];
            count++;
        }
    }
    const struct tfos_collective_span span = {ordered, count};
    struct tfos__collective_vector vector;
    TFOS__TRY(tfos__collective_vector_init(&vector, &span, 1, sizeof(ordered[0]), err));
    enum tfos_status status =
        tfos__collective_ring_all_gather(operation, &vector, host_counts, err);
    tfos__collective_vector_clear(&vector);
    for (int i = 0; i < count; i++)
        counts[ranks[i]] = ordered[i];
    return status;
}

enum tfos_status tfos__collective_ring_meet(struct tfos__collective_operation *operation,
                                            int64_t *counts, struct tfos_error *err)
{
    unsigned char own[TFOS__COLLECTIVE_HEADER_SIZE], other[TFOS__COLLECTIVE_HEADER_SIZE];
    struct tfos__collective_descriptor descriptor;
    int previous = neighbour(operation, -1);
    tfos__collective_descriptor_encode(&operation->descriptor, own);
    TFOS__TRY(swap(operation, own, sizeof(own), other, sizeof(other), err));
    TFOS__TRY(tfos__collective_descriptor_decode(other, &descriptor, err));
    if (!tfos__collective_descriptor_matches(&operation->descriptor, &descriptor))
        return tfos__collective_operation_fail_mismatch(operation, previous, &descriptor, err);
    return counts ? gather_counts(operation, counts, err) : TFOS_OK;
}
