// SPDX-License-Identifier: Apache-2.0
// Descriptors over unix channels: each reaches its own frame, and none is left open that nobody
// took.
#include <fcntl.h>
#include <sys/mman.h>

#include "channel_pair.h"

// A memfd that holds `number`.
static int make_marked(int number)
{
    int fd = memfd_create("marked", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &number, sizeof(number), 0), sizeof(number));
    return fd;
}

static int read_mark(int fd)
{
    int number = -1;
    assert_int_equal(pread(fd, &number, sizeof(number), 0), sizeof(number));
    return number;
}

static void queue_marked(struct tfos__channel *channel, int number, int fd_count)
{
    struct tfos_error err;
    int fds[TFOS__FRAME_DESCRIPTORS];
    for (int i = 0; i < fd_count; i++)
        fds[i] = make_marked(10 * number + i);
    assert_done(tfos__channel_queue(channel, numbered(number), fds, fd_count, &err));
    for (int i = 0; i < fd_count; i++)
        close(fds[i]); // the channel has duplicates
}

static void each_frame_gets_its_own(void **state)
{
    (void)state;
    struct tfos_error err;
    int fds_before = count_open_fds();
    struct channel_pair pair = open_unix_pair();
    const int count = 200;
    for (int i = 0; i < count; i++)
        queue_marked(pair.near, i, i % 3 == 1 ? 0 : i % 5); // runs of frames without, 0 to 4 with
    for (int i = 0; i < count; i++) {
        json_t *message;
        int fds[TFOS__FRAME_DESCRIPTORS];
        int fd_count = -1;
        assert_done(exchange(&pair, pair.far, &message, fds, &fd_count, &err));
        assert_int_equal(take_number(message), i);
        assert_int_equal(fd_count, i % 3 == 1 ? 0 : i % 5);
        for (int k = 0; k < fd_count; k++) {
            assert_int_equal(read_mark(fds[k]), 10 * i + k);
            assert_int_equal(fcntl(fds[k], F_GETFD), FD_CLOEXEC);
            close(fds[k]);
        }
    }
    close_pair(&pair);
    assert_int_equal(count_open_fds(), fds_before);
}

// The socket's buffer is smaller than a frame, so that frames with descriptors go in pieces.
static void large_frames_keep_theirs(void **state)
{
    (void)state;
    struct tfos_error err;
    int fds_before = count_open_fds();
    struct channel_pair pair = open_unix_pair();
    static char text[300001];
    memset(text, 'x', sizeof(text) - 1);
    for (int i = 0; i < 6; i++) {
        int fd = make_marked(i);
        json_t *message = json_pack("{s:i, s:s}", "number", i, "text", text);
        assert_done(tfos__channel_queue(pair.near, message, &fd, 1, &err));
        close(fd);
        assert_done(tfos__channel_queue(pair.near, numbered(i), NULL, 0, &err));
    }
    for (int i = 0; i < 6; i++) {
        json_t *message;
        int fds[TFOS__FRAME_DESCRIPTORS];
        int fd_count;
        assert_done(exchange(&pair, pair.far, &message, fds, &fd_count, &err));
        assert_int_equal(take_number(message), i);
        assert_int_equal(fd_count, 1);
        assert_int_equal(read_mark(fds[0]), i);
        close(fds[0]);
        assert_done(exchange(&pair, pair.far, &message, fds, &fd_count, &err));
        assert_int_equal(take_number(message), i);
        assert_int_equal(fd_count, 0);
    }
    close_pair(&pair);
    assert_int_equal(count_open_fds(), fds_before);
}

static void those_that_nobody_takes_are_closed(void **state)
{
    (void)state;
    struct tfos_error err;
    int fds_before = count_open_fds();
    struct channel_pair pair = open_unix_pair();
    json_t *message;
    queue_marked(pair.near, 1, 2); // taken without its descriptors
    queue_marked(pair.near, 2, 2); // read, never taken
    queue_marked(pair.near, 3, 2);
    assert_done(exchange(&pair, pair.far, &message, NULL, NULL, &err));
    json_decref(message);
    queue_marked(pair.near, 4, 4); // never written
    close_pair(&pair);
    assert_int_equal(count_open_fds(), fds_before);
}

static void too_many_are_refused(void **state)
{
    (void)state;
    struct tfos_error err;
    struct channel_pair pair = open_unix_pair();
    int fds[TFOS__FRAME_DESCRIPTORS + 1] = {0};
    assert_int_equal(tfos__channel_queue(pair.near, numbered(1), fds, 5, &err), TFOS_INVALID);
    fds[1] = -1;
    assert_int_equal(tfos__channel_queue(pair.near, numbered(1), fds, 2, &err), TFOS_IO);
    assert_int_equal(tfos__channel_pending_size(pair.near), 0);
    close_pair(&pair);
    struct channel_pair tls = open_same_pair(true);
    assert_int_equal(tfos__channel_queue(tls.near, numbered(1), fds, 1, &err), TFOS_INVALID);
    close_pair(&tls);
}

// Sends bytes with descriptors as no channel would.
static void send_raw(int fd, const char *bytes, size_t size, int fd_count)
{
    union {
        char bytes[CMSG_SPACE(6 * sizeof(int))];
        struct cmsghdr aligned;
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE((size_t)fd_count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN((size_t)fd_count * sizeof(int));
        for (int i = 0; i < fd_count; i++)
            memcpy(CMSG_DATA(header) + (size_t)i * sizeof(fd), &fd, sizeof(fd));
    }
    assert_int_equal(sendmsg(fd, &message, 0), size);
}

struct piece {
    const char *bytes;
    int fd_count;
};

// Sends the pieces and expects the channel to find them corrupt behind `good` whole frames.
static void expect_corrupt(const struct piece *pieces, size_t count, int good, const char *words)
{
    struct tfos_error err;
    int fds_before = count_open_fds();
    int fds[2];
    connect_unix_pair(fds);
    struct tfos__channel *channel = open_channel(fds[1], TFOS__CHANNEL_UNIX, NULL);
    for (size_t i = 0; i < count; i++) {
        char bytes[64] = {0};
        size_t size = strlen(pieces[i].bytes);
        memcpy(bytes, pieces[i].bytes, size);
        for (size_t k = 0; k < size; k++)
            bytes[k] = bytes[k] == '_' ? '\0' : bytes[k];
        send_raw(fds[0], bytes, size, pieces[i].fd_count);
        // Read apart: the kernel would give bytes sent before together with the descriptors.
        tfos__channel_pump(channel, &err);
    }
    json_t *message;
    int64_t deadline = tfos__deadline(WAIT_MS);
    for (int i = 0; i < good; i++) {
        assert_done(tfos__channel_receive(channel, &message, NULL, NULL, deadline, &err));
        json_decref(message);
    }
    assert_int_equal(tfos__channel_receive(channel, &message, NULL, NULL, deadline, &err),
                     TFOS_CORRUPT);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" lacks \"%s\"", err.message, words);
    tfos__channel_close(channel);
    close(fds[0]);
    assert_int_equal(count_open_fds(), fds_before);
}

static void those_inside_a_frame_are_corrupt(void **state)
{
    (void)state;
    const char *words = "descriptors came inside a frame";
    const struct piece whole[] = {{"___\2{", 0}, {"}", 1}};
    expect_corrupt(whole, 2, 0, words);
    const struct piece part[] = {{"___\4{", 0}, {" ", 1}};
    expect_corrupt(part, 2, 0, words);
    const struct piece twice[] = {{"___\4{", 1}, {" ", 1}};
    expect_corrupt(twice, 2, 0, words);
    const struct piece twice_whole[] = {{"___\2{}___\2{", 1}, {"}", 1}};
    expect_corrupt(twice_whole, 2, 1, words);
}

static void more_than_a_frame_may_have_are_corrupt(void **state)
{
    (void)state;
    const struct piece surplus[] = {{"___\2{}", 5}};
    expect_corrupt(surplus, 1, 0, "more than 4 descriptors");
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(each_frame_gets_its_own),
    cmocka_unit_test(large_frames_keep_theirs),
    cmocka_unit_test(those_that_nobody_takes_are_closed),
    cmocka_unit_test(too_many_are_refused),
    cmocka_unit_test(those_inside_a_frame_are_corrupt),
    cmocka_unit_test(more_than_a_frame_may_have_are_corrupt),
};

TEST_MAIN(cases)
