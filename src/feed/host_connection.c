// SPDX-License-Identifier: Apache-2.0
// A writer's connection to the host, from its first byte to its end. What is wrong with a peer ends
// that peer and nothing else.
#include <string.h>

#include "base/json.h"
#include "feed/host.h"

struct tfos__feed_connection *tfos__feed_host_first(const struct tfos__feed_host *host)
{
    return (struct tfos__feed_connection *)host->server.connections;
}

struct tfos__feed_connection *tfos__feed_host_next(const struct tfos__feed_connection *connection)
{
    return (struct tfos__feed_connection *)connection->base.next;
}

void tfos__feed_connection_end(struct tfos__feed_connection *connection, json_t *message)
{
    tfos__server_send(&connection->base, message, NULL, 0);
    tfos__server_end(&connection->base);
    connection->is_waiting = false;
}

void tfos__feed_connection_dismiss(struct tfos__feed_connection *connection, json_t *message)
{
    if (connection->proxy) {
        connection->is_waiting = false;
        tfos__feed_remote_proxy_send(connection->proxy, message, true);
    } else if (connection->is_waiting) {
        tfos__feed_connection_end(connection, message);
    } else {
        tfos__server_send(&connection->base, message, NULL, 0);
    }
}

// The writer asks what the trainer is doing.
static void report_stall(struct tfos__feed_connection *connection)
{
    struct tfos__feed_event event = {.kind = TFOS__FEED_STALLED,
                                     .channel =
                                         connection->channel ? connection->channel->number : -1,
                                     .fd = -1,
                                     .queue = connection->queue ? connection->queue->name : NULL,
                                     .feed = connection->feed,
                                     .partition = connection->partition,
                                     .attempt = connection->attempt};

    // Without memory nobody is asked, and the writer times out without an explanation.
    if (!connection->has_opened || connection->is_stalled ||
        !tfos__feed_host_reserve_event(connection->host))
        return;
    tfos__feed_host_emit(connection->host, &event);
    connection->is_stalled = true;
}

static void accepted(struct tfos__server_connection *base, const char *address)
{
    (void)address;
    ((struct tfos__feed_connection *)base)->host = base->server->options.context;
}

static enum tfos_status handle_message(struct tfos__server_connection *base, const json_t *message,
                                       struct tfos_error *err)
{
    struct tfos__feed_connection *connection = (struct tfos__feed_connection *)base;
    const char *type = tfos__json_string_or(message, "type", "");

    (void)err;
    if (strcmp(type, "open") == 0)
        tfos__feed_host_admit(connection, message);
    else if (strcmp(type, "stalled") == 0)
        report_stall(connection);
    else // "close", or a type that is none of ours. What was published says the channel itself.
        tfos__server_drop(base, false, "the writer has closed");
    return TFOS_OK;
}

void tfos__feed_connection_check_proxy(struct tfos__feed_connection *connection)
{
    if (!connection->proxy || connection->base.is_dropped)
        return;
    struct tfos__feed_proxy_requests requests = tfos__feed_remote_proxy_check(connection->proxy);
    if (requests.wanted_size > 0 && connection->channel && !connection->is_closed)
        tfos__feed_host_change_channel(connection, requests.wanted_size);
    if (requests.is_stalled)
        report_stall(connection);
    if (requests.has_ended)
        tfos__server_drop(&connection->base, false, "its relay has ended");
}

static void dropped(struct tfos__server_connection *base, bool is_breach, const char *cause)
{
    struct tfos__feed_connection *connection = (struct tfos__feed_connection *)base;
    struct tfos__feed_host *host = connection->host;

    (void)is_breach;
    (void)cause;
    // The proxy's thread ends before its channel is fenced, so that all it published counts and
    // nothing follows.
    tfos__feed_remote_proxy_close(connection->proxy);
    tfos__feed_host_close_attempt(connection, true);
    for (size_t i = 0; i < host->pool.count; i++)
        if (host->pool.channels[i]->owner == connection)
            tfos__feed_channel_pool_give_back(&host->pool, host->pool.channels[i]);
    connection->is_waiting = false;
    connection->channel = NULL;
    // The reader may be asleep beside a channel that has now come to its end.
    if (connection->queue)
        tfos__feed_futex_wake(tfos__feed_control_futex(connection->queue->control));
}

const struct tfos__server_handler tfos__feed_host_handler = {
    .connection_size = sizeof(struct tfos__feed_connection),
    .accepted = accepted,
    .message = handle_message,
    .dropped = dropped};
