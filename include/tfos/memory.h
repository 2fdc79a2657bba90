// SPDX-License-Identifier: Apache-2.0
/// Memory whose ownership passes between the library and its callers. Thread-safe.
#ifndef TFOS_MEMORY_H
#define TFOS_MEMORY_H

#include <tfos/export.h>

/// Frees text that a function of this library returned. NULL is accepted.
TFOS_API void tfos_free(void *block);

/// A copy of a text, for a callback whose answer the library frees; NULL when out of memory.
TFOS_API char *tfos_strdup(const char *text);

#endif
