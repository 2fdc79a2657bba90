// SPDX-License-Identifier: Apache-2.0
/// The files of the plugin of file systems, and the statuses of both.
#ifndef TFOS_TENSORFLOW_FILE_STREAMS_H
#define TFOS_TENSORFLOW_FILE_STREAMS_H

#include <tfos/file_system.h>

#include "file_system_api.h"

/// Makes what has come of a call the status of TensorFlow's.
void tfos__files_set_status(struct TF_Status *status, enum tfos_status result,
                            const struct tfos_error *err);

/// Fails with a code, a file and a cause.
void tfos__files_refuse(struct TF_Status *status, int code, const char *path, const char *cause);
void tfos__files_refuse_memory(struct TF_Status *status, const char *path);

/// What is there, which is something; false with a status.
bool tfos__files_look(const char *path, struct tfos_file_info *info, struct TF_Status *status);

/// TensorFlow's calls that open files, and the tables of what they open.
void tfos__files_open_readable(const struct TF_Filesystem *system, const char *path,
                               struct TF_RandomAccessFile *file, struct TF_Status *status);
void tfos__files_open_writable(const struct TF_Filesystem *system, const char *path,
                               struct TF_WritableFile *file, struct TF_Status *status);
void tfos__files_open_appendable(const struct TF_Filesystem *system, const char *path,
                                 struct TF_WritableFile *file, struct TF_Status *status);
void tfos__files_open_region(const struct TF_Filesystem *system, const char *path,
                             struct TF_ReadOnlyMemoryRegion *region, struct TF_Status *status);

extern const struct TF_RandomAccessFileOps tfos__files_readable_ops;
extern const struct TF_WritableFileOps tfos__files_writable_ops;
extern const struct TF_ReadOnlyMemoryRegionOps tfos__files_region_ops;

#endif
