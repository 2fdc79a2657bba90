// SPDX-License-Identifier: Apache-2.0
/// A file of records, read to its end batch by batch.
#ifndef TFOS_CLI_RECORD_PASS_H
#define TFOS_CLI_RECORD_PASS_H

#include "record_options.h"

#include <jansson.h>

struct pass {
    const struct record_options *options;
    const char *path;
    const char *what; ///< is done with it, for the progress; NULL: it is read
    json_t *damages;  ///< where damage is told as JSON; NULL: on stderr
    int (*take)(struct pass *pass, const struct tfos_view *records, size_t count); ///< may be NULL
    void *target;                                                                  ///< of take()
    struct tfos_record_counts counts; ///< once it has run
};

/// Reads the file that `path` names and hands each batch on. The exit status.
int run_pass(struct pass *pass);

/// The same for a stream, which stays open.
int run_pass_on(struct pass *pass, struct tfos_stream *stream);

#endif
