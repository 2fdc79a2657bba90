// SPDX-License-Identifier: Apache-2.0
/// The thread of a rendezvous, which serves its connections, and the lock under which it and the
/// callers of the public interface work on the cluster.
#ifndef TFOS_CLUSTER_RENDEZVOUS_THREAD_H
#define TFOS_CLUSTER_RENDEZVOUS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/rendezvous.h>

#include "base/server.h"
#include "cluster/cluster_state.h"

/// Everything but `lock` and `changed` is guarded by `lock`.
struct tfos_rendezvous {
    pthread_mutex_t lock;
    pthread_cond_t changed; ///< the cluster has changed, an event has come, or the end has begun
    struct tfos__cluster cluster;
    bool is_closing;
    int waiter_count; ///< calls that wait in other threads

    struct tfos__identity identity; ///< its id is the cluster's
    struct tfos__server server;     ///< run by `thread`
    pthread_t thread;
    int64_t denied_ms; ///< when the present minute of counting refusals began
    int denied_count;  ///< refusals in it
};

/// Listens and starts the thread. On success the caller owns `*out` and ends it with
/// tfos__cluster_thread_stop().
enum tfos_status tfos__cluster_thread_start(const struct tfos_rendezvous_options *options,
                                            struct tfos_rendezvous **out, struct tfos_error *err);

/// Takes the lock; unlock also wakes the thread, and other waits, when there is something for them.
void tfos__cluster_thread_lock(struct tfos_rendezvous *rendezvous);
void tfos__cluster_thread_unlock(struct tfos_rendezvous *rendezvous);

/// With the lock held: waits until something may have changed, or until `deadline`.
void tfos__cluster_thread_wait(struct tfos_rendezvous *rendezvous, int64_t deadline);

/// Lets waits in other threads return, ends the thread and frees everything.
void tfos__cluster_thread_stop(struct tfos_rendezvous *rendezvous);

#endif
