// SPDX-License-Identifier: Apache-2.0
/// Java's exceptions as failures of the library.
#ifndef TFOS_IO_JAVA_EXCEPTION_H
#define TFOS_IO_JAVA_EXCEPTION_H

#include <stdbool.h>
#include <tfos/status.h>

#include "io/jni.h"

/// Finds what explain() calls. False with an exception. Once, before others call.
bool tfos__io_java_exceptions_find(struct tfos__jni *env);

/// The failure that an exception, which is no longer pending, stands for: `hadoop: what: the
/// cause`.
enum tfos_status tfos__io_java_exception_explain(struct tfos__jni *env, void *exception,
                                                 const char *what, struct tfos_error *err);

#endif
