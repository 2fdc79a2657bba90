// SPDX-License-Identifier: Apache-2.0
/// Bytes as text (RFC 4648).
#ifndef TFOS_CLI_BASE64_H
#define TFOS_CLI_BASE64_H

#include "allocation.h"

#include <stdbool.h>

/// Adds the text of `size` bytes.
void base64_encode(struct bytes *text, const void *data, size_t size);

/// Adds the bytes of a text; false, with nothing of use added, when it is none.
bool base64_decode(struct bytes *bytes, const char *text, size_t size);

#endif
