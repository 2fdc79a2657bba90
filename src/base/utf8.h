// SPDX-License-Identifier: Apache-2.0
/// Text that may be none.
#ifndef TFOS_BASE_UTF8_H
#define TFOS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/// Whether the bytes are whole characters in UTF-8: each in its shortest form, no surrogates.
bool tfos__is_utf8(const void *text, size_t size);

#endif
