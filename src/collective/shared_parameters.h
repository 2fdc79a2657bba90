// SPDX-License-Identifier: Apache-2.0
/// The parameters that ranks train asynchronously, in a memfd of rank 0: the values, and what
/// bounds their staleness. A rank pulls the values, takes steps, and pushes what these have
/// changed. Ranks of that host map the memory, and threads of rank 0 use it for the others
/// (remote_parameters.h). Any thread.
#ifndef TFOS_COLLECTIVE_SHARED_PARAMETERS_H
#define TFOS_COLLECTIVE_SHARED_PARAMETERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/collective.h>
#include <tfos/status.h>

#include "collective/failure.h"
#include "collective/parameter_piece.h"
#include "collective/roster.h"
#include "collective/shared_segment.h"

#define TFOS__COLLECTIVE_PARAMETER_LOCKS 64

struct tfos__collective_parameter_head {
    char token[TFOS__COLLECTIVE_TOKEN_SIZE];
    _Atomic uint32_t ticket;                           ///< a futex, which each push raises
    _Atomic int64_t clocks[TFOS_COLLECTIVE_MAX_RANKS]; ///< steps that a rank has pushed
    /// By rank, the clocks of the others when it pulled; INT64_MAX: it has pushed since.
    _Atomic int64_t seen[TFOS_COLLECTIVE_MAX_RANKS][TFOS_COLLECTIVE_MAX_RANKS];
    _Atomic int64_t awaits_rows_since_ms[TFOS_COLLECTIVE_MAX_RANKS]; ///< 0: it has its data
    _Atomic bool has_ended[TFOS_COLLECTIVE_MAX_RANKS];               ///< it takes no more steps
    /// By rank, over its pushes with steps, the most steps that another pushed since the pull.
    _Atomic int64_t stale_steps[TFOS_COLLECTIVE_MAX_RANKS];
    pthread_mutex_t locks[TFOS__COLLECTIVE_PARAMETER_LOCKS]; ///< of pieces of the values, in turn
};

struct tfos__collective_parameters {
    struct tfos__collective_parameter_head *head; ///< mapped; NULL: it is not
    float *values;
    /// By block and by piece, the newest push that has changed it, counted by piece; under the
    /// piece's lock. They may wrap: their differences count.
    uint32_t *block_versions, *piece_versions;
    struct tfos__collective_piece *piece; ///< owned; room for what this rank exchanges
    uint32_t *marks;                      ///< owned; by piece, the version that this rank pulled
    int64_t count;
    int64_t staleness;   ///< steps that others may push between a rank's pull and its push
    int64_t stale_steps; ///< of this rank, as rank 0 has said; where there is no memory
    size_t size;         ///< bytes that are mapped
    int fd;              ///< owned; -1: none
    const struct tfos__collective_roster *roster; ///< borrowed, as is the failure
    struct tfos__collective_failure *failure;
    int64_t stall_timeout_ms;
};

/// Makes what a rank needs for itself; `count` has been set.
enum tfos_status tfos__collective_parameters_alloc(struct tfos__collective_parameters *parameters,
                                                   struct tfos_error *err);

/// Makes the memory, with values of 0, and writes its token. The fields that are not the memory's
/// are the caller's, and so they are for map().
enum tfos_status tfos__collective_parameters_init(struct tfos__collective_parameters *parameters,
                                                  char token[TFOS__COLLECTIVE_TOKEN_SIZE],
                                                  struct tfos_error *err);

/// Maps the memory that is descriptor `fd` of rank 0.
enum tfos_status tfos__collective_parameters_map(struct tfos__collective_parameters *parameters,
                                                 int fd, const char *token, struct tfos_error *err);

/// Unmaps it, and frees what is owned. Parameters without memory, with the descriptor -1, are
/// accepted.
void tfos__collective_parameters_clear(struct tfos__collective_parameters *parameters);

/// Adds the changes to the values. CLOSED when the group has failed.
enum tfos_status tfos__collective_parameters_push(struct tfos__collective_parameters *parameters,
                                                  const struct tfos__collective_piece *piece,
                                                  struct tfos_error *err);

/// Notes in an initialized piece which blocks have changed since `marks`, a rank's versions by
/// piece, at first 0, which it renews. Copies their values into the piece, or, if that is not NULL,
/// to their places in `all` values. CLOSED when the group has failed.
enum tfos_status tfos__collective_parameters_pull(struct tfos__collective_parameters *parameters,
                                                  struct tfos__collective_piece *piece,
                                                  uint32_t *marks, float *all,
                                                  struct tfos_error *err);

/// What `rank` has done in `steps` steps since its pull is pushed.
void tfos__collective_parameters_leave(struct tfos__collective_parameters *parameters, int rank,
                                       int64_t steps);

/// Waits until `rank` may take `steps` steps; it is to pull then. Any push renews the deadline.
/// `blocker`: who was waited for; -1: nobody. TIMEOUT names that rank; CLOSED when the group has
/// failed.
enum tfos_status tfos__collective_parameters_enter(struct tfos__collective_parameters *parameters,
                                                   int rank, int64_t steps, int *blocker,
                                                   struct tfos_error *err);

/// `rank` takes no more steps. Waits until no rank does; fails as enter() does.
enum tfos_status tfos__collective_parameters_end(struct tfos__collective_parameters *parameters,
                                                 int rank, int *blocker, struct tfos_error *err);

/// Notes that `rank` waits for its data, or has it. Others do not wait for one that has long
/// waited.
void tfos__collective_parameters_await_rows(struct tfos__collective_parameters *parameters,
                                            int rank, bool is_waiting);

#endif
