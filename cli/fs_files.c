// SPDX-License-Identifier: Apache-2.0
#include "fs_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "hadoop_jars.h"
#include "terminal.h"

int fs_refuse(const char *name, const char *cause)
{
    progress_end();
    fprintf(stderr, "tfos fs: %s: %s\n", name, cause);
    return 1;
}

int fs_look(const char *name, struct tfos_file_info *info)
{
    struct tfos_error err;
    struct tfos_file_system *system = tfos_file_system_of(name);
    find_hadoop(name);
    return system->look(system, name, info, &err) < 0 ? say_error(&err) : 0;
}

char *fs_join(const char *folder, const char *name)
{
    size_t size = strlen(folder), capacity = size + strlen(name) + 2;
    char *joined = allocate(capacity, 1);
    snprintf(joined, capacity, "%s%s%s", folder, size > 0 && folder[size - 1] != '/' ? "/" : "",
             name);
    return joined;
}

char *fs_base(const char *name)
{
    size_t end = strlen(name);
    while (end > 1 && name[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && name[begin - 1] != '/')
        begin--;
    return check_memory(strndup(name + begin, end - begin));
}

// Takes over the name.
static struct fs_file *add(struct fs_files *files, char *name)
{
    size_t count = files->count;
    if ((count & (count - 1)) == 0)
        files->items = check_memory(
            realloc(files->items, (count > 0 ? 2 * count : 1) * sizeof(*files->items)));
    files->items[count] = (struct fs_file){.name = name};
    return &files->items[files->count++];
}

int fs_files_match(struct fs_files *files, const char *name)
{
    struct tfos_error err;
    struct tfos_file_list *list = NULL;
    int status = 0;
    find_hadoop(name);
    if (tfos_file_list_match(name, &list, &err) < 0)
        return say_error(&err);
    for (size_t i = 0; i < tfos_file_list_count(list) && status == 0; i++) {
        struct fs_file *file = add(files, check_memory(strdup(tfos_file_list_get(list, i))));
        status = fs_look(file->name, &file->info);
    }
    tfos_file_list_close(list);
    return status;
}

struct listing {
    struct fs_files *files;
    const char *folder;
};

static enum tfos_status take(void *context, const char *name, const struct tfos_file_info *info,
                             struct tfos_error *err)
{
    const struct listing *listing = context;
    struct fs_file *file = add(listing->files, fs_join(listing->folder, name));
    struct tfos_file_system *system = tfos_file_system_of(file->name);
    file->info = *info;
    return info->has_details ? TFOS_OK : system->look(system, file->name, &file->info, err);
}

static int compare(const void *left, const void *right)
{
    return strcmp(((const struct fs_file *)left)->name, ((const struct fs_file *)right)->name);
}

int fs_files_list(struct fs_files *files, const char *folder)
{
    struct tfos_error err;
    struct tfos_file_system *system = tfos_file_system_of(folder);
    struct listing listing = {files, folder};
    size_t begin = files->count;
    enum tfos_status status = system->list(system, folder, take, &listing, &err);
    if (files->count > begin)
        qsort(files->items + begin, files->count - begin, sizeof(*files->items), compare);
    return status < 0 ? say_error(&err) : 0;
}

void fs_files_clear(struct fs_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].name);
    free(files->items);
    *files = (struct fs_files){0};
}
