// SPDX-License-Identifier: Apache-2.0
/// The token by which a writer shows that it holds the cluster's key, and the key in its written
/// form.
#ifndef TFOS_FEED_TOKEN_H
#define TFOS_FEED_TOKEN_H

#include <stdbool.h>
#include <tfos/status.h>

#include "base/channel.h"

#define TFOS__TOKEN_SIZE (2 * TFOS__KEY_SIZE + 1) ///< digits and NUL

/// Reads a key of 64 hexadecimal digits. INVALID for anything else.
enum tfos_status tfos__token_read_key(const char *digits, unsigned char key[TFOS__KEY_SIZE],
                                      struct tfos_error *err);

/// Writes the token that belongs to `key`.
enum tfos_status tfos__token_make(const unsigned char key[TFOS__KEY_SIZE],
                                  char token[TFOS__TOKEN_SIZE], struct tfos_error *err);

/// Compares in a time that says nothing about where they differ.
bool tfos__token_matches(const char *token, const char expected[TFOS__TOKEN_SIZE]);

#endif
