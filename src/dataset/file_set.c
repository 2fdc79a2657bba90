// SPDX-License-Identifier: Apache-2.0
// Each shard reads the same number of whole files. The files that are left over are read by all
// shards: of a large plain file each reads a range of bytes, else each reads all and keeps the
// records that are its own. Files are assigned to shards before they are shuffled, so shards do not
// need the same seed.
#include "dataset/file_set.h"

#include <string.h>
#include <sys/stat.h>

#include "arrow/arrow.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "dataset/dataset_step_agreement.h"
#include "dataset/shuffle_buffer.h"
#include "record/record.h"

#define RANGE_SIZE (INT64_C(16) << 20) // bytes; the least that a shard reads of a file in ranges

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

static enum tfos_status copy_steps(struct tfos__dataset_file_set *set,
                                   const struct tfos_dataset_options *rows, struct tfos_error *err)
{
    char *name = tfos__strdup(rows->name ? rows->name : "");
    if (!name)
        return tfos__no_memory(err, "dataset", "files");
    set->steps = (struct tfos_dataset_options){.uneven = rows->uneven,
                                               .agree = rows->agree,
                                               .is_interrupted = rows->is_interrupted,
                                               .context = rows->context,
                                               .name = name};
    return TFOS_OK;
}

// Whether all nodes read the same files, of which each has a part.
static enum tfos_status compare_files(const struct tfos__dataset_file_set *set,
                                      struct tfos_error *err)
{
    json_t *value = json_pack("{s:I, s:I}", "files", (json_int_t)set->path_count, "names",
                              (json_int_t)set->names_checksum);
    json_t *values = NULL;
    char *name = tfos__format("dataset/%s/files", set->steps.name);
    enum tfos_status status = TFOS_OK;

    if (set->steps.uneven == TFOS_UNEVEN_IGNORE) {
        json_decref(value);
        tfos__free(name);
        return TFOS_OK;
    }
    TFOS__TRY(tfos__dataset_exchange(&set->steps, name, value, &values, err));
    for (size_t i = 0; i < json_array_size(values) && status == TFOS_OK; i++) {
        const json_t *other = json_array_get(values, i);
        int64_t count = tfos__json_int_or(other, "files", 0);
        if (count != set->path_count || tfos__json_int_or(other, "names", 0) != set->names_checksum)
            status = tfos__fail(err, TFOS_INVALID,
                                "dataset: nodes in step do not read the same files: this one has "
                                "%lld, another %lld%s; give all the same names in the same order",
                                (long long)set->path_count, (long long)count,
                                count == set->path_count ? " of other names or order" : "");
    }
    json_decref(values);
    return status;
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
    if (status == TFOS_OK)
        status = copy_steps(set, &options->rows, err);
    if (status == TFOS_OK)
        status = compare_files(set, err);
    if (status < 0) {
        tfos__dataset_file_set_release(set);
        return status;
    }
    set->steps.release = options->rows.release;
    *out = set;
    return TFOS_OK;
}

void tfos__dataset_file_set_release(struct tfos__dataset_file_set *set)
{
    if (!set || atomic_fetch_sub(&set->reference_count, 1) > 1)
        return;
    tfos__arrow_schema_release(&set->schema);
    for (int64_t i = 0; i < set->path_count; i++)
        tfos__free(set->paths[i]);
    tfos__free(set->paths);
    tfos__free((char *)(uintptr_t)set->steps.name);
    pthread_mutex_destroy(&set->mutex);
    void (*release)(void *) = set->steps.release;
    void *context = set->steps.context;
    tfos__free(set);
    if (release)
        release(context);
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

enum tfos_status tfos__dataset_file_order_set_range(const struct tfos__dataset_file_order *order,
                                                    struct tfos__dataset_file *file,
                                                    struct tfos_error *err)
{
    int64_t index = order->pass.shard_index, count = order->pass.shard_count;
    struct stat info;

    if (file->stride == 1 || stat(file->path, &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_size / count < RANGE_SIZE)
        return TFOS_OK;
    uint64_t size = (uint64_t)(info.st_size / count), begin = size * (uint64_t)index;
    if (index > 0 && !file->range_name) {
        file->range_name =
            tfos__format("%s, records from offset %llu on", file->path, (unsigned long long)begin);
        if (!file->range_name)
            return tfos__no_memory(err, "dataset", "files");
    }
    file->residue = 0;
    file->stride = 1;
    file->begin = begin;
    file->end = index + 1 < count ? begin + size : UINT64_MAX;
    return TFOS_OK;
}

void tfos__dataset_file_order_clear_range(const struct tfos__dataset_file_order *order,
                                          struct tfos__dataset_file *file)
{
    tfos__free(file->range_name);
    *file = (struct tfos__dataset_file){
        .path = file->path, .residue = order->pass.shard_index, .stride = order->pass.shard_count};
}

static void drop_files(struct tfos__dataset_file_order *order)
{
    for (int64_t i = 0; i < order->file_count; i++)
        tfos__free(order->files[i].range_name);
    order->file_count = 0;
}

static void assign_files(struct tfos__dataset_file_order *order)
{
    const struct tfos__dataset_file_set *set = order->set;
    int64_t index = order->pass.shard_index, count = order->pass.shard_count;
    int64_t whole = set->path_count - set->path_count % count;

    drop_files(order);
    for (int64_t i = 0; i < set->path_count; i++) {
        struct tfos__dataset_file *file = &order->files[order->file_count];
        if (i >= whole)
            *file = (struct tfos__dataset_file){set->paths[i], .residue = index, .stride = count};
        else if (i % count == index)
            *file = (struct tfos__dataset_file){set->paths[i], .stride = 1};
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
    drop_files(order);
    tfos__free(order->files);
    tfos__dataset_file_set_release(order->set);
    *order = (struct tfos__dataset_file_order){0};
}
