// SPDX-License-Identifier: Apache-2.0
// Raw bytes after frames, and frames after raw bytes.
#include "channel_pair.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define STREAM_SIZE (48u << 20)

struct writer {
    struct tfos__channel *channel;
    const unsigned char *data;
    enum tfos_status status;
    struct tfos_error err;
};

// A frame, the bytes in pieces of many sizes, and a frame.
static void *run_writer(void *argument)
{
    struct writer *writer = argument;
    struct tfos_error *err = &writer->err;
    writer->status = tfos__channel_queue(writer->channel, numbered(1), NULL, 0, err);
    size_t piece = 1;
    for (size_t done = 0; done < STREAM_SIZE && writer->status == TFOS_OK; done += piece) {
        piece = piece < (3u << 20) ? piece * 3 + 1 : 5;
        if (piece > STREAM_SIZE - done)
            piece = STREAM_SIZE - done;
        writer->status =
            tfos__channel_write(writer->channel, writer->data + done, piece, WAIT_MS, err);
    }
    if (writer->status == TFOS_OK)
        writer->status =
            tfos__channel_send(writer->channel, numbered(2), NULL, 0, tfos__deadline(WAIT_MS), err);
    return NULL;
}

static void carry_stream(bool is_tls)
{
    struct tfos_error err;
    struct channel_pair pair = open_same_pair(is_tls);
    unsigned char *data = malloc(STREAM_SIZE);
    unsigned char *got = malloc(STREAM_SIZE);
    assert_non_null(data);
    assert_non_null(got);
    uint32_t word = 1;
    for (size_t i = 0; i < STREAM_SIZE; i++)
        data[i] = (unsigned char)((word = word * 1664525u + 1013904223u) >> 24);
    struct writer writer = {.channel = pair.near, .data = data};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_writer, &writer), 0);
    json_t *message;
    int64_t deadline = tfos__deadline(WAIT_MS);
    assert_done(tfos__channel_receive(pair.far, &message, NULL, NULL, deadline, &err));
    assert_int_equal(take_number(message), 1);
    size_t piece = 4;
    for (size_t done = 0; done < STREAM_SIZE; done += piece) {
        piece = piece < (7u << 20) ? piece * 5 + 3 : 1;
        if (piece > STREAM_SIZE - done)
            piece = STREAM_SIZE - done;
        assert_done(tfos__channel_read(pair.far, got + done, piece, WAIT_MS, &err));
    }
    assert_done(
        tfos__channel_receive(pair.far, &message, NULL, NULL, tfos__deadline(WAIT_MS), &err));
    assert_int_equal(take_number(message), 2);
    pthread_join(thread, NULL);
    if (writer.status != TFOS_OK)
        fail_msg("%s", writer.err.message);
    assert_memory_equal(data, got, STREAM_SIZE);
    free(data);
    free(got);
    close_pair(&pair);
}

static void tls_carries_a_stream_between_frames(void **state)
{
    (void)state;
    carry_stream(true);
}

static void unix_carries_a_stream_between_frames(void **state)
{
    (void)state;
    carry_stream(false);
}

static void what_was_read_with_a_frame_is_given_first(void **state)
{
    (void)state;
    for (int is_tls = 0; is_tls < 2; is_tls++) {
        struct tfos_error err;
        struct channel_pair pair = open_same_pair(is_tls);
        make_ready(&pair);
        assert_done(tfos__channel_queue(pair.near, numbered(1), NULL, 0, &err));
        assert_done(tfos__channel_write(pair.near, "raw bytes", 9, WAIT_MS, &err));
        assert_done(tfos__channel_queue(pair.near, numbered(2), NULL, 0, &err));
        assert_done(tfos__channel_pump(pair.near, &err));
        json_t *message;
        char bytes[10] = {0};
        int64_t deadline = tfos__deadline(WAIT_MS);
        assert_done(tfos__channel_receive(pair.far, &message, NULL, NULL, deadline, &err));
        assert_int_equal(take_number(message), 1);
        assert_done(tfos__channel_read(pair.far, bytes, 4, WAIT_MS, &err));
        assert_done(tfos__channel_read(pair.far, bytes + 4, 5, WAIT_MS, &err));
        assert_string_equal(bytes, "raw bytes");
        assert_done(tfos__channel_receive(pair.far, &message, NULL, NULL, deadline, &err));
        assert_int_equal(take_number(message), 2);
        close_pair(&pair);
    }
}

static void an_end_inside_a_stream_tells_how_far_it_came(void **state)
{
    (void)state;
    for (int is_tls = 0; is_tls < 2; is_tls++) {
        struct tfos_error err;
        struct channel_pair pair = open_same_pair(is_tls);
        make_ready(&pair);
        assert_done(tfos__channel_write(pair.near, "half", 4, WAIT_MS, &err));
        tfos__channel_close(pair.near);
        char bytes[8];
        assert_int_equal(tfos__channel_read(pair.far, bytes, 8, WAIT_MS, &err), TFOS_CLOSED);
        assert_non_null(strstr(err.message, "after 4 of 8 bytes"));
        tfos__channel_close(pair.far);
    }
}

static void waits_for_raw_bytes_end(void **state)
{
    (void)state;
    for (int is_tls = 0; is_tls < 2; is_tls++) {
        struct tfos_error err;
        struct channel_pair pair = open_same_pair(is_tls);
        static const char block[4u << 20];
        char byte;
        assert_int_equal(tfos__channel_read(pair.near, &byte, 1, is_tls ? 20 : 50, &err),
                         TFOS_TIMEOUT);
        make_ready(&pair);
        assert_int_equal(tfos__channel_read(pair.near, &byte, 1, 50, &err), TFOS_TIMEOUT);
        enum tfos_status status = TFOS_OK;
        for (int i = 0; i < 16 && status == TFOS_OK; i++)
            status = tfos__channel_write(pair.near, block, sizeof block, 50, &err);
        assert_int_equal(status, TFOS_TIMEOUT);
        // What was half written cannot be gone on with.
        assert_int_equal(tfos__channel_queue(pair.near, numbered(1), NULL, 0, &err), TFOS_TIMEOUT);
        close_pair(&pair);
    }
}

struct dripper {
    struct tfos__channel *channel;
    enum tfos_status status;
    struct tfos_error err;
};

static void *run_dripper(void *argument)
{
    struct dripper *dripper = argument;
    dripper->status = TFOS_OK;
    for (int i = 0; i < 8 && dripper->status == TFOS_OK; i++) {
        poll(NULL, 0, 100);
        dripper->status = tfos__channel_write(dripper->channel, "x", 1, WAIT_MS, &dripper->err);
    }
    return NULL;
}

static void progress_renews_the_deadline(void **state)
{
    (void)state;
    struct tfos_error err;
    struct channel_pair pair = open_unix_pair();
    struct dripper dripper = {.channel = pair.near};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_dripper, &dripper), 0);
    char bytes[8];
    assert_done(tfos__channel_read(pair.far, bytes, sizeof bytes, 600, &err));
    assert_memory_equal(bytes, "xxxxxxxx", 8);
    pthread_join(thread, NULL);
    assert_int_equal(dripper.status, TFOS_OK);
    close_pair(&pair);
}

struct mover {
    struct tfos__channel *channel;
    size_t sent;
    size_t received;
    bool is_blocked; // neither direction could go on
};

// Byte i of both streams is i * 31 % 256, so that a byte out of its place is seen.
static void move_some(struct mover *mover, size_t total)
{
    struct tfos_error err;
    static unsigned char bytes[100000];
    size_t done = 0;
    mover->is_blocked = true;
    size_t size = total - mover->sent < sizeof bytes ? total - mover->sent : sizeof bytes;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)((mover->sent + i) * 31);
    if (size > 0) {
        enum tfos_status status =
            tfos__channel_write_some(mover->channel, bytes, size, &done, &err);
        assert_true(status == TFOS_OK || status == TFOS_AGAIN);
        if (status == TFOS_OK) {
            mover->sent += done;
            mover->is_blocked = false;
        }
    }
    if (mover->received == total)
        return;
    enum tfos_status status =
        tfos__channel_read_some(mover->channel, bytes, sizeof bytes, &done, &err);
    assert_true(status == TFOS_OK || status == TFOS_AGAIN);
    if (status == TFOS_AGAIN)
        return;
    for (size_t i = 0; i < done; i++)
        assert_int_equal(bytes[i], (unsigned char)((mover->received + i) * 31));
    mover->received += done;
    mover->is_blocked = false;
}

static void bytes_move_both_ways_without_waiting(void **state)
{
    (void)state;
    const size_t total = 8u << 20;
    for (int is_tls = 0; is_tls < 2; is_tls++) {
        struct tfos_error err;
        struct channel_pair pair = open_same_pair(is_tls);
        struct mover near = {.channel = pair.near};
        struct mover far = {.channel = pair.far};
        json_t *message;
        assert_done(tfos__channel_queue(pair.near, numbered(1), NULL, 0, &err));
        assert_done(exchange(&pair, pair.far, &message, NULL, NULL, &err));
        assert_int_equal(take_number(message), 1);
        while (near.received < total || far.received < total) {
            move_some(&near, total);
            move_some(&far, total);
            if (near.is_blocked && far.is_blocked)
                wait_pair(&pair);
        }
        tfos__channel_close(pair.near);
        char byte;
        size_t done;
        enum tfos_status status;
        while ((status = tfos__channel_read_some(pair.far, &byte, 1, &done, &err)) == TFOS_AGAIN)
            assert_done(tfos__socket_wait(tfos__channel_fd(pair.far), POLLIN,
                                          tfos__deadline(WAIT_MS), &err));
        assert_int_equal(status, TFOS_CLOSED);
        assert_int_equal(tfos__channel_write_some(pair.far, "x", 1, &done, &err), TFOS_CLOSED);
        tfos__channel_close(pair.far);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(tls_carries_a_stream_between_frames),
    cmocka_unit_test(unix_carries_a_stream_between_frames),
    cmocka_unit_test(what_was_read_with_a_frame_is_given_first),
    cmocka_unit_test(an_end_inside_a_stream_tells_how_far_it_came),
    cmocka_unit_test(waits_for_raw_bytes_end),
    cmocka_unit_test(progress_renews_the_deadline),
    cmocka_unit_test(bytes_move_both_ways_without_waiting),
};

TEST_MAIN(cases)
