// SPDX-License-Identifier: Apache-2.0
/// Files of text, plain or by gzip: read byte by byte with the place of each, and written.
#ifndef TFOS_CLI_TEXT_FILE_H
#define TFOS_CLI_TEXT_FILE_H

#include "record_command.h"

#include "allocation.h"

#include <zlib.h>

#define TEXT_END -1
#define TEXT_FAILED -2

struct text_input {
    const char *name;                ///< for messages
    int fd;                          ///< owned; at 0 it is the file's beginning
    gzFile file;                     ///< owned
    char *block;                     ///< owned
    size_t size, at;                 ///< of the block
    unsigned long long line, column; ///< of the next byte, from 1
};

/// Opens a file, or "-", the standard input, which is kept where it is to be read twice. The exit
/// status.
int text_input_open(struct text_input *input, const char *path, bool is_read_twice);

/// The next byte; TEXT_END; TEXT_FAILED after saying why.
int text_input_next(struct text_input *input);

/// The same, and it stays the next.
int text_input_peek(struct text_input *input);

/// Begins again. The exit status.
int text_input_rewind(struct text_input *input);

/// Says what is wrong at a place; returns 1, the exit status.
int text_input_refuse(const struct text_input *input, unsigned long long line,
                      unsigned long long column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

void text_input_close(struct text_input *input);

struct text_output {
    struct tfos_stream *stream; ///< owned
    bool is_compressed;
    z_stream zlib;
    struct bytes
        text; ///< not written yet; whoever adds to it calls text_output_flush() now and then
};

/// The exit status; text_output_close() in any case.
int text_output_open(struct text_output *output, const struct record_options *options,
                     const char *path);

/// Writes the text, if it is much.
int text_output_flush(struct text_output *output);

/// Writes all. The exit status.
int text_output_finish(struct text_output *output);

void text_output_close(struct text_output *output);

#endif
