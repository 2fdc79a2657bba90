// SPDX-License-Identifier: Apache-2.0
// Patterns match character by character; after a `*` that took too little, matching goes on there
// with one character more.
#include "io/file_pattern.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

// Bytes of the character at `text`.
static size_t character_size(const char *text)
{
    size_t size = 1;
    while (size < 4 && ((unsigned char)text[size] & 0xC0) == 0x80)
        size++;
    return tfos__text_is_utf8(text, size) ? size : 1;
}

// Characters in the order of Unicode: UTF-8 keeps it.
static int compare(const char *left, size_t left_size, const char *right, size_t right_size)
{
    int order = memcmp(left, right, left_size < right_size ? left_size : right_size);
    return order != 0 ? order : (left_size > right_size) - (left_size < right_size);
}

const char *tfos__io_pattern_find(const char *name)
{
    return name + strcspn(name, "*?[{\\");
}

// Behind the bracket that closes the class at `at`, or NULL.
static const char *class_end(const char *at, const char *end)
{
    const char *first = at + 1;
    if (first < end && (*first == '!' || *first == '^'))
        first++;
    for (const char *next = first; next < end; next++) {
        if (*next == ']' && next > first)
            return next + 1;
        if (*next == '\\')
            next++;
    }
    return NULL;
}

// Whether a character is in the class from `at`, its opening bracket, to `end`, behind its closing.
static bool is_in_class(const char *at, const char *end, const char *name, size_t size)
{
    bool is_negated = at[1] == '!' || at[1] == '^', is_found = false;
    at += is_negated ? 2 : 1;
    end--;
    while (at < end) {
        if (*at == '\\' && at + 1 < end)
            at++;
        size_t low_size = character_size(at), high_size = low_size;
        const char *low = at, *high = at;
        at += low_size;
        if (at + 1 < end && *at == '-') {
            high = at + 1;
            high_size = character_size(high);
            at = high + high_size;
        }
        is_found |=
            compare(low, low_size, name, size) <= 0 && compare(name, size, high, high_size) <= 0;
    }
    return is_found != is_negated;
}

// Matches one character of a name; `*at` is moved behind what matched it.
static bool match_one(const char **at, const char *end, const char *name, size_t size)
{
    const char *pattern = *at, *behind = *pattern == '[' ? class_end(pattern, end) : NULL;
    if (*pattern == '?' || behind) {
        *at = behind ? behind : pattern + 1;
        return !behind || is_in_class(pattern, behind, name, size);
    }
    if (*pattern == '\\' && pattern + 1 < end)
        pattern++;
    *at = pattern + size;
    return (size_t)(end - pattern) >= size && memcmp(pattern, name, size) == 0;
}

bool tfos__io_pattern_matches(const char *pattern, size_t size, const char *name)
{
    const char *end = pattern + size, *star = NULL, *retry = NULL;
    while (*name != '\0') {
        const char *next = pattern;
        size_t width = character_size(name);
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (pattern < end && match_one(&next, end, name, width)) {
            pattern = next;
            name += width;
        } else if (star) {
            pattern = star;
            retry += character_size(retry);
            name = retry;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

// The bracket that closes the group at `open`, or NULL.
static const char *find_close(const char *open)
{
    int depth = 0;
    for (const char *at = open; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        else if (*at == '{')
            depth++;
        else if (*at == '}' && --depth == 0)
            return at;
    }
    return NULL;
}

bool tfos__io_braces_find(const char *text, const char *end, struct tfos__io_braces *braces)
{
    for (const char *at = text; at < end; at++) {
        if (*at == '\\') {
            at++;
        } else if (*at == '{') {
            const char *close = find_close(at);
            if (close) {
                *braces = (struct tfos__io_braces){at, close};
                return true;
            }
        }
    }
    return false;
}

const char *tfos__io_braces_end(const struct tfos__io_braces *braces, const char *at)
{
    int depth = 0;
    for (; at < braces->close; at++) {
        if (*at == '\\')
            at++;
        else if (*at == '{')
            depth++;
        else if (*at == '}')
            depth--;
        else if (*at == ',' && depth == 0)
            return at;
    }
    return braces->close;
}
