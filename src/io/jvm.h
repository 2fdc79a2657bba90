// SPDX-License-Identifier: Apache-2.0
/// The JVM of this process: the one that is there, or one that is started with Hadoop's classes.
#ifndef TFOS_IO_JVM_H
#define TFOS_IO_JVM_H

#include <stdbool.h>
#include <stddef.h>
#include <tfos/status.h>

#include "io/jni.h"

/// Begins calls of the thread: starts the JVM if need be, attaches the thread until it ends, and
/// makes room for references, which live until leave(). INVALID: this process was forked from one
/// with a JVM. UNSUPPORTED: there is no Java or no Hadoop.
enum tfos_status tfos__io_jvm_enter(struct tfos__jni **env, struct tfos_error *err);
void tfos__io_jvm_leave(struct tfos__jni *env);

/// Whether this process has a JVM that may be called; false in one that was forked since.
bool tfos__io_jvm_is_here(void);

/// A class for good; NULL with an exception.
void *tfos__io_jvm_find_class(struct tfos__jni *env, const char *name);

/// A String of UTF-8; NULL with an exception.
void *tfos__io_jvm_make_string(struct tfos__jni *env, const char *text);

/// The text of a String, in UTF-8, for tfos__free(); NULL: the String is, memory is short, or there
/// is an exception.
char *tfos__io_jvm_get_text(struct tfos__jni *env, void *string);

#endif
