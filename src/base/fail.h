// SPDX-License-Identifier: Apache-2.0
/// How errors are written: once, where the failure is decided, and returned unchanged.
#ifndef TFOS_BASE_FAIL_H
#define TFOS_BASE_FAIL_H

#include <stdarg.h>
#include <stddef.h>
#include <tfos/status.h>

/// Writes the message (printf form, `module: what failed: the cause`) into `err`, which may be
/// NULL, and returns `status`. os_errno becomes 0.
enum tfos_status tfos__fail(struct tfos_error *err, enum tfos_status status, const char *format,
                            ...) __attribute__((cold, format(printf, 3, 4)));

/// The same for a failed system call: saves errno and appends ": " and its text to the message.
enum tfos_status tfos__fail_errno(struct tfos_error *err, enum tfos_status status,
                                  const char *format, ...) __attribute__((format(printf, 3, 4)));

/// Puts "prefix: " before the message already in `err` (a caller adds which node, file or peer it
/// was).
void tfos__fail_prefix(struct tfos_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// The same for the outcome `status` of a call, which is returned: only failures get the prefix.
enum tfos_status tfos__fail_in(struct tfos_error *err, enum tfos_status status, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));

/// Text within `capacity` bytes, NUL included. What does not fit is cut between characters.
struct tfos__bounded_text {
    char *data; ///< borrowed
    size_t capacity, size;
};

void tfos__bounded_text_append(struct tfos__bounded_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tfos__bounded_text_append_list(struct tfos__bounded_text *text, const char *format,
                                    va_list arguments) __attribute__((format(printf, 2, 0)));

/// Returns a failure to the caller. After any other outcome the next statement runs.
#define TFOS__TRY(expression)                                                                      \
    do {                                                                                           \
        enum tfos_status tfos__try_status = (expression);                                          \
        if (tfos__try_status < 0)                                                                  \
            return tfos__try_status;                                                               \
    } while (0)

/// Passes on anything but OK.
#define TFOS__PASS(expression)                                                                     \
    do {                                                                                           \
        enum tfos_status tfos__pass_status = (expression);                                         \
        if (tfos__pass_status != TFOS_OK)                                                          \
            return tfos__pass_status;                                                              \
    } while (0)

#endif
