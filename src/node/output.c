// SPDX-License-Identifier: Apache-2.0
/// The pipes are read without waiting. The log is written in pieces of PIPE_BUF and only when
/// poll() finds room: it is shared with other processes, so it cannot be made non-blocking, and a
/// node must not wait for it. While the log is full its pipe is not read, so that a child that
/// writes faster than the log takes it is slowed down, as it would be without a node. Towards the
/// driver nothing slows it down: lines beyond the limits of a batch are counted and left out.
#include "node/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"

#define READ_SIZE 16384
#define READS_PER_STEP 16
#define BATCH_LINES 2000
#define BATCH_SIZE (256 * 1024)
#define CAPTURE_SIZE (16 * 1024)

struct stream {
    int reader_fd; ///< owned; -1 at its end
    int writer_fd; ///< owned; -1 after close_writers()
    int log_fd;    ///< borrowed: the node's own stdout or stderr; -1 once it is broken
    const char *name;
    char unlogged[READ_SIZE]; ///< read and not yet copied to the log
    size_t unlogged_start, unlogged_end;
    char line[TFOS__OUTPUT_LINE_SIZE];
    size_t line_size;
    bool has_returned; ///< the last byte was '\r': what follows overwrites the line, unless it is
                       ///< '\n'
};

/// A line of stderr, as it came.
struct line {
    char *data; ///< owned
    size_t size;
};

struct tfos__node_output {
    struct stream streams[TFOS__OUTPUT_STREAMS];
    bool is_forwarding;
    struct line last_lines[TFOS__OUTPUT_LAST_LINES]; ///< a ring
    size_t last_count;                               ///< lines of stderr so far
    json_t *batch;                                   ///< owned; NULL when empty
    size_t batch_size;
    int64_t left_out;
    int64_t next_batch_at;
    char *capture; ///< owned; NULL while nothing is captured
    size_t capture_size;
};

static enum tfos_status open_stream(struct stream *stream, const char *name, int log_fd,
                                    struct tfos_error *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot make a pipe for the trainer's %s",
                                name);
    stream->reader_fd = fds[0];
    stream->writer_fd = fds[1];
    stream->log_fd = log_fd;
    stream->name = name;
    // Only this end: the child's writes keep waiting for room, as programs expect.
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0)
        return tfos__fail_errno(err, TFOS_IO, "node: cannot set up the trainer's %s", name);
    return TFOS_OK;
}

enum tfos_status tfos__node_output_open(bool is_forwarding, struct tfos__node_output **out,
                                        struct tfos_error *err)
{
    struct tfos__node_output *output = tfos__alloc(1, sizeof(*output));
    if (!output)
        return tfos__no_memory(err, "node", "the trainer's output");
    output->is_forwarding = is_forwarding;
    for (int i = 0; i < TFOS__OUTPUT_STREAMS; i++)
        output->streams[i].reader_fd = output->streams[i].writer_fd = -1;
    enum tfos_status status =
        open_stream(&output->streams[TFOS__OUTPUT_STDOUT], "stdout", STDOUT_FILENO, err);
    if (status == TFOS_OK)
        status = open_stream(&output->streams[TFOS__OUTPUT_STDERR], "stderr", STDERR_FILENO, err);
    if (status < 0) {
        tfos__node_output_close(output);
        return status;
    }
    *out = output;
    return TFOS_OK;
}

int tfos__node_output_writer_fd(const struct tfos__node_output *output,
                                enum tfos__node_output_stream stream)
{
    return output->streams[stream].writer_fd;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void tfos__node_output_close_writers(struct tfos__node_output *output)
{
    for (int i = 0; i < TFOS__OUTPUT_STREAMS; i++)
        close_fd(&output->streams[i].writer_fd);
}

static bool is_log_full(const struct stream *stream)
{
    return stream->unlogged_start < stream->unlogged_end;
}

void tfos__node_output_get_poll(const struct tfos__node_output *output,
                                struct pollfd slots[TFOS__OUTPUT_STREAMS])
{
    for (int i = 0; i < TFOS__OUTPUT_STREAMS; i++) {
        const struct stream *stream = &output->streams[i];
        bool is_full = is_log_full(stream);
        slots[i] = (struct pollfd){.fd = is_full ? stream->log_fd : stream->reader_fd,
                                   .events = is_full ? POLLOUT : POLLIN};
    }
}

/// A batch that is full takes no more until take_lines(): the line is only counted, at no cost,
/// because a child may write millions.
static void batch_line(struct tfos__node_output *output, const struct stream *stream)
{
    if (json_array_size(output->batch) >= BATCH_LINES ||
        output->batch_size + stream->line_size > BATCH_SIZE) {
        output->left_out++;
        return;
    }
    if (!output->batch)
        output->batch = json_array();
    json_t *pair =
        json_pack("[s, o]", stream->name, tfos__json_repaired(stream->line, stream->line_size));
    if (json_array_append_new(output->batch, pair) != 0)
        output->left_out++;
    else
        output->batch_size += stream->line_size;
}

static void capture_line(struct tfos__node_output *output, const struct stream *stream)
{
    if (output->capture_size + stream->line_size + 1 > CAPTURE_SIZE)
        return;
    memcpy(output->capture + output->capture_size, stream->line, stream->line_size);
    output->capture_size += stream->line_size;
    output->capture[output->capture_size++] = '\n';
}

static void keep_line(struct tfos__node_output *output, const struct stream *stream)
{
    struct line *line = &output->last_lines[output->last_count % TFOS__OUTPUT_LAST_LINES];
    char *data = tfos__realloc(line->data, stream->line_size + 1, 1);
    if (!data)
        return;
    memcpy(data, stream->line, stream->line_size);
    *line = (struct line){.data = data, .size = stream->line_size};
    output->last_count++;
}

static void end_line(struct tfos__node_output *output, struct stream *stream)
{
    if (output->is_forwarding)
        batch_line(output, stream);
    if (stream == &output->streams[TFOS__OUTPUT_STDERR]) {
        if (output->capture)
            capture_line(output, stream);
        keep_line(output, stream);
    }
    stream->line_size = 0;
    stream->has_returned = false;
}

/// Adds bytes without '\n' to the line. What follows a '\r' overwrites it, as in a terminal: of a
/// progress bar the driver sees the last state.
static void add_to_line(struct stream *stream, const char *data, size_t size)
{
    size_t text_size = size;
    while (text_size > 0 && data[text_size - 1] == '\r')
        text_size--;
    if (text_size > 0 && stream->has_returned)
        stream->line_size = 0;
    if (size > 0)
        stream->has_returned = text_size < size;
    const char *returned = memrchr(data, '\r', text_size);
    if (returned) {
        stream->line_size = 0;
        text_size -= (size_t)(returned + 1 - data);
        data = returned + 1;
    }
    size_t room = TFOS__OUTPUT_LINE_SIZE - stream->line_size;
    size_t added = text_size < room ? text_size : room;
    memcpy(stream->line + stream->line_size, data, added);
    stream->line_size += added;
}

static void cut_lines(struct tfos__node_output *output, struct stream *stream, const char *data,
                      size_t size)
{
    const char *end = data + size;
    while (data < end) {
        const char *feed = memchr(data, '\n', (size_t)(end - data));
        add_to_line(stream, data, (size_t)((feed ? feed : end) - data));
        if (!feed)
            return;
        end_line(output, stream);
        data = feed + 1;
    }
}

/// Copies what waits to the log, as far as there is room until `deadline`.
static void write_log(struct stream *stream, int64_t deadline)
{
    while (is_log_full(stream)) {
        struct pollfd slot = {.fd = stream->log_fd, .events = POLLOUT};
        int count = poll(&slot, 1, tfos__remaining_ms(deadline));
        if (count == 0 || (count < 0 && errno == EINTR))
            return;
        bool has_room = count > 0 && (slot.revents & POLLOUT);
        size_t size = stream->unlogged_end - stream->unlogged_start;
        ssize_t written = has_room
                              ? write(stream->log_fd, stream->unlogged + stream->unlogged_start,
                                      size < PIPE_BUF ? size : PIPE_BUF)
                              : -1;
        if (has_room && written < 0 && (errno == EINTR || errno == EAGAIN))
            return;
        if (written < 0) {
            // The reader of the log has gone; the driver still gets the lines.
            stream->log_fd = -1;
            stream->unlogged_start = stream->unlogged_end;
            return;
        }
        stream->unlogged_start += (size_t)written;
    }
}

/// Reads once. False when there is nothing to read now.
static bool read_once(struct tfos__node_output *output, struct stream *stream)
{
    if (stream->reader_fd < 0)
        return false;
    ssize_t size = read(stream->reader_fd, stream->unlogged, READ_SIZE);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (size <= 0) {
        close_fd(&stream->reader_fd);
        return false;
    }
    stream->unlogged_start = 0;
    stream->unlogged_end = stream->log_fd >= 0 ? (size_t)size : 0;
    cut_lines(output, stream, stream->unlogged, (size_t)size);
    return true;
}

void tfos__node_output_step(struct tfos__node_output *output)
{
    int64_t now = tfos__now_ms();
    for (int i = 0; i < TFOS__OUTPUT_STREAMS; i++) {
        struct stream *stream = &output->streams[i];
        for (int reads = 0; reads < READS_PER_STEP; reads++) {
            write_log(stream, now);
            if (is_log_full(stream) || !read_once(output, stream))
                break;
        }
        write_log(stream, now);
    }
}

void tfos__node_output_finish(struct tfos__node_output *output, int64_t timeout_ms)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    tfos__node_output_close_writers(output);
    for (int i = 0; i < TFOS__OUTPUT_STREAMS; i++) {
        struct stream *stream = &output->streams[i];
        do {
            write_log(stream, deadline);
            if (is_log_full(stream)) {
                stream->log_fd = -1;
                stream->unlogged_start = stream->unlogged_end;
            }
            // A grandchild may still write.
        } while (read_once(output, stream) && tfos__remaining_ms(deadline) != 0);
        write_log(stream, deadline);
        close_fd(&stream->reader_fd);
        if (stream->line_size > 0)
            end_line(output, stream);
    }
}

int64_t tfos__node_output_due(const struct tfos__node_output *output)
{
    return output->batch || output->left_out > 0 ? output->next_batch_at : TFOS__NEVER;
}

json_t *tfos__node_output_take_lines(struct tfos__node_output *output)
{
    json_t *lines = output->batch;
    if (output->left_out > 0) {
        char *text = tfos__format("(%lld lines are left out here; the executor's log has them)",
                                  (long long)output->left_out);
        if (!lines)
            lines = json_array();
        if (text && json_array_append_new(lines, json_pack("[s, s]", "stderr", text)) == 0)
            output->left_out = 0;
        tfos__free(text);
    }
    output->batch = NULL;
    output->batch_size = 0;
    output->next_batch_at = tfos__deadline(TFOS__OUTPUT_INTERVAL_MS);
    return lines;
}

json_t *tfos__node_output_get_last_lines(const struct tfos__node_output *output)
{
    json_t *lines = json_array();
    size_t count =
        output->last_count < TFOS__OUTPUT_LAST_LINES ? output->last_count : TFOS__OUTPUT_LAST_LINES;
    for (size_t i = output->last_count - count; i < output->last_count; i++) {
        const struct line *line = &output->last_lines[i % TFOS__OUTPUT_LAST_LINES];
        json_array_append_new(lines, tfos__json_repaired(line->data, line->size));
    }
    return lines;
}

void tfos__node_output_start_capture(struct tfos__node_output *output)
{
    if (!output->capture)
        output->capture = tfos__alloc(CAPTURE_SIZE, 1);
    output->capture_size = 0;
}

char *tfos__node_output_take_capture(struct tfos__node_output *output)
{
    char *text = output->capture && output->capture_size > 0
                     ? tfos__text_repair(output->capture, output->capture_size)
                     : NULL;
    tfos__free(output->capture);
    output->capture = NULL;
    return text;
}

void tfos__node_output_close(struct tfos__node_output *output)
{
    if (!output)
        return;
    for (int i = 0; i < TFOS__OUTPUT_STREAMS; i++) {
        close_fd(&output->streams[i].reader_fd);
        close_fd(&output->streams[i].writer_fd);
    }
    for (int i = 0; i < TFOS__OUTPUT_LAST_LINES; i++)
        tfos__free(output->last_lines[i].data);
    json_decref(output->batch);
    tfos__free(output->capture);
    tfos__free(output);
}
