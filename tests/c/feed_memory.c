// SPDX-License-Identifier: Apache-2.0
// A host that is short of memory: it may refuse a writer, but what it has begun is reported.
#include <sys/wait.h>

#include "base/memory.h"
#include "feed/host.h"
#include "feed_fixture.h"

#define PARTITIONS 10

// Feeds a partition, whatever becomes of it. The caller closes the writer.
static struct tfos__feed_writer *feed(const struct node *node, int64_t partition)
{
    struct writer_options options = writer_options(node, partition);
    struct tfos__feed_writer *writer = NULL;
    struct tfos_error err;

    options.feeder.channel_size = 4096;
    if (writer_open(&options, &writer, &err) == TFOS_OK &&
        append_rows(writer, 0, 10, 0, &err) == TFOS_OK)
        (void)!tfos__feed_writer_finish(writer, &err);
    return writer;
}

// The first attempt ends last, so that the list of events is full at an even count: an attempt's
// end is then what makes it grow, as its channel is with the first event of all.
static pid_t fork_writers(const struct node *node)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    struct tfos__feed_writer *first = feed(node, 0);
    for (int64_t partition = 1; partition < PARTITIONS; partition++)
        tfos__feed_writer_close(feed(node, partition));
    tfos__feed_writer_close(first);
    _exit(0);
}

static void step_until_all_have_gone(struct tfos__feed_host *host, pid_t pid, long denied_request)
{
    int64_t deadline = tfos__deadline(WAIT_MS);
    bool has_ended = false;

    tfos__memory_fail_at(denied_request);
    while (!has_ended || host->server.connection_count > 0) {
        struct pollfd descriptor = {tfos__feed_host_fd(host), POLLIN, 0};
        struct tfos_error err;
        assert_true(tfos__now_ms() < deadline);
        poll(&descriptor, 1, 5);
        assert_done(tfos__feed_host_step(host, &err));
        has_ended = has_ended || waitpid(pid, NULL, WNOHANG) == pid;
    }
    tfos__memory_fail_at(0);
}

// The node asks for no event meanwhile, so that their list has to grow in the middle.
static void whatever_memory_is_lacking_channels_and_ends_of_attempts_are_told(void **state)
{
    (void)state;
    for (long denied_request = 1; denied_request < 100; denied_request++) {
        struct node node;
        struct tfos__feed_event event;
        size_t closed_count = 0;
        node_open(&node, 0);
        step_until_all_have_gone(node.host, fork_writers(&node), denied_request);
        while (tfos__feed_host_next_event(node.host, &event, NULL) == TFOS_OK)
            closed_count += event.kind == TFOS__FEED_ATTEMPT_CLOSED;
        assert_int_equal(closed_count, node.host->queues[0].attempts.count);
        assert_true(closed_count >= PARTITIONS - 1);
        for (size_t i = 0; i < node.host->pool.count; i++)
            assert_true(node.host->pool.channels[i]->is_announced);
        tfos__feed_reader_close(node.reader);
        tfos__feed_host_close(node.host);
    }
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(whatever_memory_is_lacking_channels_and_ends_of_attempts_are_told),
};

TEST_MAIN(cases)
