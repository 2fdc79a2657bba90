// SPDX-License-Identifier: Apache-2.0
/// The shared memory of the feed, as docs/protocol.md lays it out: the control page of a queue, and
/// channels, each a page, a ring of batches and a ring of results. Each process maps them here; a
/// mapping is counted, because views of batches may outlive the handle that gave them out.
#ifndef TFOS_FEED_FEED_CHANNEL_H
#define TFOS_FEED_FEED_CHANNEL_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/status.h>

#include "feed/record_ring.h"

#define TFOS__FEED_PAGE_SIZE 4096
#define TFOS__FEED_CHANNEL_SIZE_LIMIT (INT64_C(1) << 40) ///< largest ring that anybody may ask for

#define TFOS__FEED_CHANNEL_NAME "tfos-channel" ///< of a channel's memfd

static inline uint64_t tfos__feed_whole_pages(uint64_t size)
{
    return (size + TFOS__FEED_PAGE_SIZE - 1) / TFOS__FEED_PAGE_SIZE * TFOS__FEED_PAGE_SIZE;
}

struct tfos__feed_control_page {
    char magic[8];
    char reserved[56];
    _Atomic uint32_t word;
    _Atomic uint32_t waiters;
    _Atomic uint32_t state; ///< enum tfos__feed_state
    uint32_t reserved_word;
    _Atomic int64_t complete_feed;
    _Atomic uint64_t channel_count;
    _Atomic int64_t batch_rows;  ///< rows of the reader's batches; 0: unknown
    _Atomic uint64_t waited_us;  ///< for how long the reader has waited for rows
    _Atomic int64_t stream_feed; ///< feeds from this number on are one epoch; 0: each is one
    _Atomic uint64_t others;   ///< goes up while readers of the node's other queues take something
    _Atomic int64_t step_rows; ///< as tfos__feed_writer_step_rows() says
};

struct tfos__feed_channel_page {
    char magic[8];
    uint64_t size;
    uint64_t result_size;
    _Atomic uint32_t is_retired;
    uint32_t reserved_word;
    _Atomic uint64_t before_channel; ///< number + 1 of the channel to be read before this; 0: none
    _Atomic uint64_t before_head;    ///< where it stopped there
    char reserved_a[16];
    _Atomic uint64_t head; // 64
    struct tfos__feed_published published[2];
    char reserved_b[8];
    _Atomic uint64_t tail; // 128
    _Atomic uint64_t rows_released;
    char reserved_c[48];
    _Atomic uint32_t writer_word; // 192
    _Atomic uint32_t writer_waiters;
    _Atomic uint64_t wanted;    ///< bytes of space that the writer waits for; 0: for none
    _Atomic uint64_t waited_us; ///< for how long writers have waited for space
    char reserved_d[40];
    _Atomic uint64_t result_head; // 256
    char reserved_e[56];
    _Atomic uint64_t result_tail; // 320
};

static_assert(offsetof(struct tfos__feed_control_page, word) == 64, "protocol");
static_assert(offsetof(struct tfos__feed_control_page, complete_feed) == 80, "protocol");
static_assert(offsetof(struct tfos__feed_control_page, batch_rows) == 96, "protocol");
static_assert(offsetof(struct tfos__feed_control_page, waited_us) == 104, "protocol");
static_assert(offsetof(struct tfos__feed_control_page, stream_feed) == 112, "protocol");
static_assert(offsetof(struct tfos__feed_control_page, others) == 120, "protocol");
static_assert(offsetof(struct tfos__feed_control_page, step_rows) == 128, "protocol");
static_assert(offsetof(struct tfos__feed_channel_page, head) == 64, "protocol");
static_assert(offsetof(struct tfos__feed_channel_page, published) == 72, "protocol");
static_assert(offsetof(struct tfos__feed_channel_page, tail) == 128, "protocol");
static_assert(offsetof(struct tfos__feed_channel_page, writer_word) == 192, "protocol");
static_assert(offsetof(struct tfos__feed_channel_page, wanted) == 200, "protocol");
static_assert(offsetof(struct tfos__feed_channel_page, waited_us) == 208, "protocol");
static_assert(offsetof(struct tfos__feed_channel_page, result_head) == 256, "protocol");
static_assert(offsetof(struct tfos__feed_channel_page, result_tail) == 320, "protocol");

/// A control page, mapped.
struct tfos__feed_control {
    atomic_int references;
    struct tfos__feed_control_page *page;
};

/// Makes a control page in a new memfd.
enum tfos_status tfos__feed_control_create(int *fd, struct tfos_error *err);

/// Maps a control page; `fd` stays the caller's. CORRUPT when it is none.
enum tfos_status tfos__feed_control_map(int fd, struct tfos__feed_control **out,
                                        struct tfos_error *err);
void tfos__feed_control_release(struct tfos__feed_control *control); ///< NULL is accepted
struct tfos__feed_futex tfos__feed_control_futex(const struct tfos__feed_control *control);

/// Makes a channel in a new memfd that can neither shrink nor grow. The sizes are multiples of the
/// page's.
enum tfos_status tfos__feed_channel_create(uint64_t size, uint64_t result_size, int *fd,
                                           struct tfos_error *err);

/// Maps the first page of a channel only (for the host).
enum tfos_status tfos__feed_channel_page_map(int fd, struct tfos__feed_channel_page **out,
                                             struct tfos_error *err);
void tfos__feed_channel_page_unmap(struct tfos__feed_channel_page *page);

/// What has been published up to a head.
struct tfos__feed_rows {
    uint64_t count;    ///< rows of the partition
    uint64_t left_out; ///< as in struct tfos__feed_published
    bool is_complete;  ///< the partition's end, too
};

/// With the present head; `first_row` rows where nothing has been published. Final once the head
/// is fenced.
struct tfos__feed_rows tfos__feed_channel_page_rows(const struct tfos__feed_channel_page *page,
                                                    uint64_t first_row);

/// The writer's.
struct tfos__feed_futex tfos__feed_channel_page_futex(struct tfos__feed_channel_page *page);

enum tfos__feed_channel_side {
    TFOS__FEED_CHANNEL_WRITER, ///< writes batches, reads results
    TFOS__FEED_CHANNEL_READER  ///< the other way round
};

struct tfos__feed_mapping;

/// A whole mapped channel.
struct tfos__feed_channel {
    atomic_int references;
    struct tfos__feed_channel_page *page;
    struct tfos__feed_control *control; ///< counted
    struct tfos__feed_mapping *mapping; ///< counted: where a reader's batches lie; else NULL
    uint64_t size, result_size;
    struct tfos__feed_producer producer; ///< batches for a writer, results for a reader
    struct tfos__feed_consumer consumer; ///< results for a writer, batches for a reader
    struct tfos__feed_futex futex;       ///< the one this side sleeps on
    uint32_t generation; ///< tfos_fork_generation() of the process that mapped it: one that is
                         ///< forked from it gives nothing back
};

/// Maps a channel; `fd` stays the caller's. Everything in it may be hostile. CORRUPT when it is
/// none.
enum tfos_status tfos__feed_channel_map(int fd, enum tfos__feed_channel_side side,
                                        struct tfos__feed_control *control,
                                        struct tfos__feed_channel **out, struct tfos_error *err);
void tfos__feed_channel_release(struct tfos__feed_channel *channel); ///< NULL is accepted

/// Holds the consumer's record for a batch's view: what to put into the view's owner. For a reader.
struct tfos__feed_batch_owner;
enum tfos_status tfos__feed_channel_hold(struct tfos__feed_channel *channel,
                                         struct tfos__feed_batch_owner *owner,
                                         struct tfos_error *err);

/// Gives the space of all held batches back to the writer: they are copied to private pages at the
/// same addresses. To be called by the thread that reads the channel, or while it cannot. On
/// failure all is as it was.
enum tfos_status tfos__feed_channel_detach_batches(struct tfos__feed_channel *channel,
                                                   struct tfos_error *err);

#endif
