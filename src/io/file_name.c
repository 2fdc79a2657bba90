// SPDX-License-Identifier: Apache-2.0
#include "io/file_name.h"

#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/memory.h"
#include "io/file_pattern.h"

static const char local_scheme[] = "file:";

bool tfos_file_name_is_hidden(const char *name)
{
    static const char copying[] = "._COPYING_"; // of a file that `hdfs dfs -put` still writes
    size_t size = strlen(name), copying_size = sizeof copying - 1;
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

static bool is_local(const char *name)
{
    return strncasecmp(name, local_scheme, sizeof local_scheme - 1) == 0;
}

enum tfos_status tfos__io_file_name_get_path(const char *name, const char **path,
                                             struct tfos_error *err)
{
    static const char host[] = "//localhost";
    size_t offset = tfos_file_name_path_offset(name);
    const char *behind = name + sizeof local_scheme - 1;
    if (offset == 0) {
        *path = name;
        return TFOS_OK;
    }
    if (!is_local(name))
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "files: %s is in another file system than this machine's", name);
    size_t size = (size_t)(name + offset - behind);
    if (size > 2 && (size != sizeof host - 1 || strncasecmp(behind, host, size) != 0))
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
    bool is_elsewhere = offset > 0 && !is_local(name);
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
