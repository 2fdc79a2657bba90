// SPDX-License-Identifier: Apache-2.0
/// How far long work is, on the terminal that stderr is; nothing where it is none, or where the
/// work takes less than a second.
#ifndef TFOS_CLI_PROGRESS_H
#define TFOS_CLI_PROGRESS_H

#include <stdint.h>

/// All zero: nothing has been shown.
struct progress {
    int64_t next_ms; ///< when the line is to be written again; 0: it has not begun
    int width;       ///< of the line that is there
};

/// Says what there is to be said: "shuffle: 12000 records, 34 MiB of data.tfrecord".
void progress_tell(struct progress *progress, const char *what, uint64_t records, uint64_t bytes,
                   const char *path);

/// Takes the line away.
void progress_end(struct progress *progress);

#endif
