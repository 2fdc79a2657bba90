// SPDX-License-Identifier: Apache-2.0
#include "dataset/recipe.h"

#include <string.h>

#include "arrow/arrow.h"
#include "base/fail.h"
#include "base/memory.h"
#include "record/record.h"

static enum tfos_status copy_paths(struct tfos__recipe *recipe,
                                   const struct tfos_record_dataset_options *options,
                                   struct tfos_error *err)
{
    recipe->paths = tfos__alloc((size_t)options->path_count, sizeof *recipe->paths);
    if (!recipe->paths)
        return tfos__no_memory(err, "dataset", "files");
    for (; recipe->path_count < options->path_count; recipe->path_count++) {
        const char *path = options->paths[recipe->path_count], *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        char *copy = tfos__strdup(path);
        if (!copy)
            return tfos__no_memory(err, "dataset", "files");
        recipe->paths[recipe->path_count] = copy;
        recipe->names_checksum =
            tfos__record_crc32c(recipe->names_checksum, name, strlen(name) + 1);
    }
    return TFOS_OK;
}

enum tfos_status tfos__recipe_open(const struct tfos_record_dataset_options *options,
                                   const struct tfos_example_reader_options *reading,
                                   struct tfos__recipe **out, struct tfos_error *err)
{
    struct tfos__recipe *recipe = tfos__alloc(1, sizeof *recipe);
    if (!recipe)
        return tfos__no_memory(err, "dataset", "files");
    pthread_mutex_init(&recipe->mutex, NULL);
    atomic_init(&recipe->holders, 1);
    recipe->reading = *reading;
    enum tfos_status status = copy_paths(recipe, options, err);
    if (status == TFOS_OK)
        status = tfos_arrow_schema_copy(options->schema, &recipe->schema, err);
    if (status < 0)
        tfos__recipe_release(recipe);
    else
        *out = recipe;
    return status;
}

void tfos__recipe_hold(struct tfos__recipe *recipe)
{
    atomic_fetch_add(&recipe->holders, 1);
}

void tfos__recipe_release(struct tfos__recipe *recipe)
{
    if (!recipe || atomic_fetch_sub(&recipe->holders, 1) > 1)
        return;
    tfos__arrow_schema_release(&recipe->schema);
    for (int64_t i = 0; i < recipe->path_count; i++)
        tfos__free(recipe->paths[i]);
    tfos__free(recipe->paths);
    pthread_mutex_destroy(&recipe->mutex);
    tfos__free(recipe);
}

void tfos__recipe_count(struct tfos__recipe *recipe, struct tfos_record_counts counts)
{
    pthread_mutex_lock(&recipe->mutex);
    recipe->counts.records += counts.records;
    recipe->counts.bytes += counts.bytes;
    recipe->counts.damages += counts.damages;
    recipe->counts.skipped_bytes += counts.skipped_bytes;
    pthread_mutex_unlock(&recipe->mutex);
}
