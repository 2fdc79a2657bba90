// SPDX-License-Identifier: Apache-2.0
/// Running another program for what it prints.
#ifndef TFOS_CLI_PROGRAM_H
#define TFOS_CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/// Runs argv[0] (found in PATH unless it has a slash) and keeps the start of what it writes to
/// stdout and stderr in `text`, ended by NUL. False when it cannot be started, fails, or takes
/// longer than `timeout_ms` (then it is killed).
bool run_program(char *const *argv, int timeout_ms, char *text, size_t capacity);

/// Writes the python3 in the command's own folder, as of a virtual environment, else "python3",
/// which is that of PATH. `capacity` is more than 8.
void choose_python(char *path, size_t capacity);

/// This process becomes the Python of choose_python(), which runs `code` with `arguments` (ended by
/// NULL) as sys.argv[1:]; os and sys are imported. Signals end it as they end the command, and the
/// folder where it runs has no modules of its. Returns only where Python cannot be run: 1, after an
/// error message that begins with `purpose`.
int become_python(const char *purpose, const char *code, char *const *arguments);

#endif
