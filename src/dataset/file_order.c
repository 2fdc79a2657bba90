// SPDX-License-Identifier: Apache-2.0
// Shards get as many whole files each; of the files that are left over, each shard reads every
// record, and keeps those whose turn it is. Files are dealt before they are shuffled, so that
// shards need not agree on a seed.
#include "dataset/file_order.h"

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/random.h"

static void deal(struct tfos__file_order *order)
{
    const struct tfos__recipe *recipe = order->recipe;
    int64_t index = order->pass.shard_index, count = order->pass.shard_count;
    int64_t whole = recipe->path_count - recipe->path_count % count;
    order->file_count = 0;
    for (int64_t i = 0; i < recipe->path_count; i++) {
        if (i >= whole)
            order->files[order->file_count++] = (struct tfos__file){recipe->paths[i], index, count};
        else if (i % count == index)
            order->files[order->file_count++] = (struct tfos__file){recipe->paths[i], 0, 1};
    }
}

static void shuffle(struct tfos__file_order *order)
{
    // Not the numbers by which rows are drawn.
    uint64_t state = ~order->pass.seed;
    for (int64_t i = order->file_count - 1; i > 0; i--) {
        int64_t place = (int64_t)(tfos__random_next(&state) % (uint64_t)(i + 1));
        struct tfos__file file = order->files[i];
        order->files[i] = order->files[place];
        order->files[place] = file;
    }
}

enum tfos_status tfos__file_order_init(struct tfos__file_order *order, struct tfos__recipe *recipe,
                                       const struct tfos_record_pass *pass, struct tfos_error *err)
{
    if (pass->shard_count < 0 || pass->shard_index < 0 ||
        (pass->shard_index > 0 && pass->shard_index >= pass->shard_count))
        return tfos__fail(err, TFOS_INVALID, "dataset: there is no shard %lld of %lld",
                          (long long)pass->shard_index, (long long)pass->shard_count);
    struct tfos__file *files = tfos__alloc((size_t)recipe->path_count, sizeof *files);
    if (!files)
        return tfos__no_memory(err, "dataset", "files");
    *order = (struct tfos__file_order){.recipe = recipe, .pass = *pass, .files = files};
    if (pass->shard_count == 0)
        order->pass.shard_count = 1;
    tfos__file_order_set_seed(order, pass->seed);
    return TFOS_OK;
}

void tfos__file_order_set_seed(struct tfos__file_order *order, uint64_t seed)
{
    order->pass.seed = seed;
    deal(order);
    if (order->pass.shuffle_files)
        shuffle(order);
}

void tfos__file_order_clear(struct tfos__file_order *order)
{
    tfos__free(order->files);
    *order = (struct tfos__file_order){0};
}
