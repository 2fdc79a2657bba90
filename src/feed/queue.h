// SPDX-License-Identifier: Apache-2.0
/// A queue of a host: its futex, by which its reader and its writers know its state, and the
/// attempts of its partitions. Lanes are made for one queue, out of the memory that all queues
/// share.
#ifndef TFOS_FEED_QUEUE_H
#define TFOS_FEED_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "feed/attempt_table.h"
#include "feed/channel.h"
#include "feed/feed.h"

struct tfos__feed_queue {
    const char *name; ///< borrowed
    int number;       ///< its place among the host's
    int control_fd;   ///< owned; -1 before open()
    struct tfos__feed_control *control;
    struct tfos__partition_table attempts;
    uint64_t progress; ///< of its readers, as last seen
};

enum tfos_status tfos__feed_queue_open(struct tfos__feed_queue *queue, const char *name, int number,
                                       struct tfos_error *err);

uint32_t tfos__feed_queue_state(const struct tfos__feed_queue *queue); ///< enum tfos__feed_state

/// Raises the state; a feed that has ended does not run again.
void tfos__feed_queue_set_state(struct tfos__feed_queue *queue, enum tfos__feed_state state);

/// All partitions of feeds up to this one have been fed.
void tfos__feed_queue_end_epoch(struct tfos__feed_queue *queue, int64_t feed);

/// The same; this one was a batch of a stream: its epoch is that of all feeds to come.
void tfos__feed_queue_end_batch(struct tfos__feed_queue *queue, int64_t feed);

/// Notes how far this queue's readers are; whether they took something since the last call.
bool tfos__feed_queue_note_progress(struct tfos__feed_queue *queue, uint64_t progress);

void tfos__feed_queue_close(struct tfos__feed_queue *queue);

#endif
