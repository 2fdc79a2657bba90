// SPDX-License-Identifier: Apache-2.0
/// Freeing what the library gave out.
#ifndef TFOS_MEMORY_H
#define TFOS_MEMORY_H

#include <tfos/export.h>

/// Frees text given out by this library. NULL is accepted. Thread-safe.
TFOS_API void tfos_free(void *block);

#endif
