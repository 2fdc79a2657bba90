// SPDX-License-Identifier: Apache-2.0
// A name is taken as it is where something is there. Else the first part of it that is a pattern
// gives way to what it matches, and the same is done with each name that results.
#include <stdlib.h>
#include <string.h>
#include <tfos/file_list.h>

#include "base/fail.h"
#include "base/memory.h"
#include "io/file_name.h"
#include "io/local_files.h"

#define MOST_ALTERNATIVES 65536 // of braces

struct tfos_file_list {
    char **names; ///< owned, as each of them is
    size_t count;
};

struct finder {
    struct tfos_file_system *system;
    struct tfos_file_list *list;
    size_t hidden_count, folder_count; ///< entries that were skipped
    bool has_folder;                   ///< a folder was there
    bool takes_all;                    ///< folders themselves, and what is hidden, too
    size_t alternative_count;
};

// ---- the list

// Takes over `name`, which may be NULL: no memory.
static enum tfos_status keep(struct tfos_file_list *list, char *name, struct tfos_error *err)
{
    void *names = name ? tfos__array_grow(list->names, list->count, sizeof(*list->names)) : NULL;
    if (!names) {
        tfos__free(name);
        return tfos__no_memory(err, "files", "a list of files");
    }
    list->names = names;
    list->names[list->count++] = name;
    return TFOS_OK;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

// What two alternatives match is there once.
static void sort(struct tfos_file_list *list)
{
    size_t kept = 0;
    if (list->count > 1)
        qsort(list->names, list->count, sizeof(*list->names), compare_names);
    for (size_t i = 0; i < list->count; i++) {
        if (kept > 0 && strcmp(list->names[kept - 1], list->names[i]) == 0)
            tfos__free(list->names[i]);
        else
            list->names[kept++] = list->names[i];
    }
    list->count = kept;
}

// ---- finding

struct folder_entries {
    struct finder *finder;
    const char *folder;
};

static enum tfos_status add_entry(void *context, const char *name,
                                  const struct tfos_file_info *info, struct tfos_error *err)
{
    const struct folder_entries *entries = context;
    size_t size = strlen(entries->folder);
    const char *slash = size > 0 && entries->folder[size - 1] == '/' ? "" : "/";
    if (tfos_file_name_is_hidden(name)) {
        entries->finder->hidden_count++;
        return TFOS_OK;
    }
    entries->finder->folder_count += info->kind == TFOS_FILE_FOLDER;
    if (info->kind != TFOS_FILE_REGULAR)
        return TFOS_OK;
    return keep(entries->finder->list, tfos__format("%s%s%s", entries->folder, slash, name), err);
}

// Adds what is there under exactly this name.
static enum tfos_status add_name(struct finder *finder, const char *name, enum tfos_file_kind kind,
                                 struct tfos_error *err)
{
    struct folder_entries entries = {finder, name};
    finder->has_folder |= kind == TFOS_FILE_FOLDER;
    if (kind == TFOS_FILE_FOLDER && !finder->takes_all)
        return finder->system->list(finder->system, name, add_entry, &entries, err);
    return keep(finder->list, tfos__strdup(name), err);
}

static enum tfos_status resolve(struct finder *finder, const char *name, size_t settled,
                                struct tfos_error *err);

/// A part of a name that is a pattern, and what has matched it so far.
struct part {
    struct finder *finder;
    const char *name;
    size_t begin, end; ///< of the part
    struct tfos_file_list matches;
};

static enum tfos_status match_entry(void *context, const char *name,
                                    const struct tfos_file_info *info, struct tfos_error *err)
{
    struct part *part = context;
    bool is_last = part->name[part->end] == '\0';
    bool takes_it = is_last && part->finder->takes_all;
    if ((info->kind == TFOS_FILE_SPECIAL && !takes_it) ||
        (info->kind == TFOS_FILE_REGULAR && !is_last) ||
        !tfos__io_pattern_matches(part->name + part->begin, part->end - part->begin, name))
        return TFOS_OK;
    if (tfos_file_name_is_hidden(name) && !part->finder->takes_all) {
        part->finder->hidden_count++;
        return TFOS_OK;
    }
    char *whole =
        tfos__format("%.*s%s%s", (int)part->begin, part->name, name, part->name + part->end);
    if (takes_it || (is_last && info->kind == TFOS_FILE_REGULAR))
        return keep(part->finder->list, whole, err);
    return keep(&part->matches, whole, err);
}

static void clear_list(struct tfos_file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        tfos__free(list->names[i]);
    tfos__free(list->names);
}

// Puts in its place what the part of a name matches.
static enum tfos_status resolve_part(struct finder *finder, const char *name, size_t begin,
                                     size_t end, struct tfos_error *err)
{
    struct part part = {.finder = finder, .name = name, .begin = begin, .end = end};
    size_t tail = strlen(name + end);
    // "/" and "scheme://host/" keep their slash.
    bool is_root = begin <= tfos_file_name_path_offset(name) + 1;
    char *folder = tfos__format("%.*s", (int)(begin > 0 && !is_root ? begin - 1 : begin), name);
    enum tfos_status status =
        folder ? finder->system->list(finder->system, folder, match_entry, &part, err)
               : tfos__no_memory(err, "files", name);
    for (size_t i = 0; status == TFOS_OK && i < part.matches.count; i++) {
        const char *match = part.matches.names[i];
        status = resolve(finder, match, strlen(match) - tail, err);
    }
    clear_list(&part.matches);
    tfos__free(folder);
    return status;
}

// Puts each alternative of a group of braces in its place.
static enum tfos_status resolve_braces(struct finder *finder, const char *name,
                                       const struct tfos__io_braces *braces, size_t settled,
                                       struct tfos_error *err)
{
    const char *begin = braces->open, *end;
    do {
        begin++;
        end = tfos__io_braces_end(braces, begin);
        if (++finder->alternative_count > MOST_ALTERNATIVES)
            return tfos__fail(err, TFOS_INVALID,
                              "files: %s has more than %d alternatives in its braces", name,
                              MOST_ALTERNATIVES);
        char *alternative = tfos__format("%.*s%.*s%s", (int)(braces->open - name), name,
                                         (int)(end - begin), begin, braces->close + 1);
        enum tfos_status status = alternative ? resolve(finder, alternative, settled, err)
                                              : tfos__no_memory(err, "files", name);
        tfos__free(alternative);
        TFOS__TRY(status);
        begin = end;
    } while (end < braces->close);
    return TFOS_OK;
}

// Finds the files of a name of which the first `settled` bytes are no pattern.
static enum tfos_status resolve(struct finder *finder, const char *name, size_t settled,
                                struct tfos_error *err)
{
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    struct tfos__io_braces braces;
    TFOS__TRY(finder->system->look(finder->system, name, &info, err));
    if (info.kind != TFOS_FILE_NONE)
        return add_name(finder, name, info.kind, err);
    size_t begin = (size_t)(tfos__io_pattern_find(name + settled) - name);
    if (name[begin] == '\0')
        return TFOS_OK;
    size_t end = begin + strcspn(name + begin, "/");
    while (begin > settled && name[begin - 1] != '/')
        begin--;
    if (name[end] != '\0') {
        char *head = tfos__format("%.*s", (int)end, name);
        enum tfos_status status = head ? finder->system->look(finder->system, head, &info, err)
                                       : tfos__no_memory(err, "files", name);
        tfos__free(head);
        TFOS__TRY(status);
        if (info.kind != TFOS_FILE_NONE)
            return resolve(finder, name, end, err);
    }
    if (tfos__io_braces_find(name + begin, name + end, &braces))
        return resolve_braces(finder, name, &braces, begin, err);
    return resolve_part(finder, name, begin, end, err);
}

// The same for a name that may be percent-encoded.
static enum tfos_status resolve_encoded(struct finder *finder, const char *name, size_t offset,
                                        struct tfos_error *err)
{
    struct tfos_file_info info = {.kind = TFOS_FILE_NONE};
    char *decoded = tfos__io_file_name_decode(name, offset, false);
    char *pattern = tfos__io_file_name_decode(name, offset, true);
    enum tfos_status status = decoded && pattern
                                  ? finder->system->look(finder->system, decoded, &info, err)
                                  : tfos__no_memory(err, "files", name);
    size_t count = finder->list->count;
    if (status == TFOS_OK)
        status = info.kind == TFOS_FILE_NONE ? resolve(finder, pattern, offset, err)
                                             : add_name(finder, decoded, info.kind, err);
    if (status == TFOS_OK && count > 0 && finder->list->count > count)
        status = tfos__fail(err, TFOS_INVALID,
                            "files: both %s and, if it is percent-encoded, %s are there: %s", name,
                            decoded,
                            finder->system == &tfos__io_local_files
                                ? "give the path without \"file:\""
                                : "open the one that you mean, and give the file object");
    tfos__free(pattern);
    tfos__free(decoded);
    return status;
}

static enum tfos_status fail_missing(const struct finder *finder, const char *name,
                                     struct tfos_error *err)
{
    const char *detail = "";
    if (finder->takes_all)
        return tfos__fail(err, TFOS_NOT_FOUND, "files: there is nothing at %s", name);
    if (finder->folder_count > 0)
        detail = ", only folders: a pattern reads what is in them, such as FOLDER/*";
    else if (finder->hidden_count > 0)
        detail = " but hidden ones, whose names begin with _ or .: name one exactly to read it";
    return tfos__fail(err, TFOS_NOT_FOUND, "files: there is no file in or for %s%s", name, detail);
}

static enum tfos_status find(struct finder *finder, const char *name, const char *path,
                             struct tfos_error *err)
{
    size_t offset = path == name ? tfos_file_name_path_offset(name) : 0;
    bool is_uri = path != name || offset > 0;
    TFOS__TRY(resolve(finder, path, offset, err));
    if (is_uri && tfos__io_file_name_is_encoded(path + offset))
        TFOS__TRY(resolve_encoded(finder, path, offset, err));
    bool is_pattern = *tfos__io_pattern_find(path + offset) != '\0';
    if (finder->list->count == 0 && (is_pattern || finder->has_folder || finder->takes_all ||
                                     finder->system != &tfos__io_local_files))
        return fail_missing(finder, name, err);
    if (finder->list->count == 0)
        return keep(finder->list, tfos__strdup(path), err);
    sort(finder->list);
    return TFOS_OK;
}

static enum tfos_status find_in(struct tfos_file_system *system, const char *name, bool takes_all,
                                struct tfos_file_list **out, struct tfos_error *err)
{
    const char *path = name;
    struct finder finder = {.system = system, .takes_all = takes_all};
    if (finder.system == &tfos__io_local_files)
        TFOS__TRY(tfos__io_file_name_get_path(name, &path, err));
    finder.list = tfos__alloc(1, sizeof(*finder.list));
    if (!finder.list)
        return tfos__no_memory(err, "files", name);
    enum tfos_status status = find(&finder, name, path, err);
    if (status < 0)
        tfos_file_list_close(finder.list);
    else
        *out = finder.list;
    return status;
}

enum tfos_status tfos_file_list_find(const char *name, struct tfos_file_system *system,
                                     struct tfos_file_list **out, struct tfos_error *err)
{
    return find_in(system ? system : tfos_file_system_of(name), name, false, out, err);
}

enum tfos_status tfos_file_list_match(const char *name, struct tfos_file_list **out,
                                      struct tfos_error *err)
{
    return find_in(tfos_file_system_of(name), name, true, out, err);
}

size_t tfos_file_list_count(const struct tfos_file_list *list)
{
    return list->count;
}

const char *tfos_file_list_get(const struct tfos_file_list *list, size_t index)
{
    return list->names[index];
}

void tfos_file_list_close(struct tfos_file_list *list)
{
    if (!list)
        return;
    clear_list(list);
    tfos__free(list);
}
