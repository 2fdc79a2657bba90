// SPDX-License-Identifier: Apache-2.0
/// Python's file objects as streams of the library. It calls them from whichever thread it works
/// in, with the GIL taken for the call; what they raise is kept for who raises the library's error.
#ifndef TFOS_PYTHON_FILE_OBJECT_H
#define TFOS_PYTHON_FILE_OBJECT_H

#include <Python.h>

#include <tfos/stream.h>

/// Makes a stream of `file`, a binary file object that is open: for reading, by readinto() or
/// read(), and seek() where seekable() is true; for writing, by write() and, at the end, flush().
/// It stays open and is kept until the stream is closed; `path` is its name, for messages, and
/// copied. Where `file` is None, the file at `path` is opened. The first exception of the file
/// object is put into `*failure`, which must outlive the stream. The caller holds the GIL. NULL
/// with an exception. tfos_stream_close() with the GIL or without.
struct tfos_stream *tfos__py_file_object_open_reader(PyObject *file, const char *path,
                                                     PyObject **failure);
struct tfos_stream *tfos__py_file_object_open_writer(PyObject *file, const char *path,
                                                     PyObject **failure);

#endif
