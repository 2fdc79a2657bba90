// SPDX-License-Identifier: Apache-2.0
/// This machine's files as a file system.
#ifndef TFOS_IO_LOCAL_FILES_H
#define TFOS_IO_LOCAL_FILES_H

#include <tfos/file_system.h>

extern struct tfos_file_system tfos__io_local_files;

/// The status for the errno of a failed call on a file.
enum tfos_status tfos__io_status_of_errno(void);

/// Opens files of this machine: as tfos_stream_open_reader() and tfos_stream_open_writer().
enum tfos_status tfos__io_local_open_reader(const char *path, struct tfos_stream **out,
                                            struct tfos_error *err);
enum tfos_status tfos__io_local_open_writer(const char *path, enum tfos_file_writing how,
                                            struct tfos_stream **out, struct tfos_error *err);

#endif
