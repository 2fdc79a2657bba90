// SPDX-License-Identifier: Apache-2.0
/// What is written to stderr while something runs: errors, and the progress of long work.
#ifndef TFOS_CLI_TERMINAL_H
#define TFOS_CLI_TERMINAL_H

#include <stdint.h>
#include <tfos/record.h>
#include <tfos/status.h>

#define EXIT_USAGE 2

/// Of CLOCK_MONOTONIC.
int64_t now_ms(void);

/// Reports an error; returns 1, the exit status.
int say_error(const struct tfos_error *err);

/// Reports damage; for struct tfos_record_reader_options.
void say_damage(void *context, const struct tfos_record_damage *damage);

/// Shows how far the work is, "copied: 12000 records, 34 MiB of data.tfrecord", in a line of its
/// own. Nothing is shown where stderr is no terminal, or where the work takes less than a second.
void progress_show(const char *what, uint64_t records, uint64_t bytes, const char *path);

/// The same for a copy of `size` bytes: "copied: 34 of 120 MiB of data.tfrecord".
void progress_show_copy(uint64_t bytes, uint64_t size, const char *path);

/// Takes the line away: before anything else is written to stderr, and at the end.
void progress_end(void);

#endif
