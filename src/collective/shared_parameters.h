// SPDX-License-Identifier: Apache-2.0
/// The parameters that ranks train asynchronously, in a memfd of rank 0: the values, and the clock
/// of each rank, which is the number of steps that it has pushed. Ranks of that host map it, and
/// threads of rank 0 use it for the others (parameter_server.h). Any thread.
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
#include "collective/roster.h"
#include "collective/shared_segment.h"

#define TFOS__COLLECTIVE_PARAMETER_LOCKS 64
#define TFOS__COLLECTIVE_NO_MORE_STEPS INT64_MAX ///< the clock of a rank that has pushed its last

struct tfos__collective_parameter_head {
    char token[TFOS__COLLECTIVE_TOKEN_SIZE];
    _Atomic uint32_t ticket; ///< a futex, which each advance of a clock raises
    _Atomic int64_t clocks[TFOS_COLLECTIVE_MAX_RANKS];
    pthread_mutex_t locks[TFOS__COLLECTIVE_PARAMETER_LOCKS]; ///< of pieces of the values, in turn
};

struct tfos__collective_parameters {
    struct tfos__collective_parameter_head *head; ///< mapped; NULL: it is not
    float *values;
    int64_t count;
    int64_t staleness; ///< steps by which a rank may be ahead of the slowest
    size_t size;       ///< bytes that are mapped
    int fd;            ///< owned; -1: none
    const struct tfos__collective_roster *roster; ///< borrowed, as is the failure
    struct tfos__collective_failure *failure;
    int64_t stall_timeout_ms;
};

/// Makes the memory, with values of 0, and writes its token. The fields that are not the memory's
/// are the caller's, and so they are for map().
enum tfos_status tfos__collective_parameters_init(struct tfos__collective_parameters *parameters,
                                                  char token[TFOS__COLLECTIVE_TOKEN_SIZE],
                                                  struct tfos_error *err);

/// Maps the memory that is descriptor `fd` of rank 0.
enum tfos_status tfos__collective_parameters_map(struct tfos__collective_parameters *parameters,
                                                 int fd, const char *token, struct tfos_error *err);

/// Unmaps it. Parameters without memory, with the descriptor -1, are accepted.
void tfos__collective_parameters_clear(struct tfos__collective_parameters *parameters);

/// Adds `data` to the values from `begin` on, or copies these. CLOSED when the group has failed.
enum tfos_status tfos__collective_parameters_push(struct tfos__collective_parameters *parameters,
                                                  int64_t begin, const float *data, int64_t count,
                                                  struct tfos_error *err);
enum tfos_status tfos__collective_parameters_pull(struct tfos__collective_parameters *parameters,
                                                  int64_t begin, float *data, int64_t count,
                                                  struct tfos_error *err);

/// All that `rank` has done in `steps` more steps is pushed; NO_MORE_STEPS: it does no more.
void tfos__collective_parameters_advance(struct tfos__collective_parameters *parameters, int rank,
                                         int64_t steps);

/// Waits until `rank` may take as many steps as it has pushed last; until no rank takes more when
/// it takes none. Any rank's step renews the deadline. `slowest`: who was waited for; -1: nobody.
/// TIMEOUT names that rank; CLOSED when the group has failed.
enum tfos_status tfos__collective_parameters_await(struct tfos__collective_parameters *parameters,
                                                   int rank, int64_t steps, int *slowest,
                                                   struct tfos_error *err);

#endif
