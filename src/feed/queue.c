// SPDX-License-Identifier: Apache-2.0
#include "feed/queue.h"

#include <unistd.h>

enum tfos_status tfos__queue_open(struct tfos__queue *queue, const char *name, int number,
                                  struct tfos_error *err)
{
    enum tfos_status status;

    *queue = (struct tfos__queue){.name = name, .number = number, .bell_fd = -1};
    status = tfos__board_create(&queue->bell_fd, err);
    return status == TFOS_OK ? tfos__board_map(queue->bell_fd, &queue->board, err) : status;
}

uint32_t tfos__queue_state(const struct tfos__queue *queue)
{
    return atomic_load(&queue->board->page->state);
}

void tfos__queue_set_state(struct tfos__queue *queue, enum tfos__feed_state state)
{
    _Atomic uint32_t *word = &queue->board->page->state;
    uint32_t present = atomic_load(word);

    while (present < (uint32_t)state &&
           !atomic_compare_exchange_weak(word, &present, (uint32_t)state))
        continue;
}

void tfos__queue_end_epoch(struct tfos__queue *queue, int64_t feed)
{
    _Atomic int64_t *complete = &queue->board->page->complete_feed;

    if (feed <= atomic_load(complete))
        return;
    atomic_store(complete, feed);
    tfos__feed_attempt_forget(&queue->attempts, feed);
    tfos__bell_ring(tfos__board_bell(queue->board));
}

void tfos__queue_end_batch(struct tfos__queue *queue, int64_t feed)
{
    _Atomic int64_t *stream = &queue->board->page->stream_feed;

    // Before the feed is complete: who sees that it is must know that it ends no epoch.
    if (atomic_load(stream) == 0)
        atomic_store(stream, feed);
    tfos__queue_end_epoch(queue, feed);
}

bool tfos__queue_note_progress(struct tfos__queue *queue, uint64_t progress)
{
    bool has_moved = progress != queue->progress;

    queue->progress = progress;
    return has_moved;
}

void tfos__queue_close(struct tfos__queue *queue)
{
    if (queue->bell_fd >= 0)
        close(queue->bell_fd);
    tfos__partition_table_clear(&queue->attempts);
    tfos__board_release(queue->board);
}
