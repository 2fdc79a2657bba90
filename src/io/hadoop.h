// SPDX-License-Identifier: Apache-2.0
/// Hadoop's Java interface as the file system and its streams use it, and the file system.
#ifndef TFOS_IO_HADOOP_H
#define TFOS_IO_HADOOP_H

#include <tfos/file_system.h>

#include "io/java_exception.h"
#include "io/jvm.h"

/// X(member, class, name, signature)
#define TFOS__HADOOP_METHODS(X)                                                                    \
    X(configuration_init, "org/apache/hadoop/conf/Configuration", "<init>", "()V")                 \
    X(configuration_get, "org/apache/hadoop/conf/Configuration", "get",                            \
      "(Ljava/lang/String;)Ljava/lang/String;")                                                    \
    X(configuration_set, "org/apache/hadoop/conf/Configuration", "set",                            \
      "(Ljava/lang/String;Ljava/lang/String;)V")                                                   \
    X(path_init, "org/apache/hadoop/fs/Path", "<init>", "(Ljava/lang/String;)V")                   \
    X(path_get_system, "org/apache/hadoop/fs/Path", "getFileSystem",                               \
      "(Lorg/apache/hadoop/conf/Configuration;)Lorg/apache/hadoop/fs/FileSystem;")                 \
    X(path_get_name, "org/apache/hadoop/fs/Path", "getName", "()Ljava/lang/String;")               \
    X(path_to_text, "org/apache/hadoop/fs/Path", "toString", "()Ljava/lang/String;")               \
    X(path_to_uri, "org/apache/hadoop/fs/Path", "toUri", "()Ljava/net/URI;")                       \
    X(uri_get_path, "java/net/URI", "getPath", "()Ljava/lang/String;")                             \
    X(system_make_qualified, "org/apache/hadoop/fs/FileSystem", "makeQualified",                   \
      "(Lorg/apache/hadoop/fs/Path;)Lorg/apache/hadoop/fs/Path;")                                  \
    X(system_get_status, "org/apache/hadoop/fs/FileSystem", "getFileStatus",                       \
      "(Lorg/apache/hadoop/fs/Path;)Lorg/apache/hadoop/fs/FileStatus;")                            \
    X(system_list, "org/apache/hadoop/fs/FileSystem", "listStatusIterator",                        \
      "(Lorg/apache/hadoop/fs/Path;)Lorg/apache/hadoop/fs/RemoteIterator;")                        \
    X(system_open, "org/apache/hadoop/fs/FileSystem", "open",                                      \
      "(Lorg/apache/hadoop/fs/Path;)Lorg/apache/hadoop/fs/FSDataInputStream;")                     \
    X(system_create, "org/apache/hadoop/fs/FileSystem", "create",                                  \
      "(Lorg/apache/hadoop/fs/Path;Z)Lorg/apache/hadoop/fs/FSDataOutputStream;")                   \
    X(system_append, "org/apache/hadoop/fs/FileSystem", "append",                                  \
      "(Lorg/apache/hadoop/fs/Path;)Lorg/apache/hadoop/fs/FSDataOutputStream;")                    \
    X(system_make_folders, "org/apache/hadoop/fs/FileSystem", "mkdirs",                            \
      "(Lorg/apache/hadoop/fs/Path;)Z")                                                            \
    X(system_delete, "org/apache/hadoop/fs/FileSystem", "delete",                                  \
      "(Lorg/apache/hadoop/fs/Path;Z)Z")                                                           \
    X(system_rename, "org/apache/hadoop/fs/FileSystem", "rename",                                  \
      "(Lorg/apache/hadoop/fs/Path;Lorg/apache/hadoop/fs/Path;"                                    \
      "[Lorg/apache/hadoop/fs/Options$Rename;)V")                                                  \
    X(iterator_has_next, "org/apache/hadoop/fs/RemoteIterator", "hasNext", "()Z")                  \
    X(iterator_next, "org/apache/hadoop/fs/RemoteIterator", "next", "()Ljava/lang/Object;")        \
    X(status_get_path, "org/apache/hadoop/fs/FileStatus", "getPath",                               \
      "()Lorg/apache/hadoop/fs/Path;")                                                             \
    X(status_is_folder, "org/apache/hadoop/fs/FileStatus", "isDirectory", "()Z")                   \
    X(status_get_size, "org/apache/hadoop/fs/FileStatus", "getLen", "()J")                         \
    X(status_get_time, "org/apache/hadoop/fs/FileStatus", "getModificationTime", "()J")            \
    X(status_get_replication, "org/apache/hadoop/fs/FileStatus", "getReplication", "()S")          \
    X(status_get_owner, "org/apache/hadoop/fs/FileStatus", "getOwner", "()Ljava/lang/String;")     \
    X(status_get_group, "org/apache/hadoop/fs/FileStatus", "getGroup", "()Ljava/lang/String;")     \
    X(status_get_permission, "org/apache/hadoop/fs/FileStatus", "getPermission",                   \
      "()Lorg/apache/hadoop/fs/permission/FsPermission;")                                          \
    X(permission_get, "org/apache/hadoop/fs/permission/FsPermission", "toShort", "()S")            \
    X(reader_read_buffer, "org/apache/hadoop/fs/FSDataInputStream", "read",                        \
      "(Ljava/nio/ByteBuffer;)I")                                                                  \
    X(reader_read_array, "org/apache/hadoop/fs/FSDataInputStream", "read", "([BII)I")              \
    X(reader_seek, "org/apache/hadoop/fs/FSDataInputStream", "seek", "(J)V")                       \
    X(reader_close, "org/apache/hadoop/fs/FSDataInputStream", "close", "()V")                      \
    X(writer_write, "org/apache/hadoop/fs/FSDataOutputStream", "write", "([BII)V")                 \
    X(writer_show, "org/apache/hadoop/fs/FSDataOutputStream", "hflush", "()V")                     \
    X(writer_sync, "org/apache/hadoop/fs/FSDataOutputStream", "hsync", "()V")                      \
    X(writer_close, "org/apache/hadoop/fs/FSDataOutputStream", "close", "()V")

/// What older versions, and those without HDFS, lack: NULL there.
#define TFOS__HADOOP_NEWER_METHODS(X)                                                              \
    X(system_has_capability, "org/apache/hadoop/fs/FileSystem", "hasPathCapability",               \
      "(Lorg/apache/hadoop/fs/Path;Ljava/lang/String;)Z")                                          \
    X(writer_abort, "org/apache/hadoop/fs/FSDataOutputStream", "abort",                            \
      "()Lorg/apache/hadoop/fs/Abortable$AbortableResult;")                                        \
    X(hdfs_is_closed, "org/apache/hadoop/hdfs/DistributedFileSystem", "isFileClosed",              \
      "(Lorg/apache/hadoop/fs/Path;)Z")

struct tfos__hadoop {
#define X(member, class, name, signature) void *member;
    TFOS__HADOOP_METHODS(X)
    TFOS__HADOOP_NEWER_METHODS(X)
#undef X
    void *path_class;
    void *hdfs_class, *hdfs_writer_class; ///< NULL: they are missing
    void *configuration;                  ///< what all file systems are made with
    void *overwrite;                      ///< the options of a rename that replaces a file
};

/// The methods, once tfos__io_hadoop_begin() has succeeded.
extern struct tfos__hadoop tfos__hadoop;

/// Calls about a file.
struct tfos__hadoop_call {
    struct tfos__jni *env;
    const char *name; ///< for messages: it has a host where the file system has one
    char *full_name;  ///< that name where it is another than the one given, or NULL; owned
    void *path, *system;
};

/// Begins calls about the file `name`, which is borrowed until they end: its path and its file
/// system in Java. After a failure nothing is to be ended.
enum tfos_status tfos__io_hadoop_begin(struct tfos__hadoop_call *call, const char *name,
                                       struct tfos_error *err);

/// Ends them; an exception that nobody has asked for is dropped. Returns `status`.
enum tfos_status tfos__io_hadoop_end(struct tfos__hadoop_call *call, enum tfos_status status);

/// Fails if there is an exception, as "cannot `verb` `name`".
enum tfos_status tfos__io_hadoop_check(const struct tfos__hadoop_call *call, const char *verb,
                                       struct tfos_error *err);

/// A Path; NULL with an exception.
void *tfos__io_hadoop_make_path(struct tfos__jni *env, const char *name);

/// Renames, and replaces a file that is there. An exception may be pending then.
void tfos__io_hadoop_rename(const struct tfos__hadoop_call *call, void *from, void *to);

/// As <tfos/file_system.h> has them.
enum tfos_status tfos__io_hadoop_look(struct tfos_file_system *system, const char *name,
                                      struct tfos_file_info *info, struct tfos_error *err);
enum tfos_status tfos__io_hadoop_open_reader(struct tfos_file_system *system, const char *name,
                                             struct tfos_stream **out, struct tfos_error *err);
enum tfos_status tfos__io_hadoop_open_writer(struct tfos_file_system *system, const char *name,
                                             enum tfos_file_writing how, struct tfos_stream **out,
                                             struct tfos_error *err);

#endif
