// SPDX-License-Identifier: Apache-2.0
/// The shared pages of the feed, as docs/protocol.md lays them out: the bell of a queue, and lanes.
/// Each process maps them here; a mapping is counted, because views of batches may outlive the
/// handle that gave them out.
#ifndef TFOS_FEED_LANE_H
#define TFOS_FEED_LANE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "feed/inlet.h"
#include "feed/outlet.h"

#define TFOS__PAGE_SIZE 4096
#define TFOS__LANE_SIZE_LIMIT (INT64_C(1) << 40) ///< largest ring that anybody may ask for

struct tfos__bell_page {
    char magic[8];
    char reserved[56];
    _Atomic uint32_t word;
    _Atomic uint32_t sleepers;
    _Atomic uint32_t state; ///< enum tfos__feed_state
    uint32_t reserved_word;
    _Atomic int64_t complete_feed;
    _Atomic uint64_t lane_count;
    _Atomic int64_t batch_rows;  ///< rows of the reader's batches; 0: unknown
    _Atomic uint64_t waited_us;  ///< for how long the reader has waited for rows
    _Atomic int64_t stream_feed; ///< feeds from this number on are one epoch; 0: each is one
    _Atomic uint64_t others; ///< goes up while readers of the node's other queues take something
};

struct tfos__lane_page {
    char magic[8];
    uint64_t size;
    uint64_t result_size;
    _Atomic uint32_t is_retired;
    uint32_t reserved_word;
    _Atomic uint64_t before_lane; ///< number + 1 of the lane to be read before this; 0: none
    _Atomic uint64_t before_head; ///< where it stopped there
    char reserved_a[16];
    _Atomic uint64_t head; // 64
    struct tfos__published published[2];
    char reserved_b[24];
    _Atomic uint64_t tail; // 128
    _Atomic uint64_t rows_released;
    char reserved_c[48];
    _Atomic uint32_t writer_word; // 192
    _Atomic uint32_t writer_sleepers;
    _Atomic uint64_t wanted;    ///< bytes of space that the writer waits for; 0: for none
    _Atomic uint64_t waited_us; ///< for how long writers have waited for space
    char reserved_d[40];
    _Atomic uint64_t result_head; // 256
    char reserved_e[56];
    _Atomic uint64_t result_tail; // 320
};

static_assert(offsetof(struct tfos__bell_page, word) == 64, "protocol");
static_assert(offsetof(struct tfos__bell_page, complete_feed) == 80, "protocol");
static_assert(offsetof(struct tfos__bell_page, batch_rows) == 96, "protocol");
static_assert(offsetof(struct tfos__bell_page, waited_us) == 104, "protocol");
static_assert(offsetof(struct tfos__bell_page, stream_feed) == 112, "protocol");
static_assert(offsetof(struct tfos__bell_page, others) == 120, "protocol");
static_assert(offsetof(struct tfos__lane_page, head) == 64, "protocol");
static_assert(offsetof(struct tfos__lane_page, tail) == 128, "protocol");
static_assert(offsetof(struct tfos__lane_page, writer_word) == 192, "protocol");
static_assert(offsetof(struct tfos__lane_page, wanted) == 200, "protocol");
static_assert(offsetof(struct tfos__lane_page, waited_us) == 208, "protocol");
static_assert(offsetof(struct tfos__lane_page, result_head) == 256, "protocol");
static_assert(offsetof(struct tfos__lane_page, result_tail) == 320, "protocol");

/// A mapped bell.
struct tfos__board {
    atomic_int references;
    struct tfos__bell_page *page;
};

/// Makes a bell page in a new memfd.
enum tfos_status tfos__board_create(int *fd, struct tfos_error *err);

/// Maps a bell page; `fd` stays the caller's. CORRUPT when it is none.
enum tfos_status tfos__board_map(int fd, struct tfos__board **out, struct tfos_error *err);
void tfos__board_release(struct tfos__board *board); ///< NULL is accepted
struct tfos__bell tfos__board_bell(const struct tfos__board *board);

/// Makes a lane in a new memfd that can neither shrink nor grow. The sizes are multiples of the
/// page's.
enum tfos_status tfos__lane_create(uint64_t size, uint64_t result_size, int *fd,
                                   struct tfos_error *err);

/// Maps the first page of a lane only (for the host).
enum tfos_status tfos__lane_page_map(int fd, struct tfos__lane_page **out, struct tfos_error *err);
void tfos__lane_page_unmap(struct tfos__lane_page *page);
struct tfos__bell tfos__lane_page_bell(struct tfos__lane_page *page); ///< the writer's

enum tfos__lane_side {
    TFOS__LANE_WRITER, ///< writes batches, reads results
    TFOS__LANE_READER  ///< the other way round
};

struct tfos__site; // evacuation.h

/// A whole mapped lane.
struct tfos__lane {
    atomic_int references;
    struct tfos__lane_page *page;
    struct tfos__board *board; ///< counted
    struct tfos__site *site;   ///< counted: where a reader reads batches; NULL for a writer
    uint64_t size, result_size;
    struct tfos__inlet inlet;   ///< batches for a writer, results for a reader
    struct tfos__outlet outlet; ///< results for a writer, batches for a reader
    struct tfos__bell bell;     ///< the one this side sleeps on
    uint32_t generation; ///< tfos_fork_generation() of the process that mapped it: one that is
                         ///< forked from it gives nothing back
};

/// Maps a lane; `fd` stays the caller's. Everything in it may be hostile. CORRUPT when it is none.
enum tfos_status tfos__lane_map(int fd, enum tfos__lane_side side, struct tfos__board *board,
                                struct tfos__lane **out, struct tfos_error *err);
uint64_t tfos__lane_whole_size(const struct tfos__lane *lane); ///< with the page and both rings
struct tfos__lane *tfos__lane_share(struct tfos__lane *lane);
void tfos__lane_release(struct tfos__lane *lane);            ///< NULL is accepted
bool tfos__lane_is_inherited(const struct tfos__lane *lane); ///< by a forked process

/// Holds the outlet's record for a batch's view: what to put into the view's owner.
struct tfos__batch_owner;
enum tfos_status tfos__lane_hold(struct tfos__lane *lane, struct tfos__batch_owner *owner,
                                 struct tfos_error *err);

#endif
