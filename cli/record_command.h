// SPDX-License-Identifier: Apache-2.0
/// What the subcommands of `tfos record` share: their options and the files that they name.
#ifndef TFOS_CLI_RECORD_COMMAND_H
#define TFOS_CLI_RECORD_COMMAND_H

#include <stdbool.h>
#include <stdio.h>
#include <tfos.h>

struct record_options {
    enum tfos_compression compression; ///< of what is read: AUTO unless said
    enum tfos_compression write_compression;
    enum tfos_record_type type;
    enum tfos_record_mode mode;
    uint64_t max_record_size;
    long limit; ///< records, parts; 0: not said
    bool is_json;
    bool has_seed;
    uint64_t seed;
    uint64_t memory;       ///< bytes of records that shuffle holds; 0: not said
    const char *from, *to; ///< formats of convert; NULL: as the files are named
    const char *schema;    ///< for convert; NULL: not said
    bool allow_rounding;   ///< it is not told by column
    bool is_exact;         ///< it is refused
    bool has_no_header;
    const char *const *files; ///< the arguments that are no options
    int file_count;
};

/// A subcommand: the exit status of the program.
typedef int record_command(const struct record_options *options);

record_command record_count, record_check, record_repair, record_merge, record_split, record_cat,
    record_schema, record_index, record_shuffle, record_convert;

/// Opens "-", the standard input, or a file. NULL after saying why not.
struct tfos_stream *open_input(const char *path);

/// Opens "-", the standard output, or a file. NULL after saying why not.
struct tfos_stream *open_output(const char *path);

/// How a file is to be read.
struct tfos_record_reader_options reader_options(const struct record_options *options,
                                                 const char *path);

/// Says an error; returns 1, the exit status.
int say_error(const struct tfos_error *err);

#endif
