// SPDX-License-Identifier: Apache-2.0
// Patterns match character by character; after a `*` that took too little, matching resumes
// there with one character more.
#include "io/file_name.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"

// ---- names

static const char local_scheme[] = "file:";

bool tfos_file_name_is_hidden(const char *name)
{
    static const char copying[] = "._COPYING_"; // of a file that `hdfs dfs -put` still writes
    size_t size = strlen(name), copying_size = sizeof(copying) - 1;
    if (name[0] == '.' || (name[0] == '_' && !strchr(name, '=')))
        return true;
    return size >= copying_size && strcmp(name + size - copying_size, copying) == 0;
}

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

size_t tfos_file_name_path_offset(const char *name)
{
    size_t size = 0;
    while (is_letter(name[size]) || (size > 0 && name[size] && strchr("0123456789+.-", name[size])))
        size++;
    if (size < 2 || name[size] != ':' || name[size + 1] != '/')
        return 0;
    size++;
    return name[size + 1] == '/' ? size + 2 + strcspn(name + size + 2, "/") : size;
}

size_t tfos_file_names_first(const char *names)
{
    size_t size = 0;
    int depth = 0;
    for (; names[size] != '\0' && (names[size] != ',' || depth > 0); size++)
        depth += (names[size] == '{') - (names[size] == '}' && depth > 0);
    return size;
}

bool tfos__io_file_name_is_local(const char *name)
{
    return strncasecmp(name, local_scheme, sizeof(local_scheme) - 1) == 0;
}

enum tfos_status tfos__io_file_name_get_path(const char *name, const char **path,
                                             struct tfos_error *err)
{
    static const char host[] = "//localhost";
    size_t offset = tfos_file_name_path_offset(name);
    const char *behind = name + sizeof(local_scheme) - 1;
    if (offset == 0) {
        *path = name;
        return TFOS_OK;
    }
    if (!tfos__io_file_name_is_local(name))
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "files: %s is in another file system than this machine's", name);
    size_t size = (size_t)(name + offset - behind);
    if (size > 2 && (size != sizeof(host) - 1 || strncasecmp(behind, host, size) != 0))
        return tfos__fail(err, TFOS_INVALID,
                          "files: %s names the host %.*s: files of this machine are file:///PATH, "
                          "with three slashes, or just /PATH",
                          name, (int)(size - 2), behind + 2);
    *path = name + offset;
    return TFOS_OK;
}

static int digit_of(char byte)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = byte ? strchr(digits, is_letter(byte) ? byte | 0x20 : byte) : NULL;
    return found ? (int)(found - digits) : -1;
}

// The character that is encoded at `text`, or -1.
static int encoded_at(const char *text)
{
    int high = *text == '%' ? digit_of(text[1]) : -1, low = high >= 0 ? digit_of(text[2]) : -1;
    int value = high * 16 + low;
    return low >= 0 && value > 0 ? value : -1;
}

bool tfos__io_file_name_is_encoded(const char *path)
{
    while ((path = strchr(path, '%')) && encoded_at(path) < 0)
        path++;
    return path != NULL;
}

char *tfos__io_file_name_decode(const char *name, size_t offset, bool is_pattern)
{
    size_t size = strlen(name), end = offset;
    char *decoded = tfos__alloc(2, size + 1);
    if (!decoded)
        return NULL;
    memcpy(decoded, name, offset);
    for (size_t at = offset; at < size; at++) {
        int value = encoded_at(name + at);
        const char text[] = {(char)value, '\0'};
        if (value >= 0 && is_pattern && *tfos__io_pattern_find(text) != '\0')
            decoded[end++] = '\\';
        decoded[end++] = value >= 0 ? (char)value : name[at];
        at += value >= 0 ? 2 : 0;
    }
    return decoded;
}

enum tfos_status tfos_file_name_get_new(const char *name, const char **path, struct tfos_error *err)
{
    const char *found = NULL;
    size_t offset = tfos_file_name_path_offset(name);
    bool is_elsewhere = offset > 0 && !tfos__io_file_name_is_local(name);
    if (!is_elsewhere)
        TFOS__TRY(tfos__io_file_name_get_path(name, &found, err));
    if (offset > 0 && tfos__io_file_name_is_encoded(name + offset)) {
        char *other = tfos__io_file_name_decode(name, offset, false);
        if (!other)
            return tfos__no_memory(err, "files", name);
        tfos__fail(err, TFOS_INVALID,
                   "files: %s is %s if it is percent-encoded, and else a name with %%: %s", name,
                   other + offset,
                   is_elsewhere ? "open the file that you mean, and give the file object"
                                : "give the path without \"file:\"");
        tfos__free(other);
        return TFOS_INVALID;
    }
    *path = found;
    return TFOS_OK;
}

// ---- patterns

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
