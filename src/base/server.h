// SPDX-License-Identifier: Apache-2.0
/// A server's event loop: it accepts connections, gives their messages to its handler, and ends
/// those that do not say hello in time, do not read, or break the protocol. It stops accepting
/// while descriptors have run out. A fault of a peer ends that peer's connection and nothing else.
///
/// The loop is wait() and then step(), again and again, in one thread. Where other threads send
/// messages, they, step() and settle() hold a lock of the owner's, and they wake() the loop then.
#ifndef TFOS_BASE_SERVER_H
#define TFOS_BASE_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <tfos/status.h>

#include "base/channel.h"
#include "base/cluster_key.h"
#include "base/socket.h"

#define TFOS__SERVER_LISTENERS 2
#define TFOS__SERVER_EVENTS 64 ///< handled in one step

/// The first member of what the handler keeps for a connection.
struct tfos__server_connection {
    struct tfos__server *server;
    struct tfos__channel *channel; ///< owned; NULL once it is detached or dropped
    bool is_local;                 ///< came by a unix socket
    bool is_new;                   ///< has not said hello
    bool is_ending;                ///< has its last message, and nothing more is taken from it
    bool is_dropped;               ///< is freed at the end of the step
    bool is_unflushed;             ///< in the server's list of those
    bool is_broken;                ///< a message could not be queued; `cause` says why
    struct tfos_error cause;
    uint32_t events;                                 ///< what epoll watches for
    int64_t deadline;                                ///< for its hello, or for its end
    struct tfos__server_connection *previous, *next; ///< valid until the end of the step
    struct tfos__server_connection *next_unflushed, *next_dropped;
};

struct tfos__server_handler {
    size_t connection_size; ///< of the handler's struct, which is zeroed before accepted()
    void (*accepted)(struct tfos__server_connection *connection, const char *address);

    /// A negative status is a breach of the protocol.
    enum tfos_status (*message)(struct tfos__server_connection *connection, const json_t *message,
                                struct tfos_error *err);

    /// Gives up what the handler has of the connection, which is freed later. `is_breach`: it ends
    /// by a fault of the peer. The cause is in words.
    void (*dropped)(struct tfos__server_connection *connection, bool is_breach, const char *cause);

    /// A connection from `address` was closed at once. NULL: nobody needs to know.
    void (*rejected)(void *context, const char *address, const char *reason);
};

struct tfos__server_options {
    const struct tfos__server_handler *handler; ///< borrowed, as is the rest, until clear()
    void *context;                              ///< the handler's
    const struct tfos__identity *identity;
    enum tfos__tcp_use use;
    int64_t hello_timeout_ms;  ///< from accept to accept_hello()
    int64_t ending_timeout_ms; ///< from end() until the peer goes
    size_t pending_limit;      ///< bytes queued towards one peer
};

struct tfos__server_listener {
    int fd; ///< owned
    bool is_local;
};

struct tfos__server {
    struct tfos__server_options options;
    int epoll_fd; ///< owned
    int wake_fd;  ///< owned; an eventfd that ends a wait()
    struct tfos__server_listener listeners[TFOS__SERVER_LISTENERS]; ///< the first listener_count
    int listener_count;
    struct tfos__server_connection *connections; ///< owned list
    struct tfos__server_connection *unflushed;   ///< with something to write, or broken
    struct tfos__server_connection *dropped;     ///< owned list
    int connection_count, new_count;             ///< new_count: have not said hello
    bool is_paused;                              ///< does not accept, until `resume_ms`
    int64_t resume_ms;
    int64_t due_ms; ///< no deadline of a connection is earlier
    struct epoll_event events[TFOS__SERVER_EVENTS];
    int event_count; ///< from wait() to step()
};

/// On success, and on failure too, the caller ends it with clear().
enum tfos_status tfos__server_init(struct tfos__server *server,
                                   const struct tfos__server_options *options,
                                   struct tfos_error *err);

/// Accepts from the listening socket `fd` (taken over, also on failure), a unix one if `is_local`.
enum tfos_status tfos__server_listen(struct tfos__server *server, int fd, bool is_local,
                                     struct tfos_error *err);

/// Ends a wait() also when `fd`, which stays the owner's, is readable.
enum tfos_status tfos__server_watch(struct tfos__server *server, int fd, struct tfos_error *err);

/// Sleeps until step() has work, at most until `deadline`. An owner with a poll loop of its own
/// waits for `epoll_fd` to be readable, and calls wait(), with a deadline that is past, and step()
/// then and once a second.
void tfos__server_wait(struct tfos__server *server, int64_t deadline);

/// Handles what wait() ended by, writes what is queued, ends what is late.
void tfos__server_step(struct tfos__server *server);

/// Writes what is queued without waiting. The owner calls it after it has sent messages, or wakes
/// the thread that runs step().
void tfos__server_flush(struct tfos__server *server);

/// Ends a wait(). Any thread.
void tfos__server_wake(struct tfos__server *server);

/// Whether messages are queued that peers could take.
bool tfos__server_has_pending(const struct tfos__server *server);

/// Queues a message, taken over, and duplicates of descriptors. One that is NULL, for want of
/// memory, or beyond the limit breaks the connection, which the next step drops. Nothing is sent to
/// who is ending.
void tfos__server_send(struct tfos__server_connection *connection, json_t *message, const int *fds,
                       int fd_count);

/// The peer's hello is accepted.
void tfos__server_accept_hello(struct tfos__server_connection *connection);

/// The last message is sent: the connection ends when the peer goes, or after ending_timeout_ms.
void tfos__server_end(struct tfos__server_connection *connection);

/// Ends the connection now. Calls the handler's dropped(), once.
void tfos__server_drop(struct tfos__server_connection *connection, bool is_breach,
                       const char *cause);

/// Gives the channel away: the connection stays, without one, until it is dropped.
struct tfos__channel *tfos__server_detach(struct tfos__server_connection *connection);

/// Drops all connections for this cause, and closes the listeners.
void tfos__server_clear(struct tfos__server *server, const char *cause);

#endif
