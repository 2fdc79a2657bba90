// SPDX-License-Identifier: Apache-2.0
/// File systems behind one interface: this machine's, and those of Hadoop (hdfs, viewfs, s3a, abfs,
/// har ...), by Hadoop's own Java classes. These run in the JVM that is in the process already, or
/// else in one that the first use starts: with the jars of CLASSPATH, HADOOP_HOME, the command
/// `hadoop`, SPARK_HOME, or those of tfos_hadoop_set_jars(), the first of these that has Hadoop's;
/// and with the configuration of HADOOP_CONF_DIR. The Java is that of JAVA_HOME, or of the command
/// `java`. LIBHDFS_OPTS has more options of the JVM.
///
/// Names are paths and URIs as <tfos/file_list.h> has them, without patterns; all behind a URI's
/// host is the path as it is. Any thread may call, but not a process that is forked from one which
/// has used Hadoop: INVALID. Messages name the file and the cause: NOT_FOUND, DENIED,
/// BUSY (safe mode, another writer), UNSUPPORTED (no Java, no jars, no such scheme), CORRUPT,
/// TIMEOUT, INVALID, IO. `os_errno` is the errno that says the same: EEXIST, ENOTEMPTY, ENOTDIR,
/// EISDIR, EDQUOT.
#ifndef TFOS_FILE_SYSTEM_H
#define TFOS_FILE_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/export.h>
#include <tfos/status.h>
#include <tfos/stream.h>

enum tfos_file_kind {
    TFOS_FILE_NONE,
    TFOS_FILE_REGULAR,
    TFOS_FILE_FOLDER,
    TFOS_FILE_SPECIAL ///< a pipe, a device: only by its exact name
};

struct tfos_file_info {
    enum tfos_file_kind kind;
    bool has_details;          ///< what follows is known
    unsigned mode;             ///< its permissions, as chmod(2) has them
    int replication;           ///< how many copies the file system keeps; 0: unknown
    uint64_t size;             ///< bytes; 0 of a folder
    int64_t modified_ms;       ///< since 1970
    char owner[64], group[64]; ///< of this machine as numbers
};

/// Takes an entry of a folder.
typedef enum tfos_status tfos_file_taker(void *entries, const char *name,
                                         const struct tfos_file_info *info, struct tfos_error *err);

enum tfos_file_writing {
    TFOS_FILE_REPLACE, ///< as tfos_stream_open_writer()
    TFOS_FILE_CREATE,  ///< the same, but it appears with its first flush() if that comes before
    TFOS_FILE_APPEND   ///< what is written comes behind what is there; where nothing is, as CREATE
};

/// Functions that a file system lacks are NULL; look() and list() are always there.
struct tfos_file_system {
    /// What is there under a name. OK also where nothing is: the kind is then NONE.
    enum tfos_status (*look)(struct tfos_file_system *system, const char *name,
                             struct tfos_file_info *info, struct tfos_error *err);
    /// Calls `take` with `entries` for each entry of a folder, and ends with a failure of that; for
    /// none where there is no such folder. An entry may come without its details.
    enum tfos_status (*list)(struct tfos_file_system *system, const char *folder,
                             tfos_file_taker *take, void *entries, struct tfos_error *err);
    /// Opens a file for reading. The stream can seek. NOT_FOUND, DENIED, IO (a folder).
    enum tfos_status (*open_reader)(struct tfos_file_system *system, const char *name,
                                    struct tfos_stream **out, struct tfos_error *err);
    enum tfos_status (*open_writer)(struct tfos_file_system *system, const char *name,
                                    enum tfos_file_writing how, struct tfos_stream **out,
                                    struct tfos_error *err);
    /// Makes a folder, and those above it. One that is there already is as good.
    enum tfos_status (*make_folder)(struct tfos_file_system *system, const char *name,
                                    struct tfos_error *err);
    /// Gives a file or folder another name in the same file system. A file that is there under the
    /// new name is replaced.
    enum tfos_status (*rename)(struct tfos_file_system *system, const char *from, const char *to,
                               struct tfos_error *err);
    /// Deletes a file, an empty folder, or, if `is_recursive`, a folder with all that is in it.
    /// NOT_FOUND: nothing is there; IO with ENOTEMPTY.
    enum tfos_status (*remove)(struct tfos_file_system *system, const char *name, bool is_recursive,
                               struct tfos_error *err);
};

/// The file system that a name is in: this machine's for paths and `file:`, else Hadoop's, which is
/// asked only when it is used. It lives as long as the process.
TFOS_API struct tfos_file_system *tfos_file_system_of(const char *name);

/// The folder whose jars are Hadoop's where the environment names none, such as pyspark/jars.
/// Copied. NULL: none. Before the first use.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_hadoop_set_jars(const char *folder,
                                                               struct tfos_error *err);

/// Whether a JVM is in the process already, or the environment names Hadoop's jars.
TFOS_API bool tfos_hadoop_is_configured(void);

#endif
