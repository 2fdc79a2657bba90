// SPDX-License-Identifier: Apache-2.0
/// How far long work is, on the terminal that stderr is; nothing where it is none, or where the
/// work takes less than a second. There is one line, the process's.
#ifndef TFOS_CLI_PROGRESS_H
#define TFOS_CLI_PROGRESS_H

#include <stdint.h>

/// Says what there is to be said: "copied: 12000 records, 34 MiB of data.tfrecord".
void progress_tell(const char *what, uint64_t records, uint64_t bytes, const char *path);

/// Takes the line away: before anything else is written to stderr, and at the end.
void progress_end(void);

#endif
