// SPDX-License-Identifier: Apache-2.0
/// Statuses and errors. Every function that can fail returns an enum tfos_status and takes a
/// struct tfos_error as its last parameter. 0 is done, a positive value is a normal other outcome,
/// a negative value has failed; outputs are written only when the result says so. Thread-safe.
#ifndef TFOS_STATUS_H
#define TFOS_STATUS_H

#include <tfos/export.h>

/// The list of statuses: name, value, text. Values never change. The Python exceptions come from
/// it.
#define TFOS_STATUS_MAP(X)                                                                         \
    X(OK, 0, "success")                                                                            \
    X(END, 1, "no more data")                                                                      \
    X(AGAIN, 2, "not ready yet")                                                                   \
    X(INVALID, -1, "invalid argument or state")                                                    \
    X(NO_MEMORY, -2, "out of memory")                                                              \
    X(IO, -3, "input/output error")                                                                \
    X(NOT_FOUND, -4, "not found")                                                                  \
    X(CORRUPT, -5, "corrupt data")                                                                 \
    X(DENIED, -6, "authentication failed")                                                         \
    X(TIMEOUT, -7, "timed out")                                                                    \
    X(CLOSED, -8, "peer closed")                                                                   \
    X(BUSY, -9, "resource busy")                                                                   \
    X(UNSUPPORTED, -10, "not available on this machine")

enum tfos_status {
#define X(name, value, text) TFOS_##name = value,
    TFOS_STATUS_MAP(X)
#undef X
};

/// What went wrong, as a message: `module: what failed: the cause`. The caller owns it; NULL is
/// accepted wherever one is asked for. It is written only by a call that returns a negative status.
struct tfos_error {
    int os_errno;       ///< errno of the system call that failed, or 0
    char message[4092]; ///< UTF-8, always terminated
};

/// The name of a status ("TIMEOUT"), or "UNKNOWN"; static storage.
TFOS_API const char *tfos_status_name(enum tfos_status status);

/// The text of a status ("timed out"), or "unknown status"; static storage.
TFOS_API const char *tfos_status_text(enum tfos_status status);

#endif
