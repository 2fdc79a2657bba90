// SPDX-License-Identifier: Apache-2.0
/// The files that the arguments of `tfos record` name.
#ifndef TFOS_CLI_RECORD_SOURCES_H
#define TFOS_CLI_RECORD_SOURCES_H

#include "record_command.h"

/// All zero is an empty one.
struct sources {
    char **names; ///< owned, as each of them is
    int count, capacity;
    bool has_failed; ///< an argument stands for no file, which was said
};

/// Finds the files that `options->files` stand for, of which the last `target_count` are to be
/// written, and points the options to them. Returns 0, or the exit status after saying why not:
/// where something is written, all must be there.
int find_sources(struct sources *sources, struct record_options *options, int target_count);

void clear_sources(struct sources *sources);

#endif
