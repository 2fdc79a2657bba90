// SPDX-License-Identifier: Apache-2.0
/// Java's exceptions as failures of the library.
#ifndef TFOS_IO_JAVA_EXCEPTION_H
#define TFOS_IO_JAVA_EXCEPTION_H

#include <stdbool.h>
#include <tfos/status.h>

#include "io/jni.h"

/// Finds what check() calls. False with an exception. Once, before others call.
bool tfos__io_java_exceptions_find(struct tfos__jni *env);

/// OK, or, where there is an exception, the failure that it means, `hadoop: ` with the words
/// of `format` and the cause; it is cleared.
enum tfos_status tfos__io_java_check(struct tfos__jni *env, struct tfos_error *err,
                                     const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
