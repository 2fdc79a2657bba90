// SPDX-License-Identifier: Apache-2.0
/// Parameters for the ranks of other hosts than rank 0's: a thread of rank 0 for each does with the
/// shared memory what the rank asks for over its connection.
#ifndef TFOS_COLLECTIVE_REMOTE_PARAMETERS_H
#define TFOS_COLLECTIVE_REMOTE_PARAMETERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

#include "collective/links.h"
#include "collective/parameter_request.h"
#include "collective/shared_parameters.h"

struct tfos__collective_parameter_server {
    struct tfos__collective_parameters *parameters; ///< borrowed, as are the connections
    struct tfos__collective_server_thread {
        struct tfos__collective_parameter_server *server;
        struct tfos__channel *channel;
        pthread_t thread;
        int rank;
        bool is_running;
    } threads[TFOS_COLLECTIVE_MAX_RANKS]; ///< by the rank that is served
    _Atomic bool is_stopping;
};

/// Starts a thread for each connection. On failure stop() still is to be called.
enum tfos_status
tfos__collective_parameter_server_start(struct tfos__collective_parameter_server *server,
                                        struct tfos__collective_parameters *parameters,
                                        const struct tfos__collective_links *links,
                                        struct tfos_error *err);

/// Waits until all threads have ended, as they do behind their rank's last pull. `is_aborted`: ends
/// the connections first. A server of zeros is accepted.
void tfos__collective_parameter_server_stop(struct tfos__collective_parameter_server *server,
                                            bool is_aborted);

/// A rank's own values, and as it has pulled them.
struct tfos__collective_replica {
    const struct tfos__collective_vector *vector; ///< borrowed
    float *pulled;                                ///< borrowed
    float share;                                  ///< what the changes are multiplied by
};

/// A rank's side, over its connection: sends what has changed for a push, or writes the answer to
/// what was pulled. `met_us`: when the answer to a pull began. `parameters`
/// need no memory.
enum tfos_status tfos__collective_parameters_ask(struct tfos__collective_parameters *parameters,
                                                 struct tfos__channel *channel,
                                                 const struct tfos__collective_request *request,
                                                 const struct tfos__collective_replica *replica,
                                                 _Atomic int64_t *met_us, struct tfos_error *err);

#endif
