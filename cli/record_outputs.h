// SPDX-License-Identifier: Apache-2.0
/// Files that records go to in turn.
#ifndef TFOS_CLI_RECORD_OUTPUTS_H
#define TFOS_CLI_RECORD_OUTPUTS_H

#include "record_command.h"

struct outputs {
    struct output {
        struct tfos_stream *stream;
        struct tfos_record_writer *writer;
    } * items; ///< owned
    long count, next;
};

/// Opens one file, or where `count` is not 0 that many, named `path` with "-00000-of-00002" behind.
/// The exit status; close_outputs() in any case.
int open_outputs(struct outputs *outputs, const struct record_options *options, const char *path,
                 long count);

/// Writes the records, each to the next file. The exit status.
int write_to_outputs(struct outputs *outputs, const struct tfos_view *records, size_t count);

/// The exit status. Only then are the files there.
int finish_outputs(struct outputs *outputs);

void close_outputs(struct outputs *outputs);

/// How a file of this name is to be compressed. The exit status, after saying why not.
int choose_compression(const struct record_options *options, const char *path,
                       enum tfos_compression *compression);

#endif
