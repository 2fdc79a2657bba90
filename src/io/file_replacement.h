// SPDX-License-Identifier: Apache-2.0
/// What a file that is written takes over from the one that it replaces.
#ifndef TFOS_IO_FILE_REPLACEMENT_H
#define TFOS_IO_FILE_REPLACEMENT_H

#include <stdbool.h>
#include <sys/stat.h>
#include <tfos/status.h>

/// Where the file is, or will be, to which `path` leads through symbolic links. `*is_descriptor`:
/// it is one that a process has open, such as /dev/stdout, and has no other name for sure. The
/// caller frees `*out` with tfos__free().
enum tfos_status tfos__io_replacement_follow_links(const char *path, char **out,
                                                   bool *is_descriptor, struct tfos_error *err);

/// Gives the file `fd` owner, group, mode and access list of the one at `path`, whose state is
/// `state`. DENIED: its group cannot be kept. The owner changes where only root could keep it.
enum tfos_status tfos__io_replacement_copy_permissions(int fd, const char *path,
                                                       const struct stat *state,
                                                       struct tfos_error *err);

#endif
