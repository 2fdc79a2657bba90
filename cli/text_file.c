// SPDX-License-Identifier: Apache-2.0
#include "text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hadoop_jars.h"
#include "record_files.h"
#include "terminal.h"

#define BLOCK_SIZE (64u << 10)
#define GZIP_WINDOW_BITS 31
#define ZLIB_WINDOW_BITS 15
#define MEMORY_LEVEL 8

static int fail(const struct text_input *input, const char *what, const char *why)
{
    progress_end();
    fprintf(stderr, "tfos: %s: %s: %s\n", input->name, what, why);
    return 1;
}

int text_input_open(struct text_input *input, const char *path, bool is_read_twice)
{
    bool is_standard = strcmp(path, "-") == 0;
    *input = (struct text_input){
        .name = is_standard ? "the standard input" : path, .line = 1, .column = 1};
    bool is_far = !is_standard && is_remote(path);
    int fd = is_far          ? open_copy(path)
             : !is_standard  ? open(path, O_RDONLY | O_CLOEXEC)
             : is_read_twice ? open_seekable_input()
                             : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return is_standard || is_far ? 1 : fail(input, "cannot open it", strerror(errno));
    input->file = check_memory(gzdopen(fd, "rb"));
    gzbuffer(input->file, BLOCK_SIZE);
    return 0;
}

int text_input_rewind(struct text_input *input)
{
    input->line = input->column = 1;
    if (gzrewind(input->file) != 0)
        return fail(input, "it is to be read twice, for its columns, unless --schema says them",
                    strerror(errno));
    return 0;
}

// A compressed file that is cut gives what it has first, and then an error.
static void check_end(struct text_input *input)
{
    int fault = Z_OK;
    const char *why = gzerror(input->file, &fault);
    if (fault != Z_OK && !input->has_failed) {
        fail(input, "cannot be read", fault == Z_ERRNO ? strerror(errno) : why);
        input->has_failed = true;
    }
}

int text_input_next(struct text_input *input)
{
    int byte = gzgetc(input->file);
    if (byte < 0) {
        check_end(input);
        return byte;
    }
    input->column++;
    if (byte == '\n') {
        input->line++;
        input->column = 1;
    }
    return byte;
}

int text_input_read_until(struct text_input *input, struct bytes *bytes, const bool stops[256])
{
    int byte;
    while ((byte = text_input_next(input)) >= 0 && !stops[byte]) {
        if (bytes->size == bytes->capacity)
            bytes_reserve(bytes, 1);
        bytes->data[bytes->size++] = (char)byte;
    }
    return byte;
}

int text_input_peek(struct text_input *input)
{
    int byte = gzgetc(input->file);
    if (byte < 0)
        check_end(input);
    else
        gzungetc(byte, input->file);
    return byte;
}

enum tfos_status text_input_status(const struct text_input *input)
{
    return input->has_failed ? TFOS_IO : TFOS_END;
}

enum tfos_status text_input_refuse(const struct text_input *input, unsigned long long line,
                                   unsigned long long column, const char *format, ...)
{
    va_list arguments;
    progress_end();
    fprintf(stderr, "tfos: %s: line %llu, column %llu: ", input->name, line, column);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return TFOS_INVALID;
}

void text_input_close(struct text_input *input)
{
    if (input->file)
        gzclose(input->file);
}

int text_output_open(struct text_output *output, const struct record_options *options,
                     const char *path)
{
    enum tfos_compression compression;
    *output = (struct text_output){0};
    if (choose_compression(options, path, &compression) != 0)
        return 1;
    int bits = compression == TFOS_COMPRESSION_GZIP ? GZIP_WINDOW_BITS : ZLIB_WINDOW_BITS;
    output->stream = open_output(path);
    if (!output->stream)
        return 1;
    output->is_compressed = compression != TFOS_COMPRESSION_NONE;
    if (output->is_compressed && deflateInit2(&output->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                              bits, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        check_memory(NULL);
    return 0;
}

static int write_bytes(struct text_output *output, const void *data, size_t size)
{
    struct tfos_error err;
    if (size > 0 && output->stream->write(output->stream, data, size, &err) < 0)
        return say_error(&err);
    return 0;
}

// Writes the text, or what comes out of its compression: with Z_FINISH all of that.
static int write_text(struct text_output *output, int flush)
{
    unsigned char block[BLOCK_SIZE];
    z_stream *zlib = &output->zlib;
    size_t size = output->text.size, at = 0;
    int result = Z_OK, status = 0;
    output->text.size = 0;
    if (!output->is_compressed)
        return write_bytes(output, output->text.data, size);
    do {
        size_t part = size - at < UINT32_MAX ? size - at : UINT32_MAX;
        zlib->next_in = (unsigned char *)output->text.data + at;
        zlib->avail_in = (uInt)part;
        zlib->next_out = block;
        zlib->avail_out = sizeof(block);
        result = deflate(zlib, at + part == size ? flush : Z_NO_FLUSH);
        at += part - zlib->avail_in;
        status = write_bytes(output, block, sizeof(block) - zlib->avail_out);
    } while (status == 0 && result != Z_STREAM_END && (at < size || flush == Z_FINISH));
    return status;
}

int text_output_flush(struct text_output *output)
{
    return output->text.size >= BLOCK_SIZE ? write_text(output, Z_NO_FLUSH) : 0;
}

int text_output_finish(struct text_output *output)
{
    struct tfos_error err;
    int status = write_text(output, Z_FINISH);
    if (status == 0 && output->stream->finish(output->stream, &err) < 0)
        status = say_error(&err);
    return status;
}

void text_output_close(struct text_output *output)
{
    if (output->is_compressed)
        deflateEnd(&output->zlib);
    tfos_stream_close(output->stream);
    free(output->text.data);
}
