// SPDX-License-Identifier: Apache-2.0
/// A command that shows an array of things once, or again each second until Ctrl-C, as a table or
/// as JSON.
#ifndef TFOS_CLI_WATCH_H
#define TFOS_CLI_WATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct watch_view {
    bool is_json, is_watching;
    /// What there is now, which the caller owns; NULL after saying why it cannot be told.
    json_t *(*query)(void *context);
    void *context;
    void (*print)(FILE *out, const json_t *things);
    int (*say_none)(bool is_json); ///< returns the exit status
};

/// The exit status of the command.
int watch_show(const struct watch_view *view);

#endif
