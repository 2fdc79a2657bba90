// SPDX-License-Identifier: Apache-2.0
/// The options of `tfos record`, which all its commands share.
#ifndef TFOS_CLI_RECORD_OPTIONS_H
#define TFOS_CLI_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>
#include <tfos.h>

struct record_options {
    enum tfos_compression compression; ///< of what is read: AUTO
    int write_compression;             ///< enum tfos_compression
    int type;                          ///< enum tfos_record_type
    bool skips_damage;
    bool is_json;
    bool has_seed;
    bool allow_rounding; ///< it is not reported by column
    bool is_exact;       ///< it is refused
    bool has_no_header;
    uint64_t limit; ///< records, parts; 0: not given
    uint64_t max_record_size;
    uint64_t seed;
    uint64_t memory;          ///< bytes of records that shuffle holds; 0: not given
    const char *from, *to;    ///< formats of convert; NULL: as the files are named
    const char *schema;       ///< for convert; NULL: not given
    const char *const *files; ///< the arguments that are no options
    int file_count;
};

/// Reads the options and files behind argv[0]. Returns 0, or the exit status after an error
/// message. `*asks_help`: nothing else was read.
int record_options_parse(struct record_options *options, int argc, char **argv, bool *asks_help);

/// Prints a line for each option.
void record_options_print(FILE *out);

/// Says what is wrong with an argument; returns the exit status. `format` has one "%s".
int refuse_record(const char *format, const char *argument);

/// How a file is to be read; damage is reported on stderr.
struct tfos_record_reader_options reader_options(const struct record_options *options,
                                                 const char *path);

/// How a file of this name is to be compressed. The exit status.
int choose_compression(const struct record_options *options, const char *path,
                       enum tfos_compression *compression);

#endif
