// SPDX-License-Identifier: Apache-2.0
/// The cluster's key as people and Spark carry it, 64 hexadecimal digits, and as TLS uses it.
#ifndef TFOS_CLUSTER_SECRET_H
#define TFOS_CLUSTER_SECRET_H

#include <tfos/status.h>

#include "base/channel.h"

/// Reads the digits of `text`. INVALID says what was expected, never what the key was; `module`
/// begins the message.
enum tfos_status tfos__secret_read(const char *text, const char *module,
                                   unsigned char key[TFOS__KEY_SIZE], struct tfos_error *err);

#endif
