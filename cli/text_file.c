// SPDX-License-Identifier: Apache-2.0
#include "text_file.h"

#include "progress.h"
#include "record_outputs.h"
#include "temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static int begin(struct text_input *input)
{
    int copy = fcntl(input->fd, F_DUPFD_CLOEXEC, 0);
    input->file = copy >= 0 ? gzdopen(copy, "rb") : NULL;
    if (!input->file && copy >= 0)
        close(copy);
    input->size = input->at = 0;
    input->line = input->column = 1;
    return input->file ? 0 : fail(input, "cannot be read", strerror(errno));
}

int text_input_open(struct text_input *input, const char *path, bool is_read_twice)
{
    bool is_standard = strcmp(path, "-") == 0;
    *input = (struct text_input){.name = is_standard ? "the standard input" : path};
    if (is_standard)
        input->fd = is_read_twice ? open_seekable_input() : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    else
        input->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0)
        return is_standard ? 1 : fail(input, "cannot open it", strerror(errno));
    input->block = allocate(BLOCK_SIZE, 1);
    return begin(input);
}

int text_input_rewind(struct text_input *input)
{
    gzclose(input->file);
    input->file = NULL;
    if (lseek(input->fd, 0, SEEK_SET) != 0)
        return fail(input, "it is to be read twice, for its columns, unless --schema says them",
                    strerror(errno));
    return begin(input);
}

int text_input_peek(struct text_input *input)
{
    if (input->at == input->size) {
        int fault = Z_OK, got = gzread(input->file, input->block, BLOCK_SIZE);
        // A compressed file that is cut gives what it has first, and then no error but this.
        const char *why = gzerror(input->file, &fault);
        if (got < 0 || (got == 0 && fault == Z_BUF_ERROR)) {
            fail(input, "cannot be read", fault == Z_ERRNO ? strerror(errno) : why);
            return TEXT_FAILED;
        }
        if (got == 0)
            return TEXT_END;
        input->size = (size_t)got;
        input->at = 0;
    }
    return (unsigned char)input->block[input->at];
}

int text_input_next(struct text_input *input)
{
    int byte = text_input_peek(input);
    if (byte < 0)
        return byte;
    input->at++;
    input->column++;
    if (byte == '\n') {
        input->line++;
        input->column = 1;
    }
    return byte;
}

int text_input_refuse(const struct text_input *input, unsigned long long line,
                      unsigned long long column, const char *format, ...)
{
    va_list arguments;
    progress_end();
    fprintf(stderr, "tfos: %s: line %llu, column %llu: ", input->name, line, column);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return 1;
}

void text_input_close(struct text_input *input)
{
    if (input->file)
        gzclose(input->file);
    if (input->fd >= 0)
        close(input->fd);
    free(input->block);
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
    if (compression == TFOS_COMPRESSION_NONE)
        return 0;
    if (deflateInit2(&output->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        fputs("tfos: no memory for compression\n", stderr);
        return 1;
    }
    output->is_compressed = true;
    return 0;
}

static int write_bytes(struct text_output *output, const void *data, size_t size)
{
    struct tfos_error err;
    if (size > 0 && output->stream->write(output->stream, data, size, &err) < 0)
        return say_error(&err);
    return 0;
}

// Takes all of `data` and writes what comes out of it.
static int compress_bytes(struct text_output *output, char *data, size_t size, int flush)
{
    unsigned char block[BLOCK_SIZE];
    z_stream *zlib = &output->zlib;
    int result = Z_OK, status = 0;
    while (status == 0 && (size > 0 || zlib->avail_in > 0 || flush == Z_FINISH)) {
        if (zlib->avail_in == 0) {
            zlib->avail_in = size < UINT32_MAX ? (uInt)size : UINT32_MAX;
            zlib->next_in = (unsigned char *)data;
            data += zlib->avail_in;
            size -= zlib->avail_in;
        }
        zlib->next_out = block;
        zlib->avail_out = sizeof block;
        result = deflate(zlib, size == 0 ? flush : Z_NO_FLUSH);
        status = write_bytes(output, block, sizeof block - zlib->avail_out);
        if (result == Z_STREAM_END)
            break;
    }
    return status;
}

static int write_text(struct text_output *output, int flush)
{
    size_t size = output->text.size;
    output->text.size = 0;
    return output->is_compressed ? compress_bytes(output, output->text.data, size, flush)
                                 : write_bytes(output, output->text.data, size);
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
