// SPDX-License-Identifier: Apache-2.0
#include "record_sources.h"

#include "allocation.h"
#include "commands.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static void keep(struct sources *sources, const char *name)
{
    size_t size = strlen(name) + 1;
    if (sources->count == sources->capacity) {
        int capacity = 2 * sources->capacity + 16;
        char **names = allocate((size_t)capacity, sizeof *names);
        if (sources->count > 0)
            memcpy(names, sources->names, (size_t)sources->count * sizeof *names);
        free(sources->names);
        sources->names = names;
        sources->capacity = capacity;
    }
    sources->names[sources->count] = allocate(size, 1);
    memcpy(sources->names[sources->count++], name, size);
}

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

// How many entries of the folder a shell sees by `*`; -1 where it cannot be read.
static long count_entries(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    long count = 0;
    if (!folder)
        return -1;
    while ((entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

// Whether the first `count` arguments have all of what is in the folder of `name`, as a shell makes
// them of FOLDER/*, and some of it is not hidden.
static bool is_of_whole_folder(const struct record_options *options, int count, const char *name)
{
    size_t size = (size_t)(base_of(name) - name);
    long named = 0, seen = 0;
    char *folder = allocate(size + 2, 1);
    for (int i = 0; i < count; i++) {
        const char *base = base_of(options->files[i]);
        bool is_beside = (size_t)(base - options->files[i]) == size &&
                         strncmp(options->files[i], name, size) == 0;
        named += is_beside && base[0] != '.';
        seen += is_beside && !tfos_file_name_is_hidden(base);
    }
    memcpy(folder, size > 0 ? name : ".", size > 0 ? size : 1);
    bool is_whole = seen > 0 && count_entries(folder) == named;
    free(folder);
    return is_whole;
}

static int say_uri(const char *uri)
{
    fprintf(stderr,
            "tfos record: takes paths and \"-\", not %s: pipe it, as in \"hdfs dfs -cat FILE | "
            "tfos record count -\", or use tensorflowonspark.tfrecord or Spark; tfos record "
            "--help says how it is used\n",
            uri);
    return EXIT_USAGE;
}

// 0, or the exit status.
static int find_source(struct sources *sources, const char *name)
{
    struct tfos_error err;
    struct tfos_file_list *list = NULL;
    if (strcmp(name, "-") == 0) {
        keep(sources, name);
        return 0;
    }
    enum tfos_status status = tfos_file_list_find(name, NULL, &list, &err);
    if (status < 0)
        return status == TFOS_UNSUPPORTED ? say_uri(name) : say_error(&err);
    for (size_t i = 0; i < tfos_file_list_count(list); i++)
        keep(sources, tfos_file_list_get(list, i));
    tfos_file_list_close(list);
    return 0;
}

static int find_target(struct sources *sources, const char *name)
{
    struct tfos_error err;
    const char *path = NULL;
    if (tfos_file_name_get_new(name, &path, &err) < 0)
        return say_error(&err);
    if (!path)
        return say_uri(name);
    keep(sources, path);
    return 0;
}

int find_sources(struct sources *sources, struct record_options *options, int target_count)
{
    int count = options->file_count - target_count, status = 0;
    for (int i = 0; i < count && status != EXIT_USAGE && (status == 0 || target_count == 0); i++) {
        const char *name = options->files[i], *base = base_of(name);
        if (base[0] != '.' && tfos_file_name_is_hidden(base) &&
            is_of_whole_folder(options, count, name)) {
            fprintf(stderr, "tfos: %s is passed over, as Spark does: name it alone to read it\n",
                    name);
            continue;
        }
        status = find_source(sources, name);
        sources->has_failed |= status != 0;
    }
    if (target_count == 0 && sources->count > 0 && status != EXIT_USAGE)
        status = 0;
    if (status == 0 && target_count > 0)
        status = find_target(sources, options->files[count]);
    options->files = (const char *const *)sources->names;
    options->file_count = sources->count;
    return status;
}

void clear_sources(struct sources *sources)
{
    for (int i = 0; i < sources->count; i++)
        free(sources->names[i]);
    free(sources->names);
}
