// SPDX-License-Identifier: Apache-2.0
/// Patterns of file names, as <tfos/file_list.h> describes them. Text is UTF-8, or bytes where it
/// is none.
#ifndef TFOS_IO_FILE_PATTERN_H
#define TFOS_IO_FILE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

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
