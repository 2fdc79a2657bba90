// SPDX-License-Identifier: Apache-2.0
// Each shard reads the same number of whole files. The files that are left over are read by all
// shards, and each keeps the records that are its own. Files are assigned to shards before they are
// shuffled, so shards do not need the same seed.
#include "dataset/file_set.h"

#include <string.h>

#include "arrow/arrow.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/shuffle_buffer.h"
#include "record/record.h"

static enum tfos_status copy_paths(struct tfos__dataset_file_set *set,
                                   const struct tfos_record_dataset_options *options,
                                   struct tfos_error *err)
{
    set->paths = tfos__alloc((size_t)options->path_count, sizeof(*set->paths));
    if (!set->paths)
        return tfos__no_memory(err, "dataset", "files");
    for (; set->path_count < options->path_count; set->path_count++) {
        const char *path = options->paths[set->path_count], *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        char *copy = tfos__strdup(path);
        if (!copy)
            return tfos__no_memory(err, "dataset", "files");
        set->paths[set->path_count] = copy;
        set->names_checksum = tfos__record_crc32c(set->names_checksum, name, strlen(name) + 1);
    }
    return TFOS_OK;
}

enum tfos_status tfos__dataset_file_set_open(const struct tfos_record_dataset_options *options,
                                             const struct tfos_example_reader_options *reading,
                                             struct tfos__dataset_file_set **out,
                                             struct tfos_error *err)
{
    struct tfos__dataset_file_set *set = tfos__alloc(1, sizeof(*set));

    if (!set)
        return tfos__no_memory(err, "dataset", "files");
    pthread_mutex_init(&set->mutex, NULL);
    atomic_init(&set->reference_count, 1);
    set->reading = *reading;
    enum tfos_status status = copy_paths(set, options, err);
    if (status == TFOS_OK)
        status = tfos_arrow_schema_copy(options->schema, &set->schema, err);
    if (status < 0)
        tfos__dataset_file_set_release(set);
    else
        *out = set;
    return status;
}

void tfos__dataset_file_set_release(struct tfos__dataset_file_set *set)
{
    if (!set || atomic_fetch_sub(&set->reference_count, 1) > 1)
        return;
    tfos__arrow_schema_release(&set->schema);
    for (int64_t i = 0; i < set->path_count; i++)
        tfos__free(set->paths[i]);
    tfos__free(set->paths);
    pthread_mutex_destroy(&set->mutex);
    tfos__free(set);
}

void tfos__dataset_file_set_count(struct tfos__dataset_file_set *set,
                                  struct tfos_record_counts counts)
{
    pthread_mutex_lock(&set->mutex);
    set->counts.records += counts.records;
    set->counts.bytes += counts.bytes;
    set->counts.damages += counts.damages;
    set->counts.skipped_bytes += counts.skipped_bytes;
    pthread_mutex_unlock(&set->mutex);
}

enum tfos_status tfos__dataset_file_order_init(struct tfos__dataset_file_order *order,
                                               struct tfos__dataset_file_set *set,
                                               const struct tfos_record_pass *pass,
                                               struct tfos_error *err)
{
    if (pass->shard_count < 0 || pass->shard_index < 0 ||
        (pass->shard_index > 0 && pass->shard_index >= pass->shard_count))
        return tfos__fail(err, TFOS_INVALID, "dataset: there is no shard %lld of %lld",
                          (long long)pass->shard_index, (long long)pass->shard_count);
    struct tfos__dataset_file *files = tfos__alloc((size_t)set->path_count, sizeof(*files));
    if (!files)
        return tfos__no_memory(err, "dataset", "files");
    atomic_fetch_add(&set->reference_count, 1);
    *order = (struct tfos__dataset_file_order){.set = set, .pass = *pass, .files = files};
    if (pass->shard_count == 0)
        order->pass.shard_count = 1;
    tfos__dataset_file_order_set_seed(order, pass->seed);
    return TFOS_OK;
}

static void assign_files(struct tfos__dataset_file_order *order)
{
    const struct tfos__dataset_file_set *set = order->set;
    int64_t index = order->pass.shard_index, count = order->pass.shard_count;
    int64_t whole = set->path_count - set->path_count % count;

    order->file_count = 0;
    for (int64_t i = 0; i < set->path_count; i++) {
        struct tfos__dataset_file *file = &order->files[order->file_count];
        if (i >= whole)
            *file = (struct tfos__dataset_file){set->paths[i], index, count};
        else if (i % count == index)
            *file = (struct tfos__dataset_file){set->paths[i], 0, 1};
        else
            continue;
        order->file_count++;
    }
}

static void shuffle(struct tfos__dataset_file_order *order)
{
    uint64_t state = ~order->pass.seed; // other numbers than those by which rows are drawn

    for (int64_t i = order->file_count - 1; i > 0; i--) {
        int64_t other = (int64_t)(tfos__dataset_random_next(&state) % (uint64_t)(i + 1));
        struct tfos__dataset_file file = order->files[i];
        order->files[i] = order->files[other];
        order->files[other] = file;
    }
}

void tfos__dataset_file_order_set_seed(struct tfos__dataset_file_order *order, uint64_t seed)
{
    order->pass.seed = seed;
    assign_files(order);
    if (order->pass.shuffle_files)
        shuffle(order);
}

void tfos__dataset_file_order_clear(struct tfos__dataset_file_order *order)
{
    tfos__free(order->files);
    tfos__dataset_file_set_release(order->set);
    *order = (struct tfos__dataset_file_order){0};
}
