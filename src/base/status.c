// SPDX-License-Identifier: Apache-2.0
// Names and texts of statuses, and the writing of error messages. A message that is too long is cut
// between characters, so that it stays valid UTF-8 on its way into JSON and Python.
#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tfos/version.h>

const char *tfos_version(void)
{
    return TFOS_VERSION;
}

const char *tfos_status_name(enum tfos_status status)
{
    switch (status) {
#define X(name, value, text)                                                                       \
    case TFOS_##name:                                                                              \
        return #name;
        TFOS_STATUS_MAP(X)
#undef X
    }
    return "UNKNOWN";
}

const char *tfos_status_text(enum tfos_status status)
{
    switch (status) {
#define X(name, value, text)                                                                       \
    case TFOS_##name:                                                                              \
        return text;
        TFOS_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

// Drops an UTF-8 sequence that the end of the message has cut off.
static void trim_cut_character(char *message, size_t size)
{
    size_t lead = size;
    while (lead > 0 && size - lead < 4 && ((unsigned char)message[lead - 1] & 0xC0) == 0x80)
        lead--;
    if (lead == 0)
        return;
    unsigned char first = (unsigned char)message[lead - 1];
    size_t expected = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    if (size - (lead - 1) < expected)
        message[lead - 1] = '\0';
}

static void write_message(struct tfos_error *err, const char *format, va_list arguments)
{
    int size = vsnprintf(err->message, sizeof err->message, format, arguments);
    if (size < 0)
        err->message[0] = '\0';
    else if ((size_t)size >= sizeof err->message)
        trim_cut_character(err->message, sizeof err->message - 1);
}

static void append_text(struct tfos_error *err, const char *text)
{
    size_t size = strlen(err->message);
    size_t room = sizeof err->message - size;
    if ((size_t)snprintf(err->message + size, room, "%s", text) >= room)
        trim_cut_character(err->message, sizeof err->message - 1);
}

enum tfos_status tfos__fail(struct tfos_error *err, enum tfos_status status, const char *format,
                            ...)
{
    if (!err)
        return status;
    va_list arguments;
    va_start(arguments, format);
    write_message(err, format, arguments);
    va_end(arguments);
    err->os_errno = 0;
    return status;
}

enum tfos_status tfos__fail_errno(struct tfos_error *err, enum tfos_status status,
                                  const char *format, ...)
{
    int os_errno = errno;
    if (!err)
        return status;
    va_list arguments;
    va_start(arguments, format);
    write_message(err, format, arguments);
    va_end(arguments);
    err->os_errno = os_errno;
    char text[128];
    append_text(err, ": ");
    append_text(err, strerror_r(os_errno, text, sizeof text));
    return status;
}

void tfos__fail_prefix(struct tfos_error *err, const char *format, ...)
{
    if (!err)
        return;
    struct tfos_error old = *err;
    va_list arguments;
    va_start(arguments, format);
    write_message(err, format, arguments);
    va_end(arguments);
    append_text(err, ": ");
    append_text(err, old.message);
}
