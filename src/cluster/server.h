// SPDX-License-Identifier: Apache-2.0
/// The server: the thread that accepts and serves connections, and the lock under which it and the
/// callers of the public interface work on the cluster.
#ifndef TFOS_CLUSTER_SERVER_H
#define TFOS_CLUSTER_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/rendezvous.h>

#include "base/channel.h"
#include "cluster/cluster.h"

struct tfos__connection;

/// Everything but `lock`, `changed` and the descriptors is guarded by `lock`.
struct tfos__server {
    pthread_mutex_t lock;
    pthread_cond_t changed; ///< the cluster has changed, an event has come, or the end has begun
    struct tfos__cluster cluster;
    bool is_closing;
    int waiter_count; ///< calls that wait in other threads

    struct tfos__identity identity; ///< its id is the cluster's
    pthread_t thread;
    int epoll_fd;                         ///< owned, as are the next three
    int wake_fd;                          ///< an eventfd: another thread has queued messages
    int listener_fd;                      ///< TCP
    int status_fd;                        ///< abstract unix socket
    struct tfos__connection *connections; ///< owned list
    struct tfos__connection *unsettled;   ///< those of them with something to write or to be closed
    struct tfos__connection *dropped;     ///< owned list; freed when nothing can refer to them
    int connection_count, new_count;      ///< of them have not said hello
    int64_t accept_ms;                    ///< no connection is accepted before this time
    int64_t denied_ms;                    ///< when the present minute of counting refusals began
    int denied_count;                     ///< refusals in it
};

/// Listens and starts the thread. On success the caller owns `*out` and ends it with
/// tfos__server_close().
enum tfos_status tfos__server_open(const struct tfos_rendezvous_options *options,
                                   struct tfos__server **out, struct tfos_error *err);

/// Takes the lock; unlock also wakes the thread, and other waits, when there is something for them.
void tfos__server_lock(struct tfos__server *server);
void tfos__server_unlock(struct tfos__server *server);

/// With the lock held: waits until something may have changed, or until `deadline`.
void tfos__server_wait(struct tfos__server *server, int64_t deadline);

/// Lets waits in other threads return, ends the thread and closes everything.
void tfos__server_close(struct tfos__server *server);

#endif
