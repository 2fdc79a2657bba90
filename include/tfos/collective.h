// SPDX-License-Identifier: Apache-2.0
/// Collective operations among the processes of a group, such as the trainers of workers: each
/// calls the same operations in the same order, and each gets the result. Memory is shared within a
/// host, and hosts are joined by TCP. Results are bit-identical on all ranks, and from run to run
/// with the same ranks on the same hosts.
///
/// A group fails as a whole. When a rank ends, closes the group, calls another operation than the
/// others, or sends no heartbeat for a time, every operation fails, on every rank, now and later,
/// with a message that names that rank. docs/protocol.md has the bytes.
#ifndef TFOS_COLLECTIVE_H
#define TFOS_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/dtype.h>
#include <tfos/status.h>
#include <tfos/wait.h>

#define TFOS_COLLECTIVE_MAX_RANKS 64
#define TFOS_COLLECTIVE_KEY_SIZE 32 ///< bytes

struct tfos_collective;

enum tfos_reduction { TFOS_REDUCE_SUM = 1, TFOS_REDUCE_MEAN, TFOS_REDUCE_MIN, TFOS_REDUCE_MAX };

enum tfos_collective_transport {
    TFOS_COLLECTIVE_AUTO = 0, ///< shared memory between ranks of one host, TCP between hosts
    TFOS_COLLECTIVE_TCP = 1   ///< TCP between all ranks, as if each had a host of its own
};

/// All borrowed for the call of open().
struct tfos_collective_options {
    int rank, size;   ///< of this process, from 0; processes of the group, 1 to 64
    const char *name; ///< of the group, in messages: "workers"
    unsigned char key[TFOS_COLLECTIVE_KEY_SIZE]; ///< the same on all ranks, else they are DENIED
    enum tfos_collective_transport transport;
    bool is_trusted_network;  ///< TCP in the clear, each connection authenticated by the key; else
                              ///< TLS 1.3
    bool has_parameters;      ///< open_parameters() will be called: hosts connect to rank 0 for it
    const char *host;         ///< address of this host for the others; NULL: the one that is found
    int64_t open_timeout_ms;  ///< until all ranks are there; 0: 600,000
    int64_t stall_timeout_ms; ///< for which an operation waits for a rank that sends heartbeats,
                              ///< but does not join it or move data; 0: 600,000
    int64_t silence_timeout_ms; ///< after which a rank that sends no heartbeat counts as dead; 0:
                                ///< 10,000

    /// Gives a value (JSON) and gets the array of all ranks' values, in their order
    /// (tfos_trainer_agree()), which open() frees (tfos_strdup()). Called by open() only, in the
    /// calling thread. Not needed with one rank.
    enum tfos_status (*exchange)(void *context, const char *name, const char *value_json,
                                 char **values_json, struct tfos_error *err);
    void *context;
    bool has_gpu; ///< this rank will call the operations of <tfos/collective_gpu.h>
};

/// Elements that take part in an operation; `data` is read and written. Several are one vector,
/// without a copy.
struct tfos_collective_span {
    void *data;
    int64_t count; ///< elements
};

/// Joins the group, and returns when all ranks have. TIMEOUT names the ranks that are missing;
/// DENIED those that hold another key; INVALID an option.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_open(const struct tfos_collective_options *options, struct tfos_collective **out,
                     struct tfos_error *err);

TFOS_API int tfos_collective_rank(const struct tfos_collective *collective);
TFOS_API int tfos_collective_size(const struct tfos_collective *collective);

/// The number by which acquire() finds it, as TensorFlow's ops do.
TFOS_API int64_t tfos_collective_number(const struct tfos_collective *collective);

/// A hold of the group with this number, to be given up by release(). NOT_FOUND once it is closed,
/// or when it belongs to another process.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_acquire(int64_t number, struct tfos_collective **out, struct tfos_error *err);

/// Gives up a hold of acquire(). NULL is accepted.
TFOS_API void tfos_collective_release(struct tfos_collective *collective);

/// All operations: any thread, but one operation of a group at a time; a second one is refused as
/// BUSY, for the others could get them in another order. `name` (255 bytes at most) says what it is
/// for; ranks whose operations differ in name, kind, dtype, reduction or count fail with INVALID,
/// and each message has both. CLOSED: a rank has ended, is silent, or closed the group; it says
/// which. TIMEOUT: as `stall_timeout_ms` says, with the ranks waited for. INVALID in a process that
/// was forked from the one that opened the group.

/// Replaces each element of the spans by the reduction of the elements at its place on all ranks.
/// dtypes: float16, bfloat16, float32, float64, int32, int64. A mean of integers is rounded toward
/// zero. Half types are summed as float32 and rounded once a transport hop.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_all_reduce(struct tfos_collective *collective, const char *name,
                           const struct tfos_collective_span *spans, int64_t span_count,
                           enum tfos_dtype dtype, enum tfos_reduction reduction,
                           struct tfos_error *err);

/// Replaces the elements of the spans by those of rank `root`. Any dtype of fixed size.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_broadcast(struct tfos_collective *collective, const char *name,
                          const struct tfos_collective_span *spans, int64_t span_count,
                          enum tfos_dtype dtype, int root, struct tfos_error *err);

/// Gathers `count` elements of each rank, which may differ from rank to rank and be 0, in the order
/// of ranks. `allocate` is called once, before any data comes, with the count of each rank, and
/// gives the memory for all; NULL ends the operation, here and on the others, with NO_MEMORY.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_all_gather(struct tfos_collective *collective, const char *name, const void *data,
                           int64_t count, enum tfos_dtype dtype,
                           void *(*allocate)(void *context, const int64_t *counts, int64_t total),
                           void *context, struct tfos_error *err);

/// Reduces `counts[0] + ... + counts[size - 1]` elements of `data` as all_reduce() does; the
/// `counts[rank]` of this rank's part are left in `result`. `data` is not kept.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_reduce_scatter(struct tfos_collective *collective, const char *name, void *data,
                               const int64_t *counts, enum tfos_dtype dtype,
                               enum tfos_reduction reduction, void *result, struct tfos_error *err);

/// Returns when all ranks have called it.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_barrier(struct tfos_collective *collective, const char *name,
                        struct tfos_error *err);

/// Parameters that ranks train asynchronously. Rank 0's process has the values that all share. Each
/// rank, when it likes, pulls them, takes some steps, and pushes what these have changed. Ranks of
/// rank 0's host do so in shared memory, the others over TCP. Which changes of others a pull has is
/// not the same from run to run. The calls are operations as those above, but for what is said
/// here.

/// Begins with rank 0's values, which replace the elements of the spans, float32. All ranks call
/// it, with the same counts and `staleness`, 1 or more: the steps that others may push between a
/// rank's pull and its push. INVALID when parameters are open, or the group has none
/// (`has_parameters`).
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_open_parameters(struct tfos_collective *collective, const char *name,
                                const struct tfos_collective_span *spans, int64_t span_count,
                                int64_t staleness, struct tfos_error *err);

/// Replaces the elements by the shared values, once this rank may take `steps` steps: while another
/// rank is between its pull and its push, and would be stale, it waits. Each push of any rank
/// renews the deadline. `steps` is from 1 to the staleness, and no less than those of the next
/// push.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_pull_parameters(struct tfos_collective *collective, const char *name,
                                const struct tfos_collective_span *spans, int64_t span_count,
                                int64_t steps, struct tfos_error *err);

/// Adds to the shared values what the elements have changed by since the pull, divided by the
/// number of ranks. With 0 steps the others only stop waiting for this rank.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_push_parameters(struct tfos_collective *collective, const char *name,
                                const struct tfos_collective_span *spans, int64_t span_count,
                                int64_t steps, struct tfos_error *err);

/// Notes that this rank waits for its data, or has it, and marks a step so. After 200 ms of waiting
/// the others no longer wait for this rank, as its data may depend on them. Nothing where no
/// parameters are open, or while the group is in another operation.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_await_rows(struct tfos_collective *collective, const char *name, bool is_waiting,
                           struct tfos_error *err);

/// This rank takes no more steps, and the others wait no more for it. Returns when all ranks have
/// called it, with the same values on each.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_collective_close_parameters(struct tfos_collective *collective, const char *name,
                                 const struct tfos_collective_span *spans, int64_t span_count,
                                 struct tfos_error *err);

/// What a group has done since it was opened.
struct tfos_collective_figures {
    int64_t operation_count;
    int64_t byte_count;  ///< of this rank's elements
    int64_t duration_us; ///< in operations, waits included
    int64_t wait_us;     ///< of these, for ranks that had not joined the operation
    int last_rank;       ///< which joined last most often since the last call; -1: none
    int64_t step_count;  ///< training steps, by their marks
    int64_t data_us; ///< for which steps waited for their data; -1: the program does not mark it
    /// Of open parameters, as far as this rank knows: a rank of another host hears of its last push
    /// when it pulls.
    int64_t staleness;    ///< the bound; 0: this rank takes no steps, or no more
    int64_t pushed_steps; ///< steps that were pushed since they were opened
    int64_t push_count;   ///< pushes with steps, and for each the most steps that another rank
    int64_t stale_steps;  ///< pushed between this rank's pull and the push: their sum
};

/// Any thread, also while an operation is under way, which counts until now. `last_rank` counts
/// from call to call.
TFOS_API void tfos_collective_get_figures(struct tfos_collective *collective,
                                          struct tfos_collective_figures *figures);

/// Points of a training step, which a program marks.
enum tfos_collective_mark {
    TFOS_COLLECTIVE_STEPS_BEGIN = 1, ///< a call that takes a step or several, and wants data
    TFOS_COLLECTIVE_STEP_HAS_DATA,
    TFOS_COLLECTIVE_STEP_GRADIENTS, ///< a step's gradients are exchanged
    TFOS_COLLECTIVE_STEPS_END,      ///< the call has ended
    TFOS_COLLECTIVE_STEP_WANTS_DATA ///< in place of the first where a program knows it: a step asks
                                    ///< for its data, and all of the time until it has it is a wait
};

/// For the figures. A program may leave marks out: then steps are counted by their gradients. Any
/// thread; nothing waits.
TFOS_API void tfos_collective_mark_step(struct tfos_collective *collective,
                                        enum tfos_collective_mark mark);

/// Ends the group in order: ranks that call an operation later fail with CLOSED. An operation of
/// this rank that is under way fails, on all. To be called once; it is freed when all holds of
/// acquire() are given up, too. NULL is accepted.
TFOS_API void tfos_collective_close(struct tfos_collective *collective);

#endif
