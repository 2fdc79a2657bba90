// SPDX-License-Identifier: Apache-2.0
/// Files of text, plain or by gzip: read byte by byte with the place of each, and written.
#ifndef TFOS_CLI_TEXT_FILE_H
#define TFOS_CLI_TEXT_FILE_H

#include <zlib.h>

#include "bytes.h"
#include "record_options.h"

struct text_input {
    const char *name;                ///< for messages
    gzFile file;                     ///< owned
    unsigned long long line, column; ///< of the next byte, from 1
    bool has_failed;                 ///< reading failed, which was reported; nothing more comes
};

/// Opens a file, or "-", the standard input, which is kept where it is to be read twice. The exit
/// status.
int text_input_open(struct text_input *input, const char *path, bool is_read_twice);

/// The next byte; -1 at the end, and where it cannot be read.
int text_input_next(struct text_input *input);

/// Adds all bytes up to the next that is in `stops` (by its number) to `bytes`. Returns that one,
/// which is not added, or -1.
int text_input_read_until(struct text_input *input, struct bytes *bytes, const bool stops[256]);

/// The next byte, which stays it.
int text_input_peek(struct text_input *input);

/// What there is at the end: END, or IO where it cannot be read.
enum tfos_status text_input_status(const struct text_input *input);

/// Begins again. The exit status.
int text_input_rewind(struct text_input *input);

/// Reports what is wrong at a place; returns INVALID.
enum tfos_status text_input_refuse(const struct text_input *input, unsigned long long line,
                                   unsigned long long column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

void text_input_close(struct text_input *input);

struct text_output {
    struct tfos_stream *stream; ///< owned
    bool is_compressed;
    z_stream zlib;
    struct bytes text; ///< not written yet; who adds to it calls text_output_flush() now and then
};

/// The exit status; text_output_close() in any case.
int text_output_open(struct text_output *output, const struct record_options *options,
                     const char *path);

/// Writes the text, if it is much. The exit status.
int text_output_flush(struct text_output *output);

/// Writes all. The exit status.
int text_output_finish(struct text_output *output);

void text_output_close(struct text_output *output);

#endif
