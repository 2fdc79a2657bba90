// SPDX-License-Identifier: Apache-2.0
// A dataset of files is a dataset like that of a feed, whose rows come from a source of files.
#include <tfos/record_dataset.h>

#include "base/fail.h"
#include "dataset/file_source.h"
#include "dataset/state.h"

#define SHUFFLED_ROWS 1024     // of a batch that is read, where rows are drawn one by one
#define READ_SIZE (64ll << 20) // bytes of such a batch, about

// The schema is known before the first row.
static enum tfos_status describe(void *context, int64_t feed, int64_t timeout_ms,
                                 struct ArrowSchema *schema, struct tfos_error *err)
{
    (void)feed;
    (void)timeout_ms;
    return tfos_arrow_schema_copy(&tfos__file_source_order(context)->recipe->schema, schema, err);
}

static enum tfos_status open_pass(struct tfos__recipe *recipe, const struct tfos_record_pass *pass,
                                  const struct tfos_dataset_options *rows,
                                  const struct tfos_dataset *like, struct tfos_dataset **out,
                                  struct tfos_error *err)
{
    struct tfos__file_source *source = NULL;
    TFOS__TRY(tfos__file_source_open(recipe, pass, &source, err));
    struct tfos_dataset_options options = {
        .batch_size = rows->batch_size,
        .drop_remainder = rows->drop_remainder,
        .shuffle_rows = rows->shuffle_rows,
        .seed = pass->seed,
        .columns = rows->columns,
        .column_count = rows->column_count,
        .null_value = rows->null_value,
        .selection = rows->selection,
        .selection_count = rows->selection_count,
        .release = tfos__file_source_close,
        .context = source,
        .like = like,
        .describe = describe,
        .next = tfos__file_source_next,
        .name_partition = tfos__file_source_name,
        .use = tfos__file_source_use,
    };
    enum tfos_status status = tfos_dataset_open(&options, out, err);
    if (status < 0)
        tfos__file_source_close(source);
    return status;
}

enum tfos_status tfos_record_dataset_open(const struct tfos_record_dataset_options *options,
                                          struct tfos_dataset **out, struct tfos_error *err)
{
    struct tfos_example_reader_options reading = options->reading;
    struct tfos__recipe *recipe = NULL;
    struct tfos_record_reader_options *record = &reading.record;
    *record = (struct tfos_record_reader_options){.compression = record->compression,
                                                  .mode = record->mode,
                                                  .max_record_size = record->max_record_size};
    // A batch that is read is one that is given out, so that its memory can be lent.
    reading.batch_rows = options->rows.shuffle_rows > 0 ? SHUFFLED_ROWS : options->rows.batch_size;
    reading.batch_size = READ_SIZE;
    TFOS__TRY(tfos__recipe_open(options, &reading, &recipe, err));
    enum tfos_status status = open_pass(recipe, &options->pass, &options->rows, NULL, out, err);
    tfos__recipe_release(recipe);
    return status;
}

struct tfos__file_source *tfos__record_dataset_source(const struct tfos_dataset *dataset)
{
    return dataset->options.next == tfos__file_source_next ? dataset->options.context : NULL;
}

static enum tfos_status get_recipe(const struct tfos_dataset *dataset, struct tfos__recipe **out,
                                   struct tfos_error *err)
{
    const struct tfos__file_source *source = tfos__record_dataset_source(dataset);
    if (!source)
        return tfos__fail(err, TFOS_INVALID, "dataset: it is none of files");
    *out = tfos__file_source_order(source)->recipe;
    return TFOS_OK;
}

enum tfos_status tfos_record_dataset_repeat(const struct tfos_dataset *like,
                                            const struct tfos_record_pass *pass,
                                            struct tfos_dataset **out, struct tfos_error *err)
{
    struct tfos_dataset_options rows = like->options;
    struct tfos__recipe *recipe = NULL;
    TFOS__TRY(get_recipe(like, &recipe, err));
    rows.columns = like->wishes.columns;
    rows.column_count = like->wishes.column_count;
    rows.null_value = like->wishes.null_value;
    rows.selection = (const char *const *)like->wishes.selection;
    rows.selection_count = like->wishes.selection_count;
    return open_pass(recipe, pass, &rows, like, out, err);
}

enum tfos_status tfos_record_dataset_get_counts(const struct tfos_dataset *dataset,
                                                struct tfos_record_counts *counts,
                                                struct tfos_error *err)
{
    struct tfos__recipe *recipe = NULL;
    TFOS__TRY(get_recipe(dataset, &recipe, err));
    pthread_mutex_lock(&recipe->mutex);
    *counts = recipe->counts;
    pthread_mutex_unlock(&recipe->mutex);
    return TFOS_OK;
}
