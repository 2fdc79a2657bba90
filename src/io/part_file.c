// SPDX-License-Identifier: Apache-2.0
// The hour is for a writer that has closed its part and has yet to rename it. It is measured by the
// clock of the file system, which has just given `own` its time.
#include "io/part_file.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <tfos/file_list.h>

#include "base/clock.h"
#include "base/memory.h"

#define NAME_SIZE 200 // of a name that has no more than 255 bytes with what is added
#define MARK ".part"
#define DIGITS 16
#define HOUR_MS (3600 * 1000)
#define MOST_ENTRIES 4000 // of a folder that are looked at; HDFS lists hidden names first
#define MOST_PARTS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *last_folder; // that was cleaned
static int64_t last_end;  // of the hour for it

// The size of the folder's name in a path, with the slash behind it.
static size_t folder_size(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name + 1) : 0;
}

char *tfos__io_part_make_name(const char *name)
{
    uint64_t number = 0;
    size_t size = folder_size(name);
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return NULL;
    return tfos__format("%.*s.%.*s" MARK "%016" PRIx64, (int)size, name, NAME_SIZE, name + size,
                        number);
}

bool tfos_file_name_is_part(const char *name)
{
    size_t size = strlen(name), added = sizeof(MARK) - 1 + DIGITS;
    const char *mark = size > added ? name + size - added : "";
    return name[0] == '.' && strncmp(mark, MARK, sizeof(MARK) - 1) == 0 &&
           strspn(mark + sizeof(MARK) - 1, "0123456789abcdef") == DIGITS;
}

// Whether it is time to look into a folder.
static bool is_due(const char *folder)
{
    bool is_same, is_due;
    pthread_mutex_lock(&lock);
    is_same = last_folder && strcmp(last_folder, folder) == 0;
    is_due = !is_same || tfos__remaining_ms(last_end) == 0;
    if (!is_same) {
        tfos__free(last_folder);
        last_folder = tfos__strdup(folder);
    }
    if (is_due)
        last_end = tfos__deadline(HOUR_MS);
    pthread_mutex_unlock(&lock);
    return is_due;
}

struct parts {
    char *names[MOST_PARTS];
    size_t count, entry_count;
};

static enum tfos_status take(void *entries, const char *name, const struct tfos_file_info *info,
                             struct tfos_error *err)
{
    struct parts *parts = entries;
    (void)err;
    if (info->kind == TFOS_FILE_REGULAR && tfos_file_name_is_part(name)) {
        parts->names[parts->count] = tfos__strdup(name);
        parts->count += parts->names[parts->count] != NULL;
    }
    parts->entry_count++;
    return parts->count < MOST_PARTS && parts->entry_count < MOST_ENTRIES ? TFOS_OK : TFOS_END;
}

static bool is_old(struct tfos_file_system *system, const char *part, int64_t now_ms)
{
    struct tfos_file_info info;
    return system->look(system, part, &info, NULL) == TFOS_OK && info.kind == TFOS_FILE_REGULAR &&
           now_ms - info.modified_ms > HOUR_MS;
}

void tfos__io_parts_clean(const char *own, tfos__io_part_check *is_abandoned)
{
    struct tfos_file_system *system = tfos_file_system_of(own);
    struct tfos_file_info info;
    struct parts parts = {0};
    size_t size = folder_size(own);
    char *folder = size > 0 ? tfos__format("%.*s", (int)size, own) : tfos__strdup("./");
    if (folder && is_due(folder) && system->look(system, own, &info, NULL) == TFOS_OK)
        (void)system->list(system, folder, take, &parts, NULL);
    for (size_t i = 0; i < parts.count; i++) {
        char *part = tfos__format("%s%s", folder, parts.names[i]);
        if (part && is_old(system, part, info.modified_ms) && is_abandoned(part))
            (void)system->remove(system, part, false, NULL);
        tfos__free(part);
        tfos__free(parts.names[i]);
    }
    tfos__free(folder);
}
