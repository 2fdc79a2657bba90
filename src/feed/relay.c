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
#include "feed/relay_state.h"

#define SLICE_MS 20 ///< longest sleep without a look at everything
#define RESULT_MS 1 ///< the same while results are due, which ring no descriptor
#define STOP_MS 200 ///< to send what is queued once the host wants to close

void tfos__relay_wake_host(const struct tfos__relay *relay)
{
    uint64_t one = 1;

    (void)!write(relay->wake_fd, &one, sizeof one);
}

struct tfos__relay_lane *tfos__relay_last_lane(const struct tfos__relay *relay)
{
    return &relay->lanes[relay->lane_count - 1];
}

enum tfos_status tfos__relay_add_lane(struct tfos__relay *relay, struct tfos__lane *lane,
                                      struct tfos_error *err)
{
    struct tfos__relay_lane *lanes =
        tfos__realloc(relay->lanes, relay->lane_count + 1, sizeof *lanes);

    if (!lanes)
        return tfos__no_memory(err, "feed", "a list of lanes");
    relay->lanes = lanes;
    lanes[relay->lane_count++] = (struct tfos__relay_lane){
        .lane = lane, .released_before = atomic_load(&lane->page->rows_released)};
    return TFOS_OK;
}

void tfos__relay_leave_first_lane(struct tfos__relay *relay)
{
    relay->left_count += relay->lanes[0].row_count;
    tfos__lane_release(relay->lanes[0].lane);
    relay->lane_count--;
    memmove(relay->lanes, relay->lanes + 1, relay->lane_count * sizeof relay->lanes[0]);
}

uint64_t tfos__relay_published_rows(const struct tfos__relay *relay)
{
    return tfos__relay_last_lane(relay)->lane->inlet.rows & ~TFOS__ROWS_COMPLETE;
}

void tfos__relay_say_last(struct tfos__relay *relay, json_t *message)
{
    pthread_mutex_lock(&relay->mutex);
    if (relay->has_last_mail)
        json_decref(message);
    else
        (void)tfos__message_append(&relay->mail, message, NULL);
    relay->has_last_mail = true;
    pthread_mutex_unlock(&relay->mutex);
}

// After the last word: reads and drops until the writer has gone. To close with unread bytes would
// reset the connection, and the writer might lose that word.
static enum tfos_status drop_input(struct tfos__relay *relay, bool *has_moved,
                                   struct tfos_error *err)
{
    uint8_t dropped[16384];
    size_t done = 0;
    enum tfos_status status =
        tfos__channel_read_some(relay->channel, dropped, sizeof dropped, &done, err);

    *has_moved |= status == TFOS_OK;
    if (status == TFOS_AGAIN && tfos__now_ms() >= relay->deadline)
        return tfos__fail(err, TFOS_TIMEOUT, "feed: the writer did not close");
    return status;
}

static void wait_for_news(struct tfos__relay *relay)
{
    struct tfos__lane *lane = tfos__relay_last_lane(relay)->lane;
    bool is_sending = relay->is_sending_result || relay->is_sending_message;

    if (relay->intake == TFOS__INTAKE_SPACE && !is_sending && !relay->is_lingering) {
        uint32_t value = tfos__bell_arm(lane->bell);
        if (!tfos__inlet_has_space(&lane->inlet, relay->record.size) &&
            tfos__outlet_is_empty(&relay->lanes[0].lane->outlet))
            tfos__bell_sleep(lane->bell, value, SLICE_MS);
        tfos__bell_disarm(lane->bell);
        return;
    }
    bool is_reading = relay->intake == TFOS__INTAKE_HEAD || relay->intake == TFOS__INTAKE_BODY ||
                      relay->is_lingering;
    struct pollfd descriptor = {tfos__channel_fd(relay->channel),
                                (short)((is_reading ? POLLIN : 0) | (is_sending ? POLLOUT : 0)), 0};
    bool is_owed = relay->has_results && relay->lanes[0].result_count < relay->lanes[0].row_count;
    (void)poll(&descriptor, 1, is_owed && !is_sending ? RESULT_MS : SLICE_MS);
}

// What the reader or the host did to the lane, as a last word to the writer.
static void check_state(struct tfos__relay *relay)
{
    uint32_t state = atomic_load(&relay->board->page->state);

    if (state == TFOS__FEED_TERMINATED)
        tfos__relay_say_last(relay, json_pack("{ss}", "type", "end"));
    else if (atomic_load(&tfos__relay_last_lane(relay)->lane->page->head) & TFOS__HEAD_FENCED &&
             relay->intake != TFOS__INTAKE_LANE)
        tfos__relay_say_last(relay, json_pack("{ss}", "type", "fenced"));
}

// A writer that asks for an explanation is not heard while the ring is full, for its word is behind
// its rows: so the relay asks in its place, after the same time.
static void check_stall(struct tfos__relay *relay)
{
    uint64_t tail = atomic_load(&tfos__relay_last_lane(relay)->lane->page->tail) +
                    atomic_load(&relay->board->page->others);
    int64_t now = tfos__now_ms();

    if (relay->intake != TFOS__INTAKE_SPACE || tail != relay->stalled_tail) {
        relay->stalled_tail = tail;
        relay->stalled_deadline = tfos__deadline(relay->timeout_ms);
    } else if (now >= relay->stalled_deadline) {
        relay->stalled_deadline = TFOS__NEVER;
        pthread_mutex_lock(&relay->mutex);
        relay->is_stalled = true;
        pthread_mutex_unlock(&relay->mutex);
        tfos__relay_wake_host(relay);
    }
}

// Ends the taking in, and tells the writer why.
static void say_why(struct tfos__relay *relay, enum tfos_status status,
                    const struct tfos_error *err)
{
    if (status == TFOS_BUSY)
        tfos__relay_say_last(relay, json_pack("{ss}", "type", "fenced"));
    else
        tfos__relay_say_last(relay,
                             json_pack("{ss ss}", "type", "failed", "message", err->message));
    relay->has_stopped_reading = true;
}

// Whether the host wants an end, and the time to send what is queued is over.
static bool must_stop(struct tfos__relay *relay, int64_t *stop_deadline)
{
    pthread_mutex_lock(&relay->mutex);
    bool is_stopping = relay->is_stopping;
    pthread_mutex_unlock(&relay->mutex);
    if (!is_stopping)
        return false;
    if (*stop_deadline == TFOS__NEVER)
        *stop_deadline = tfos__deadline(STOP_MS);
    return tfos__buffer_size(&relay->out) == 0 || tfos__now_ms() >= *stop_deadline;
}

static void *run(void *argument)
{
    struct tfos__relay *relay = argument;
    int64_t stop_deadline = TFOS__NEVER;
    struct tfos_error err;

    for (;;) {
        bool has_moved = false;
        check_state(relay);
        check_stall(relay);
        enum tfos_status in = TFOS_AGAIN;
        if (relay->is_lingering)
            in = drop_input(relay, &has_moved, &err);
        else if (!relay->has_stopped_reading)
            in = tfos__relay_take_in(relay, &has_moved, &err);
        if (in < 0 && (relay->is_lingering || in == TFOS_CLOSED))
            break;
        if (in < 0)
            say_why(relay, in, &err);
        if (tfos__relay_give_out(relay, &has_moved, &err) < 0 || must_stop(relay, &stop_deadline))
            break;
        if (in != TFOS_OK && !has_moved)
            wait_for_news(relay);
    }
    pthread_mutex_lock(&relay->mutex);
    relay->has_ended = true;
    pthread_mutex_unlock(&relay->mutex);
    tfos__relay_wake_host(relay);
    return NULL;
}

enum tfos_status tfos__relay_open(const struct tfos__relay_options *options,
                                  struct tfos__relay **out, struct tfos_error *err)
{
    struct tfos__relay *relay = tfos__alloc(1, sizeof *relay);
    struct tfos__lane *lane = NULL;

    if (!relay) {
        tfos__channel_close(options->channel);
        return tfos__no_memory(err, "feed", "a relay");
    }
    relay->channel = options->channel;
    relay->board = options->board;
    relay->wake_fd = options->wake_fd;
    relay->feed = options->feed;
    relay->partition = options->partition;
    relay->attempt = options->attempt;
    relay->timeout_ms = options->timeout_ms;
    relay->has_results = options->has_results;
    relay->told_ms = tfos__now_ms();
    pthread_mutex_init(&relay->mutex, NULL);
    enum tfos_status status =
        tfos__lane_map(options->lane_fd, TFOS__LANE_WRITER, options->board, &lane, err);
    if (status == TFOS_OK) {
        status = tfos__relay_add_lane(relay, lane, err);
        if (status != TFOS_OK)
            tfos__lane_release(lane);
    }
    relay->has_thread = status == TFOS_OK && pthread_create(&relay->thread, NULL, run, relay) == 0;
    if (status == TFOS_OK && !relay->has_thread)
        status = tfos__fail(err, TFOS_IO, "feed: cannot start a thread for %s",
                            tfos__channel_peer(relay->channel));
    if (status != TFOS_OK) {
        tfos__relay_close(relay);
        return status;
    }
    *out = relay;
    return TFOS_OK;
}

void tfos__relay_check(struct tfos__relay *relay, struct tfos__relay_news *news)
{
    pthread_mutex_lock(&relay->mutex);
    news->has_ended = relay->has_ended;
    news->is_stalled = relay->is_stalled;
    news->wanted_size = relay->wanted_size;
    relay->is_stalled = false;
    relay->wanted_size = 0;
    pthread_mutex_unlock(&relay->mutex);
}

enum tfos_status tfos__relay_give_lane(struct tfos__relay *relay, int fd, struct tfos_error *err)
{
    struct tfos__lane *lane = NULL;

    TFOS__TRY(tfos__lane_map(fd, TFOS__LANE_WRITER, relay->board, &lane, err));
    pthread_mutex_lock(&relay->mutex);
    relay->given_lane = lane;
    pthread_mutex_unlock(&relay->mutex);
    return TFOS_OK;
}

void tfos__relay_send(struct tfos__relay *relay, json_t *message, bool is_last)
{
    if (is_last) {
        tfos__relay_say_last(relay, message);
        return;
    }
    pthread_mutex_lock(&relay->mutex);
    (void)tfos__message_append(&relay->mail, message, NULL);
    pthread_mutex_unlock(&relay->mutex);
}

void tfos__relay_close(struct tfos__relay *relay)
{
    if (!relay)
        return;
    pthread_mutex_lock(&relay->mutex);
    relay->is_stopping = true;
    pthread_mutex_unlock(&relay->mutex);
    if (relay->has_thread)
        pthread_join(relay->thread, NULL);
    while (relay->lane_count > 0)
        tfos__relay_leave_first_lane(relay);
    tfos__lane_release(relay->given_lane);
    tfos__free(relay->lanes);
    tfos__free(relay->message);
    tfos__buffer_clear(&relay->schema);
    tfos__buffer_clear(&relay->out);
    tfos__buffer_clear(&relay->mail);
    tfos__channel_close(relay->channel);
    pthread_mutex_destroy(&relay->mutex);
    tfos__free(relay);
}
