// SPDX-License-Identifier: Apache-2.0
// A dataset of files takes its rows from a file source. The position of its pass is a vector of
// numbers: the head, by `enum number`, and for each reader of the source its file, the offset and
// phase in it, and its row.
//
// The places are those before the oldest batch of which rows are left. What follows it is read
// again, so that it comes to the shuffle buffer, and from there to batches, in the same order.
#include <tfos/record_dataset.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/dataset.h"
#include "dataset/file_source.h"

#define SHUFFLED_ROWS 1024     // rows of a batch that is read, when rows are shuffled
#define READ_SIZE (64ll << 20) // approximate bytes of a batch that is read

// The schema is known before the first row.
static enum tfos_status describe(void *context, int64_t feed, int64_t timeout_ms,
                                 struct ArrowSchema *schema, struct tfos_error *err)
{
    const struct tfos__dataset_file_source *source = context;

    (void)feed;
    (void)timeout_ms;
    return tfos_arrow_schema_copy(&source->order.set->schema, schema, err);
}

static enum tfos_status agree(void *context, const char *name, const char *value_json,
                              char **values_json, struct tfos_error *err)
{
    const struct tfos__dataset_file_source *source = context;
    const struct tfos_dataset_options *steps = &source->order.set->steps;

    return steps->agree(steps->context, name, value_json, values_json, err);
}

static bool is_interrupted(void *context)
{
    const struct tfos__dataset_file_source *source = context;
    const struct tfos_dataset_options *steps = &source->order.set->steps;

    return steps->is_interrupted && steps->is_interrupted(steps->context);
}

static enum tfos_status open_pass(struct tfos__dataset_file_set *set,
                                  const struct tfos_record_pass *pass,
                                  const struct tfos_dataset_options *rows,
                                  const struct tfos_dataset *like, struct tfos_dataset **out,
                                  struct tfos_error *err)
{
    struct tfos__dataset_file_source *source = NULL;
    long long number = atomic_fetch_add(&set->pass_count, 1) + 1;
    char *name = tfos__format("%s/%lld", set->steps.name, number);
    enum tfos_status status = name ? tfos__dataset_file_source_open(set, pass, &source, err)
                                   : tfos__no_memory(err, "dataset", "files");

    if (status < 0) {
        tfos__free(name);
        return status;
    }
    struct tfos_dataset_options options = {
        .batch_size = rows->batch_size,
        .drop_remainder = rows->drop_remainder,
        .shuffle_rows = rows->shuffle_rows,
        .seed = pass->seed,
        .uneven = set->steps.uneven,
        .columns = rows->columns,
        .column_count = rows->column_count,
        .null_value = rows->null_value,
        .selection = rows->selection,
        .selection_count = rows->selection_count,
        .agree = agree,
        .is_interrupted = is_interrupted,
        .name = name,
        .release = tfos__dataset_file_source_close,
        .context = source,
        .like = like,
        .describe = describe,
        .next = tfos__dataset_file_source_next,
        .name_partition = tfos__dataset_file_source_name,
        .use = tfos__dataset_file_source_use,
    };
    status = tfos_dataset_open(&options, out, err);
    if (status < 0)
        tfos__dataset_file_source_close(source);
    tfos__free(name);
    return status;
}

enum tfos_status tfos_record_dataset_open(const struct tfos_record_dataset_options *options,
                                          struct tfos_dataset **out, struct tfos_error *err)
{
    struct tfos_example_reader_options reading = options->reading;
    struct tfos_record_reader_options *record = &reading.record;
    struct tfos__dataset_file_set *set = NULL;

    *record = (struct tfos_record_reader_options){.compression = record->compression,
                                                  .mode = record->mode,
                                                  .max_record_size = record->max_record_size};
    // A batch that is read has the rows of one that is returned, so that its memory is used in
    // place.
    reading.batch_rows = options->rows.shuffle_rows > 0 ? SHUFFLED_ROWS : options->rows.batch_size;
    reading.batch_size = READ_SIZE;
    TFOS__TRY(tfos__dataset_file_set_open(options, &reading, &set, err));
    enum tfos_status status = open_pass(set, &options->pass, &options->rows, NULL, out, err);
    if (status < 0)
        set->steps.release = NULL;
    tfos__dataset_file_set_release(set);
    return status;
}

// The source of a dataset of files; NULL: it is another dataset.
static struct tfos__dataset_file_source *find_source(const struct tfos_dataset *dataset)
{
    return dataset->options.next == tfos__dataset_file_source_next ? dataset->options.context
                                                                   : NULL;
}

static enum tfos_status get_source(const struct tfos_dataset *dataset,
                                   struct tfos__dataset_file_source **out, struct tfos_error *err)
{
    *out = find_source(dataset);
    return *out ? TFOS_OK : tfos__fail(err, TFOS_INVALID, "dataset: it is not a dataset of files");
}

enum tfos_status tfos_record_dataset_repeat(const struct tfos_dataset *like,
                                            const struct tfos_record_pass *pass,
                                            struct tfos_dataset **out, struct tfos_error *err)
{
    const struct tfos__dataset_column_options *columns = &like->column_options;
    struct tfos_dataset_options rows = like->options;
    struct tfos__dataset_file_source *source = NULL;

    TFOS__TRY(get_source(like, &source, err));
    rows.columns = columns->columns;
    rows.column_count = columns->column_count;
    rows.null_value = columns->null_value;
    rows.selection = (const char *const *)columns->selection;
    rows.selection_count = columns->selection_count;
    return open_pass(source->order.set, pass, &rows, like, out, err);
}

enum tfos_status tfos_record_dataset_get_counts(const struct tfos_dataset *dataset,
                                                struct tfos_record_counts *counts,
                                                struct tfos_error *err)
{
    struct tfos__dataset_file_source *source = NULL;

    TFOS__TRY(get_source(dataset, &source, err));
    struct tfos__dataset_file_set *set = source->order.set;
    pthread_mutex_lock(&set->mutex);
    *counts = set->counts;
    pthread_mutex_unlock(&set->mutex);
    return TFOS_OK;
}

// ---- the position

enum number {
    // What the dataset is made of: it must be the same where the position is used.
    FILE_COUNT,
    NAMES_CHECKSUM,
    SHARD_INDEX,
    SHARD_COUNT,
    SHUFFLED_FILES,
    READER_COUNT,
    SHUFFLE_ROWS,
    READ_ROWS,
    MADE_OF, // so many numbers
    SEED = MADE_OF,
    BATCHES,     // batches asked for
    GIVEN,       // rows given out
    ADDED,       // rows added to the shuffle buffer
    READ_BEFORE, // rows read before the places
    TURN,        // the reader that was next at the places
    HEAD_COUNT
};

#define PLACE_COUNT 4

static int64_t count_of(const struct tfos__dataset_file_source *source)
{
    return HEAD_COUNT + PLACE_COUNT * source->reader_count;
}

static void write_position(const struct tfos_dataset *dataset,
                           const struct tfos__dataset_file_source *source, int64_t *numbers)
{
    const struct tfos__dataset_file_order *order = &source->order;
    int64_t limit = dataset->shuffle.limit;
    // With one reader and without shuffling nothing depends on how many rows are read at once.
    bool is_cut = source->reader_count > 1 || limit > 0;

    numbers[FILE_COUNT] = order->set->path_count;
    numbers[NAMES_CHECKSUM] = order->set->names_checksum;
    numbers[SHARD_INDEX] = order->pass.shard_index;
    numbers[SHARD_COUNT] = order->pass.shard_count;
    numbers[SHUFFLED_FILES] = order->pass.shuffle_files;
    numbers[READER_COUNT] = source->reader_count;
    numbers[SHUFFLE_ROWS] = limit;
    numbers[READ_ROWS] = is_cut ? order->set->reading.batch_rows : 0;
    numbers[SEED] = (int64_t)order->pass.seed;
    numbers[BATCHES] = dataset->batch_count;
    numbers[GIVEN] = dataset->given_count;
    numbers[ADDED] = dataset->given_count + dataset->shuffle.count;
    numbers[READ_BEFORE] = source->oldest.row_count;
    numbers[TURN] = source->oldest.turn;
    numbers += HEAD_COUNT;
    for (int64_t i = 0; i < source->reader_count; i++, numbers += PLACE_COUNT) {
        const struct tfos__dataset_file_place *place = &source->oldest.places[i];
        numbers[0] = place->file;
        numbers[1] = (int64_t)place->position.offset;
        numbers[2] = (int64_t)place->position.phase;
        numbers[3] = place->row;
    }
}

int64_t tfos_record_dataset_position_count(const struct tfos_dataset *dataset)
{
    const struct tfos__dataset_file_source *source = find_source(dataset);

    return source ? count_of(source) : 0;
}

enum tfos_status tfos_record_dataset_get_position(struct tfos_dataset *dataset, int64_t *position,
                                                  struct tfos_error *err)
{
    struct tfos__dataset_file_source *source = NULL;

    TFOS__TRY(get_source(dataset, &source, err));
    TFOS__TRY(tfos__dataset_check_process(dataset, err));
    pthread_mutex_lock(&dataset->mutex);
    write_position(dataset, source, position);
    pthread_mutex_unlock(&dataset->mutex);
    return TFOS_OK;
}

// Checks a position against the one where the dataset is.
static enum tfos_status check(const int64_t *position, int64_t count, const int64_t *here,
                              int64_t here_count, struct tfos_error *err)
{
    static const char *const names[MADE_OF] = {
        [FILE_COUNT] = "the number of files",
        [NAMES_CHECKSUM] = "the checksum of the files' names",
        [SHARD_INDEX] = "the shard",
        [SHARD_COUNT] = "the number of shards",
        [SHUFFLED_FILES] = "whether files are shuffled (0 or 1)",
        [READER_COUNT] = "the number of files that are read side by side",
        [SHUFFLE_ROWS] = "the number of rows that are drawn from",
        [READ_ROWS] = "the number of rows that are read at once",
    };
    for (int i = 0; i < MADE_OF && i < count; i++)
        if (position[i] != here[i])
            return tfos__fail(err, TFOS_INVALID,
                              "dataset: the position is of another dataset: %s is %lld there and "
                              "%lld here; make this one as that one was made, or begin anew",
                              names[i], (long long)position[i], (long long)here[i]);
    if (count != here_count)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: a position of this dataset has %lld numbers, not %lld",
                          (long long)here_count, (long long)count);
    int64_t reader_count = here[READER_COUNT], file_count = here[FILE_COUNT];
    bool is_wrong = position[TURN] < 0 || position[TURN] >= reader_count ||
                    position[READ_BEFORE] < 0 || position[READ_BEFORE] > position[GIVEN];
    for (int64_t i = HEAD_COUNT; i < count; i += PLACE_COUNT)
        is_wrong |= position[i] < 0 || position[i] >= file_count + reader_count ||
                    position[i + 1] < 0 || position[i + 2] < 0 || position[i + 3] < 0;
    return is_wrong ? tfos__fail(err, TFOS_INVALID, "dataset: the position is damaged") : TFOS_OK;
}

// Skips rows that have been given out already.
static enum tfos_status skip_rows(struct tfos_dataset *dataset, int64_t count,
                                  struct tfos_error *err)
{
    struct tfos__dataset_batch_queue *queue = &dataset->queue;
    struct tfos__dataset_row_slices *list = &dataset->batch;
    enum tfos_status status = TFOS_OK;

    while (status == TFOS_OK && count > 0) {
        status = queue->row_count > 0 ? tfos__dataset_batch_queue_take(queue, count, list, err)
                                      : tfos__dataset_batch_queue_read(queue, -1, err);
        for (int64_t i = 0; i < list->count; i++)
            tfos__dataset_file_source_use(dataset->options.context, list->slices[i].batch->number,
                                          list->slices[i].count);
        count -= list->row_count;
        tfos__dataset_row_slices_drop(list);
    }
    return status;
}

static enum tfos_status read_again(struct tfos_dataset *dataset, const int64_t *head,
                                   struct tfos_error *err)
{
    const struct tfos__dataset_shuffle_point point = {head[GIVEN], head[ADDED], head[READ_BEFORE]};
    enum tfos_status status =
        dataset->shuffle.limit == 0
            ? skip_rows(dataset, head[GIVEN] - head[READ_BEFORE], err)
            : tfos__dataset_shuffle_buffer_resume(&dataset->shuffle, &dataset->queue, &point,
                                                  &dataset->plan, &dataset->binding, err);

    if (status == TFOS_END)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: the files end before the position, which is behind row %lld: "
                          "they have become others since",
                          (long long)head[ADDED]);
    return status;
}

static enum tfos_status go_to(struct tfos_dataset *dataset,
                              struct tfos__dataset_file_source *source, const int64_t *position,
                              struct tfos_error *err)
{
    uint64_t seed = (uint64_t)position[SEED];
    struct tfos__dataset_file_point point = {position[TURN], position[READ_BEFORE], NULL};

    point.places = tfos__alloc((size_t)source->reader_count, sizeof(*point.places));
    if (!point.places)
        return tfos__no_memory(err, "dataset", "a position");
    for (int64_t i = 0; i < source->reader_count; i++) {
        const int64_t *numbers = position + HEAD_COUNT + i * PLACE_COUNT;
        point.places[i] = (struct tfos__dataset_file_place){
            numbers[0], {(uint64_t)numbers[1], (uint64_t)numbers[2]}, numbers[3]};
    }
    dataset->batch_count = -1; // at no position, unless all that follows succeeds
    tfos__dataset_batch_queue_restart(&dataset->queue);
    tfos__dataset_shuffle_buffer_drop(&dataset->shuffle);
    tfos__dataset_shuffle_buffer_begin(&dataset->shuffle, seed, 1);
    tfos__dataset_file_source_resume(source, seed, &point);
    tfos__free(point.places);
    TFOS__TRY(read_again(dataset, position, err));
    dataset->given_count = position[GIVEN];
    dataset->batch_count = position[BATCHES];
    return TFOS_OK;
}

// Whether the dataset is `batch_count` batches behind the position, or both are behind the end.
static bool is_behind(const struct tfos_dataset *dataset,
                      const struct tfos__dataset_file_source *source, const int64_t *position,
                      int64_t batch_count)
{
    const struct tfos__dataset_batch_queue *queue = &dataset->queue;
    bool has_ended = queue->is_over && queue->row_count == 0 && dataset->shuffle.count == 0;
    int64_t batches = dataset->batch_count - batch_count; // at the position, if it is so

    return source->order.pass.seed == (uint64_t)position[SEED] &&
           (position[BATCHES] == batches ||
            (has_ended && dataset->batch_count >= 0 && position[BATCHES] > batches));
}

static enum tfos_status check_and_go(struct tfos_dataset *dataset,
                                     struct tfos__dataset_file_source *source,
                                     const int64_t *position, int64_t count, struct tfos_error *err)
{
    int64_t here_count = count_of(source);
    int64_t *here = tfos__alloc((size_t)here_count, sizeof(*here));

    if (!here)
        return tfos__no_memory(err, "dataset", "a position");
    write_position(dataset, source, here);
    enum tfos_status status = check(position, count, here, here_count, err);
    tfos__free(here);
    if (status == TFOS_OK)
        status = tfos__dataset_prepare(dataset, -1, err);
    return status == TFOS_OK ? go_to(dataset, source, position, err) : status;
}

enum tfos_status tfos_record_dataset_set_position(struct tfos_dataset *dataset,
                                                  const int64_t *position, int64_t count,
                                                  int64_t batch_count, struct tfos_error *err)
{
    struct tfos__dataset_file_source *source = NULL;
    enum tfos_status status = TFOS_OK;

    TFOS__TRY(get_source(dataset, &source, err));
    TFOS__TRY(tfos__dataset_check_process(dataset, err));
    pthread_mutex_lock(&dataset->mutex);
    if (count < HEAD_COUNT || !is_behind(dataset, source, position, batch_count)) {
        status = check_and_go(dataset, source, position, count, err);
        for (int64_t i = 0; i < batch_count && status == TFOS_OK; i++)
            status = tfos__dataset_skip(dataset, err);
    }
    pthread_mutex_unlock(&dataset->mutex);
    return status;
}
