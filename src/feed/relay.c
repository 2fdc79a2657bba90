// SPDX-License-Identifier: Apache-2.0
// One thread a remote writer. Records come in and lie in the ring at once, without a copy between;
// results go out of their ring in the same way. While the ring is full nothing is read, and TCP
// holds the writer back. What the two threads share is guarded by the mutex; everything else
// belongs to the relay's thread.
#include "feed/relay.h"

#include <poll.h>
#include <string.h>
#include <tfos/feed.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "feed/message.h"

#define SLICE_MS 20    ///< longest sleep without a look at everything
#define RESULT_MS 1    ///< the same while results are due, which ring no descriptor
#define TELL_MS 1000   ///< between words about the reader's progress
#define LINGER_MS 5000 ///< for the writer to read the last word
#define STOP_MS 200    ///< to send what is queued once the host wants to close
#define OUT_LIMIT (8 << 20)

enum intake {
    INTAKE_HEAD,  // reading a record's head
    INTAKE_SPACE, // waiting for space in the ring
    INTAKE_LANE,  // waiting for a larger lane
    INTAKE_BODY   // reading the body
};

struct relay_lane {
    struct tfos__lane *lane;
    uint64_t released_before;
    int64_t row_count, result_count;
};

struct tfos__relay {
    struct tfos__channel *channel; // owned
    struct tfos__board *board;
    int wake_fd;
    int64_t feed, partition, attempt;
    bool has_results;
    pthread_t thread;
    bool has_thread;

    struct relay_lane *lanes; // owned; the last is written to, results come from the first
    size_t lane_count;
    int64_t left_count; // rows in lanes that were left
    enum intake intake;
    struct tfos__record record;
    size_t received;         // bytes of the record
    uint8_t *space;          // where its body goes
    uint8_t *message;        // owned: the body of a message
    struct tfos__buffer out; // messages on their way
    size_t result_sent;      // bytes of the result record on its way
    bool is_sending_result, is_sending_message;
    bool is_complete, has_told_complete;
    bool is_lingering; // the last word is said
    int64_t deadline;  // of the lingering
    int64_t told_ms;

    pthread_mutex_t mutex; // guards what follows
    struct tfos__buffer mail;
    bool has_last_mail, is_stopping;
    bool has_ended, is_stalled;
    uint64_t wanted_size;
    struct tfos__lane *given_lane;
};

static void wake_host(const struct tfos__relay *relay)
{
    uint64_t one = 1;

    (void)!write(relay->wake_fd, &one, sizeof one);
}

static struct relay_lane *last_lane(const struct tfos__relay *relay)
{
    return &relay->lanes[relay->lane_count - 1];
}

static enum tfos_status add_lane(struct tfos__relay *relay, struct tfos__lane *lane,
                                 struct tfos_error *err)
{
    struct relay_lane *lanes = tfos__realloc(relay->lanes, relay->lane_count + 1, sizeof *lanes);

    if (!lanes)
        return tfos__no_memory(err, "feed", "a list of lanes");
    relay->lanes = lanes;
    lanes[relay->lane_count++] = (struct relay_lane){
        .lane = lane, .released_before = atomic_load(&lane->page->rows_released)};
    return TFOS_OK;
}

static void leave_first_lane(struct tfos__relay *relay)
{
    relay->left_count += relay->lanes[0].row_count;
    tfos__lane_release(relay->lanes[0].lane);
    relay->lane_count--;
    memmove(relay->lanes, relay->lanes + 1, relay->lane_count * sizeof relay->lanes[0]);
}

static uint64_t published_rows(const struct tfos__relay *relay)
{
    return last_lane(relay)->lane->inlet.rows & ~TFOS__ROWS_COMPLETE;
}

static void say_last(struct tfos__relay *relay, json_t *message)
{
    pthread_mutex_lock(&relay->mutex);
    if (relay->has_last_mail)
        json_decref(message);
    else
        (void)tfos__message_append(&relay->mail, message, NULL);
    relay->has_last_mail = true;
    pthread_mutex_unlock(&relay->mutex);
}

static enum tfos_status check_record(const struct tfos__relay *relay, struct tfos_error *err)
{
    const struct tfos__record *record = &relay->record;
    bool is_message = record->kind == TFOS__RECORD_MESSAGE;
    bool is_ours =
        is_message ||
        (record->feed == relay->feed && record->partition == relay->partition &&
         record->attempt == relay->attempt && (uint64_t)record->row == published_rows(relay));

    if (tfos__record_is_sound(record) && is_ours && record->kind != TFOS__RECORD_FILLER &&
        record->size <= (uint64_t)(is_message ? TFOS__MESSAGE_LIMIT : TFOS__LANE_SIZE_LIMIT / 2) &&
        (record->rows == 0 || record->kind == TFOS__RECORD_BATCH))
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT, "feed: %s sent a broken record of kind %u",
                      tfos__channel_peer(relay->channel), record->kind);
}

// Reads what is missing of `size` bytes of the record to `data`. OK when all are there.
static enum tfos_status read_part(struct tfos__relay *relay, uint8_t *data, size_t size,
                                  bool *has_moved, struct tfos_error *err)
{
    while (relay->received < size) {
        size_t done = 0;
        enum tfos_status status = tfos__channel_read_some(relay->channel, data + relay->received,
                                                          size - relay->received, &done, err);
        if (status != TFOS_OK)
            return status;
        relay->received += done;
        *has_moved = true;
    }
    return TFOS_OK;
}

static enum tfos_status take_head(struct tfos__relay *relay, bool *has_moved,
                                  struct tfos_error *err)
{
    enum tfos_status status =
        read_part(relay, (uint8_t *)&relay->record, sizeof relay->record, has_moved, err);

    if (status != TFOS_OK)
        return status;
    TFOS__TRY(check_record(relay, err));
    if (relay->record.kind == TFOS__RECORD_MESSAGE) {
        relay->message = tfos__alloc(1, relay->record.size);
        if (!relay->message)
            return tfos__no_memory(err, "feed", "a message");
        relay->space = relay->message;
        relay->intake = INTAKE_BODY;
    } else if (relay->record.size > last_lane(relay)->lane->size) {
        pthread_mutex_lock(&relay->mutex);
        relay->wanted_size = relay->record.size * 2;
        pthread_mutex_unlock(&relay->mutex);
        wake_host(relay);
        relay->intake = INTAKE_LANE;
    } else {
        relay->intake = INTAKE_SPACE;
    }
    return TFOS_OK;
}

static enum tfos_status take_lane(struct tfos__relay *relay, struct tfos_error *err)
{
    pthread_mutex_lock(&relay->mutex);
    struct tfos__lane *lane = relay->given_lane;
    relay->given_lane = NULL;
    pthread_mutex_unlock(&relay->mutex);
    if (!lane)
        return TFOS_AGAIN;
    enum tfos_status status = add_lane(relay, lane, err);
    if (status != TFOS_OK) {
        tfos__lane_release(lane);
        return status;
    }
    if (!relay->has_results)
        leave_first_lane(relay);
    relay->intake = INTAKE_SPACE;
    return TFOS_OK;
}

static void hear(struct tfos__relay *relay, const json_t *message, bool *is_closed)
{
    const char *type = tfos__json_string_or(message, "type", "");

    *is_closed = strcmp(type, "close") == 0;
    if (strcmp(type, "stalled") != 0)
        return;
    pthread_mutex_lock(&relay->mutex);
    relay->is_stalled = true;
    pthread_mutex_unlock(&relay->mutex);
    wake_host(relay);
}

static enum tfos_status end_message(struct tfos__relay *relay, struct tfos_error *err)
{
    json_t *message = NULL;
    bool is_closed = false;
    enum tfos_status status =
        tfos__message_read(&relay->record, relay->message + sizeof relay->record, &message, err);

    tfos__free(relay->message);
    relay->message = NULL;
    if (status != TFOS_OK)
        return status;
    hear(relay, message, &is_closed);
    json_decref(message);
    return is_closed ? tfos__fail(err, TFOS_CLOSED, "feed: the writer has closed") : TFOS_OK;
}

static enum tfos_status end_record(struct tfos__relay *relay, struct tfos_error *err)
{
    struct relay_lane *lane = last_lane(relay);
    bool is_end = relay->record.kind == TFOS__RECORD_END;
    uint64_t rows = published_rows(relay) + (uint64_t)relay->record.rows;

    memcpy(relay->space, &relay->record, sizeof relay->record);
    TFOS__TRY(tfos__inlet_commit(&lane->lane->inlet, relay->record.size,
                                 is_end ? rows | TFOS__ROWS_COMPLETE : rows, err));
    lane->row_count += relay->record.rows;
    relay->is_complete |= is_end;
    return TFOS_OK;
}

// Moves on with what comes in. AGAIN when it must wait for something.
static enum tfos_status take_in(struct tfos__relay *relay, bool *has_moved, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    switch (relay->intake) {
    case INTAKE_HEAD:
        return take_head(relay, has_moved, err);
    case INTAKE_LANE:
        return take_lane(relay, err);
    case INTAKE_SPACE:
        status = tfos__inlet_reserve(&last_lane(relay)->lane->inlet, relay->record.size,
                                     &relay->space, err);
        if (status == TFOS_OK)
            relay->intake = INTAKE_BODY;
        return status;
    case INTAKE_BODY:
        status = read_part(relay, relay->space, relay->record.size, has_moved, err);
        if (status != TFOS_OK)
            return status;
        relay->intake = INTAKE_HEAD;
        relay->received = 0;
        return relay->message ? end_message(relay, err) : end_record(relay, err);
    }
    return status;
}

static int64_t taken_rows(const struct tfos__relay *relay)
{
    int64_t rows = relay->left_count;

    for (size_t i = 0; i < relay->lane_count; i++)
        rows += (int64_t)(atomic_load(&relay->lanes[i].lane->page->rows_released) -
                          relay->lanes[i].released_before);
    return rows;
}

// Tells the writer how far its reader is: at least once a second, and at once when the partition's
// end is in the ring.
static enum tfos_status tell_progress(struct tfos__relay *relay, struct tfos_error *err)
{
    int64_t now = tfos__now_ms();
    bool is_due =
        now - relay->told_ms >= TELL_MS || (relay->is_complete && !relay->has_told_complete);

    if (!is_due || tfos__buffer_size(&relay->out) > OUT_LIMIT)
        return TFOS_OK;
    relay->told_ms = now;
    relay->has_told_complete = relay->is_complete;
    return tfos__message_append(
        &relay->out,
        json_pack("{ss sI sI sb}", "type", "taken", "rows", (json_int_t)published_rows(relay),
                  "taken", (json_int_t)taken_rows(relay), "complete", relay->is_complete),
        err);
}

// The lane from which the next result comes, or NULL when there is none.
static struct relay_lane *find_result(struct tfos__relay *relay, struct tfos_error *err,
                                      enum tfos_status *status)
{
    while (relay->lane_count > 1 && relay->lanes[0].result_count >= relay->lanes[0].row_count &&
           !relay->is_sending_result)
        leave_first_lane(relay);
    *status =
        relay->has_results ? tfos__outlet_peek(&relay->lanes[0].lane->outlet, err) : TFOS_AGAIN;
    return *status == TFOS_OK ? &relay->lanes[0] : NULL;
}

// A result record travels as it lies in its ring, its head from the checked copy.
static enum tfos_status send_result(struct tfos__relay *relay, struct relay_lane *lane,
                                    bool *has_moved, struct tfos_error *err)
{
    struct tfos__outlet *outlet = &lane->lane->outlet;
    const struct tfos__record *record = &outlet->record;

    relay->is_sending_result = true;
    while (relay->result_sent < record->size) {
        bool is_head = relay->result_sent < sizeof *record;
        const uint8_t *data =
            is_head ? (const uint8_t *)record : tfos__outlet_body(outlet) - sizeof *record;
        size_t end = is_head ? sizeof *record : record->size;
        size_t done = 0;
        enum tfos_status status = tfos__channel_write_some(
            relay->channel, data + relay->result_sent, end - relay->result_sent, &done, err);
        if (status != TFOS_OK)
            return status;
        relay->result_sent += done;
        *has_moved = true;
    }
    relay->is_sending_result = false;
    relay->result_sent = 0;
    lane->result_count += record->rows;
    tfos__outlet_skip(outlet);
    return TFOS_OK;
}

static enum tfos_status send_messages(struct tfos__relay *relay, bool *has_moved,
                                      struct tfos_error *err)
{
    while (tfos__buffer_size(&relay->out) > 0) {
        size_t done = 0;
        relay->is_sending_message = true;
        enum tfos_status status =
            tfos__channel_write_some(relay->channel, relay->out.data + relay->out.begin,
                                     tfos__buffer_size(&relay->out), &done, err);
        if (status != TFOS_OK)
            return status;
        tfos__buffer_consume(&relay->out, done);
        *has_moved = true;
    }
    relay->is_sending_message = false;
    return TFOS_OK;
}

// Takes the host's messages to those that go out. `*is_last`: none will follow.
static enum tfos_status take_mail(struct tfos__relay *relay, bool *is_last, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    pthread_mutex_lock(&relay->mutex);
    size_t size = tfos__buffer_size(&relay->mail);
    if (size > 0) {
        status = tfos__buffer_append(&relay->out, relay->mail.data + relay->mail.begin, size, err);
        if (status == TFOS_OK)
            tfos__buffer_consume(&relay->mail, size);
    }
    *is_last = relay->has_last_mail;
    pthread_mutex_unlock(&relay->mutex);
    return status;
}

// Moves on with what goes out: results before messages, so that the last word does come last.
static enum tfos_status give_out(struct tfos__relay *relay, bool *has_moved, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    struct relay_lane *lane = NULL;
    bool is_last = false;

    TFOS__TRY(take_mail(relay, &is_last, err));
    if (!is_last)
        TFOS__TRY(tell_progress(relay, err));
    if (!relay->is_sending_message)
        while ((lane = find_result(relay, err, &status)) != NULL) {
            status = send_result(relay, lane, has_moved, err);
            if (status != TFOS_OK)
                return status;
        }
    if (status < 0)
        return status;
    status = send_messages(relay, has_moved, err);
    if (status == TFOS_OK && is_last && !relay->is_lingering) {
        relay->is_lingering = true;
        relay->deadline = tfos__deadline(LINGER_MS);
    }
    return status;
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
    struct tfos__lane *lane = last_lane(relay)->lane;
    bool is_sending = relay->is_sending_result || relay->is_sending_message;

    if (relay->intake == INTAKE_SPACE && !is_sending && !relay->is_lingering) {
        uint32_t value = tfos__bell_arm(lane->bell);
        if (!tfos__inlet_has_space(&lane->inlet, relay->record.size) &&
            tfos__outlet_is_empty(&relay->lanes[0].lane->outlet))
            tfos__bell_sleep(lane->bell, value, SLICE_MS);
        tfos__bell_disarm(lane->bell);
        return;
    }
    bool is_reading =
        relay->intake == INTAKE_HEAD || relay->intake == INTAKE_BODY || relay->is_lingering;
    struct pollfd descriptor = {tfos__channel_fd(relay->channel),
                                (short)((is_reading ? POLLIN : 0) | (is_sending ? POLLOUT : 0)), 0};
    bool is_owed = relay->has_results && relay->lanes[0].result_count < relay->lanes[0].row_count;
    (void)poll(&descriptor, 1, is_owed && !is_sending ? RESULT_MS : SLICE_MS);
}

// What the reader or the host did to the lane, as a last word to the writer.
static void check_state(struct tfos__relay *relay)
{
    uint32_t state = atomic_load(&relay->board->page->state);

    if (state == TFOS_FEED_TERMINATED)
        say_last(relay, json_pack("{ss}", "type", "end"));
    else if (atomic_load(&last_lane(relay)->lane->page->head) & TFOS__HEAD_FENCED &&
             relay->intake != INTAKE_LANE)
        say_last(relay, json_pack("{ss}", "type", "fenced"));
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
        enum tfos_status in = relay->is_lingering ? drop_input(relay, &has_moved, &err)
                                                  : take_in(relay, &has_moved, &err);
        // A fence ends the taking in, and the last word tells it.
        if (in == TFOS_BUSY)
            check_state(relay);
        else if (in < 0)
            break;
        if (give_out(relay, &has_moved, &err) < 0 || must_stop(relay, &stop_deadline))
            break;
        if (in != TFOS_OK && !has_moved)
            wait_for_news(relay);
    }
    pthread_mutex_lock(&relay->mutex);
    relay->has_ended = true;
    pthread_mutex_unlock(&relay->mutex);
    wake_host(relay);
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
    relay->has_results = options->has_results;
    relay->told_ms = tfos__now_ms();
    pthread_mutex_init(&relay->mutex, NULL);
    enum tfos_status status =
        tfos__lane_map(options->lane_fd, TFOS__LANE_WRITER, options->board, &lane, err);
    if (status == TFOS_OK) {
        status = add_lane(relay, lane, err);
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
        say_last(relay, message);
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
        leave_first_lane(relay);
    tfos__lane_release(relay->given_lane);
    tfos__free(relay->lanes);
    tfos__free(relay->message);
    tfos__buffer_clear(&relay->out);
    tfos__buffer_clear(&relay->mail);
    tfos__channel_close(relay->channel);
    pthread_mutex_destroy(&relay->mutex);
    tfos__free(relay);
}
