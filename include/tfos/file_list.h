// SPDX-License-Identifier: Apache-2.0
/// The files that a name matches: a file, a folder, a pattern, or a URI of one of these. Names
/// are bytes, and mean what they mean to Spark and Hadoop.
///
/// - What is there under exactly this name is meant, whatever characters are in it.
/// - A folder means its files that are not hidden, not those in folders below it.
/// - A pattern means the files, and the files of folders, that it matches: `*`, `?`, `[a-z]`,
///   `[!a-z]` or `[^a-z]`, `{one,other}`; `\` escapes the next character. It matches
///   no hidden name. A part of it that is there under exactly that name is no pattern.
/// - A URI, `scheme://host/path` or `file:/path`, may have its path as it is, in which `#` and `?`
///   are characters like others, or percent-encoded. Where both names are there it is refused.
#ifndef TFOS_FILE_LIST_H
#define TFOS_FILE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <tfos/export.h>
#include <tfos/file_system.h>
#include <tfos/status.h>

/// Whether Spark skips a file or folder of this name in a folder: it begins with "." or "_",
/// or ends with "._COPYING_". `_name=value` is a partition, which it does not.
TFOS_API bool tfos_file_name_is_hidden(const char *name);

/// Whether it is such a name as tfos_stream_open_writer() gives a file that is not yet whole.
TFOS_API bool tfos_file_name_is_part(const char *name);

/// Where the path begins in a URI, behind scheme and host; 0: `name` is a path.
TFOS_API size_t tfos_file_name_path_offset(const char *name);

/// Bytes of the first of several names that are divided by commas, as Hadoop's formats take them: a
/// comma in braces is none that divides.
TFOS_API size_t tfos_file_names_first(const char *names);

/// The path of a file that is to be written, a part of `name`; NULL where `name` is a URI of
/// another file system. INVALID: its path means another file if it is percent-encoded; or `file:`
/// with another host.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_file_name_get_new(const char *name, const char **path, struct tfos_error *err);

struct tfos_file_list;

/// Finds the files, sorted by name: of `system`, or of tfos_file_system_of() where it is NULL, of
/// this machine with paths in place of URIs. NOT_FOUND: there is none; but a path of this machine
/// that is no pattern is in the list also where nothing is there: opening it says why. UNSUPPORTED:
/// no file system is there for a URI. INVALID: the name could mean two files. Of `system`, only
/// look() and list() are called. The caller owns `*out`.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_file_list_find(const char *name,
                                                              struct tfos_file_system *system,
                                                              struct tfos_file_list **out,
                                                              struct tfos_error *err);

/// The same for what is there, whatever it is: folders stand for themselves, and what is hidden is
/// among what a pattern matches. NOT_FOUND: there is nothing.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_file_list_match(const char *name, struct tfos_file_list **out, struct tfos_error *err);

/// How many there are, at least 1.
TFOS_API size_t tfos_file_list_count(const struct tfos_file_list *list);

/// One of them; it lives as long as the list.
TFOS_API const char *tfos_file_list_get(const struct tfos_file_list *list, size_t index);

/// NULL is accepted.
TFOS_API void tfos_file_list_close(struct tfos_file_list *list);

#endif
