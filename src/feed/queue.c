// SPDX-License-Identifier: Apache-2.0
#include "feed/queue.h"

#include <unistd.h>

enum tfos_status tfos__feed_queue_open(struct tfos__feed_queue *queue, const char *name, int number,
                                       struct tfos_error *err)
{
    enum tfos_status status;

    *queue = (struct tfos__feed_queue){.name = name, .number = number, .control_fd = -1};
    status = tfos__feed_control_create(&queue->control_fd, err);
    return status == TFOS_OK ? tfos__feed_control_map(queue->control_fd, &queue->control, err)
                             : status;
}

uint32_t tfos__feed_queue_state(const struct tfos__feed_queue *queue)
{
    return atomic_load(&queue->control->page->state);
}

void tfos__feed_queue_set_state(struct tfos__feed_queue *queue, enum tfos__feed_state state)
{
    _Atomic uint32_t *word = &queue->control->page->state;
    uint32_t present = atomic_load(word);

    while (present < (uint32_t)state &&
           !atomic_compare_exchange_weak(word, &present, (uint32_t)state))
        continue;
}

void tfos__feed_queue_end_epoch(struct tfos__feed_queue *queue, int64_t feed)
{
    _Atomic int64_t *complete = &queue->control->page->complete_feed;

    if (feed <= atomic_load(complete))
        return;
    atomic_store(complete, feed);
    tfos__feed_attempt_table_forget(&queue->attempts, feed);
    tfos__feed_futex_wake(tfos__feed_control_futex(queue->control));
}

void tfos__feed_queue_end_batch(struct tfos__feed_queue *queue, int64_t feed)
{
    _Atomic int64_t *stream = &queue->control->page->stream_feed;

    // Before the feed is complete: who sees that it is must know that it ends no epoch.
    if (atomic_load(stream) == 0)
        atomic_store(stream, feed);
    tfos__feed_queue_end_epoch(queue, feed);
}

bool tfos__feed_queue_note_progress(struct tfos__feed_queue *queue, uint64_t progress)
{
    bool has_moved = progress != queue->progress;

    queue->progress = progress;
    return has_moved;
}

void tfos__feed_queue_close(struct tfos__feed_queue *queue)
{
    if (queue->control_fd >= 0)
        close(queue->control_fd);
    tfos__partition_table_clear(&queue->attempts);
    tfos__feed_control_release(queue->control);
}
