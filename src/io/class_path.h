// SPDX-License-Identifier: Apache-2.0
/// Where Hadoop's classes and the JVM's library are on this machine.
#ifndef TFOS_IO_CLASS_PATH_H
#define TFOS_IO_CLASS_PATH_H

#include <stdbool.h>
#include <tfos/status.h>

/// The class path of a JVM with Hadoop's client: the configuration's folder and jars, each by its
/// name. UNSUPPORTED where there is none. For tfos__free().
enum tfos_status tfos__io_class_path_find(char **out, struct tfos_error *err);

/// Whether the environment names Hadoop's jars.
bool tfos__io_class_path_is_named(void);

/// The library of a JVM, libjvm.so. UNSUPPORTED where there is none. For tfos__free().
enum tfos_status tfos__io_jvm_library_find(char **out, struct tfos_error *err);

#endif
