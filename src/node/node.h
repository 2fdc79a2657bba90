// SPDX-License-Identifier: Apache-2.0
/// The state of a node process and what its parts do to it. There is one thread and one poll loop
/// (node.c); each other file is one of the node's partners: the launcher and the executor
/// (launch_server.c), the rendezvous (rendezvous_client.c), the trainer (trainer_process.c), the
/// feeding tasks (feed_service.c), TensorBoard (tensorboard.c).
#ifndef TFOS_NODE_NODE_H
#define TFOS_NODE_NODE_H

#include "base/channel.h"
#include "base/queue_names.h"
#include "base/socket.h"
#include "cluster/cluster.h"
#include "feed/feed.h"
#include "gpu/gpu.h"
#include "node/child.h"
#include "node/config.h"
#include "node/output.h"

#define TFOS__NODE_NAME_SIZE 128

/// Bytes that may wait for the launcher or the trainer. A peer with more does not read, for the
/// largest message has a quarter of that, and is given up.
#define TFOS__NODE_QUEUE_LIMIT ((size_t)4 * TFOS__FRAME_LIMIT)

/// Grace for a trainer whose reason to run is gone: the driver, or the Spark task.
#define TFOS__NODE_LOSS_GRACE_MS 2000

/// Why a node ends before its trainer does by itself.
enum tfos__node_cause {
    TFOS__CAUSE_TRAINER, ///< it does not
    TFOS__CAUSE_STOPPED, ///< the driver sent `stop`
    TFOS__CAUSE_TASK_LOST,
    TFOS__CAUSE_EXECUTOR_LOST,
    TFOS__CAUSE_DRIVER_LOST
};

/// The trainer: its process, and what has come from it.
struct tfos__node_trainer {
    struct tfos__node_child child;
    pid_t session;     ///< in which it began
    int orphan_status; ///< wait status of the last process that failed while the first one of the
                       ///< trainer ran, forked from that into another session; 0: none did
    struct tfos__channel *channel; ///< owned; NULL when not running
    bool is_unread;                ///< messages wait that poll() does not report
    bool is_given_up;              ///< it missed a message, and was ended
    bool is_done;                  ///< it has sent `done`
    char *message;                 ///< owned; its own reason for failing
    json_t *report;                ///< owned; the last one
    json_t *steps;                 ///< owned; the figures of its steps so far; NULL: none reported
    struct tfos__node_output *output; ///< owned
    bool is_stack_asked;              ///< it was asked for its stack
    int64_t stack_answer_at;          ///< when the output captured until then is the answer
    int64_t leftovers_end_at;         ///< when processes that it left are killed; else NEVER
};

/// TensorBoard beside the trainer. It is a convenience: a failure of it is one warning, and
/// training continues. All zero: not wanted or not started.
struct tfos__node_tensorboard {
    struct tfos__node_child child;
    struct tfos__node_output *output; ///< owned; NULL when not running
    int port;
    bool is_served;             ///< it was seen to accept connections
    int64_t probe_at;           ///< when to probe next
    struct addrinfo *addresses; ///< owned; to probe
    const struct addrinfo *probed;
    bool is_probing;
    int probe_fd; ///< owned while is_probing; writable once the connection is decided
    int64_t give_up_at;
    int64_t begun_s;     ///< when it was started, by the wall clock
    bool has_no_scalars; ///< the feed's figures could not be written
};

/// A channel that the trainer has not asked for yet.
struct tfos__node_slot {
    int number;
    int fd; ///< owned
};

/// A queue of the node's feed, as the trainer knows it.
struct tfos__node_queue {
    bool is_open;                  ///< the trainer reads it
    struct tfos__node_slot *slots; ///< owned, before is_open
    int slot_count;
    json_t *description; ///< owned; the driver's newest `describe`; NULL: none
};

struct tfos__node {
    struct tfos__node_config config;
    const struct tfos_node_forker *forker; ///< NULL: the trainer is a program of its own
    int payload_fd;                        ///< owned; -1: none
    int signal_fd;                         ///< owned

    struct tfos__channel *launcher; ///< owned; NULL once it has closed
    bool is_detached;
    int executor_fd; ///< owned pidfd; -1: not watched

    struct tfos__channel *driver; ///< owned; NULL while it joins
    bool is_member;               ///< hello was answered and the driver is there
    bool is_driver_lost;
    char host[TFOS__ADDRESS_SIZE];
    char name[TFOS__NODE_NAME_SIZE]; ///< "worker:0"; before the role is known "executor 3"
    char *job_name;                  ///< owned; NULL until the role is known
    int64_t task_index;
    int port;    ///< TensorFlow's
    int port_fd; ///< owned: keeps the port from others; -1 once released
    int64_t generation;
    json_t *cluster_spec; ///< owned
    int64_t role_deadline;
    int64_t heartbeat_at;

    struct tfos__node_trainer trainer;
    struct tfos_gpu_allocation *gpus; ///< owned; NULL: it has none
    struct tfos__gpu_sampler
        *gpu_sampler;  ///< owned; NULL before the trainer starts, or without GPUs
    char *gpu_warning; ///< owned; why it has none, for the driver; NULL: nothing to tell

    struct tfos__feed_host *feed; ///< owned; NULL: not fed
    enum tfos__feed_state feed_state;
    struct tfos__queue_names queue_names;
    struct tfos__node_queue queues[TFOS__QUEUE_LIMIT];
    uint32_t was_drained, was_terminated; ///< as of the last heartbeat, a bit for each queue
    int64_t feed_step_at;

    struct tfos__node_tensorboard tensorboard;

    bool is_ending; ///< the loop ends once the trainer has
    enum tfos__node_cause cause;
    char end_message[sizeof(((struct tfos_error *)NULL)->message)]; ///< "" before the end
};

// ---- node.c

/// Begins the end: the trainer is stopped, and when it has ended the node ends. The message (printf
/// form) says why; only the first cause counts, a later one can only bring the SIGKILL nearer.
void tfos__node_end(struct tfos__node *node, enum tfos__node_cause cause, int64_t grace_ms,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

// ---- launch_server.c

/// Receives the configuration and the payload from the launcher.
enum tfos_status tfos__node_launcher_open(struct tfos__node *node, int fd, struct tfos_error *err);
enum tfos_status tfos__node_launcher_watch_executor(struct tfos__node *node,
                                                    struct tfos_error *err);

/// Sends a message (reference taken over). A launcher that has gone is no failure; one that cannot
/// take a message counts as gone.
void tfos__node_launcher_send(struct tfos__node *node, json_t *message);
void tfos__node_launcher_step(struct tfos__node *node);
void tfos__node_launcher_executor_ended(struct tfos__node *node);

/// Writes what is queued, for a short time.
void tfos__node_launcher_close(struct tfos__node *node);

// ---- rendezvous_client.c

/// Connects to the rendezvous, reserves TensorFlow's port, and sends the hello.
enum tfos_status tfos__node_rendezvous_join(struct tfos__node *node, const struct tfos_wait *wait,
                                            struct tfos_error *err);

/// Queues a message (reference taken over), unless the driver has gone.
void tfos__node_rendezvous_send(struct tfos__node *node, json_t *message);

/// Reads and follows the driver's messages. It fails when the node cannot continue.
enum tfos_status tfos__node_rendezvous_step(struct tfos__node *node, struct tfos_error *err);

/// Sends the heartbeat and the lines that are due.
void tfos__node_rendezvous_tick(struct tfos__node *node);
void tfos__node_rendezvous_flush_lines(struct tfos__node *node);

/// Whether messages wait to be written to the driver.
bool tfos__node_rendezvous_is_behind(const struct tfos__node *node);

// ---- trainer_gpus.c

/// Takes the GPUs that the configuration asks for. What is not required and not there is no
/// failure.
enum tfos_status tfos__node_gpus_take(struct tfos__node *node, const struct tfos_wait *wait,
                                      struct tfos_error *err);

/// Just before the trainer starts: exchanges GPUs that another program has begun to use, and begins
/// to look at them.
enum tfos_status tfos__node_gpus_start(struct tfos__node *node, struct tfos_error *err);

/// Sets what CUDA reads: the trainer sees its GPUs and no others.
enum tfos_status tfos__node_gpus_set_environment(const struct tfos__node *node,
                                                 struct tfos__node_strings *environment,
                                                 struct tfos_error *err);

/// The GPUs as the trainer's context has them, and as a heartbeat has them; NULL when out of
/// memory.
json_t *tfos__node_gpus_context(const struct tfos__node *node);
json_t *tfos__node_gpus_figures(const struct tfos__node *node);

/// The descriptors that keep them, for the trainer to inherit: at most `capacity`; returns how
/// many.
int tfos__node_gpus_descriptors(const struct tfos__node *node, int *fds, int capacity);

/// Gives them back: the trainer has ended, or the node ends.
void tfos__node_gpus_close(struct tfos__node *node);

// ---- trainer_process.c

/// Starts the trainer with its environment, its output and its link.
enum tfos_status tfos__node_trainer_start(struct tfos__node *node, struct tfos_error *err);

/// For the poll loop: the events of its link. While a trainer does not take the answers to its
/// requests, no further ones are read.
uint32_t tfos__node_trainer_events(const struct tfos__node *node);

/// Reads and follows the trainer's messages.
void tfos__node_trainer_step(struct tfos__node *node);

/// Handles messages that were read, but not yet handled.
void tfos__node_trainer_tick(struct tfos__node *node);

/// Sends it a message (reference taken over) and descriptors. One that has gone is no failure; one
/// that cannot take a message is ended, since it would wait for it.
void tfos__node_trainer_send(struct tfos__node *node, json_t *message, const int *fds,
                             int fd_count);

/// It has ended and was reaped: reports how to the driver, the launcher and the feeders. Where its
/// function has made its process a daemon, a process that was forked from it takes its place.
void tfos__node_trainer_ended(struct tfos__node *node);

/// Looks at a child of the node that is neither the trainer nor TensorBoard and has ended.
/// `context` is the node. For tfos__node_child_reap().
void tfos__node_trainer_examine_orphan(void *context, pid_t pid, int wait_status);

/// Requests a stack report, for a feeder whose rows the trainer does not take: a Python trainer
/// answers SIGUSR2 with the stacks of its threads, on stderr. When the report is due; TFOS__NEVER
/// when none was requested. The report is for tfos__free(), NULL when out of memory.
void tfos__node_trainer_ask_stack(struct tfos__node *node);
int64_t tfos__node_trainer_stack_due(const struct tfos__node *node);
char *tfos__node_trainer_take_stack(struct tfos__node *node);

// ---- feed_service.c

enum tfos_status tfos__node_feed_open(struct tfos__node *node, struct tfos_error *err);
enum tfos_status tfos__node_feed_step(struct tfos__node *node, struct tfos_error *err);

/// Changes the state towards an end, never back from one.
void tfos__node_feed_set_state(struct tfos__node *node, enum tfos__feed_state state,
                               const char *message);

/// The trainer opens a queue: it gets the descriptors of the queue and of all its channels.
void tfos__node_feed_attach(struct tfos__node *node, const char *queue);

/// Follows a message of the driver about the feed: `end_feed`, `terminate`, `fence`, `end_epoch`,
/// `end_batch`, `describe`. False when it is of another type.
bool tfos__node_feed_follow(struct tfos__node *node, const char *type, json_t *message);

/// Sends a trainer that has just started what is known of the queues.
void tfos__node_feed_send_descriptions(struct tfos__node *node);
void tfos__node_feed_close(struct tfos__node *node);

// ---- tensorboard.c

/// Starts TensorBoard when the configuration asks for it and this node is the one to have it: the
/// chief or master, else worker:0.
void tfos__node_tensorboard_start(struct tfos__node *node);

/// Probes whether it serves, one address after the other, and gives it up after a time.
void tfos__node_tensorboard_tick(struct tfos__node *node);

/// The probe is decided: sends the driver its address if it serves.
void tfos__node_tensorboard_step(struct tfos__node *node);

/// When tick() has something to do.
int64_t tfos__node_tensorboard_due(const struct tfos__node_tensorboard *board);

/// Whether it shows the feed's figures: the driver sends them then.
bool tfos__node_tensorboard_wants_figures(const struct tfos__node *node);

/// Writes the driver's message `figures` to event files.
void tfos__node_tensorboard_show(struct tfos__node *node, const json_t *figures);

/// It has ended and was reaped.
void tfos__node_tensorboard_ended(struct tfos__node *node);

void tfos__node_tensorboard_close(struct tfos__node_tensorboard *board);

#endif
