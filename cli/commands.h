// SPDX-License-Identifier: Apache-2.0
/// The commands. Each returns the exit status of the program: 0 done, 1 not, 2 (EXIT_USAGE) used
/// wrongly.
#ifndef TFOS_CLI_COMMANDS_H
#define TFOS_CLI_COMMANDS_H

#include "record_options.h"

/// Take the arguments behind their name.
int run_channels(int argc, char **argv);
int run_deploy(int argc, char **argv);
int run_doctor(int argc, char **argv);
int run_fs(int argc, char **argv);
int run_gpu(int argc, char **argv);
int run_parameter_server(int argc, char **argv);
int run_record(int argc, char **argv);
int run_status(int argc, char **argv);
int run_stop(int argc, char **argv);

/// Says on stderr what was wrong and how `tfos` is used; returns EXIT_USAGE.
int refuse_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// The commands of `tfos record`.
int record_count(const struct record_options *options);
int record_check(const struct record_options *options);
int record_repair(const struct record_options *options);
int record_merge(const struct record_options *options);
int record_split(const struct record_options *options);
int record_cat(const struct record_options *options);
int record_head(const struct record_options *options);
int record_schema(const struct record_options *options);
int record_index(const struct record_options *options);
int record_shuffle(const struct record_options *options);
int record_convert(const struct record_options *options);

/// Converts between the formats "tfrecord" and "parquet" or "arrow". Returns an exit status only
/// where it cannot begin: this process becomes Python's.
int convert_columnar(const struct record_options *options, const char *from, const char *to);

#endif
