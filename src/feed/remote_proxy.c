// SPDX-License-Identifier: Apache-2.0
// One thread a remote writer: it moves records both ways, sleeps when neither moves, and ends when
// the writer has gone, when the last word is read, or when the host wants it to.
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "feed/feed.h"
#include "feed/message.h"
#include "feed/remote_proxy_state.h"

#define SLICE_MS 20 ///< longest sleep without a look at everything
#define RESULT_MS 1 ///< the same while results are due, which ring no descriptor
#define STOP_MS 200 ///< to send what is queued once the host wants to close

void tfos__feed_remote_proxy_wake_host(const struct tfos__feed_remote_proxy *proxy)
{
    uint64_t one = 1;

    (void)!write(proxy->wake_fd, &one, sizeof one);
}

struct tfos__feed_remote_proxy_channel *
tfos__feed_remote_proxy_last_channel(const struct tfos__feed_remote_proxy *proxy)
{
    return &proxy->channels[proxy->channel_count - 1];
}

enum tfos_status tfos__feed_remote_proxy_add_channel(struct tfos__feed_remote_proxy *proxy,
                                                     struct tfos__feed_channel *channel,
                                                     struct tfos_error *err)
{
    struct tfos__feed_remote_proxy_channel *channels =
        tfos__realloc(proxy->channels, proxy->channel_count + 1, sizeof *channels);

    if (!channels)
        return tfos__no_memory(err, "feed", "a list of lanes");
    proxy->channels = channels;
    channels[proxy->channel_count++] = (struct tfos__feed_remote_proxy_channel){
        .channel = channel, .released_before = atomic_load(&channel->page->rows_released)};
    return TFOS_OK;
}

void tfos__feed_remote_proxy_leave_first_channel(struct tfos__feed_remote_proxy *proxy)
{
    proxy->left_count += proxy->channels[0].row_count;
    tfos__feed_channel_release(proxy->channels[0].channel);
    proxy->channel_count--;
    memmove(proxy->channels, proxy->channels + 1, proxy->channel_count * sizeof proxy->channels[0]);
}

uint64_t tfos__feed_remote_proxy_published_rows(const struct tfos__feed_remote_proxy *proxy)
{
    return tfos__feed_remote_proxy_last_channel(proxy)->channel->producer.rows &
           ~TFOS__FEED_ROWS_COMPLETE;
}

void tfos__feed_remote_proxy_say_last(struct tfos__feed_remote_proxy *proxy, json_t *message)
{
    pthread_mutex_lock(&proxy->mutex);
    if (proxy->has_last_mail)
        json_decref(message);
    else
        (void)tfos__feed_control_message_append(&proxy->mail, message, NULL);
    proxy->has_last_mail = true;
    pthread_mutex_unlock(&proxy->mutex);
}

// After the last word: reads and drops until the writer has gone. To close with unread bytes would
// reset the connection, and the writer might lose that word.
static enum tfos_status drop_input(struct tfos__feed_remote_proxy *proxy, bool *has_moved,
                                   struct tfos_error *err)
{
    uint8_t dropped[16384];
    size_t done = 0;
    enum tfos_status status =
        tfos__channel_read_some(proxy->connection, dropped, sizeof dropped, &done, err);

    *has_moved |= status == TFOS_OK;
    if (status == TFOS_AGAIN && tfos__now_ms() >= proxy->deadline)
        return tfos__fail(err, TFOS_TIMEOUT, "feed: the writer did not close");
    return status;
}

static void wait_for_news(struct tfos__feed_remote_proxy *proxy)
{
    struct tfos__feed_channel *channel = tfos__feed_remote_proxy_last_channel(proxy)->channel;
    bool is_sending = proxy->is_sending_result || proxy->is_sending_message;

    if (proxy->intake == TFOS__INTAKE_SPACE && !is_sending && !proxy->is_lingering) {
        uint32_t value = tfos__feed_futex_prepare(channel->futex);
        if (!tfos__feed_producer_has_space(&channel->producer, proxy->record.size) &&
            tfos__feed_consumer_is_empty(&proxy->channels[0].channel->consumer))
            tfos__feed_futex_wait(channel->futex, value, SLICE_MS);
        tfos__feed_futex_cancel(channel->futex);
        return;
    }
    bool is_reading = proxy->intake == TFOS__INTAKE_HEAD || proxy->intake == TFOS__INTAKE_BODY ||
                      proxy->is_lingering;
    struct pollfd descriptor = {tfos__channel_fd(proxy->connection),
                                (short)((is_reading ? POLLIN : 0) | (is_sending ? POLLOUT : 0)), 0};
    bool is_owed =
        proxy->has_results && proxy->channels[0].result_count < proxy->channels[0].row_count;
    (void)poll(&descriptor, 1, is_owed && !is_sending ? RESULT_MS : SLICE_MS);
}

// What the reader or the host did to the channel, as a last word to the writer.
static void check_state(struct tfos__feed_remote_proxy *proxy)
{
    uint32_t state = atomic_load(&proxy->control->page->state);

    if (state == TFOS__FEED_TERMINATED)
        tfos__feed_remote_proxy_say_last(proxy, json_pack("{ss}", "type", "end"));
    else if (atomic_load(&tfos__feed_remote_proxy_last_channel(proxy)->channel->page->head) &
                 TFOS__FEED_HEAD_FENCED &&
             proxy->intake != TFOS__INTAKE_CHANNEL)
        tfos__feed_remote_proxy_say_last(proxy, json_pack("{ss}", "type", "fenced"));
}

// A writer that asks for an explanation is not heard while the ring is full, for its word is behind
// its rows: so the proxy asks in its place, after the same time.
static void check_stall(struct tfos__feed_remote_proxy *proxy)
{
    uint64_t tail = atomic_load(&tfos__feed_remote_proxy_last_channel(proxy)->channel->page->tail) +
                    atomic_load(&proxy->control->page->others);
    int64_t now = tfos__now_ms();

    if (proxy->intake != TFOS__INTAKE_SPACE || tail != proxy->stalled_tail) {
        proxy->stalled_tail = tail;
        proxy->stalled_deadline = tfos__deadline(proxy->timeout_ms);
    } else if (now >= proxy->stalled_deadline) {
        proxy->stalled_deadline = TFOS__NEVER;
        pthread_mutex_lock(&proxy->mutex);
        proxy->is_stalled = true;
        pthread_mutex_unlock(&proxy->mutex);
        tfos__feed_remote_proxy_wake_host(proxy);
    }
}

// Ends the taking in, and tells the writer why.
static void say_why(struct tfos__feed_remote_proxy *proxy, enum tfos_status status,
                    const struct tfos_error *err)
{
    if (status == TFOS_BUSY)
        tfos__feed_remote_proxy_say_last(proxy, json_pack("{ss}", "type", "fenced"));
    else
        tfos__feed_remote_proxy_say_last(
            proxy, json_pack("{ss ss}", "type", "failed", "message", err->message));
    proxy->has_stopped_reading = true;
}

// Whether the host wants an end, and the time to send what is queued is over.
static bool must_stop(struct tfos__feed_remote_proxy *proxy, int64_t *stop_deadline)
{
    pthread_mutex_lock(&proxy->mutex);
    bool is_stopping = proxy->is_stopping;
    pthread_mutex_unlock(&proxy->mutex);
    if (!is_stopping)
        return false;
    if (*stop_deadline == TFOS__NEVER)
        *stop_deadline = tfos__deadline(STOP_MS);
    return tfos__buffer_size(&proxy->out) == 0 || tfos__now_ms() >= *stop_deadline;
}

static void *run(void *argument)
{
    struct tfos__feed_remote_proxy *proxy = argument;
    int64_t stop_deadline = TFOS__NEVER;
    struct tfos_error err;

    for (;;) {
        bool has_moved = false;
        check_state(proxy);
        check_stall(proxy);
        enum tfos_status in = TFOS_AGAIN;
        if (proxy->is_lingering)
            in = drop_input(proxy, &has_moved, &err);
        else if (!proxy->has_stopped_reading)
            in = tfos__feed_remote_proxy_take_in(proxy, &has_moved, &err);
        if (in < 0 && (proxy->is_lingering || in == TFOS_CLOSED))
            break;
        if (in < 0)
            say_why(proxy, in, &err);
        if (tfos__feed_remote_proxy_give_out(proxy, &has_moved, &err) < 0 ||
            must_stop(proxy, &stop_deadline))
            break;
        if (in != TFOS_OK && !has_moved)
            wait_for_news(proxy);
    }
    pthread_mutex_lock(&proxy->mutex);
    proxy->has_ended = true;
    pthread_mutex_unlock(&proxy->mutex);
    tfos__feed_remote_proxy_wake_host(proxy);
    return NULL;
}

enum tfos_status tfos__feed_remote_proxy_open(const struct tfos__feed_remote_proxy_options *options,
                                              struct tfos__feed_remote_proxy **out,
                                              struct tfos_error *err)
{
    struct tfos__feed_remote_proxy *proxy = tfos__alloc(1, sizeof *proxy);
    struct tfos__feed_channel *channel = NULL;

    if (!proxy) {
        tfos__channel_close(options->connection);
        return tfos__no_memory(err, "feed", "a relay");
    }
    proxy->connection = options->connection;
    proxy->control = options->control;
    proxy->wake_fd = options->wake_fd;
    proxy->feed = options->feed;
    proxy->partition = options->partition;
    proxy->attempt = options->attempt;
    proxy->timeout_ms = options->timeout_ms;
    proxy->has_results = options->has_results;
    proxy->told_ms = tfos__now_ms();
    pthread_mutex_init(&proxy->mutex, NULL);
    enum tfos_status status = tfos__feed_channel_map(options->channel_fd, TFOS__FEED_CHANNEL_WRITER,
                                                     options->control, &channel, err);
    if (status == TFOS_OK) {
        status = tfos__feed_remote_proxy_add_channel(proxy, channel, err);
        if (status != TFOS_OK)
            tfos__feed_channel_release(channel);
    }
    proxy->has_thread = status == TFOS_OK && pthread_create(&proxy->thread, NULL, run, proxy) == 0;
    if (status == TFOS_OK && !proxy->has_thread)
        status = tfos__fail(err, TFOS_IO, "feed: cannot start a thread for %s",
                            tfos__channel_peer(proxy->connection));
    if (status != TFOS_OK) {
        tfos__feed_remote_proxy_close(proxy);
        return status;
    }
    *out = proxy;
    return TFOS_OK;
}

void tfos__feed_remote_proxy_check(struct tfos__feed_remote_proxy *proxy,
                                   struct tfos__feed_remote_proxy_news *news)
{
    pthread_mutex_lock(&proxy->mutex);
    news->has_ended = proxy->has_ended;
    news->is_stalled = proxy->is_stalled;
    news->wanted_size = proxy->wanted_size;
    proxy->is_stalled = false;
    proxy->wanted_size = 0;
    pthread_mutex_unlock(&proxy->mutex);
}

enum tfos_status tfos__feed_remote_proxy_give_channel(struct tfos__feed_remote_proxy *proxy, int fd,
                                                      struct tfos_error *err)
{
    struct tfos__feed_channel *channel = NULL;

    TFOS__TRY(tfos__feed_channel_map(fd, TFOS__FEED_CHANNEL_WRITER, proxy->control, &channel, err));
    pthread_mutex_lock(&proxy->mutex);
    proxy->given_channel = channel;
    pthread_mutex_unlock(&proxy->mutex);
    return TFOS_OK;
}

void tfos__feed_remote_proxy_send(struct tfos__feed_remote_proxy *proxy, json_t *message,
                                  bool is_last)
{
    if (is_last) {
        tfos__feed_remote_proxy_say_last(proxy, message);
        return;
    }
    pthread_mutex_lock(&proxy->mutex);
    (void)tfos__feed_control_message_append(&proxy->mail, message, NULL);
    pthread_mutex_unlock(&proxy->mutex);
}

void tfos__feed_remote_proxy_close(struct tfos__feed_remote_proxy *proxy)
{
    if (!proxy)
        return;
    pthread_mutex_lock(&proxy->mutex);
    proxy->is_stopping = true;
    pthread_mutex_unlock(&proxy->mutex);
    if (proxy->has_thread)
        pthread_join(proxy->thread, NULL);
    while (proxy->channel_count > 0)
        tfos__feed_remote_proxy_leave_first_channel(proxy);
    tfos__feed_channel_release(proxy->given_channel);
    tfos__free(proxy->channels);
    tfos__free(proxy->message);
    tfos__buffer_clear(&proxy->schema);
    tfos__buffer_clear(&proxy->out);
    tfos__buffer_clear(&proxy->mail);
    tfos__channel_close(proxy->connection);
    pthread_mutex_destroy(&proxy->mutex);
    tfos__free(proxy);
}
