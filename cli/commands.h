// SPDX-License-Identifier: Apache-2.0
/// The subcommands. Each takes the arguments after its name and returns the exit status of the
/// program: 0 done, 1 not, 2 used wrongly.
#ifndef TFOS_CLI_COMMANDS_H
#define TFOS_CLI_COMMANDS_H

#define EXIT_USAGE 2

int run_doctor(int argc, char **argv);
int run_record(int argc, char **argv);
int run_status(int argc, char **argv);

/// Says on stderr what was wrong and how it is used; returns EXIT_USAGE.
int refuse_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
