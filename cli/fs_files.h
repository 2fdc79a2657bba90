// SPDX-License-Identifier: Apache-2.0
/// What the commands of `tfos fs` have in common: their options, and the files of names and
/// patterns.
#ifndef TFOS_CLI_FS_FILES_H
#define TFOS_CLI_FS_FILES_H

#include <stdbool.h>
#include <tfos/file_list.h>

/// What follows a command.
struct fs_options {
    bool letters[128]; ///< by character: it was given
    char **names;      ///< the arguments that are no options
    int count;
};

/// A file or folder.
struct fs_file {
    char *name; ///< owned
    struct tfos_file_info info;
};

/// Files; all zero is none of them.
struct fs_files {
    struct fs_file *items; ///< owned
    size_t count;
};

/// Adds the files of a name or a pattern. The exit status, after an error message.
int fs_files_match(struct fs_files *files, const char *name);

/// Adds what is in a folder, by name. The exit status, after an error message.
int fs_files_list(struct fs_files *files, const char *folder);

void fs_files_clear(struct fs_files *files);

/// What is there under exactly this name. The exit status, after an error message.
int fs_look(const char *name, struct tfos_file_info *info);

/// A name in a folder, for free().
char *fs_join(const char *folder, const char *name);

/// The last part of a name, without slashes behind it, for free().
char *fs_base(const char *name);

/// Says on stderr what is wrong with a file; returns 1.
int fs_refuse(const char *name, const char *cause);

/// Copies files and folders to the last of the names, or into it where it is a folder. The exit
/// status.
int fs_copy(const struct fs_options *options);

#endif
