// SPDX-License-Identifier: Apache-2.0
// A message that is too long is cut between characters, so that it stays valid UTF-8 on its way
// into JSON and Python.
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

// Drops a character of UTF-8 that the end of the message has cut off.
static void trim_cut_character(struct tfos__bounded_text *message)
{
    size_t lead = message->size;
    while (lead > 0 && message->size - lead < 4 &&
           ((unsigned char)message->data[lead - 1] & 0xC0) == 0x80)
        lead--;
    if (lead == 0)
        return;
    unsigned char first = (unsigned char)message->data[lead - 1];
    size_t expected = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    if (message->size - (lead - 1) < expected)
        message->size = lead - 1;
    message->data[message->size] = '\0';
}

void tfos__bounded_text_append_list(struct tfos__bounded_text *message, const char *format,
                                    va_list arguments)
{
    size_t room = message->capacity - message->size;
    int size = vsnprintf(message->data + message->size, room, format, arguments);
    if (size >= 0 && (size_t)size < room) {
        message->size += (size_t)size;
    } else if (size >= 0) {
        message->size = message->capacity - 1;
        trim_cut_character(message);
    } else {
        message->data[message->size] = '\0';
    }
}

void tfos__bounded_text_append(struct tfos__bounded_text *message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tfos__bounded_text_append_list(message, format, arguments);
    va_end(arguments);
}

static struct tfos__bounded_text message_of(struct tfos_error *err)
{
    return (struct tfos__bounded_text){.data = err->message, .capacity = sizeof(err->message)};
}

enum tfos_status tfos__fail(struct tfos_error *err, enum tfos_status status, const char *format,
                            ...)
{
    if (!err)
        return status;
    struct tfos__bounded_text message = message_of(err);
    va_list arguments;
    va_start(arguments, format);
    tfos__bounded_text_append_list(&message, format, arguments);
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
    struct tfos__bounded_text message = message_of(err);
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    tfos__bounded_text_append_list(&message, format, arguments);
    va_end(arguments);
    tfos__bounded_text_append(&message, ": %s", strerror_r(os_errno, text, sizeof(text)));
    err->os_errno = os_errno;
    return status;
}

static void prefix(struct tfos_error *err, const char *format, va_list arguments)
{
    struct tfos_error old = *err;
    struct tfos__bounded_text message = message_of(err);
    tfos__bounded_text_append_list(&message, format, arguments);
    tfos__bounded_text_append(&message, ": %s", old.message);
}

void tfos__fail_prefix(struct tfos_error *err, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (err)
        prefix(err, format, arguments);
    va_end(arguments);
}

enum tfos_status tfos__fail_in(struct tfos_error *err, enum tfos_status status, const char *format,
                               ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (err && status < 0)
        prefix(err, format, arguments);
    va_end(arguments);
    return status;
}
