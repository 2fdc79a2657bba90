// SPDX-License-Identifier: Apache-2.0
// Frames over both kinds of channel: order, limits, faults of the peer, deadlines, back-pressure.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/memory.h"
#include "channel_pair.h"

static void carry_both_ways(bool is_tls)
{
    int fds_before = count_open_fds();
    struct tfos_error err;
    struct channel_pair pair = open_same_pair(is_tls);
    for (int i = 0; i < 1000; i++) {
        assert_done(tfos__channel_queue(pair.near, numbered(i), NULL, 0, &err));
        assert_done(tfos__channel_queue(pair.far, numbered(1000 + i), NULL, 0, &err));
    }
    for (int i = 0; i < 1000; i++) {
        json_t *message;
        assert_done(exchange(&pair, pair.far, &message, NULL, NULL, &err));
        assert_int_equal(take_number(message), i);
        assert_done(exchange(&pair, pair.near, &message, NULL, NULL, &err));
        assert_int_equal(take_number(message), 1000 + i);
    }
    assert_int_equal(tfos__channel_pending_size(pair.near), 0);
    json_t *none;
    assert_int_equal(tfos__channel_next(pair.far, &none, NULL, NULL, &err), TFOS_AGAIN);
    close_pair(&pair);
    assert_int_equal(count_open_fds(), fds_before);
}

static void unix_carries_frames_in_order(void **state)
{
    (void)state;
    carry_both_ways(false);
}

static void tls_carries_frames_in_order(void **state)
{
    (void)state;
    carry_both_ways(true);
}

// A message whose text has exactly `size` bytes.
static json_t *sized(size_t size)
{
    const size_t around = sizeof "{\"type\":\"\"}" - 1;
    char *text = malloc(size); // not one of the requests that a test lets fail
    assert_non_null(text);
    memset(text, 'x', size);
    json_t *message = json_pack("{s:s%}", "type", text, size - around);
    free(text);
    assert_non_null(message);
    return message;
}

static void carry_largest(bool is_tls)
{
    struct tfos_error err;
    struct channel_pair pair = open_same_pair(is_tls);
    json_t *message;
    for (int i = 0; i < 3; i++)
        assert_done(tfos__channel_queue(pair.near, sized(TFOS__FRAME_LIMIT), NULL, 0, &err));
    for (int i = 0; i < 3; i++) {
        assert_done(exchange(&pair, pair.far, &message, NULL, NULL, &err));
        json_decref(message);
    }
    assert_int_equal(tfos__channel_queue(pair.near, sized(TFOS__FRAME_LIMIT + 1u), NULL, 0, &err),
                     TFOS_INVALID);
    assert_non_null(strstr(err.message, "larger than the limit of 4194304 bytes"));
    assert_int_equal(tfos__channel_pending_size(pair.near), 0);
    assert_done(tfos__channel_queue(pair.near, numbered(1), NULL, 0, &err));
    assert_done(exchange(&pair, pair.far, &message, NULL, NULL, &err));
    assert_int_equal(take_number(message), 1);
    close_pair(&pair);
}

static void unix_carries_the_largest_and_refuses_larger(void **state)
{
    (void)state;
    carry_largest(false);
}

static void tls_carries_the_largest_and_refuses_larger(void **state)
{
    (void)state;
    carry_largest(true);
}

static void messages_that_are_no_objects_are_refused(void **state)
{
    (void)state;
    struct tfos_error err;
    struct channel_pair pair = open_unix_pair();
    assert_int_equal(tfos__channel_queue(pair.near, json_array(), NULL, 0, &err), TFOS_INVALID);
    assert_int_equal(tfos__channel_queue(pair.near, NULL, NULL, 0, &err), TFOS_NO_MEMORY);
    assert_int_equal(tfos__channel_pending_size(pair.near), 0);
    close_pair(&pair);
}

static void unix_takes_one_byte_at_a_time(void **state)
{
    (void)state;
    struct tfos_error err;
    int fds[2];
    connect_unix_pair(fds);
    struct tfos__channel *channel = open_channel(fds[1], TFOS__CHANNEL_UNIX, NULL);
    const char frame[] = "\0\0\0\x0c{\"number\":5}\0\0\0\x0c{\"number\":6}";
    int found = 0;
    for (size_t i = 0; i < sizeof(frame) - 1; i++) {
        assert_int_equal(write(fds[0], frame + i, 1), 1);
        assert_done(tfos__channel_pump(channel, &err));
        json_t *message;
        enum tfos_status status = tfos__channel_next(channel, &message, NULL, NULL, &err);
        bool is_last = i % 16 == 15;
        assert_int_equal(status, is_last ? TFOS_OK : TFOS_AGAIN);
        if (is_last)
            assert_int_equal(take_number(message), 5 + found++);
    }
    assert_int_equal(found, 2);
    tfos__channel_close(channel);
    close(fds[0]);
}

// Moves at most one byte; whether one was there.
static bool relay_byte(int from, int to)
{
    char byte;
    if (recv(from, &byte, 1, MSG_DONTWAIT) != 1)
        return false;
    assert_int_equal(write(to, &byte, 1), 1);
    return true;
}

static void tls_takes_one_byte_at_a_time(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__identity identity = make_identity("cluster-1", 7);
    int near[2];
    int far[2];
    connect_unix_pair(near);
    connect_unix_pair(far);
    struct channel_pair pair = {.near = open_channel(near[0], TFOS__CHANNEL_TLS_CLIENT, &identity),
                                .far = open_channel(far[0], TFOS__CHANNEL_TLS_SERVER, &identity)};
    assert_done(tfos__channel_queue(pair.near, numbered(5), NULL, 0, &err));
    assert_done(tfos__channel_queue(pair.far, numbered(6), NULL, 0, &err));
    json_t *to_near = NULL;
    json_t *to_far = NULL;
    while (!to_near || !to_far) {
        assert_done(tfos__channel_pump(pair.near, &err));
        assert_done(tfos__channel_pump(pair.far, &err));
        if (!to_near)
            tfos__channel_next(pair.near, &to_near, NULL, NULL, &err);
        if (!to_far)
            tfos__channel_next(pair.far, &to_far, NULL, NULL, &err);
        bool has_moved = relay_byte(near[1], far[1]);
        has_moved = relay_byte(far[1], near[1]) || has_moved;
        assert_true(has_moved || (to_near && to_far));
    }
    assert_int_equal(take_number(to_near), 6);
    assert_int_equal(take_number(to_far), 5);
    close_pair(&pair);
    close(near[1]);
    close(far[1]);
}

// What a channel makes of these bytes: the failure must stay.
static void expect_fault(const char *bytes, size_t size, enum tfos_status expected,
                         const char *words)
{
    struct tfos_error err;
    int fds[2];
    connect_unix_pair(fds);
    struct tfos__channel *channel = open_channel(fds[1], TFOS__CHANNEL_UNIX, NULL);
    assert_int_equal(write(fds[0], bytes, size), size);
    json_t *message;
    for (int i = 0; i < 2; i++) {
        memset(&err, 0, sizeof(err));
        assert_int_equal(
            tfos__channel_receive(channel, &message, NULL, NULL, tfos__deadline(WAIT_MS), &err),
            expected);
        if (!strstr(err.message, words))
            fail_msg("\"%s\" lacks \"%s\"", err.message, words);
    }
    assert_int_equal(tfos__channel_pump(channel, &err), expected);
    assert_int_equal(tfos__channel_queue(channel, numbered(1), NULL, 0, &err), expected);
    tfos__channel_close(channel);
    close(fds[0]);
}

static void lengths_outside_the_limits_are_corrupt(void **state)
{
    (void)state;
    expect_fault("\0\0\0\0", 4, TFOS_CORRUPT, "a length of 0 bytes");
    expect_fault("\0\x40\0\x01", 4, TFOS_CORRUPT, "a length of 4194305 bytes");
    expect_fault("\xff\xff\xff\xff", 4, TFOS_CORRUPT, "a length of 4294967295 bytes");
}

static void bodies_that_are_no_object_are_corrupt(void **state)
{
    (void)state;
    expect_fault("\0\0\0\x02[]", 6, TFOS_CORRUPT, "found an array");
    expect_fault("\0\0\0\x04null", 8, TFOS_CORRUPT, "byte");
    expect_fault("\0\0\0\x03{\"a", 7, TFOS_CORRUPT, "byte");
    expect_fault("\0\0\0\x08{\"\xff\":12}", 12, TFOS_CORRUPT, "byte");
}

static void a_fault_behind_a_good_frame_leaves_the_good_frame(void **state)
{
    (void)state;
    struct tfos_error err;
    int fds[2];
    connect_unix_pair(fds);
    struct tfos__channel *channel = open_channel(fds[1], TFOS__CHANNEL_UNIX, NULL);
    assert_int_equal(write(fds[0], "\0\0\0\x0c{\"number\":5}\0\0\0\0", 20), 20);
    json_t *message;
    int64_t deadline = tfos__deadline(WAIT_MS);
    assert_done(tfos__channel_receive(channel, &message, NULL, NULL, deadline, &err));
    assert_int_equal(take_number(message), 5);
    assert_int_equal(tfos__channel_receive(channel, &message, NULL, NULL, deadline, &err),
                     TFOS_CORRUPT);
    tfos__channel_close(channel);
    close(fds[0]);
}

static void frames_before_the_end_are_given(void **state)
{
    (void)state;
    for (int is_tls = 0; is_tls < 2; is_tls++) {
        struct tfos_error err;
        struct channel_pair pair = open_same_pair(is_tls);
        make_ready(&pair);
        for (int i = 0; i < 3; i++)
            assert_done(tfos__channel_queue(pair.near, numbered(i), NULL, 0, &err));
        assert_done(tfos__channel_pump(pair.near, &err));
        tfos__channel_close(pair.near);
        json_t *message;
        int64_t deadline = tfos__deadline(WAIT_MS);
        for (int i = 0; i < 3; i++) {
            assert_done(tfos__channel_receive(pair.far, &message, NULL, NULL, deadline, &err));
            assert_int_equal(take_number(message), i);
        }
        for (int i = 0; i < 2; i++)
            assert_int_equal(tfos__channel_receive(pair.far, &message, NULL, NULL, deadline, &err),
                             TFOS_CLOSED);
        tfos__channel_close(pair.far);
    }
}

static void an_end_inside_a_frame_is_told(void **state)
{
    (void)state;
    struct tfos_error err;
    int fds[2];
    connect_unix_pair(fds);
    struct tfos__channel *channel = open_channel(fds[1], TFOS__CHANNEL_UNIX, NULL);
    assert_int_equal(write(fds[0], "\0\0\0\x0c{\"num", 9), 9);
    close(fds[0]);
    json_t *message;
    assert_int_equal(
        tfos__channel_receive(channel, &message, NULL, NULL, tfos__deadline(WAIT_MS), &err),
        TFOS_CLOSED);
    assert_non_null(strstr(err.message, "9 bytes into a frame"));
    tfos__channel_close(channel);
}

static void what_a_peer_said_before_it_left_is_read(void **state)
{
    (void)state;
    struct tfos_error err;
    struct channel_pair pair = open_unix_pair();
    assert_done(tfos__channel_send(pair.far, numbered(4), NULL, 0, tfos__deadline(WAIT_MS), &err));
    tfos__channel_close(pair.far);
    // No SIGPIPE: this process would be gone.
    assert_int_equal(
        tfos__channel_send(pair.near, numbered(1), NULL, 0, tfos__deadline(WAIT_MS), &err),
        TFOS_CLOSED);
    json_t *message;
    assert_done(tfos__channel_next(pair.near, &message, NULL, NULL, &err));
    assert_int_equal(take_number(message), 4);
    assert_int_equal(tfos__channel_next(pair.near, &message, NULL, NULL, &err), TFOS_CLOSED);
    tfos__channel_close(pair.near);
}

static void a_silent_peer_meets_the_deadline(void **state)
{
    (void)state;
    struct tfos_error err;
    json_t *message;
    struct channel_pair pair = open_unix_pair();
    int64_t begin = tfos__now_ms();
    assert_int_equal(
        tfos__channel_receive(pair.near, &message, NULL, NULL, tfos__deadline(50), &err),
        TFOS_TIMEOUT);
    assert_true(tfos__now_ms() - begin >= 50);
    assert_non_null(strstr(err.message, "no whole message came in time"));
    close_pair(&pair);
    struct tfos__identity identity = make_identity("cluster-1", 7);
    struct channel_pair tls = open_tls_pair(&identity, &identity);
    assert_int_equal(tfos__channel_send(tls.near, numbered(1), NULL, 0, tfos__deadline(50), &err),
                     TFOS_TIMEOUT);
    assert_non_null(strstr(err.message, "handshake was not done in time"));
    close_pair(&tls);
}

static void a_peer_that_does_not_read_meets_the_deadline(void **state)
{
    (void)state;
    for (int is_tls = 0; is_tls < 2; is_tls++) {
        struct tfos_error err;
        struct channel_pair pair = open_same_pair(is_tls);
        make_ready(&pair);
        enum tfos_status status = TFOS_OK;
        for (int i = 0; i < 16 && status == TFOS_OK; i++)
            status = tfos__channel_send(pair.near, sized(TFOS__FRAME_LIMIT), NULL, 0,
                                        tfos__deadline(50), &err);
        assert_int_equal(status, TFOS_TIMEOUT);
        assert_true(tfos__channel_pending_size(pair.near) > 0);
        assert_true(tfos__channel_events(pair.near) & EPOLLOUT);
        close_pair(&pair);
    }
}

// A receiver that takes no frames stops reading at a bound, and finds all of them once it does.
static void a_flood_is_held_back(void **state)
{
    (void)state;
    for (int is_tls = 0; is_tls < 2; is_tls++) {
        struct tfos_error err;
        struct channel_pair pair = open_same_pair(is_tls);
        make_ready(&pair);
        const int count = 400;
        for (int i = 0; i < count; i++)
            assert_done(tfos__channel_queue(pair.near, sized(64u << 10), NULL, 0, &err));
        while (tfos__channel_events(pair.far) & EPOLLIN) {
            assert_done(tfos__channel_pump(pair.near, &err));
            assert_done(tfos__channel_pump(pair.far, &err));
        }
        assert_true(tfos__channel_pending_size(pair.near) > 10u << 20);
        for (int i = 0; i < count; i++) {
            json_t *message;
            assert_done(exchange(&pair, pair.far, &message, NULL, NULL, &err));
            json_decref(message);
        }
        close_pair(&pair);
    }
}

static int run_exchange(bool is_tls, struct tfos_error *err)
{
    struct tfos__identity identity = make_identity("cluster-1", 7);
    int fds[2];
    if (is_tls)
        connect_tcp(fds);
    else
        connect_unix_pair(fds);
    struct channel_pair pair = {0};
    json_t *message = NULL;
    int passed[TFOS__FRAME_DESCRIPTORS];
    int passed_count = 0;
    enum tfos_status status =
        tfos__channel_open(fds[0], is_tls ? TFOS__CHANNEL_TLS_CLIENT : TFOS__CHANNEL_UNIX,
                           &identity, "far", &pair.near, err);
    enum tfos_status far_status =
        tfos__channel_open(fds[1], is_tls ? TFOS__CHANNEL_TLS_SERVER : TFOS__CHANNEL_UNIX,
                           &identity, "near", &pair.far, err);
    if (status == TFOS_OK)
        status = far_status;
    int sent[2] = {STDIN_FILENO, STDOUT_FILENO};
    if (status == TFOS_OK)
        status = tfos__channel_queue(pair.near, numbered(1), sent, is_tls ? 0 : 2, err);
    if (status == TFOS_OK)
        status = tfos__channel_queue(pair.near, sized(100u << 10), sent, is_tls ? 0 : 1, err);
    for (int i = 0; i < 2 && status == TFOS_OK; i++) {
        status = exchange(&pair, pair.far, &message, passed, &passed_count, err);
        if (status == TFOS_OK)
            json_decref(message);
        for (int k = 0; status == TFOS_OK && k < passed_count; k++)
            close(passed[k]);
    }
    close_pair(&pair);
    return status;
}

static void every_failing_request_for_memory_is_survived(void **state)
{
    (void)state;
    for (int is_tls = 0; is_tls < 2; is_tls++) {
        int fds_before = count_open_fds();
        struct tfos_error err = {0};
        int failures = 0;
        for (long n = 1;; n++) {
            tfos__memory_fail_at(n);
            int status = run_exchange(is_tls, &err);
            tfos__memory_fail_at(0);
            assert_int_equal(count_open_fds(), fds_before);
            if (status == TFOS_OK)
                break;
            assert_int_equal(status, TFOS_NO_MEMORY);
            assert_non_null(strstr(err.message, "no memory for"));
            failures++;
        }
        assert_true(failures >= 6);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(unix_carries_frames_in_order),
    cmocka_unit_test(tls_carries_frames_in_order),
    cmocka_unit_test(unix_carries_the_largest_and_refuses_larger),
    cmocka_unit_test(tls_carries_the_largest_and_refuses_larger),
    cmocka_unit_test(messages_that_are_no_objects_are_refused),
    cmocka_unit_test(unix_takes_one_byte_at_a_time),
    cmocka_unit_test(tls_takes_one_byte_at_a_time),
    cmocka_unit_test(lengths_outside_the_limits_are_corrupt),
    cmocka_unit_test(bodies_that_are_no_object_are_corrupt),
    cmocka_unit_test(a_fault_behind_a_good_frame_leaves_the_good_frame),
    cmocka_unit_test(frames_before_the_end_are_given),
    cmocka_unit_test(an_end_inside_a_frame_is_told),
    cmocka_unit_test(what_a_peer_said_before_it_left_is_read),
    cmocka_unit_test(a_silent_peer_meets_the_deadline),
    cmocka_unit_test(a_peer_that_does_not_read_meets_the_deadline),
    cmocka_unit_test(a_flood_is_held_back),
    cmocka_unit_test(every_failing_request_for_memory_is_survived),
};

TEST_MAIN(cases)
