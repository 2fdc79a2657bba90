// SPDX-License-Identifier: Apache-2.0
/// Files without a name, which are gone when the process ends, however it does.
#ifndef TFOS_CLI_TEMPORARY_FILE_H
#define TFOS_CLI_TEMPORARY_FILE_H

/// A descriptor for reading and writing, close-on-exec, of a file in the folder TMPDIR, or /tmp. -1
/// after saying why not.
int open_temporary_file(void);

/// The folder that such files are made in.
const char *temporary_folder(void);

/// The standard input, or a copy of it in such a file where it cannot seek; at its beginning. The
/// caller closes it. -1 after saying why not.
int open_seekable_input(void);

#endif
