// SPDX-License-Identifier: Apache-2.0
/// Streams over Java's: C reads an org.tfos.ByteSource and writes an org.tfos.ByteSink, and so
/// whatever Hadoop's file systems reach. Java opens and closes the object; the C stream only
/// borrows it and is closed before.
///
/// A call may come from any thread of Java's, one at a time. An exception that Java throws stays
/// on its way: the call fails with IO, and so do all further ones until the native has returned to
/// Java, where the exception then comes out.
#ifndef TFOS_JNI_STREAM_H
#define TFOS_JNI_STREAM_H

#include <jni.h>
#include <stdbool.h>
#include <tfos/stream.h>

/// Looks up classes and methods, once, when the library is loaded. False with an exception.
bool tfos__jni_stream_load(JNIEnv *env);

/// A stream that reads from `source`, an org.tfos.ByteSource, where that stands. It can seek if the
/// source can. The caller owns `*out` and ends it with tfos_stream_close().
TFOS_MUST_CHECK enum tfos_status tfos__jni_stream_open_source(JNIEnv *env, jobject source,
                                                              struct tfos_stream **out,
                                                              struct tfos_error *err);

/// A stream that writes to `sink`, an org.tfos.ByteSink. Its finish() writes what is held back and
/// finishes the sink.
TFOS_MUST_CHECK enum tfos_status tfos__jni_stream_open_sink(JNIEnv *env, jobject sink,
                                                            struct tfos_stream **out,
                                                            struct tfos_error *err);

#endif
