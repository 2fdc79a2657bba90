// SPDX-License-Identifier: Apache-2.0
// Raw bytes after frames.
#include <stdbool.h>
#include <sys/ioctl.h>

#include "channel_pair.h"

enum kind { UNIX, TLS, BULK_TLS, KINDS };

static struct channel_pair open_kind(enum kind kind)
{
    struct tfos_error err;
    struct channel_pair pair = open_same_pair(kind != UNIX);

    if (kind == BULK_TLS) {
        assert_done(tfos__channel_expect_bulk(pair.near, &err));
        assert_done(tfos__channel_expect_bulk(pair.far, &err));
    }
    return pair;
}

static void what_was_read_with_a_frame_is_given_first(void **state)
{
    (void)state;
    for (enum kind kind = UNIX; kind < KINDS; kind++) {
        struct tfos_error err;
        struct channel_pair pair = open_kind(kind);
        make_ready(&pair);
        size_t done;
        assert_done(tfos__channel_queue(pair.near, numbered(1), NULL, 0, &err));
        // The frame goes first.
        assert_done(tfos__channel_write_some(pair.near, "raw bytes", 9, &done, &err));
        assert_int_equal(done, 9);
        json_t *message;
        char bytes[10] = {0};
        int64_t deadline = tfos__deadline(WAIT_MS);
        assert_done(tfos__channel_receive(pair.far, &message, NULL, NULL, deadline, &err));
        assert_int_equal(take_number(message), 1);
        for (size_t got = 0; got < 9; got += done) {
            enum tfos_status status = tfos__channel_read_some(
                pair.far, bytes + got, got < 4 ? 4 - got : 9 - got, &done, &err);
            if (status == TFOS_AGAIN) {
                done = 0;
                status = tfos__socket_wait(tfos__channel_fd(pair.far), POLLIN, deadline, &err);
            }
            assert_done(status);
        }
        assert_string_equal(bytes, "raw bytes");
        close_pair(&pair);
    }
}

struct mover {
    struct tfos__channel *channel;
    size_t sent;
    size_t received;
    bool is_blocked; // neither direction could continue
};

// Byte i of both streams is i * 31 % 256, so that a byte out of its place is seen.
static void move_some(struct mover *mover, size_t total)
{
    struct tfos_error err;
    static unsigned char bytes[100000];
    size_t done = 0;
    mover->is_blocked = true;
    size_t size = total - mover->sent < sizeof(bytes) ? total - mover->sent : sizeof(bytes);
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
        tfos__channel_read_some(mover->channel, bytes, sizeof(bytes), &done, &err);
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
    for (enum kind kind = UNIX; kind < KINDS; kind++) {
        struct tfos_error err;
        struct channel_pair pair = open_kind(kind);
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

// A system call a record, let alone two, costs as much as the decryption.
static void much_is_taken_from_the_socket_at_once(void **state)
{
    (void)state;
    static char bytes[16000];
    struct tfos_error err;
    struct channel_pair pair = open_kind(BULK_TLS);
    int64_t deadline = tfos__deadline(WAIT_MS);
    size_t done;
    int waiting = 0;

    make_ready(&pair);
    for (int i = 0; i < 6; i++)
        assert_done(tfos__channel_write_some(pair.near, bytes, sizeof(bytes), &done, &err));
    while (waiting < 6 * (int)sizeof(bytes)) {
        assert_done(tfos__socket_wait(tfos__channel_fd(pair.far), POLLIN, deadline, &err));
        assert_int_equal(ioctl(tfos__channel_fd(pair.far), FIONREAD, &waiting), 0);
    }
    assert_done(tfos__channel_read_some(pair.far, bytes, 1, &done, &err));
    assert_int_equal(ioctl(tfos__channel_fd(pair.far), FIONREAD, &waiting), 0);
    assert_int_equal(waiting, 0);
    // And nothing of it is lost.
    for (size_t got = 1; got < 6 * sizeof(bytes); got += done)
        assert_done(tfos__channel_read_some(pair.far, bytes, sizeof(bytes), &done, &err));
    assert_int_equal(tfos__channel_read_some(pair.far, bytes, 1, &done, &err), TFOS_AGAIN);
    close_pair(&pair);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(what_was_read_with_a_frame_is_given_first),
    cmocka_unit_test(bytes_move_both_ways_without_waiting),
    cmocka_unit_test(much_is_taken_from_the_socket_at_once),
};

TEST_MAIN(cases)
