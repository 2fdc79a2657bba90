// SPDX-License-Identifier: Apache-2.0
/// Names of files as text: local paths, URIs, and patterns as <tfos/file_list.h> describes them.
/// Text is UTF-8, or bytes where it is none.
#ifndef TFOS_IO_FILE_NAME_H
#define TFOS_IO_FILE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <tfos/file_list.h>

/// Whether a URI is one of this machine: `file:`.
bool tfos__io_file_name_is_local(const char *name);

/// Whether the path of a URI, at `path`, means another one if it is percent-encoded.
bool tfos__io_file_name_is_encoded(const char *path);

/// The name with what is behind `offset` decoded, as text that means itself, or as a pattern, in
/// which decoded characters mean themselves. NULL: no memory. For tfos__free().
char *tfos__io_file_name_decode(const char *name, size_t offset, bool is_pattern);

/// The path of a name of this machine's. UNSUPPORTED: another file system; INVALID: another host.
enum tfos_status tfos__io_file_name_get_path(const char *name, const char **path,
                                             struct tfos_error *err);

/// The first character that makes a pattern of a name, or its end.
const char *tfos__io_pattern_find(const char *name);

/// Whether a name matches a pattern of `size` bytes without braces.
bool tfos__io_pattern_matches(const char *pattern, size_t size, const char *name);

/// Alternatives in braces.
struct tfos__io_braces {
    const char *open, *close; ///< the brackets
};

/// Finds the first group of braces that opens in [`text`, `end`); it may close behind that.
bool tfos__io_braces_find(const char *text, const char *end, struct tfos__io_braces *braces);

/// The end of the alternative that begins at `at`: a comma or the closing bracket.
const char *tfos__io_braces_end(const struct tfos__io_braces *braces, const char *at);

#endif
