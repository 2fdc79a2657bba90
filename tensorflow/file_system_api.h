// SPDX-License-Identifier: Apache-2.0
/// TensorFlow's tables of file systems. Names, members and their order are those of
/// tensorflow/c/experimental/filesystem/filesystem_interface.h of TensorFlow 2.15 to 2.21, which
/// are the same in all of them; the header itself cannot be included from C. Versions of the tables
/// are 0.
#ifndef TFOS_TENSORFLOW_FILE_SYSTEM_API_H
#define TFOS_TENSORFLOW_FILE_SYSTEM_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct TF_Status;
struct TF_Filesystem;

struct TF_RandomAccessFile {
    void *plugin_file;
};

struct TF_WritableFile {
    void *plugin_file;
};

struct TF_ReadOnlyMemoryRegion {
    void *plugin_memory_region;
};

struct TF_FileStatistics {
    int64_t length;
    int64_t mtime_nsec;
    bool is_directory;
};

struct TF_RandomAccessFileOps {
    void (*cleanup)(struct TF_RandomAccessFile *);
    int64_t (*read)(const struct TF_RandomAccessFile *, uint64_t offset, size_t size, char *data,
                    struct TF_Status *);
};

struct TF_WritableFileOps {
    void (*cleanup)(struct TF_WritableFile *);
    void (*append)(const struct TF_WritableFile *, const char *data, size_t size,
                   struct TF_Status *);
    int64_t (*tell)(const struct TF_WritableFile *, struct TF_Status *);
    void (*flush)(const struct TF_WritableFile *, struct TF_Status *);
    void (*sync)(const struct TF_WritableFile *, struct TF_Status *);
    void (*close)(const struct TF_WritableFile *, struct TF_Status *);
};

struct TF_ReadOnlyMemoryRegionOps {
    void (*cleanup)(struct TF_ReadOnlyMemoryRegion *);
    const void *(*data)(const struct TF_ReadOnlyMemoryRegion *);
    uint64_t (*length)(const struct TF_ReadOnlyMemoryRegion *);
};

struct TF_FilesystemOps {
    void (*init)(struct TF_Filesystem *, struct TF_Status *);
    void (*cleanup)(struct TF_Filesystem *);
    void (*new_random_access_file)(const struct TF_Filesystem *, const char *path,
                                   struct TF_RandomAccessFile *, struct TF_Status *);
    void (*new_writable_file)(const struct TF_Filesystem *, const char *path,
                              struct TF_WritableFile *, struct TF_Status *);
    void (*new_appendable_file)(const struct TF_Filesystem *, const char *path,
                                struct TF_WritableFile *, struct TF_Status *);
    void (*new_read_only_memory_region_from_file)(const struct TF_Filesystem *, const char *path,
                                                  struct TF_ReadOnlyMemoryRegion *,
                                                  struct TF_Status *);
    void (*create_dir)(const struct TF_Filesystem *, const char *path, struct TF_Status *);
    void (*recursively_create_dir)(const struct TF_Filesystem *, const char *path,
                                   struct TF_Status *);
    void (*delete_file)(const struct TF_Filesystem *, const char *path, struct TF_Status *);
    void (*delete_dir)(const struct TF_Filesystem *, const char *path, struct TF_Status *);
    void (*delete_recursively)(const struct TF_Filesystem *, const char *path,
                               uint64_t *undeleted_files, uint64_t *undeleted_dirs,
                               struct TF_Status *);
    void (*rename_file)(const struct TF_Filesystem *, const char *source, const char *target,
                        struct TF_Status *);
    void *copy_file; ///< TensorFlow copies by what else is here
    void (*path_exists)(const struct TF_Filesystem *, const char *path, struct TF_Status *);
    void *paths_exist;
    void (*stat)(const struct TF_Filesystem *, const char *path, struct TF_FileStatistics *,
                 struct TF_Status *);
    bool (*is_directory)(const struct TF_Filesystem *, const char *path, struct TF_Status *);
    int64_t (*get_file_size)(const struct TF_Filesystem *, const char *path, struct TF_Status *);
    char *(*translate_name)(const struct TF_Filesystem *, const char *uri);
    int (*get_children)(const struct TF_Filesystem *, const char *path, char ***entries,
                        struct TF_Status *);
    void *get_matching_paths, *flush_caches;
    void *transactions[6], *configuration[5];
};

struct TF_FilesystemPluginOps {
    char *scheme;
    int filesystem_ops_abi, filesystem_ops_api;
    size_t filesystem_ops_size;
    struct TF_FilesystemOps *filesystem_ops;
    int random_access_file_ops_abi, random_access_file_ops_api;
    size_t random_access_file_ops_size;
    struct TF_RandomAccessFileOps *random_access_file_ops;
    int writable_file_ops_abi, writable_file_ops_api;
    size_t writable_file_ops_size;
    struct TF_WritableFileOps *writable_file_ops;
    int read_only_memory_region_ops_abi, read_only_memory_region_ops_api;
    size_t read_only_memory_region_ops_size;
    struct TF_ReadOnlyMemoryRegionOps *read_only_memory_region_ops;
};

struct TF_FilesystemPluginInfo {
    size_t num_schemes;
    struct TF_FilesystemPluginOps *ops;
    void *(*plugin_memory_allocate)(size_t size);
    void (*plugin_memory_free)(void *memory);
};

#endif
