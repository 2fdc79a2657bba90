// SPDX-License-Identifier: Apache-2.0
/// A command that shows an array of things once, or again each second until Ctrl-C, as a table or
/// as JSON.
#ifndef TFOS_CLI_WATCH_H
#define TFOS_CLI_WATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct watch_view {
    const char *command; ///< its name
    /// What there is now, which the caller owns; NULL after an error message.
    json_t *(*query)(void *context);
    void *context;
    void (*print)(FILE *out, const json_t *things);
    const char *none;          ///< what is said where there are no things
    bool is_json, is_watching; ///< set by run()
};

/// Takes the arguments behind the command's name. The exit status of the command.
int watch_run(int argc, char **argv, struct watch_view *view);

#endif
