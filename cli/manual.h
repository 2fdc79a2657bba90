// SPDX-License-Identifier: Apache-2.0
/// The manual page and the completions for shells, made from the tables of the commands.
#ifndef TFOS_CLI_MANUAL_H
#define TFOS_CLI_MANUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define OPTION_VALUES 8

/// A row of a table of commands.
struct help_entry {
    const char *name, *arguments, *help;
};

/// An option of `tfos record`.
struct option_entry {
    const char *name, *argument, *help;
    bool takes_value;
    const char *values[OPTION_VALUES]; ///< those that it takes; none where they cannot be listed
};

struct example {
    const char *command, *purpose;
};

/// The entry with that index, in the order of the help; false behind the last one.
bool command_entry(size_t index, struct help_entry *entry);
bool deploy_kind_entry(size_t index, struct help_entry *entry);
bool record_command_entry(size_t index, struct help_entry *entry);
bool record_option_entry(size_t index, struct option_entry *entry);

/// NULL behind the last one.
const struct example *example_at(size_t index);

void print_manual(FILE *out);
void print_bash_completion(FILE *out);
void print_zsh_completion(FILE *out);

#endif
