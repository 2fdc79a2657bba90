// SPDX-License-Identifier: Apache-2.0
/// The memory that the ranks of a host share: a slot of each with what it does and how far it is,
/// and slabs for data. It is a memfd of the host's leader, the lowest rank, which the others open
/// by way of /proc: nothing has a name, and nothing is left behind. A rank sleeps on a word of its
/// own; whoever signals wakes those that sleep.
#ifndef TFOS_COLLECTIVE_SHARED_SEGMENT_H
#define TFOS_COLLECTIVE_SHARED_SEGMENT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <tfos/status.h>

#include "collective/descriptor.h"
#include "collective/failure.h"

#define TFOS__COLLECTIVE_TOKEN_SIZE 33 ///< hexadecimal digits and NUL
#define TFOS__COLLECTIVE_BUFFERS 3     ///< slabs a place, used in turn

/// How far a rank is. Each is a number that only rises.
enum tfos__collective_signal {
    TFOS__COLLECTIVE_ARRIVED, ///< at this operation
    TFOS__COLLECTIVE_READY,   ///< its part of this step is in its slab
    TFOS__COLLECTIVE_REDUCED, ///< its slice of this step is reduced, in its slab
    TFOS__COLLECTIVE_CIRCLED, ///< leader: other hosts' part of this step is there
    TFOS__COLLECTIVE_TAKEN,   ///< it reads nothing more of this step
    TFOS__COLLECTIVE_LEFT,    ///< it has left the group before this operation; 0: it has not
    TFOS__COLLECTIVE_SIGNALS
};

struct tfos__collective_counter {
    alignas(64) _Atomic uint64_t value;
};

struct tfos__collective_slot {
    struct tfos__collective_descriptor descriptors[2]; ///< by the parity of the operation's number
    struct tfos__collective_counter signals[TFOS__COLLECTIVE_SIGNALS];
    alignas(64) _Atomic uint32_t ticket; ///< the futex on which the rank sleeps
    _Atomic uint32_t is_sleeping;
    _Atomic int blamed; ///< the rank by which the group failed, as this one has noticed, and one
};

struct tfos__collective_segment_head {
    char token[TFOS__COLLECTIVE_TOKEN_SIZE];
    alignas(64) _Atomic uint64_t arrival_count; ///< of ranks at operations
    _Atomic int last_arrived[2];                ///< rank; by the parity of the operation's number
    int64_t counts[TFOS_COLLECTIVE_MAX_RANKS];  ///< of all ranks, as the leader has heard
    struct tfos__collective_slot slots[];
};

struct tfos__collective_segment {
    int fd;                                     ///< owned; -1: none
    struct tfos__collective_segment_head *head; ///< mapped; NULL: not yet
    size_t head_size, size;
    int member_count, index; ///< ranks of this host; this one's place among them
    int slot_count;          ///< ranks for which there is room
    int slab_count;          ///< places, those of the host's members first
    size_t slab_size;
    unsigned char *slabs;
    int spin_count;                           ///< looks before a rank sleeps
    struct tfos__collective_failure *failure; ///< borrowed
};

/// Makes a memfd with a token at its beginning, which is written to `token` too. `*fd` is -1 or to
/// be closed.
enum tfos_status tfos__collective_memory_make(int *fd, char token[TFOS__COLLECTIVE_TOKEN_SIZE],
                                              struct tfos_error *err);

/// Opens the memfd that is descriptor `fd` of process `pid`. -1 when that process, or the memory
/// with this token, cannot be reached from here.
int tfos__collective_memory_reach(pid_t pid, int fd, const char *token);

/// Gives a memfd its size, once and for all.
enum tfos_status tfos__collective_memory_resize(int fd, size_t size, struct tfos_error *err);

/// Sleeps until the futex differs from `seen`; until `deadline` at the latest.
void tfos__collective_futex_wait(_Atomic uint32_t *ticket, uint32_t seen, int64_t deadline);

/// Raises the futex, and wakes all who sleep on it.
void tfos__collective_futex_wake(_Atomic uint32_t *ticket);

/// Makes the memfd, whose token is written to `token` too.
enum tfos_status tfos__collective_segment_init(struct tfos__collective_segment *segment,
                                               char token[TFOS__COLLECTIVE_TOKEN_SIZE],
                                               struct tfos_error *err);

/// Takes the memfd that is descriptor `fd` of process `pid` instead. False when it cannot be
/// reached.
bool tfos__collective_segment_reach(struct tfos__collective_segment *segment, pid_t pid, int fd,
                                    const char *token);

/// Says how many ranks may share it, and for how many places it has slabs.
void tfos__collective_segment_plan(struct tfos__collective_segment *segment, int slot_count,
                                   int slab_count);

/// Gives the memfd its size. Leader only, and once.
enum tfos_status tfos__collective_segment_resize(const struct tfos__collective_segment *segment,
                                                 struct tfos_error *err);

/// Maps it, for the member `index` of `member_count`.
enum tfos_status tfos__collective_segment_map(struct tfos__collective_segment *segment,
                                              int member_count, int index,
                                              struct tfos__collective_failure *failure,
                                              struct tfos_error *err);

/// Unmaps it. A segment of zeros with the descriptor -1 is accepted.
void tfos__collective_segment_clear(struct tfos__collective_segment *segment);

/// The slab of `place` for `step`.
unsigned char *tfos__collective_segment_slab(const struct tfos__collective_segment *segment,
                                             uint64_t step, int place);

uint64_t tfos__collective_segment_get(const struct tfos__collective_segment *segment, int member,
                                      enum tfos__collective_signal signal);

/// Raises a signal of this rank and wakes those that sleep.
void tfos__collective_segment_signal(const struct tfos__collective_segment *segment,
                                     enum tfos__collective_signal signal, uint64_t value);

/// Waits until the signal of `member` is `value` or more. AGAIN after `timeout_ms`; the group's
/// failure if it is operation `sequence`'s.
enum tfos_status tfos__collective_segment_wait(const struct tfos__collective_segment *segment,
                                               int member, enum tfos__collective_signal signal,
                                               uint64_t value, uint64_t sequence,
                                               int64_t timeout_ms, struct tfos_error *err);

#endif
