// SPDX-License-Identifier: Apache-2.0
/// A trainer's channel to its node: the state behind struct tfos_trainer, and the thread that reads
/// and writes.
#ifndef TFOS_TRAINER_TRAINER_CHANNEL_H
#define TFOS_TRAINER_TRAINER_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/trainer.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/cluster_key.h"
#include "base/fork_guard.h"
#include "base/queue_names.h"
#include "base/thread.h"

/// One name to agree on; on the stack of the thread that waits for it.
struct tfos__trainer_agreement {
    const char *name;
    char *values;  ///< owned; the answer
    char *refusal; ///< owned; why there will be none
    char *missing; ///< owned; the nodes that have given no value, by the driver's answer
    struct tfos__trainer_agreement *next;
};

enum tfos__trainer_feed_state {
    TFOS__TRAINER_FEED_CLOSED,
    TFOS__TRAINER_FEED_ASKED,
    TFOS__TRAINER_FEED_OPEN,
    TFOS__TRAINER_FEED_REFUSED
};

#define TFOS__TRAINER_DESCRIPTIONS 16 ///< most descriptions of a queue that are kept

/// The driver's description of the rows of some feeds of a queue.
struct tfos__trainer_description {
    char *schema; ///< owned; JSON
    int64_t first_feed;
    int64_t last_feed; ///< 0: all that follow
};

/// A queue that was asked for or described. It stays until the trainer is closed.
struct tfos__trainer_feed_queue {
    char *name; ///< owned
    enum tfos__trainer_feed_state feed;
    struct tfos_feed_reader *reader; ///< owned
    char *refusal;                   ///< owned; why there is no reader
    struct tfos__trainer_description
        descriptions[TFOS__TRAINER_DESCRIPTIONS]; ///< the newest is first
    int description_count;
    struct tfos__trainer_feed_queue *next;
};

/// How often a group of this name was opened, and the newest one.
struct tfos__trainer_group_name {
    char *name; ///< owned
    int64_t open_count;
    int64_t number; ///< by which tfos_collective_acquire() finds it; 0: none
    struct tfos__trainer_group_name *next;
};

struct tfos__trainer_link;

struct tfos_trainer {
    struct tfos__fork_guard guard;
    unsigned char key[TFOS__KEY_SIZE]; ///< for groups
    bool has_key;
    struct tfos__trainer_link *link; ///< held; of its members; NULL: there was none
    json_t *context;
    char *context_text;
    struct tfos__queue_names queue_names; ///< of the node
    int payload_fd;
    int wake_fd; ///< an eventfd: there is something to write, or the end has come
    pthread_t thread;
    bool has_monitor, has_thread;

    struct tfos__monitor monitor;  ///< guards all that follows
    struct tfos__channel *channel; ///< owned
    bool is_closing;
    enum tfos_status failure; ///< OK until the node has gone
    struct tfos_error cause;
    struct tfos__trainer_agreement *agreements;   ///< borrowed, those that a thread waits for
    struct tfos__trainer_feed_queue *queues;      ///< owned list
    struct tfos__trainer_group_name *group_names; ///< owned list
    int64_t steps_due;                            ///< when steps are reported to the node next
    bool is_port_released;                        ///< by the node's answer
};

/// Starts the thread. On failure stop() still is to be called.
enum tfos_status tfos__trainer_channel_start(struct tfos_trainer *trainer, struct tfos_error *err);

/// Ends the thread, if it runs.
void tfos__trainer_channel_stop(struct tfos_trainer *trainer);

/// Takes the lock for a call of this process. INVALID in one that was forked from it, which may
/// have inherited it locked.
enum tfos_status tfos__trainer_channel_lock(struct tfos_trainer *trainer, struct tfos_error *err);
void tfos__trainer_channel_unlock(struct tfos_trainer *trainer);

/// Ends the calls of the trainer's members (trainer_member.c), waits for them, and lets no further
/// one begin.
void tfos__trainer_member_end_all(struct tfos_trainer *trainer);

/// Closes the readers and forgets the queues; once the thread has ended.
void tfos__trainer_channel_clear_queues(struct tfos_trainer *trainer);

/// The message with the figures of the groups' steps so far, for the node, with the lock held;
/// NULL: there were none, or no memory.
json_t *tfos__trainer_collective_steps(const struct tfos_trainer *trainer);

// ---- with the lock held

/// Queues a message (reference taken over) for the thread to write.
enum tfos_status tfos__trainer_channel_send(struct tfos_trainer *trainer, json_t *message,
                                            struct tfos_error *err);

/// From now on the thread reports the figures of steps to the node every second.
void tfos__trainer_channel_watch_steps(struct tfos_trainer *trainer);

/// Waits until all that is queued has been written, because this process may be about to end.
enum tfos_status tfos__trainer_channel_flush(struct tfos_trainer *trainer, struct tfos_error *err);

/// The agreement of this name that a thread waits for, or NULL.
struct tfos__trainer_agreement *
tfos__trainer_channel_find_agreement(const struct tfos_trainer *trainer, const char *name);

/// The queue of this name, made if it is new; NULL when out of memory.
struct tfos__trainer_feed_queue *tfos__trainer_channel_get_queue(struct tfos_trainer *trainer,
                                                                 const char *name);

/// Waits until `is_done(context)`, which is asked with the lock held. Else AGAIN at the deadline,
/// the failure of a channel whose node has gone, or CLOSED when the caller wants no more. The lock
/// is released while the caller is asked: to answer it may use the trainer, or need a lock that
/// another user of the trainer holds.
enum tfos_status tfos__trainer_channel_await(struct tfos_trainer *trainer,
                                             bool (*is_done)(const void *context),
                                             const void *context, struct tfos__wait *wait,
                                             struct tfos_error *err);

#endif
