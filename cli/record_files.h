// SPDX-License-Identifier: Apache-2.0
/// The files that `tfos record` reads and writes: those that its arguments name, "-", and temporary
/// ones, which have no name and are gone when the process ends, however it does.
#ifndef TFOS_CLI_RECORD_FILES_H
#define TFOS_CLI_RECORD_FILES_H

#include <jansson.h>

#include "record_options.h"

/// Opens "-", the standard input, or a file. NULL after an error message.
struct tfos_stream *open_input(const char *path);

/// Opens "-", the standard output, or a file. NULL after an error message.
struct tfos_stream *open_output(const char *path);

/// A descriptor for reading and writing, close-on-exec, of a file in the folder TMPDIR, or /tmp. -1
/// after an error message.
int open_temporary_file(void);

/// The folder that such files are made in.
const char *temporary_folder(void);

/// A copy of a file in such a file, at its beginning. The caller closes it. -1 after an error
/// message.
int open_copy(const char *path);

/// The standard input, or a copy of it in such a file where it cannot seek; at its beginning. The
/// caller closes it. -1 after an error message.
int open_seekable_input(void);

/// The files that arguments name. All zero is an empty one.
struct sources {
    char **names; ///< owned, as each of them is
    int count;
    bool has_failed; ///< an argument names no file; there was an error message
};

/// Finds the files that `options->files` stand for, of which the last `target_count` are to be
/// written, and points the options to them. Returns 0, or the exit status after an error message:
/// where something is written, all must be there.
int find_sources(struct sources *sources, struct record_options *options, int target_count);

void clear_sources(struct sources *sources);

/// A file of records, read to its end batch by batch.
struct pass {
    const struct record_options *options;
    const char *path;
    const char *what; ///< is done with it, for the progress; NULL: it is read
    json_t *damages;  ///< damage as JSON; NULL: it is reported on stderr
    int (*take)(struct pass *pass, const struct tfos_view *records, size_t count); ///< may be NULL
    void *target;                                                                  ///< of take()
    struct tfos_record_counts counts; ///< once it has run
};

/// Reads the file that `path` names and hands each batch on. The exit status.
int run_pass(struct pass *pass);

/// The same for a stream, which stays open.
int run_pass_on(struct pass *pass, struct tfos_stream *stream);

/// Files that records go to in turn.
struct outputs {
    struct output {
        struct tfos_stream *stream;
        struct tfos_record_writer *writer;
    } * items; ///< owned
    uint64_t count, next;
};

/// Opens one file, or where `count` is not 0 that many, named `path` with "-00000-of-00002" behind.
/// The exit status; close_outputs() in any case.
int open_outputs(struct outputs *outputs, const struct record_options *options, const char *path,
                 uint64_t count);

/// Writes the records, each to the next file. The exit status.
int write_to_outputs(struct outputs *outputs, const struct tfos_view *records, size_t count);

/// The exit status. Only then are the files there.
int finish_outputs(struct outputs *outputs);

void close_outputs(struct outputs *outputs);

#endif
