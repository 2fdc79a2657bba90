// SPDX-License-Identifier: Apache-2.0
/// What the text of a name says by itself.
#ifndef TFOS_IO_FILE_NAME_H
#define TFOS_IO_FILE_NAME_H

#include <stdbool.h>
#include <tfos/file_list.h>

/// Whether the path of a URI, at `path`, means another one if it is percent-encoded.
bool tfos__io_file_name_is_encoded(const char *path);

/// The name with what is behind `offset` decoded, as text that means itself, or as a pattern, in
/// which decoded characters mean themselves. NULL: no memory. For tfos__free().
char *tfos__io_file_name_decode(const char *name, size_t offset, bool is_pattern);

/// The path of a name of this machine's. UNSUPPORTED: another file system; INVALID: another host.
enum tfos_status tfos__io_file_name_get_path(const char *name, const char **path,
                                             struct tfos_error *err);

#endif
