// SPDX-License-Identifier: Apache-2.0
/// A trainer's link to its node: the state behind struct tfos_trainer, and the thread that reads
/// and writes.
#ifndef TFOS_NODE_LINK_H
#define TFOS_NODE_LINK_H

#include "base/channel.h"
#include "base/fork_guard.h"
#include "base/queue_names.h"

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/trainer.h>

/// One name to agree on; lives on the stack of the thread that waits for it.
struct tfos__agreed {
    const char *name;
    char *values;  ///< owned; the answer
    char *refusal; ///< owned; why there will be none
    char *missing; ///< owned; the nodes that have given no value, as the driver last told
    struct tfos__agreed *next;
};

enum tfos__link_feed {
    TFOS__LINK_FEED_CLOSED,
    TFOS__LINK_FEED_ASKED,
    TFOS__LINK_FEED_OPEN,
    TFOS__LINK_FEED_REFUSED
};

#define TFOS__LINK_DESCRIPTIONS 16 ///< most descriptions of a queue that are kept

/// What the driver said of the rows of some feeds of a queue.
struct tfos__link_description {
    char *schema; ///< owned; JSON
    int64_t first_feed;
    int64_t last_feed; ///< 0: all that follow
};

/// A queue that was asked for or described. It stays until the trainer is closed.
struct tfos__link_queue {
    char *name; ///< owned
    enum tfos__link_feed feed;
    struct tfos_feed_reader *reader; ///< owned
    char *refusal;                   ///< owned; why there is no reader
    struct tfos__link_description descriptions[TFOS__LINK_DESCRIPTIONS]; ///< the newest is first
    int description_count;
    struct tfos__link_queue *next;
};

struct tfos_trainer {
    struct tfos__fork_guard guard;
    json_t *context;
    char *context_text;
    struct tfos__queue_names queue_names; ///< of the node
    int payload_fd;
    int wake_fd; ///< an eventfd: there is something to write, or the end has come
    pthread_t thread;
    bool has_locks, has_thread;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct tfos__channel *channel; ///< owned
    bool is_closing;
    enum tfos_status link; ///< OK until the node has gone
    struct tfos_error link_error;
    struct tfos__agreed *agreements; ///< borrowed, those that somebody waits for
    struct tfos__link_queue *queues; ///< owned list
    bool is_port_released;           ///< the node has said so
};

/// Initializes the locks and starts the thread. On failure stop() still is to be called.
enum tfos_status tfos__link_start(struct tfos_trainer *trainer, struct tfos_error *err);

/// Ends the thread, if it runs.
void tfos__link_stop(struct tfos_trainer *trainer);

/// Takes the lock for a call of this process. INVALID in one that was forked from it, which may
/// have inherited it locked.
enum tfos_status tfos__link_lock(struct tfos_trainer *trainer, struct tfos_error *err);
void tfos__link_unlock(struct tfos_trainer *trainer);

/// Closes the readers and forgets the queues; once the thread has ended.
void tfos__link_clear_queues(struct tfos_trainer *trainer);

// ---- with the lock held

/// Queues a message (reference taken over) for the thread to write.
enum tfos_status tfos__link_send(struct tfos_trainer *trainer, json_t *message,
                                 struct tfos_error *err);

/// Waits until all that is queued has been written, because this process may be about to end.
enum tfos_status tfos__link_flush(struct tfos_trainer *trainer, struct tfos_error *err);

/// The agreement of this name that somebody waits for, or NULL.
struct tfos__agreed *tfos__link_find_agreement(const struct tfos_trainer *trainer,
                                               const char *name);

/// The queue of this name, made if it is new; NULL when out of memory.
struct tfos__link_queue *tfos__link_get_queue(struct tfos_trainer *trainer, const char *name);

/// Waits for a change until `deadline`; the lock is released meanwhile. False once it is past.
bool tfos__link_wait(struct tfos_trainer *trainer, int64_t deadline);

/// The failure of a link whose node has gone.
enum tfos_status tfos__link_give_failure(const struct tfos_trainer *trainer,
                                         struct tfos_error *err);

#endif
