// SPDX-License-Identifier: Apache-2.0
/// How a child's output is copied and cut into lines. Each case gives the node's stderr a file to
/// be looked into.
#include <fcntl.h>
#include <sys/stat.h>

#include "node/output.h"
#include "nodes.h"

struct setup {
    struct tfos__node_output *output;
    int old_stderr;
    int log; ///< what stands in for stderr
};

static void open_setup(struct setup *setup, int log)
{
    struct tfos_error err;
    setup->old_stderr = dup(STDERR_FILENO);
    setup->log = log;
    dup2(log, STDERR_FILENO);
    assert_done(tfos__node_output_open(true, &setup->output, &err));
}

static void close_setup(struct setup *setup)
{
    tfos__node_output_close(setup->output);
    dup2(setup->old_stderr, STDERR_FILENO);
    close(setup->old_stderr);
    close(setup->log);
}

static int make_file(void)
{
    FILE *file = tmpfile();
    int fd = dup(fileno(file));
    fclose(file);
    return fd;
}

static void write_stderr(struct setup *setup, const char *data, size_t size)
{
    int fd = tfos__node_output_writer_fd(setup->output, TFOS__OUTPUT_STDERR);
    while (size > 0) {
        size_t part = size < 4096 ? size : 4096;
        assert_int_equal(write(fd, data, part), part);
        tfos__node_output_step(setup->output);
        data += part;
        size -= part;
    }
}

/// The lines as one text, each ended by '|'.
static void assert_lines(struct setup *setup, const char *expected)
{
    char text[65536] = "";
    size_t size = 0, i;
    json_t *line, *lines = tfos__node_output_take_lines(setup->output);
    json_array_foreach(lines, i, line)
    {
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%s|",
                                 json_string_value(json_array_get(line, 1)));
    }
    json_decref(lines);
    assert_string_equal(text, expected);
}

static void cuts_lines(void **state)
{
    (void)state;
    struct setup setup;
    open_setup(&setup, make_file());
    write_stderr(&setup, "a\n\nb\r\nc", 7);
    assert_lines(&setup, "a||b|");
    write_stderr(&setup, "d\n", 2);
    assert_lines(&setup, "cd|");
    write_stderr(&setup, "10%\r20%\r30%\n", 12);
    write_stderr(&setup, "40%", 3);
    write_stderr(&setup, "\r", 1);
    write_stderr(&setup, "\r", 1);
    write_stderr(&setup, "\n\r50%\r", 6);
    write_stderr(&setup, "60%\nrest", 8);
    assert_lines(&setup, "30%|40%|60%|");
    tfos__node_output_finish(setup.output, 100);
    assert_lines(&setup, "rest|");
    assert_null(tfos__node_output_take_lines(setup.output));
    close_setup(&setup);
}

static void repairs_what_is_not_utf8(void **state)
{
    (void)state;
    struct setup setup;
    static const char text[] = "\xe2\x82\xac \xff \xc0\x80 \xed\xa0\x80 \xf0\x9f\x98\x80 \xe2\x82\n"
                               "a\0b\n";
    open_setup(&setup, make_file());
    write_stderr(&setup, text, sizeof(text) - 1);
#define BAD "\xef\xbf\xbd"
    assert_lines(&setup, "\xe2\x82\xac " BAD " " BAD BAD " " BAD BAD BAD
                         " \xf0\x9f\x98\x80 " BAD BAD "|a" BAD "b|");
    close_setup(&setup);
}

static void copies_every_byte_to_the_log(void **state)
{
    (void)state;
    struct setup setup;
    enum { SIZE = 300000 };
    char *data = malloc(SIZE), *copy = malloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        data[i] = (char)(i * 31 + i / 251);
    open_setup(&setup, make_file());
    write_stderr(&setup, data, SIZE);
    tfos__node_output_finish(setup.output, 1000);
    struct stat status;
    assert_int_equal(fstat(setup.log, &status), 0);
    assert_int_equal(status.st_size, SIZE);
    assert_int_equal(pread(setup.log, copy, SIZE, 0), SIZE);
    assert_memory_equal(data, copy, SIZE);
    close_setup(&setup);
    free(data);
    free(copy);
}

static void long_lines_and_floods_stay_bounded(void **state)
{
    (void)state;
    struct setup setup;
    open_setup(&setup, make_file());
    char block[4096];
    memset(block, 'x', sizeof(block));
    for (int i = 0; i < 1000; i++)
        write_stderr(&setup, block, sizeof(block));
    write_stderr(&setup, "\n", 1);
    json_t *lines = tfos__node_output_take_lines(setup.output);
    assert_int_equal(json_array_size(lines), 1);
    assert_int_equal(json_string_length(json_array_get(json_array_get(lines, 0), 1)),
                     TFOS__OUTPUT_LINE_SIZE);
    json_decref(lines);
    for (size_t i = 0; i < sizeof(block); i += 2)
        memcpy(block + i, "y\n", 2);
    for (int i = 0; i < 100; i++)
        write_stderr(&setup, block, sizeof(block));
    lines = tfos__node_output_take_lines(setup.output);
    size_t count = json_array_size(lines);
    assert_true(count > 100 && count < 10000);
    const char *last = json_string_value(json_array_get(json_array_get(lines, count - 1), 1));
    assert_int_equal(strtol(last + 1, NULL, 10), 100 * 2048 - (long)(count - 1));
    assert_non_null(strstr(last, "left out"));
    json_decref(lines);
    close_setup(&setup);
}

static void keeps_the_last_lines_of_stderr(void **state)
{
    (void)state;
    struct setup setup;
    open_setup(&setup, make_file());
    char line[32];
    for (int i = 0; i < 120; i++)
        write_stderr(&setup, line, (size_t)snprintf(line, sizeof(line), "%d\n", i));
    json_t *lines = tfos__node_output_get_last_lines(setup.output);
    assert_int_equal(json_array_size(lines), TFOS__OUTPUT_LAST_LINES);
    assert_string_equal(json_string_value(json_array_get(lines, 0)), "70");
    assert_string_equal(json_string_value(json_array_get(lines, 49)), "119");
    json_decref(lines);
    close_setup(&setup);
}

static void a_full_log_holds_up_only_for_a_while(void **state)
{
    (void)state;
    struct setup setup;
    int fds[2];
    char block[4096];
    memset(block, 'z', sizeof(block));
    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    while (write(fds[1], block, sizeof(block)) > 0)
        continue;
    open_setup(&setup, fds[1]);
    write_stderr(&setup, "said\n", 5);
    struct pollfd slots[TFOS__OUTPUT_STREAMS];
    tfos__node_output_get_poll(setup.output, slots);
    assert_int_equal(slots[TFOS__OUTPUT_STDERR].fd, STDERR_FILENO);
    assert_int_equal(slots[TFOS__OUTPUT_STDERR].events, POLLOUT);
    int64_t begun_at = tfos__now_ms();
    tfos__node_output_finish(setup.output, 100);
    assert_true(tfos__now_ms() - begun_at < 1000);
    assert_lines(&setup, "said|");
    close_setup(&setup);
    close(fds[0]);
}

static void a_log_without_a_reader_is_given_up(void **state)
{
    (void)state;
    struct setup setup;
    int fds[2];
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(fds, 0), 0);
    close(fds[0]);
    open_setup(&setup, fds[1]);
    write_stderr(&setup, "one\ntwo\n", 8);
    assert_lines(&setup, "one|two|");
    close_setup(&setup);
}

static void captures_on_demand(void **state)
{
    (void)state;
    struct setup setup;
    open_setup(&setup, make_file());
    write_stderr(&setup, "before\n", 7);
    tfos__node_output_start_capture(setup.output);
    write_stderr(&setup, "File \"a.py\", line 3\nin f\n", 25);
    char *capture = tfos__node_output_take_capture(setup.output);
    assert_string_equal(capture, "File \"a.py\", line 3\nin f\n");
    tfos_free(capture);
    tfos__node_output_start_capture(setup.output);
    assert_null(tfos__node_output_take_capture(setup.output));
    close_setup(&setup);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(cuts_lines),
    cmocka_unit_test(repairs_what_is_not_utf8),
    cmocka_unit_test(copies_every_byte_to_the_log),
    cmocka_unit_test(long_lines_and_floods_stay_bounded),
    cmocka_unit_test(keeps_the_last_lines_of_stderr),
    cmocka_unit_test(a_full_log_holds_up_only_for_a_while),
    cmocka_unit_test(a_log_without_a_reader_is_given_up),
    cmocka_unit_test(captures_on_demand),
};

TEST_MAIN(cases)
