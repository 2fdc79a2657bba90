// SPDX-License-Identifier: Apache-2.0
/// The version of this library. CMake and the Python package read it from here.
#ifndef TFOS_VERSION_H
#define TFOS_VERSION_H

#include <tfos/export.h>

#define TFOS_VERSION_MAJOR 0
#define TFOS_VERSION_MINOR 1
#define TFOS_VERSION_PATCH 0
#define TFOS_VERSION "0.1.0"

/// The version of the library that was loaded, as "major.minor.patch"; static storage. Thread-safe.
TFOS_API const char *tfos_version(void);

#endif
